/* SPDX-License-Identifier: MIT */
/* The calls of a whole run, summed where they are short: what the page draws before the recording is unpacked. */
#include "tools/html/page.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tools/html/view/view_window.h"

enum { CELLS = 4096, LINE_CELLS = 512, ITEMS_MOST = 300000, COLUMNS = 8 };

struct overview {
    struct view_items *lane; /* of each location */
    size_t locations;
    double span_ns;
    uint32_t cells;
};

static size_t items_of(const struct overview *o)
{
    size_t count = 0;
    for (size_t i = 0; i < o->locations; i++) count += o->lane[i].count;
    return count;
}

/* Fewer and wider cells until the items are few enough. */
static void coarsen(struct overview *o)
{
    for (o->cells = CELLS; o->cells > 64 && items_of(o) > ITEMS_MOST;) {
        o->cells /= 2;
        for (size_t i = 0; i < o->locations; i++) view_coarsen(&o->lane[i], o->span_ns / o->cells);
    }
}

static uint32_t in_units(double ns, double unit)
{
    double units = ns / unit;
    return units <= 0 ? 0 : units >= UINT32_MAX ? UINT32_MAX : (uint32_t)(units + 0.5);
}

static uint32_t *write_lane(uint32_t *at, uint32_t location, const struct view_items *lane, double unit)
{
    size_t n = lane->count;
    *at++ = location;
    *at++ = (uint32_t)n;
    for (size_t i = 0; i < n; i++) {
        const struct view_item *item = &lane->item[i];
        const uint32_t column[COLUMNS] = {in_units(item->start_ns, unit),
                                          in_units(item->duration_ns, unit),
                                          in_units(item->busy_ns, unit),
                                          in_units(item->longest_ns, unit),
                                          item->region,
                                          item->depth,
                                          item->count,
                                          item->flags};
        for (size_t c = 0; c < COLUMNS; c++) at[c * n + i] = column[c];
    }
    return at + COLUMNS * n;
}

/* unit (f64), locations (u32), cells (u32); then of each location its id, its number of items, and the columns. */
static uint32_t *pack(const struct overview *o, const struct fdr_file *file, size_t *bytes)
{
    size_t words = 4 + 2 * o->locations + COLUMNS * items_of(o);
    uint32_t *all = malloc(words * sizeof *all), *at = all + 4;
    double unit = o->span_ns / 2147483648.0;
    if (!all) return NULL;
    if (unit < 1) unit = 1;
    memcpy(all, &unit, sizeof unit);
    all[2] = (uint32_t)o->locations;
    all[3] = o->cells;
    for (size_t i = 0; i < o->locations; i++) at = write_lane(at, fdr_location_info(file, i)->id, &o->lane[i], unit);
    *bytes = words * sizeof *all;
    return all;
}

/* ---- one line of a whole rank ---- */

size_t busiest_location(struct fdr_file *file)
{
    const struct fdr_total *t;
    size_t best = 0, count = fdr_location_count(file), totals = fdr_totals(file, &t);
    uint64_t *ns = calloc(count + 1, sizeof *ns);
    for (size_t i = 0; ns && i < totals; i++) {
        size_t at = location_index(file, t[i].location);
        if (t[i].class_ == FDR_IN_REGION && at < count) ns[at] += t[i].exclusive_ns;
    }
    for (size_t i = 0; ns && i < count; i++)
        if (ns[i] > ns[best]) best = i;
    free(ns);
    return best;
}

static bool goes_before(const struct view_item *a, const struct view_item *b)
{
    return a->depth != b->depth ? a->depth > b->depth : a->busy_ns > b->busy_ns;
}

/* Leaves the deepest call that fills half of each cell: what the thread did there. */
static void flatten(struct view_items *items, double cell_ns, uint32_t cells)
{
    struct view_item *best = calloc(cells, sizeof *best);
    for (size_t i = 0; best && i < items->count; i++) {
        const struct view_item *item = &items->item[i];
        double end = item->start_ns + item->duration_ns, first = item->start_ns / cell_ns;
        if (item->busy_ns < cell_ns / 2 || item->flags & VIEW_REDUCED) continue;
        for (uint32_t c = first < cells ? (uint32_t)first : cells; c < cells && c * cell_ns < end; c++) {
            double part = (end < (c + 1) * cell_ns ? end : (c + 1) * cell_ns) - fmax(item->start_ns, c * cell_ns);
            if (part >= cell_ns / 2 && (!best[c].count || goes_before(item, &best[c]))) best[c] = *item;
        }
    }
    items->count = 0;
    for (uint32_t c = 0; best && c < cells; c++) {
        if (!best[c].count) continue;
        struct view_item *last = items->count ? &items->item[items->count - 1] : NULL;
        double start = c * cell_ns;
        if (last && last->region == best[c].region && last->start_ns + last->duration_ns >= start - 1) {
            last->duration_ns += cell_ns;
            last->busy_ns += cell_ns;
            continue;
        }
        best[c].start_ns = start;
        best[c].duration_ns = best[c].busy_ns = cell_ns;
        best[c].depth = 1;
        best[c].flags |= VIEW_SUM;
        items->item[items->count++] = best[c];
    }
    free(best);
}

uint32_t *page_overview(const struct page *page, size_t index, size_t *bytes)
{
    struct fdr_file *file = page->death[index].file;
    const struct fdr_file_info *info = fdr_file_info(file);
    struct overview o = {.locations = fdr_location_count(file)};
    struct view_window w = {.cells = CELLS, .base_ns = info->first_ns, .from_ns = info->first_ns};
    w.to_ns = w.end_ns = page_end(page, index);
    o.span_ns = (double)(w.to_ns - w.from_ns);
    o.lane = calloc(o.locations + 1, sizeof *o.lane);
    bool whole = o.lane != NULL, line = page->line[index];
    size_t busiest = line ? busiest_location(file) : 0;
    if (line) w.cells = LINE_CELLS;
    for (size_t i = 0; whole && i < o.locations; i++) {
        const struct fdr_location_info *l = fdr_location_info(file, i);
        w.location = l->id;
        if (!l->samples && (!line || i == busiest)) whole = view_lanes(file, &w, &o.lane[i]);
    }
    o.cells = LINE_CELLS;
    if (line && o.locations) flatten(&o.lane[busiest], o.span_ns / LINE_CELLS, LINE_CELLS);
    else if (whole) coarsen(&o);
    uint32_t *result = whole ? pack(&o, file, bytes) : NULL;
    for (size_t i = 0; o.lane && i < o.locations; i++) view_items_free(&o.lane[i]);
    free(o.lane);
    return result;
}
