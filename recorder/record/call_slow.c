/* SPDX-License-Identifier: MIT */
/* Enter and leave, everything that is rare: rules, calls that are only counted, other clocks, the first call of a row
 * or partition, full bins, events in one tick, leaves that do not match. The order of stores is that of call.c. */
#include <fdr/fdr.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/atomic.h"
#include "base/bits.h"
#include "format/arena/arena.h"
#include "format/codec/record_codec.h"
#include "recorder/jumps/jumps.h"
#include "recorder/memory/memory.h"
#include "recorder/names/names.h"
#include "recorder/pressure/recorder_pressure.h"
#include "recorder/record/record.h"
#include "recorder/record/shadow_stack.h"
#include "recorder/thread/thread.h"
#include "recorder/thread/thread_state.h"
#include "recorder/totals/totals.h"
#include "recorder/watch/watch.h"

/* Totals are exact whatever is stored. `parent` gets the time as spent in a child. Left by longjmp this is made up for
 * by unfinished_call.c, which relies on the order. */
static void add_totals(struct fdri_thread *t, uint8_t *base, struct fdr_level *v, struct fdr_level *parent,
                       uint64_t duration)
{
    struct fdr_row *r = (void *)(base + v->row_off);
    uint64_t ns = (uint64_t)((unsigned __int128)duration * t->to_ns >> 32);
    t->loc->counting = fdri_histogram_counter(t, r, fdri_bucket(ns));
    t->sum_before = r->sum;
    fdr_signal_fence();
    fdr_bump_relaxed(&r->calls, 1);
    fdr_signal_fence();
    fdr_bump_relaxed(&r->exclusive, duration - v->child_ticks);
    fdr_signal_fence();
    fdr_bump_relaxed(&r->sum, duration);
    fdr_signal_fence();
    fdr_bump_relaxed(&parent->child_ticks, duration);
    if (FDR_UNLIKELY(duration < r->min)) r->min = duration;
    if (FDR_UNLIKELY(duration > r->max)) r->max = duration;
    fdri_count_late(base, t->loc);
    if (FDR_UNLIKELY(duration >= fdr_load_relaxed(t->ticks ? &fdri_watch_ticks : &fdri_watch_ns)))
        fdri_watch_call(t, v->region, duration, v->enter_tick + duration);
}

static void note_zero(struct fdr_level *v, uint64_t tick, bool stored)
{
    if (v->zero_tick != tick) {
        v->zero_tick = tick;
        v->zero_count = 0;
    }
    v->zero_count++;
    v->zero_gap = !stored;
}

/* A call of zero length is not stored, but something stored in its tick may say that it happened inside. So it keeps
 * its ordinal, and who comes next in the tick says its own; soft 0 sends that one the slow way. */
static void leave_out(struct fdri_thread *t, struct fdr_level *v, uint64_t leave_tick)
{
    uint64_t tick = leave_tick >> t->shift;
    if (FDR_LIKELY(t->tied_to != tick + 1) || v->enter_tick >> t->shift != tick) return;
    note_zero(v, tick, false);
    t->soft = 0;
}

/* What an enter owes to one left out in the same tick. */
static uint32_t ordinal_flag(struct fdri_thread *t, const struct fdr_level *v, uint64_t enter_tick)
{
    uint64_t tick = enter_tick >> t->shift;
    if (t->soft == 0 && t->tied_to != tick + 1) fdri_set_soft(t);
    return v->zero_gap && v->zero_tick == tick ? FDR_LEVEL_ORDINAL : 0;
}

/* A zero-length call is told apart from its tick's neighbours by its parent's place in the tick. */
static void add_parent(struct fdri_thread *t, uint32_t depth, uint64_t tick, struct fdr_tie *tie)
{
    if (depth < 2) return;
    struct fdr_level *parent = fdri_level(t, depth - 1);
    tie->in_tick = parent->enter_tick >> t->shift == tick;
    tie->parent = tie->in_tick && parent->zero_tick == tick ? parent->zero_count : 0;
    if (!tie->in_tick) return;
    t->tied_to = tick + 1;
    if (parent->flags & FDR_LEVEL_RULED) parent->flags |= FDR_LEVEL_NAMED; /* without it the place could not be told */
}

static bool tail_holds(const struct fdr_level *v, const struct fdr_part *p, uint64_t enter, uint64_t duration)
{
    return fdr_tail_holds(p, v->region, enter - p->last_tick, duration, !duration || v->flags & FDR_LEVEL_ORDINAL);
}

/* Was it stored? */
static bool store(struct fdri_thread *t, uint8_t *base, struct fdr_level *v, uint32_t depth, uint64_t enter,
                  uint64_t leave)
{
    uint64_t duration = leave - enter;
    uint32_t band = (duration >= t->edge[0]) + (duration >= t->edge[1]) + (duration >= t->edge[2]);
    uint32_t off = v->part[band];
    struct fdr_part *p = (void *)(base + off);
    if (FDR_UNLIKELY(off <= FDRI_GATE_CLOSED || (fdr_encode_full(p) && !tail_holds(v, p, enter, duration)))) {
        p = fdri_room(t, &v->part[band], depth, FDR_CLASS_REGION, band, &v->reduced_gate, &v->lost);
        if (!p) return false;
    }
    struct fdr_bin *bin = (void *)(base + p->open_off);
    struct fdr_table *table = (void *)(base + p->table_off);
    uint64_t gap = enter - p->last_tick;
    bool counted = v->zero_tick == enter, unclear = duration || (counted && v->zero_gap);
    struct fdr_tie tie = {.said = (v->flags & FDR_LEVEL_ORDINAL) && unclear, .ordinal = counted ? v->zero_count : 0};
    if (!duration) add_parent(t, depth, leave, &tie);
    fdr_encode_call(p, table, (uint8_t *)(bin + 1), v->region, gap, duration, &tie);
    p->last_tick = leave;
    fdr_signal_fence();
    /* R:commit - publishes the payload; pairs with A:commit in export/: else a torn record reads as complete */
    fdr_store_release(&bin->commit, fdr_commit_word(p));
    if (!duration) { /* killed before, the open call still says its own ordinal */
        fdr_signal_fence();
        note_zero(v, leave, true);
    }
    return true;
}

/* A call of length 0 is told apart by its parents in the tick. Where one of them was only counted, in a pause, and so
 * is not stored, nobody could tell its place: it is kept out with that one. */
static bool has_no_place(struct fdri_thread *t, const struct fdr_level *v, uint32_t depth, uint64_t leave_tick)
{
    uint64_t tick = leave_tick >> t->shift;
    if (FDR_LIKELY(!t->untimed)) return false;
    for (;;) {
        if (v->enter_tick >> t->shift != tick) return false;
        if (v->flags & FDR_LEVEL_UNTIMED) return true;
        if (--depth == 0) return false;
        v = fdri_level(t, depth);
    }
}

/* Closes the top call at `tick`: totals, then storage, then the stack. */
void fdri_close_top(struct fdri_thread *t, struct fdr_location *l, struct fdr_level *v, uint32_t depth, uint64_t tick)
{
    uint8_t *base = t->base;
    uint64_t duration = tick - v->enter_tick;
    struct fdr_level *parent = fdri_parent_of(t, v, depth);
    add_totals(t, base, v, parent, duration);
    bool kept = FDR_LIKELY(duration >= t->min_ticks && !has_no_place(t, v, depth, tick));
    if (!kept) fdr_bump_relaxed(&v->filtered, 1);
    if (!kept || !store(t, base, v, depth, v->enter_tick >> t->shift, tick >> t->shift)) leave_out(t, v, tick);
    fdri_pop(t, l, parent);
}

/* In this order: unfinished_call.c. */
static void count_only(struct fdr_level *v, struct fdr_row *row)
{
    fdr_bump_relaxed(&v->presented, 1);
    fdr_bump_relaxed(&v->filtered, 1);
    fdr_signal_fence();
    fdr_bump_relaxed(&row->untimed, 1);
}

/* Counted only: presented and filtered, no clock, nothing stored. */
static void push_untimed(struct fdri_thread *t, struct fdr_level *v, struct fdr_row *row, fdr_region region)
{
    v->region = region;
    v->row_off = fdri_off_of(t, row);
    v->enter_tick = t->loc->last_tick;
    v->child_ticks = 0;
    v->flags = FDR_LEVEL_UNTIMED;
    v->skipped = 0;
    t->untimed += t->loc->depth < t->depth_limit;
    fdr_signal_fence();
    count_only(v, row);
    fdr_store_release(&t->loc->depth, t->loc->depth + 1); /* R:frame */
    t->top = v;
}

/* Does a rule keep this call out? Counting rules count it; where the region shares its row with others nobody knows how
 * many of its calls there were: the first ones are taken to be over, and of all of them together every Nth stays. */
static bool kept_out(struct fdr_row *row, const struct fdri_rule *rule, uint32_t *level_flags)
{
    uint32_t seen = row->flags >> FDR_ROW_SEEN_SHIFT;
    switch (rule->mode) {
    case FDRI_RULE_EXCLUDE: return true;
    case FDRI_RULE_FIRST:
        if (seen >= rule->count || row->key == FDR_ROW_KEY_REST) return true;
        row->flags += 1u << FDR_ROW_SEEN_SHIFT;
        return false;
    case FDRI_RULE_EVERY:
        row->flags = (row->flags & ((1u << FDR_ROW_SEEN_SHIFT) - 1)) | ((seen + 1) % rule->count) << FDR_ROW_SEEN_SHIFT;
        return seen != 0;
    case FDRI_RULE_MIN: *level_flags |= FDR_LEVEL_RULED; return false;
    case FDRI_RULE_COUNTERS: *level_flags |= FDR_LEVEL_EDGES; return false;
    default: return false;
    }
}

static void close_gone(struct fdri_thread *t, const struct fdri_function *f);

static void set_overflow(struct fdri_thread *t, uint32_t deeper)
{
    t->loc->overflow = deeper;
    fdri_set_soft(t);
}

/* Room for one level more? Counts the call where there is none. */
static bool deep_enough(struct fdri_thread *t, fdr_region region)
{
    struct fdr_location *l = t->loc;
    if (!l->overflow && (l->depth < fdr_levels_in(l->level_blocks) || fdri_grow_levels(t))) return true;
    if (!l->refused_from) l->refused_from = (uint16_t)(l->depth + 1); /* before any is counted: levels may come later */
    fdr_signal_fence();
    bool first = !l->overflow;
    l->overflow = fdri_refused_enter(t, region);
    if (first) {
        t->overflow_sp = FDRI_HERE();
        fdri_set_soft(t);
    }
    l->presented_overflow++;
    l->lost_overflow++;
    return false;
}

bool fdri_enter_tick(struct fdri_thread *t, fdr_region region, const struct fdri_function *f, bool live,
                     uint64_t time_ns)
{
    struct fdr_location *l = t->loc;
    if (f && f->frame != FDRI_UNTOLD) close_gone(t, f);
    /* If the caller's frame lies above where the calls deeper than the stack began, a longjmp left them all. */
    if (l->overflow && FDRI_HERE() > t->overflow_sp + 4096) set_overflow(t, 0);
    if (region > FDR_ID_MAX) region = 0;
    if (!deep_enough(t, region)) {
        fdri_row(t, FDRI_KEY(FDR_DEF_REGION, region))->untimed++;
        return false;
    }
    struct fdr_level *v = fdri_level(t, l->depth + 1);
    struct fdr_row *row = fdri_row(t, FDRI_KEY(FDR_DEF_REGION, region));
    uint32_t flags = 0;
    fdri_level_place(v, f);
    v->row_off = fdri_off_of(t, row);
    fdr_signal_fence(); /* before it is presented: unfinished_call.c */
    if (f) fdri_known_add(t, f, region, row);
    if (FDR_UNLIKELY(row->flags & FDR_ROW_GATED)) {
        const struct fdri_rule *rule = fdri_rule_of(region);
        if (rule && kept_out(row, rule, &flags)) {
            count_only(v, row);
            v->address = 0; /* what is stored there next is newer: excluded_calls.c */
            fdri_skipped_add(t, region, f);
            return false;
        }
    }
    if (FDR_UNLIKELY(t->walk.block)) fdri_epoch_enters(t, row);
    if (l->depth >= t->depth_limit || l->pause) {
        push_untimed(t, v, row, region);
        return false;
    }
    uint64_t tick = live ? fdri_clamp_live(t, fdri_tick_live(t)) : fdri_tick_at(t, time_ns);
    if (FDR_UNLIKELY(l->flags & FDR_LOCATION_STOPPED)) {
        flags |= FDR_LEVEL_SETTLED;
        fdr_bump_relaxed(&v->reduced_gate, 1);
    }
    if (FDR_UNLIKELY(t->aside_due)) fdri_aside(t, tick);
    flags |= ordinal_flag(t, v, tick);
    fdri_push(t, l, v, l->depth, fdri_off_of(t, row), region, flags, tick);
    l->last_tick = tick;
    return true;
}

/* Closes the top call, v at that depth, whatever kind it is. */
static void close_kind(struct fdri_thread *t, struct fdr_level *v, uint32_t depth, uint64_t tick)
{
    struct fdr_location *l = t->loc;
    struct fdr_level *parent = fdri_parent_of(t, v, depth);
    if (v->flags & FDR_LEVEL_UNTIMED) {
        if (depth <= t->depth_limit) {
            t->untimed--;
            fdr_bump_relaxed(&parent->child_ticks, v->child_ticks); /* a pause that ended inside */
        }
        leave_out(t, v, l->last_tick);
        fdri_pop(t, l, parent);
        return;
    }
    if (tick < v->enter_tick) tick = v->enter_tick;
    uint64_t duration = tick - v->enter_tick;
    bool may_go = (v->flags & (FDR_LEVEL_RULED | FDR_LEVEL_NAMED)) == FDR_LEVEL_RULED;
    const struct fdri_rule *rule = may_go ? fdri_rule_of(v->region) : NULL;
    bool too_short = rule && (uint64_t)((unsigned __int128)duration * t->to_ns >> 32) < rule->min_ns;
    if (!too_short && !(v->flags & FDR_LEVEL_SETTLED)) {
        fdri_close_top(t, l, v, depth, tick);
        return;
    }
    add_totals(t, t->base, v, parent, duration);
    if (too_short && !(v->flags & FDR_LEVEL_SETTLED)) fdr_bump_relaxed(&v->filtered, 1);
    leave_out(t, v, tick);
    fdri_pop(t, l, parent);
}

static void close_any(struct fdri_thread *t, uint64_t tick)
{
    struct fdr_level *v = t->top;
    uint32_t depth = t->loc->depth;
    close_kind(t, v, depth, tick);
    if (FDR_UNLIKELY(v->flags & FDR_LEVEL_MARKED)) fdri_rewind_ended(t, v, depth, tick);
}

/* Closes the calls from depth `from` on, all but the first without a leave of their own. */
static void close_from(struct fdri_thread *t, uint32_t from, uint64_t tick)
{
    struct fdr_location *l = t->loc;
    l->unbalanced += l->depth - from;
    fdri_skipped_close(t, from);
    l->last_tick = tick; /* first: an epoch may be cut inside, and holds what is closed now */
    while (l->depth >= from) close_any(t, tick);
}

/* When do the calls from depth `from` on end? The clock is read for those that have a time. */
static uint64_t end_of(struct fdri_thread *t, uint32_t from, bool live, uint64_t time_ns)
{
    while (from <= t->loc->depth && fdri_level(t, from)->flags & FDR_LEVEL_UNTIMED) from++;
    if (from > t->loc->depth) return t->loc->last_tick;
    return live ? fdri_clamp_live(t, fdri_tick_live(t)) : fdri_tick_at(t, time_ns);
}

/* Calls that f shows to be gone end now. */
static void close_gone(struct fdri_thread *t, const struct fdri_function *f)
{
    struct fdr_location *l = t->loc;
    uint32_t from = fdri_gone(t, f);
    if (!from) return;
    if (l->overflow) set_overflow(t, 0);
    l->unbalanced++;
    close_from(t, from, end_of(t, from, true, 0));
}

void fdri_close_open(struct fdri_thread *t, uint64_t tick)
{
    struct fdr_location *l = t->loc;
    if (l->overflow) set_overflow(t, 0);
    if (!l->depth) return;
    l->unbalanced++;
    close_from(t, 1, fdr_max(tick, l->last_tick));
}

/* Where on the stack is this region (or code address), counted from the top? 0 = not there. */
static uint32_t find_open(const struct fdri_thread *t, fdr_region region, uint64_t address)
{
    for (uint32_t d = t->loc->depth; d; d--) {
        const struct fdr_level *v = fdri_level(t, d);
        if (address ? v->address == address : v->region == region) return d;
    }
    return 0;
}

/* The newest call of this region that a rule kept out is inside of the call of which depth? FDRI_NOT_SKIPPED: there is
 * none. */
static uint32_t find_skipped(struct fdri_thread *t, fdr_region region)
{
    const struct fdri_rule *rule = fdri_rule_of(region);
    if (!rule || rule->mode == FDRI_RULE_MIN || rule->mode == FDRI_RULE_COUNTERS) return FDRI_NOT_SKIPPED;
    return fdri_skipped_find(t, region);
}

/* Is this the leave of a call that a rule kept out, and not of the one at depth `found`, if any? Those inside of it
 * end, too. */
static bool leaves_skipped(struct fdri_thread *t, fdr_region region, uint32_t found, bool live, uint64_t time_ns)
{
    struct fdr_location *l = t->loc;
    uint32_t inside_of = find_skipped(t, region);
    if (inside_of == FDRI_NOT_SKIPPED || inside_of < found) return false;
    if (l->depth > inside_of) {
        l->unbalanced++; /* no leave of its own either */
        close_from(t, inside_of + 1, end_of(t, inside_of + 1, live, time_ns));
    }
    fdri_skipped_leave(t, region);
    return true;
}

/* Calls deeper than the stack are open. Is this the leave of one of them, or of none at all? If not they are gone:
 * those of calls around them skip theirs. */
static bool leaves_refused(struct fdri_thread *t, fdr_region region, uint64_t address)
{
    struct fdr_location *l = t->loc;
    if (FDRI_HERE() <= t->overflow_sp + 4096) {
        uint32_t left = fdri_refused_leave(t, region);
        bool theirs = left < l->overflow;
        if (theirs) set_overflow(t, left);
        else if (!find_open(t, region, address) && find_skipped(t, region) == FDRI_NOT_SKIPPED) l->stray_leaves++;
        else set_overflow(t, 0);
        return theirs || l->overflow;
    }
    set_overflow(t, 0);
    return false;
}

void fdri_leave_tick(struct fdri_thread *t, fdr_region region, uint64_t address, bool live, uint64_t time_ns)
{
    struct fdr_location *l = t->loc;
    if (region > FDR_ID_MAX) region = 0;
    if (l->overflow && leaves_refused(t, region, address)) return;
    uint32_t found = find_open(t, region, address);
    if (leaves_skipped(t, region, found, live, time_ns)) return;
    if (found) close_from(t, found, end_of(t, found, live, time_ns));
    else l->stray_leaves++;
}
