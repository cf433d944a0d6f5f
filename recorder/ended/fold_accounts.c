/* SPDX-License-Identifier: MIT */
/* Adds the accounts of an ended location to another's: reductions, levels, points, totals, sums.
 *
 * Every number moves at one instant. First struct fdri_arena_fold gets the words that will change, with their old
 * values, and its count, which makes them valid. Then the words change, and the count becomes 0 again. If the process
 * is killed in between, a reader restores the old values. So at no moment is a number in both places or in neither.
 * Under the lock of ended_threads.c. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/atomic.h"
#include "base/bits.h"
#include "bins/bins.h"
#include "format/arena/arena.h"
#include "recorder/ended/ended.h"
#include "recorder/memory/memory.h"
#include "recorder/recording.h"
#include "recorder/thread/arena_place.h"
#include "recorder/thread/thread.h"
#include "recorder/thread/thread_state.h"
#include "recorder/totals/totals.h"

enum { STEPS = 32 }; /* most moves in one call */

static uint64_t value[FDRI_ARENA_FOLD_WORDS];
static uint32_t words;

/* Progress of the preparation of rows of location `id`, which may take several calls. */
static struct {
    uint32_t id, slot;
} ahead;

/* A copier in another process cannot take the lock. If a location has the flag MOVING after the copy, the copier may
 * have its accounts twice. `moving` is the location with this flag; a signal handler may leave it set by longjmp. Under
 * the lock. */
static struct fdri_arena_location *moving;

static struct fdri_arena_fold *undo_list(void)
{
    return fdri_bins_at(&fdri_life_recording.arena, fdri_life_recording.arena.super->fold_off);
}

bool fdri_ended_fold_start(void)
{
    uint32_t off = fdri_bins_meta_take(&fdri_life_recording.arena, FDRI_ARENA_META_FOLD, sizeof(struct fdri_arena_fold),
                                       UINT32_MAX);
    fdri_life_recording.arena.super->fold_off = off;
    words = 0;
    moving = NULL;
    ahead.id = UINT32_MAX;
    return off != 0;
}

static void set_logged(uint64_t *p, uint64_t v)
{
    if (*p == v) return;
    undo_list()->word[words].off = (uint64_t)((uint8_t *)p - fdri_life_recording.arena.base);
    undo_list()->word[words].old_value = *p;
    value[words++] = v;
}

static void move_logged(uint64_t *to, uint64_t *from)
{
    set_logged(to, *to + *from);
    set_logged(from, 0);
}

static void set_half(uint32_t *p, uint32_t v)
{
    uint64_t *word = (uint64_t *)((uintptr_t)p & ~(uintptr_t)7), whole = *word;
    uint32_t shift = (uintptr_t)p & 4 ? 32 : 0;
    set_logged(word, (whole & ~((uint64_t)UINT32_MAX << shift)) | (uint64_t)v << shift);
}

static void commit_moves(void)
{
    struct fdri_arena_fold *f = undo_list();
    uint32_t n = words;
    words = 0;
    if (!n) return;
    /* R:fold - the list is complete; pairs with program order after a kill; else: a number in both places or in
     * neither */
    fdri_atomic_store_release(&f->count, n);
    fdri_atomic_signal_fence();
    for (uint32_t i = 0; i < n; i++)
        fdri_atomic_store_relaxed((uint64_t *)(void *)(fdri_life_recording.arena.base + f->word[i].off), value[i]);
    fdri_atomic_signal_fence();
    fdri_atomic_store_release(&f->count, 0u); /* R:fold */
    fdri_atomic_signal_fence();
}

static void begin_move(struct fdri_arena_location *l)
{
    moving = l;
    fdri_atomic_signal_fence();
    fdri_atomic_store_relaxed(&l->flags, l->flags | FDRI_ARENA_LOCATION_MOVING);
    /* R:moving - a copier that sees any of the following stores finds the flag; else: a row in two places */
    fdri_atomic_fence_release();
}

static void end_move(struct fdri_arena_location *l)
{
    fdri_atomic_store_release(&l->flags, l->flags & ~(uint32_t)FDRI_ARENA_LOCATION_MOVING); /* R:moving */
    fdri_atomic_signal_fence();
    moving = NULL;
}

void fdri_ended_fold_undo(void)
{
    struct fdri_arena_fold *f = undo_list();
    for (uint32_t i = f->count; i-- > 0;)
        fdri_atomic_store_relaxed((uint64_t *)(void *)(fdri_life_recording.arena.base + f->word[i].off),
                                  f->word[i].old_value);
    fdri_atomic_signal_fence();
    fdri_atomic_store_release(&f->count, 0u); /* R:fold */
    words = 0;
    if (moving) end_move(moving); /* its move is undone */
}

/* Level d of `into`, with accounts of points if `points` is set; NULL: no room. */
static struct fdri_arena_level *level_of(struct fdri_thread *into, uint32_t d, bool points)
{
    into->level_search.requests_to_skip = 0; /* folding itself limits how often it asks */
    while (fdri_arena_levels_in(into->loc->level_blocks) < d)
        if (!fdri_thread_grow_levels(into)) return NULL;
    struct fdri_arena_level *v = fdri_thread_level(into, d);
    if (points && !v->points_off)
        v->points_off = fdri_memory_meta(into, FDRI_ARENA_META_POINTS, sizeof(struct fdri_arena_level_points));
    return points && !v->points_off ? NULL : v;
}

/* Folds a partition, all of whose bins were given back. Its records become `reduced` of the level, and their
 * `presented` moves along, so both locations' accounts balance at every moment. */
static bool fold_part(struct fdri_thread *into, struct fdri_thread *t, struct fdri_arena_part *p)
{
    bool points = p->class_ != FDRI_ARENA_CLASS_REGION;
    struct fdri_arena_level *w = level_of(into, p->depth, points), *v = fdri_thread_level(t, p->depth);
    if (!w) return false;
    struct fdri_arena_level_points *wp = points ? fdri_thread_at(into, w->points_off) : NULL;
    struct fdri_arena_level_points *vp = points ? fdri_thread_at(t, v->points_off) : NULL;
    uint64_t *to = points ? &wp->by_class[p->class_].presented : &w->presented;
    set_logged(to, *to + p->total);
    uint64_t *from = points ? &vp->by_class[p->class_].presented : &v->presented;
    set_logged(from, *from - p->total);
    move_logged(points ? &wp->by_class[p->class_].reduced_gate : &w->reduced_gate, &p->total);
    commit_moves();
    return true;
}

static bool level_empty(const struct fdri_arena_level *v, const struct fdri_arena_level_points *points)
{
    uint64_t any = v->presented | v->filtered | v->reduced_gate | v->lost;
    for (int c = 0; points && c < FDRI_ARENA_CLASS_COUNT; c++)
        any |= points->by_class[c].presented | points->by_class[c].filtered | points->by_class[c].reduced_gate |
               points->by_class[c].lost;
    return !any;
}

static int prepare_rows(struct fdri_thread *into, struct fdri_thread *t)
{
    const struct fdri_arena_rowtable *table = fdri_thread_at(t, t->loc->rows_table_off);
    const uint32_t *slot = (const void *)(table + 1);
    uint32_t left = STEPS;
    if (ahead.id != t->loc->id) ahead.slot = 0;
    ahead.id = t->loc->id;
    for (; ahead.slot < 1u << table->log2; ahead.slot++) {
        const struct fdri_arena_row *r = slot[ahead.slot] ? fdri_thread_at(t, slot[ahead.slot]) : NULL;
        if (!r || !(r->calls | r->untimed)) continue;
        if (!left--) return 0;
        uint32_t first = fdri_arena_histogram_first(r->histogram), count = fdri_arena_histogram_count(r->histogram);
        if (!fdri_totals_row_prepare(into, r->key, first, first + count)) return -1;
    }
    return 1;
}

int fdri_ended_fold_prepare(struct fdri_thread *into, struct fdri_thread *t)
{
    for (uint32_t d = fdri_arena_levels_in(t->loc->level_blocks) + 1; d-- > 0;) {
        const struct fdri_arena_level *v = fdri_thread_level(t, d);
        const struct fdri_arena_level_points *points = v->points_off ? fdri_thread_at(t, v->points_off) : NULL;
        if (!level_empty(v, points) && !level_of(into, d, points != NULL)) return -1;
    }
    return prepare_rows(into, t);
}

/* Folds level d. Calls that were open when the thread ended count as reduced. */
static bool fold_level(struct fdri_thread *into, struct fdri_thread *t, uint32_t d)
{
    struct fdri_arena_level *v = fdri_thread_level(t, d);
    struct fdri_arena_level_points *points = v->points_off ? fdri_thread_at(t, v->points_off) : NULL;
    if (level_empty(v, points)) return true;
    struct fdri_arena_level *w = level_of(into, d, points != NULL);
    if (!w) return false;
    bool open = d && d <= t->loc->depth,
         kept = open && !(v->flags & (FDRI_ARENA_LEVEL_UNTIMED | FDRI_ARENA_LEVEL_SETTLED));
    move_logged(&w->presented, &v->presented);
    move_logged(&w->filtered, &v->filtered);
    move_logged(&w->lost, &v->lost);
    set_logged(&w->reduced_gate, w->reduced_gate + v->reduced_gate + kept);
    set_logged(&v->reduced_gate, 0);
    if (open) set_half(&t->loc->depth, d - 1);
    struct fdri_arena_level_points *wp = points ? fdri_thread_at(into, w->points_off) : NULL;
    for (int c = 1; points && c < FDRI_ARENA_CLASS_COUNT; c++) {
        move_logged(&wp->by_class[c].presented, &points->by_class[c].presented);
        move_logged(&wp->by_class[c].filtered, &points->by_class[c].filtered);
        move_logged(&wp->by_class[c].reduced_gate, &points->by_class[c].reduced_gate);
        move_logged(&wp->by_class[c].lost, &points->by_class[c].lost);
    }
    commit_moves();
    return true;
}

/* true: value a of this type is less than b. NaN is greater than every other value. */
static bool value_less(uint32_t type, uint64_t a, uint64_t b)
{
    double x = fdri_bits_to_double(a), y = fdri_bits_to_double(b);
    if (type == FDRI_ARENA_VALUE_F64) return x < y || (x == x && y != y);
    return type == FDRI_ARENA_VALUE_I64 ? (int64_t)a < (int64_t)b : a < b;
}

static void fold_histogram(struct fdri_thread *into, struct fdri_thread *t, struct fdri_arena_row *w,
                           struct fdri_arena_row *r)
{
    uint32_t first = fdri_arena_histogram_first(r->histogram), count = fdri_arena_histogram_count(r->histogram);
    if (!r->calls || (w->flags & FDRI_ARENA_ROW_NO_HISTOGRAM)) return;
    if (!count || !fdri_totals_histogram_cover(into, w, first, first + count)) {
        fdri_totals_histogram_drop(into, w); /* a histogram that lacks calls would not be exact */
        return;
    }
    uint64_t *to = fdri_thread_at(into, (uint32_t)w->histogram + first * 8),
             *from = fdri_thread_at(t, fdri_arena_histogram_off(r->histogram));
    for (uint32_t i = 0; i < count; i++) set_logged(&to[i], to[i] + from[i]);
    set_logged(&r->histogram, 0);
}

/* Adds the sums of r to w; returns FDRI_ARENA_ROW_SATURATED if one met its bound. On a live location the sums are
 * modulo 2^64: its calls add them so, and the epochs' differences need that. */
static uint32_t add_sums(struct fdri_arena_row *w, const struct fdri_arena_row *r, uint32_t type, bool live)
{
    uint64_t sum = w->sum, exclusive = w->exclusive;
    uint32_t over = (w->flags | r->flags) & FDRI_ARENA_ROW_SATURATED;
    if (live) sum += r->sum;
    else if (over) sum = w->flags & FDRI_ARENA_ROW_SATURATED ? w->sum : r->sum;
    else if (!fdri_totals_add_value(type, &sum, r->sum)) over = FDRI_ARENA_ROW_SATURATED;
    if (live) exclusive += r->exclusive;
    else if (!fdri_totals_add_value(FDRI_ARENA_VALUE_U64, &exclusive, r->exclusive)) over = FDRI_ARENA_ROW_SATURATED;
    set_logged(&w->sum, sum);
    set_logged(&w->exclusive, exclusive);
    return over;
}

static void add_row(struct fdri_thread *into, struct fdri_thread *t, struct fdri_arena_row *w, struct fdri_arena_row *r)
{
    uint32_t type = r->flags >> FDRI_ARENA_ROW_VALUE_SHIFT & 3;
    /* different keys: w is row [rest]. Points are in no [rest], so their totals end here. */
    bool same = w->key == r->key;
    if (!same && r->key >> 24 != FDRI_ARENA_DEF_REGION) {
        set_logged(&r->calls, 0);
        commit_moves();
        return;
    }
    fold_histogram(into, t, w, r);
    if (r->calls) {
        uint32_t flags = w->flags | type << FDRI_ARENA_ROW_VALUE_SHIFT | add_sums(w, r, type, into == t);
        if (!w->calls || value_less(type, r->min, w->min)) set_logged(&w->min, r->min);
        if (!w->calls || value_less(type, w->max, r->max)) set_logged(&w->max, r->max);
        if (flags != w->flags) set_half(&w->flags, flags);
    }
    move_logged(&w->calls, &r->calls);
    move_logged(&w->untimed, &r->untimed);
    set_logged(&r->sum, 0);
    set_logged(&r->exclusive, 0);
}

static void fold_row(struct fdri_thread *into, struct fdri_thread *t, struct fdri_arena_row *r)
{
    struct fdri_arena_row *w = fdri_totals_row(into, r->key);
    bool traffic = fdri_arena_row_of_traffic(r->key);
    uint64_t *without = fdri_arena_row_of_calls(r->key) ? &into->loc->rows_folded : &into->loc->points_without_row;
    /* one was counted when no row was found */
    if (w->key != r->key && !traffic) set_logged(without, *without + r->calls + r->untimed - 1);
    add_row(into, t, w, r);
    commit_moves();
}

void fdri_ended_fold_to_rest(struct fdri_thread *t, struct fdri_arena_row *r, struct fdri_arena_base_row *from,
                             struct fdri_arena_base_row *to)
{
    add_row(t, t, fdri_thread_at(t, t->loc->rest_row_off), r);
    if (from) {
        move_logged(&to->calls, &from->calls);
        move_logged(&to->sum, &from->sum);
        move_logged(&to->exclusive, &from->exclusive);
    }
    commit_moves();
}

static void fold_sums(struct fdri_thread *into, struct fdri_thread *t)
{
    struct fdri_arena_location *w = into->loc, *l = t->loc;
    uint64_t events = l->reductions_dropped_events, bytes = l->reductions_dropped_bytes;
    /* Calls without a level are reported at the depth where that began, the least depth of all. It is set first, so it
     * is never too deep. */
    bool least = !w->no_level_depth || l->no_level_depth < w->no_level_depth;
    if (l->presented_overflow && least) w->no_level_depth = l->no_level_depth;
    fdri_atomic_signal_fence();
    uint32_t count = l->reduction_count,
             first = count > FDRI_ARENA_REDUCTION_LINES ? count - FDRI_ARENA_REDUCTION_LINES : 0;
    const struct fdri_arena_reductions_block *b = l->reductions_off ? fdri_thread_at(t, l->reductions_off) : NULL;
    for (uint32_t i = first; b && i < count; i++) {
        events += b->line[i % FDRI_ARENA_REDUCTION_LINES].events;
        bytes += b->line[i % FDRI_ARENA_REDUCTION_LINES].bytes;
    }
    set_logged(&w->reductions_dropped_events, w->reductions_dropped_events + events);
    set_logged(&w->reductions_dropped_bytes, w->reductions_dropped_bytes + bytes);
    set_logged(&l->reductions_dropped_events, 0);
    set_logged(&l->reductions_dropped_bytes, 0);
    set_half(&l->reduction_count, 0);
    move_logged(&w->presented_overflow, &l->presented_overflow);
    move_logged(&w->lost_overflow, &l->lost_overflow);
    move_logged(&w->clamped, &l->clamped);
    move_logged(&w->unbalanced, &l->unbalanced);
    move_logged(&w->stray_leaves, &l->stray_leaves);
    move_logged(&w->rows_folded, &l->rows_folded);
    move_logged(&w->hists_dropped, &l->hists_dropped);
    move_logged(&w->points_without_row, &l->points_without_row);
    if (l->flags & FDRI_ARENA_LOCATION_TRAFFIC_LOST) fdri_totals_traffic_lost(w);
    set_half(&w->abandoned, w->abandoned + l->abandoned);
    set_half(&l->abandoned, 0);
    set_half(&w->reduction_steps, fdri_bits_add_saturating(w->reduction_steps, l->reduction_steps));
    set_half(&l->reduction_steps, 0);
    move_logged(&w->reduction_ticks, &l->reduction_ticks);
    set_logged(&w->reduction_worst, fdri_bits_max(w->reduction_worst, l->reduction_worst));
    commit_moves();
}

static int fold_some(struct fdri_thread *into, struct fdri_thread *t)
{
    struct fdri_arena_location *l = t->loc;
    uint32_t left = STEPS, levels = fdri_arena_levels_in(l->level_blocks) + 1;
    const struct fdri_arena_part *next;
    fdri_atomic_store_relaxed(&l->epochs_off, 0u); /* epochs are differences of totals that are about to move */
    fdri_atomic_signal_fence();
    for (uint32_t off = l->parts_first; off; off = next->next) {
        struct fdri_arena_part *p = fdri_thread_at(t, off);
        next = p;
        if (!p->total) continue;
        if (!left--) return 0;
        if (!fold_part(into, t, p)) return -1;
    }
    for (; l->fold_from < levels; l->fold_from++) { /* deepest first, so the stack of open calls shrinks from its top */
        if (!left--) return 0;
        if (!fold_level(into, t, levels - 1 - l->fold_from)) return -1;
    }
    const struct fdri_arena_rowtable *table = fdri_thread_at(t, l->rows_table_off);
    const uint32_t *slot = (const void *)(table + 1);
    for (uint32_t i; (i = l->fold_from - levels) < 1u << table->log2; l->fold_from++) {
        struct fdri_arena_row *r = slot[i] ? fdri_thread_at(t, slot[i]) : NULL;
        if (!r || !(r->calls | r->untimed)) continue;
        if (!left--) return 0;
        fold_row(into, t, r);
    }
    fold_sums(into, t);
    return 1;
}

int fdri_ended_fold(struct fdri_thread *into, struct fdri_thread *t)
{
    struct fdri_arena_location *l = t->loc;
    if (!fdri_life_recording.arena.super->fold_off) return -1;
    begin_move(l);
    int done = fold_some(into, t);
    end_move(l);
    return done;
}
