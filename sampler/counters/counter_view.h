/* SPDX-License-Identifier: MIT */
/* What the recorder knows of counters: when to start and stop them, and the edges of chosen calls. */
#ifndef FDRI_SAMPLER_COUNTERS_COUNTER_VIEW_H
#define FDRI_SAMPLER_COUNTERS_COUNTER_VIEW_H

#include <stdint.h>

struct fdri_counters_plan {
    char sampled[512];    /* FDR_COUNTERS: what the monitor thread reads; "" none */
    uint64_t interval_ns; /* FDR_COUNTER_INTERVAL */
    char edges[512];      /* FDR_EDGE_COUNTERS: what is read at the edges of chosen calls; "" none */
    char papi[512];       /* FDR_PAPI: the same, by a provider */
};

/* After the recording has started. Never fails: what cannot be counted costs one line. */
void fdri_counters_start(const struct fdri_counters_plan *plan);
/* Before the recording ends: a last reading, then the monitor thread is gone. */
void fdri_counters_stop(void);
/* 0 prepare, 1 parent, 2 child: the child has no monitor and none of its descriptors;
 * 3 before 0 in a child that no handler saw. */
void fdri_counters_fork(int phase);

/* Around calls of regions with the rule `counters`: in the thread of the call, outside of any record operation, after
 * its enter and before its leave. depth: of the call, 1 outermost. */
void fdri_counters_edge_enter(uint32_t region, uint32_t depth);
void fdri_counters_edge_leave(uint32_t region, uint32_t depth);

#endif
