/* SPDX-License-Identifier: MIT */
/* The watchdog. A thread hangs if it has open regions and neither records nor counts anything for FDR_WATCHDOG. It does
 * not hang if it computes, waits for a processor, or waits for work (idle_threads.c). In a call of MPI that the
 * adapter's counters tell, it waits, whatever processor time it uses. All threads found together get one snapshot; none
 * gets a second one before it has moved. */
#define _GNU_SOURCE
#include <assert.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/bits.h"
#include "base/clock.h"
#include "base/racy.h"
#include "base/system/procfs.h"
#include "base/system/syscall.h"
#include "base/system/task_state.h"
#include "base/text/message.h"
#include "base/text/number.h"
#include "export/snapshot/snapshot.h"
#include "export/trigger/job_asks.h"
#include "export/trigger/trigger.h"
#include "export/view.h"
#include "format/arena/arena.h"
#include "format/tallies/mpi_calls.h"
#include "policies/idle.h"

enum verdict { MOVES, STANDS, COMPUTES, IDLE, HANGS };
struct watched {
    uint32_t off, id; /* off: of its location, 0: no entry. id: a location's memory may be reused, for another id */
    uint64_t last_tick, presented;
    uint32_t depth;
    bool known, stands, reported;        /* stands: `presented` is valid */
    bool idle;                           /* when it was last judged */
    uint64_t since_ns, cpu_ns, delay_ns; /* when it stopped moving, and its usage until then */
};
enum { OTHERS_BYTES = 32 }; /* of a reason, for the number of further threads */
static struct watched *all; /* a hash table by off, at most half full */
static uint32_t room, taken;
/* the time of the next look; the time to report hanging threads, 0: none found */
static uint64_t look_ns, due_ns;

/* How a thread spends its time; usage_of returns false if it has ended. If /proc cannot be read (no free descriptor, a
 * filter, a root without it), only its processor time is known. */
struct usage {
    uint64_t cpu_ns, delay_ns;
    char state;
    struct fdri_trigger_wait wait;
    uint32_t mpi_region; /* the call of MPI that it waits in; 0: none */
};

/* The threads that wait in calls of MPI, as of the present look. */
static struct {
    uint32_t count;
    struct fdri_tallies_mpi_call call[FDRI_TRIGGER_STACKS];
} in_mpi;

static void find_mpi_calls(void)
{
    struct fdri_tallies_cursor c = fdri_tallies_first(fdri_snapshot_view.base);
    in_mpi.count = 0;
    while (in_mpi.count < FDRI_TRIGGER_STACKS && fdri_tallies_next_call(&c, &in_mpi.call[in_mpi.count]))
        in_mpi.count += in_mpi.call[in_mpi.count].waits;
}

static const struct fdri_tallies_mpi_call *mpi_call_of(uint32_t tid)
{
    for (uint32_t i = 0; i < in_mpi.count; i++)
        if (in_mpi.call[i].tid == tid) return &in_mpi.call[i];
    return NULL;
}

static bool usage_of(uint32_t tid, struct usage *u)
{
    char text[512];
    unsigned long long run, delay = 0;
    *u = (struct usage){.state = '?'};
    if (!fdri_system_read_task(tid, "stat", text, sizeof text) &&
        fdri_system_thread_has_ended(fdri_export_pid(), (int)tid))
        return false;
    u->state = fdri_system_task_letter(text);
    struct timespec t;
    clockid_t clock = (clockid_t)(~tid << 3 | 6); /* a thread's processor time, as pthread_getcpuclockid makes it */
    if (clock_gettime(clock, &t) == 0) u->cpu_ns = (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
    if (fdri_system_read_task(tid, "schedstat", text, sizeof text) && sscanf(text, "%llu %llu", &run, &delay) == 2)
        u->delay_ns = delay;
    return true;
}

static struct watched *slot_of(struct watched *in, uint32_t slots, uint32_t off)
{
    uint32_t i = off * 0x9E3779B1u >> 16;
    while (in[i & (slots - 1)].off && in[i & (slots - 1)].off != off) i++;
    return &in[i & (slots - 1)];
}

static bool grow_table(void)
{
    uint32_t slots = room ? room * 2 : 64;
    struct watched *wider = calloc(slots, sizeof *wider);
    if (!wider) return false;
    for (uint32_t i = 0; i < room; i++)
        if (all[i].off) *slot_of(wider, slots, all[i].off) = all[i];
    free(all);
    all = wider;
    room = slots;
    return true;
}

FDRI_RACY static struct watched *watched_of(const struct fdri_arena_location *l)
{
    uint32_t off = (uint32_t)((const uint8_t *)l - fdri_snapshot_view.base);
    struct watched *w = room ? slot_of(all, room, off) : NULL;
    if (!w || !w->off) {
        if (taken * 2 >= room && !grow_table()) return NULL;
        w = slot_of(all, room, off);
        taken++;
    }
    if (w->off != off || w->id != l->id) *w = (struct watched){.off = off, .id = l->id};
    return w;
}

FDRI_RACY static const struct fdri_arena_level *level_of(const struct fdri_arena_location *l, uint32_t depth)
{
    const struct fdri_arena_levels_block *b = (const void *)(fdri_snapshot_view.base +
                                                             l->levels_off[fdri_arena_level_block(depth)]);
    return &b->level[fdri_arena_level_entry(depth)];
}

FDRI_RACY static uint32_t innermost(const struct fdri_arena_location *l)
{
    uint32_t depth = fdri_atomic_load_acquire(&l->depth); /* A:frame */
    return depth && depth <= fdri_arena_levels_in(l->level_blocks) ? level_of(l, depth)->region : 0;
}

static enum fdri_policies_meaning meaning_of_region(uint32_t region)
{
    char name[256];
    bool known = fdri_trigger_name_of((uint32_t)FDRI_ARENA_DEF_REGION << 24 | region, name, sizeof name);
    return known ? fdri_policies_meaning_of(name) : FDRI_POLICIES_MEANS_NOTHING;
}

FDRI_RACY static void begin(struct watched *w, const struct fdri_arena_location *l, uint64_t now)
{
    struct usage u;
    usage_of(l->tid, &u);
    *w = (struct watched){.off = w->off,
                          .id = w->id,
                          .known = true,
                          .last_tick = fdri_atomic_load_relaxed(&l->last_tick),
                          .depth = fdri_atomic_load_relaxed(&l->depth),
                          .since_ns = now,
                          .cpu_ns = u.cpu_ns,
                          .delay_ns = u.delay_ns};
}

/* A thread computes if it used a processor for more than a tenth of the time, or runs now. The host is busy if the
 * thread ran or waited for a processor for more than half of the time. The kernel counts a wait when it ends. */
FDRI_RACY static enum verdict judge(const struct watched *w, const struct fdri_arena_location *l, uint64_t now,
                                    struct usage *u)
{
    uint64_t passed = now - w->since_ns;
    if (!usage_of(l->tid, u)) return MOVES;
    uint64_t cpu = u->cpu_ns - w->cpu_ns, delay = u->delay_ns - w->delay_ns;
    const struct fdri_tallies_mpi_call *mpi = mpi_call_of(l->tid);
    u->cpu_ns = cpu;
    if (mpi && mpi->since_ns <= w->since_ns) {
        u->mpi_region = mpi->region;
        return HANGS;
    }
    enum fdri_policies_meaning name = meaning_of_region(innermost(l));
    if (cpu > passed / 10 || u->state == 'R') return name == FDRI_POLICIES_MEANS_NOTHING ? COMPUTES : HANGS;
    if (cpu + delay > passed / 2) return COMPUTES;
    return fdri_trigger_is_idle(l, name == FDRI_POLICIES_MEANS_OTHERS, &u->wait) ? IDLE : HANGS;
}

/* Calls that are only counted (deeper than FDR_DEPTH, in a pause, excluded by rules) change neither time nor depth. So
 * `presented` is compared, too, but only after both stood still for a look: summing it reads a cache line for each
 * level. */
static bool presented_changed(struct watched *w, const struct fdri_arena_location *l)
{
    uint64_t presented = fdri_snapshot_presented_of(l);
    bool moved = w->stands && w->presented != presented;
    w->presented = presented;
    w->stands = true;
    return moved;
}

FDRI_RACY static enum verdict check_location(const struct fdri_arena_location *l, uint64_t now, uint64_t limit,
                                             struct usage *u)
{
    /* A:location - kind and thread number were stored before the flag LIVE */
    uint32_t flags = fdri_atomic_load_acquire(&l->flags);
    uint32_t depth = fdri_atomic_load_relaxed(&l->depth);
    /* a lane; or a thread without a number, or with number 0 */
    if (!(flags & FDRI_ARENA_LOCATION_LIVE) || (flags & FDRI_ARENA_LOCATION_LANE)) return MOVES;
    struct watched *w = watched_of(l);
    if (!w) return MOVES;
    if (!depth && !mpi_call_of(l->tid)) { /* regions of MPI may be filtered */
        w->known = false;
        return MOVES;
    }
    if (!w->known || w->last_tick != fdri_atomic_load_relaxed(&l->last_tick) || w->depth != depth ||
        presented_changed(w, l)) {
        begin(w, l, now);
        fdri_trigger_idle_learn(l);
        return MOVES;
    }
    if (w->reported || now - w->since_ns < limit) return STANDS;
    enum verdict v = judge(w, l, now, u);
    if (v == COMPUTES || v == IDLE) begin(w, l, now); /* and the time begins anew */
    w->idle = v == IDLE;
    return v;
}

static const struct fdri_arena_location *location_at(uint32_t off)
{
    return off ? (const void *)(fdri_snapshot_view.base + off) : NULL;
}
static const struct fdri_arena_location *first_location(void)
{
    const struct fdri_arena_superblock *s = (const void *)fdri_snapshot_view.base;
    return location_at(fdri_atomic_load_acquire(&s->location_first)); /* A:location */
}

/* "for a lock of thread 26410 (main), " */
static void describe_wait(const struct fdri_trigger_wait *wait, char *text, size_t bytes)
{
    char name[32] = "";
    text[0] = 0;
    if (wait->wait != FDRI_SYSTEM_WAIT_LOCK) return;
    if (wait->owner) fdri_system_read_task(wait->owner, "comm", name, sizeof name);
    name[strcspn(name, "\n")] = 0;
    if (wait->owner) snprintf(text, bytes, "for a lock of thread %u (%.15s), ", wait->owner, name);
    else snprintf(text, bytes, "for a lock, ");
}

FDRI_RACY static void describe(struct fdri_snapshot_why *why, const struct fdri_arena_location *l,
                               const struct usage *u, uint64_t stood)
{
    static_assert(offsetof(struct fdri_arena_location, name) % 8 == 0 && sizeof l->name % 8 == 0, "copied in words");
    _Alignas(8) char name[sizeof l->name];
    char region[160] = "", lock[64];
    fdri_racy_copy(name, l->name, sizeof name); /* its thread may be writing it */
    name[sizeof name - 1] = 0;
    uint32_t stands_in = u->mpi_region ? u->mpi_region : innermost(l);
    fdri_trigger_describe((uint32_t)FDRI_ARENA_DEF_REGION << 24 | stands_in, region, sizeof region);
    describe_wait(&u->wait, lock, sizeof lock);
    why->value = stood;
    why->location = l->id;
    char seconds[40], of_processor[40];
    fdri_text_print_number(seconds, sizeof seconds, 3, (double)stood / 1e9);
    fdri_text_print_number(of_processor, sizeof of_processor, 3, (double)u->cpu_ns / 1e9);
    snprintf(why->reason, sizeof why->reason, "watchdog: thread %u (%.31s) has stood in %.90s for %.10s s, ", l->tid,
             name, region[0] ? region : "a region", seconds);
    size_t used = strlen(why->reason);
    snprintf(why->reason + used, sizeof why->reason - OTHERS_BYTES - used, "%sstate %c, %.10s s of processor time",
             lock, u->state, of_processor);
}

/* Takes the snapshot. `others`: hanging threads that the reason does not name; `idle`: threads that wait for work. */
static void report(struct fdri_snapshot_why *why, const struct fdri_trigger_tids *who, uint32_t others, uint32_t idle)
{
    static uint8_t stacks[FDRI_ARENA_TAIL_MAX_BYTES] __attribute__((aligned(8)));
    struct fdri_snapshot_quota quota = fdri_snapshot_whole_quota();
    size_t used = strlen(why->reason);
    if (others) snprintf(why->reason + used, sizeof why->reason - used, "; and %u more", others);
    used = strlen(why->reason);
    if (idle) snprintf(why->reason + used, sizeof why->reason - used, "; %u idle", idle);
    why->section = stacks;
    why->section_bytes = fdri_trigger_stacks_take(stacks, fdri_snapshot_section_room(), who);
    int e = fdri_snapshot_view.watchdog_job ? fdri_trigger_job_take(why, &quota)
                                            : fdri_snapshot_take(why, &quota, false);
    fdri_text_message("%s; %s", why->reason, e ? "no snapshot was written" : fdri_snapshot_files_last());
}

/* Takes one snapshot for all threads that hang by now. The message names the one that has stood longest. */
FDRI_RACY static void report_hanging(uint64_t now)
{
    struct fdri_snapshot_why why = {.kind = FDRI_ARENA_REASON_WATCHDOG, .location = UINT32_MAX, .name = "watchdog"};
    static struct fdri_trigger_tids who; /* the hanging threads, as many as have a stack in the file */
    struct usage u;
    uint32_t hanging = 0, idle = 0;
    who.count = 0;
    find_mpi_calls();
    why.tick = fdri_snapshot_tick_of(fdri_snapshot_view.ticks ? fdri_clock_ticks() : now);
    for (const struct fdri_arena_location *l = first_location(); l; l = location_at(l->next)) {
        enum verdict v = check_location(l, now, fdri_snapshot_view.watchdog_ns / 2, &u);
        struct watched *w = v == MOVES ? NULL : watched_of(l);
        idle += w && w->idle;
        if (v != HANGS || !w) continue;
        if (!hanging++ || now - w->since_ns > why.value) describe(&why, l, &u, now - w->since_ns);
        w->reported = true;
        if (who.count < FDRI_TRIGGER_STACKS) who.tid[who.count++] = l->tid;
    }
    if (hanging) report(&why, &who, hanging - 1, idle);
}

FDRI_RACY static bool any_hangs(uint64_t now)
{
    struct usage u;
    bool found = false;
    find_mpi_calls();
    for (const struct fdri_arena_location *l = first_location(); l; l = location_at(l->next))
        found |= check_location(l, now, fdri_snapshot_view.watchdog_ns, &u) == HANGS;
    return found;
}

void fdri_trigger_watchdog_start(void)
{
    look_ns = due_ns = 0;
    taken = 0;
    fdri_trigger_idle_start();
    if (all) memset(all, 0, room * sizeof *all);
}

/* Each wake-up is late by microseconds, on a crowded machine by milliseconds. With a polled trigger there are a
 * thousand a second. They are no stop of the process and must not add up to one. */
void fdri_trigger_watchdog_late(uint64_t ns)
{
    if (ns < fdri_bits_min(fdri_snapshot_view.watchdog_ns / 4, 100000000)) return;
    if (due_ns) due_ns += ns;
    for (uint32_t i = 0; i < room; i++)
        if (all[i].off) all[i].since_ns += ns;
}

/* Looks four times in FDR_WATCHDOG. After the first find it waits one look, so that other threads that hang for the
 * same reason are found, too. */
uint64_t fdri_trigger_watchdog_look(uint64_t now)
{
    uint64_t often = fdri_bits_min(fdri_bits_max(fdri_snapshot_view.watchdog_ns / 4, 10000000), 1000000000);
    if (!fdri_snapshot_view.watchdog_ns) return UINT64_MAX;
    if (now < look_ns) return look_ns;
    if (due_ns && now >= due_ns) {
        report_hanging(now);
        due_ns = 0;
    } else if (any_hangs(now) && !due_ns) {
        due_ns = now + often;
    }
    look_ns = now + often;
    return look_ns;
}
