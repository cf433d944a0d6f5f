/* SPDX-License-Identifier: MIT */
/* A location: one thread's stream of events, with its accounts. */
#ifndef FDRI_FORMAT_ARENA_LOCATION_H
#define FDRI_FORMAT_ARENA_LOCATION_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "format/arena/event_class.h"
#include "format/arena/level.h"
#include "format/arena/meta_block.h"

#define FDRI_ARENA_EPOCH_CUTS     16
#define FDRI_ARENA_READING_DEPTHS 32 /* depth of readings of level 0; from level 31 on it is 1 */
enum fdri_arena_location_flags {
    FDRI_ARENA_LOCATION_LIVE = 1,
    FDRI_ARENA_LOCATION_LANE = 2,
    FDRI_ARENA_LOCATION_NS = 4,
    FDRI_ARENA_LOCATION_STOPPED = 8,
    FDRI_ARENA_LOCATION_FREE = 16, /* unused: skip it */
    FDRI_ARENA_LOCATION_SAMPLES = 32,
    FDRI_ARENA_LOCATION_FOLDING = 64, /* is being given back */
    FDRI_ARENA_LOCATION_ENDED = 128,  /* [ended]: stands for `tid` threads that ended */
    FDRI_ARENA_LOCATION_READINGS =
        256, /* user events at depth d > 0 are readings of level FDRI_ARENA_READING_DEPTHS - d, in no call */
    FDRI_ARENA_LOCATION_REWINDS = 512,       /* its thread has set a mark to rewind to */
    FDRI_ARENA_LOCATION_JOINED = 1024,       /* calls of band 1 are stored in band 2; the start is not stored */
    FDRI_ARENA_LOCATION_JOINED_LONG = 2048,  /* calls of bands 1 and 2 are stored in band 3 */
    FDRI_ARENA_LOCATION_JOINED_ALL = 4096,   /* all calls are stored in band 3, those of length 0 as well */
    FDRI_ARENA_LOCATION_MOVING = 8192,       /* being given back: its accounts are moving at this moment */
    FDRI_ARENA_LOCATION_ANEW = 16384,        /* recovered: some accounts were computed from the bins that were found */
    FDRI_ARENA_LOCATION_TOTALS_LOST = 32768, /* recovered: damaged rows of its totals are missing */
    FDRI_ARENA_LOCATION_PARTS_LOST = 65536,  /* recovered: the chain of partitions was broken, so some may be missing */
    FDRI_ARENA_LOCATION_NAMED = 131072,      /* the program gave the name; else it is the kernel's */
    FDRI_ARENA_LOCATION_TRAFFIC_LOST = 262144 /* messages or collectives are in no region's row: memory had no room */
};
/* Fields stand by concern; equations hold while the owner is in no operation. */
struct fdri_arena_location {
    /* ---- whose: `id` is unique in the recording; end_tick = 0 while LIVE */
    struct fdri_arena_meta_head head;
    uint32_t id;
    uint32_t next;       /* off of the location attached before this one */
    uint32_t tid;        /* FDRI_ARENA_LOCATION_ENDED: number of locations it stands for */
    uint32_t flags;      /* atomic: enum fdri_arena_location_flags */
    uint32_t parent;     /* lanes and samples: id of the thread's location; else UINT32_MAX */
    uint32_t numa_node;  /* the kernel's number of the node where the thread ran when it last took a bin */
    uint64_t start_tick; /* stored ticks */
    uint64_t end_tick;   /* 0 while live */
    /* ---- now: the words that the owner writes in each operation */
    uint64_t busy;      /* stack address of the operation under way, 0 = none */
    uint64_t last_tick; /* full ticks of the newest event */
    /* ---- stack: depth <= levels in level_blocks blocks; levels_off[i] != 0 for i < level_blocks */
    uint32_t depth;          /* open calls on the shadow stack: levels 1..depth */
    uint32_t overflow;       /* open calls deeper than the stack */
    uint16_t pause;          /* not 0: paused, by fdr_pause or outside of phases */
    uint16_t no_level_depth; /* depth of the first call for which memory had no level; 0: none */
    uint32_t level_blocks;   /* number of blocks in levels_off[] */
    uint32_t levels_off[FDRI_ARENA_LEVEL_BLOCKS_MAX]; /* fdri_arena_level_block(d) is the index of level d >= 1 */
    uint32_t level0_off;                              /* off of level 0, for events outside of any call */
    /* ---- store: each listed bin is in one partition, and each partition in this chain */
    uint32_t parts_first; /* off of the newest partition; they chain by `next` */
    /* ---- totals: of a row with a histogram, calls = its sum, + 1 if pending_counter_off is in it */
    uint32_t rows_table_off; /* off of the hash table (struct fdri_arena_rowtable) */
    uint32_t slab_off;       /* memory for the next totals row */
    uint32_t slab_end;
    uint32_t rest_row_off; /* the row shared by folded regions, 0 = none */
    /* ---- accounts beside those of the levels: presented_overflow = lost_overflow. Of each level and class:
     * presented = kept + filtered + reduced + lost; kept = records of listed bins + the open call */
    uint64_t presented_overflow; /* calls deeper than the stack was at the time: all of them lost */
    uint64_t lost_overflow;
    uint64_t clamped;            /* events whose clock stepped back */
    uint64_t unbalanced;         /* calls closed by a leave of an outer one */
    uint64_t stray_leaves;       /* leaves of regions that were not open */
    uint64_t rows_folded;        /* calls counted in the shared row */
    uint64_t hists_dropped;      /* rows without a histogram */
    uint64_t points_without_row; /* points of kinds for which memory had no row: in no total */
    uint32_t abandoned;          /* operations that a handler left by longjmp */
    uint32_t meta_units;         /* atomic: bins and pieces that hold its accounts, in 512 bytes */
    /* ---- ties: events without duration in one tick */
    uint64_t point_tick;  /* stored tick of the newest point */
    uint32_t point_count; /* points of that tick */
    /* ---- epochs: under `last`, epoch - epoch_floor < FDRI_ARENA_EPOCH_CUTS, and cut_tick rises with e */
    uint32_t epoch;                           /* number of the current epoch, from 0 */
    uint64_t cut_tick[FDRI_ARENA_EPOCH_CUTS]; /* epoch e began at cut_tick[e % 16] */
    uint64_t floor_tick;  /* records with leave <= this are given back, even if a bin still holds them (0 = none) */
    uint32_t epoch_floor; /* oldest epoch with bins */
    /* ---- memory: piece_units >= sum of the pieces in piece_free[]; greater after a longjmp */
    uint32_t bins_held;           /* bins of bin_bytes that this location has */
    uint32_t strewn_units;        /* 512 bytes each: its part of bins shared by several locations */
    uint32_t piece_free[7];       /* off of free pieces by log2(bytes) - 9: unused halves of bins */
    uint32_t pending_counter_off; /* off of the counter that may lack the newest call; 0: none does */
    /* ---- reductions: events given back = those of the log's lines + reductions_dropped_events */
    uint32_t reduction_count;           /* lines begun, up to FDRI_ARENA_REDUCTION_COUNT_END; n is at [n % .._LINES] */
    uint32_t reductions_off;            /* off of struct fdri_arena_reductions_block, 0 = none yet */
    uint32_t epochs_off;                /* struct fdri_arena_epochs, 0 = none yet */
    uint64_t reductions_dropped_events; /* sums of lines that were overwritten, or for which memory had no block */
    uint64_t reductions_dropped_bytes;
    /* ---- gates: a call is stored only if its callers are: gate_depth[b - 1] <= gate_depth[b] + 1 once b's closed */
    uint32_t gate_depth[FDRI_ARENA_BANDS]; /* calls of band b this deep or deeper are not stored; 0 = all are */
    uint32_t class_closed;                 /* bit for each class whose gate is closed */
    uint32_t reduction_steps;              /* steps that gave bins back, and gates closed */
    uint32_t epoch_bins;                   /* bins opened in the current epoch */
    uint32_t meta_free[9]; /* returned meta blocks by bytes / 64 - 1, chained through the word behind the head */
    uint32_t meta_off;     /* unused end of the newest slab */
    uint32_t meta_end;
    /* FDRI_ARENA_LOCATION_STOPPED: off of struct fdri_arena_frozen, the calls that were open then */
    uint32_t frozen_off;
    uint32_t piece_units; /* 512 bytes each: free pieces */
    char name[32];
    /* ---- sharing of bins; readers do not need it */
    uint32_t claim;              /* atomic: bit 31 forbids other threads to take its bins */
    uint32_t returned_pieces;    /* atomic: stack of pieces that claims found on the way to whole bins */
    uint32_t split_bins;         /* of its bins: those split into pieces */
    uint32_t bins_filled_at_end; /* bins filled in the whole recording when the thread ended */
    uint64_t asleep;             /* atomic: may claims take newest bins, too? bins/pressure/asleep.c */
    uint32_t ended_next;         /* the location that ended after this one */
    uint32_t fold_from;          /* how far folding has come */
    uint32_t slabs;              /* off of the newest slab */
    uint32_t samples_off;        /* FDRI_ARENA_LOCATION_SAMPLES: struct fdri_arena_samples */
    uint64_t reduction_ticks;    /* full ticks that the owner has spent giving memory back */
    uint64_t reduction_worst;    /* the longest of these steps, and of cuts and merges of epochs */
};
static_assert(sizeof(struct fdri_arena_location) == 832, "location");
/* `busy` ends the first cache line; the words that each call writes begin the second. */
static_assert(offsetof(struct fdri_arena_location, busy) == 56 &&
                  offsetof(struct fdri_arena_location, last_tick) == 64 &&
                  offsetof(struct fdri_arena_location, depth) == 72 &&
                  offsetof(struct fdri_arena_location, overflow) == 76 &&
                  offsetof(struct fdri_arena_location, levels_off) == 88,
              "hot words of a location");
static_assert(offsetof(struct fdri_arena_location, parts_first) == 348 &&
                  offsetof(struct fdri_arena_location, rows_table_off) == 352 &&
                  offsetof(struct fdri_arena_location, presented_overflow) == 368 &&
                  offsetof(struct fdri_arena_location, point_tick) == 440 &&
                  offsetof(struct fdri_arena_location, epoch) == 452,
              "where concerns begin");

#endif
