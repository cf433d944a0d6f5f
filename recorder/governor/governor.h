/* SPDX-License-Identifier: MIT */
/* The governor (FDR_OVERHEAD): keeps the cost of recording below a share of the program's processor time. fdr's own
 * thread counts the calls of each region and multiplies by the calibrated cost of a call. It mutes the regions that
 * cost most for the worth of a call, until there is room again.
 *
 *   governor.c    a look: counts, decisions, their account     call_counts.c    counts of all threads
 *   calibrate.c   what a recorded call costs here              regions.c        the regions that matter
 *
 * Neighbours: policies/ decides, names/ tells threads, life/ starts this, and fdr's own thread calls it. */
#ifndef FDRI_RECORDER_GOVERNOR_GOVERNOR_H
#define FDRI_RECORDER_GOVERNOR_GOVERNOR_H

#include <stdbool.h>
#include <stdint.h>

#include "format/arena/arena.h"
#include "policies/overhead.h"

/* Begins with a recording. target: share of the program's processor time; below 0: off. False: there is no memory, or
 * the buffer is smaller than 1 MiB; then no region is muted. */
bool fdri_governor_start(double target);
/* On fdr's own thread: looks if it is due. Returns the time of the next look (CLOCK_MONOTONIC); UINT64_MAX: off. */
uint64_t fdri_governor_poll(uint64_t now_ns);

/* ---- within the room ---- */

/* The look of fdri_governor_poll, if FDR_OVERHEAD is on. cpu_ns: used by the process. Only one thread may look. */
uint64_t fdri_governor_look(uint64_t now_ns, uint64_t cpu_ns);

struct fdri_governor_cost {
    double recorded_ns; /* a recorded call, less a muted one */
    double muted_ns;    /* a muted call */
};
/* Measures for some 0.2 ms. */
struct fdri_governor_cost fdri_governor_calibrate(void);

enum { FDRI_GOVERNOR_LOADS = 8192 };
/* A region with many calls. */
struct fdri_governor_region {
    uint32_t region;
    uint64_t spread_ns; /* when `spread` was computed */
    double spread;      /* how unlike its calls are: 1 if all are alike */
    bool has_no_place;  /* in the account, so it is not muted */
};
/* All regions that matter, and their loads for the policy. Load 0 is all other calls. */
extern struct fdri_governor_region *fdri_governor_regions;
extern struct fdri_policies_load *fdri_governor_loads;
extern uint32_t *fdri_governor_order; /* room for the policy */
extern uint32_t fdri_governor_count;

bool fdri_governor_regions_start(void);
void fdri_governor_counts_start(void); /* forgets the threads of an earlier recording */
/* Counts the calls since the last look, on which the program used cpu_ns. Returns how many times as often as the
 * average the busiest thread calls, at least 1. 0: accounts are moving at this moment, and nothing was counted. */
double fdri_governor_count_calls(uint64_t now_ns, uint64_t cpu_ns);
/* A count: begins, takes each row of each thread, and ends. Then each load has its calls and its worth. */
void fdri_governor_regions_begin(void);
void fdri_governor_regions_add(uint32_t key, uint64_t timed, uint64_t untimed, uint64_t sum);
void fdri_governor_regions_end(uint64_t now_ns);
/* Calls of the newest interval. */
struct fdri_governor_calls {
    uint64_t timed, untimed;
};
extern struct fdri_governor_calls fdri_governor_calls;

#endif
