/* SPDX-License-Identifier: MIT */
/* The end of an epoch. The gain of the totals since the newest cut becomes the epoch's sums and rows, and the base
 * moves up to now. A few hundred rows are done at once. More are walked some at a time. Until all are walked, the
 * totals must still have their values of the cut. So each enter takes the slow path, which keeps aside the row of its
 * call. Rows of calls that are open at the cut are kept first. No other row can change, as only leaves add to them.
 * Meanwhile the epoch and the one behind it are one to readers (`totals_pending`).
 *
 * A location left in the middle of a step begins its epochs anew, as in any other change of them. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/bits.h"
#include "format/arena/arena.h"
#include "recorder/pressure/recorder_pressure.h"
#include "recorder/strategy/reduce.h"
#include "recorder/thread/arena_place.h"
#include "recorder/thread/thread.h"
#include "recorder/thread/thread_clock.h"
#include "recorder/thread/thread_state.h"
#include "recorder/totals/totals.h"

enum { AT_ONCE = 512, STEP_LEAST = 64 };

/* ---- what rows were at the cut: by hash of their off, in a block as epochs have them for rows ---- */

static struct fdri_arena_epoch_rows *kept_of(struct fdri_thread *t)
{
    return fdri_thread_at(t, t->walk.old_values_off);
}
static uint32_t slots_log2(const struct fdri_arena_epoch_rows *b)
{
    return fdri_bits_log2_floor(fdri_strategy_epoch_room(b));
}

static struct fdri_arena_epoch_row *place_of(struct fdri_arena_epoch_rows *b, uint32_t row_off)
{
    uint32_t log2 = slots_log2(b), i = row_off * 0x9E3779B1u >> (32 - log2);
    while (b->row[i].key && b->row[i].key != row_off) i = (i + 1) & ((1u << log2) - 1);
    return &b->row[i];
}

/* The first time counts. */
static void keep(struct fdri_thread *t, uint32_t row_off)
{
    const struct fdri_arena_row *r = fdri_thread_at(t, row_off);
    struct fdri_arena_epoch_row *k = place_of(kept_of(t), row_off);
    if (k->key) return;
    k->calls = r->calls;
    k->inclusive = r->sum;
    k->exclusive = r->exclusive;
    k->key = row_off;
    kept_of(t)->count++;
}

/* Room for all that can be kept, as each enter that keeps one walks `rows_per_step` rows. False: there is none, or too
 * many calls are open. */
static bool begin_keeping(struct fdri_thread *t, struct fdri_arena_epochs *e)
{
    struct fdri_thread_walk *w = &t->walk;
    if (!(w->old_values_off = fdri_strategy_epoch_block(t, e))) return false;
    struct fdri_arena_epoch_rows *b = kept_of(t);
    uint32_t most = (1u << slots_log2(b)) / 4 * 3;
    memset(b->row, 0, b->head.bytes - sizeof *b);
    for (uint32_t d = t->loc->depth; d && b->count <= most / 2; d--) {
        const struct fdri_arena_level *v = fdri_thread_level(t, d);
        if (!(v->flags & FDRI_ARENA_LEVEL_UNTIMED)) keep(t, v->row_off);
    }
    w->rows_per_step = (uint32_t)fdri_bits_max(STEP_LEAST, e->tracked / (most - fdri_bits_min(b->count, most - 1)) + 1);
    if (b->count <= most / 2) return true;
    fdri_strategy_epoch_block_give(t, e, w->old_values_off);
    w->old_values_off = 0;
    return false;
}

/* ---- the walk ---- */

static struct fdri_arena_epoch_row now_of(struct fdri_thread *t, const struct fdri_arena_row *r, uint32_t row_off)
{
    const struct fdri_arena_epoch_row *k = t->walk.old_values_off ? place_of(kept_of(t), row_off) : NULL;
    if (k && k->key) return *k;
    return (struct fdri_arena_epoch_row){.calls = r->calls, .inclusive = r->sum, .exclusive = r->exclusive};
}

static void walk_row(struct fdri_thread *t, struct fdri_arena_epoch *epoch, struct fdri_arena_base_row *base)
{
    const struct fdri_arena_row *r = fdri_thread_at(t, base->row_off);
    /* its region went to the rest, and a kind of point came in its place */
    if (!fdri_arena_row_of_calls(r->key)) return;
    const struct fdri_arena_epoch_row now = now_of(t, r, base->row_off);
    struct fdri_arena_epoch_row d = {r->key, 0, now.calls - base->calls, now.inclusive - base->sum,
                                     now.exclusive - base->exclusive};
    if (!d.calls) return;
    base->calls = now.calls;
    base->sum = now.inclusive;
    base->exclusive = now.exclusive;
    epoch->calls += d.calls;
    epoch->inclusive += d.inclusive;
    epoch->exclusive += d.exclusive;
    if (epoch->rows_off) fdri_strategy_epoch_offer(fdri_thread_at(t, epoch->rows_off), &t->walk.heap, &d);
}

static void walk_rows(struct fdri_thread *t, struct fdri_arena_epoch *epoch, uint32_t most)
{
    struct fdri_thread_walk *w = &t->walk;
    while (w->block && most) {
        struct fdri_arena_epoch_base *b = fdri_thread_at(t, w->block);
        bool last = w->block == w->last_block;
        if (w->row == (last ? w->last_row_end : b->count)) {
            w->block = last ? 0 : b->next;
            w->row = 0;
            continue;
        }
        if (w->row + FDRI_TOTALS_ROWS_PREFETCHED < b->count)
            __builtin_prefetch(fdri_thread_at(t, b->row[w->row + FDRI_TOTALS_ROWS_PREFETCHED].row_off));
        walk_row(t, epoch, &b->row[w->row++]);
        most--;
    }
}

void fdri_epoch_rows_cut(struct fdri_thread *t, struct fdri_arena_epochs *e, uint32_t i)
{
    e->epoch[i].rows_off = fdri_strategy_epoch_block(t, e);
    fdri_strategy_epoch_traffic_cut(t, &e->epoch[i]);
    t->walk = (struct fdri_thread_walk){.block = e->base_first, .last_block = e->base_last};
    if (e->base_last) t->walk.last_row_end = ((struct fdri_arena_epoch_base *)fdri_thread_at(t, e->base_last))->count;
    if (e->tracked <= AT_ONCE || !begin_keeping(t, e)) {
        walk_rows(t, &e->epoch[i], UINT32_MAX);
        return;
    }
    e->totals_pending = 1;
    fdri_thread_update_soft(t);
}

/* enters: off of the row of a call that enters, or 0. The old values are kept in the same change. So there are never
 * more steps than places for them. A location that was left between the two begins anew. */
static void walk_on(struct fdri_thread *t, uint32_t most, uint32_t enters)
{
    struct fdri_arena_epochs *e = fdri_strategy_epochs(t);
    uint64_t since = fdri_thread_tick_now();
    fdri_strategy_epoch_begin_change(e);
    if (enters) keep(t, enters);
    walk_rows(t, &e->epoch[e->count - 2], most);
    if (!t->walk.block) {
        fdri_strategy_epoch_block_give(t, e, t->walk.old_values_off);
        t->walk.old_values_off = e->totals_pending = 0;
    }
    fdri_strategy_epoch_end_change(e);
    if (!t->walk.block) fdri_thread_update_soft(t);
    fdri_strategy_reduction_took(t, since);
}

void fdri_epoch_walk(struct fdri_thread *t)
{
    if (t->walk.block) walk_on(t, t->walk.rows_per_step, 0);
}

void fdri_epoch_walk_all(struct fdri_thread *t)
{
    if (t->walk.block) walk_on(t, UINT32_MAX, 0);
}

void fdri_epoch_enters(struct fdri_thread *t, const struct fdri_arena_row *row)
{
    walk_on(t, t->walk.rows_per_step, fdri_thread_offset_of(t, row));
}
