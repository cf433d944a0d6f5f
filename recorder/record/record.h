/* SPDX-License-Identifier: MIT */
/* The way of a call: enter and leave, points, samples, rewind.
 *
 *   call.c             enter and leave                    call_slow.c        the same, all that is rare
 *   shadow_stack.h     the open calls                     point.c            events without duration
 *   clock_step.c       a clock that steps back            rewind.c           forget an iteration
 *   sample.c           samples, thinned by powers of two  sample_stream.c    streams begin and end
 *   counter_reading.c  readings of counters, thinned likewise
 *
 * Neighbours: thread/ brackets the operation, totals/ counts, memory/ finds room for the record. */
#ifndef FDRI_RECORDER_RECORD_RECORD_H
#define FDRI_RECORDER_RECORD_RECORD_H

#include <fdr/fdr.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/bits.h"
#include "format/arena/arena.h"
#include "recorder/thread/thread_state.h"

/* The clock stands at `tick`, before the location's newest event: the event's tick, and from now on the location's
 * clock. */
uint64_t fdri_record_clock_stepped_back(struct fdri_thread *t, uint64_t tick);
static inline uint64_t fdri_record_clamp_live(struct fdri_thread *t, uint64_t tick)
{
    return FDRI_LIKELY(tick >= t->loc->last_tick) ? tick : fdri_record_clock_stepped_back(t, tick);
}
uint64_t fdri_record_tick_now(void); /* full ticks of the recording's clock */
/* Makes the offset the whole recording has now the location's. */
void fdri_record_clock_adopt(struct fdri_thread *t);

/* A function that is entered, as the compiler's hook tells. */
struct fdri_record_function {
    uint64_t address, frame, caller, site; /* as in struct fdri_arena_level; of caller the complement */
    uint64_t upper;                        /* where the frame ends that begins at `frame`; not less than it really is */
};
#define FDRI_RECORD_FRAME_UNKNOWN UINT64_MAX /* frame: nobody told, nor the two behind it */
/* f: NULL where the region came by its id. True: a call is open that is not only counted. */
bool fdri_record_enter(struct fdri_thread *t, fdr_region region, const struct fdri_record_function *f, bool live,
                       uint64_t time_ns);
void fdri_record_leave(struct fdri_thread *t, fdr_region region, uint64_t address, bool live, uint64_t time_ns);

/* Accounts and partitions of points at that depth, made where there are none; NULL: no room. */
struct fdri_arena_level_points *fdri_record_points_of(struct fdri_thread *t, uint32_t depth);

/* The depth of a reading, made where it is not there yet; 0: it is an event like others. */
uint32_t fdri_record_reading_depth(struct fdri_thread *t, uint64_t before, uint64_t number);
/* Is a partition one of readings? They are thinned from the lowest level up. */
static inline bool fdri_record_is_reading(const struct fdri_arena_location *l, uint32_t class_, uint32_t depth)
{
    return class_ == FDRI_ARENA_CLASS_USER && depth && l->flags & FDRI_ARENA_LOCATION_READINGS;
}

/* The call of level v, at that depth, has ended: one with FDRI_ARENA_LEVEL_MARKED. */
void fdri_record_rewind_ended(struct fdri_thread *t, const struct fdri_arena_level *v, uint32_t depth, uint64_t tick);
void fdri_record_rewind_left(struct fdri_thread *t); /* an operation was left by longjmp */
void fdri_record_rewind_release(struct fdri_thread *t);
/* So many records of p were taken away. */
void fdri_record_rewind_account(struct fdri_thread *t, const struct fdri_arena_part *p, uint64_t forgotten);
/* Calls that began in this tick and are open were numbered after some that may be gone: their records say their
 * number. */
void fdri_record_number_open(struct fdri_thread *t);

uint32_t fdri_record_sample_bins_due(void); /* bins of the samples' share that are not theirs yet: not for others */

#endif
