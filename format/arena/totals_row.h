/* SPDX-License-Identifier: MIT */
/* Exact totals: a row for each region or kind of point, with its histogram, found through a hash table. */
#ifndef FDRI_FORMAT_ARENA_TOTALS_ROW_H
#define FDRI_FORMAT_ARENA_TOTALS_ROW_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#include "format/arena/definition_block.h"
#include "format/arena/meta_block.h"

/* The totals of one region (or metric, message kind, collective) of one location. key: id | kind << 24 (enum
 * fdri_arena_def_kind; messages: kind 0, id 1 send, 2 recv). */
struct fdri_arena_row {
    uint32_t key;
    uint32_t flags;     /* FDRI_ARENA_ROW_* */
    uint64_t calls;     /* closed and timed; points: events */
    uint64_t sum;       /* inclusive full ticks; messages, collectives: bytes; metrics: sum of the value type */
    uint64_t exclusive; /* full ticks */
    uint64_t min, max;  /* full ticks; bytes; values of the value type */
    uint64_t histogram; /* fdri_arena_histogram_word; 0 = none */
    uint64_t untimed;   /* calls that were counted without times */
};
static_assert(sizeof(struct fdri_arena_row) == 64, "totals row");
/* The word of a histogram: {off:32, first bucket:8, buckets:8}. `off` is where the counter of bucket 0 would be. If a
 * row has a histogram, each value between min and max has a bucket. */
static inline uint32_t fdri_arena_histogram_first(uint64_t word) { return (uint32_t)(word >> 32 & 0xff); }
static inline uint32_t fdri_arena_histogram_count(uint64_t word) { return (uint32_t)(word >> 40); }
static inline uint32_t fdri_arena_histogram_off(uint64_t word)
{
    return (uint32_t)word + fdri_arena_histogram_first(word) * 8;
}
static inline uint64_t fdri_arena_histogram_word(uint32_t off, uint32_t first, uint32_t count)
{
    return (uint32_t)(off - first * 8) | (uint64_t)first << 32 | (uint64_t)count << 40;
}
enum fdri_arena_row_flags {
    FDRI_ARENA_ROW_NO_HISTOGRAM = 1, /* memory had no room for it */
    FDRI_ARENA_ROW_GATED = 2,        /* the region has a rule, or the thread knows that it is muted */
    FDRI_ARENA_ROW_SATURATED = 4,    /* `sum` reached the bound of its type, and stays there */
    FDRI_ARENA_ROW_VALUE_SHIFT = 8,  /* bits 8..9: enum fdri_arena_value_type of sum, min, max */
    FDRI_ARENA_ROW_SEEN_SHIFT = 12   /* bits 12..31: calls seen by a counting rule, saturating */
};
#define FDRI_ARENA_ROW_KEY_REST 0x7fffffffu /* the row shared by folded regions */
/* True: the row counts calls. False: it counts points of one kind. */
static inline bool fdri_arena_row_of_calls(uint32_t key)
{
    return key >> 24 == FDRI_ARENA_DEF_REGION || key == FDRI_ARENA_ROW_KEY_REST;
}
/* Rows of traffic: messages and collectives by region. `calls` counts them, `sum` has bytes; of collectives bytes sent,
 * and `exclusive` bytes received. They have no least and greatest value and no histogram. Their ids are even and at
 * least 2^23: readers that do not know them leave such rows out. */
enum fdri_arena_traffic { FDRI_ARENA_TRAFFIC_SENDS, FDRI_ARENA_TRAFFIC_RECEIVES, FDRI_ARENA_TRAFFIC_COLLECTIVES };
enum { FDRI_ARENA_TRAFFICS = 3 };
/* The region under way when the event was recorded, or the one around that. */
enum fdri_arena_traffic_of { FDRI_ARENA_TRAFFIC_OF_REGION, FDRI_ARENA_TRAFFIC_OF_CALLER };
#define FDRI_ARENA_TRAFFIC_NO_REGION 0xfffffu /* outside of all regions */
static inline uint32_t fdri_arena_traffic_key(enum fdri_arena_traffic_of of, enum fdri_arena_traffic what,
                                              uint32_t region)
{
    uint32_t kind = of == FDRI_ARENA_TRAFFIC_OF_REGION ? FDRI_ARENA_DEF_COLLECTIVE : FDRI_ARENA_DEF_FILE;
    return kind << 24 | 1u << 23 | (uint32_t)what << 21 | region << 1;
}
static inline bool fdri_arena_row_of_traffic(uint32_t key)
{
    uint32_t kind = key >> 24;
    return (kind == FDRI_ARENA_DEF_COLLECTIVE || kind == FDRI_ARENA_DEF_FILE) && (key & (1u << 23 | 1)) == 1u << 23;
}
static inline uint32_t fdri_arena_traffic_region(uint32_t key) { return key >> 1 & FDRI_ARENA_TRAFFIC_NO_REGION; }
static inline uint32_t fdri_arena_traffic_what(uint32_t key) { return key >> 21 & 3; }
struct fdri_arena_rows_block {
    struct fdri_arena_meta_head head;
    uint8_t pad[48];
    /* rows and histograms (arrays of u64) of 64 bytes each follow; found through the row table */
};
struct fdri_arena_rowtable {
    struct fdri_arena_meta_head head;
    uint32_t log2; /* 1 << log2 slots of u32 row offs follow: open addressing, linear probing from
                    * key * 0x9E3779B1 >> (32 - log2) */
    uint32_t used;
    uint8_t pad[40];
};
static_assert(sizeof(struct fdri_arena_rowtable) == 64, "row table");

#endif
