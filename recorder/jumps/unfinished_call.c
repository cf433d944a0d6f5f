/* SPDX-License-Identifier: MIT */
/* Completes an enter or a leave that a handler left by longjmp, so that each call is in the totals exactly once.
 *
 * A leave counts from the moment its row's `calls` was raised. The sums that it had not raised yet are raised here, and
 * the call has ended. If its record was not stored, the call is lost. An enter counts from the moment the call is
 * presented; it becomes an untimed call.
 *
 * Two equations hold between operations, so they show how far the operation came. Calls in the totals plus open calls =
 * presented calls. Exclusive time of all rows = time of the calls directly inside of open calls, or of none. A leave
 * adds in this order: calls, exclusive time, sum, child_ticks of the parent. The thread keeps the value that the sum
 * had before. An enter presents the call before it adds to the totals. */
#include <stdbool.h>
#include <stdint.h>

#include "base/atomic.h"
#include "format/arena/arena.h"
#include "recorder/jumps/jumps.h"
#include "recorder/thread/arena_place.h"
#include "recorder/thread/thread_state.h"
#include "recorder/totals/totals.h"

struct accounts {
    uint64_t calls, presented; /* calls in the totals or open; calls entered */
    uint64_t own, children;    /* exclusive time; time of the calls directly inside of open calls */
};

static struct accounts accounts_of(const struct fdri_thread *t)
{
    const struct fdri_arena_location *l = t->loc;
    struct accounts a = {.presented = l->presented_overflow};
    for (uint32_t i = 0; i < 1u << (32 - t->row_shift); i++) {
        const struct fdri_arena_row *r = fdri_thread_at(t, t->row_slot[i]);
        if (!t->row_slot[i] || !fdri_arena_row_of_calls(r->key)) continue;
        a.calls += r->calls + r->untimed;
        a.own += r->exclusive;
    }
    for (uint32_t d = 0; d <= fdri_arena_levels_in(l->level_blocks); d++) {
        const struct fdri_arena_level *v = fdri_thread_level(t, d);
        if (d <= l->depth && d <= t->depth_limit) a.children += v->child_ticks;
        if (!d) continue;
        a.presented += v->presented;
        a.calls += d <= l->depth && !(v->flags & FDRI_ARENA_LEVEL_UNTIMED);
    }
    return a;
}

/* Adds the missing part of the top call's leave to the totals. Stores in the order of a leave, because a longjmp may
 * leave this, too. moved: exclusive time that was added and not yet passed to the parent. */
static void finish_totals(struct fdri_thread *t, struct fdri_arena_level *v, uint64_t moved)
{
    struct fdri_arena_location *l = t->loc;
    struct fdri_arena_level *parent = fdri_thread_level(t, l->depth - 1);
    struct fdri_arena_row *r = fdri_thread_at(t, v->row_off);
    uint64_t duration = l->last_tick > v->enter_tick ? l->last_tick - v->enter_tick : 0;
    uint64_t own = duration - v->child_ticks;
    bool summed = r->sum != t->sum_before;
    if (!summed && moved != own) fdri_atomic_bump_relaxed(&r->exclusive, own);
    fdri_atomic_signal_fence();
    if (!summed) fdri_atomic_bump_relaxed(&r->sum, duration);
    fdri_atomic_signal_fence();
    if (!summed || moved == own) fdri_atomic_bump_relaxed(&parent->child_ticks, duration);
    if (duration < r->min) r->min = duration;
    if (duration > r->max) r->max = duration;
}

/* Does the row of this histogram counter have more calls than its histogram? */
static bool lacks_one(const struct fdri_thread *t, uint32_t counter)
{
    for (uint32_t i = 0; i < 1u << (32 - t->row_shift); i++) {
        const struct fdri_arena_row *r = fdri_thread_at(t, t->row_slot[i]);
        uint32_t from = fdri_arena_histogram_off(r->histogram), count = fdri_arena_histogram_count(r->histogram);
        if (!t->row_slot[i] || !r->histogram || counter - from >= count * sizeof(uint64_t)) continue;
        const uint64_t *in = fdri_thread_at(t, from);
        uint64_t sum = 0;
        for (uint32_t k = 0; k < count; k++) sum += in[k];
        return sum < r->calls;
    }
    return false;
}

bool fdri_jumps_finish_leave(struct fdri_thread *t)
{
    struct fdri_arena_location *l = t->loc;
    struct fdri_arena_level *v = fdri_thread_level(t, l->depth);
    struct accounts a = accounts_of(t);
    bool over = a.calls == a.presented + 1 && l->depth && !(v->flags & FDRI_ARENA_LEVEL_UNTIMED);
    if (over) finish_totals(t, v, a.own - a.children);
    else if (v->flags & FDRI_ARENA_LEVEL_UNTIMED && a.children - a.own == v->child_ticks)
        /* the parent already has the time of calls inside of v that were entered after its pause had ended */
        v->child_ticks = 0;
    if (l->pending_counter_off && !lacks_one(t, l->pending_counter_off)) l->pending_counter_off = 0;
    fdri_totals_count_pending(t->base, l);
    return over;
}

void fdri_jumps_finish_enter(struct fdri_thread *t)
{
    const struct fdri_arena_location *l = t->loc;
    struct accounts a = accounts_of(t);
    if (a.presented != a.calls + 1) return;
    bool kept = l->depth < fdri_arena_levels_in(l->level_blocks);
    uint32_t row = kept ? fdri_thread_level(t, l->depth + 1)->row_off : 0;
    fdri_atomic_bump_relaxed(&((struct fdri_arena_row *)fdri_thread_at(t, row ? row : l->rest_row_off))->untimed, 1);
}
