/* SPDX-License-Identifier: MIT */
/* The monitor thread and the threads it observes. */
#ifndef FDRI_SAMPLER_COUNTERS_MONITOR_H
#define FDRI_SAMPLER_COUNTERS_MONITOR_H

#include "sampler/counters/counter.h"

enum {
    MONITOR_FIELDS = 4,                      /* thread, series, reading, idle; then the counters */
    MONITOR_PER_EVENT = 16 - MONITOR_FIELDS, /* a user event has at most 16 fields */
    MONITOR_COUNTERS = 2 * MONITOR_PER_EVENT,
    MONITOR_EVENTS = 2,
    MONITOR_LANES = 8, /* the encoder remembers values of 8 kinds of events apart */
    MONITOR_THREADS = 1024,
    MONITOR_SOURCES = 6
};

/* One source and which of its counters are read; place[i]: where counter i goes among the chosen ones. */
struct fdri_counters_reading {
    const struct fdri_counters_source *source;
    uint32_t wanted;
    uint8_t place[FDRI_COUNTERS_SOURCE_COUNTERS];
};

/* What is read of each thread, or of the process, and the events it becomes. */
struct fdri_counters_panel {
    struct fdri_counters_choice choice[MONITOR_COUNTERS];
    uint32_t count, readings;
    uint8_t part[MONITOR_COUNTERS][2]; /* of a derived counter: places of what it is made of */
    struct fdri_counters_reading reading[MONITOR_SOURCES];
    uint32_t events;
    fdr_event_type type[MONITOR_LANES][MONITOR_EVENTS];
};

/* A thread under observation, or the process (tid 0). */
struct fdri_counters_observed {
    int tid;         /* -1: free place */
    uint32_t series; /* number of this thread among all that were ever observed, from 1: ids are used again */
    bool seen;       /* by the scan under way */
    bool fresh;      /* nothing recorded yet */
    bool lost;       /* descriptors of it are the program's by now */
    uint64_t number; /* readings so far */
    uint64_t before[MONITOR_EVENTS];  /* number of the newest record */
    uint32_t idle[MONITOR_EVENTS];    /* readings since the newest record that had nothing new */
    uint64_t value[MONITOR_COUNTERS]; /* newest */
    uint64_t recorded[MONITOR_COUNTERS];
    uint64_t since_ns; /* what derived counters compare with: when, and what stood in their parts then */
    uint64_t since[MONITOR_COUNTERS][2];
    struct fdri_counters_handle handle[MONITOR_SOURCES];
};

/* ---- monitor_panel.c ---- */
/* Groups chosen counters by source and defines their metrics. Those that there is no room for, with what they are made
 * of, are added to the text `missing`. */
void fdri_counters_panel_make(struct fdri_counters_panel *p, const struct fdri_counters_choice *choice, size_t count,
                              char *missing, size_t missing_bytes);
/* Opens what it can for a thread; 0 or -errno of the first source that failed. */
int fdri_counters_observe_begin(struct fdri_counters_observed *o, struct fdri_counters_panel *p, int tid,
                                uint32_t series);
/* Reads and records what changed; `last`: whatever it is. False: the thread is gone. */
bool fdri_counters_observe(struct fdri_counters_observed *o, const struct fdri_counters_panel *p, bool last);
/* Opens again what was lost. */
void fdri_counters_observe_again(struct fdri_counters_observed *o, const struct fdri_counters_panel *p);
void fdri_counters_observe_end(struct fdri_counters_observed *o, const struct fdri_counters_panel *p);

/* ---- monitor_threads.c ---- */
/* Begins and ends observation as threads come and go; cheap where nothing changed. `force`: look whatever. */
void fdri_counters_threads_scan(struct fdri_counters_panel *p, bool force);
/* Reads every observed thread; `last` as in fdri_counters_observe. */
void fdri_counters_threads_read(const struct fdri_counters_panel *p, bool last);
void fdri_counters_threads_end(const struct fdri_counters_panel *p);
uint32_t fdri_counters_threads_observed(void);

#endif
