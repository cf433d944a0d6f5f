/* SPDX-License-Identifier: MIT */
/* A window of time as the page shows it: calls by lane, their flame graph, points, the next call of a region.
 *
 * `fdr html` computes the overview of a whole run with these functions. The page contains them and the reader as
 * WebAssembly, and computes what is zoomed into. So both show the same.
 *
 *   lanes.c  calls by calling depth, short ones summed by cell        flame.c  calls summed by path
 *   points.c samples, messages, metrics, ..., summed by cell           find.c   the next call of chosen regions
 *
 * Neighbours: tools/html/ and web/wasm/ use it; it knows fdr/reader.h alone. Times in results are ns since `base_ns`,
 * as double: exact up to 104 days. */
#ifndef FDRI_TOOLS_HTML_VIEW_H
#define FDRI_TOOLS_HTML_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <fdr/reader.h>

struct view_window {
    uint32_t location;             /* id */
    uint32_t depth_min, depth_max; /* 0: no limit */
    uint32_t cells;                /* into so many cells the window is cut; at least 1 */
    uint64_t base_ns, from_ns, to_ns;
    uint64_t min_duration_ns; /* for view_find */
    uint64_t end_ns;          /* of the recording: open calls reach up to it; 0: up to the location's newest event */
};

/* ---- lanes ---- */

enum view_flag {
    VIEW_OPEN = 1,     /* it had not ended */
    VIEW_REDUCED = 2,  /* stands for a caller that is no longer kept */
    VIEW_FILTERED = 4, /* with REDUCED: a rule kept it out */
    VIEW_SUM = 8       /* of several calls, or of one shorter than a cell */
};
/* One call, or all calls of a lane that are shorter than a cell and began in the same cell. Then `region`
 * and `longest_ns` are those of the longest one, and `busy_ns` is the sum of all. The item reaches from the first to
 * the last. */
struct view_item {
    double start_ns, duration_ns, busy_ns, longest_ns;
    uint32_t region, depth, count, flags;
};
struct view_items {
    struct view_item *item; /* of each depth in order of start */
    size_t count, room;
    bool failed; /* out of memory: some are missing */
};
/* Appends the calls of a window. False: out of memory. */
bool view_lanes(struct fdr_file *file, const struct view_window *window, struct view_items *items);
/* Sums items shorter than `cell_ns` by cells of that width, in place. */
void view_coarsen(struct view_items *items, double cell_ns);
void view_items_free(struct view_items *items);

/* ---- flame graph and totals ---- */

struct view_node {
    double inclusive_ns, exclusive_ns, longest_ns, longest_start_ns;
    uint32_t parent; /* index; of the first node, which stands for the window, UINT32_MAX */
    uint32_t region, flags;
    uint32_t location; /* of the longest call */
    double calls;
};
struct view_nodes {
    struct view_node *node;
    size_t count, room;
    uint32_t *slot; /* hash table by parent, region and flags; 0: free */
    size_t slots;
};
/* Sums the kept calls by path. location UINT32_MAX: of all locations. False: out of memory. */
bool view_flame(struct fdr_file *file, const struct view_window *window, struct view_nodes *nodes);
void view_nodes_free(struct view_nodes *nodes);

/* ---- points ---- */

/* The points of one kind and id that lie in the same cell. Messages and samples are not summed while they are few. */
struct view_point {
    double time_ns, last_ns;
    double value, least, greatest; /* the last value, and the limits; of messages: bytes */
    uint32_t kind, id, count;
    uint32_t peer, tag, comm; /* of messages; of samples: peer is the number of frames */
    double pc;                /* of samples: the address of the code */
};
struct view_points {
    struct view_point *point;
    size_t count, room;
    bool failed;
};
bool view_points(struct fdr_file *file, const struct view_window *window, struct view_points *points);
void view_points_free(struct view_points *points);

/* ---- search ---- */

/* The first call of the regions with wanted[region] != 0 that begins after `after_ns` (or, backward, the last before).
 * location UINT32_MAX: in any location. False: there is none. */
struct view_found {
    double start_ns, duration_ns;
    uint32_t location, region, depth, flags;
};
bool view_find(struct fdr_file *file, const struct view_window *window, const uint8_t *wanted, size_t regions,
               bool backward, struct view_found *found);

#endif
