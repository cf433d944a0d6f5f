/* SPDX-License-Identifier: MIT */
/* Facts of a run that every kind of finding needs: its length, its threads, and each region's exact distribution. */
#ifndef FDRI_TOOLS_RUN_FACTS_H
#define FDRI_TOOLS_RUN_FACTS_H

#include "tools/common/stat_rows.h"
#include "tools/common/region_waits.h"
#include "tools/findings/findings.h"

/* Least number of calls that make a distribution. */
#define LEAST_CALLS 50

struct region_facts { /* of one region, over all threads */
    uint64_t calls, inclusive_ns, exclusive_ns, max_ns;
    uint64_t histogram[64];
    double p50_ns, p99_ns; /* 0: no distribution */
    uint64_t slow_ns;      /* calls from here on are unlike the others; 0: none is */
    uint64_t slow_calls;   /* their exact number, at most 5 % */
    bool waits;            /* by its name: a barrier, a lock, a sleep */
};
struct thread_facts {
    const struct fdr_location_info *info;
    uint64_t exclusive_ns; /* time in recorded calls */
    uint64_t waiting_ns;   /* of it in regions that wait */
};
struct run_facts {
    struct fdr_file *file;
    const char *path;
    uint64_t start_ns, end_ns;
    double length_ns;
    struct region_facts *region; /* by id */
    size_t regions;
    struct thread_facts *thread; /* threads that record calls: no samples, signal lanes, merged accounts */
    size_t threads;
    const struct fdr_total *total;
    size_t totals;
    const struct fdr_total **row; /* of regions in threads, by region, then by location */
    size_t rows;
    bool all_kept; /* every call of the run is kept */
};
/* False: out of memory. */
bool run_facts_of(struct fdr_file *file, const char *path, struct run_facts *facts);
void run_facts_free(struct run_facts *facts);

/* The program gave the times of its events itself: they are unrelated to fdr's own moments. */
bool times_are_given(const struct fdr_file *file);
/* The newest moment known of the recording. */
uint64_t newest_moment(const struct fdr_file *file);
/* The time for which a location has stood inside a call; 0: it moved, is idle, or this is not known. */
uint64_t stood_ns(struct fdr_file *file, size_t location_index);
/* The total of a region in a thread. NULL: none is known. */
const struct fdr_total *total_of(const struct run_facts *facts, uint32_t region, uint32_t location);
/* The rows of a region, one for each thread, and their number. */
const struct fdr_total **rows_of(const struct run_facts *facts, uint32_t region, size_t *count);
/* NULL: no thread of that id. */
struct thread_facts *thread_facts(const struct run_facts *facts, uint32_t location);
/* "worker1", or "thread 17"; text[64]. */
const char *thread_label(const struct fdr_file *file, uint32_t location, char *text);
#define LABEL_BYTES 64

/* ---- kept calls unlike their region's others: outlier_calls.c ---- */

struct outlier_call {
    uint32_t location, region, depth;
    uint64_t start_ns, duration_ns;
    uint32_t within; /* index of the outlier around it; UINT32_MAX: none */
    /* The innermost region that explains it: it took most of the time. The region itself, if none does. */
    uint32_t inner;
    uint64_t inner_ns;
};
struct outlier_calls {
    struct outlier_call *call; /* by location, then by start */
    size_t count, room;
    bool failed; /* out of memory */
};
/* Finds them, without `inner`. */
void outlier_calls_of(const struct run_facts *facts, struct outlier_calls *calls);
/* Sets `inner`: reads what ran inside. */
void explain_outlier(const struct run_facts *facts, struct outlier_call *call);

/* The period in these gaps, which it sorts, and the share of them that fit; 0: they have none, or are too few. */
uint64_t period_of_gaps(uint64_t *gap, size_t count, double *fits);
enum { LEAST_RETURNS = 5 }; /* calls that make a period */

/* ---- the kinds ---- */
void find_death(const struct run_facts *facts, struct findings *findings);
void find_standing(const struct run_facts *facts, struct findings *findings);
void find_slow_calls(const struct run_facts *facts, struct findings *findings);
void find_returning(const struct run_facts *facts, struct findings *findings); /* after find_slow_calls */
void find_imbalance(const struct run_facts *facts, struct findings *findings);
void find_growth(const struct run_facts *facts, struct findings *findings);
void find_waiting(const struct run_facts *facts, struct findings *findings);
void find_loss(const struct run_facts *facts, struct findings *findings);

#endif
