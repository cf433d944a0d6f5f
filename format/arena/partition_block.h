/* SPDX-License-Identifier: MIT */
/* A partition: the list of bins of one class, depth and band of one location. */
#ifndef FDRI_FORMAT_ARENA_PARTITION_BLOCK_H
#define FDRI_FORMAT_ARENA_PARTITION_BLOCK_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "format/arena/meta_block.h"

/* ---- partition: the time-ordered list of bins of one class x depth x band of one location ----
 * Bins are appended at the tail and given back at the head only, so what is kept is always a suffix in time.
 *   records ever stored = first_index(open bin) + records(open bin)
 *   reduced             = first_index(head bin)            (all of them when the list is empty)
 *   kept                = records of the listed bins
 * A bin whose seq is below head_seq was given back and must not rise again. */
struct fdri_arena_part {
    struct fdri_arena_meta_head head;
    uint64_t list_head;  /* atomic {seq:32, off:32} of the oldest bin held; off 0: empty */
    uint64_t total;      /* records stored in sealed bins, ever (= first_index of the next bin) */
    uint64_t floor_tick; /* newest leave that was given back from this partition; 0 = nothing was */
    uint32_t next;       /* off of the location's next partition */
    uint32_t open_seq;   /* seq of the open bin; the next bin gets the next seq */
    uint16_t depth;
    uint8_t class_;
    uint8_t band;
    uint8_t size_log2;  /* size of the open bin; grows up to bin_bytes */
    uint8_t flags;      /* enum fdri_arena_part_flags */
    uint16_t aside_how; /* set aside: FDRI_ARENA_PINNED_... */
    uint32_t bins;      /* bins and pieces held */
    uint32_t bytes;     /* their sum / 512 */
    /* one cache line: all that storing a record touches; see format/codec/record_codec.h */
    uint64_t progress;     /* bits:20 | records:20 of the open bin that are complete */
    uint64_t hash;         /* running check */
    uint64_t last_tick;    /* leave (or time) of the newest record */
    uint32_t open_off;     /* bin being written, 0 = none */
    uint32_t table_off;    /* encoder's prediction table */
    uint32_t limit;        /* a record may start while its first bit is <= limit */
    uint32_t context;      /* table slot for the next record */
    uint32_t newest;       /* table entry of the newest record */
    uint32_t context_mask; /* contexts - 1 of the open bin */
    /* set aside: when; its records and all others of the location so far are not newer. Else not 0 while the records of
     * a newest bin that was taken come to `total`: what that will be then */
    uint64_t aside_tick;
    uint64_t forgets; /* records that a rewind under way takes away, at most; 0 = none is */
};
static_assert(sizeof(struct fdri_arena_part) == 128 && offsetof(struct fdri_arena_part, progress) == 64, "partition");
enum fdri_arena_part_flags {
    FDRI_ARENA_PART_CLOSED = 1,
    FDRI_ARENA_PART_COUNTED = 2 /* its newest bin is counted in an epoch */,
    FDRI_ARENA_PART_UNACCOUNTED =
        4, /* more is missing than accounts tell, T is floor_tick (FORMAT 7.2); only recovery sets it */
    FDRI_ARENA_PART_REWOUND = 8,  /* a rewind ended the newest bin: the next one is small */
    FDRI_ARENA_PART_GROWING = 16, /* twice as large as the one before, until the size is right again */
    FDRI_ARENA_PART_PINNED = 32,  /* set aside: of the first moments (FDR_PIN), and nothing is given back of it */
    FDRI_ARENA_PART_PLACED = 64,  /* it stands in its owner's order of worth */
    FDRI_ARENA_PART_SHORT = 128   /* the newest bins were lost; only recovery sets it */
};
enum fdri_arena_pinned {
    FDRI_ARENA_PINNED_EARLY = 1,  /* before its time was over: it had used up its share */
    FDRI_ARENA_PINNED_PARENTS = 2 /* no call one level less deep had been lost by then */
};

#endif
