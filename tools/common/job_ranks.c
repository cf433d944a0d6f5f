/* SPDX-License-Identifier: MIT */
/* Finds the ranks of a job that have no recording. */
#include "tools/common/job_ranks.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int world_size(const struct fdr_file *file)
{
    static const char *const names[] = {"OMPI_COMM_WORLD_SIZE=", "PMI_SIZE=", "SLURM_STEP_NUM_TASKS="};
    size_t bytes = 0;
    const struct fdr_note_info *note;
    for (size_t i = 0, n = fdr_notes(file, &note); i < n; i++)
        if (!strcmp(note[i].key, "mpi.size") && atoi(note[i].value) > 0) return atoi(note[i].value);
    const char *text = fdr_crash_text(file, "environment", &bytes);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        for (const char *p = text; p && p < text + bytes; p += strcspn(p, "\n") + 1)
            if (!strncmp(p, names[i], strlen(names[i]))) {
                long n = strtol(p + strlen(names[i]), NULL, 10);
                return n > 0 && n < 1000000000 ? (int)n : 0;
            }
    return 0;
}

const char *job_of(const struct fdr_file *file, char *text, size_t bytes)
{
    static const char *const names[] = {"SLURM_JOB_ID=", "PMIX_NAMESPACE="};
    size_t count = 0;
    const char *from = fdr_crash_text(file, "environment", &count);
    text[0] = 0;
    for (size_t i = 0; i < sizeof names / sizeof *names && !text[0]; i++)
        for (const char *p = from; p && p < from + count; p += strcspn(p, "\n") + 1)
            if (!strncmp(p, names[i], strlen(names[i])))
                snprintf(text, bytes, "%.*s", (int)(strcspn(p, "\n") - strlen(names[i])), p + strlen(names[i]));
    return text;
}

const char *attempt_of(const struct fdr_file *file)
{
    const struct fdr_note_info *note;
    for (size_t i = 0, n = fdr_notes(file, &note); i < n; i++)
        if (!strcmp(note[i].key, "mpi.attempt")) return note[i].value;
    return "";
}

bool missing_ranks(const struct ranks *r, size_t i, int64_t *from, int64_t *end)
{
    *from = i ? (int64_t)r->rank[i - 1] + 1 : 0;
    *end = i < r->count ? r->rank[i] : r->world;
    return r->count && *from < *end;
}

static int by_number(const void *x, const void *y)
{
    const int *a = x, *b = y;
    return (*a > *b) - (*a < *b);
}
void sort_ranks(struct ranks *r)
{
    if (r->count) qsort(r->rank, r->count, sizeof *r->rank, by_number);
}

void print_missing_ranks(const struct ranks *r)
{
    int64_t from, end;
    for (size_t i = 0; i <= r->count; i++) {
        if (!missing_ranks(r, i, &from, &end)) continue;
        if (end - from == 1) printf("missing: rank %" PRId64 " has no recording\n", from);
        else printf("missing: ranks %" PRId64 " to %" PRId64 " have no recordings\n", from, end - 1);
    }
}
