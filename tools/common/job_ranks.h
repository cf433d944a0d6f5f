/* SPDX-License-Identifier: MIT */
/* Which ranks of a job there is no recording of. */
#ifndef FDRI_TOOLS_COMMON_JOB_RANKS_H
#define FDRI_TOOLS_COMMON_JOB_RANKS_H

#include "tools/common/verbs.h"

/* How many ranks the job had, as a bundle's environment tells; 0: it does not. */
int world_size(const struct fdr_file *file);

/* Which job it was, likewise; "": it does not tell. */
const char *job_of(const struct fdr_file *file, char *text, size_t bytes);

/* The ranks that there are, ascending, some perhaps twice; and how many there should be, 0: not known. A file may claim
 * any number, so those that are missing are never gone through one by one: they are intervals [*from, *end). */
struct ranks {
    int *rank;
    size_t count;
    int world;
};
/* The i-th interval of those that are missing, i from 0 to count; false: there is none at this place. */
bool missing_ranks(const struct ranks *r, size_t i, int64_t *from, int64_t *end);
void sort_ranks(struct ranks *r);
void print_missing_ranks(const struct ranks *r);
#endif
