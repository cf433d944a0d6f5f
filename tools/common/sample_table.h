/* SPDX-License-Identifier: MIT */
/* Adds up samples by function, region, source line, path or thread, each with a confidence interval.
 *
 * Each row has its number of samples and an interval at 95 %. For a row each sample is a yes or a no. A sample is one
 * moment of its period, drawn at random or at even distances. So the uncertainty is where within a period yes turned
 * into no. The variance of the number of periods is estimated from successive differences,
 *
 *     V = 1/2 * sum over neighbours of (x[i + 1] - x[i])^2 * size^2
 *
 * (J. von Neumann et al. 1941; for systematic and stratified samples W. G. Cochran, Sampling Techniques, 1977, sections
 * 5A.12 and 8.11, and K. M. Wolter, J. Am. Stat. Assoc. 79, 1984). Its expectation is never below the variance if the
 * moments are drawn independently within their periods.
 *
 * `size` is the number of periods in which the turn may lie. A wall-time sample by a signal may stand for many periods
 * in which the thread did not run. Its place then holds for all of them. So the lesser of both neighbours' weights
 * counts. CPU time goes on while a signal is delayed, and a thread goes on between looks from outside. So there the
 * mean of both squares counts. The interval is Wilson's, with the number of independent samples that would have this
 * variance: p (1 - p) W^2 / V. */
#ifndef FDRI_TOOLS_COMMON_SAMPLE_TABLE_H
#define FDRI_TOOLS_COMMON_SAMPLE_TABLE_H

#include "tools/common/verbs.h"

enum samples_by { BY_FUNCTION, BY_SAMPLE_REGION, BY_LINE, BY_STACK, BY_THREAD, BY_PATH_FUNCTION };

struct sample_sum {
    uint64_t samples;
    double weight;   /* ns or events */
    double variance; /* V, in squares of the weight's unit; of the total: V if every sample were a turn */
    uint64_t newest; /* number of the last sample counted, from 1 */
};
struct sample_row {
    char *name;
    struct sample_sum self, all; /* at the end of the path; anywhere on it, once a sample */
};
struct sample_table {
    struct sample_row *row;
    size_t count, room;
    uint32_t *slot;
    size_t slots;
    struct sample_sum total;
    /* of sample i: the square of the size between it and the sample before; 0: the first of its stream */
    double *turn;
    size_t turns;
    uint32_t by;                /* clock of these samples: 0 CPU, 1 wall, 2 events */
    uint64_t others;            /* samples of other clocks; not in the table */
    uint64_t first_ns, last_ns; /* times of the first and the last sample */
    uint64_t cut;               /* samples whose stack does not reach the start of the thread */
};

/* select: the samples of a selected thread count. by_clock: 0 to 2, or -1: the clock of most samples. Rows are in order
 * of self, then all. False: out of memory. */
bool sample_table_build(struct sample_table *t, struct fdr_file *file, const struct fdr_select *select,
                        enum samples_by by, int by_clock);
void sample_table_free(struct sample_table *t);

struct sample_interval {
    double share, low, high;
};
struct sample_interval sample_interval(const struct sample_sum *part, const struct sample_sum *total);

/* "cpu", "wall", "events" */
const char *sample_clock_name(uint32_t by);
/* The thread's name: that of its location of events, which fdr_thread_name sets, else the kernel's. */
const char *sample_thread(const struct fdr_file *file, const struct fdr_sample_stream *stream);
/* The state that a look from outside saw, as "[blocked in poll]"; NULL: the sample is no such look. */
const char *sample_state(const struct fdr_file *file, const struct fdr_sample_path *p);
/* The function at the program counter, from the symbol table. */
const char *sample_function(const struct fdr_file *file, const struct fdr_sample_path *p, uint64_t time_ns);

#endif
