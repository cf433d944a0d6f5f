/* SPDX-License-Identifier: MIT */
/* The next call of chosen regions. */
#include "tools/html/view/view_window.h"

static struct view_found found_of(const struct view_window *w, const struct fdr_read_event *e)
{
    struct view_found f = {.location = e->location, .region = e->id, .depth = e->depth};
    f.start_ns = (double)(int64_t)(e->time_ns - w->base_ns);
    f.duration_ns = (double)e->duration_ns;
    f.flags = e->open ? VIEW_OPEN : 0;
    return f;
}

/* Calls that overlap the window are shown, too: only those count that begin in it. */
static bool begins_inside(const struct view_window *w, const struct fdr_read_event *e)
{
    return e->kind == FDR_ENTER && !e->reduced && e->duration_ns >= w->min_duration_ns && e->time_ns >= w->from_ns &&
           e->time_ns <= w->to_ns;
}

bool view_find(struct fdr_file *file, const struct view_window *w, const uint8_t *wanted, size_t regions, bool backward,
               struct view_found *found)
{
    struct fdr_select select = {.locations = w->location == UINT32_MAX ? NULL : &w->location,
                                .location_count = w->location == UINT32_MAX ? 0 : 1,
                                .classes = 1u << FDR_IN_REGION,
                                .from_ns = w->from_ns,
                                .to_ns = w->to_ns,
                                .regions = wanted,
                                .region_count = regions};
    struct fdr_iter *iter = fdr_iter_open(file, &select);
    struct fdr_read_event e;
    bool any = false;
    while (iter && (backward || !any) && fdr_iter_next(iter, &e)) {
        if (!begins_inside(w, &e)) continue;
        *found = found_of(w, &e);
        any = true;
    }
    fdr_iter_close(iter);
    return any;
}
