/* SPDX-License-Identifier: MIT */
/* The epochs of a location under strategy `telescope`, with their sums and rows. */
#ifndef FDRI_FORMAT_ARENA_EPOCH_TABLE_H
#define FDRI_FORMAT_ARENA_EPOCH_TABLE_H

#include <assert.h>
#include <stdint.h>

#include "format/arena/meta_block.h"

/* Epochs, oldest first, without gaps; they merge in pairs as they age. Epoch i has the events that ended after
 * from_tick of i and not after from_tick of i + 1; the last one is the current one. Its sums and rows are written when
 * it is cut. Until then they are the totals less the base. */
#define FDRI_ARENA_EPOCHS_MAX 60
struct fdri_arena_epoch {
    uint64_t from_tick;
    uint64_t calls;                /* calls of regions that ended in it and were timed */
    uint64_t inclusive, exclusive; /* full ticks of these calls */
    uint32_t number;               /* fdri_arena_bin.epoch of the first one merged into it */
    uint32_t merged_epochs;        /* how many epochs were merged into it */
    uint32_t units;                /* listed bins that ended in it, in 512 bytes; a hint */
    uint32_t rows_off;             /* struct fdri_arena_epoch_rows; 0: only the sums exist */
    uint32_t tier;                 /* merged from 2^tier epochs */
    uint32_t reserved[3];
};
static_assert(sizeof(struct fdri_arena_epoch) == 64, "epoch");
struct fdri_arena_epochs {
    struct fdri_arena_meta_head head;
    uint32_t version; /* atomic: odd while the table is rearranged */
    uint32_t count;
    uint32_t opened_units; /* 512 bytes each: bins opened in the current epoch */
    uint32_t row_bytes;    /* size of a block of rows */
    uint32_t base_first;   /* off of struct fdri_arena_epoch_base */
    uint32_t base_last;
    uint32_t untracked;      /* regions for which memory had no base row: in no sums */
    uint32_t merge_pending;  /* 1: a tier still has too many epochs */
    uint32_t spare_rows_off; /* unused blocks of rows, chained through `count` */
    uint32_t tracked;        /* rows in the base, plus one for each left out */
    uint32_t totals_pending; /* 1: the last epoch but one lacks totals, which the last one has */
    uint32_t reserved;
    struct fdri_arena_epoch epoch[FDRI_ARENA_EPOCHS_MAX];
};
static_assert(sizeof(struct fdri_arena_epochs) == 64 + 64 * FDRI_ARENA_EPOCHS_MAX, "epochs");
/* The regions with most inclusive + exclusive time in an epoch; one remainder sums all others. Sums are exact. */
struct fdri_arena_epoch_row {
    uint32_t key;   /* as fdri_arena_row.key */
    uint32_t flags; /* 1: the remainder may contain more of this region */
    uint64_t calls, inclusive, exclusive;
};
static_assert(sizeof(struct fdri_arena_epoch_row) == 32, "epoch row");
#define FDRI_ARENA_EPOCH_ROWS_MOST 4096u /* maximum bytes of a block of rows */
/* Messages and collectives of an epoch: known or not. If they are TOLD, the last three places of the block have them in
 * the order of enum fdri_arena_traffic. `calls` counts them, and `inclusive` has their bytes. Of collectives
 * `inclusive` has the bytes sent, and `exclusive` those received. These places are no rows. */
enum fdri_arena_epoch_traffic {
    FDRI_ARENA_EPOCH_TRAFFIC_UNKNOWN, /* also in recordings of earlier versions */
    FDRI_ARENA_EPOCH_TRAFFIC_TOLD,
    FDRI_ARENA_EPOCH_TRAFFIC_NONE /* there were none */
};
struct fdri_arena_epoch_rows {
    struct fdri_arena_meta_head head;
    uint32_t count;
    uint32_t traffic; /* enum fdri_arena_epoch_traffic */
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
