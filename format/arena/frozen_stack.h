/* SPDX-License-Identifier: MIT */
/* The calls that were open when a location stopped storing (strategy `first`). */
#ifndef FDRI_FORMAT_ARENA_FROZEN_STACK_H
#define FDRI_FORMAT_ARENA_FROZEN_STACK_H

#include <stdint.h>

#include "format/arena/meta_block.h"

/* These calls count as kept. The same calls on the live stack carry FDRI_ARENA_LEVEL_SETTLED and do not count. */
struct fdri_arena_frozen {
    struct fdri_arena_meta_head head;
    uint64_t tick; /* full ticks: when storing stopped */
    uint32_t count;
    uint32_t next; /* off of the block with the frames inside of these; 0: none */
    struct {
        uint64_t enter_tick;
        uint32_t region, flags;
    } frame[]; /* outermost first; flags: FDRI_ARENA_LEVEL_UNTIMED, FDRI_ARENA_LEVEL_ORDINAL */
};
static inline uint32_t fdri_arena_frozen_bytes(uint32_t frames)
{
    return (uint32_t)(sizeof(struct fdri_arena_frozen) + frames * sizeof((struct fdri_arena_frozen *)0)->frame[0]);
}
static inline uint32_t fdri_arena_frozen_room(const struct fdri_arena_frozen *f)
{
    return (uint32_t)((f->head.bytes - sizeof *f) / sizeof f->frame[0]);
}
/* The ordinal is in the flags from this bit on. */
#define FDRI_ARENA_FROZEN_ORDINAL     8
#define FDRI_ARENA_FROZEN_ORDINAL_MAX (UINT32_MAX >> FDRI_ARENA_FROZEN_ORDINAL) /* or greater */

#endif
