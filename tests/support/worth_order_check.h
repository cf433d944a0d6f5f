/* SPDX-License-Identifier: MIT */
/* Checks that each partition of a location stands exactly once in the order of worth. Include it after
 * tests/support/api_fixture.h. */
#ifndef FDRI_TESTS_ORDER_CHECK_H
#define FDRI_TESTS_ORDER_CHECK_H
#include <stdbool.h>
#include <stdint.h>

#include "base/atomic.h"
#include "format/arena/arena.h"
#include "recorder/pressure/recorder_pressure.h"
#include "recorder/strategy/worth_order.h"
#include "recorder/thread/arena_place.h"
#include "recorder/thread/thread_state.h"

static inline uint32_t places_of(struct fdri_thread *t, uint32_t part)
{
    struct fdri_strategy_cursor c = FDRI_STRATEGY_CURSOR_START;
    uint32_t n = 0;
    for (uint32_t i = 0; i < t->order_count; i++) n += fdri_strategy_order_at(t, &c, i)->part == part;
    return n;
}

/* Counts the partitions that stand there never or more than once. Pinned partitions, and those joined away and empty,
 * do not belong there. */
static inline uint32_t misplaced(struct fdri_thread *t, uint32_t *parts)
{
    uint32_t wrong = 0;
    *parts = 0;
    for (uint32_t off = t->loc->parts_first; off; off = ((struct fdri_arena_part *)fdri_thread_at(t, off))->next) {
        const struct fdri_arena_part *p = fdri_thread_at(t, off);
        bool away = fdri_joined_away(t, p) && !(uint32_t)fdri_atomic_load_relaxed(&p->list_head);
        if (p->flags & FDRI_ARENA_PART_PINNED || away) continue;
        wrong += places_of(t, off) != 1;
        ++*parts;
    }
    return wrong;
}
#endif
