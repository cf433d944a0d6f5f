/* SPDX-License-Identifier: MIT */
/* Triggers on what is recorded: which region, metric or event has which trigger, and is it time to say so?
 *
 *   watch.c         the table, and adding and removing    watch_parse.c  a line of text to a source
 *   watch_seen.c    the checks of recording threads       watch_poll.c   what only looking finds
 *
 * The table from key (kind and id, as in totals) to triggers is read under liburcu's lock by recording threads that
 * have left the fast path; it is changed under a lock, and replaced when it must grow. docs/TRIGGERS.md. */
#ifndef FDRI_RECORDER_WATCH_WATCH_TABLE_H
#define FDRI_RECORDER_WATCH_WATCH_TABLE_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/atomic.h"
#include "export/view.h"
#include "recorder/life/recording.h"

struct fdri_life_settings;

enum fdri_watch_source {
    FDRI_WATCH_BY_API,
    FDRI_WATCH_BY_REGION,
    FDRI_WATCH_BY_P99,
    FDRI_WATCH_BY_STUCK,
    FDRI_WATCH_BY_METRIC,
    FDRI_WATCH_BY_METRIC_RATE,
    FDRI_WATCH_BY_COUNT,
    FDRI_WATCH_BY_EVENT_RATE,
    FDRI_WATCH_BY_MEMORY
};

/* One trigger's source, parsed. */
struct fdri_watch {
    enum fdri_watch_source source;
    char glob[200];
    bool below, percent;
    double limit; /* metrics: value, or per second; p99: the factor; memory: bytes, or percent */
    uint64_t ns;  /* regions: duration; rate: the period */
    uint64_t count;
    struct fdri_export_trigger trigger;
};
/* NULL: it is one, and *w says which; else what is wrong with it. An empty line is one with an empty trigger name. */
const char *fdri_watch_parse(const char *line, const struct fdri_life_settings *set, struct fdri_watch *w);

/* A trigger in use. `state` and `watch` change under the lock; recording threads come here by an entry of the table. */
enum {
    FDRI_WATCH_FOLLOWED = 4096, /* metrics, or metrics of threads */
    FDRI_WATCH_PACED = 256      /* times of events */
};
/* What a metric was when it was looked at last; of a rate for each location. All atomic. */
struct fdri_watch_followed {
    uint64_t whose; /* 0: nobody's */
    uint64_t at_ns, value;
    uint32_t above;
};
enum fdri_watch_state { FDRI_WATCH_FREE, FDRI_WATCH_USED, FDRI_WATCH_LEAVING };
struct fdri_watch_slot {
    uint32_t state;                       /* atomic; leaving: removed, but somebody may still be looking at it */
    uint32_t tenancy;                     /* how often this place was given to a trigger */
    uint32_t turns;                       /* of them in this recording */
    uint32_t id;                          /* atomic: what it is called by, another one with each of those; 0: none */
    struct fdri_watch_followed *followed; /* FDRI_WATCH_FOLLOWED of them where it is on metrics; stays with the place */
    struct fdri_watch watch;
    uint32_t above; /* atomic: the condition held when it was looked at last; metrics: where followed[] is full */
    uint64_t count; /* atomic: events so far; of a rate without those that came too early to count again */
    uint64_t spent, quiet_ns; /* atomic; a rate: how many of them were seen, and until when none counts; 0 none yet */
    uint64_t paced_ns[FDRI_WATCH_PACED]; /* atomic; a rate: when they came */
    uint64_t looked_tick;                /* stuck: when all open calls were looked at last. Under the lock */
    bool matched;                        /* all that was defined before it has its entries. Under the lock */
};
extern struct fdri_watch_slot fdri_watch_slots[FDRI_EXPORT_TRIGGERS];

/* What a trigger has on one key. */
struct fdri_watch_entry {
    uint32_t key; /* atomic, release: 0 none (a key is never 0) */
    uint8_t slot;
    uint8_t gone;          /* atomic: the trigger was removed */
    uint8_t field;         /* user events: which field is the metric; else FDRI_EXPORT_NO_FIELD */
    uint8_t type;          /* enum fdri_arena_value_type of that */
    uint64_t threshold_ns; /* atomic: regions, of a call that ended */
    uint64_t stuck_ns;     /* regions, of a call that is open; UINT64_MAX: not looked for */
    double p99_factor;     /* the threshold is that times the running p99; 0: it is not */
};
struct fdri_watch_table {
    struct fdri_watch_table *older;
    uint32_t log2, used;
    struct fdri_watch_entry entry[];
};
extern struct fdri_watch_table *fdri_watch_table; /* under liburcu's read lock; by the dumper thread without */
/* Tables that were replaced. By the dumper thread, which looks at none of them at that moment; frees them when nobody
 * else does. */
void fdri_watch_free_older(void);
/* What follows is done for every entry `e` of the key `k`. */
#define FDRI_WATCH_EACH_ENTRY(table, k, e)                                                                             \
    for (uint32_t i_ = (k)*0x9E3779B1u >> (32 - (table)->log2), mask_ = (1u << (table)->log2) - 1, there_;             \
         (there_ = fdri_atomic_load_acquire(&(table)->entry[i_].key)) != 0; i_ = (i_ + 1) & mask_) /* A:watch */       \
        if (there_ == (k) && !fdri_atomic_load_relaxed(&((e) = &(table)->entry[i_])->gone))

/* Regions' thresholds changed: what recording threads compare with follows. Under the lock. */
void fdri_watch_thresholds(void);
void fdri_watch_lock(sigset_t *old);
void fdri_watch_unlock(const sigset_t *old);
/* watch_poll.c; in the dumper thread. Returns when to come again. */
uint64_t fdri_watch_poll(uint64_t now_ns);

#endif
