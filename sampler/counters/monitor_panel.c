/* SPDX-License-Identifier: MIT */
/* One observed thread: reading its sources, and recording changes.
 *
 * A reading is a user event "fdr.counters.N" on the monitor's location. Its fields are thread id, series, number of the
 * reading, number of unchanged readings before it, and the counters. Counters are recorded as running counts, not as
 * differences. So two kept readings give the exact change between them, even if readings in between were given back. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/bits.h"
#include "base/clock.h"
#include "sampler/counters/monitor.h"

enum { DERIVED_NS = 100000000 }; /* interval of the quotients */

static struct fdri_counters_reading *reading_of(struct fdri_counters_panel *p, const struct fdr_counter_source *source)
{
    for (uint32_t i = 0; i < p->readings; i++)
        if (p->reading[i].source == source) return &p->reading[i];
    if (p->readings == MONITOR_SOURCES) return NULL;
    struct fdri_counters_reading *r = &p->reading[p->readings++];
    *r = (struct fdri_counters_reading){.source = source};
    return r;
}

/* Defines the event types of a lane, when the first thread uses it. */
static void define_events(struct fdri_counters_panel *p, uint32_t lane)
{
    struct fdr_field field[16] = {
        {"thread", FDR_U64, 0}, {"series", FDR_U64, 8}, {"reading", FDR_U64, 16}, {"idle", FDR_U64, 24}};
    char text[16][64], event[32];
    snprintf(event, sizeof event, "fdr.counters.%u", lane);
    for (uint32_t e = 0; e < p->events; e++) {
        uint32_t first = e * MONITOR_PER_EVENT, n;
        n = p->count - first < MONITOR_PER_EVENT ? p->count - first : MONITOR_PER_EVENT;
        fdri_counters_fields(field + MONITOR_FIELDS, text, p->choice + first, n, 8 * (size_t)MONITOR_FIELDS);
        p->type[lane][e] = fdr_event_define(event, field, MONITOR_FIELDS + n);
    }
}

/* The place of a counter in the panel, which is added if necessary; MONITOR_COUNTERS: no room. */
static uint32_t place_of(struct fdri_counters_panel *p, struct fdri_counters_choice c)
{
    for (uint32_t i = 0; i < p->count; i++)
        if (p->choice[i].source == c.source && p->choice[i].index == c.index) return i;
    struct fdri_counters_reading *r = p->count < MONITOR_COUNTERS ? reading_of(p, c.source) : NULL;
    if (!r) return MONITOR_COUNTERS;
    r->wanted |= 1u << c.index;
    r->place[c.index] = (uint8_t)p->count;
    p->choice[p->count] = c;
    return p->count++;
}

/* Adds the parts of a derived counter. False: there is no room for one, so the counter could only be 0. */
static bool add_parts(struct fdri_counters_panel *p, uint32_t place)
{
    char missing[FDRI_COUNTERS_WHY_BYTES];
    struct fdri_counters_choice part;
    for (int i = 0; i < 2; i++) {
        const char *name = fdri_counters_derived_of[p->choice[place].index][i];
        bool found = name && fdri_counters_choose(name, true, &part, 1, missing, sizeof missing);
        p->part[place][i] = (uint8_t)(found ? place_of(p, part) : MONITOR_COUNTERS);
        if (name && p->part[place][i] == MONITOR_COUNTERS) return false;
    }
    return true;
}

static bool add(struct fdri_counters_panel *p, struct fdri_counters_choice choice)
{
    struct fdri_counters_panel before = *p;
    uint32_t place = place_of(p, choice);
    bool added = place < MONITOR_COUNTERS && (choice.source != &fdri_counters_source_derived || add_parts(p, place));
    if (!added) *p = before;
    return added;
}

void fdri_counters_panel_add(struct fdri_counters_panel *p, const struct fdri_counters_choice *choice, size_t count,
                             char *missing, size_t missing_bytes)
{
    char name[64];
    for (size_t i = 0; i < count; i++) {
        size_t used = strlen(missing);
        if (add(p, choice[i])) continue;
        fdri_counters_text(name, sizeof name, choice[i]);
        snprintf(missing + used, missing_bytes - used, "%s%s: more than %d counters of %s", used ? "; " : "", name,
                 MONITOR_COUNTERS, choice[i].source->scope == FDR_COUNTER_PROCESS ? "the process" : "threads");
    }
    for (uint32_t i = 0; i < p->count; i++) fdri_counters_define(p->choice[i]);
    p->events = (p->count + MONITOR_PER_EVENT - 1) / MONITOR_PER_EVENT;
}

int fdri_counters_observe_begin(struct fdri_counters_observed *o, struct fdri_counters_panel *p, int tid,
                                uint32_t series)
{
    if (!p->type[series % MONITOR_LANES][0]) define_events(p, series % MONITOR_LANES);
    *o = (struct fdri_counters_observed){.tid = tid, .series = series, .seen = true, .fresh = true};
    for (uint32_t i = 0; i < p->readings; i++) {
        int e = fdri_counters_handle_open(&o->handle[i], p->reading[i].source, tid, p->reading[i].wanted);
        if (!e) continue;
        fdri_counters_observe_end(o, p);
        return e;
    }
    return 0;
}

void fdri_counters_observe_end(struct fdri_counters_observed *o, const struct fdri_counters_panel *p)
{
    for (uint32_t i = 0; i < p->readings; i++) fdri_counters_handle_close(&o->handle[i]);
    o->tid = -1;
}

/* Opens the sources again. Those of the process continue from their old state. */
void fdri_counters_observe_again(struct fdri_counters_observed *o, const struct fdri_counters_panel *p)
{
    o->lost = false;
    for (uint32_t i = 0; i < p->readings; i++) {
        struct fdri_counters_handle before = o->handle[i];
        fdri_counters_handle_close(&o->handle[i]);
        if (fdri_counters_handle_open(&o->handle[i], p->reading[i].source, o->tid, p->reading[i].wanted)) continue;
        memcpy(o->handle[i].open.state, before.open.state, sizeof before.open.state);
    }
}

/* False: a source failed. Its counters keep their newest values. */
static bool read_sources(struct fdri_counters_observed *o, const struct fdri_counters_panel *p)
{
    bool all = true;
    for (uint32_t i = 0; i < p->readings; i++) {
        const struct fdri_counters_reading *r = &p->reading[i];
        uint64_t value[FDR_SOURCE_COUNTERS];
        if (!r->source->read) continue;
        int e = fdri_counters_handle_read(&o->handle[i], value);
        if (e) {
            all = false;
            o->lost |= e == -EBADF;
            continue;
        }
        for (uint32_t rest = r->wanted; rest; rest &= rest - 1) {
            uint32_t which = (uint32_t)__builtin_ctz(rest);
            o->value[r->place[which]] = value[which];
        }
    }
    return all;
}

static uint64_t part_of(const struct fdri_counters_observed *o, const struct fdri_counters_panel *p, uint32_t place,
                        int i)
{
    return p->part[place][i] < MONITOR_COUNTERS ? o->value[p->part[place][i]] : 0;
}

static double quotient(uint32_t which, uint64_t a, uint64_t b, uint64_t ns)
{
    if (which == FDRI_COUNTERS_IPC) return b ? (double)a / (double)b : 0;
    return a < ns ? 1 - (double)a / (double)ns : 0;
}

/* Computes the derived counters at the end of their interval; otherwise they keep their values. */
static void derive(struct fdri_counters_observed *o, const struct fdri_counters_panel *p)
{
    uint64_t now = fdri_clock_ns(CLOCK_MONOTONIC), ns = now - o->since_ns;
    bool over = ns >= DERIVED_NS;
    if (!over && o->since_ns) return;
    for (uint32_t k = 0; k < p->count; k++) {
        if (p->choice[k].source != &fdri_counters_source_derived) continue;
        uint64_t a = part_of(o, p, k, 0), b = part_of(o, p, k, 1);
        o->value[k] = !o->since_ns ? fdri_bits_of_double(__builtin_nan("")) /* unknown so far */
                                   : fdri_bits_of_double(
                                         quotient(p->choice[k].index, a - o->since[k][0], b - o->since[k][1], ns));
        o->since[k][0] = a;
        o->since[k][1] = b;
    }
    o->since_ns = now;
}

static void record(struct fdri_counters_observed *o, const struct fdri_counters_panel *p, uint32_t e, bool last)
{
    uint32_t first = e * MONITOR_PER_EVENT, left = p->count - first;
    uint32_t n = left < MONITOR_PER_EVENT ? left : MONITOR_PER_EVENT;
    bool news = memcmp(o->value + first, o->recorded + first, n * sizeof *o->value) != 0;
    if (!news && !o->fresh && !last) {
        o->idle[e]++;
        return;
    }
    uint64_t payload[16] = {(uint64_t)o->tid, o->series, o->number, o->idle[e]};
    uint64_t before = last || o->fresh ? o->number : o->before[e]; /* the first and the last are kept longest */
    memcpy(payload + MONITOR_FIELDS, o->value + first, n * sizeof *payload);
    memcpy(o->recorded + first, o->value + first, n * sizeof *o->value);
    o->idle[e] = 0;
    o->before[e] = o->number;
    fdr_event_type type = p->type[o->series % MONITOR_LANES][e];
    if (type) fdr_reading(type, payload, before, o->number); /* 0: no room for its definition, which was reported */
}

bool fdri_counters_observe(struct fdri_counters_observed *o, const struct fdri_counters_panel *p, bool last)
{
    bool there = read_sources(o, p);
    if (!there && o->fresh) return false;
    derive(o, p);
    o->number++;
    for (uint32_t e = 0; e < p->events; e++) record(o, p, e, last);
    o->fresh = false;
    return there;
}
