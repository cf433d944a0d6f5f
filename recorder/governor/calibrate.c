/* SPDX-License-Identifier: MIT */
/* What a call costs on this machine. fdr's own thread cannot record calls of its own without showing them. So it times
 * the floor of all recorders, two readings of the clock and two stores, and multiplies by ratios. They are those of
 * costly calls: of 300 functions in random order, whose records cannot be predicted (benchmarks, part overhead). In a
 * loop a call costs a third of that. */
#include <stdint.h>
#include <time.h>

#include "base/atomic.h"
#include "base/clock.h"
#include "recorder/governor/governor.h"
#include "recorder/recording.h"

enum { BATCHES = 8, CALLS = 500 };
static const double recorded_floors = 3.5, muted_floors = 0.5;

static uint64_t read_clock(void)
{
    return fdri_life_recording.ticks ? fdri_clock_ticks() : fdri_clock_ns(CLOCK_MONOTONIC);
}

static uint64_t record[2];

static uint64_t floor_batch(void)
{
    uint64_t began = fdri_clock_ns(CLOCK_MONOTONIC);
    for (int i = 0; i < CALLS; i++) {
        fdri_atomic_store_relaxed(&record[0], read_clock());
        fdri_atomic_store_relaxed(&record[1], read_clock());
    }
    return fdri_clock_ns(CLOCK_MONOTONIC) - began;
}

struct fdri_governor_cost fdri_governor_calibrate(void)
{
    uint64_t least = UINT64_MAX;
    for (int i = 0; i < BATCHES; i++) {
        uint64_t ns = floor_batch();
        if (ns < least) least = ns;
    }
    double floor_ns = (double)least / CALLS;
    return (struct fdri_governor_cost){.recorded_ns = recorded_floors * floor_ns, .muted_ns = muted_floors * floor_ns};
}
