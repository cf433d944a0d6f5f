/* SPDX-License-Identifier: MIT */
/* Strategy `telescope`: the epochs of a location with their sums and rows. */
#ifndef FDRI_FORMAT_ARENA_EPOCH_TABLE_H
#define FDRI_FORMAT_ARENA_EPOCH_TABLE_H

#include <assert.h>
#include <stdint.h>

#include "format/arena/meta_block.h"

/* ---- strategy `telescope`: epochs, oldest first, without a gap; they merge two by two as they age ----
 * Epoch i holds what ended after from_tick of i and not after from_tick of i + 1; the last one is the current one. Its
 * sums and rows come when it is cut; until then they are the totals less the base. */
#define FDRI_ARENA_EPOCHS_MAX 60
struct fdri_arena_epoch {
    uint64_t from_tick;
    uint64_t calls;                /* of regions, ended in it and timed */
    uint64_t inclusive, exclusive; /* full ticks, of these */
    uint32_t number;               /* birth number (fdri_arena_bin.epoch) of the first one merged into it */
    uint32_t births;               /* how many were */
    uint32_t units;                /* 512 bytes each: held bins that ended in it; a hint */
    uint32_t rows_off;             /* struct fdri_arena_epoch_rows, 0 = none: all is in the sums */
    uint32_t tier;                 /* its age tier: made of 2^tier epochs */
    uint32_t reserved[3];
};
static_assert(sizeof(struct fdri_arena_epoch) == 64, "epoch");
struct fdri_arena_epochs {
    struct fdri_arena_meta_head head;
    uint32_t version; /* atomic: odd while it is rearranged */
    uint32_t count;
    uint32_t opened;     /* units opened in the current epoch */
    uint32_t row_bytes;  /* size of a block of rows */
    uint32_t base_first; /* off of struct fdri_arena_epoch_base */
    uint32_t base_last;
    uint32_t untracked; /* regions that found no base: in no epoch's sums */
    uint32_t merging;   /* 1: tiers with too many epochs are left */
    uint32_t spare;     /* blocks of rows that no epoch uses, chained through `count` */
    uint32_t tracked;   /* rows in the base; one more for each that was left in its making */
    uint32_t walking;   /* 1: the last epoch but one has not got all of its totals: the rest counts in the last one */
    uint32_t reserved;
    struct fdri_arena_epoch epoch[FDRI_ARENA_EPOCHS_MAX];
};
static_assert(sizeof(struct fdri_arena_epochs) == 64 + 64 * FDRI_ARENA_EPOCHS_MAX, "epochs");
/* The regions that mattered most in an epoch (inclusive + exclusive time); all others share the rest. Sums are
 * exact. */
struct fdri_arena_epoch_row {
    uint32_t key;   /* as fdri_arena_row.key */
    uint32_t flags; /* 1: more of this region may be in the rest */
    uint64_t calls, inclusive, exclusive;
};
static_assert(sizeof(struct fdri_arena_epoch_row) == 32, "epoch row");
#define FDRI_ARENA_EPOCH_ROWS_MOST 4096u /* bytes of such a block, at most */
struct fdri_arena_epoch_rows {
    struct fdri_arena_meta_head head;
    uint32_t count;
    uint32_t reserved0;
    uint64_t rest_calls, rest_inclusive, rest_exclusive;
    uint64_t reserved1[2];
    struct fdri_arena_epoch_row row[];
};
static_assert(sizeof(struct fdri_arena_epoch_rows) == 64, "epoch rows");
struct fdri_arena_base_row {
    uint32_t row_off, reserved;
    uint64_t calls, sum, exclusive;
};
struct fdri_arena_epoch_base {
    struct fdri_arena_meta_head head;
    uint32_t next;
    uint32_t count;
    uint64_t reserved;
    struct fdri_arena_base_row row[];
};
static_assert(sizeof(struct fdri_arena_epoch_base) == 32, "epoch base");

#endif
