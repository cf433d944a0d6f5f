/* SPDX-License-Identifier: MIT */
/* The clock of a location, and of the recording. clock_step.c handles a clock that steps back. */
#ifndef FDRI_RECORDER_THREAD_THREAD_CLOCK_H
#define FDRI_RECORDER_THREAD_THREAD_CLOCK_H

#include <stdint.h>

#include "base/bits.h"
#include "base/clock.h"
#include "recorder/thread/thread_state.h"

/* Now, in the location's unit. */
static inline uint64_t fdri_thread_tick_live(const struct fdri_thread *t)
{
    return (FDRI_LIKELY(t->ticks) ? fdri_clock_ticks() : fdri_clock_ns(CLOCK_MONOTONIC)) + t->clock_offset;
}

/* The clock reads `tick`, which lies before the location's newest event. Returns the tick that the event gets; the
 * location may get a new clock offset. */
uint64_t fdri_thread_clock_stepped_back(struct fdri_thread *t, uint64_t tick);
static inline uint64_t fdri_thread_clamp_live(struct fdri_thread *t, uint64_t tick)
{
    return FDRI_LIKELY(tick >= t->loc->last_tick) ? tick : fdri_thread_clock_stepped_back(t, tick);
}
uint64_t fdri_thread_tick_now(void); /* now, in full ticks of the recording's clock */
/* Gives t's location the present clock offset of the recording. */
void fdri_thread_clock_adopt(struct fdri_thread *t);

#endif
