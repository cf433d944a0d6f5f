/* SPDX-License-Identifier: MIT */
/* fdr stats --longest: when and where the longest call of each region was, if it is kept. */
#include <stdlib.h>

#include "tools/stats.h"

/* Regions shown, and the shortest of their longest calls. False: out of memory. */
static bool wanted(const struct stat_rows *rows, size_t shown, size_t regions, uint8_t *want, uint64_t *least_ns)
{
    *least_ns = UINT64_MAX;
    for (size_t i = 0; i < shown; i++) {
        const struct stat_row *r = &rows->row[i];
        if (r->rest || r->id >= regions || !r->max_ns) continue;
        want[r->id] = 1;
        if (r->max_ns < *least_ns) *least_ns = r->max_ns;
    }
    return *least_ns != UINT64_MAX;
}

struct longest *find_longest(struct fdr_file *file, const struct stat_rows *rows, size_t shown)
{
    size_t regions = fdr_definition_count(file, FDR_REGION_DEFINITION) + 1;
    struct longest *found = calloc(regions, sizeof *found);
    uint8_t *want = calloc(regions, 1);
    uint64_t least;
    struct fdr_read_event e;
    bool any = found && want && wanted(rows, shown, regions, want, &least);
    struct fdr_select select = {.classes = 1u << FDR_IN_REGION,
                                .min_duration_ns = any ? least : 0,
                                .regions = want,
                                .region_count = regions,
                                .one_location_after_another = true};
    struct fdr_iter *i = any ? fdr_iter_open(file, &select) : NULL;
    while (i && fdr_iter_next(i, &e)) {
        if (e.kind != FDR_ENTER || e.open || e.reduced || e.id >= regions) continue;
        if (e.duration_ns > found[e.id].ns) found[e.id] = (struct longest){e.duration_ns, e.time_ns, e.location};
    }
    fdr_iter_close(i);
    free(want);
    return found;
}
