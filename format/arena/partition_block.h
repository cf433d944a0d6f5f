/* SPDX-License-Identifier: MIT */
/* A partition: the list of bins of one class, depth and band of one location, in order of time. */
#ifndef FDRI_FORMAT_ARENA_PARTITION_BLOCK_H
#define FDRI_FORMAT_ARENA_PARTITION_BLOCK_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "format/arena/meta_block.h"

/* Bins are appended at the new end and given back at the old end only. So the kept records are always the newest.
 *   records ever stored = first_index(open bin) + records(open bin)
 *   reduced             = first_index(oldest listed bin)  (all of them if the list is empty)
 *   kept                = records of the listed bins
 * A bin whose seq is below the seq in list_head was given back, whatever its bytes say. */
struct fdri_arena_part {
    struct fdri_arena_meta_head head;
    uint64_t list_head;  /* atomic {seq:32, off:32} of the oldest bin; off 0: empty */
    uint64_t total;      /* records ever stored in sealed bins (= first_index of the next bin) */
    uint64_t floor_tick; /* newest leave that was given back; 0 = none was */
    uint32_t next;       /* off of the location's next partition */
    uint32_t open_seq;   /* seq of the newest bin; the next bin gets the next seq */
    uint16_t depth;
    uint8_t class_;
    uint8_t band;
    uint8_t size_log2;  /* size of the open bin; grows up to bin_bytes */
    uint8_t flags;      /* enum fdri_arena_part_flags */
    uint16_t pin_flags; /* if pinned: FDRI_ARENA_PINNED_... */
    uint32_t bins;      /* listed bins and pieces */
    uint32_t bytes;     /* their sum / 512 */
    /* one cache line: the fields that storing a record uses; see format/codec/record_codec.h */
    uint64_t progress;     /* bits:20 | records:20 of the open bin that are complete */
    uint64_t hash;         /* running check */
    uint64_t last_tick;    /* leave (points: time) of the newest record */
    uint32_t open_off;     /* off of the open bin, 0 = none */
    uint32_t table_off;    /* off of the encoder's prediction table */
    uint32_t limit;        /* a record may start at a bit <= limit */
    uint32_t context;      /* table slot for the next record */
    uint32_t newest;       /* table entry of the newest record */
    uint32_t context_mask; /* contexts - 1 of the open bin */
    /* if pinned: the tick of the pinning; no record that the location had then is newer. Else: not 0 while the records
     * of a newest bin that was claimed are being added to `total`; its value is the new `total`. */
    uint64_t pin_tick;
    uint64_t rewind_records; /* not 0: maximum number of records that a rewind under way removes */
};
static_assert(sizeof(struct fdri_arena_part) == 128 && offsetof(struct fdri_arena_part, progress) == 64, "partition");
enum fdri_arena_part_flags {
    FDRI_ARENA_PART_CLOSED = 1,
    FDRI_ARENA_PART_COUNTED = 2 /* its newest bin is counted in an epoch */,
    FDRI_ARENA_PART_UNACCOUNTED =
        4, /* recovered: more is missing than the accounts say, and T is floor_tick (FORMAT.md 7.2) */
    FDRI_ARENA_PART_REWOUND = 8,  /* a rewind ended the newest bin, so the next one is small */
    FDRI_ARENA_PART_GROWING = 16, /* bins double in size until the size is right again */
    FDRI_ARENA_PART_PINNED = 32,  /* pinned: of the first moments (FDR_PIN); never given back */
    FDRI_ARENA_PART_PLACED = 64,  /* it is in its owner's order of worth */
    FDRI_ARENA_PART_SHORT = 128   /* recovered: the newest bins were lost */
};
enum fdri_arena_pinned {
    FDRI_ARENA_PINNED_EARLY = 1,  /* pinned before its time was over, because it had used up its share */
    FDRI_ARENA_PINNED_PARENTS = 2 /* no call one level less deep had been lost by then */
};

#endif
