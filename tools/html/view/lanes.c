/* SPDX-License-Identifier: MIT */
/* Calls by calling depth. A call that is at least as long as a cell is an item of its own. Shorter ones that begin in
 * the same cell are one item. So a lane has at most two items a cell, and a picture as wide as the cells lacks none. */
#include "tools/html/view/view_window.h"

#include <stdlib.h>
#include <string.h>

#define LANES_MOST 2048u /* deeper calls than fdr stores */

struct lanes {
    struct view_items *items;
    double cell_ns;
    uint32_t *sum; /* of each depth: 1 + the index of the item that the next short call may join; 0: none */
};

static void append(struct view_items *items, const struct view_item *item)
{
    if (items->count == items->room) {
        size_t room = items->room ? items->room * 2 : 4096;
        struct view_item *grown = realloc(items->item, room * sizeof *grown);
        if (!grown) {
            items->failed = true;
            return;
        }
        items->item = grown;
        items->room = room;
    }
    items->item[items->count++] = *item;
}

static double end_of(const struct view_item *i) { return i->start_ns + i->duration_ns; }

static bool same_cell(const struct lanes *l, const struct view_item *a, const struct view_item *b)
{
    return (int64_t)(a->start_ns / l->cell_ns) == (int64_t)(b->start_ns / l->cell_ns);
}

static void join(struct view_item *sum, const struct view_item *more)
{
    double end = end_of(more) > end_of(sum) ? end_of(more) : end_of(sum);
    if (more->longest_ns > sum->longest_ns) {
        sum->longest_ns = more->longest_ns;
        sum->region = more->region;
    }
    sum->duration_ns = end - sum->start_ns;
    sum->busy_ns += more->busy_ns;
    sum->count += more->count;
    sum->flags |= more->flags | VIEW_SUM;
}

/* Adds a call, or the sum of several. Of each depth in order of start. */
static void add(struct lanes *l, const struct view_item *item)
{
    struct view_items *items = l->items;
    uint32_t *sum = &l->sum[item->depth < LANES_MOST ? item->depth : LANES_MOST - 1];
    bool summed = item->duration_ns < l->cell_ns;
    if (summed && *sum && same_cell(l, &items->item[*sum - 1], item)) {
        join(&items->item[*sum - 1], item);
        return;
    }
    append(items, item);
    *sum = summed && !items->failed ? (uint32_t)items->count : 0;
}

static struct view_item item_of(const struct view_window *w, const struct fdr_read_event *e, uint64_t end_ns)
{
    struct view_item i = {.region = e->id, .depth = e->depth, .count = 1};
    uint64_t duration = e->open ? (end_ns > e->time_ns ? end_ns - e->time_ns : 0) : e->duration_ns;
    i.start_ns = (double)(int64_t)(e->time_ns - w->base_ns);
    i.duration_ns = i.busy_ns = i.longest_ns = (double)duration;
    i.flags = (e->open ? VIEW_OPEN : 0u) | (e->reduced ? VIEW_REDUCED : 0u) | (e->filtered ? VIEW_FILTERED : 0u);
    return i;
}

/* Where open calls end in the picture: at the end of the recording if the thread lives. */
static uint64_t end_of_location(const struct fdr_file *file, const struct view_window *w)
{
    for (size_t i = 0; i < fdr_location_count(file); i++) {
        const struct fdr_location_info *l = fdr_location_info(file, i);
        if (l->id == w->location) return l->live && w->end_ns > l->to_ns ? w->end_ns : l->to_ns;
    }
    return 0;
}

bool view_lanes(struct fdr_file *file, const struct view_window *w, struct view_items *items)
{
    struct fdr_select select = {.locations = &w->location,
                                .location_count = 1,
                                .classes = 1u << FDR_IN_REGION,
                                .depth_min = w->depth_min,
                                .depth_max = w->depth_max,
                                .from_ns = w->from_ns,
                                .to_ns = w->to_ns};
    struct lanes l = {items, (double)(w->to_ns - w->from_ns) / w->cells, calloc(LANES_MOST, sizeof *l.sum)};
    struct fdr_iter *iter = l.sum ? fdr_iter_open(file, &select) : NULL;
    struct fdr_read_event e;
    uint64_t end_ns = end_of_location(file, w);
    if (l.cell_ns < 1) l.cell_ns = 1;
    while (iter && fdr_iter_next(iter, &e)) {
        if (e.kind != FDR_ENTER) continue;
        struct view_item item = item_of(w, &e, end_ns);
        add(&l, &item);
    }
    fdr_iter_close(iter);
    free(l.sum);
    return iter && !items->failed;
}

void view_coarsen(struct view_items *items, double cell_ns)
{
    struct view_items out = {items->item, 0, items->room, false}; /* it never has more items than were read */
    struct lanes l = {&out, cell_ns, calloc(LANES_MOST, sizeof *l.sum)};
    if (!l.sum) return;
    for (size_t i = 0; i < items->count; i++) {
        struct view_item item = items->item[i];
        add(&l, &item);
    }
    items->count = out.count;
    free(l.sum);
}

void view_items_free(struct view_items *items)
{
    free(items->item);
    memset(items, 0, sizeof *items);
}
