/* SPDX-License-Identifier: MIT */
/* Samples summed up: by function, region, source line, path or thread, each with how sure one can be.
 *
 * Every row says how many samples stand behind it, and has an interval at 95 %. Of a row each sample says yes or no. A
 * sample is one moment of its period, drawn at random or at even distances, so what is uncertain is where within a
 * period yes turned into no: the variance of the number of periods is estimated from successive differences,
 *
 *     V = 1/2 * sum over neighbours of (x[i + 1] - x[i])^2 * size^2
 *
 * (J. von Neumann et al. 1941; for systematic and stratified samples W. G. Cochran, Sampling Techniques, 1977, sections
 * 5A.12 and 8.11, and K. M. Wolter, J. Am. Stat. Assoc. 79, 1984: its expectation is never below the variance where
 * moments are drawn independently within their periods). `size` is how many periods the turn may lie in. A wall-time
 * sample that stands for many because the thread did not run says for all of them where it stood: the lesser of both
 * neighbours' weights counts. CPU time goes on while a signal is held back: there it is the mean of both squares. The
 * interval is Wilson's with the number of independent samples that would have this variance, p (1 - p) W^2 / V. */
#ifndef FDRI_TOOLS_COMMON_SAMPLE_TABLE_H
#define FDRI_TOOLS_COMMON_SAMPLE_TABLE_H

#include "tools/common/verbs.h"

enum samples_by { BY_FUNCTION, BY_SAMPLE_REGION, BY_LINE, BY_STACK, BY_THREAD, BY_PATH_FUNCTION };

struct sample_sum {
    uint64_t samples;
    double weight;   /* ns or events */
    double variance; /* V, in squares of them; of the total: what it would be if every sample were a turn */
    uint64_t newest; /* the sample that counted last, from 1 */
};
struct sample_row {
    char *name;
    struct sample_sum self, all; /* at the very end of the path; anywhere on it, once a sample */
};
struct sample_table {
    struct sample_row *row;
    size_t count, room;
    uint32_t *slot;
    size_t slots;
    struct sample_sum total;
    double *turn; /* of sample i: the square of the size between it and the one before; 0: the first of its stream */
    size_t turns;
    uint32_t by;                /* clock of the samples in it: 0 CPU, 1 wall, 2 events */
    uint64_t others;            /* samples of another clock: not in it */
    uint64_t first_ns, last_ns; /* from when to when they were taken */
    uint64_t cut;               /* samples whose stack does not reach to where the thread began */
};

/* `select`: of a thread that is chosen its samples are. `by_clock`: 0 to 2, or -1: that of most samples. False: out
 * of memory. Rows in order of self, then all. */
bool sample_table_build(struct sample_table *t, struct fdr_file *file, const struct fdr_select *select,
                        enum samples_by by, int by_clock);
void sample_table_free(struct sample_table *t);

struct sample_interval {
    double share, low, high;
};
struct sample_interval sample_interval(const struct sample_sum *part, const struct sample_sum *total);

/* "cpu", "wall", "events" */
const char *sample_clock_name(uint32_t by);
/* What its thread is called: as its events' location is, which fdr_thread_name sets, else by the kernel's name. */
const char *sample_thread(const struct fdr_file *file, const struct fdr_sample_stream *stream);
/* The function of the program counter: what the symbol table says. */
const char *sample_function(const struct fdr_file *file, const struct fdr_sample_path *p, uint64_t time_ns);

#endif
