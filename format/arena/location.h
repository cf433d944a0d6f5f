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

/* ---- location: one thread's stream ---- */
#define FDRI_ARENA_EPOCH_CUTS     16
#define FDRI_ARENA_READING_DEPTHS 32 /* depth of readings of level 0; those of level 31 and above: 1 */
enum fdri_arena_location_flags {
    FDRI_ARENA_LOCATION_LIVE = 1,
    FDRI_ARENA_LOCATION_LANE = 2,
    FDRI_ARENA_LOCATION_NS = 4,
    FDRI_ARENA_LOCATION_STOPPED = 8,
    FDRI_ARENA_LOCATION_FREE = 16, /* nobody's: to be skipped */
    FDRI_ARENA_LOCATION_SAMPLES = 32,
    FDRI_ARENA_LOCATION_FOLDING = 64, /* is being given back */
    FDRI_ARENA_LOCATION_ENDED = 128,  /* stands for `tid` threads that ended */
    FDRI_ARENA_LOCATION_READINGS =
        256, /* user events at depth d > 0 are readings of level FDRI_ARENA_READING_DEPTHS - d, in no call */
    FDRI_ARENA_LOCATION_REWINDS = 512,       /* its thread has set a mark to rewind to */
    FDRI_ARENA_LOCATION_JOINED = 1024,       /* calls of band 1 are stored in band 2: since when is not said */
    FDRI_ARENA_LOCATION_JOINED_LONG = 2048,  /* those of bands 1 and 2 in band 3 */
    FDRI_ARENA_LOCATION_JOINED_ALL = 4096,   /* all in band 3, those of length 0 as well */
    FDRI_ARENA_LOCATION_MOVING = 8192,       /* being given back: its accounts are on their way just now */
    FDRI_ARENA_LOCATION_ANEW = 16384,        /* recovered: some of its accounts are made anew of what was found */
    FDRI_ARENA_LOCATION_TOTALS_LOST = 32768, /* recovered: rows of its totals were damaged and are not there */
    FDRI_ARENA_LOCATION_PARTS_LOST =
        65536 /* recovered: the chain of its partitions was broken, and some may not be there */
};
struct fdri_arena_location {
    struct fdri_arena_meta_head head;
    uint32_t id;
    uint32_t next;       /* off of the location attached before this one */
    uint32_t tid;        /* FDRI_ARENA_LOCATION_ENDED: how many locations it stands for */
    uint32_t flags;      /* atomic: enum fdri_arena_location_flags */
    uint32_t parent;     /* a lane: id of the location it belongs to; else UINT32_MAX */
    uint32_t numa_node;  /* the kernel's number: where the thread ran when it last took a bin */
    uint64_t start_tick; /* stored ticks */
    uint64_t end_tick;   /* 0 while live */
    /* the owner's hot words */
    uint64_t busy;         /* stack address of the operation under way, 0 = none */
    uint64_t last_tick;    /* full ticks of the newest event */
    uint32_t depth;        /* open regions on the stack that is kept: levels 1..depth */
    uint32_t overflow;     /* open regions deeper than that */
    uint16_t pause;        /* not 0: paused, by fdr_pause or outside of phases */
    uint16_t refused_from; /* depth of the first call that memory held no level for; 0: none, or behind all levels */
    uint32_t level_blocks; /* how many of levels_off[] are there */
    uint32_t levels_off[FDRI_ARENA_LEVEL_BLOCKS_MAX]; /* fdri_arena_level_block(d): level d from 1 on */
    uint32_t level0_off;                              /* the level of events outside any region (depth 0) */
    uint32_t parts_first;                             /* off of the newest partition; they chain by `next` */
    uint32_t rows_table_off;                          /* off of the hash table (struct fdri_arena_rowtable) */
    uint32_t slab_off;                                /* where the next totals row comes from */
    uint32_t slab_end;
    uint32_t rest_row_off; /* the row that folded regions share, 0 = none */
    /* accounts beside the per-level ones; owner writes */
    uint64_t presented_overflow; /* calls deeper than the stack that was kept then: presented, all lost */
    uint64_t lost_overflow;
    uint64_t clamped;            /* events whose clock stepped back */
    uint64_t unbalanced;         /* regions closed by a leave of an outer one */
    uint64_t stray_leaves;       /* leaves of regions that were not open */
    uint64_t rows_folded;        /* calls accounted in the rest row */
    uint64_t hists_dropped;      /* regions without a histogram */
    uint64_t points_without_row; /* points of kinds that found no row: in no total */
    uint32_t abandoned;          /* operations left by longjmp from a handler */
    uint32_t meta_units;         /* atomic: 512 bytes each: what of its bins and pieces its accounts lie in */
    /* ties: events at tick tie_tick so far that carry no duration */
    uint64_t point_tick;                      /* stored tick of the newest point event */
    uint32_t point_count;                     /* how many point events had that tick */
    uint32_t epoch;                           /* number of the current epoch, from 0 */
    uint64_t cut_tick[FDRI_ARENA_EPOCH_CUTS]; /* epoch e began at cut_tick[e % 16] */
    uint64_t floor_tick;      /* records with leave <= this are given back, whatever bin still holds them (0 = none) */
    uint32_t epoch_floor;     /* oldest epoch still held */
    uint32_t bins_held;       /* bins of bin_bytes this location holds now */
    uint32_t strewn_units;    /* 512 bytes each: what it has of bins that belong to several locations */
    uint32_t piece_free[7];   /* off of free pieces by log2(bytes) - 9: halves of a bin not in use */
    uint32_t counting;        /* off of the histogram's counter that the newest call is not in yet; 0: it is */
    uint32_t reduction_count; /* lines begun, up to FDRI_ARENA_REDUCTION_COUNT_END; n is at [n % .._LINES] */
    uint32_t reductions_off;  /* off of struct fdri_arena_reductions_block, 0 = none yet */
    uint32_t epochs_off;      /* struct fdri_arena_epochs, 0 = none yet */
    uint64_t reductions_dropped_events; /* sums of lines that were overwritten or found no block */
    uint64_t reductions_dropped_bytes;
    uint32_t gate_depth[FDRI_ARENA_BANDS]; /* calls of band b deeper than or at this are not stored; 0 = open */
    uint32_t class_closed;                 /* bit per class: storage gate closed */
    uint32_t reduction_steps;              /* steps that gave bins back; closed gates */
    uint32_t epoch_bins;                   /* bins opened in the current epoch */
    uint32_t meta_free[9]; /* given-back meta blocks by bytes / 64 - 1, chained through the word behind their head */
    uint32_t meta_off;     /* rest of the newest slab */
    uint32_t meta_end;
    /* FDRI_ARENA_LOCATION_STOPPED: the open calls when storing stopped (struct fdri_arena_frozen) */
    uint32_t frozen_off;
    uint32_t piece_units; /* 512 bytes each: free pieces */
    char name[32];
    /* fair shares; not needed to read */
    uint32_t claim;           /* atomic: bit 31: nobody may take bins of it */
    uint32_t returned;        /* atomic: stack of pieces that claimers found on their way to whole bins */
    uint32_t split_bins;      /* bins held that are in pieces */
    uint32_t ended_turn;      /* how many bins had been filled, first or anew, when the thread ended */
    uint64_t asleep;          /* atomic: may newest bins be taken, too? bins/pressure/asleep.c */
    uint32_t ended_next;      /* the location that ended after this one */
    uint32_t fold_from;       /* how far its accounts were folded */
    uint32_t slabs;           /* off of the newest block of further meta */
    uint32_t samples_off;     /* FDRI_ARENA_LOCATION_SAMPLES: struct fdri_arena_samples */
    uint64_t reduction_ticks; /* time its owner has spent giving memory back: full ticks of the recording's clock */
    uint64_t reduction_worst; /* the longest of these steps, and of cuts and merges of epochs */
};
static_assert(sizeof(struct fdri_arena_location) == 832, "location");
/* The owner's hot words: the bracket ends the first cache line, what each call writes begins the second. */
static_assert(offsetof(struct fdri_arena_location, busy) == 56 &&
                  offsetof(struct fdri_arena_location, last_tick) == 64 &&
                  offsetof(struct fdri_arena_location, depth) == 72 &&
                  offsetof(struct fdri_arena_location, overflow) == 76 &&
                  offsetof(struct fdri_arena_location, levels_off) == 88,
              "hot words of a location");

#endif
