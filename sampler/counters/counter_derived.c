/* SPDX-License-Identifier: MIT */
/* Counters that are quotients of others over the last 0.1 s, as the bits of a double. The monitor computes them
 * (monitor_panel.c). */
#include <stdio.h>
#include <string.h>

#include "sampler/counters/counter.h"

static const struct fdr_counter derived_counters[] = {
    [FDRI_COUNTERS_IPC] = {"ipc", "", FDR_METRIC_GAUGE, FDR_F64},
    [FDRI_COUNTERS_OFF_CPU] = {"off-cpu", "", FDR_METRIC_GAUGE, FDR_F64},
};
const char *const fdri_counters_derived_of[2][2] = {
    [FDRI_COUNTERS_IPC] = {"instructions", "cycles"},
    [FDRI_COUNTERS_OFF_CPU] = {"task-clock|cpu-time", NULL},
};

static int probe(uint32_t which, char *why, size_t bytes)
{
    struct fdri_counters_choice found[1];
    for (int i = 0; i < 2 && fdri_counters_derived_of[which][i]; i++)
        if (!fdri_counters_choose(fdri_counters_derived_of[which][i], true, found, 1, why, bytes)) return -1;
    return 0;
}

/* Without a read function: monitor_panel.c computes its counters. */
const struct fdr_counter_source fdri_counters_source_derived = {
    .size = sizeof(struct fdr_counter_source),
    .name = "derived",
    .scope = FDR_COUNTER_THREAD,
    .counter = derived_counters,
    .count = 2,
    .probe = probe,
};
