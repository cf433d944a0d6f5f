/* SPDX-License-Identifier: MIT */
/* Exact totals: a row for each region or kind of point, with its histogram, found through a hash table. */
#ifndef FDR_FORMAT_ARENA_TOTALS_ROW_H
#define FDR_FORMAT_ARENA_TOTALS_ROW_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#include "format/arena/definition_block.h"
#include "format/arena/meta_block.h"

/* ---- exact totals ---- */
/* One region (or metric, message kind, collective) of one location.
 * key: id | kind << 24 (enum fdr_def_kind; messages: kind 0, id 1 send, 2 recv). */
struct fdr_row {
    uint32_t key;
    uint32_t flags;     /* FDR_ROW_* */
    uint64_t calls;     /* closed and timed; points: events */
    uint64_t sum;       /* inclusive full ticks; messages, collectives: bytes; metrics: sum of the value type */
    uint64_t exclusive; /* full ticks */
    uint64_t min, max;  /* full ticks; bytes; values of the value type */
    uint64_t histogram; /* fdr_histogram_word; 0 = none */
    uint64_t untimed;   /* calls counted only */
};
static_assert(sizeof(struct fdr_row) == 64, "totals row");
/* {off:32, first bucket:8, buckets:8}: off is where the counter of bucket 0 would be. Whatever lies between min and max
 * of a row with a histogram has a bucket in it. */
static inline uint32_t fdr_histogram_first(uint64_t word) { return (uint32_t)(word >> 32 & 0xff); }
static inline uint32_t fdr_histogram_count(uint64_t word) { return (uint32_t)(word >> 40); }
static inline uint32_t fdr_histogram_off(uint64_t word) { return (uint32_t)word + fdr_histogram_first(word) * 8; }
static inline uint64_t fdr_histogram_word(uint32_t off, uint32_t first, uint32_t count)
{
    return (uint32_t)(off - first * 8) | (uint64_t)first << 32 | (uint64_t)count << 40;
}
enum fdr_row_flags {
    FDR_ROW_NO_HISTOGRAM = 1, /* memory did not hold it */
    FDR_ROW_GATED = 2,        /* a rule applies: look at the region's rule */
    FDR_ROW_SATURATED = 4,    /* `sum` met the bound of its type, and stays there */
    FDR_ROW_VALUE_SHIFT = 8,  /* bits 8..9: enum fdr_value_type of sum, min, max */
    FDR_ROW_SEEN_SHIFT = 12   /* bits 12..31: calls a counting rule has seen, saturating */
};
#define FDR_ROW_KEY_REST 0x7fffffffu /* the row folded regions share */
/* Else it counts a kind of points. */
static inline bool fdr_row_of_calls(uint32_t key) { return key >> 24 == FDR_DEF_REGION || key == FDR_ROW_KEY_REST; }
struct fdr_rows_block {
    struct fdr_meta_head head;
    uint8_t pad[48];
    /* rows and histograms (arrays of u64) of 64 bytes each follow; found through the row table */
};
struct fdr_rowtable {
    struct fdr_meta_head head;
    uint32_t log2; /* 1 << log2 slots of u32 row offs follow: open addressing, linear probing from
                    * key * 0x9E3779B1 >> (32 - log2) */
    uint32_t used;
    uint8_t pad[40];
};
static_assert(sizeof(struct fdr_rowtable) == 64, "row table");

#endif
