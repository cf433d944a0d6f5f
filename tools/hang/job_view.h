/* SPDX-License-Identifier: MIT */
/* The verdict on recordings that are open already, for rooms that show it beside other things. */
#ifndef FDRI_TOOLS_HANG_JOB_VIEW_H
#define FDRI_TOOLS_HANG_JOB_VIEW_H

#include "tools/common/verbs.h"

struct job_view_file {
    struct fdr_file *file;
    const char *path;
    /* filled in: */
    bool behind;        /* others wait for this rank, for a second or longer */
    bool first_of_kind; /* of the ranks that do the same, the first */
};
/* Judges the job. False: out of memory, or the recordings are of no MPI job. text: who is behind and what that is, in
 * two sentences; "": nobody is. */
bool view_job(struct job_view_file *file, size_t count, char *text, size_t bytes);

#endif
