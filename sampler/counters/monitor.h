/* SPDX-License-Identifier: MIT */
/* The monitor thread and the threads that it observes. */
#ifndef FDRI_SAMPLER_COUNTERS_MONITOR_H
#define FDRI_SAMPLER_COUNTERS_MONITOR_H

#include "sampler/counters/counter.h"

enum {
    MONITOR_FIELDS = 4,                      /* thread, series, reading, idle; the counters follow */
    MONITOR_PER_EVENT = 16 - MONITOR_FIELDS, /* a user event has at most 16 fields */
    MONITOR_COUNTERS = 2 * MONITOR_PER_EVENT,
    MONITOR_EVENTS = 2,
    MONITOR_LANES = 8, /* the encoder stores newest values for each of 8 kinds of events */
    MONITOR_THREADS = 1024,
    MONITOR_SOURCES = 10
};

/* A source and its counters to read. place[i]: position of counter i among the chosen ones. */
struct fdri_counters_reading {
    const struct fdr_counter_source *source;
    uint32_t wanted;
    uint8_t place[FDR_SOURCE_COUNTERS];
};

/* The counters read of each thread, or of the process, and the types of their events. */
struct fdri_counters_panel {
    struct fdri_counters_choice choice[MONITOR_COUNTERS];
    uint32_t count, readings;
    uint8_t part[MONITOR_COUNTERS][2]; /* of a derived counter: places of its parts */
    struct fdri_counters_reading reading[MONITOR_SOURCES];
    uint32_t events;
    fdr_event_type type[MONITOR_LANES][MONITOR_EVENTS];
};

/* An observed thread, or the process (tid 0). */
struct fdri_counters_observed {
    int tid;                          /* -1: free place */
    uint32_t series;                  /* number of this observation, from 1; thread ids are used again */
    bool seen;                        /* by the current scan */
    bool fresh;                       /* nothing recorded yet */
    bool lost;                        /* the program closed its descriptors */
    uint64_t number;                  /* number of readings */
    uint64_t before[MONITOR_EVENTS];  /* reading of the newest record */
    uint32_t idle[MONITOR_EVENTS];    /* readings since then without a change */
    uint64_t value[MONITOR_COUNTERS]; /* of the newest reading */
    uint64_t recorded[MONITOR_COUNTERS];
    uint64_t since_ns; /* for derived counters: start of the present interval, and their parts at that time */
    uint64_t since[MONITOR_COUNTERS][2];
    struct fdri_counters_handle handle[MONITOR_SOURCES];
};

/* ---- monitor_panel.c ---- */
/* Adds the chosen counters to a panel, grouped by source. Counters without room, a derived one with its parts, go to
 * the text `missing`. */
void fdri_counters_panel_add(struct fdri_counters_panel *p, const struct fdri_counters_choice *choice, size_t count,
                             char *missing, size_t missing_bytes);
/* Opens the sources for a thread. Returns 0, or -errno of the first source that failed. */
int fdri_counters_observe_begin(struct fdri_counters_observed *o, struct fdri_counters_panel *p, int tid,
                                uint32_t series);
/* Reads all counters, and records them if one has changed or `last` is set. False: the thread has ended. */
bool fdri_counters_observe(struct fdri_counters_observed *o, const struct fdri_counters_panel *p, bool last);
/* Opens the sources again after the program closed their descriptors. */
void fdri_counters_observe_again(struct fdri_counters_observed *o, const struct fdri_counters_panel *p);
void fdri_counters_observe_end(struct fdri_counters_observed *o, const struct fdri_counters_panel *p);

/* ---- monitor_threads.c ---- */
/* Begins and ends the observation of threads. Cheap if their number has not changed; `force` looks in any case. */
void fdri_counters_threads_scan(struct fdri_counters_panel *p, bool force);
/* Reads every observed thread; `last` as in fdri_counters_observe. */
void fdri_counters_threads_read(const struct fdri_counters_panel *p, bool last);
void fdri_counters_threads_end(const struct fdri_counters_panel *p);
uint32_t fdri_counters_threads_observed(void);

#endif
