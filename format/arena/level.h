/* SPDX-License-Identifier: MIT */
/* Levels: the shadow stack of a location, one entry for each open call, with the accounts of its depth. */
#ifndef FDRI_FORMAT_ARENA_LEVEL_H
#define FDRI_FORMAT_ARENA_LEVEL_H

#include <assert.h>
#include <stdint.h>

#include "format/arena/event_class.h"
#include "format/arena/meta_block.h"

/* ---- location: one thread's stream ---- */
/* Levels lie in blocks: the first 36 have 7, which with their slab's head are 1 KiB, as larger pieces are dear where
 * memory is in small ones; the others, which hardly any thread needs, have 28. */
#define FDRI_ARENA_LEVELS_STEP      7 /* a block ends at a multiple of it */
#define FDRI_ARENA_LEVELS_LARGE     28
#define FDRI_ARENA_LEVEL_BLOCKS     36 /* of the first kind */
#define FDRI_ARENA_LEVEL_BLOCKS_MAX 64
#define FDRI_ARENA_LEVELS_NEAR      (FDRI_ARENA_LEVEL_BLOCKS * FDRI_ARENA_LEVELS_STEP)
#define FDRI_ARENA_LEVELS_MAX                                                                                          \
    (FDRI_ARENA_LEVELS_NEAR +                                                                                          \
     (FDRI_ARENA_LEVEL_BLOCKS_MAX - FDRI_ARENA_LEVEL_BLOCKS) * FDRI_ARENA_LEVELS_LARGE) /* kept */
static_assert(FDRI_ARENA_LEVELS_LARGE % FDRI_ARENA_LEVELS_STEP == 0, "where blocks end");
static inline uint32_t fdri_arena_levels_in(uint32_t blocks) /* in so many blocks */
{
    if (blocks <= FDRI_ARENA_LEVEL_BLOCKS) return blocks * FDRI_ARENA_LEVELS_STEP;
    return FDRI_ARENA_LEVELS_NEAR + (blocks - FDRI_ARENA_LEVEL_BLOCKS) * FDRI_ARENA_LEVELS_LARGE;
}
static inline uint32_t fdri_arena_levels_of(uint32_t block)
{
    return block < FDRI_ARENA_LEVEL_BLOCKS ? FDRI_ARENA_LEVELS_STEP : FDRI_ARENA_LEVELS_LARGE;
}
/* Where level `depth` >= 1 is. */
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
/* One calling depth of one location. Level d holds what is open at depth d, the accounts of depth d,
 * and the partitions of calls made at depth d. */
struct fdri_arena_level {
    /* one cache line: all that enter and leave touch */
    uint64_t enter_tick;             /* full ticks; open call */
    uint32_t region;                 /* open call; of level 0 none: UINT32_MAX */
    uint32_t flags;                  /* FDRI_ARENA_LEVEL_* : of the open call */
    uint64_t child_ticks;            /* full ticks spent in its closed children */
    uint64_t presented;              /* region class: enters at this depth */
    uint32_t part[FDRI_ARENA_BANDS]; /* off of the partition; 0 none yet; 1 gate closed */
    uint32_t row_off;                /* its totals row */
    uint32_t skipped; /* calls kept out by rules that are open directly inside this one, where no list has them */
    uint64_t address; /* code address of the open call, 0 = recorded by region */
    /* the rest */
    uint64_t filtered;
    uint64_t reduced_gate; /* not stored because a reduction closed the gate */
    uint64_t lost;
    uint64_t zero_tick;    /* stored tick of the newest zero-length call that has an ordinal at this depth */
    uint32_t zero_count;   /* how many have one in that tick: those stored, and those left out that others point to */
    uint32_t points_off;   /* off of struct fdri_arena_level_points (accounts and partitions of point classes) */
    uint32_t zero_gap;     /* 1: the newest with an ordinal was left out */
    uint32_t reading_gate; /* of level 0: readings this deep or deeper are no longer stored; 0 all are */
    /* of an open call with an address, as the compiler's hook told: recorder/jumps/abandoned_calls.c */
    uint64_t frame;        /* how far below the end of the thread's stack; UINT64_MAX: nobody told */
    uint32_t caller, site; /* low halves: the complement of the function's return address, and the hook's */
};
static_assert(sizeof(struct fdri_arena_level) == 128, "level");
enum fdri_arena_level_flags {
    FDRI_ARENA_LEVEL_UNTIMED = 1, /* beyond FDR_DEPTH or paused: counted only */
    FDRI_ARENA_LEVEL_SETTLED = 2, /* already accounted: not stored when it ends, not kept while it is open */
    FDRI_ARENA_LEVEL_RULED = 4,   /* the region has a minimum duration of its own */
    FDRI_ARENA_LEVEL_EDGES = 8,   /* counters are read at the edges of this call */
    FDRI_ARENA_LEVEL_ORDINAL =
        16, /* its ordinal in its tick is zero_count (0 in another zero_tick), and its record says so */
    FDRI_ARENA_LEVEL_NAMED = 32, /* with RULED: a call of length 0 stored inside names it as its parent: it stays */
    FDRI_ARENA_LEVEL_HAS_EXCLUDED = 64, /* there are calls kept out by rules that are open directly inside this one */
    FDRI_ARENA_LEVEL_NO_CALL = 128,     /* of level 0, always: it is no call, and no leave fits it */
    FDRI_ARENA_LEVEL_MARKED = 256       /* was open when a mark to rewind to was set: that one is told when it ends */
};
/* Accounts and partitions of the point classes at one depth; made when the first point event happens there. */
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
