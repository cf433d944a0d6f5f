/* SPDX-License-Identifier: MIT */
/* The accounts of a location that ended, added to another's: what was given back, levels, points, totals, sums.
 *
 * Every number moves at once: the words that change are written into struct fdr_fold with what they were, the count
 * says that they hold, then they change, then the count is 0 again. Killed in between, a reader takes them to be what
 * they were. So at no moment is a number in both places or in neither. Under the lock of ended_threads.c. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/atomic.h"
#include "base/bits.h"
#include "bins/bins.h"
#include "format/arena/arena.h"
#include "recorder/ended/ended.h"
#include "recorder/life/recording.h"
#include "recorder/memory/memory.h"
#include "recorder/thread/thread.h"
#include "recorder/thread/thread_state.h"
#include "recorder/totals/totals.h"

enum { STEPS = 32 }; /* moves in one call */

static uint64_t value[FDR_FOLD_WORDS];
static uint32_t words;

/* How far rows of the location that is prepared have their place; it may take several calls. */
static struct {
    uint32_t id, slot;
} ahead;

/* Who copies from outside cannot lock folding out: what it has of a location that says so at the end is in two places.
 * `moving`: whose handler may leave it there by longjmp; under the lock of what ended. */
static struct fdr_location *moving;

static struct fdr_fold *book(void) { return fdri_at(&fdri_rec.arena, fdri_rec.arena.super->fold_off); }

bool fdri_fold_start(void)
{
    uint32_t off = fdri_meta_take(&fdri_rec.arena, FDR_META_FOLD, sizeof(struct fdr_fold), UINT32_MAX);
    fdri_rec.arena.super->fold_off = off;
    words = 0;
    moving = NULL;
    ahead.id = UINT32_MAX;
    return off != 0;
}

static void set(uint64_t *p, uint64_t v)
{
    if (*p == v) return;
    book()->word[words].off = (uint64_t)((uint8_t *)p - fdri_rec.arena.base);
    book()->word[words].was = *p;
    value[words++] = v;
}

static void move(uint64_t *to, uint64_t *from)
{
    set(to, *to + *from);
    set(from, 0);
}

static void set_half(uint32_t *p, uint32_t v)
{
    uint64_t *word = (uint64_t *)((uintptr_t)p & ~(uintptr_t)7), whole = *word;
    uint32_t shift = (uintptr_t)p & 4 ? 32 : 0;
    set(word, (whole & ~((uint64_t)UINT32_MAX << shift)) | (uint64_t)v << shift);
}

static void carry_out(void)
{
    struct fdr_fold *f = book();
    uint32_t n = words;
    words = 0;
    if (!n) return;
    fdr_store_release(&f->count, n); /* R:fold - the list stands; pairs with program order after a kill */
    fdr_signal_fence();
    for (uint32_t i = 0; i < n; i++)
        fdr_store_relaxed((uint64_t *)(void *)(fdri_rec.arena.base + f->word[i].off), value[i]);
    fdr_signal_fence();
    fdr_store_release(&f->count, 0u); /* R:fold */
    fdr_signal_fence();
}

static void begin_move(struct fdr_location *l)
{
    moving = l;
    fdr_signal_fence();
    fdr_store_relaxed(&l->flags, l->flags | FDR_LOCATION_MOVING);
    fdr_fence_release(); /* R:moving - who copies a byte of what follows finds the flag */
}

static void end_move(struct fdr_location *l)
{
    fdr_store_release(&l->flags, l->flags & ~(uint32_t)FDR_LOCATION_MOVING); /* R:moving */
    fdr_signal_fence();
    moving = NULL;
}

void fdri_fold_undo(void)
{
    struct fdr_fold *f = book();
    for (uint32_t i = f->count; i-- > 0;)
        fdr_store_relaxed((uint64_t *)(void *)(fdri_rec.arena.base + f->word[i].off), f->word[i].was);
    fdr_signal_fence();
    fdr_store_release(&f->count, 0u); /* R:fold */
    words = 0;
    if (moving) end_move(moving); /* what is under way is undone */
}

/* Level d of `into`, with accounts of points if need be; NULL: no room. */
static struct fdr_level *level_of(struct fdri_thread *into, uint32_t d, bool points)
{
    into->level_search.pause = 0; /* who folds asks no more often than it makes sense */
    while (fdr_levels_in(into->loc->level_blocks) < d)
        if (!fdri_grow_levels(into)) return NULL;
    struct fdr_level *v = fdri_level(into, d);
    if (points && !v->points_off) v->points_off = fdri_meta(into, FDR_META_POINTS, sizeof(struct fdr_level_points));
    return points && !v->points_off ? NULL : v;
}

/* All of a partition was given back: its records are counted by a level from now on, and those who presented them go
 * along, so that both locations' accounts balance at every moment. */
static bool fold_part(struct fdri_thread *into, struct fdri_thread *t, struct fdr_part *p)
{
    bool points = p->class_ != FDR_CLASS_REGION;
    struct fdr_level *w = level_of(into, p->depth, points), *v = fdri_level(t, p->depth);
    if (!w) return false;
    struct fdr_level_points *wp = points ? fdri_off(into, w->points_off) : NULL;
    struct fdr_level_points *vp = points ? fdri_off(t, v->points_off) : NULL;
    uint64_t *to = points ? &wp->by_class[p->class_].presented : &w->presented;
    set(to, *to + p->total);
    uint64_t *from = points ? &vp->by_class[p->class_].presented : &v->presented;
    set(from, *from - p->total);
    move(points ? &wp->by_class[p->class_].reduced_gate : &w->reduced_gate, &p->total);
    carry_out();
    return true;
}

static bool empty(const struct fdr_level *v, const struct fdr_level_points *points)
{
    uint64_t any = v->presented | v->filtered | v->reduced_gate | v->lost;
    for (int c = 0; points && c < FDR_CLASS_COUNT; c++)
        any |= points->by_class[c].presented | points->by_class[c].filtered | points->by_class[c].reduced_gate |
               points->by_class[c].lost;
    return !any;
}

static int prepare_rows(struct fdri_thread *into, struct fdri_thread *t)
{
    const struct fdr_rowtable *table = fdri_off(t, t->loc->rows_table_off);
    const uint32_t *slot = (const void *)(table + 1);
    uint32_t left = STEPS;
    if (ahead.id != t->loc->id) ahead.slot = 0;
    ahead.id = t->loc->id;
    for (; ahead.slot < 1u << table->log2; ahead.slot++) {
        const struct fdr_row *r = slot[ahead.slot] ? fdri_off(t, slot[ahead.slot]) : NULL;
        if (!r || !(r->calls | r->untimed)) continue;
        if (!left--) return 0;
        uint32_t first = fdr_histogram_first(r->histogram), count = fdr_histogram_count(r->histogram);
        if (!fdri_row_ahead(into, r->key, first, first + count)) return -1;
    }
    return 1;
}

int fdri_fold_prepare(struct fdri_thread *into, struct fdri_thread *t)
{
    for (uint32_t d = fdr_levels_in(t->loc->level_blocks) + 1; d-- > 0;) {
        const struct fdr_level *v = fdri_level(t, d);
        const struct fdr_level_points *points = v->points_off ? fdri_off(t, v->points_off) : NULL;
        if (!empty(v, points) && !level_of(into, d, points != NULL)) return -1;
    }
    return prepare_rows(into, t);
}

/* Calls that were open when the thread ended count as given back. */
static bool fold_level(struct fdri_thread *into, struct fdri_thread *t, uint32_t d)
{
    struct fdr_level *v = fdri_level(t, d);
    struct fdr_level_points *points = v->points_off ? fdri_off(t, v->points_off) : NULL;
    if (empty(v, points)) return true;
    struct fdr_level *w = level_of(into, d, points != NULL);
    if (!w) return false;
    bool open = d && d <= t->loc->depth, kept = open && !(v->flags & (FDR_LEVEL_UNTIMED | FDR_LEVEL_SETTLED));
    move(&w->presented, &v->presented);
    move(&w->filtered, &v->filtered);
    move(&w->lost, &v->lost);
    set(&w->reduced_gate, w->reduced_gate + v->reduced_gate + kept);
    set(&v->reduced_gate, 0);
    if (open) set_half(&t->loc->depth, d - 1);
    struct fdr_level_points *wp = points ? fdri_off(into, w->points_off) : NULL;
    for (int c = 1; points && c < FDR_CLASS_COUNT; c++) {
        move(&wp->by_class[c].presented, &points->by_class[c].presented);
        move(&wp->by_class[c].filtered, &points->by_class[c].filtered);
        move(&wp->by_class[c].reduced_gate, &points->by_class[c].reduced_gate);
        move(&wp->by_class[c].lost, &points->by_class[c].lost);
    }
    carry_out();
    return true;
}

/* Is value a of this type below b? A NaN is below nothing. */
static bool below(uint32_t type, uint64_t a, uint64_t b)
{
    double x = fdr_double_of(a), y = fdr_double_of(b);
    if (type == FDR_VALUE_F64) return x < y || (x == x && y != y);
    return type == FDR_VALUE_I64 ? (int64_t)a < (int64_t)b : a < b;
}

static void fold_histogram(struct fdri_thread *into, struct fdri_thread *t, struct fdr_row *w, struct fdr_row *r)
{
    uint32_t first = fdr_histogram_first(r->histogram), count = fdr_histogram_count(r->histogram);
    if (!r->calls || (w->flags & FDR_ROW_NO_HISTOGRAM)) return;
    if (!count || !fdri_histogram_cover(into, w, first, first + count)) {
        fdri_histogram_drop(into, w); /* one that lacks calls would not be exact */
        return;
    }
    uint64_t *to = fdri_off(into, (uint32_t)w->histogram + first * 8),
             *from = fdri_off(t, fdr_histogram_off(r->histogram));
    for (uint32_t i = 0; i < count; i++) set(&to[i], to[i] + from[i]);
    set(&r->histogram, 0);
}

/* Sums of both; FDR_ROW_SATURATED: one met its bound. Those of a live location's calls are modulo 2^64, as the calls
 * themselves add them and the differences that epochs hold need them. */
static uint32_t add_sums(struct fdr_row *w, const struct fdr_row *r, uint32_t type, bool live)
{
    uint64_t sum = w->sum, exclusive = w->exclusive;
    uint32_t over = (w->flags | r->flags) & FDR_ROW_SATURATED;
    if (live) sum += r->sum;
    else if (over) sum = w->flags & FDR_ROW_SATURATED ? w->sum : r->sum;
    else if (!fdri_add(type, &sum, r->sum)) over = FDR_ROW_SATURATED;
    if (live) exclusive += r->exclusive;
    else fdri_add(FDR_VALUE_U64, &exclusive, r->exclusive); /* a part of the other, which met it before */
    set(&w->sum, sum);
    set(&w->exclusive, exclusive);
    return over;
}

static void add_row(struct fdri_thread *into, struct fdri_thread *t, struct fdr_row *w, struct fdr_row *r)
{
    uint32_t type = r->flags >> FDR_ROW_VALUE_SHIFT & 3;
    bool same = w->key == r->key; /* else it has found no row of its own; points are in no total then */
    if (!same && r->key >> 24 != FDR_DEF_REGION) {
        set(&r->calls, 0);
        carry_out();
        return;
    }
    fold_histogram(into, t, w, r);
    if (r->calls) {
        uint32_t flags = w->flags | type << FDR_ROW_VALUE_SHIFT | add_sums(w, r, type, into == t);
        if (!w->calls || below(type, r->min, w->min)) set(&w->min, r->min);
        if (!w->calls || below(type, w->max, r->max)) set(&w->max, r->max);
        if (flags != w->flags) set_half(&w->flags, flags);
    }
    move(&w->calls, &r->calls);
    move(&w->untimed, &r->untimed);
    set(&r->sum, 0);
    set(&r->exclusive, 0);
}

static void fold_row(struct fdri_thread *into, struct fdri_thread *t, struct fdr_row *r)
{
    struct fdr_row *w = fdri_row(into, r->key);
    uint64_t *without = fdr_row_of_calls(r->key) ? &into->loc->rows_folded : &into->loc->points_without_row;
    if (w->key != r->key) set(without, *without + r->calls + r->untimed - 1); /* one is counted already */
    add_row(into, t, w, r);
    carry_out();
}

void fdri_fold_to_rest(struct fdri_thread *t, struct fdr_row *r, struct fdr_base_row *from, struct fdr_base_row *to)
{
    add_row(t, t, fdri_off(t, t->loc->rest_row_off), r);
    if (from) {
        move(&to->calls, &from->calls);
        move(&to->sum, &from->sum);
        move(&to->exclusive, &from->exclusive);
    }
    carry_out();
}

static void fold_sums(struct fdri_thread *into, struct fdri_thread *t)
{
    struct fdr_location *w = into->loc, *l = t->loc;
    uint64_t events = l->reductions_dropped_events, bytes = l->reductions_dropped_bytes;
    /* calls that found no level are told at the depth where that began, the least of all: first, so never deeper */
    bool least = !w->refused_from || l->refused_from < w->refused_from;
    if (l->presented_overflow && least) w->refused_from = l->refused_from;
    fdr_signal_fence();
    uint32_t count = l->reduction_count, first = count > FDR_REDUCTION_LINES ? count - FDR_REDUCTION_LINES : 0;
    const struct fdr_reductions_block *b = l->reductions_off ? fdri_off(t, l->reductions_off) : NULL;
    for (uint32_t i = first; b && i < count; i++) {
        events += b->line[i % FDR_REDUCTION_LINES].events;
        bytes += b->line[i % FDR_REDUCTION_LINES].bytes;
    }
    set(&w->reductions_dropped_events, w->reductions_dropped_events + events);
    set(&w->reductions_dropped_bytes, w->reductions_dropped_bytes + bytes);
    set(&l->reductions_dropped_events, 0);
    set(&l->reductions_dropped_bytes, 0);
    set_half(&l->reduction_count, 0);
    move(&w->presented_overflow, &l->presented_overflow);
    move(&w->lost_overflow, &l->lost_overflow);
    move(&w->clamped, &l->clamped);
    move(&w->unbalanced, &l->unbalanced);
    move(&w->stray_leaves, &l->stray_leaves);
    move(&w->rows_folded, &l->rows_folded);
    move(&w->hists_dropped, &l->hists_dropped);
    move(&w->points_without_row, &l->points_without_row);
    set_half(&w->abandoned, w->abandoned + l->abandoned);
    set_half(&l->abandoned, 0);
    set_half(&w->reduction_steps, fdr_count_up(w->reduction_steps, l->reduction_steps));
    set_half(&l->reduction_steps, 0);
    move(&w->reduction_ticks, &l->reduction_ticks);
    set(&w->reduction_worst, fdr_max(w->reduction_worst, l->reduction_worst));
    carry_out();
}

static int fold_some(struct fdri_thread *into, struct fdri_thread *t)
{
    struct fdr_location *l = t->loc;
    uint32_t left = STEPS, levels = fdr_levels_in(l->level_blocks) + 1;
    const struct fdr_part *next;
    fdr_store_relaxed(&l->epochs_off, 0u); /* they are differences of totals that are about to go */
    fdr_signal_fence();
    for (uint32_t off = l->parts_first; off; off = next->next) {
        struct fdr_part *p = fdri_off(t, off);
        next = p;
        if (!p->total) continue;
        if (!left--) return 0;
        if (!fold_part(into, t, p)) return -1;
    }
    for (; l->fold_from < levels;
         l->fold_from++) { /* the deepest first: so the stack of open calls shrinks from its top */
        if (!left--) return 0;
        if (!fold_level(into, t, levels - 1 - l->fold_from)) return -1;
    }
    const struct fdr_rowtable *table = fdri_off(t, l->rows_table_off);
    const uint32_t *slot = (const void *)(table + 1);
    for (uint32_t i; (i = l->fold_from - levels) < 1u << table->log2; l->fold_from++) {
        struct fdr_row *r = slot[i] ? fdri_off(t, slot[i]) : NULL;
        if (!r || !(r->calls | r->untimed)) continue;
        if (!left--) return 0;
        fold_row(into, t, r);
    }
    fold_sums(into, t);
    return 1;
}

int fdri_fold(struct fdri_thread *into, struct fdri_thread *t)
{
    struct fdr_location *l = t->loc;
    if (!fdri_rec.arena.super->fold_off) return -1;
    begin_move(l);
    int done = fold_some(into, t);
    end_move(l);
    return done;
}
