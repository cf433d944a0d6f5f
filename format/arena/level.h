/* SPDX-License-Identifier: MIT */
/* Levels: the shadow stack of a location, with one level for each open call and the accounts of its depth. */
#ifndef FDRI_FORMAT_ARENA_LEVEL_H
#define FDRI_FORMAT_ARENA_LEVEL_H

#include <assert.h>
#include <stdint.h>

#include "format/arena/event_class.h"
#include "format/arena/meta_block.h"

/* Levels lie in blocks. The first 36 blocks have 7 levels each. With the head of their slab they fill 1 KiB; larger
 * pieces are expensive while memory consists of small ones. The other blocks, which few threads need, have 28. */
#define FDRI_ARENA_LEVELS_STEP      7 /* a block ends at a multiple of it */
#define FDRI_ARENA_LEVELS_LARGE     28
#define FDRI_ARENA_LEVEL_BLOCKS     36 /* blocks of 7 levels */
#define FDRI_ARENA_LEVEL_BLOCKS_MAX 64
#define FDRI_ARENA_LEVELS_NEAR      (FDRI_ARENA_LEVEL_BLOCKS * FDRI_ARENA_LEVELS_STEP)
#define FDRI_ARENA_LEVELS_MAX                                                                                          \
    (FDRI_ARENA_LEVELS_NEAR +                                                                                          \
     (FDRI_ARENA_LEVEL_BLOCKS_MAX - FDRI_ARENA_LEVEL_BLOCKS) * FDRI_ARENA_LEVELS_LARGE) /* deeper calls are lost */
static_assert(FDRI_ARENA_LEVELS_LARGE % FDRI_ARENA_LEVELS_STEP == 0, "where blocks end");
static inline uint32_t fdri_arena_levels_in(uint32_t blocks) /* levels in the first `blocks` blocks */
{
    if (blocks <= FDRI_ARENA_LEVEL_BLOCKS) return blocks * FDRI_ARENA_LEVELS_STEP;
    return FDRI_ARENA_LEVELS_NEAR + (blocks - FDRI_ARENA_LEVEL_BLOCKS) * FDRI_ARENA_LEVELS_LARGE;
}
static inline uint32_t fdri_arena_levels_of(uint32_t block)
{
    return block < FDRI_ARENA_LEVEL_BLOCKS ? FDRI_ARENA_LEVELS_STEP : FDRI_ARENA_LEVELS_LARGE;
}
/* The place of level `depth` >= 1: its block, and its index there. */
static inline uint32_t fdri_arena_level_block(uint32_t depth)
{
    if (depth <= FDRI_ARENA_LEVELS_NEAR) return (depth - 1) / FDRI_ARENA_LEVELS_STEP;
    return FDRI_ARENA_LEVEL_BLOCKS + (depth - 1 - FDRI_ARENA_LEVELS_NEAR) / FDRI_ARENA_LEVELS_LARGE;
}
static inline uint32_t fdri_arena_level_entry(uint32_t depth)
{
    if (depth <= FDRI_ARENA_LEVELS_NEAR) return (depth - 1) % FDRI_ARENA_LEVELS_STEP;
    return (depth - 1 - FDRI_ARENA_LEVELS_NEAR) % FDRI_ARENA_LEVELS_LARGE;
}
/* One depth of one location. Level d stores the open call of depth d, the accounts of depth d, and the partitions of
 * calls made at depth d. */
struct fdri_arena_level {
    /* one cache line: the fields that enter and leave use */
    uint64_t enter_tick;             /* full ticks; of the open call */
    uint32_t region;                 /* of the open call; UINT32_MAX in level 0 */
    uint32_t flags;                  /* FDRI_ARENA_LEVEL_* of the open call */
    uint64_t child_ticks;            /* full ticks spent in its closed children */
    uint64_t presented;              /* region class: enters at this depth */
    uint32_t part[FDRI_ARENA_BANDS]; /* off of the partition; 0 none yet; 1 gate closed */
    uint32_t row_off;                /* its totals row */
    uint32_t reserved;               /* 0 */
    uint64_t address;                /* code address of the open call; 0: recorded by region */
    uint64_t filtered;
    uint64_t reduced_gate; /* not stored, because a reduction closed the gate */
    uint64_t lost;
    uint64_t zero_tick;    /* stored tick of the newest call of length 0 with an ordinal here */
    uint32_t zero_count;   /* ordinals of that tick: of stored calls, and of omitted ones that others name */
    uint32_t points_off;   /* off of struct fdri_arena_level_points: accounts of points */
    uint32_t zero_gap;     /* 1: the newest call with an ordinal was not stored */
    uint32_t reading_gate; /* level 0: readings this deep or deeper are not stored; 0: all are */
    /* of an open call with an address, from the compiler's hook: recorder/jumps/abandoned_calls.c */
    uint64_t frame;        /* distance below the end of the thread's stack; UINT64_MAX: unknown */
    uint32_t caller, site; /* low halves: complement of the function's return address, and of the hook's */
};
static_assert(sizeof(struct fdri_arena_level) == 128, "level");
enum fdri_arena_level_flags {
    FDRI_ARENA_LEVEL_UNTIMED = 1,  /* counted only: beyond FDR_DEPTH, or paused */
    FDRI_ARENA_LEVEL_SETTLED = 2,  /* already accounted: never stored, not kept while open */
    FDRI_ARENA_LEVEL_RULED = 4,    /* the region has a minimum duration of its own */
    FDRI_ARENA_LEVEL_EDGES = 8,    /* counters are read at the edges of this call */
    FDRI_ARENA_LEVEL_ORDINAL = 16, /* the record states its ordinal, which is zero_count (0 in another zero_tick) */
    FDRI_ARENA_LEVEL_NAMED = 32,   /* with RULED: a stored call of length 0 names this one as parent, so it is stored */
    FDRI_ARENA_LEVEL_NTH = 64,     /* only some calls of this region have frames: `first`, `every`, muted regions */
    FDRI_ARENA_LEVEL_NO_CALL = 128,  /* level 0, always: it is no call, and no leave matches it */
    FDRI_ARENA_LEVEL_MARKED = 256,   /* open when a mark to rewind to was set; the mark must learn of its end */
    FDRI_ARENA_LEVEL_ITERATION = 512 /* a rule decides at its end whether the call stays, with all inside of it */
};
/* Accounts and partitions of the point classes at one depth, made by the first point there. */
struct fdri_arena_level_points {
    struct fdri_arena_meta_head head;
    struct {
        uint64_t presented, filtered, reduced_gate, lost;
        uint32_t part; /* as fdri_arena_level.part */
        uint32_t reserved;
    } by_class[FDRI_ARENA_CLASS_COUNT];
};
struct fdri_arena_levels_block {
    struct fdri_arena_meta_head head;
    uint32_t index; /* of this block in levels_off; UINT32_MAX: it holds level 0 */
    uint8_t pad[44];
    struct fdri_arena_level level[]; /* fdri_arena_levels_of(index) */
};
static_assert(sizeof(struct fdri_arena_levels_block) == 64, "levels");
static inline uint32_t fdri_arena_levels_bytes(uint32_t count)
{
    return (uint32_t)(sizeof(struct fdri_arena_levels_block) + count * sizeof(struct fdri_arena_level));
}

#endif
