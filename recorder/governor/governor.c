/* SPDX-License-Identifier: MIT */
/* A look: counts the calls since the last one, lets the policy decide, tells the threads, and writes the account. */
#include "recorder/governor/governor.h"

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "base/atomic.h"
#include "base/bits.h"
#include "base/clock.h"
#include "bins/bins.h"
#include "format/arena/arena.h"
#include "recorder/names/names.h"
#include "recorder/names/region_rules.h"
#include "recorder/recording.h"
#include "recorder/thread/thread_clock.h"

enum {
    OFTEN_NS = 20000000,   /* between two looks */
    IDLE_NS = 100000000,   /* the same while the program is idle */
    LEAST_CPU_NS = 1000000 /* a look at less processor time would say little */
};
/* Below it threads have no table of muted regions, and to mute would cost more than to record. */
static const uint64_t least_arena_bytes = 1 << 20;
static const uint64_t share_of_looks = 200; /* looks take at most 1/200 of a processor */

static struct fdri_arena_governor *account; /* NULL: off */
static struct fdri_policies_overhead policy;
static struct fdri_governor_cost cost;
static uint64_t due_ns, cpu_before_ns;

/* The account takes at most 1/64 of the buffer. */
static struct fdri_arena_governor *new_account(double target)
{
    struct fdri_bins_arena *a = &fdri_life_recording.arena;
    uint64_t most = a->super->arena_bytes / 64 / 48;
    uint32_t regions = (uint32_t)fdri_bits_min(most / 2, 1024), changes = (uint32_t)fdri_bits_min(most, 512);
    uint32_t off = fdri_bins_meta_take(a, FDRI_ARENA_META_GOVERNOR, fdri_arena_governor_bytes(regions, changes),
                                       UINT32_MAX);
    if (!off) return NULL;
    struct fdri_arena_governor *g = fdri_bins_at(a, off);
    g->target_ppm = (uint32_t)(target * 1e6);
    g->period = FDRI_NAMES_MUTE_PERIOD;
    g->regions_room = regions;
    g->changes_room = changes;
    fdri_arena_section_add(a->super->section, FDRI_ARENA_SECTIONS, FDRI_ARENA_SECTION_GOVERNOR,
                           FDRI_ARENA_SECTION_GOVERNOR_VERSION, off);
    return g;
}

static struct fdri_arena_muted_region *muted_regions(void)
{
    return (struct fdri_arena_muted_region *)(void *)(account + 1);
}

static struct fdri_arena_governor_change *changes_of_account(void)
{
    return (struct fdri_arena_governor_change *)(void *)(muted_regions() + account->regions_room);
}

bool fdri_governor_start(double target)
{
    account = NULL;
    due_ns = cpu_before_ns = 0;
    policy = (struct fdri_policies_overhead){.target = target};
    bool on = target >= 0;
    bool room = on && fdri_life_recording.arena.super->arena_bytes >= least_arena_bytes;
    bool ready = room && fdri_governor_regions_start() && fdri_names_mutes_start(true);
    if (ready) fdri_governor_counts_start();
    if (ready) account = new_account(target);
    if (!account) fdri_names_mutes_start(false);
    return account || !on;
}

/* The first look: measures the cost of a call, and begins to count. */
static void begin(uint64_t now_ns, uint64_t cpu_ns)
{
    cost = fdri_governor_calibrate();
    policy.call_ns = cost.recorded_ns;
    account->call_ns_1024 = (uint32_t)(cost.recorded_ns * 1024);
    account->muted_ns_1024 = (uint32_t)(cost.muted_ns * 1024);
    cpu_before_ns = cpu_ns;
    fdri_governor_count_calls(now_ns, 1);
}

/* The region's place in the account, made at its first change; NULL: no room. */
static struct fdri_arena_muted_region *place_of(struct fdri_governor_region *r)
{
    struct fdri_arena_muted_region *all = muted_regions();
    for (uint32_t i = 0; i < account->regions_used; i++)
        if (all[i].region == r->region) return &all[i];
    uint32_t used = account->regions_used;
    if (used == account->regions_room) return NULL;
    all[used].region = r->region;
    fdri_atomic_store_release(&account->regions_used, used + 1); /* R:governor */
    return &all[used];
}

static uint32_t ppm(double share) { return (uint32_t)fdri_bits_min((uint64_t)(share * 1e6), UINT32_MAX); }

/* Tells the threads and writes a line. Without room for the region in the account, it is not muted. */
static void change(uint32_t load, uint64_t tick, double share_before)
{
    struct fdri_policies_load *l = &fdri_governor_loads[load];
    struct fdri_governor_region *r = &fdri_governor_regions[load];
    struct fdri_arena_muted_region *m = place_of(r);
    if (!m) {
        l->muted = false;
        l->fixed = r->has_no_place = true;
        account->no_room = 1;
        return;
    }
    fdri_names_mute(r->region, l->muted);
    m->changes += l->muted;
    m->share_ppm = ppm(l->peak);
    m->tick = tick;
    fdri_atomic_store_relaxed(&m->muted, (uint32_t)l->muted);
    account->muted_now += l->muted ? 1u : -1u;
    changes_of_account()[account->changes % account->changes_room] = (struct fdri_arena_governor_change){
        .tick = tick,
        .region = r->region,
        .muted = l->muted,
        .share_ppm = ppm(l->peak),
        .all_shares_ppm = ppm(share_before)};
    fdri_atomic_store_release(&account->changes, account->changes + 1); /* R:governor */
}

static void decide(uint64_t now_ns, uint64_t used_ns, double busiest)
{
    static bool was_muted[FDRI_GOVERNOR_LOADS];
    uint64_t tick = fdri_thread_tick_now();
    for (uint32_t i = 0; i < fdri_governor_count; i++) was_muted[i] = fdri_governor_loads[i].muted;
    uint64_t of_busiest = (uint64_t)((double)used_ns / busiest);
    bool any = fdri_policies_overhead_step(&policy, fdri_governor_loads, fdri_governor_count, fdri_governor_order,
                                           now_ns, of_busiest ? of_busiest : 1);
    if (!any) return;
    for (uint32_t i = 1; i < fdri_governor_count; i++)
        if (fdri_governor_loads[i].muted != was_muted[i]) change(i, tick, policy.share);
    fdri_names_mutes_changed();
}

static void write_account(uint64_t used_ns)
{
    struct fdri_governor_calls *c = &fdri_governor_calls;
    account->cpu_ns += used_ns;
    account->recorded += c->timed;
    account->muted_calls += c->untimed;
    account->share_ppm = ppm((double)c->timed * cost.recorded_ns / (double)used_ns);
    account->muting_ppm = ppm((double)(c->timed + c->untimed) * cost.muted_ns / (double)used_ns);
    account->look_tick = fdri_thread_tick_now();
}

/* Returns the time until the next look. */
static uint64_t look(uint64_t now_ns, uint64_t cpu_ns)
{
    uint64_t used_ns = cpu_ns - cpu_before_ns;
    if (used_ns < LEAST_CPU_NS) return IDLE_NS;
    double busiest = fdri_governor_count_calls(now_ns, used_ns);
    if (busiest == 0) return OFTEN_NS;
    decide(now_ns, used_ns, busiest);
    write_account(used_ns);
    cpu_before_ns = cpu_ns;
    return OFTEN_NS;
}

uint64_t fdri_governor_look(uint64_t now_ns, uint64_t cpu_ns)
{
    if (!account) return UINT64_MAX;
    if (now_ns < due_ns) return due_ns;
    uint64_t began = fdri_clock_ns(CLOCK_THREAD_CPUTIME_ID), pause_ns = OFTEN_NS;
    if (cpu_before_ns) pause_ns = look(now_ns, cpu_ns);
    else begin(now_ns, cpu_ns);
    uint64_t took = fdri_clock_ns(CLOCK_THREAD_CPUTIME_ID) - began;
    return due_ns = now_ns + fdri_bits_max(pause_ns, took * share_of_looks);
}

uint64_t fdri_governor_poll(uint64_t now_ns)
{
    if (fdri_life_recording.settings.overhead < 0) return UINT64_MAX;
    return fdri_governor_look(now_ns, fdri_clock_ns(CLOCK_PROCESS_CPUTIME_ID));
}
