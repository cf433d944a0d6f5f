/* SPDX-License-Identifier: MIT */
/* Enter and leave, the rare cases: rules, calls that are only counted, other clocks, the first call of a row or
 * partition. Also full bins, events in one tick, leaves that do not match. The order of stores is that of call.c. */
#include <fdr/fdr.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/atomic.h"
#include "base/bits.h"
#include "format/arena/arena.h"
#include "format/codec/encode.h"
#include "format/codec/prediction.h"
#include "format/codec/record_codec.h"
#include "recorder/jumps/jumps.h"
#include "recorder/memory/memory.h"
#include "recorder/names/names.h"
#include "recorder/names/region_rules.h"
#include "recorder/record/rule_table.h"
#include "recorder/pressure/recorder_pressure.h"
#include "recorder/record/call_fast.h"
#include "recorder/record/record.h"
#include "recorder/record/ruled_calls.h"
#include "recorder/record/shadow_stack.h"
#include "recorder/thread/arena_place.h"
#include "recorder/thread/thread.h"
#include "recorder/thread/thread_clock.h"
#include "recorder/thread/thread_state.h"
#include "recorder/totals/totals.h"
#include "recorder/watch/watch.h"

/* Adds a call to the totals, whether it is stored or not. The parent's child_ticks grow by its duration. If a longjmp
 * leaves this function, unfinished_call.c completes it and relies on the order of stores. */
static void add_totals(struct fdri_thread *t, uint8_t *base, struct fdri_arena_level *v,
                       struct fdri_arena_level *parent, uint64_t duration)
{
    struct fdri_arena_row *r = (void *)(base + v->row_off);
    uint64_t ns = (uint64_t)((unsigned __int128)duration * t->to_ns >> 32);
    t->loc->pending_counter_off = fdri_totals_histogram_counter(t, r, fdri_totals_bucket(ns));
    t->sum_before = r->sum;
    fdri_record_add_sums(r, v, duration);
    fdri_atomic_signal_fence();
    fdri_atomic_bump_relaxed(&parent->child_ticks, duration);
    if (FDRI_UNLIKELY(duration < r->min)) r->min = duration;
    if (FDRI_UNLIKELY(duration > r->max)) r->max = duration;
    fdri_totals_count_pending(base, t->loc);
    if (FDRI_UNLIKELY(duration >= fdri_atomic_load_relaxed(t->ticks ? &fdri_watch_ticks : &fdri_watch_ns)))
        fdri_watch_call(t, v->region, duration, v->enter_tick + duration);
}

static void note_zero(struct fdri_arena_level *v, uint64_t tick, bool stored)
{
    if (v->zero_tick != tick) {
        v->zero_tick = tick;
        v->zero_count = 0;
    }
    v->zero_count++;
    v->zero_gap = !stored;
}

/* Call v of zero length is not stored, but a stored event of its tick may name it as its parent. So v keeps its
 * ordinal, and the next call of the tick must store its own. soft 0 sends that call down the slow path. */
static void leave_out(struct fdri_thread *t, struct fdri_arena_level *v, uint64_t leave_tick)
{
    uint64_t tick = leave_tick >> t->shift;
    if (FDRI_LIKELY(t->tie_tick_end != tick + 1) || v->enter_tick >> t->shift != tick) return;
    note_zero(v, tick, false);
    t->slow_depth = 0;
}

/* The flag of a call entered at this tick: it stores its ordinal if a call of the same depth and tick was left out. */
static uint32_t ordinal_flag(struct fdri_thread *t, const struct fdri_arena_level *v, uint64_t enter_tick)
{
    uint64_t tick = enter_tick >> t->shift;
    if (t->slow_depth == 0 && t->tie_tick_end != tick + 1) fdri_thread_update_soft(t);
    return v->zero_gap && v->zero_tick == tick ? FDRI_ARENA_LEVEL_ORDINAL : 0;
}

/* The place of a zero-length call among the calls of its tick is its parent's place: adds that to `tie`. */
static void add_parent(struct fdri_thread *t, uint32_t depth, uint64_t tick, struct fdri_codec_tie *tie)
{
    if (depth < 2) return;
    struct fdri_arena_level *parent = fdri_thread_level(t, depth - 1);
    tie->parent_in_tick = parent->enter_tick >> t->shift == tick;
    tie->parent = tie->parent_in_tick && parent->zero_tick == tick ? parent->zero_count : 0;
    if (!tie->parent_in_tick) return;
    t->tie_tick_end = tick + 1;
    /* without its parent's record the call would have no place */
    if (parent->flags & FDRI_ARENA_LEVEL_RULED) parent->flags |= FDRI_ARENA_LEVEL_NAMED;
}

static bool tail_holds(const struct fdri_arena_level *v, const struct fdri_arena_part *p, uint64_t enter,
                       uint64_t duration)
{
    return fdri_codec_tail_holds(p, v->region, enter - p->last_tick, duration,
                                 !duration || v->flags & FDRI_ARENA_LEVEL_ORDINAL);
}

/* Stores a record of call v. False: it was not stored, and is counted as reduced or lost. */
static bool store(struct fdri_thread *t, uint8_t *base, struct fdri_arena_level *v, uint32_t depth, uint64_t enter,
                  uint64_t leave)
{
    uint64_t duration = leave - enter;
    uint32_t band = (duration >= t->edge[0]) + (duration >= t->edge[1]) + (duration >= t->edge[2]);
    uint32_t off = v->part[band];
    struct fdri_arena_part *p = (void *)(base + off);
    if (FDRI_UNLIKELY(off <= FDRI_THREAD_GATE_CLOSED ||
                      (fdri_codec_encode_full(p) && !tail_holds(v, p, enter, duration)))) {
        p = fdri_memory_room(t, &v->part[band], depth, FDRI_ARENA_CLASS_REGION, band, &v->reduced_gate, &v->lost);
        if (!p) return false;
    }
    struct fdri_arena_bin *bin = (void *)(base + p->open_off);
    struct fdri_codec_table *table = (void *)(base + p->table_off);
    uint64_t gap = enter - p->last_tick;
    bool counted = v->zero_tick == enter, unclear = duration || (counted && v->zero_gap);
    struct fdri_codec_tie tie = {.has_ordinal = (v->flags & FDRI_ARENA_LEVEL_ORDINAL) && unclear,
                                 .ordinal = counted ? v->zero_count : 0};
    if (!duration) add_parent(t, depth, leave, &tie);
    fdri_codec_encode_call(p, table, (uint8_t *)(bin + 1), v->region, gap, duration, &tie);
    p->last_tick = leave;
    fdri_atomic_signal_fence();
    /* R:commit - publishes the payload; pairs with A:commit in export/: else a torn record reads as complete */
    fdri_atomic_store_release(&bin->commit, fdri_codec_commit_word(p));
    if (!duration) { /* after the commit: a kill before this leaves the open call its own ordinal */
        fdri_atomic_signal_fence();
        note_zero(v, leave, true);
    }
    return true;
}

/* Is there no place for a call of length 0? The record of such a call names its parents in the tick. If one of these
 * was only counted, in a pause, it has no record. Then the call is filtered, too. */
static bool has_no_place(struct fdri_thread *t, const struct fdri_arena_level *v, uint32_t depth, uint64_t leave_tick)
{
    uint64_t tick = leave_tick >> t->shift;
    if (FDRI_LIKELY(!t->untimed)) return false;
    for (;;) {
        if (v->enter_tick >> t->shift != tick) return false;
        if (v->flags & FDRI_ARENA_LEVEL_UNTIMED) return true;
        if (--depth == 0) return false;
        v = fdri_thread_level(t, depth);
    }
}

void fdri_record_close_top(struct fdri_thread *t, struct fdri_arena_location *l, struct fdri_arena_level *v,
                           uint32_t depth, uint64_t tick)
{
    uint8_t *base = t->base;
    uint64_t duration = tick - v->enter_tick;
    struct fdri_arena_level *parent = fdri_record_parent_of(t, v, depth);
    add_totals(t, base, v, parent, duration);
    bool kept = FDRI_LIKELY(duration >= t->min_ticks && !has_no_place(t, v, depth, tick));
    if (!kept) fdri_atomic_bump_relaxed(&v->filtered, 1);
    if (!kept || !store(t, base, v, depth, v->enter_tick >> t->shift, tick >> t->shift)) leave_out(t, v, tick);
    fdri_record_pop(t, l, parent);
}

/* Counts a call without a time. unfinished_call.c relies on the order. */
static void count_only(struct fdri_arena_level *v, struct fdri_arena_row *row)
{
    fdri_atomic_bump_relaxed(&v->presented, 1);
    fdri_atomic_bump_relaxed(&v->filtered, 1);
    fdri_atomic_signal_fence();
    fdri_atomic_bump_relaxed(&row->untimed, 1);
}

void fdri_record_push_untimed(struct fdri_thread *t, struct fdri_arena_level *v, struct fdri_arena_row *row,
                              fdr_region region, uint32_t flags)
{
    v->region = region;
    v->row_off = fdri_thread_offset_of(t, row);
    v->enter_tick = t->loc->last_tick;
    v->child_ticks = 0;
    v->flags = FDRI_ARENA_LEVEL_UNTIMED | flags;
    t->untimed += t->loc->depth < t->depth_limit;
    if (flags & FDRI_ARENA_LEVEL_NTH) fdri_record_ruled_opened(t, v);
    fdri_atomic_signal_fence();
    count_only(v, row);
    fdri_atomic_store_release(&t->loc->depth, t->loc->depth + 1); /* R:frame */
    t->top = v;
}

static void close_gone(struct fdri_thread *t, const struct fdri_record_function *f);

static void set_overflow(struct fdri_thread *t, uint32_t deeper)
{
    t->loc->overflow = deeper;
    fdri_thread_update_soft(t);
}

/* Is there a level for one more call? If not, counts the call as presented and lost. left_out: a rule ignores its
 * leave. place: f's frame on the stack is known, and tells its leave from those of other calls; 0: it does not. */
static bool deep_enough(struct fdri_thread *t, fdr_region region, bool left_out, uint64_t place)
{
    struct fdri_arena_location *l = t->loc;
    if (!l->overflow && (l->depth < fdri_arena_levels_in(l->level_blocks) || fdri_thread_grow_levels(t))) return true;
    /* before the first is counted: levels may be added later */
    if (!l->no_level_depth) l->no_level_depth = (uint16_t)(l->depth + 1);
    fdri_atomic_signal_fence();
    bool first = !l->overflow && !left_out;
    if (first || !(left_out || place)) l->overflow = fdri_refused_enter(t, region);
    if (first) {
        t->overflow_sp = place ? place : FDRI_RECORD_HERE();
        fdri_thread_update_soft(t);
    }
    l->presented_overflow++;
    l->lost_overflow++;
    return false;
}

/* The depth of the newest open call of this region, or of this code address if it is not 0. 0: none is open. */
static uint32_t find_open(const struct fdri_thread *t, fdr_region region, uint64_t address)
{
    for (uint32_t d = t->loc->depth; d; d--) {
        const struct fdri_arena_level *v = fdri_thread_level(t, d);
        if (address ? v->address == address : v->region == region) return d;
    }
    return 0;
}

/* Has the next call of a muted region a time? r: its entry, or NULL. */
static bool muted_has_time(struct fdri_record_ruled *r, const struct fdri_arena_row *row, uint32_t period)
{
    if (!r) return (row->calls + row->untimed) % period == 0;
    if (row->untimed < r->limit) return false;
    r->limit = fdri_record_ruled_next_timed(row, period);
    return true;
}

/* Has an open call of the region a frame? r: the region's entry, or NULL. */
static bool has_frame(const struct fdri_thread *t, const struct fdri_record_ruled *r, fdr_region region)
{
    return r ? fdri_record_ruled_frames(r) != 0 : find_open(t, region, 0) != 0;
}

/* Applies the rule of the region that is entered. True: the call is left out, and is counted. False: *level_flags has
 * the flags of its level. */
static bool ruled(struct fdri_thread *t, struct fdri_arena_level *v, struct fdri_arena_row *row,
                  const struct fdri_record_function *f, fdr_region region, const struct fdri_names_rule *rule,
                  uint32_t *level_flags)
{
    struct fdri_record_ruled *r = fdri_record_ruled_add(t, region, f, rule, row);
    bool timed = false;
    switch (rule->mode) {
    case FDRI_NAMES_RULE_EXCLUDE: break;
    case FDRI_NAMES_RULE_FIRST:
    case FDRI_NAMES_RULE_EVERY: timed = !fdri_record_ruled_skips(row, rule->mode, rule->count); break;
    case FDRI_NAMES_RULE_MUTED: timed = muted_has_time(r, row, rule->count); break;
    case FDRI_NAMES_RULE_MIN: *level_flags |= FDRI_ARENA_LEVEL_RULED; return false;
    case FDRI_NAMES_RULE_COUNTERS: *level_flags |= FDRI_ARENA_LEVEL_EDGES; return false;
    default: return false;
    }
    *level_flags |= FDRI_ARENA_LEVEL_NTH;
    if (timed) return false;
    /* inside of a call of its own region it needs a frame, so that each leave finds its call: ruled_calls.h */
    bool after_jumps = rule->mode == FDRI_NAMES_RULE_MUTED && t->loc->unbalanced;
    if (after_jumps || has_frame(t, r, region)) fdri_record_push_untimed(t, v, row, region, FDRI_ARENA_LEVEL_NTH);
    else count_only(v, row);
    return true;
}

bool fdri_record_enter(struct fdri_thread *t, fdr_region region, const struct fdri_record_function *f, bool live,
                       uint64_t time_ns)
{
    struct fdri_arena_location *l = t->loc;
    if (f && f->frame != FDRI_RECORD_FRAME_UNKNOWN) close_gone(t, f);
    /* If the caller's frame lies above the first call without a level, a longjmp left all calls without a level. */
    if (l->overflow && FDRI_RECORD_HERE() > t->overflow_sp + 4096) set_overflow(t, 0);
    if (region > FDRI_CODEC_ID_MAX) region = 0;
    const struct fdri_names_rule *rule = fdri_names_rule_now(region);
    bool at_entry = f && fdri_names_at_entry(f->address, f->site);
    uint64_t place = at_entry ? fdri_record_self.stack_end - f->frame : 0;
    if (!deep_enough(t, region, rule && rule->mode == FDRI_NAMES_RULE_EXCLUDE, place)) {
        fdri_totals_row(t, FDRI_TOTALS_KEY(FDRI_ARENA_DEF_REGION, region))->untimed++;
        return false;
    }
    /* first: it may need memory, and for that give up rows */
    bool iterates = rule && rule->mode == FDRI_NAMES_RULE_ITERATIONS;
    uint32_t flags = iterates ? fdri_record_iteration_begins(t, region, rule) : 0;
    struct fdri_arena_level *v = fdri_thread_level(t, l->depth + 1);
    struct fdri_arena_row *row = fdri_totals_row(t, FDRI_TOTALS_KEY(FDRI_ARENA_DEF_REGION, region));
    fdri_record_level_place(v, f);
    v->row_off = fdri_thread_offset_of(t, row);
    fdri_atomic_signal_fence(); /* before presented: unfinished_call.c */
    if (f) fdri_names_cache_add(t, f, region, row, rule);
    if (FDRI_UNLIKELY(rule) && ruled(t, v, row, f, region, rule, &flags)) return false;
    if (FDRI_UNLIKELY(t->ruled) && !(flags & FDRI_ARENA_LEVEL_NTH)) fdri_record_ruled_forget(t, region, f);
    if (FDRI_UNLIKELY(t->walk.block)) fdri_epoch_enters(t, row);
    if (l->depth >= t->depth_limit || l->pause) {
        fdri_record_push_untimed(t, v, row, region, flags & FDRI_ARENA_LEVEL_NTH);
        return false;
    }
    uint64_t tick = live ? fdri_thread_clamp_live(t, fdri_thread_tick_live(t)) : fdri_thread_tick_at(t, time_ns);
    if (FDRI_UNLIKELY(l->flags & FDRI_ARENA_LOCATION_STOPPED)) {
        flags |= FDRI_ARENA_LEVEL_SETTLED;
        fdri_atomic_bump_relaxed(&v->reduced_gate, 1);
    }
    if (FDRI_UNLIKELY(t->pinning_due)) fdri_aside(t, tick);
    flags |= ordinal_flag(t, v, tick);
    fdri_record_push(t, l, v, l->depth, fdri_thread_offset_of(t, row), region, flags, tick);
    if (flags & FDRI_ARENA_LEVEL_NTH) fdri_record_ruled_opened(t, v);
    l->last_tick = tick;
    return true;
}

/* Closes the top call v at this depth: with or without a time, under a rule or not. */
static void close_kind(struct fdri_thread *t, struct fdri_arena_level *v, uint32_t depth, uint64_t tick)
{
    struct fdri_arena_location *l = t->loc;
    struct fdri_arena_level *parent = fdri_record_parent_of(t, v, depth);
    if (v->flags & FDRI_ARENA_LEVEL_UNTIMED) {
        if (depth <= t->depth_limit) {
            t->untimed--;
            /* time of calls inside of v that were entered after its pause had ended */
            fdri_atomic_bump_relaxed(&parent->child_ticks, v->child_ticks);
        }
        leave_out(t, v, l->last_tick);
        fdri_record_pop(t, l, parent);
        return;
    }
    if (tick < v->enter_tick) tick = v->enter_tick;
    uint64_t duration = tick - v->enter_tick;
    bool may_go = (v->flags & (FDRI_ARENA_LEVEL_RULED | FDRI_ARENA_LEVEL_NAMED)) == FDRI_ARENA_LEVEL_RULED;
    const struct fdri_names_rule *rule = may_go ? fdri_names_rule_of(v->region) : NULL;
    bool omitted = rule && (uint64_t)((unsigned __int128)duration * t->to_ns >> 32) < rule->min_ns;
    if (v->flags & FDRI_ARENA_LEVEL_ITERATION) omitted = fdri_record_iteration_removed(t, v, depth, duration);
    if (!omitted && !(v->flags & FDRI_ARENA_LEVEL_SETTLED)) {
        fdri_record_close_top(t, l, v, depth, tick);
        return;
    }
    add_totals(t, t->base, v, parent, duration);
    if (omitted && !(v->flags & FDRI_ARENA_LEVEL_SETTLED)) fdri_atomic_bump_relaxed(&v->filtered, 1);
    leave_out(t, v, tick);
    fdri_record_pop(t, l, parent);
}

void fdri_record_close_flagged(struct fdri_thread *t, uint64_t tick)
{
    struct fdri_arena_level *v = t->top;
    uint32_t depth = t->loc->depth;
    close_kind(t, v, depth, tick);
    if (FDRI_UNLIKELY(v->flags & FDRI_ARENA_LEVEL_NTH)) fdri_record_ruled_closed(t, v);
    if (FDRI_UNLIKELY(v->flags & FDRI_ARENA_LEVEL_MARKED)) fdri_record_rewind_ended(t, v, depth, tick);
}

/* Closes the calls from depth `from` on, outermost last. All but the one at `from` have no leave of their own. */
static void close_from(struct fdri_thread *t, uint32_t from, uint64_t tick)
{
    struct fdri_arena_location *l = t->loc;
    if (!l->unbalanced && l->depth > from) fdri_record_ruled_jumped(t);
    l->unbalanced += l->depth - from;
    l->last_tick = tick; /* first: an epoch may end in the loop, and must contain these calls */
    while (l->depth >= from) fdri_record_close_flagged(t, tick);
}

/* The time at which the calls from depth `from` on end. The clock is read only if one of them has a time. */
static uint64_t end_of(struct fdri_thread *t, uint32_t from, bool live, uint64_t time_ns)
{
    while (from <= t->loc->depth && fdri_thread_level(t, from)->flags & FDRI_ARENA_LEVEL_UNTIMED) from++;
    if (from > t->loc->depth) return t->loc->last_tick;
    return live ? fdri_thread_clamp_live(t, fdri_thread_tick_live(t)) : fdri_thread_tick_at(t, time_ns);
}

/* f is entered: closes the open calls that a longjmp must have left. */
static void close_gone(struct fdri_thread *t, const struct fdri_record_function *f)
{
    struct fdri_arena_location *l = t->loc;
    uint32_t from = fdri_jumps_first_abandoned(t, f);
    if (!from) return;
    if (l->overflow) set_overflow(t, 0);
    if (!l->unbalanced) fdri_record_ruled_jumped(t);
    l->unbalanced++;
    close_from(t, from, end_of(t, from, true, 0));
}

void fdri_record_close_all(struct fdri_thread *t, uint64_t tick)
{
    struct fdri_arena_location *l = t->loc;
    if (l->overflow) set_overflow(t, 0);
    if (!l->depth) return;
    l->unbalanced++;
    close_from(t, 1, fdri_bits_max(tick, l->last_tick));
}

/* May this region have calls that have no frame, because its rule leaves them out or it was muted? */
static bool may_lack_frames(fdr_region region)
{
    const struct fdri_names_rule *rule = fdri_names_rule_of(region);
    if (!rule) return fdri_names_was_muted(region);
    return rule->mode != FDRI_NAMES_RULE_MIN && !fdri_names_rule_records_all(rule);
}

/* Calls without a level are open. True: this leave belongs to one of them, or to no call at all. Otherwise it belongs
 * to a call around them, which a longjmp reached without their leaves: then they have ended. */
static bool leaves_refused(struct fdri_thread *t, fdr_region region, uint64_t address)
{
    struct fdri_arena_location *l = t->loc;
    if (FDRI_RECORD_HERE() <= t->overflow_sp + 4096) {
        uint32_t left = fdri_refused_leave(t, region);
        bool theirs = left < l->overflow;
        if (theirs) set_overflow(t, left);
        else if (!find_open(t, region, address)) l->stray_leaves += !may_lack_frames(region);
        else set_overflow(t, 0);
        return theirs || l->overflow;
    }
    set_overflow(t, 0);
    return false;
}

void fdri_record_leave(struct fdri_thread *t, fdr_region region, uint64_t address, bool live, uint64_t time_ns)
{
    struct fdri_arena_location *l = t->loc;
    if (region > FDRI_CODEC_ID_MAX) region = 0;
    if (l->overflow && leaves_refused(t, region, address)) return;
    uint32_t found = find_open(t, region, address);
    if (found) close_from(t, found, end_of(t, found, live, time_ns));
    else l->stray_leaves += !may_lack_frames(region);
}

/* The outermost call without a level has ended if the frame is its own, or one around it. */
void fdri_record_leave_frame(struct fdri_thread *t, uint64_t frame)
{
    uint32_t depth = t->loc->depth;
    if (t->loc->overflow && fdri_record_self.stack_end - frame >= t->overflow_sp) set_overflow(t, 0);
    (void)fdri_jumps_is_own_frame(frame); /* from now on, try_call.c knows it */
    while (depth && !fdri_record_is_top(fdri_thread_level(t, depth), 0, 0, frame, fdri_thread_level(t, depth)->flags))
        depth--;
    if (depth) close_from(t, depth, end_of(t, depth, true, 0));
}
