/* SPDX-License-Identifier: MIT */
/* The reader's model of a location: partitions with their bins, open calls, and how far the reader believes each. */
#ifndef FDRI_READER_FILE_LOCATION_MODEL_H
#define FDRI_READER_FILE_LOCATION_MODEL_H

#include <fdr/reader.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format/arena/arena.h"
#include "format/codec/record_codec.h"
#include "reader/file/tick_to_ns.h"

/* The shadow stack stores at most this depth; a partition that claims more is damaged. */
#define FDRI_FILE_DEPTH_MAX  FDRI_ARENA_LEVELS_MAX
#define FDRI_FILE_DAMAGE_MAX 1000u

/* ---- bins and partitions ---- */
enum fdri_file_bin_state {
    FDRI_FILE_BIN_UNKNOWN = 0,
    FDRI_FILE_BIN_GOOD,
    FDRI_FILE_BIN_SLOW, /* good, but only the slow decoder reads it */
    FDRI_FILE_BIN_BAD
};
struct fdri_file_bin {
    uint64_t base_tick, first_index;
    uint32_t off, seq, records;
    uint8_t size_log2;
    uint8_t state;      /* enum fdri_file_bin_state; relaxed atomic: any thread may set it */
    bool gap;           /* bins or records before this one are missing */
    bool gap_accounted; /* they were missing at a recovery already, so the accounts include them */
    bool reported;      /* the list of damage names this bin */
};
struct fdri_file_part {
    uint64_t off; /* of struct fdri_arena_part; 0: the partition is known from its bins only */
    uint16_t depth;
    uint8_t class_, band;
    bool tail_gap;           /* records after the newest bin are missing */
    bool tail_gap_accounted; /* they were missing at a recovery already */
    bool tail_after_cut;     /* all of them may be newer than the cut */
    bool pinned;             /* the partition is pinned (FDR_PIN) */
    bool pin_kept_parents;   /* at the pinning, no possible parent of its calls had been lost */
    uint64_t pin_tick;       /* stored tick of the pinning: it holds all that ended by then */
    uint32_t bin_count, bin_room;
    struct fdri_file_bin *bin;
    uint64_t given_back;            /* number of records given back */
    uint64_t rewind_records;        /* a rewind was under way: at most this many records are in no account */
    uint64_t floor;                 /* the newest leave given back; 0: nothing was given back */
    bool floor_unknown;             /* it may be later than `floor`: damage, or all was given back during a snapshot */
    bool unaccounted;               /* recovered, and more is missing than the accounts include */
    uint64_t min_leave;             /* a record counts as kept if its leave is not below this */
    uint64_t first_tick, last_tick; /* of the kept records, if `any` */
    bool any;
};

/* ---- locations ---- */
struct fdri_file_frame {
    uint64_t enter;
    uint32_t region, flags, ordinal; /* usually FDRI_CODEC_ORDINAL_COUNTED */
};
#define FDRI_FILE_NO_ORDINAL (FDRI_CODEC_ORDINAL_COUNTED - 1u) /* unknown; no call has this ordinal */
struct fdri_file_unplaced {                                    /* see unplaced_calls.c */
    uint32_t depth;
    uint64_t leave;
};
struct fdri_file_location {
    uint32_t id;
    uint64_t off;                                     /* of struct fdri_arena_location; 0: known from its bins only */
    struct fdri_arena_location raw;                   /* a copy; zero when off is 0 */
    uint64_t levels_off[FDRI_ARENA_LEVEL_BLOCKS_MAX]; /* 0: the block is missing */
    bool levels_lost, parts_lost, block_damaged;      /* block_damaged: the location's own block is damaged */
    bool parts_missing;                               /* the chain of its partitions is broken, or was at a recovery */
    bool accounts_dropped;                            /* used during a recovery */
    bool rows_lost;                                   /* damage took rows of its totals; valid after reading them */
    bool epoch_rows_lost;                             /* the same, for the rows of its current epoch */
    struct fdri_file_clock clock;
    struct fdri_file_part *part; /* sorted by class, depth, band */
    size_t part_count, part_room;
    /* The stack of open calls, outermost first, in stored ticks. The reader counts and shows `frame`: the live
     * stack, or the stack at the moment when the location stopped storing. */
    struct fdri_file_frame *live, *frozen, *frame;
    uint32_t live_count, frozen_count, frame_count; /* frame_count: as many as the reader believes */
    bool stopped, frozen_lost;                      /* frozen_lost: only a part of the stack at the stop is readable */
    /* A location is `moving` if it recorded during the snapshot. Events after the cut may lack ancestors, and bins
     * opened since may be missing. */
    bool moving, in_tail;
    bool settled;         /* neither moving nor in an operation, so any contradiction is damage */
    bool bins_other_unit; /* its bins have another unit of time than its header */
    uint64_t cut;         /* stored tick */
    uint64_t
        *lost_open_until; /* by depth, if moving: a missing call that was open after this tick was open at the cut */
    struct fdri_arena_tail_entry tail;
    uint64_t presented_before;
    uint64_t presented_in[FDRI_ARENA_CLASS_COUNT]; /* the parts of presented_before; without samples */
    bool presented_unsure;                         /* some of its accounts are missing or damaged */
    bool careful;                                  /* a call may lack an ancestor */
    uint64_t from_tick, end_tick;                  /* stored ticks: oldest and newest kept event or open call */
    struct fdr_location_info info;
    struct fdr_open_call *open;
    bool unplaced_known;
    struct fdri_file_unplaced *unplaced; /* calls that lie in bins but have no place, so are not shown */
    size_t unplaced_count, unplaced_room;
};

#endif
