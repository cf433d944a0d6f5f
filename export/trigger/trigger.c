/* SPDX-License-Identifier: MIT */
/* Turns the match of a source into a snapshot: window, hold-off, limit. Sources call fdri_trigger_seen from any thread,
 * also in signal handlers. All else happens in the dumper thread.
 *
 *   armed --match--> pending --end of the window--> taking: snapshot --> quiet for the hold-off --> armed
 *
 * Matches while pending or quiet are only counted. A match is dropped if no snapshot of its own follows. The counts lie
 * in the arena, as a tally: seen = dropped + snapshots + 1 while one is pending or taking. */
#include <errno.h>
#include <fdr/fdr.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/atomic.h"
#include "base/bits.h"
#include "base/clock.h"
#include "base/text/message.h"
#include "base/text/number.h"
#include "export/snapshot/snapshot.h"
#include "export/trigger/job_asks.h"
#include "export/trigger/trigger.h"
#include "export/view.h"
#include "format/arena/arena.h"

enum { FREE, ARMED, MATCHING, PENDING, TAKING };
static struct slot {
    uint32_t state; /* atomic */
    uint32_t armed; /* how often the slot was given to a trigger */
    struct fdri_export_trigger trigger;
    struct fdri_export_seen seen; /* valid in state PENDING */
    uint64_t due_ns;              /* CLOCK_MONOTONIC: end of the window */
    uint64_t quiet_until_ns;      /* atomic */
    uint64_t seen_count;          /* atomic: matches, also while pending or quiet */
    uint32_t dropped;             /* atomic: a match came in a hold-off */
    bool warned;                  /* and that was said; under the lock */
} slots[FDRI_EXPORT_TRIGGERS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards a trigger's definition; a match takes no lock */

void fdri_trigger_fork(int phase)
{
    if (phase == 2 || phase == 3) pthread_mutex_init(&lock, NULL);
}

enum { SEEN, DROPPED, SNAPSHOTS };
static void count(const struct slot *s, int counter)
{
    if (s->trigger.tally) fdri_atomic_add_relaxed(&s->trigger.tally->counter[counter], (uint64_t)1);
}

bool fdri_trigger_any(void)
{
    for (uint32_t i = 0; i < FDRI_EXPORT_TRIGGERS; i++)
        if (fdri_atomic_load_relaxed(&slots[i].state) != FREE) return true;
    return false;
}

void fdri_trigger_arm(uint32_t i, const struct fdri_export_trigger *t)
{
    struct slot *s = &slots[i];
    pthread_mutex_lock(&lock); /* the dumper may be serving the slot's previous trigger */
    s->trigger = *t;
    s->armed++;
    fdri_atomic_store_relaxed(&s->quiet_until_ns, (uint64_t)0);
    fdri_atomic_store_relaxed(&s->seen_count, (uint64_t)0);
    fdri_atomic_store_relaxed(&s->dropped, 0u);
    s->warned = false;
    /* R:trigger - pairs with A:trigger: its definition before it can match */
    fdri_atomic_store_release(&s->state, (uint32_t)ARMED);
    pthread_mutex_unlock(&lock);
}

/* From here on matches are ignored. A pending one gets no snapshot. */
void fdri_trigger_disarm(uint32_t i)
{
    if (fdri_atomic_swap_acq_rel(&slots[i].state, (uint32_t)FREE) == PENDING) count(&slots[i], DROPPED); /* R:trigger */
}

/* The recording is over, and nothing may be counted in it: it may be gone, or belong to the process that forked. */
void fdri_trigger_forget(uint32_t i) { fdri_atomic_store_release(&slots[i].state, (uint32_t)FREE); } /* R:trigger */

uint64_t fdri_trigger_count(uint32_t i) { return fdri_atomic_load_relaxed(&slots[i].seen_count); }

void fdri_trigger_seen(uint32_t i, const struct fdri_export_seen *seen)
{
    struct slot *s = &slots[i];
    uint32_t armed = ARMED;
    if (fdri_atomic_load_acquire(&s->state) == FREE) return; /* A:trigger */
    fdri_atomic_add_relaxed(&s->seen_count, 1u);
    count(s, SEEN);
    uint64_t now = fdri_clock_ns(CLOCK_MONOTONIC);
    bool quiet = now < fdri_atomic_load_relaxed(&s->quiet_until_ns);
    if (quiet) fdri_atomic_store_relaxed(&s->dropped, 1u);
    if (quiet || !fdri_atomic_cas_acq_rel_u32(&s->state, &armed, MATCHING)) { /* L:trigger */
        count(s, DROPPED);
        return;
    }
    s->seen = *seen;
    s->due_ns = now + s->trigger.window_ns;
    uint32_t seeing = MATCHING; /* if the state changed, it was disarmed meanwhile and stays so */
    /* R:seen - pairs with A:seen: the dumper finds the whole match */
    if (fdri_atomic_cas_acq_rel_u32(&s->state, &seeing, PENDING)) fdri_trigger_dumper_wake();
    else count(s, DROPPED);
}

/* ---- the dumper thread ---- */

static const char *value_text(char *text, size_t bytes, const struct fdri_export_seen *v)
{
    double f;
    char number[40];
    memcpy(&f, &v->value, sizeof f);
    if (v->unit == FDRI_EXPORT_UNIT_NS) {
        uint64_t ns = v->value;
        double unit = ns < 10000000 ? 1e3 : ns < 10000000000u ? 1e6 : 1e9;
        fdri_text_print_number(number, sizeof number, 3, (double)ns / unit);
        if (ns < 10000) snprintf(text, bytes, "%" PRIu64 " ns", ns);
        else snprintf(text, bytes, "%s %s", number, ns < 10000000 ? "us" : ns < 10000000000u ? "ms" : "s");
    } else if (v->type == FDRI_ARENA_VALUE_F64) {
        fdri_text_print_number(number, sizeof number, -1, f);
        snprintf(text, bytes, "%s%s", number, v->unit == FDRI_EXPORT_UNIT_PER_SECOND ? "/s" : "");
    } else if (v->type == FDRI_ARENA_VALUE_I64) {
        snprintf(text, bytes, "%" PRId64, (int64_t)v->value);
    } else {
        snprintf(text, bytes, "%" PRIu64 "%s", v->value, v->unit == FDRI_EXPORT_UNIT_BYTES ? " bytes" : "");
    }
    return text;
}

/* Copies the pending match, and takes it; false: the trigger was disarmed. */
static bool look_at(struct slot *s, struct slot *copy)
{
    uint32_t seen = PENDING;
    pthread_mutex_lock(&lock);
    bool pending = fdri_atomic_cas_acq_rel_u32(&s->state, &seen, TAKING); /* A:seen */
    if (pending) copy->trigger = s->trigger, copy->seen = s->seen, copy->armed = s->armed;
    pthread_mutex_unlock(&lock);
    return pending;
}

/* Arms the trigger again, unless the slot has another one by now. If its limit forbade the snapshot, it waits at least
 * 1 s: a user may move one of its snapshots away. */
enum { REFUSED_NS = 1000000000 };
static void rearm(struct slot *s, const struct slot *taken, bool written)
{
    uint32_t taking = TAKING;
    pthread_mutex_lock(&lock);
    if (s->armed == taken->armed) {
        uint64_t now = fdri_clock_ns(CLOCK_MONOTONIC), quiet = s->trigger.holdoff_ns;
        if (!written) quiet = fdri_bits_max(quiet, (uint64_t)REFUSED_NS);
        fdri_atomic_store_relaxed(&s->quiet_until_ns, now + quiet);
        fdri_atomic_cas_acq_rel_u32(&s->state, &taking, ARMED); /* L:trigger - unless it was disarmed meanwhile */
    }
    pthread_mutex_unlock(&lock);
}

static void take_triggered_snapshot(uint32_t i)
{
    struct slot s;
    if (!look_at(&slots[i], &s)) return;
    struct fdri_snapshot_why why = {.kind = FDRI_ARENA_REASON_TRIGGER,
                                    .tick = s.seen.tick,
                                    .value = s.seen.value,
                                    .value_type = s.seen.type,
                                    .location = s.seen.location};
    char value[48], name[160] = "";
    fdri_trigger_describe(s.seen.key, name, sizeof name);
    snprintf(why.name, sizeof why.name, "%s", s.trigger.name);
    fdri_trigger_add_field_name(s.seen.key, s.seen.field, name, sizeof name);
    /* a trigger without a name is called by its condition */
    bool named = strncmp(s.trigger.name, s.trigger.condition, sizeof s.trigger.name - 1) != 0;
    snprintf(why.reason, sizeof why.reason, "trigger %.40s%s%.60s (%.90s%s%.40s)", named ? s.trigger.name : "",
             named ? ": " : "", s.trigger.condition, name, name[0] ? ": " : "",
             value_text(value, sizeof value, &s.seen));
    struct fdri_snapshot_quota quota = {.owner = (uint64_t)s.armed * (FDRI_EXPORT_TRIGGERS + 1) + i + 1,
                                        .keep = s.trigger.keep,
                                        .keep_newest = s.trigger.keep_newest,
                                        .name = s.trigger.name};
    bool written = (s.trigger.job ? fdri_trigger_job_take(&why, &quota) : fdri_snapshot_take(&why, &quota, false)) == 0;
    count(&s, written ? SNAPSHOTS : DROPPED);
    rearm(&slots[i], &s, written);
}

/* When the first hold-off ends that dropped a match, says so, once. Returns the time of its next call. */
static uint64_t end_holdoff(struct slot *s, uint64_t now)
{
    uint64_t quiet = fdri_atomic_load_relaxed(&s->quiet_until_ns);
    if (now < quiet) return quiet;
    if (!fdri_atomic_load_relaxed(&s->dropped)) return UINT64_MAX;
    char time[40];
    pthread_mutex_lock(&lock);
    /* without a hold-off, the limit of snapshots has dropped it */
    bool say = s->trigger.holdoff_ns && !s->warned;
    s->warned |= say;
    fdri_text_print_number(time, sizeof time, 0, (double)s->trigger.holdoff_ns / 1e6);
    if (say)
        fdri_text_message("trigger '%s': saw its condition again within the hold-off of %.12s ms, and took no snapshot "
                          "of that; 'holdoff TIME' in its line changes this",
                          s->trigger.name, time);
    pthread_mutex_unlock(&lock);
    return UINT64_MAX;
}

/* Takes the snapshots due at `now`. Returns the time of its next call. */
uint64_t fdri_trigger_serve(uint64_t now)
{
    uint64_t next = UINT64_MAX;
    for (uint32_t i = 0; i < FDRI_EXPORT_TRIGGERS; i++) {
        struct slot *s = &slots[i];
        next = fdri_bits_min(next, end_holdoff(s, now));
        if (fdri_atomic_load_acquire(&s->state) != PENDING) continue; /* A:seen */
        if (s->due_ns > now) {
            next = fdri_bits_min(next, s->due_ns);
            continue;
        }
        take_triggered_snapshot(i);
        next = fdri_bits_min(next, fdri_atomic_load_relaxed(&s->quiet_until_ns));
    }
    return next;
}
