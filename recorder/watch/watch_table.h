/* SPDX-License-Identifier: MIT */
/* The table of triggers, for the files of this room: which region, metric or event has which trigger.
 *
 * A key is kind and id of a definition, as in totals. Recording threads read the table in a liburcu section, off the
 * fast path. It changes under a lock; when it must grow, a larger one replaces it. */
#ifndef FDRI_RECORDER_WATCH_WATCH_TABLE_H
#define FDRI_RECORDER_WATCH_WATCH_TABLE_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/atomic.h"
#include "export/view.h"
#include "recorder/recording.h"

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
    FDRI_WATCH_BY_MEMORY,
    FDRI_WATCH_BY_MPI
};

/* One trigger as parsed. */
struct fdri_watch {
    enum fdri_watch_source source;
    char glob[200];
    bool below, percent;
    double limit; /* metrics: value, or per second; p99: the factor; memory: bytes, or percent */
    uint64_t ns;  /* regions, calls of MPI: duration; rates: the period */
    uint64_t count;
    struct fdri_export_trigger trigger;
};
/* Parses a line into *w. Returns NULL, or a text that says why the line is bad. An empty line gives an empty name. */
const char *fdri_watch_parse(const char *line, const struct fdri_life_settings *set, struct fdri_watch *w);

/* Bounds for one trigger. */
enum {
    FDRI_WATCH_FOLLOWED = 4096, /* metrics, for rates one for each location */
    FDRI_WATCH_PACED = 256      /* times of events, of a rate */
};
/* A metric at its last check; of a rate, for each location. All fields are atomic. */
struct fdri_watch_followed {
    uint64_t key; /* name_of() in watch_seen.c; 0: free */
    uint64_t at_ns, value;
    uint32_t above;
};
enum fdri_watch_state { FDRI_WATCH_FREE, FDRI_WATCH_USED, FDRI_WATCH_LEAVING };
/* A place for a trigger. `state` and `watch` change under the lock. Recording threads reach it by an entry of the
 * table. */
struct fdri_watch_slot {
    uint32_t state;                       /* atomic; leaving: removed, but a recording thread may still read it */
    uint32_t tenancy;                     /* how many triggers this place has had */
    uint32_t turns;                       /* the same in this recording */
    uint32_t id;                          /* atomic: the caller's handle, new for each trigger; 0: none */
    struct fdri_watch_followed *followed; /* metrics: FDRI_WATCH_FOLLOWED entries; they stay with the place */
    struct fdri_watch watch;
    uint32_t above;           /* atomic: the condition held at the last check; metrics: if followed[] is full */
    uint64_t count;           /* atomic: events so far; of a rate, without those before quiet_ns */
    uint64_t spent, quiet_ns; /* atomic; rates: `count` at the last firing; no event counts until quiet_ns; 0: never */
    uint64_t paced_ns[FDRI_WATCH_PACED]; /* atomic; rates: times of events */
    uint64_t looked_tick;                /* stuck: time of the last complete check of open calls. Under the lock */
    uint64_t looked_ns;                  /* stuck in mpi: the same, of CLOCK_MONOTONIC. Under the lock */
    bool hit;                            /* something matched. Under the lock */
    bool looked_for;                     /* the dumper thread knows whether some function matches. Under the lock */
    bool matched;                        /* all earlier definitions have been matched. Under the lock */
};
extern struct fdri_watch_slot fdri_watch_slots[FDRI_EXPORT_TRIGGERS];

/* One trigger on one key. */
struct fdri_watch_entry {
    uint32_t key; /* atomic, release: 0 none (a key is never 0) */
    uint8_t slot;
    uint8_t removed;       /* atomic: the trigger was removed */
    uint8_t field;         /* user events: the watched field; else FDRI_EXPORT_NO_FIELD */
    uint8_t type;          /* enum fdri_arena_value_type of the field */
    uint64_t threshold_ns; /* atomic: regions, least duration of an ended call */
    uint64_t stuck_ns;     /* regions, least duration of an open call; UINT64_MAX: not watched */
    double p99_factor;     /* if not 0: threshold_ns is this times the running p99 */
};
struct fdri_watch_table {
    struct fdri_watch_table *older;
    uint32_t log2, used;
    struct fdri_watch_entry entry[];
};
extern struct fdri_watch_table *fdri_watch_table; /* read in a section; by the dumper thread without */
/* Frees replaced tables after a grace period. For the dumper thread, at a moment when it reads none of them. */
void fdri_watch_free_older(void);
/* The next statement runs for every entry `e` of the key `k` whose trigger was not removed. */
#define FDRI_WATCH_EACH_ENTRY(table, k, e)                                                                             \
    for (uint32_t i_ = (k)*0x9E3779B1u >> (32 - (table)->log2), mask_ = (1u << (table)->log2) - 1, there_;             \
         (there_ = fdri_atomic_load_acquire(&(table)->entry[i_].key)) != 0; i_ = (i_ + 1) & mask_) /* A:watch */       \
        if (there_ == (k) && !fdri_atomic_load_relaxed(&((e) = &(table)->entry[i_])->removed))

bool fdri_watch_of_regions(const struct fdri_watch *w);
/* Recomputes the words that recording threads compare with, after thresholds changed. Under the lock. */
void fdri_watch_thresholds(void);
void fdri_watch_see_mpi(uint64_t now_ns); /* watch_mpi.c; for the dumper thread */
void fdri_watch_lock(sigset_t *old);
void fdri_watch_unlock(const sigset_t *old);

#endif
