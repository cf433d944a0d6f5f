/* SPDX-License-Identifier: MIT */
/* fdr counters: counters.c tries the counters of this machine, counters_print.c prints those of a file. */
#ifndef FDRI_TOOLS_COUNTERS_H
#define FDRI_TOOLS_COUNTERS_H

#include "tools/common/counter_rates.h"

struct counters_arguments {
    const char *path, *glob;
    enum rate_by by;
    bool json;
    uint64_t slices, limit;
};

/* ---- counters_print.c ---- */
int print_counters(const struct counters_arguments *a, struct fdr_file *file);

#endif
