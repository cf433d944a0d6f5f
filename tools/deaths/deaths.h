/* SPDX-License-Identifier: MIT */
/* fdr crash: who died first and by what evidence, what the others did then, and which of them are alike.
 *
 *   crash_verb.c   the command         doings.c        what each process was doing, by its counters or its regions
 *   five_lines.c   a job in five lines alike_deaths.c  the processes, those that are alike in one line
 *   phone_lines.c  one process in three lines
 *
 * Neighbours: tools/crash.c says what a file tells of a death, tools/crash_print.c shows one; tools/hang/ knows what
 * ranks wait for. */
#ifndef FDRI_TOOLS_DEATHS_DEATHS_H
#define FDRI_TOOLS_DEATHS_DEATHS_H

#include "tools/crash.h"

/* The activity of a process when its file ended. */
struct doing {
    char text[200];    /* without what differs between ranks: "waiting in MPI_Allreduce #12 on MPI_COMM_WORLD" */
    uint64_t moved_ns; /* its newest event, since 1970 */
};
struct deaths {
    struct death *death; /* the first death at the front, then by time; then files left out */
    struct doing *doing; /* of each */
    size_t count, left_out;
    const struct death *first; /* NULL: none died, or which was the first is not known */
    size_t perhaps_first;      /* how many may have been the first */
};

bool find_doings(struct deaths *d);
void print_five_lines(const struct deaths *d);
/* The processes; alike ones share a line unless `all`. */
void print_alike_deaths(const struct deaths *d, bool all);
/* Of a process that died. */
void print_phone_lines(const struct death *d);

/* "rank 3", "pid 12 on vm" */
const char *who_died(const struct death *d, char *text, size_t bytes);
/* How it ended, without what differs between ranks: "SIGTERM". */
const char *short_end(const struct death *d, char *text, size_t bytes);
/* "in exchange at solver.c:20", by the stack, without the functions of the libraries that end a program; "": not
 * known. */
const char *place_of_death(const struct death *d, char *text, size_t bytes);
/* "solve > exchange": the open regions of this thread, at most the innermost three. */
const char *regions_of(const struct death *d, const struct fdr_location_info *l, char *text, size_t bytes);

/* Deaths with equal keys, in the order of the first of each. */
struct alike_death {
    size_t one, count; /* index of the first in the list */
    size_t last;       /* and of the last one by time */
    uint32_t *rank;    /* ascending, of those that have one */
    size_t ranks;
};
typedef bool alike_fn(const struct deaths *d, size_t a, size_t b);
/* Groups those for which `wanted` holds; to be freed by free_alike_deaths. NULL: out of memory. */
struct alike_death *group_deaths(const struct deaths *d, alike_fn *alike, bool (*wanted)(const struct deaths *, size_t),
                                 size_t *count);
void free_alike_deaths(struct alike_death *a, size_t count);
/* " (ranks 0, 2-7)"; "": no rank is known. */
const char *ranks_of(const struct alike_death *a, char *text, size_t bytes);

#endif
