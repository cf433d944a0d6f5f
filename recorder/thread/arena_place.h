/* SPDX-License-Identifier: MIT */
/* Places in the arena, as a thread sees them: offsets, pointers, levels of its shadow stack. */
#ifndef FDRI_RECORDER_THREAD_ARENA_PLACE_H
#define FDRI_RECORDER_THREAD_ARENA_PLACE_H

#include <stdint.h>

#include "format/arena/arena.h"
#include "recorder/thread/thread_state.h"

static inline void *fdri_thread_at(const struct fdri_thread *t, uint32_t off) { return t->base + off; }
static inline uint32_t fdri_thread_offset_of(const struct fdri_thread *t, const void *p)
{
    return (uint32_t)((const uint8_t *)p - t->base);
}
/* A level of the shadow stack; depth <= fdri_arena_levels_in(level_blocks). */
static inline struct fdri_arena_level *fdri_thread_level(const struct fdri_thread *t, uint32_t depth)
{
    if (depth == 0) return fdri_thread_at(t, t->loc->level0_off);
    struct fdri_arena_levels_block *b = fdri_thread_at(t, t->loc->levels_off[fdri_arena_level_block(depth)]);
    return &b->level[fdri_arena_level_entry(depth)];
}

#endif
