/* SPDX-License-Identifier: MIT */
#include "tools/ranks.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int world_size(const struct fdr_file *file)
{
    static const char *const names[] = {"OMPI_COMM_WORLD_SIZE=", "PMI_SIZE=", "SLURM_STEP_NUM_TASKS="};
    size_t bytes = 0;
    const char *text = fdr_crash_text(file, "environment", &bytes);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        for (const char *p = text; p && p < text + bytes; p += strcspn(p, "\n") + 1)
            if (!strncmp(p, names[i], strlen(names[i]))) {
                long n = strtol(p + strlen(names[i]), NULL, 10);
                return n > 0 && n < 1000000000 ? (int)n : 0;
            }
    return 0;
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
        if (end - from == 1) printf("missing: rank %" PRId64 ", of which there is no recording\n", from);
        else printf("missing: ranks %" PRId64 " to %" PRId64 ", of which there are no recordings\n", from, end - 1);
    }
}
