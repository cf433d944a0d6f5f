/* SPDX-License-Identifier: MIT */
/* The checks that recording threads make: behind the slow branch of a leave, and behind one test of a word for points. No
 * lock, no system call but the one that wakes the dumper when a trigger has something new. */
#include <string.h>

#include "recorder/grace.h"
#include "recorder/watch.h"

uint64_t fdri_watch_ticks = UINT64_MAX, fdri_watch_ns = UINT64_MAX;
uint32_t fdri_watch_classes;

/* Ticks of the recording's clock: an `_at` event has its own time line. */
static uint64_t tick_of(const struct fdri_thread *t, uint64_t tick)
{
    return t->ticks == fdri_rec.ticks ? tick : fdri_tick_now();
}
static uint64_t ns_of(const struct fdri_thread *t, uint64_t ticks)
{
    return (uint64_t)((unsigned __int128)ticks * t->to_ns >> 32);
}

FDR_COLD void fdri_watch_call(struct fdri_thread *t, uint32_t region, uint64_t duration, uint64_t tick)
{
    uint64_t ns = ns_of(t, duration);
    uint32_t key = FDRI_KEY(FDR_DEF_REGION, region);
    const struct fdri_watch_entry *e;
    fdri_read_begin();
    const struct fdri_watch_table *table = fdr_load_acquire(&fdri_watch_table); /* A:watch */
    if (table) FDRI_EACH_ENTRY(table, key, e)
    if (ns >= fdr_load_relaxed(&e->threshold_ns))
        fdri_trigger_seen(
            e->slot,
            &(struct fdri_seen){
                .tick = tick_of(t, tick), .value = ns, .unit = FDRI_UNIT_NS, .location = t->loc->id, .key = key});
    fdri_read_end();
}

/* ---- points ---- */

static double as_double(uint64_t value, uint32_t type)
{
    double f;
    if (type == FDR_VALUE_I64) return (double)(int64_t)value;
    if (type != FDR_VALUE_F64) return (double)value;
    memcpy(&f, &value, sizeof f);
    return f;
}

/* Fires when it comes to hold, not while it goes on holding. */
static bool begins(struct fdri_watching *w, bool holds)
{
    uint32_t before = fdr_load_relaxed(&w->above);
    if (before == holds) return false;
    return fdr_cas_acq_rel_u32(&w->above, &before, holds) && holds; /* L:trigger */
}

static bool beyond(const struct fdri_watch *w, double value) { return w->below ? value < w->limit : value > w->limit; }

/* Change per second, per location, over at least the period. A slot shared by two locations begins anew. */
static bool rate(struct fdri_watching *w, const struct fdri_thread *t, uint32_t key, uint32_t type, uint64_t value,
                 uint64_t now_ns, double *per_second)
{
    uint32_t at = t->loc->id % 64;
    bool same = w->rate[at].location == t->loc->id + 1 && w->rate[at].key == key;
    uint64_t passed = now_ns - w->rate[at].at_ns;
    if (same && passed < w->watch.ns) return false;
    *per_second = same && passed ? (as_double(value, type) - as_double(w->rate[at].value, type)) * 1e9 / (double)passed
                                 : 0;
    w->rate[at].location = t->loc->id + 1;
    w->rate[at].key = key;
    w->rate[at].at_ns = now_ns;
    w->rate[at].value = value;
    return same;
}

static bool counted(struct fdri_watching *w, uint64_t now_ns)
{
    uint64_t from = fdr_load_relaxed(&w->period_from_ns);
    if (w->watch.source == FDRI_BY_EVENT_RATE && (now_ns - from > w->watch.ns || !from)) {
        fdr_store_relaxed(&w->period_from_ns, now_ns);
        fdr_store_relaxed(&w->count, (uint64_t)0);
    }
    uint64_t n = fdr_add_relaxed(&w->count, 1u) + 1;
    return w->watch.source == FDRI_BY_COUNT ? n % w->watch.count == 0 : n == w->watch.count;
}

static void look(struct fdri_thread *t, const struct fdri_watch_entry *e, uint32_t key, uint32_t type, uint64_t value,
                 uint64_t tick)
{
    struct fdri_watching *w = &fdri_watching[e->slot];
    struct fdri_seen seen = {.tick = tick_of(t, tick),
                             .value = value,
                             .type = type,
                             .unit = FDRI_UNIT_NONE,
                             .location = t->loc->id,
                             .key = key};
    double per_second;
    bool fire = false;
    switch (w->watch.source) {
    case FDRI_BY_METRIC: fire = begins(w, beyond(&w->watch, as_double(value, type))); break;
    case FDRI_BY_METRIC_RATE:
        if (!rate(w, t, key, type, value, ns_of(t, tick), &per_second)) return;
        fire = begins(w, beyond(&w->watch, per_second));
        memcpy(&seen.value, &per_second, 8);
        seen.type = FDR_VALUE_F64;
        seen.unit = FDRI_UNIT_PER_SECOND;
        break;
    case FDRI_BY_COUNT:
    case FDRI_BY_EVENT_RATE:
        fire = counted(w, ns_of(t, tick));
        seen.value = fdr_load_relaxed(&w->count);
        seen.type = FDR_VALUE_U64;
        seen.unit = FDRI_UNIT_COUNT;
        break;
    default: break;
    }
    if (fire) fdri_trigger_seen(e->slot, &seen);
}

FDR_NOINLINE void fdri_watch_point(struct fdri_thread *t, uint32_t key, uint32_t type, uint64_t value,
                                   const uint64_t *field, uint32_t fields, uint64_t tick)
{
    const struct fdri_watch_entry *e;
    fdri_read_begin();
    const struct fdri_watch_table *table = fdr_load_acquire(&fdri_watch_table); /* A:watch */
    if (table) FDRI_EACH_ENTRY(table, key, e)
        {
            bool of_field = key >> 24 == FDR_DEF_EVENT && e->field < fields;
            look(t, e, key, of_field ? e->type : type, of_field ? field[e->field] : value, tick);
        }
    fdri_read_end();
}
