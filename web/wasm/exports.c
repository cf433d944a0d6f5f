/* SPDX-License-Identifier: MIT */
/* The functions of the reader that the page calls. One file is open at a time in each instance. Results lie in
 * memory until the next call of the same function. */
#include "tools/html/view/view_window.h"

#include <stdlib.h>
#include <string.h>

#define EXPORT(name) __attribute__((export_name(#name)))

static uint8_t *bytes;
static struct fdr_file *file;
static char message[256];
static struct view_items items;
static struct view_nodes nodes;
static struct view_points points;
static struct view_found found;
static uint8_t *wanted;
static size_t wanted_count;
static double end_ns;

/* Room for the bytes of a recording, which the page fills in. NULL: no memory. */
EXPORT(room) void *room(size_t count)
{
    bytes = malloc(count ? count : 1);
    return bytes;
}
/* enum fdr_verdict of the bytes in the room. */
EXPORT(open) int open_bytes(size_t count)
{
    return (int)fdr_file_open_memory(bytes, count, &file, message, sizeof message);
}
/* Of the recording, since 0 of its clock: open calls are drawn up to it. */
EXPORT(end) void end_of_recording(double end) { end_ns = end; }
EXPORT(message) const char *last_message(void) { return message; }

static struct view_window window(int location, double from, double to, double base, int cells, int depth_min,
                                 int depth_max)
{
    struct view_window w = {.location = (uint32_t)location,
                            .cells = cells > 0 ? (uint32_t)cells : 1,
                            .depth_min = (uint32_t)depth_min,
                            .depth_max = (uint32_t)depth_max,
                            .base_ns = (uint64_t)base,
                            .end_ns = (uint64_t)end_ns};
    w.from_ns = w.base_ns + (uint64_t)(int64_t)from;
    w.to_ns = w.base_ns + (uint64_t)(int64_t)to;
    return w;
}

/* Number of items; -1: out of memory. */
EXPORT(lanes) int lanes(int location, double from, double to, double base, int cells, int depth_min, int depth_max)
{
    struct view_window w = window(location, from, to, base, cells, depth_min, depth_max);
    view_items_free(&items);
    return view_lanes(file, &w, &items) ? (int)items.count : -1;
}
EXPORT(lanes_result) const void *lanes_result(void) { return items.item; }

/* location -1: all. */
EXPORT(flame) int flame(int location, double from, double to, double base, int depth_max)
{
    struct view_window w = window(location, from, to, base, 1, 0, depth_max);
    view_nodes_free(&nodes);
    return view_flame(file, &w, &nodes) ? (int)nodes.count : -1;
}
EXPORT(flame_result) const void *flame_result(void) { return nodes.node; }

EXPORT(points) int all_points(int location, double from, double to, double base, int cells)
{
    struct view_window w = window(location, from, to, base, cells, 0, 0);
    view_points_free(&points);
    return view_points(file, &w, &points) ? (int)points.count : -1;
}
EXPORT(points_result) const void *points_result(void) { return points.point; }

/* One byte for each region, 0 at first; the page sets those that find() looks for. */
EXPORT(wanted) void *wanted_regions(size_t count)
{
    free(wanted);
    wanted = calloc(count ? count : 1, 1);
    wanted_count = wanted ? count : 0;
    return wanted;
}
EXPORT(find) int find(int location, double from, double to, double base, int backward, double least)
{
    struct view_window w = window(location, from, to, base, 1, 0, 0);
    w.min_duration_ns = (uint64_t)least;
    return view_find(file, &w, wanted, wanted_count, backward != 0, &found);
}
EXPORT(find_result) const void *find_result(void) { return &found; }
