/* SPDX-License-Identifier: MIT */
/* The regions that matter to the governor: those with many calls in some interval. Each has a load for the policy; all
 * other calls are load 0, which is never muted. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include "base/atomic.h"
#include "base/bits.h"
#include "format/arena/arena.h"
#include "format/codec/record_codec.h"
#include "recorder/governor/governor.h"
#include "recorder/names/names.h"
#include "recorder/names/region_rules.h"
#include "recorder/recording.h"
#include "recorder/totals/totals.h"
#include "recorder/watch/watch.h"

enum { MANY_CALLS = 50, SPREADS = 8, LEAST_SPREAD = 100 };
static const uint64_t spread_lasts_ns = 1000000000;

/* Sums of all threads: now, and at the look before. */
struct counts {
    uint64_t timed, untimed, sum;
    uint64_t timed_before, untimed_before;
    uint32_t load; /* 0: none of its own */
    uint32_t pad;
};
/* Reserved address space, touched as regions are called. Made once. */
static struct space {
    struct counts of[FDRI_CODEC_ID_MAX + 1];
    struct fdri_governor_region region[FDRI_GOVERNOR_LOADS];
    struct fdri_policies_load load[FDRI_GOVERNOR_LOADS];
    uint32_t order[FDRI_GOVERNOR_LOADS];
} * space;
static struct counts rest;

struct fdri_governor_region *fdri_governor_regions;
struct fdri_policies_load *fdri_governor_loads;
uint32_t *fdri_governor_order, fdri_governor_count;
struct fdri_governor_calls fdri_governor_calls;

bool fdri_governor_regions_start(void)
{
    if (space) munmap(space, sizeof *space);
    space = mmap(NULL, sizeof *space, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (space == MAP_FAILED) space = NULL;
    if (!space) return false;
    fdri_governor_regions = space->region;
    fdri_governor_loads = space->load;
    fdri_governor_order = space->order;
    fdri_governor_count = 1;
    space->load[0] = (struct fdri_policies_load){.tells = 1, .fixed = true};
    memset(&rest, 0, sizeof rest);
    return true;
}

static uint32_t regions_defined(void)
{
    uint32_t n = fdri_atomic_load_relaxed(&fdri_life_recording.arena.super->def_count[FDRI_ARENA_DEF_REGION]);
    return (uint32_t)fdri_bits_min(n, FDRI_CODEC_ID_MAX);
}

static void clear(struct counts *c) { c->timed = c->untimed = c->sum = 0; }

void fdri_governor_regions_begin(void)
{
    for (uint32_t id = 0; id <= regions_defined(); id++)
        if (space->of[id].timed | space->of[id].untimed) clear(&space->of[id]);
    clear(&rest);
}

void fdri_governor_regions_add(uint32_t key, uint64_t timed, uint64_t untimed, uint64_t sum)
{
    uint32_t id = key & 0xffffffu;
    struct counts *c = key == FDRI_ARENA_ROW_KEY_REST || id > FDRI_CODEC_ID_MAX ? &rest : &space->of[id];
    c->timed += timed;
    c->untimed += untimed;
    c->sum += sum;
}

/* Calls since the look before. A sum falls if its row was added to [rest]. */
static uint64_t since(uint64_t now, uint64_t *before, uint64_t *fell)
{
    uint64_t more = now > *before ? now - *before : 0;
    if (now < *before) *fell += *before - now;
    if (now != *before) *before = now; /* else the page stays untouched */
    return more;
}

static struct fdri_governor_calls interval_of(struct counts *c, struct fdri_governor_calls *fell)
{
    return (struct fdri_governor_calls){since(c->timed, &c->timed_before, &fell->timed),
                                        since(c->untimed, &c->untimed_before, &fell->untimed)};
}

/* How unlike the calls of a region are. 1 if all lie in one power of two, and 1 more for each power of two between the
 * median and the longest hundredth. */
static double spread_of(uint32_t region)
{
    uint64_t count[64], all = 0, below = 0;
    int median = -1, long_ones = -1;
    if (!fdri_totals_histogram_of_all(FDRI_TOTALS_KEY(FDRI_ARENA_DEF_REGION, region), count)) return 0;
    for (int b = 0; b < 64; b++) all += count[b];
    for (int b = 0; b < 64; b++) {
        below += count[b];
        if (median < 0 && below * 2 >= all) median = b;
        if (long_ones < 0 && below * 100 >= all * 99) long_ones = b;
    }
    return all < LEAST_SPREAD ? 0 : 1 + long_ones - median;
}

/* The worth of a call of the region: its mean duration in ns, times how unlike calls are. */
static double tells(const struct counts *c, const struct fdri_governor_region *r)
{
    double ticks = c->timed ? (double)c->sum / (double)c->timed : 0;
    double ns = ticks * (double)fdri_life_recording.tick_to_ns / 4294967296.0;
    return (ns > 1 ? ns : 1) * (r->spread > 1 ? r->spread : 1);
}

static bool is_fixed(uint32_t region)
{
    return fdri_names_rule_of(region) || fdri_watch_names(FDRI_TOTALS_KEY(FDRI_ARENA_DEF_REGION, region));
}

static uint32_t new_load(uint32_t region)
{
    uint32_t n = fdri_governor_count;
    if (n == FDRI_GOVERNOR_LOADS) return 0;
    space->region[n] = (struct fdri_governor_region){.region = region};
    space->load[n] = (struct fdri_policies_load){.fixed = is_fixed(region)};
    fdri_governor_count++;
    return n;
}

static void update(uint32_t region, struct fdri_governor_calls calls, uint64_t now_ns, int *spreads)
{
    struct counts *c = &space->of[region];
    if (!c->load && calls.timed >= MANY_CALLS) c->load = new_load(region);
    struct fdri_policies_load *l = &space->load[c->load];
    struct fdri_governor_region *r = &space->region[c->load];
    l->calls += l->muted ? calls.timed + calls.untimed : calls.timed;
    if (!c->load) return;
    if (calls.timed && *spreads && (!r->spread_ns || now_ns - r->spread_ns >= spread_lasts_ns)) {
        r->spread = spread_of(region);
        r->spread_ns = now_ns;
        l->fixed = r->has_no_place || is_fixed(region);
        --*spreads;
    }
    l->tells = tells(c, r);
}

void fdri_governor_regions_end(uint64_t now_ns)
{
    int spreads = SPREADS;
    struct fdri_governor_calls all = {0}, fell = {0}, none = {0};
    for (uint32_t i = 0; i < fdri_governor_count; i++) space->load[i].calls = 0;
    for (uint32_t id = 0; id <= regions_defined(); id++) {
        struct fdri_governor_calls calls = interval_of(&space->of[id], &fell);
        if (!(calls.timed | calls.untimed)) continue;
        update(id, calls, now_ns, &spreads);
        all.timed += calls.timed;
        all.untimed += calls.untimed;
    }
    struct fdri_governor_calls others = interval_of(&rest, &none);
    others.timed -= fdri_bits_min(others.timed, fell.timed); /* moved there, but not new */
    others.untimed -= fdri_bits_min(others.untimed, fell.untimed);
    space->load[0].calls += others.timed;
    fdri_governor_calls = (struct fdri_governor_calls){all.timed + others.timed, all.untimed + others.untimed};
}
