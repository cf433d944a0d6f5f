/* SPDX-License-Identifier: MIT */
/* Once a second the dumper thread stores the time, so that a reader of the live file sees when the process last lived.
 * It also stores the longest time without an event that is over, and the processor time since the newest event. So one
 * file tells a process that stands from one that computes, and what is usual in this run. */
#include <stdint.h>
#include <time.h>

#include "base/atomic.h"
#include "base/bits.h"
#include "base/clock.h"
#include "base/racy.h"
#include "bins/bins.h"
#include "format/arena/arena.h"
#include "recorder/life/life.h"
#include "recorder/recording.h"
#include "recorder/thread/thread_clock.h"

enum { LOCATIONS_MOST = 256 }; /* the newest: looks must be short, however many threads there are */
static const uint64_t often_ns = 1000000000u;
static uint64_t next_ns; /* this and the next one: of the dumper thread */
static struct {
    uint32_t recording;
    uint64_t newest, looked; /* full ticks: the newest event at the last look, and the time of that */
    uint64_t cpu_ns;         /* at the first look with this newest event */
} seen;

/* Of the threads that are timed by the recording's clock. */
FDRI_RACY static uint64_t newest_event(void)
{
    const struct fdri_life_recorder *r = &fdri_life_recording;
    uint64_t newest = 0;
    uint32_t off = fdri_atomic_load_acquire(&r->arena.super->location_first); /* A:location - the newest first */
    for (uint32_t n = 0; off && n < LOCATIONS_MOST; n++) {
        const struct fdri_arena_location *l = fdri_bins_at(&r->arena, off);
        uint32_t flags = fdri_atomic_load_acquire(&l->flags); /* A:location */
        bool given = flags & FDRI_ARENA_LOCATION_NS && r->ticks;
        if (!given && !(flags & (FDRI_ARENA_LOCATION_FREE | FDRI_ARENA_LOCATION_SAMPLES)))
            newest = fdri_bits_max(newest, l->last_tick);
        off = l->next;
    }
    return newest;
}

static void look(struct fdri_arena_superblock *s)
{
    uint64_t now = fdri_thread_tick_now(), newest = newest_event(), cpu = fdri_clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    bool first = seen.recording != fdri_life_recording.number, moved = first || newest != seen.newest;
    uint64_t still = !first && seen.newest && seen.looked > seen.newest ? seen.looked - seen.newest : 0;
    /* It ended between the last look and this one. */
    if (moved && still && now > seen.looked)
        fdri_atomic_store_relaxed(&s->longest_still, fdri_bits_max(s->longest_still, still + (now - seen.looked)));
    if (moved) seen.newest = newest, seen.cpu_ns = cpu, seen.recording = fdri_life_recording.number;
    seen.looked = now;
    fdri_atomic_store_relaxed(&s->still_cpu_ns, cpu - seen.cpu_ns);
    fdri_atomic_store_relaxed(&s->alive_tick, now);
}

uint64_t fdri_life_poll_heartbeat(uint64_t now_ns)
{
    if (now_ns < next_ns && next_ns - now_ns <= often_ns) return next_ns;
    look(fdri_life_recording.arena.super);
    return next_ns = now_ns + often_ns;
}
