/* SPDX-License-Identifier: MIT */
/* Finds the ranks of a job that have no recording. */
#ifndef FDRI_TOOLS_COMMON_JOB_RANKS_H
#define FDRI_TOOLS_COMMON_JOB_RANKS_H

#include "tools/common/verbs.h"

/* The number of ranks of the job, from libfdr-mpi's note or a bundle's environment; 0: unknown. */
int world_size(const struct fdr_file *file);

/* The job's id, from a bundle's environment; "": unknown. */
const char *job_of(const struct fdr_file *file, char *text, size_t bytes);
/* Which start of it again, as the note of libfdr-mpi says; "": unknown, or the first. */
const char *attempt_of(const struct fdr_file *file);

/* The ranks found, ascending, possibly with duplicates, and the number expected; 0: unknown. A file may claim any
 * number, so missing ranks are never visited one by one: they are intervals [*from, *end). */
struct ranks {
    int *rank;
    size_t count;
    int world;
};
/* The missing interval before the i-th rank, i from 0 to count; false: none is missing there. */
bool missing_ranks(const struct ranks *r, size_t i, int64_t *from, int64_t *end);
void sort_ranks(struct ranks *r);
void print_missing_ranks(const struct ranks *r);
#endif
