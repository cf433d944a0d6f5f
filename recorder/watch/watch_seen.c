/* SPDX-License-Identifier: MIT */
/* Checks of triggers by recording threads: in the slow branch of a leave, and for points after a test of one word. They
 * take no lock. The only system call wakes the dumper thread when a trigger fires. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/atomic.h"
#include "base/bits.h"
#include "export/view.h"
#include "format/arena/arena.h"
#include "recorder/names/names.h"
#include "recorder/recording.h"
#include "recorder/thread/grace_period.h"
#include "recorder/thread/thread_clock.h"
#include "recorder/thread/thread_state.h"
#include "recorder/totals/totals.h"
#include "recorder/watch/watch.h"
#include "recorder/watch/watch_table.h"

uint64_t fdri_watch_ticks = UINT64_MAX, fdri_watch_ns = UINT64_MAX;
uint32_t fdri_watch_classes;

/* The time of firing in the recording's clock. If the location's clock differs (`_at` events), that is now. */
static uint64_t tick_of(const struct fdri_thread *t, uint64_t tick)
{
    return t->ticks == fdri_life_recording.ticks ? tick : fdri_thread_tick_now();
}
static uint64_t ns_of(const struct fdri_thread *t, uint64_t ticks)
{
    return (uint64_t)((unsigned __int128)ticks * t->to_ns >> 32);
}

FDRI_COLD void fdri_watch_call(struct fdri_thread *t, uint32_t region, uint64_t duration, uint64_t tick)
{
    uint64_t ns = ns_of(t, duration);
    uint32_t key = FDRI_TOTALS_KEY(FDRI_ARENA_DEF_REGION, region);
    const struct fdri_watch_entry *e;
    if (!fdri_names_is_reader()) return;
    fdri_thread_read_begin();
    const struct fdri_watch_table *table = fdri_atomic_load_acquire(&fdri_watch_table); /* A:watch */
    if (table) FDRI_WATCH_EACH_ENTRY(table, key, e)
    if (ns >= fdri_atomic_load_relaxed(&e->threshold_ns))
        fdri_trigger_seen(e->slot, &(struct fdri_export_seen){.tick = tick_of(t, tick),
                                                              .value = ns,
                                                              .unit = FDRI_EXPORT_UNIT_NS,
                                                              .location = t->loc->id,
                                                              .key = key,
                                                              .field = FDRI_EXPORT_NO_FIELD});
    fdri_thread_read_end();
}

/* ---- points ---- */

static double as_double(uint64_t value, uint32_t type)
{
    if (type == FDRI_ARENA_VALUE_I64) return (double)(int64_t)value;
    return type == FDRI_ARENA_VALUE_F64 ? fdri_bits_to_double(value) : (double)value;
}

/* The identity of a followed value: a metric, or a field of an event, on one location, or (0) on all. */
static uint64_t name_of(uint32_t location, uint32_t key, uint32_t field)
{
    return (uint64_t)location << 32 | (key & 0xFFFFFFu) << 6 | (uint32_t)(key >> 24 == FDRI_ARENA_DEF_EVENT) << 5 |
           (field & 31);
}

enum { PLACES = 16 }; /* candidates for each value */

/* The place of this value: its own, a free one, or that not updated for longest, if longer than stale_ns. NULL: all
 * candidates are in use. */
static struct fdri_watch_followed *followed_place(struct fdri_watch_slot *w, uint64_t key, uint64_t now_ns,
                                                  uint64_t stale_ns)
{
    struct fdri_watch_followed *oldest = NULL;
    uint64_t oldest_ns = UINT64_MAX;
    uint32_t first = (uint32_t)((key * 0x9E3779B97F4A7C15u) >> 32);
    for (uint32_t i = 0; i < PLACES; i++) {
        struct fdri_watch_followed *f = &w->followed[(first + i) % FDRI_WATCH_FOLLOWED];
        uint64_t is = fdri_atomic_load_relaxed(&f->key), at = is ? fdri_atomic_load_relaxed(&f->at_ns) : 0;
        if (is == key) return f;
        if (at < oldest_ns) oldest = f, oldest_ns = at;
    }
    uint64_t before = fdri_atomic_load_relaxed(&oldest->key);
    if (before && (oldest_ns > now_ns || now_ns - oldest_ns < stale_ns)) return NULL;
    if (!fdri_atomic_cas_acq_rel_u64(&oldest->key, &before, key)) return NULL; /* L:trigger - lost: next event */
    fdri_atomic_store_relaxed(&oldest->at_ns, (uint64_t)0);
    fdri_atomic_store_relaxed(&oldest->above, 0u);
    return oldest;
}

/* Stores whether the condition holds; true only when it begins to hold. */
static bool holds_anew(uint32_t *above, bool holds)
{
    uint32_t before = fdri_atomic_load_relaxed(above);
    if (before == holds) return false;
    return fdri_atomic_cas_acq_rel_u32(above, &before, holds) && holds; /* L:trigger */
}

static bool beyond_limit(const struct fdri_watch *w, double value)
{
    return w->below ? value < w->limit : value > w->limit;
}

enum { FORGET_NS = 1000000000 };

/* Did the metric cross the limit just now? Each matching metric is followed separately. */
static bool value_crossed(struct fdri_watch_slot *w, uint64_t key, double value, uint64_t now_ns)
{
    if (value != value) return false; /* NaN: neither beyond the limit nor back */
    struct fdri_watch_followed *f = followed_place(w, key, now_ns, FORGET_NS);
    if (f) fdri_atomic_store_relaxed(&f->at_ns, now_ns);
    return holds_anew(f ? &f->above : &w->above, beyond_limit(&w->watch, value));
}

/* Did its change per second, measured over at least the period, cross the limit just now? */
static bool rate_crossed(struct fdri_watch_slot *w, uint64_t key, uint32_t type, uint64_t value, uint64_t now_ns,
                         double *per_second)
{
    struct fdri_watch_followed *f = followed_place(w, key, now_ns, FORGET_NS);
    uint64_t at = f ? fdri_atomic_load_relaxed(&f->at_ns) : 0, passed = now_ns - at;
    if (!f || (at && passed < w->watch.ns)) return false;
    double before = as_double(fdri_atomic_load_relaxed(&f->value), type);
    fdri_atomic_store_relaxed(&f->value, value);
    fdri_atomic_store_relaxed(&f->at_ns, fdri_bits_max(now_ns, 1));
    if (!at || !passed) return false;
    *per_second = (as_double(value, type) - before) * 1e9 / (double)passed;
    return holds_anew(&f->above, beyond_limit(&w->watch, *per_second));
}

/* Every count-th event. */
static bool is_counted_event(struct fdri_watch_slot *w)
{
    return (fdri_atomic_add_relaxed(&w->count, 1u) + 1) % w->watch.count == 0;
}

/* Did the last N events come within the period? The times of the last 255 steps are kept. A step is one event if N <=
 * 255; otherwise it is more, and the trigger may fire up to a step late. After firing, no event counts until the period
 * is over. */
static bool rate_applies(struct fdri_watch_slot *w, uint64_t now_ns)
{
    uint64_t many = w->watch.count, step = (many - 1) / (FDRI_WATCH_PACED - 1) + 1,
             until = fdri_atomic_load_relaxed(&w->quiet_ns);
    if (until && now_ns <= until) return false;
    uint64_t n = fdri_atomic_add_relaxed(&w->count, 1u) + 1;
    if (n % step == 0) fdri_atomic_store_relaxed(&w->paced_ns[n / step % FDRI_WATCH_PACED], now_ns);
    uint64_t first = n < many ? 0 : (n - many + 1) / step;
    if (first * step <= fdri_atomic_load_relaxed(&w->spent)) return false;
    uint64_t from = fdri_atomic_load_relaxed(&w->paced_ns[first % FDRI_WATCH_PACED]);
    if (now_ns > from && now_ns - from > w->watch.ns) return false;
    if (!fdri_atomic_cas_acq_rel_u64(&w->quiet_ns, &until, from + w->watch.ns)) return false; /* L:trigger */
    fdri_atomic_store_relaxed(&w->spent, n);
    return true;
}

static void check_entry(struct fdri_thread *t, const struct fdri_watch_entry *e, uint32_t key, uint32_t type,
                        uint64_t value, uint64_t tick)
{
    struct fdri_watch_slot *w = &fdri_watch_slots[e->slot];
    struct fdri_export_seen seen = {.tick = tick_of(t, tick),
                                    .value = value,
                                    .type = type,
                                    .unit = FDRI_EXPORT_UNIT_NONE,
                                    .location = t->loc->id,
                                    .key = key,
                                    .field = e->field};
    double per_second = 0;
    bool fire = false;
    switch (w->watch.source) {
    case FDRI_WATCH_BY_METRIC:
        fire = value_crossed(w, name_of(0, key, e->field), as_double(value, type), ns_of(t, tick));
        break;
    case FDRI_WATCH_BY_METRIC_RATE:
        fire = rate_crossed(w, name_of(t->loc->id + 1, key, e->field), type, value, ns_of(t, tick), &per_second);
        seen.value = fdri_bits_of_double(per_second);
        seen.type = FDRI_ARENA_VALUE_F64;
        seen.unit = FDRI_EXPORT_UNIT_PER_SECOND;
        break;
    case FDRI_WATCH_BY_COUNT:
    case FDRI_WATCH_BY_EVENT_RATE:
        fire = w->watch.source == FDRI_WATCH_BY_COUNT ? is_counted_event(w) : rate_applies(w, ns_of(t, tick));
        seen.value = w->watch.source == FDRI_WATCH_BY_COUNT ? fdri_atomic_load_relaxed(&w->count) : w->watch.count;
        seen.type = FDRI_ARENA_VALUE_U64;
        seen.unit = FDRI_EXPORT_UNIT_COUNT;
        break;
    default: break;
    }
    if (fire) fdri_trigger_seen(e->slot, &seen);
}

FDRI_NOINLINE void fdri_watch_point(struct fdri_thread *t, uint32_t key, uint32_t type, uint64_t value,
                                    const uint64_t *field, uint32_t fields, uint64_t tick)
{
    const struct fdri_watch_entry *e;
    if (!fdri_names_is_reader()) return;
    fdri_thread_read_begin();
    const struct fdri_watch_table *table = fdri_atomic_load_acquire(&fdri_watch_table); /* A:watch */
    if (table) FDRI_WATCH_EACH_ENTRY(table, key, e)
        {
            bool of_field = key >> 24 == FDRI_ARENA_DEF_EVENT && e->field < fields;
            check_entry(t, e, key, of_field ? e->type : type, of_field ? field[e->field] : value, tick);
        }
    fdri_thread_read_end();
}
