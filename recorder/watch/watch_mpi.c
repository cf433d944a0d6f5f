/* SPDX-License-Identifier: MIT */
/* Triggers "stuck in mpi over TIME": a thread is in one call of MPI for that long, whether it sleeps there or spins.
 * The counters of the adapter say so, not the events, which may be filtered. */
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/atomic.h"
#include "base/racy.h"
#include "bins/bins.h"
#include "export/view.h"
#include "format/arena/arena.h"
#include "format/tallies/mpi_calls.h"
#include "recorder/ended/ended.h"
#include "recorder/recording.h"
#include "recorder/thread/thread_clock.h"
#include "recorder/totals/totals.h"
#include "recorder/watch/watch_table.h"

/* UINT32_MAX: the thread has recorded nothing, or that cannot be asked now. */
FDRI_RACY static uint32_t location_of(uint32_t tid)
{
    uint32_t found = UINT32_MAX;
    if (!fdri_ended_try_hold(UINT32_MAX, 1000)) return found; /* an ended thread is being folded */
    /* A:location */
    for (uint32_t off = fdri_atomic_load_acquire(&fdri_life_recording.arena.super->location_first); off;) {
        const struct fdri_arena_location *l = fdri_bins_at(&fdri_life_recording.arena, off);
        uint32_t flags = fdri_atomic_load_relaxed(&l->flags);
        bool fits = (flags & FDRI_ARENA_LOCATION_LIVE) && !(flags & FDRI_ARENA_LOCATION_LANE) && l->tid == tid;
        if (fits) found = l->id;
        off = fits ? 0 : l->next;
    }
    fdri_ended_unlock();
    return found;
}

/* Under the lock. Once for each call: if it lasts so long now, and did not at the last look. */
static void fire(uint32_t slot, const struct fdri_tallies_mpi_call *call, uint64_t now, uint32_t location)
{
    struct fdri_watch_slot *w = &fdri_watch_slots[slot];
    uint64_t looked = w->looked_ns, ns = w->watch.ns;
    if (w->state != FDRI_WATCH_USED || w->watch.source != FDRI_WATCH_BY_MPI || now - call->since_ns < ns) return;
    if (looked > call->since_ns && looked - call->since_ns >= ns) return;
    uint32_t key = call->region ? FDRI_TOTALS_KEY(FDRI_ARENA_DEF_REGION, call->region) : FDRI_EXPORT_NO_KEY;
    fdri_trigger_seen(slot, &(struct fdri_export_seen){.tick = fdri_thread_tick_now(),
                                                       .value = now - call->since_ns,
                                                       .unit = FDRI_EXPORT_UNIT_NS,
                                                       .location = location,
                                                       .key = key,
                                                       .field = FDRI_EXPORT_NO_FIELD});
}

void fdri_watch_see_mpi(uint64_t now)
{
    struct fdri_tallies_cursor c = fdri_tallies_first((const uint8_t *)fdri_life_recording.arena.super);
    struct fdri_tallies_mpi_call call;
    sigset_t old;
    while (fdri_tallies_next_call(&c, &call)) {
        if (!call.waits || call.since_ns >= now) continue;
        uint32_t location = location_of(call.tid);
        fdri_watch_lock(&old);
        for (uint32_t i = 0; i < FDRI_EXPORT_TRIGGERS; i++) fire(i, &call, now, location);
        fdri_watch_unlock(&old);
    }
    fdri_watch_lock(&old);
    for (uint32_t i = 0; i < FDRI_EXPORT_TRIGGERS; i++)
        if (fdri_watch_slots[i].looked_ns < now) fdri_watch_slots[i].looked_ns = now;
    fdri_watch_unlock(&old);
}
