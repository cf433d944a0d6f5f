/* SPDX-License-Identifier: MIT */
/* Handles a clock that steps back.
 *
 * A step of up to 1 ms occurs when a thread moves between processors: the location's time stands still until the clock
 * has caught up. A larger step occurs when a machine was suspended or moved, or a process restored elsewhere. Then the
 * recording gets a new offset. It brings time to where CLOCK_MONOTONIC says it is, and at least to the location's
 * newest event. Each location takes the offset when it meets the step. From then on it cannot use the fast path, which
 * reads the counter without an offset.
 *
 *   time of the recording = reading of the clock + clock_offset, never below the location's newest event
 *
 * Times that the caller gives (_at) change no offset. A time below the location's newest event becomes the time of that
 * event, and so does a later reading of the clock. */
#include <stdbool.h>
#include <stdint.h>

#include "base/atomic.h"
#include "base/bits.h"
#include "base/clock.h"
#include "format/arena/arena.h"
#include "recorder/life/life.h"
#include "recorder/recording.h"
#include "recorder/thread/thread.h"
#include "recorder/thread/thread_clock.h"
#include "recorder/thread/thread_state.h"

enum { STEP_NS = 1000000 };

static uint64_t *shared_offset(void) { return &fdri_life_recording.arena.super->clock_offset; }

uint64_t fdri_thread_tick_now(void)
{
    uint64_t offset = fdri_life_recording.arena.base ? fdri_atomic_load_relaxed(shared_offset()) : 0;
    return (fdri_life_recording.ticks ? fdri_clock_ticks() : fdri_clock_ns(CLOCK_MONOTONIC)) + offset;
}

static void adopt_offset(struct fdri_thread *t, uint64_t offset)
{
    t->clock_offset = offset;
    t->fast_clock = t->ticks && !offset;
}

/* A location that counts in the caller's ns, while the recording counts ticks, has a clock of its own. */
void fdri_thread_clock_adopt(struct fdri_thread *t)
{
    adopt_offset(t, t->ticks == fdri_life_recording.ticks ? fdri_atomic_load_relaxed(shared_offset()) : 0);
}

/* The time of the recording without the step; 0: there is no other clock to compare with. */
static uint64_t expected(void)
{
    const struct fdri_life_recorder *r = &fdri_life_recording;
    if (!r->ticks) return 0;
    return r->start.tick + fdri_life_ns_to_ticks(fdri_clock_ns(CLOCK_MONOTONIC) - r->start.monotonic_ns);
}

static void mark(uint64_t tick, uint64_t back)
{
    struct fdri_arena_superblock *s = fdri_life_recording.arena.super;
    struct fdri_arena_clock_step *step =
        &s->clock_step[fdri_atomic_add_relaxed(&s->clock_steps, 1u) % FDRI_ARENA_CLOCK_STEPS];
    fdri_atomic_store_relaxed(&step->step_ticks, back);
    fdri_atomic_signal_fence();
    fdri_atomic_store_relaxed(&step->tick, tick);
}

/* Gives the recording a new offset and t's location the same. reading: the clock's, without an offset. */
static void anchor(struct fdri_thread *t, uint64_t reading, uint64_t step)
{
    uint64_t last = t->loc->last_tick, shared = fdri_atomic_load_relaxed(shared_offset());
    bool another = shared != t->clock_offset; /* another thread met the step before: its offset, if it is enough */
    if (!another || (int64_t)(last - (reading + shared)) > (int64_t)step) {
        uint64_t back = last - (reading + shared), now = fdri_bits_max(last, expected());
        if (fdri_atomic_cas_acq_rel_u64(shared_offset(), &shared, now - reading)) { /* L:clock */
            shared = now - reading;
            mark(now, back);
            fdri_life_suspect_restored();
        }
    }
    adopt_offset(t, shared);
    fdri_thread_update_soft(t);
}

uint64_t fdri_thread_clock_stepped_back(struct fdri_thread *t, uint64_t tick)
{
    struct fdri_arena_location *l = t->loc;
    uint64_t step = t->ticks ? fdri_life_ns_to_ticks(STEP_NS) : STEP_NS;
    l->clamped++;
    if (l->last_tick - tick <= step || l->last_tick == t->presented_tick || t->ticks != fdri_life_recording.ticks)
        return l->last_tick;
    uint64_t reading = tick - t->clock_offset;
    anchor(t, reading, step);
    return fdri_bits_max(reading + t->clock_offset, l->last_tick);
}
