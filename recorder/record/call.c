/* SPDX-License-Identifier: MIT */
/* Enter and leave: the fast path of every call; rare cases are in call_slow.c.
 *
 * Enter pushes (region, time) on the shadow stack and counts the call as presented; nothing is encoded. Leave pops the
 * call, computes the duration and adds it to the totals. Only then it decides whether to store one call record.
 *
 * Store order of enter: level, then depth. A handler or a kill in between finds no region that was never entered.
 * Store order of leave: record, then depth. In between the call has a record and is open; a reader takes the record. */
#define FDR_NO_INLINE
#include <assert.h>
#include <fdr/fdr.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/atomic.h"
#include "base/bits.h"
#include "base/clock.h"
#include "bins/pressure/bins_pressure.h"
#include "format/arena/arena.h"
#include "format/codec/encode.h"
#include "format/codec/foreseen_call.h"
#include "format/codec/prediction.h"
#include "format/codec/record_codec.h"
#include "recorder/jumps/jumps.h"
#include "recorder/recording.h"
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
#include "sampler/counters/counter_view.h"

__thread struct fdri_thread fdri_record_self;
__thread struct fdri_thread fdri_record_lane;

static inline bool must_adopt(const struct fdri_thread *t)
{
    return FDRI_UNLIKELY(t->mutes_seen != fdri_atomic_load_relaxed(&fdri_names_mutes_version));
}

static void adopt(struct fdri_thread *t)
{
    if (must_adopt(t)) fdri_record_adopt_mutes(t);
}

static FDRI_NOINLINE void adopt_between_calls(void)
{
    struct fdri_thread *t = fdri_thread_begin(FDRI_THREAD_NO_EVENT);
    if (!t) return;
    adopt(t);
    fdri_thread_end(t);
}

static FDRI_NOINLINE void enter_slow(fdr_region region, const struct fdri_record_function *f, bool live,
                                     uint64_t time_ns)
{
    struct fdri_thread *t = fdri_thread_begin(live ? FDRI_THREAD_LIVE : FDRI_THREAD_NS);
    if (!t) return;
    adopt(t);
    bool opened = fdri_record_enter(t, region, f, live, time_ns);
    uint32_t depth = t->loc->depth;
    bool edges = live && opened && t->top->flags & FDRI_ARENA_LEVEL_EDGES && t == &fdri_record_self;
    fdri_thread_end(t);
    if (edges) fdri_counters_edge_enter(region, depth);
}

/* Reads counters for the call that is about to end. Their record belongs inside of the call, so the call must still be
 * open. */
static void edge_before_leave(fdr_region region, uint64_t address, uint64_t frame)
{
    struct fdri_thread *t = &fdri_record_self;
    if (!t->recording || t->recording != fdri_atomic_load_relaxed(&fdr_switch_.on) || t->loc->busy) return;
    const struct fdri_arena_level *v = t->top;
    bool mine = fdri_record_is_top(v, region, address, frame, v->flags);
    if (v->flags & FDRI_ARENA_LEVEL_EDGES && mine) fdri_counters_edge_leave(v->region, t->loc->depth);
}

static FDRI_NOINLINE void leave_slow(fdr_region region, uint64_t address, bool live, uint64_t time_ns)
{
    if (live) edge_before_leave(region, address, 0);
    struct fdri_thread *t = fdri_thread_begin(live ? FDRI_THREAD_LIVE : FDRI_THREAD_NS);
    if (!t) return;
    fdri_record_leave(t, region, address, live, time_ns);
    fdri_thread_end(t);
}

/* Completes a leave that fdri_record_leave_fast returned as FDRI_RECORD_LEAVE_REST, with the tick it took. Uses data
 * that all threads share, so it must not run after fdr_finalize. Either fdr_finalize sees the busy mark, or the load
 * here sees the switch off. */
FDRI_NOINLINE void fdri_record_leave_rest(struct fdri_thread *t, uint64_t tick)
{
    struct fdri_arena_location *l = t->loc;
    if (FDRI_UNLIKELY(fdri_atomic_load_relaxed(&fdr_switch_.on) != t->recording)) {
        fdri_record_not_busy(l);
        return;
    }
    fdri_stay_awake(&fdri_life_recording.arena, l);
    fdri_totals_count_pending(t->base, l);
    tick = fdri_thread_clamp_live(t, tick);
    l->last_tick = tick;
    if (FDRI_UNLIKELY(t->top->flags)) fdri_record_close_flagged(t, tick);
    else fdri_record_close_top(t, l, t->top, l->depth, tick);
    adopt(t);
    fdri_thread_end(t);
}

/* Stores a record that is spelled out, and ends the call. That is about one record of five, one of 64 at the least. So
 * this function also does the deferred work of opening bins, and looks whether other regions are muted now. */
FDRI_NOINLINE void fdri_record_store_spelled(struct fdri_thread *t, struct fdri_arena_part *p, uint64_t gap,
                                             uint64_t tick)
{
    fdri_record_spell_out(t, p, gap, tick);
    if (FDRI_UNLIKELY(t->deferred)) fdri_do_later();
    if (must_adopt(t)) adopt_between_calls();
}

static FDRI_NOINLINE void leave_address_slow(uint64_t address)
{
    if (fdri_thread_attached()) leave_slow(fdri_names_address_region(address), address, true, 0);
}

static FDRI_NOINLINE void leave_by_name(fdr_region region, uint64_t address)
{
    if (address) leave_address_slow(address);
    else leave_slow(region, 0, true, 0);
}

/* A leave that must not take the fastest path. timed: the region has a rule `min`, which stores calls of at least
 * min_ticks. */
static FDRI_NOINLINE void leave_framed(fdr_region region, uint64_t address, uint32_t on, bool timed, uint64_t min_ticks)
{
    struct fdri_thread *t = &fdri_record_self;
    uint64_t tick;
    enum fdri_record_leave_result result = FDRI_RECORD_LEAVE_NOT_MINE;
    if (t->exact == on || t->rounded_recording == on) {
        if (FDRI_UNLIKELY(t->loc->depth > t->depth_limit) && fdri_record_count_leave(t, region, address, 0, true))
            return;
        result = fdri_record_leave_fast(t, region, address, 0, t->shift, timed ? FDRI_ARENA_LEVEL_RULED : 0,
                                        timed ? min_ticks : t->min_ticks, fdri_record_store_spelled, &tick);
    }
    if (result == FDRI_RECORD_LEAVE_REST) fdri_record_leave_rest(t, tick);
    else if (result == FDRI_RECORD_LEAVE_NOT_MINE) leave_by_name(region, address);
}

/* This thread has regions with rules, or its unit of time is not one tick. The key of an entry is compared last: a
 * handler may change the entry. */
static FDRI_NOINLINE void leave_other(fdr_region region, uint64_t address, uint32_t on)
{
    const struct fdri_thread *t = &fdri_record_self;
    uint64_t min_ticks = 0;
    bool timed = false;
    if (FDRI_LIKELY(t->ruled && t->recording == on)) {
        uint64_t key = fdri_record_ruled_key(region, address);
        const struct fdri_record_ruled *r = fdri_record_ruled_find(t, key);
        uint32_t mode = r->mode;
        uint32_t frames = fdri_record_ruled_frames(r);
        min_ticks = r->limit;
        fdri_atomic_signal_fence();
        if (FDRI_LIKELY(fdri_record_ruled_is(t, r, key))) {
            if (FDRI_LIKELY(fdri_record_ruled_leave_ignored(t, mode, frames))) return;
            if (frames && fdri_record_ruled_leave(&fdri_record_self, region, address)) return;
            timed = mode == FDRI_NAMES_RULE_MIN;
        }
    }
    leave_framed(region, address, on, timed, min_ticks);
}

static FDRI_NOINLINE void enter_deep_far(fdr_region region)
{
    if (!fdri_record_count_enter(&fdri_record_self, region, NULL, true)) enter_slow(region, NULL, true, 0);
}

static FDRI_NOINLINE void enter_deep(fdr_region region)
{
    if (FDRI_UNLIKELY(!fdri_record_count_enter(&fdri_record_self, region, NULL, false))) enter_deep_far(region);
}

static FDRI_NOINLINE void leave_deep_far(fdr_region region, uint64_t address)
{
    if (!fdri_record_count_leave(&fdri_record_self, region, address, 0, true)) leave_by_name(region, address);
}

static FDRI_NOINLINE void leave_deep(fdr_region region)
{
    if (FDRI_UNLIKELY(!fdri_record_count_leave(&fdri_record_self, region, 0, 0, false))) leave_deep_far(region, 0);
}

static FDRI_NOINLINE void leave_address_deep(uint64_t address)
{
    if (FDRI_UNLIKELY(!fdri_record_count_leave(&fdri_record_self, 0, address, 0, false))) leave_deep_far(0, address);
}

static FDRI_NOINLINE void enter_unruled(fdr_region region)
{
    struct fdri_thread *t = &fdri_record_self;
    if (FDRI_UNLIKELY(t->loc->depth >= t->slow_depth)) enter_deep(region);
    else if (FDRI_UNLIKELY(!fdri_record_enter_fast(t, region, 0, 0))) enter_slow(region, NULL, true, 0);
}

/* The region is known by its rule to the thread's table. */
static FDRI_NOINLINE void enter_ruled(fdr_region region)
{
    struct fdri_thread *t = &fdri_record_self;
    if (fdri_record_ruled_leave_out(t, region, NULL)) return;
    const struct fdri_names_rule *rule = fdri_names_rule_of(region);
    bool timed = rule && rule->mode == FDRI_NAMES_RULE_MIN && t->loc->depth < t->slow_depth;
    if (!timed || !fdri_record_enter_fast(t, region, FDRI_ARENA_ROW_GATED, FDRI_ARENA_LEVEL_RULED))
        enter_slow(region, NULL, true, 0);
}

/* The functions above and below are reached by tail calls before anything else, so their callers save no registers. A
 * thread whose first event this is, or that has regions with rules. */
static FDRI_NOINLINE void enter_other(fdr_region region, uint32_t on)
{
    struct fdri_thread *t = &fdri_record_self;
    if (FDRI_UNLIKELY(t->recording != on)) {
        enter_slow(region, NULL, true, 0);
        return;
    }
    enum fdri_record_ruled_result result = fdri_record_ruled_exclude(t, fdri_record_ruled_key(region, 0));
    if (result == FDRI_RECORD_RULED_NONE) enter_unruled(region);
    else if (FDRI_UNLIKELY(result == FDRI_RECORD_RULED_OTHER)) enter_ruled(region);
}

void fdr_enter_(fdr_region region, uint32_t on)
{
    struct fdri_thread *t = &fdri_record_self;
    if (FDRI_UNLIKELY(t->unruled != on)) enter_other(region, on);
    else if (FDRI_UNLIKELY(t->loc->depth >= t->slow_depth)) enter_deep(region);
    else if (FDRI_UNLIKELY(!fdri_record_enter_fast(t, region, 0, 0))) enter_slow(region, NULL, true, 0);
}

void fdr_leave_(fdr_region region, uint32_t on)
{
    struct fdri_thread *t = &fdri_record_self;
    uint64_t tick;
    if (FDRI_UNLIKELY(t->unrounded_recording != on)) {
        leave_other(region, 0, on);
        return;
    }
    if (FDRI_UNLIKELY(t->loc->depth > t->depth_limit)) {
        leave_deep(region);
        return;
    }
    enum fdri_record_leave_result result = fdri_record_leave_fast(t, region, 0, 0, 0, 0, t->min_ticks,
                                                                  fdri_record_store_spelled, &tick);
    if (result == FDRI_RECORD_LEAVE_REST) fdri_record_leave_rest(t, tick);
    else if (result == FDRI_RECORD_LEAVE_NOT_MINE) leave_slow(region, 0, true, 0);
}

/* The function and its place on the stack. The callers pass four words, not the structure, and by tail calls: so the
 * usual case keeps them in registers. */
static struct fdri_record_function function_of(uint64_t address, uint64_t frame, uint64_t caller, uint64_t site)
{
    struct fdri_record_function f = {address, frame, caller, site, frame};
    if (frame != FDRI_RECORD_FRAME_UNKNOWN) f.upper = fdri_jumps_frame_upper(&f);
    return f;
}

static FDRI_NOINLINE void enter_uncached(uint64_t address, uint64_t frame, uint64_t caller, uint64_t site)
{
    struct fdri_thread *t = &fdri_record_self;
    const struct fdri_record_function f = function_of(address, frame, caller, site);
    fdr_region region = fdri_names_function_region(address, site);
    bool gone = frame != FDRI_RECORD_FRAME_UNKNOWN && FDRI_UNLIKELY(!fdri_jumps_is_below(t, &f)) &&
                fdri_jumps_first_abandoned(t, &f);
    /* which closes the abandoned calls */
    if (gone || !fdri_record_count_enter(t, region, &f, true)) enter_slow(region, &f, true, 0);
}

static FDRI_NOINLINE void enter_unknown(uint64_t address, uint64_t frame, uint64_t caller, uint64_t site)
{
    const struct fdri_record_function f = {address, frame, caller, site, 0};
    if (!fdri_record_count_known(&fdri_record_self, &f)) enter_uncached(address, frame, caller, site);
}

/* f's frame overlaps that of the newest call, and f was not plainly inlined into it. Either a longjmp left the newest
 * call, or both are parts of one function. */
static FDRI_NOINLINE void enter_same_place(uint64_t address, uint64_t frame, uint64_t caller, uint64_t site)
{
    struct fdri_thread *t = &fdri_record_self;
    const struct fdri_record_function f = function_of(address, frame, caller, site);
    if (FDRI_UNLIKELY(!fdri_jumps_is_below(t, &f)) || !fdri_record_enter_known(t, f, false, 0))
        enter_unknown(address, frame, caller, site);
}

/* Enters a function of the cache whose frame is not below that of the newest call, or whose newest call has no frame.
 * The location is busy, and `tick` is read. */
FDRI_NOINLINE void fdri_record_enter_beside(uint64_t address, uint64_t frame, uint64_t caller, uint64_t site,
                                            uint64_t tick, const struct fdri_names_cached *k)
{
    struct fdri_thread *t = &fdri_record_self;
    struct fdri_arena_location *l = t->loc;
    const struct fdri_record_function f = {address, frame, caller, site, 0};
    uint64_t bytes = fdri_record_own_bytes(k, site);
    uint32_t depth = l->depth;
    const struct fdri_arena_level *newest = fdri_record_newest_function(t, t->top, &depth);
    if (FDRI_LIKELY(frame - bytes >= newest->frame || fdri_record_is_plain_part(newest, depth, &f, bytes))) {
        fdri_record_push_known(t, l, k, &f, k->address & FDRI_NAMES_CACHED_RULED ? FDRI_ARENA_LEVEL_RULED : 0, tick);
        return;
    }
    fdri_record_not_busy(l);
    enter_same_place(address, frame, caller, site);
}

/* The thread's first event. Attaches first: only threads registered with liburcu may look up an address. */
static FDRI_NOINLINE void enter_first(uint64_t address, uint64_t pointer, uint64_t caller, uint64_t site)
{
    if (fdri_thread_attached())
        enter_unknown(address, pointer ? fdri_record_self.stack_end - pointer : FDRI_RECORD_FRAME_UNKNOWN, ~caller,
                      site);
}

/* A function is entered on a thread that has regions with rules, and is not left out by `exclude`. ruled: it is in the
 * thread's table. */
static FDRI_NOINLINE void enter_by_rule(uint64_t address, uint64_t pointer, uint64_t caller, uint64_t site, bool ruled)
{
    struct fdri_thread *t = &fdri_record_self;
    uint64_t frame = pointer ? t->stack_end - pointer : FDRI_RECORD_FRAME_UNKNOWN;
    struct fdri_record_function f = {address, frame, ~caller, site, 0};
    if (ruled && fdri_record_ruled_leave_out(t, 0, &f)) return;
    if (!fdri_record_enter_known(t, f, pointer != 0, ruled ? FDRI_ARENA_LEVEL_RULED : 0))
        enter_unknown(address, frame, ~caller, site);
}

static FDRI_NOINLINE void enter_other_address(uint64_t address, uint64_t pointer, uint64_t caller, uint64_t site)
{
    struct fdri_thread *t = &fdri_record_self;
    if (FDRI_UNLIKELY(t->recording != fdri_atomic_load_relaxed(&fdr_switch_.on))) {
        enter_first(address, pointer, caller, site);
        return;
    }
    enum fdri_record_ruled_result result = fdri_record_ruled_exclude(t, address);
    if (FDRI_UNLIKELY(result != FDRI_RECORD_RULED_DONE))
        enter_by_rule(address, pointer, caller, site, result == FDRI_RECORD_RULED_OTHER);
}

/* pointer 0: the stack pointer is unknown. */
static inline __attribute__((always_inline)) void enter_address(uint64_t address, uint64_t pointer, uint64_t caller,
                                                                uint64_t site)
{
    struct fdri_thread *t = &fdri_record_self;
    uint32_t on = fdri_atomic_load_relaxed(&fdr_switch_.on);
    if (!on) return;
    if (FDRI_UNLIKELY(t->unruled != on)) {
        enter_other_address(address, pointer, caller, site);
        return;
    }
    uint64_t frame = pointer ? t->stack_end - pointer : FDRI_RECORD_FRAME_UNKNOWN;
    caller = ~caller;
    if (FDRI_UNLIKELY(!fdri_record_enter_known(t, (struct fdri_record_function){address, frame, caller, site, 0},
                                               pointer != 0, 0)))
        enter_unknown(address, frame, caller, site);
}

void fdr_enter_address(const void *function) { enter_address((uint64_t)(uintptr_t)function, 0, 0, 0); }

void fdr_enter_function_(const void *function, const void *caller, const void *pointer, const void *site)
{
    uint64_t sp = (uint64_t)(uintptr_t)pointer;
    if (!sp) __builtin_unreachable();
    enter_address((uint64_t)(uintptr_t)function, sp, (uint64_t)(uintptr_t)caller, (uint64_t)(uintptr_t)site);
}

void fdr_enter_at_entry_(const void *site, const void *caller, const void *pointer)
{
    uint64_t sp = (uint64_t)(uintptr_t)pointer, hook = (uint64_t)(uintptr_t)site;
    if (!sp) __builtin_unreachable();
    enter_address(hook - 1, sp, (uint64_t)(uintptr_t)caller, hook);
}

static FDRI_NOINLINE void leave_frame_slow(uint64_t frame)
{
    edge_before_leave(0, 0, frame);
    struct fdri_thread *t = fdri_thread_begin(FDRI_THREAD_LIVE);
    if (!t) return;
    fdri_record_leave_frame(t, frame);
    fdri_thread_end(t);
}

void fdr_leave_frame_(const void *pointer, uint64_t tried)
{
    struct fdri_thread *t = &fdri_record_self;
    uint32_t on = fdri_atomic_load_relaxed(&fdr_switch_.on);
    uint64_t frame = t->stack_end - (uint64_t)(uintptr_t)pointer, tick = tried;
    if (tried > 1) {
        fdri_record_leave_rest(t, tick);
        return;
    }
    enum fdri_record_leave_result result = FDRI_RECORD_LEAVE_NOT_MINE;
    if (!on || t->recording != on) return; /* no call of this thread is open */
    if (t->deferred) fdri_do_later();
    if (must_adopt(t)) adopt_between_calls();
    if (t->exact == on || t->rounded_recording == on)
        result = fdri_record_leave_fast(t, 0, 0, frame, t->shift, 0, t->min_ticks, fdri_record_store_spelled, &tick);
    if (result == FDRI_RECORD_LEAVE_REST) fdri_record_leave_rest(t, tick);
    else if (result == FDRI_RECORD_LEAVE_NOT_MINE) leave_frame_slow(frame);
}

void fdr_leave_address(const void *function)
{
    struct fdri_thread *t = &fdri_record_self;
    uint32_t on = fdri_atomic_load_relaxed(&fdr_switch_.on);
    uint64_t address = (uint64_t)(uintptr_t)function;
    uint64_t tick;
    if (!on) return;
    if (FDRI_UNLIKELY(t->unrounded_recording != on)) {
        leave_other(0, address, on);
        return;
    }
    if (FDRI_UNLIKELY(t->loc->depth > t->depth_limit)) {
        leave_address_deep(address);
        return;
    }
    enum fdri_record_leave_result result = fdri_record_leave_fast(t, 0, address, 0, 0, 0, t->min_ticks,
                                                                  fdri_record_store_spelled, &tick);
    if (result == FDRI_RECORD_LEAVE_REST) fdri_record_leave_rest(t, tick);
    else if (result == FDRI_RECORD_LEAVE_NOT_MINE) leave_address_slow(address);
}

void fdr_enter(fdr_region region)
{
    uint32_t on = fdri_atomic_load_relaxed(&fdr_switch_.on);
    if (on) fdr_enter_(region, on);
}
void fdr_leave(fdr_region region)
{
    uint32_t on = fdri_atomic_load_relaxed(&fdr_switch_.on);
    if (on) fdr_leave_(region, on);
}
void fdr_enter_at(fdr_region region, uint64_t time_ns)
{
    if (fdri_atomic_load_relaxed(&fdr_switch_.on)) enter_slow(region, NULL, false, time_ns);
}
void fdr_leave_at(fdr_region region, uint64_t time_ns)
{
    if (fdri_atomic_load_relaxed(&fdr_switch_.on)) leave_slow(region, 0, false, time_ns);
}
