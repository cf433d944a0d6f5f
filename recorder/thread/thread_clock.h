/* SPDX-License-Identifier: MIT */
/* The clock of a location. */
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

#endif
