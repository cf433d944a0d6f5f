/* SPDX-License-Identifier: MIT */
/* Counts calls in the totals of all threads, while these go on. A row that changes hands at this moment may give a
 * wrong count for one look. The sums of ended threads stay in [ended], so nothing is lost. */
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#include "base/atomic.h"
#include "base/racy.h"
#include "bins/bins.h"
#include "format/arena/arena.h"
#include "recorder/ended/ended.h"
#include "recorder/governor/governor.h"
#include "recorder/recording.h"

/* A thread at the newest look, by the id of its location. Threads whose numbers collide lose one interval. */
enum { THREADS = 4096, BUSY_CALLS = 500 };
static struct {
    uint32_t id;
    uint64_t calls, cpu_ns;
} seen[THREADS];

void fdri_governor_counts_start(void) { memset(seen, 0, sizeof seen); }

/* Processor time of a thread of this process. 0: it has ended. */
static uint64_t thread_cpu_ns(uint32_t tid)
{
    struct timespec t;
    clockid_t clock = (clockid_t)(~tid << 3 | 6u); /* the kernel's number of that clock: CPUCLOCK_PERTHREAD_MASK */
    return clock_gettime(clock, &t) ? 0 : (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

FDRI_RACY static uint64_t add_rows(const struct fdri_arena_location *l)
{
    const struct fdri_bins_arena *a = &fdri_life_recording.arena;
    const struct fdri_arena_rowtable *table = fdri_bins_at(a,
                                                           fdri_atomic_load_acquire(&l->rows_table_off)); /* A:rows */
    const uint32_t *slot = (const void *)(table + 1);
    uint64_t calls = 0;
    for (uint32_t i = 0; table->log2 && i < 1u << table->log2; i++) {
        uint32_t off = fdri_atomic_load_acquire(&slot[i]); /* A:rows */
        if (!off) continue;
        const struct fdri_arena_row *r = fdri_bins_at(a, off);
        if (!fdri_arena_row_of_calls(r->key)) continue;
        fdri_governor_regions_add(r->key, r->calls, r->untimed, r->sum);
        calls += r->calls + r->untimed;
    }
    return calls;
}

/* Calls of a thread for each ns of its processor time since the last look; 0: few, or unknown. */
static double rate_of(const struct fdri_arena_location *l, uint64_t calls)
{
    uint32_t at = l->id % THREADS;
    bool known = seen[at].id == l->id + 1 && calls >= seen[at].calls;
    uint64_t since = calls - seen[at].calls, before_ns = seen[at].cpu_ns;
    if (known && since < BUSY_CALLS) return 0;
    seen[at].id = l->id + 1;
    seen[at].calls = calls;
    seen[at].cpu_ns = thread_cpu_ns(l->tid);
    bool usable = known && before_ns && seen[at].cpu_ns > before_ns;
    return usable ? (double)since / (double)(seen[at].cpu_ns - before_ns) : 0;
}

FDRI_RACY double fdri_governor_count_calls(uint64_t now_ns, uint64_t cpu_ns)
{
    double busiest = 0;
    if (!fdri_ended_try_hold(UINT32_MAX, 1000)) return 0;
    fdri_governor_regions_begin();
    /* A:location */
    for (uint32_t off = fdri_atomic_load_acquire(&fdri_life_recording.arena.super->location_first); off;) {
        const struct fdri_arena_location *l = fdri_bins_at(&fdri_life_recording.arena, off);
        uint32_t flags = fdri_atomic_load_acquire(&l->flags); /* A:location */
        uint64_t calls = flags & FDRI_ARENA_LOCATION_FREE || !l->rows_table_off ? 0 : add_rows(l);
        if (flags & FDRI_ARENA_LOCATION_LIVE && !(flags & FDRI_ARENA_LOCATION_LANE) && calls) {
            double rate = rate_of(l, calls);
            if (rate > busiest) busiest = rate;
        }
        off = l->next;
    }
    fdri_ended_unlock();
    fdri_governor_regions_end(now_ns);
    double all = (double)(fdri_governor_calls.timed + fdri_governor_calls.untimed) / (double)cpu_ns;
    return busiest > all && all > 0 ? busiest / all : 1;
}
