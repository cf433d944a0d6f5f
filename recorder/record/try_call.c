/* SPDX-License-Identifier: MIT */
/* Enter and leave for hooks that gcc places at the first instruction and before the return of a function. There
 * arguments and results are still in registers, and the assembler of the hooks keeps the general ones only. So this
 * file is compiled without vector registers, as are the few that it calls (CMakeLists.txt). It leaves what is rare to
 * functions of call.c, which the hooks then call with all registers kept.
 *
 * A leave does not say which function it ends, but where the return address lies on the stack, as the enter did. So it
 * finds its call even if rules leave out others in between, or jumps have left some.
 *
 * Each hook first does the work for a call that a rule leaves out. This part saves no register and reads no clock. The
 * rest is in functions of its own, because it needs more registers. */
#include <fdr/fdr.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/atomic.h"
#include "base/bits.h"
#include "base/clock.h"
#include "format/arena/arena.h"
#include "recorder/names/names.h"
#include "recorder/names/region_rules.h"
#include "recorder/record/call_fast.h"
#include "recorder/record/record.h"
#include "recorder/record/rule_table.h"
#include "recorder/record/ruled_calls.h"
#include "recorder/record/shadow_stack.h"
#include "recorder/thread/arena_place.h"
#include "recorder/thread/thread_state.h"

/* Enters a function that is in this thread's cache, and whose frame is below that of the newest call with a frame. */
static inline __attribute__((always_inline)) bool enter_known(struct fdri_thread *t,
                                                              const struct fdri_record_function *f, uint32_t flags)
{
    uint64_t key = flags ? f->address | FDRI_NAMES_CACHED_RULED : f->address;
    struct fdri_arena_location *l = t->loc;
    if (FDRI_UNLIKELY(l->busy || t->address_cache_version != fdri_atomic_load_relaxed(&fdri_names_address_version)))
        return false;
    fdri_record_mark_busy(l);
    /* after the mark: before it a handler may leave calls open */
    if (FDRI_UNLIKELY(l->depth >= t->slow_depth)) return fdri_record_not_busy(l);
    uint64_t tick = fdri_clock_ticks();
    const struct fdri_names_cached *k = fdri_names_cache_find(t, key);
    if (FDRI_UNLIKELY(k->address != key || tick < l->last_tick)) return fdri_record_not_busy(l);
    uint32_t depth = l->depth;
    const struct fdri_arena_level *newest = fdri_record_newest_function(t, t->top, &depth);
    if (FDRI_UNLIKELY(f->frame - FDRI_NAMES_LEAST_FRAME < newest->frame)) return fdri_record_not_busy(l);
    fdri_record_push_known(t, l, k, f, flags, tick);
    return true;
}

static inline __attribute__((always_inline)) uint64_t address_of(const void *site)
{
    return (uint64_t)(uintptr_t)site - 1;
}

static inline __attribute__((always_inline)) struct fdri_record_function
function_of(const struct fdri_thread *t, const void *site, const void *caller, const void *pointer)
{
    return (struct fdri_record_function){.address = address_of(site),
                                         .frame = t->stack_end - (uint64_t)(uintptr_t)pointer,
                                         .caller = ~(uint64_t)(uintptr_t)caller,
                                         .site = (uint64_t)(uintptr_t)site};
}

/* For a function in the thread's table of rules: leaves its call out, or enters it. */
static FDRI_NOINLINE int enter_ruled(const void *site, const void *caller, const void *pointer)
{
    struct fdri_thread *t = &fdri_record_self;
    const struct fdri_record_function f = function_of(t, site, caller, pointer);
    return fdri_record_ruled_leave_out(t, 0, &f) || enter_known(t, &f, FDRI_ARENA_LEVEL_RULED);
}

static FDRI_NOINLINE int enter(const void *site, const void *caller, const void *pointer)
{
    struct fdri_thread *t = &fdri_record_self;
    const struct fdri_record_function f = function_of(t, site, caller, pointer);
    return FDRI_LIKELY(enter_known(t, &f, 0)) || fdri_record_count_known(t, &f);
}

int fdr_try_enter_(const void *site, const void *caller, const void *pointer)
{
    struct fdri_thread *t = &fdri_record_self;
    uint32_t on = fdri_atomic_load_relaxed(&fdr_switch_.on);
    if (FDRI_UNLIKELY(!on)) return true;
    if (FDRI_LIKELY(t->unruled == on)) return enter(site, caller, pointer);
    if (t->recording != on) return false;
    enum fdri_record_ruled_result result = fdri_record_ruled_exclude(t, address_of(site));
    if (result == FDRI_RECORD_RULED_DONE) return true;
    return result == FDRI_RECORD_RULED_OTHER ? enter_ruled(site, caller, pointer) : enter(site, caller, pointer);
}

/* Stores a record that is spelled out, and ends the call. Work that is due waits for fdr_leave_frame_. */
static FDRI_NOINLINE void spell(struct fdri_thread *t, struct fdri_arena_part *p, uint64_t gap, uint64_t tick)
{
    fdri_record_spell_out(t, p, gap, tick);
    if (FDRI_UNLIKELY(t->mutes_seen != fdri_atomic_load_relaxed(&fdri_names_mutes_version)))
        t->deferred |= FDRI_LATER_ADOPT;
}

/* Values that fdr_try_leave_ returns. Every other one is the tick of a leave that fdr_leave_frame_ must complete; the
 * location is busy until then. A second reading of the clock would be later, and no call would ever be the shortest. */
enum { DONE = 0, NOT_DONE = 1 };

static inline __attribute__((always_inline)) uint64_t leave(struct fdri_thread *t, uint64_t frame, uint32_t shift,
                                                            uint32_t flags, uint64_t min_ticks)
{
    uint64_t tick;
    enum fdri_record_leave_result result = fdri_record_leave_fast(t, 0, 0, frame, shift, flags, min_ticks, spell,
                                                                  &tick);
    if (FDRI_LIKELY(result == FDRI_RECORD_LEAVE_DONE)) return DONE;
    return result == FDRI_RECORD_LEAVE_REST ? tick : NOT_DONE;
}

/* Does this frame belong to no open call? A rule leaves the call out, or it began before the recording did. Or a part
 * of a function returns that only passes on its arguments. On the thread's own stack, frames of later calls lie below
 * those of earlier ones. */
static bool is_of_no_call(struct fdri_thread *t, uint64_t frame)
{
    uint32_t depth = t->loc->depth;
    if (t->loc->busy || !t->kept_levels) return false;
    return fdri_record_newest_function(t, t->top, &depth)->frame < frame && frame - 1 < t->stack_bytes;
}

/* The call has a rule, or the location's unit of time is not one tick. */
static FDRI_NOINLINE uint64_t leave_ruled_or_rounded(struct fdri_thread *t, uint64_t frame, uint32_t on)
{
    bool quick = t->exact == on || t->rounded_recording == on;
    if (quick && t->ruled && fdri_record_is_top(t->top, 0, 0, frame, FDRI_ARENA_LEVEL_RULED)) {
        uint64_t key = fdri_record_ruled_key(0, t->top->address);
        const struct fdri_record_ruled *r = fdri_record_ruled_find(t, key);
        uint64_t limit = r->limit;
        fdri_atomic_signal_fence();
        return fdri_record_ruled_is(t, r, key) ? leave(t, frame, t->shift, FDRI_ARENA_LEVEL_RULED, limit) : NOT_DONE;
    }
    return t->rounded_recording == on ? leave(t, frame, t->shift, 0, t->min_ticks) : NOT_DONE;
}

static uint64_t leave_other(struct fdri_thread *t, uint64_t frame, uint32_t on)
{
    if (t->recording != on || is_of_no_call(t, frame)) return DONE;
    return leave_ruled_or_rounded(t, frame, on);
}

/* The call at the top has this frame, and a time of which a tick is the unit. */
static FDRI_NOINLINE uint64_t leave_top(struct fdri_thread *t, uint64_t frame, uint32_t on)
{
    if (FDRI_UNLIKELY(t->deferred)) return NOT_DONE;
    if (FDRI_UNLIKELY(t->loc->depth > t->depth_limit)) {
        if (fdri_record_count_leave(t, 0, 0, frame, false)) return DONE;
        return leave_other(t, frame, on);
    }
    uint64_t result = leave(t, frame, 0, 0, t->min_ticks);
    return FDRI_UNLIKELY(result == NOT_DONE) ? leave_other(t, frame, on) : result;
}

uint64_t fdr_try_leave_(const void *pointer)
{
    struct fdri_thread *t = &fdri_record_self;
    uint32_t on = fdri_atomic_load_relaxed(&fdr_switch_.on);
    if (FDRI_UNLIKELY(!on)) return DONE;
    uint64_t frame = t->stack_end - (uint64_t)(uintptr_t)pointer;
    if (!frame) __builtin_unreachable();
    if (FDRI_LIKELY(t->exact == on)) {
        if (FDRI_LIKELY(t->top->frame == frame)) return leave_top(t, frame, on);
        if (FDRI_UNLIKELY(t->deferred)) return NOT_DONE;
    }
    return leave_other(t, frame, on);
}
