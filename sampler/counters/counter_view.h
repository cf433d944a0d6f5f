/* SPDX-License-Identifier: MIT */
/* The door of the counters for recorder/: start, stop, fork, and the edges of chosen calls. */
#ifndef FDRI_SAMPLER_COUNTERS_COUNTER_VIEW_H
#define FDRI_SAMPLER_COUNTERS_COUNTER_VIEW_H

#include <stdint.h>

struct fdri_counters_plan {
    char sampled[512];    /* FDR_COUNTERS: read by the monitor thread; "" none */
    uint64_t interval_ns; /* FDR_COUNTER_INTERVAL */
    char edges[512];      /* FDR_EDGE_COUNTERS: read at the edges of chosen calls; "" none */
    char papi[512];       /* FDR_PAPI: the same, by a provider */
};

/* Call it after the recording has started. Never fails: it reports counters that do not work in one line. */
void fdri_counters_start(const struct fdri_counters_plan *plan);
/* Call it before the recording ends: takes a last reading and ends the monitor thread. */
void fdri_counters_stop(void);
/* 0 prepare, 1 parent, 2 child, which has no monitor thread and none of its descriptors. 3 comes before 0 in a child in
 * which no fork handler ran. */
void fdri_counters_fork(int phase);

/* For calls of regions with the rule `counters`, in the calling thread, outside of record operations: after its enter
 * and before its leave. depth: of the call, 1 outermost. */
void fdri_counters_edge_enter(uint32_t region, uint32_t depth);
void fdri_counters_edge_leave(uint32_t region, uint32_t depth);

#endif
