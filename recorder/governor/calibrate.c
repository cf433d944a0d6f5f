/* SPDX-License-Identifier: MIT */
/* The cost of a call on this machine. fdr's own thread cannot record calls of its own without showing them. So it times
 * the floor of all recorders, two readings of the clock and two stores, and multiplies by ratios. They are those of
 * costly calls: of 300 functions in random order, whose records cannot be predicted (benchmarks, part overhead). In a
 * loop a call costs a third of that. */
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "base/atomic.h"
#include "base/clock.h"
#include "recorder/governor/governor.h"
#include "recorder/recording.h"

enum { BATCHES = 8, CALLS = 500 };
static const double recorded_floors = 3.5, muted_floors = 0.5;

static uint64_t record[2];

static uint64_t floor_batch(bool ticks)
{
    uint64_t began = fdri_clock_ns(CLOCK_MONOTONIC);
    for (int i = 0; i < CALLS; i++) {
        fdri_atomic_store_relaxed(&record[0], ticks ? fdri_clock_ticks() : fdri_clock_ns(CLOCK_MONOTONIC));
        fdri_atomic_store_relaxed(&record[1], ticks ? fdri_clock_ticks() : fdri_clock_ns(CLOCK_MONOTONIC));
    }
    return fdri_clock_ns(CLOCK_MONOTONIC) - began;
}

static double floor_ns(bool ticks)
{
    uint64_t least = UINT64_MAX;
    for (int i = 0; i < BATCHES; i++) {
        uint64_t ns = floor_batch(ticks);
        if (ns < least) least = ns;
    }
    return (double)least / CALLS;
}

/* A slower clock makes a recorded call dearer by itself alone. */
struct fdri_governor_cost fdri_governor_calibrate(void)
{
    double own = floor_ns(fdri_life_recording.ticks), unit = FDRI_CLOCK_HAVE_TICKS ? floor_ns(true) : own;
    return (struct fdri_governor_cost){.recorded_ns = recorded_floors * unit + (own > unit ? own - unit : 0),
                                       .muted_ns = muted_floors * unit};
}
