/* SPDX-License-Identifier: MIT */
/* The verdict on a job for people and for programs. print.c: text; json.c: JSON; classes.c: ranks that do the same. */
#ifndef FDRI_TOOLS_HANG_PRINT_H
#define FDRI_TOOLS_HANG_PRINT_H

#include "tools/hang/load.h"
#include "tools/hang/verdict.h"

/* The exit code of the output. */
int print_job(const struct job *job, const struct verdict *v, const struct standing *s);
int print_job_json(const struct job *job, const struct verdict *v, const struct standing *s);

/* Ranks of one class that do the same. */
struct alike {
    enum rank_class class_;
    char what[200];
    uint32_t *rank;
    size_t count, one; /* one: index of the first in the job */
};
/* Those with most ranks first; to be freed with free_alike. NULL: out of memory. */
struct alike *find_alike(const struct job *job, const struct verdict *v, size_t *count);
void free_alike(struct alike *a, size_t count);
/* The ranks of the world without a recording, as intervals: calls `found` for each. */
void each_missing(const struct job *job, void (*found)(uint32_t from, uint32_t to, void *argument), void *argument);
/* The facts that the verdict stands on, a line each. */
void each_evidence(const struct job *job, const struct verdict *v, void (*found)(const char *line, void *argument),
                   void *argument);
/* The questions that could not be judged, with reasons. */
void each_not_judged(const struct job *job, const struct verdict *v, void (*found)(const char *line, void *argument),
                     void *argument);

#endif
