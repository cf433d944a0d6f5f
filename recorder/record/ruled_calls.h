/* SPDX-License-Identifier: MIT */
/* The path of calls that a rule leaves out (FDR_FILTER), and of muted regions. It is one look-up in a table of the
 * thread and an exact count, without a clock and a frame on the shadow stack.
 *
 * A call left out has no frame, so its leave must be recognised without one. `first`, `every` and the governor give
 * some calls of a region a frame. A region may also be muted while calls of it are open. While a call of a region has a
 * frame, a call left out inside of it gets one, too, without a time. So the frames decide which call a leave ends.
 * While no call of the region has a frame, a leave has none to end, and is ignored. */
#ifndef FDRI_RECORDER_RECORD_RULED_CALLS_H
#define FDRI_RECORDER_RECORD_RULED_CALLS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/atomic.h"
#include "base/bits.h"
#include "format/arena/arena.h"
#include "recorder/names/names.h"
#include "recorder/names/region_rules.h"
#include "recorder/record/rule_table.h"
#include "recorder/record/call_fast.h"
#include "recorder/thread/arena_place.h"
#include "recorder/thread/thread_state.h"

/* Counts a call of r that its rule leaves out, and ends the operation. The location is busy, and t->ruled_level is the
 * level inside of the top call. unfinished_call.c relies on the order. */
static inline __attribute__((always_inline)) void fdri_record_ruled_count(struct fdri_thread *t,
                                                                          const struct fdri_record_ruled *r)
{
    struct fdri_arena_level *v = t->ruled_level;
    v->row_off = r->row_off;
    fdri_atomic_signal_fence();
    fdri_atomic_bump_relaxed(&v->presented, 1);
    fdri_atomic_bump_relaxed(&v->filtered, 1);
    fdri_atomic_signal_fence();
    fdri_atomic_bump_relaxed(&((struct fdri_arena_row *)fdri_thread_at(t, r->row_off))->untimed, 1);
    fdri_atomic_store_release(&t->loc->busy, 0); /* R:busy */
}

enum fdri_record_ruled_result {
    FDRI_RECORD_RULED_NONE, /* the region has no rule, as far as this thread knows */
    FDRI_RECORD_RULED_DONE, /* the call is left out and counted */
    FDRI_RECORD_RULED_OTHER /* neither, or the fast path may not be taken */
};

/* Counts the call if its region is excluded or muted, and the call left out before it was at the same level. */
static inline __attribute__((always_inline)) enum fdri_record_ruled_result
fdri_record_ruled_exclude(struct fdri_thread *t, uint64_t key)
{
    struct fdri_arena_location *l = t->loc;
    if (FDRI_UNLIKELY(l->busy)) return FDRI_RECORD_RULED_OTHER;
    fdri_record_mark_busy(l); /* first: before it a handler may change the entry */
    const struct fdri_record_ruled *r = fdri_record_ruled_find(t, key);
    if (!fdri_record_ruled_is(t, r, key)) {
        fdri_record_not_busy(l);
        return FDRI_RECORD_RULED_NONE;
    }
    const struct fdri_arena_row *row = fdri_thread_at(t, r->row_off);
    if (FDRI_UNLIKELY(r->framed || t->ruled_around != t->top || row->untimed >= r->limit)) {
        fdri_record_not_busy(l);
        return FDRI_RECORD_RULED_OTHER;
    }
    fdri_record_ruled_count(t, r);
    return FDRI_RECORD_RULED_DONE;
}

/* Counts a call that any rule leaves out. f: the function; NULL: a region entered by its id. False: it is not left out,
 * or the slow path must decide. */
bool fdri_record_ruled_leave_out(struct fdri_thread *t, fdr_region region, const struct fdri_record_function *f);
/* Ends a call left out that has a frame. False: the top call is another one, or the slow path must end it. */
bool fdri_record_ruled_leave(struct fdri_thread *t, fdr_region region, uint64_t address);
/* Does a counting rule leave out the next call? Counts the call. */
bool fdri_record_ruled_skips(struct fdri_arena_row *row, uint32_t mode, uint32_t count);

/* Does a leave of a region with such a rule end a call that has no frame? A handler that interrupts an operation
 * records into the lane, and may have a stored call there. Calls without a level have no frame, but wait for their
 * leaves. */
static inline __attribute__((always_inline)) bool fdri_record_ruled_leave_ignored(const struct fdri_thread *t,
                                                                                  uint32_t mode, uint32_t frames)
{
    if (mode == FDRI_NAMES_RULE_EXCLUDE) return !frames;
    return mode != FDRI_NAMES_RULE_MIN && !frames && t->kept_levels && !t->loc->busy;
}

#endif
