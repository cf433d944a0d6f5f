/* SPDX-License-Identifier: MIT */
/* A location as the reader holds it: its partitions with their bins, its open calls, how far each is believed. */
#ifndef FDRI_READER_FILE_LOCATION_MODEL_H
#define FDRI_READER_FILE_LOCATION_MODEL_H

#include <fdr/reader.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format/arena/arena.h"
#include "format/codec/record_codec.h"
#include "reader/file/tick_to_ns.h"

/* The stack that is kept is at most this deep; a partition that claims more is damaged. */
#define FDRI_FILE_DEPTH_MAX  FDRI_ARENA_LEVELS_MAX
#define FDRI_FILE_DAMAGE_MAX 1000u

/* ---- bins and partitions ---- */
enum fdri_file_bin_state {
    FDRI_FILE_BIN_UNKNOWN = 0,
    FDRI_FILE_BIN_GOOD,
    FDRI_FILE_BIN_SLOW, /* good, but the fast way does not read it */
    FDRI_FILE_BIN_BAD
};
struct fdri_file_bin {
    uint64_t base_tick, first_index;
    uint32_t off, seq, records;
    uint8_t size_log2;
    uint8_t state; /* enum fdri_file_bin_state; relaxed atomic: any thread may find out */
    bool gap;      /* bins or records before it are missing */
    bool gap_told; /* they were when it was recovered */
    bool told;     /* that it is damaged is in the list of damage */
};
struct fdri_file_part {
    uint64_t off; /* of struct fdri_arena_part; 0: only its bins say that it is there */
    uint16_t depth;
    uint8_t class_, band;
    bool tail_gap;       /* something is missing after the newest bin */
    bool tail_told;      /* it was when it was recovered */
    bool tail_moved;     /* it may all be newer than the cut */
    bool aside;          /* set aside */
    bool aside_parents;  /* until then none had been lost of those that may be parents of its calls */
    uint64_t aside_tick; /* up to here: all that had ended by then */
    uint32_t bin_count, bin_room;
    struct fdri_file_bin *bin;
    uint64_t given_back; /* records stored once and no longer held */
    uint64_t forgets;    /* a rewind was under way: so many at most are in no account yet */
    uint64_t floor;      /* newest leave that was given back; 0: nothing was */
    bool floor_unknown;  /* all was given back while a snapshot was made, or the block is damaged: later than `floor` */
    bool untold;         /* recovered, and more is missing than is told */
    uint64_t min_leave;  /* a record is kept when its leave is not below this */
    uint64_t first_tick, last_tick; /* of what is kept, when `any` */
    bool any;
};

/* ---- locations ---- */
struct fdri_file_frame {
    uint64_t enter;
    uint32_t region, flags, ordinal; /* FDRI_CODEC_ORDINAL_COUNTED, mostly */
};
#define FDRI_FILE_NO_ORDINAL (FDRI_CODEC_ORDINAL_COUNTED - 1u) /* not known, and nobody's */
struct fdri_file_unplaced {                                    /* unplaced_calls.c */
    uint32_t depth;
    uint64_t leave;
};
struct fdri_file_location {
    uint32_t id;
    uint64_t off;                                     /* of struct fdri_arena_location; 0: known from its bins only */
    struct fdri_arena_location raw;                   /* a copy; zero when off is 0 */
    uint64_t levels_off[FDRI_ARENA_LEVEL_BLOCKS_MAX]; /* 0: missing */
    bool levels_lost, parts_lost, suspect;            /* suspect: its own block is damaged */
    bool parts_missing;    /* the chain of its partitions is broken, or was when the file was recovered */
    bool accounts_dropped; /* while it is recovered */
    bool rows_lost;        /* of its totals, as damage took them; known once they were read */
    bool epoch_rows_lost;  /* the same of those that its current epoch is counted with */
    struct fdri_file_clock clock;
    struct fdri_file_part *part; /* sorted by class, depth, band */
    size_t part_count, part_room;
    /* The stack of open calls, outermost first, in stored ticks. `frame` is what counts as kept and is shown: the
     * live stack, or what was open when the location stopped storing. */
    struct fdri_file_frame *live, *frozen, *frame;
    uint32_t live_count, frozen_count, frame_count; /* frame_count: believed */
    bool stopped, frozen_lost; /* frozen_lost: of what was open when it stopped only a part can be read */
    /* A snapshot taken while this location went on: what is newer than the cut may lack ancestors, and bins opened
     * since may be missing. */
    bool moving, in_tail;
    bool settled;    /* it did not move, nor was an operation under way: whatever does not fit is damage */
    bool other_unit; /* its bins say another unit of time than its header */
    uint64_t cut;    /* stored tick */
    uint64_t *over;  /* by depth, where it moved: a missing call that was open behind this tick was open at the cut */
    struct fdri_arena_tail_entry tail;
    uint64_t presented_before;
    uint64_t presented_in[FDRI_ARENA_CLASS_COUNT]; /* of this; samples: not known here */
    bool presented_doubted;                        /* it lacks accounts, or has some that are damaged */
    bool careful;                                  /* a call's ancestor may be missing */
    uint64_t from_tick, end_tick;                  /* stored: oldest and newest kept event or open call */
    struct fdr_location_info info;
    struct fdr_open_call *open;
    bool unplaced_known;
    struct fdri_file_unplaced *unplaced; /* calls that lie in bins and are not shown */
    size_t unplaced_count, unplaced_room;
};

#endif
