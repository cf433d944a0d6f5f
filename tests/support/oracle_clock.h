/* SPDX-License-Identifier: MIT */
/* Lets the oracle check calls with real times. The recording is told that a tick is a nanosecond, so the test gives the
 * oracle the counter's own readings. */
#ifndef FDRI_TESTS_ORACLE_CLOCK_H
#define FDRI_TESTS_ORACLE_CLOCK_H
#include <stdint.h>

#include "base/bits.h"
#include "format/arena/arena.h"
#include "format/arena/checks.h"
#include "recorder/recording.h"
#include "recorder/thread/thread_state.h"
#include "tests/support/api_fixture.h"

/* Call this before the first event. */
static inline void ticks_are_ns(uint32_t shift)
{
    static const uint64_t edge_ns[3] = {256, 4096, 262144};
    struct fdri_life_recorder *r = &fdri_life_recording;
    struct fdri_arena_superblock *s = r->arena.super;
    r->ticks_per_second = s->ticks_per_second = 1000000000;
    r->tick_to_ns = 1ull << 32;
    r->start.monotonic_ns = r->start.tick;
    s->clock_start.monotonic_ns = s->clock_start.tick;
    s->clock_last = s->clock_start;
    r->shift = s->shift = shift;
    for (int i = 0; i < 3; i++) s->band_edge[i] = fdri_bits_max(edge_ns[i] >> shift, 1);
    fdri_arena_spare_begin(s);
}

/* The time of the newest event. */
static inline uint64_t now(void) { return fdri_record_self.loc->last_tick; }

#endif
