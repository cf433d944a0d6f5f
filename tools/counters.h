/* SPDX-License-Identifier: MIT */
/* fdr counters: counters.c tries the counters of this machine, counters_print.c prints those of a file. */
#ifndef FDRI_TOOLS_COUNTERS_H
#define FDRI_TOOLS_COUNTERS_H

#include "tools/common/counter_rates.h"
#include "tools/common/job_files.h"

struct counters_arguments {
    struct file_list files;
    const char *path, *glob; /* path: for messages */
    enum rate_by by;
    bool json;
    uint64_t slices, limit;
};

/* ---- counters_print.c ---- */
int print_counters(const struct counters_arguments *a, struct fdr_file *file);

#endif
