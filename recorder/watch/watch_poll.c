/* SPDX-License-Identifier: MIT */
/* Checks of triggers by the dumper thread, for conditions that no recording thread meets. These are calls that do not
 * end, memory of the process, and the running p99 of watched regions. */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/bits.h"
#include "base/racy.h"
#include "base/system/procfs.h"
#include "base/text/message.h"
#include "bins/bins.h"
#include "export/view.h"
#include "format/arena/arena.h"
#include "recorder/ended/ended.h"
#include "recorder/memory/memory.h"
#include "recorder/names/module_symbols.h"
#include "recorder/names/names.h"
#include "recorder/recording.h"
#include "recorder/thread/thread_clock.h"
#include "recorder/totals/totals.h"
#include "recorder/watch/watch.h"
#include "recorder/watch/watch_table.h"

enum { OFTEN_NS = 100000000, LEAST_NS = 1000000, MANY_CALLS = 100, MPI_NS = 1000000000 };

static uint64_t to_ns(uint64_t ticks)
{
    return (uint64_t)((unsigned __int128)ticks * fdri_life_recording.tick_to_ns >> 32);
}

/* ---- calls that do not end ---- */

/* Fires once for each call: if it is open for stuck_ns now and was not at this trigger's last check. The lock keeps the
 * trigger from being removed, and its place from being reused, in between. */
static void fire_once_for_call(const struct fdri_watch_entry *e, uint64_t enter_tick,
                               const struct fdri_export_seen *seen)
{
    sigset_t old;
    fdri_watch_lock(&old);
    const struct fdri_watch_slot *w = &fdri_watch_slots[e->slot];
    uint64_t looked = w->looked_tick;
    bool before = looked > enter_tick && to_ns(looked - enter_tick) >= e->stuck_ns;
    if (!e->removed && w->matched && !before) fdri_trigger_seen(e->slot, seen);
    fdri_watch_unlock(&old);
}

static void see_frame(uint32_t location, uint32_t region, uint64_t enter_tick, uint64_t now_tick)
{
    const struct fdri_watch_entry *e;
    uint32_t key = FDRI_TOTALS_KEY(FDRI_ARENA_DEF_REGION, region);
    uint64_t open = now_tick > enter_tick ? now_tick - enter_tick : 0;
    uint64_t ns = to_ns(open);
    /* A:watch - the table is replaced as a whole */
    const struct fdri_watch_table *table = fdri_atomic_load_acquire(&fdri_watch_table);
    if (!table) return;
    FDRI_WATCH_EACH_ENTRY(table, key, e)
    if (e->stuck_ns != UINT64_MAX && ns >= e->stuck_ns)
        fire_once_for_call(e, enter_tick,
                           &(struct fdri_export_seen){.tick = now_tick,
                                                      .value = ns,
                                                      .unit = FDRI_EXPORT_UNIT_NS,
                                                      .location = location,
                                                      .key = key,
                                                      .field = FDRI_EXPORT_NO_FIELD});
}

/* Checks the open calls of a location. A copied frame counts only if the depth, read again after, still covers it. */
FDRI_RACY static void see_stack(const struct fdri_arena_location *l, uint64_t now_tick)
{
    uint32_t depth = fdri_atomic_load_acquire(&l->depth); /* A:frame */
    for (uint32_t d = 1; d <= depth && d <= fdri_arena_levels_in(l->level_blocks); d++) {
        const struct fdri_arena_levels_block *b = fdri_bins_at(&fdri_life_recording.arena,
                                                               l->levels_off[fdri_arena_level_block(d)]);
        struct fdri_arena_level v;
        fdri_racy_copy(&v, &b->level[fdri_arena_level_entry(d)], sizeof v);
        fdri_atomic_fence_acquire();                         /* A:frame */
        if (fdri_atomic_load_acquire(&l->depth) < d) return; /* A:frame */
        if (!(v.flags & FDRI_ARENA_LEVEL_UNTIMED)) see_frame(l->id, v.region, v.enter_tick, now_tick);
    }
}

/* The triggers that had all their entries when a check began: only for these it is complete. */
struct lookers {
    uint32_t tenancy[FDRI_EXPORT_TRIGGERS]; /* 0: not complete */
};
static void begin_look(struct lookers *who)
{
    sigset_t old;
    fdri_watch_lock(&old);
    for (uint32_t i = 0; i < FDRI_EXPORT_TRIGGERS; i++)
        who->tenancy[i] = fdri_watch_slots[i].matched ? fdri_watch_slots[i].tenancy : 0;
    fdri_watch_unlock(&old);
}
static void end_look(const struct lookers *who, uint64_t tick)
{
    sigset_t old;
    fdri_watch_lock(&old);
    for (uint32_t i = 0; i < FDRI_EXPORT_TRIGGERS; i++)
        if (who->tenancy[i] && who->tenancy[i] == fdri_watch_slots[i].tenancy) fdri_watch_slots[i].looked_tick = tick;
    fdri_watch_unlock(&old);
}

/* Checks all live locations, except those with times of the caller (`_at`): they have no present time. */
FDRI_RACY static void see_stacks(void)
{
    struct lookers who;
    begin_look(&who);
    uint64_t now = fdri_thread_tick_now();
    if (!fdri_ended_try_hold(UINT32_MAX, 1000)) return; /* an ended thread is being folded: next time */
    /* A:location */
    for (uint32_t off = fdri_atomic_load_acquire(&fdri_life_recording.arena.super->location_first); off;) {
        const struct fdri_arena_location *l = fdri_bins_at(&fdri_life_recording.arena, off);
        uint32_t flags = fdri_atomic_load_relaxed(&l->flags);
        if ((flags & FDRI_ARENA_LOCATION_LIVE) && !(flags & FDRI_ARENA_LOCATION_NS) == fdri_life_recording.ticks)
            see_stack(l, now);
        off = l->next;
    }
    fdri_ended_unlock();
    end_look(&who, now);
}

/* ---- memory ---- */

static uint64_t resident(void)
{
    char text[128];
    unsigned long long pages = 0;
    static unsigned said;
    errno = 0;
    /* /proc/self is empty once the first thread has ended */
    if (!fdri_system_read_text("/proc/thread-self/statm", text, sizeof text) && fdri_text_once(&said))
        fdri_text_message("/proc/thread-self/statm: %s; memory triggers do not fire until it can be read",
                          errno ? strerror(errno) : "empty");
    sscanf(text, "%*u %llu", &pages);
    return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* Under the lock. */
static void see_resident(uint32_t slot, uint64_t bytes)
{
    struct fdri_watch_slot *w = &fdri_watch_slots[slot];
    static uint64_t whole;
    if (w->watch.percent && !whole) whole = fdri_memory_limit();
    double limit = w->watch.percent ? w->watch.limit / 100 * (double)whole : w->watch.limit;
    uint32_t above = (double)bytes > limit;
    if (above && !fdri_atomic_load_relaxed(&w->above))
        fdri_trigger_seen(slot, &(struct fdri_export_seen){.tick = fdri_thread_tick_now(),
                                                           .value = bytes,
                                                           .unit = FDRI_EXPORT_UNIT_BYTES,
                                                           .location = UINT32_MAX,
                                                           .key = FDRI_EXPORT_NO_KEY,
                                                           .field = FDRI_EXPORT_NO_FIELD});
    fdri_atomic_store_relaxed(&w->above, above);
}

static void see_memory(void)
{
    sigset_t old;
    uint64_t bytes = resident();
    fdri_watch_lock(&old);
    for (uint32_t i = 0; i < FDRI_EXPORT_TRIGGERS; i++)
        if (fdri_watch_slots[i].state == FDRI_WATCH_USED && fdri_watch_slots[i].watch.source == FDRI_WATCH_BY_MEMORY)
            see_resident(i, bytes);
    fdri_watch_unlock(&old);
}

/* ---- p99 ---- */

/* The duration in ns that a hundredth of the calls exceeds, interpolated within its power of two. UINT64_MAX: fewer
 * than 100 calls. False: an ended thread is being folded, *p99 is not set. */
static bool p99_of(uint32_t key, uint64_t *p99)
{
    uint64_t count[64], all = 0, above = 0;
    if (!fdri_totals_histogram_of_all(key, count)) return false;
    *p99 = UINT64_MAX;
    for (int b = 0; b < 64; b++) all += count[b];
    if (all < MANY_CALLS) return true;
    for (int b = 62; b >= 0; b--) {
        if (above + count[b] <= all / 100) {
            above += count[b];
            continue;
        }
        double inside = (double)(all / 100 - above) / (double)count[b];
        *p99 = (uint64_t)((double)(1ull << b) * (2 - inside));
        return true;
    }
    return true;
}

/* Updates the thresholds of p99 triggers. The lock is not held while rows are read, so definitions do not wait. An
 * entry that cannot be read now keeps its threshold until the next poll. */
static void see_p99(void)
{
    sigset_t old;
    uint64_t p99;
    struct fdri_watch_table *t = fdri_atomic_load_acquire(&fdri_watch_table); /* A:watch */
    for (uint32_t i = 0; t && i < 1u << t->log2; i++) {
        struct fdri_watch_entry *e = &t->entry[i];
        uint32_t key = fdri_atomic_load_acquire(&e->key); /* A:watch */
        if (!key || fdri_atomic_load_relaxed(&e->removed) || e->p99_factor <= 0 || !p99_of(key, &p99)) continue;
        double limit = (double)p99 * e->p99_factor;
        fdri_atomic_store_relaxed(&e->threshold_ns, p99 == UINT64_MAX || limit > 9e18 ? UINT64_MAX : (uint64_t)limit);
        if (fdri_atomic_load_relaxed(&fdri_watch_table) != t) break;
    }
    fdri_watch_lock(&old);
    fdri_watch_thresholds();
    fdri_watch_unlock(&old);
}

/* ---- triggers that cannot fire ---- */

/* Says at once if no function matches the pattern of a trigger in a program whose functions are recorded. */
static void look_for_function(struct fdri_watch_slot *s)
{
    struct fdri_watch w;
    sigset_t old;
    fdri_watch_lock(&old);
    bool wanted = s->state == FDRI_WATCH_USED && s->matched && !s->hit && !s->looked_for;
    if (wanted) w = s->watch;
    uint32_t tenancy = s->tenancy;
    fdri_watch_unlock(&old);
    if (!wanted || !fdri_watch_of_regions(&w)) return;
    enum fdri_names_match match = fdri_names_symbols_match(w.glob);
    if (match == FDRI_NAMES_MATCH_UNKNOWN) return;
    fdri_watch_lock(&old);
    bool says = match == FDRI_NAMES_MATCH_NONE && s->tenancy == tenancy && !s->hit;
    if (s->tenancy == tenancy) s->looked_for = true;
    fdri_watch_unlock(&old);
    if (says)
        fdri_text_message("trigger '%.63s': no function or region that is known so far matches '%.199s'",
                          w.trigger.name, w.glob);
}

/* The checks that the present triggers need. */
struct plan {
    uint64_t stuck; /* how often open calls are looked at; UINT64_MAX: never */
    uint64_t mpi;   /* the same of calls of MPI */
    bool memory, p99;
};
static struct plan needed_checks(void)
{
    struct plan p = {.stuck = UINT64_MAX, .mpi = UINT64_MAX};
    sigset_t old;
    fdri_watch_lock(&old);
    for (uint32_t i = 0; i < FDRI_EXPORT_TRIGGERS; i++) {
        const struct fdri_watch *w = &fdri_watch_slots[i].watch;
        if (fdri_watch_slots[i].state != FDRI_WATCH_USED) continue;
        if (w->source == FDRI_WATCH_BY_STUCK)
            p.stuck = fdri_bits_min(p.stuck, fdri_bits_min(OFTEN_NS, fdri_bits_max(w->ns / 4, LEAST_NS)));
        if (w->source == FDRI_WATCH_BY_MPI)
            p.mpi = fdri_bits_min(p.mpi, fdri_bits_min(MPI_NS, fdri_bits_max(w->ns / 4, LEAST_NS)));
        p.p99 |= w->source == FDRI_WATCH_BY_P99;
        p.memory |= w->source == FDRI_WATCH_BY_MEMORY;
    }
    fdri_watch_unlock(&old);
    return p;
}

bool fdri_watch_names(uint32_t key)
{
    const struct fdri_watch_entry *e;
    const struct fdri_watch_table *table = fdri_atomic_load_acquire(&fdri_watch_table); /* A:watch */
    if (!table) return false;
    FDRI_WATCH_EACH_ENTRY(table, key, e)
    if (!strpbrk(fdri_watch_slots[e->slot].watch.glob, "*?[")) return true;
    return false;
}

static bool is_due(uint64_t *last_ns, uint64_t now, uint64_t every_ns)
{
    if (now - *last_ns < every_ns / 2) return false;
    *last_ns = now;
    return true;
}

uint64_t fdri_watch_poll(uint64_t now)
{
    static uint64_t memory_ns, p99_ns, mpi_ns;
    fdri_watch_free_older();
    for (uint32_t i = 0; i < FDRI_EXPORT_TRIGGERS; i++) look_for_function(&fdri_watch_slots[i]);
    struct plan p = needed_checks();
    if (p.memory && is_due(&memory_ns, now, OFTEN_NS)) see_memory();
    if (p.p99 && is_due(&p99_ns, now, OFTEN_NS)) see_p99();
    if (p.stuck != UINT64_MAX) see_stacks();
    if (p.mpi != UINT64_MAX && is_due(&mpi_ns, now, p.mpi)) fdri_watch_see_mpi(now);
    uint64_t every = fdri_bits_min(p.stuck, p.mpi);
    if (p.memory || p.p99) every = fdri_bits_min(OFTEN_NS, every);
    return every == UINT64_MAX ? every : now + every;
}
