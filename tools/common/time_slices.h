/* SPDX-License-Identifier: MIT */
/* The run in equal slices, over all threads: what each region took in each. */
#ifndef FDRI_TOOLS_COMMON_TIME_SLICES_H
#define FDRI_TOOLS_COMMON_TIME_SLICES_H

#include "tools/common/verbs.h"

struct slice_cell {
    double calls, inclusive_ns, exclusive_ns;
};
struct time_slices {
    uint64_t from_ns, to_ns;
    size_t count, regions;   /* slices; ids of regions, 0 stands for the rest of an epoch */
    struct slice_cell *cell; /* [region * count + slice] */
    /* true: exact totals of epochs, spread evenly over each epoch. false: from kept calls, by their end. */
    bool epochs;
    double epoch_ns; /* the longest epoch: finer places are guessed. 0: none */
};
/* From the epochs; without epochs from the kept calls. Of `select` only locations count. False: out of memory. */
bool time_slices_build(struct time_slices *slices, struct fdr_file *file, const struct fdr_select *select,
                       size_t count);
void time_slices_free(struct time_slices *slices);

#endif
