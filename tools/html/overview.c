/* SPDX-License-Identifier: MIT */
/* The calls of a whole run, summed where they are short: what the page draws before the recording is unpacked. */
#include "tools/html/page.h"

#include <stdlib.h>
#include <string.h>

#include "tools/html/view/view_window.h"

enum { CELLS = 4096, ITEMS_MOST = 300000, COLUMNS = 8 };

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

uint32_t *page_overview(const struct page *page, size_t index, size_t *bytes)
{
    struct fdr_file *file = page->death[index].file;
    const struct fdr_file_info *info = fdr_file_info(file);
    struct overview o = {.locations = fdr_location_count(file)};
    struct view_window w = {.cells = CELLS, .base_ns = info->first_ns, .from_ns = info->first_ns};
    w.to_ns = w.end_ns = page_end(page, index);
    o.span_ns = (double)(w.to_ns - w.from_ns);
    o.lane = calloc(o.locations + 1, sizeof *o.lane);
    bool whole = o.lane != NULL;
    for (size_t i = 0; whole && i < o.locations; i++) {
        const struct fdr_location_info *l = fdr_location_info(file, i);
        w.location = l->id;
        if (!l->samples) whole = view_lanes(file, &w, &o.lane[i]);
    }
    if (whole) coarsen(&o);
    uint32_t *result = whole ? pack(&o, file, bytes) : NULL;
    for (size_t i = 0; o.lane && i < o.locations; i++) view_items_free(&o.lane[i]);
    free(o.lane);
    return result;
}
