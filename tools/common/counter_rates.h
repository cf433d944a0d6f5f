/* SPDX-License-Identifier: MIT */
/* What counters of a recording come to: over the run, by thread, by region, over time, per call. */
#ifndef FDRI_TOOLS_COMMON_COUNTER_RATES_H
#define FDRI_TOOLS_COMMON_COUNTER_RATES_H

#include "tools/common/verbs.h"

#define NO_REGION   UINT32_MAX       /* outside any region */
#define NO_LOCATION (UINT32_MAX - 1) /* a thread that never called fdr */
#define REDUCED     (UINT32_MAX - 2) /* a call whose record is no longer held */
#define FILTERED    (UINT32_MAX - 3) /* a call that a filter kept out */
#define NOT_OVER    (UINT32_MAX - 4) /* a call that was open when the snapshot was taken, and is not named in it */

/* What one row of a table knows of one counter. Counters: amounts. Gauges: readings of the value. */
struct rate {
    uint64_t readings;        /* that stand behind the figures */
    double self, total;       /* counter: happened in the region itself, and with what it called */
    double self_ns, total_ns; /* the time that was observed of it */
    double sum, min, max;     /* gauge: of the readings; calls: of the amounts per call */
};

struct counter {
    const char *name, *unit; /* of the recording's definitions */
    bool gauge, real, sign;  /* values are binary64; signed */
    bool sampled;            /* by the monitor thread */
    bool at_edges;           /* read at the edges of calls; neither: recorded by the application */
    struct rate all;
    uint64_t from_ns, to_ns; /* first and newest reading */
};

struct rate_row {
    uint32_t counter; /* index */
    uint32_t key;     /* region id, thread id (of what the application recorded: index of the location), slice */
    struct rate rate;
};
struct rate_table {
    struct rate_row *row; /* sorted by counter, then key once gathered */
    size_t count;
};

enum rate_by { BY_COUNTER, BY_REGION_OF_COUNTER, BY_THREAD, BY_TIME, BY_CALL };

struct rates {
    struct counter *counter;
    uint32_t count;
    struct rate_table table; /* of what was asked for */
    uint64_t from_ns, to_ns, slice_ns;
    uint64_t start_ns; /* of the run: before from_ns where nothing is held of its beginning */
    uint32_t slices;
    const char *missing[8]; /* why counters that were asked for are not there */
    uint32_t missing_count;
};

/* Reads all events once. False: no memory. */
bool rates_gather(struct rates *r, struct fdr_file *file, enum rate_by by, uint32_t slices);
void rates_free(struct rates *r);

/* ---- rates_map.c: small maps from 32-bit keys, and the time spent per region ---- */
struct spent {
    uint32_t key;
    bool used;
    uint64_t self_ns, total_ns;
};
struct spent_map {
    struct spent *slot;
    uint32_t log2, count;
};
/* The entry of a key, made where there is none; NULL: no memory. */
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
