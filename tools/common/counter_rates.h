/* SPDX-License-Identifier: MIT */
/* Figures of a recording's counters: over the run, by thread, by region, over time, per call. */
#ifndef FDRI_TOOLS_COMMON_COUNTER_RATES_H
#define FDRI_TOOLS_COMMON_COUNTER_RATES_H

#include "tools/common/verbs.h"

#define NO_REGION   UINT32_MAX       /* outside any region */
#define NO_LOCATION (UINT32_MAX - 1) /* a thread that never called fdr */
#define REDUCED     (UINT32_MAX - 2) /* a call whose record was given back */
#define FILTERED    (UINT32_MAX - 3) /* a call that a filter excluded */
#define NOT_OVER    (UINT32_MAX - 4) /* a call open at the end of the recording whose region the file does not name */

/* The figures of one counter in one row of a table. Counters: amounts. Gauges: values read. */
struct rate {
    uint64_t readings;        /* number of readings behind the figures */
    double self, total;       /* counter: in the region itself; including its calls */
    double self_ns, total_ns; /* the observed part of its time */
    double sum, min, max;     /* gauge: of its readings; calls: of the amounts per call */
};

struct counter {
    const char *name, *unit; /* from the recording's definitions */
    bool gauge, real, sign;  /* real: values are binary64; sign: signed */
    bool sampled;            /* by the monitor thread */
    bool at_edges;           /* read at the edges of calls; neither flag: recorded by the application */
    struct rate all;
    uint64_t from_ns, to_ns; /* first and newest reading */
};

struct rate_row {
    uint32_t counter; /* index of the counter */
    uint32_t key;     /* region id, thread id, or slice; for metrics of the application the index of the location */
    struct rate rate;
};
struct rate_table {
    struct rate_row *row; /* sorted by counter, then key, once gathered */
    size_t count;
};

enum rate_by { BY_COUNTER, BY_REGION_OF_COUNTER, BY_THREAD, BY_TIME, BY_CALL };

struct rates {
    struct counter *counter;
    uint32_t count;
    struct rate_table table; /* the requested table */
    uint64_t from_ns, to_ns, slice_ns;
    uint64_t start_ns; /* of the run; before from_ns if nothing of its beginning is stored */
    uint32_t slices;
    const char *missing[8]; /* reasons why requested counters are missing */
    uint32_t missing_count;
};

/* Reads all events once. False: out of memory. */
bool rates_gather(struct rates *r, struct fdr_file *file, enum rate_by by, uint32_t slices);
void rates_free(struct rates *r);

/* ---- counter_rates_map.c: small maps from 32-bit keys, and the time spent per region ---- */
struct spent {
    uint32_t key;
    bool used;
    uint64_t self_ns, total_ns;
};
struct spent_map {
    struct spent *slot;
    uint32_t log2, count;
};
/* The entry of a key; makes a missing one. NULL: out of memory. */
struct spent *spent_at(struct spent_map *m, uint32_t key);
void spent_clear(struct spent_map *m);
void spent_free(struct spent_map *m);

struct rate_map {
    struct rate_row *row;
    uint32_t *slot; /* index + 1 */
    uint32_t log2;
    size_t count, room;
};
struct rate *rate_at(struct rate_map *m, uint32_t counter, uint32_t key);
void rate_map_free(struct rate_map *m);

#endif
