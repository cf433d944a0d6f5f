/* SPDX-License-Identifier: MIT */
/* The rows of fdr stats, from the exact totals or from the kept events. */
#ifndef FDRI_TOOLS_COMMON_STAT_ROWS_H
#define FDRI_TOOLS_COMMON_STAT_ROWS_H

#include "tools/common/verbs.h"

#define HISTOGRAM_BINS 64
#define DEPTHS_MOST    65536u /* deeper calls share the last row */

/* The meaning of id depends on the table: a region, a location, a depth. */
struct stat_row {
    uint32_t id;
    bool rest;     /* regions without a row of their own; with a selection: it may include selected ones */
    bool at_least; /* the rest may contain more */
    bool has_histogram;
    bool saturated;          /* a time exceeded 64 bits */
    uint32_t beside_rest;    /* locations that have a rest beside this exact row */
    uint64_t calls, untimed; /* all calls; calls without a time */
    uint64_t inclusive_ns, exclusive_ns;
    uint64_t min_ns, max_ns; /* of timed calls; 0: none */
    uint64_t histogram[HISTOGRAM_BINS];
};
struct stat_rows {
    struct stat_row *row; /* in order of id, the rest last */
    size_t count;
};
enum stat_by { BY_REGION, BY_PATH, BY_CLASS, BY_DEPTH, BY_LOCATION, BY_EPOCH, BY_METRIC, BY_FILE, BY_SLICE };

/* From the totals; BY_REGION or BY_LOCATION. Of `select` only locations and regions count. */
bool rows_from_totals(struct stat_rows *rows, const struct fdr_file *file, const struct fdr_select *select,
                      enum stat_by by);
/* From kept events; BY_REGION, BY_DEPTH or BY_LOCATION. Closed calls only, as in the totals. */
bool rows_from_events(struct stat_rows *rows, struct fdr_file *file, const struct fdr_select *select, enum stat_by by);
/* Rows by region: makes one row of the copies of an inline function. False: out of memory. */
bool rows_join_copies(struct stat_rows *rows, const struct fdr_file *file);
void rows_free(struct stat_rows *rows);
/* The number of regions selected; SIZE_MAX: all, also undefined ones. */
size_t chosen_regions(const struct fdr_select *select);
/* The time that this share of the calls stays below, interpolated between powers of two. 0: no calls. */
double percentile(const uint64_t histogram[HISTOGRAM_BINS], double share);
/* False: the sum exceeds 64 bits and becomes the largest value. */
bool add_time(uint64_t *sum, uint64_t ns);

/* Points, summed over locations: one row per class, id and operation. */
struct point_row {
    uint32_t class_, id, value_type; /* of sum, min, max: 0 u64, 1 i64, 2 f64 */
    bool has_histogram, rest, at_least;
    bool saturated; /* the sum exceeded 64 bits: it is the bound that it met */
    uint64_t events, sum, min, max;
    uint32_t operation; /* of io: enum fdr_io_operation */
    uint64_t time_ns;   /* of io */
    uint64_t histogram[HISTOGRAM_BINS];
    uint32_t beside_rest; /* locations that have this row and a rest, for want of room */
};
bool points_from_totals(struct point_row **rows, size_t *count, const struct fdr_file *file,
                        const struct fdr_select *select);
/* Points that found no room for a row, so they are in no sum. */
uint64_t points_without_row(const struct fdr_file *file, const struct fdr_select *select);
const char *operation_name(uint32_t operation); /* of io: "read" */
const char *point_name(const struct fdr_file *file, const struct point_row *row);

#endif
