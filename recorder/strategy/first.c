/* SPDX-License-Identifier: MIT */
/* Strategy `first`: when memory is full, storage stops, and the open calls are remembered. Their blocks were taken
 * together with the levels, because no memory may be left at that moment. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/atomic.h"
#include "base/bits.h"
#include "bins/partition.h"
#include "format/arena/arena.h"
#include "policies/policies.h"
#include "recorder/memory/memory.h"
#include "recorder/strategy/reduce.h"
#include "recorder/strategy/strategy.h"
#include "recorder/strategy_table.h"
#include "recorder/thread/arena_place.h"
#include "recorder/thread/thread.h"
#include "recorder/thread/thread_state.h"

/* The frame keeps an open call's place among the events of its tick, because stored events may refer to it. */
static uint32_t frozen_flags(const struct fdri_thread *t, const struct fdri_arena_level *v)
{
    uint64_t ordinal = v->zero_tick == v->enter_tick >> t->shift ? v->zero_count : 0;
    if (v->flags & FDRI_ARENA_LEVEL_UNTIMED) return FDRI_ARENA_LEVEL_UNTIMED;
    if (!(v->flags & FDRI_ARENA_LEVEL_ORDINAL)) return 0;
    return FDRI_ARENA_LEVEL_ORDINAL | (uint32_t)fdri_bits_min(ordinal, FDRI_ARENA_FROZEN_ORDINAL_MAX)
                                          << FDRI_ARENA_FROZEN_ORDINAL;
}

/* Makes room to remember so many open calls when storage stops. false: no memory. */
static bool prepare(struct fdri_thread *t, uint32_t levels)
{
    uint32_t room = 0, *link = &t->frozen_off;
    if (t->loc->flags & FDRI_ARENA_LOCATION_STOPPED) return true;
    while (*link) {
        struct fdri_arena_frozen *f = fdri_thread_at(t, *link);
        room += fdri_arena_frozen_room(f);
        link = &f->next;
    }
    if (room >= levels) return true;
    uint32_t off = fdri_memory_meta(t, FDRI_ARENA_META_FROZEN, fdri_arena_frozen_bytes(levels - room));
    if (off) *link = off;
    return off != 0;
}

bool fdri_strategy_was_frozen(const struct fdri_thread *t, uint32_t depth)
{
    uint32_t off = depth ? t->loc->frozen_off : 0;
    for (const struct fdri_arena_frozen *f; off; off = f->next) {
        f = fdri_thread_at(t, off);
        if (depth <= f->count) return !(f->frame[depth - 1].flags & FDRI_ARENA_LEVEL_UNTIMED);
        depth -= f->count;
    }
    return false;
}

static void freeze_level(struct fdri_thread *t, struct fdri_arena_frozen *f, struct fdri_arena_level *v)
{
    /* Untimed calls are counted as `filtered` only. They get a frame all the same, for the depth of the others. */
    if (!(v->flags & FDRI_ARENA_LEVEL_UNTIMED)) v->flags |= FDRI_ARENA_LEVEL_SETTLED;
    f->frame[f->count].enter_tick = v->enter_tick;
    f->frame[f->count].flags = frozen_flags(t, v);
    f->frame[f->count++].region = v->region;
}

/* There are at least as many frames as levels. A signal handler may have left this function by longjmp, and another
 * call may run it again. */
static void freeze(struct fdri_thread *t, uint64_t tick)
{
    struct fdri_arena_location *l = t->loc;
    uint32_t d = 1;
    for (uint32_t off = t->frozen_off; off;) {
        struct fdri_arena_frozen *f = fdri_thread_at(t, off);
        f->tick = tick;
        f->count = 0;
        for (uint32_t room = fdri_arena_frozen_room(f); room && d <= l->depth; room--, d++)
            freeze_level(t, f, fdri_thread_level(t, d));
        off = f->next;
    }
    fdri_atomic_signal_fence();
    l->frozen_off = t->frozen_off;
}

/* Storage stops. */
static void full(struct fdri_thread *t)
{
    struct fdri_arena_location *l = t->loc;
    uint64_t tick = l->last_tick;
    if (l->flags & FDRI_ARENA_LOCATION_STOPPED) return;
    struct fdri_bins_given none = {0, 0, tick >> t->shift, tick >> t->shift};
    fdri_strategy_reduction_note(t, FDRI_ARENA_STEP_STOP, FDRI_POLICIES_REASON_OLDEST, NULL, &none, true);
    freeze(t, tick);
    fdri_atomic_store_relaxed(&l->flags, l->flags | FDRI_ARENA_LOCATION_STOPPED);
    l->class_closed = UINT32_MAX;
    for (uint32_t d = 0; d <= fdri_arena_levels_in(l->level_blocks); d++) {
        struct fdri_arena_level *v = fdri_thread_level(t, d);
        for (int b = 0; b < FDRI_ARENA_BANDS; b++) v->part[b] = FDRI_THREAD_GATE_CLOSED;
        if (!v->points_off) continue;
        struct fdri_arena_level_points *points = fdri_thread_at(t, v->points_off);
        for (int c = 0; c < FDRI_ARENA_CLASS_COUNT; c++) points->by_class[c].part = FDRI_THREAD_GATE_CLOSED;
    }
    fdri_thread_update_soft(t);
}

const struct fdri_strategy fdri_strategy_first = {
    .full = full, .levels = prepare, .samples = FDRI_STRATEGY_SAMPLES_STAY};
