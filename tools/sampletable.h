/* SPDX-License-Identifier: MIT */
/* Samples summed up: by function, region, source line, path or thread, each with how sure one can be.
 *
 * Every row says how many samples stand behind it. The interval is Wilson's for a share at 95 %, with the effective
 * number of samples (sum of weights)^2 / (sum of squared weights), so that a few heavy samples count as few. It takes the
 * samples for independent; those that come at even or stratified distances are better than that. */
#ifndef FDR_TOOLS_SAMPLETABLE_H
#define FDR_TOOLS_SAMPLETABLE_H

#include "tools/common.h"

enum samples_by { BY_FUNCTION, BY_SAMPLE_REGION, BY_LINE, BY_STACK, BY_THREAD, BY_PATH_FUNCTION };

struct sample_sum {
    uint64_t samples;
    double weight, squares;
}; /* weight: ns or events */
struct sample_row {
    char *name;
    struct sample_sum self, all; /* at the very end of the path; anywhere on it, once a sample */
    uint64_t newest;             /* the sample that counted last */
};
struct sample_table {
    struct sample_row *row;
    size_t count, room;
    uint32_t *slot;
    size_t slots;
    struct sample_sum total;
    uint32_t by;     /* clock of the samples in it: 0 CPU, 1 wall, 2 events */
    uint64_t others; /* samples of another clock: not in it */
};

/* `by_clock`: 0 to 2, or -1: that of most samples. False: out of memory. Rows in order of self, then all. */
bool sample_table_build(struct sample_table *t, struct fdr_file *file, const struct fdr_select *select,
                        enum samples_by by, int by_clock);
void sample_table_free(struct sample_table *t);

struct sample_interval {
    double share, low, high;
};
struct sample_interval sample_interval(const struct sample_sum *part, const struct sample_sum *total);

/* "cpu", "wall", "events" */
const char *sample_clock_name(uint32_t by);
/* The function of the program counter: what the symbol table says. */
const char *sample_function(const struct fdr_file *file, const struct fdr_sample_path *p);

#endif
