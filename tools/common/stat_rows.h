/* SPDX-License-Identifier: MIT */
/* The rows of fdr stats: gathered from the exact totals or from the events that are kept. */
#ifndef FDRI_TOOLS_COMMON_STAT_ROWS_H
#define FDRI_TOOLS_COMMON_STAT_ROWS_H

#include "tools/common/verbs.h"

#define HISTOGRAM_BINS 64
#define DEPTHS_MOST    65536u /* deeper calls share the last row */

/* What a row stands for depends on the table: a region, a location, a depth. */
struct stat_row {
    uint32_t id;
    bool rest;     /* regions that have no row of their own; where some are chosen, there because they may be in it */
    bool at_least; /* more may be in the rest */
    bool has_histogram;
    bool saturated;          /* 64 bits do not hold a time */
    uint32_t beside_rest;    /* locations with a rest in which this row is exact */
    uint64_t calls, untimed; /* all, and how many of them have no time */
    uint64_t inclusive_ns, exclusive_ns;
    uint64_t min_ns, max_ns; /* of timed calls; 0 where there are none */
    uint64_t histogram[HISTOGRAM_BINS];
};
struct stat_rows {
    struct stat_row *row; /* in order of id, the rest last */
    size_t count;
};
enum stat_by { BY_REGION, BY_PATH, BY_CLASS, BY_DEPTH, BY_LOCATION, BY_EPOCH, BY_METRIC };

/* From the totals; BY_REGION or BY_LOCATION. `select`: its locations and regions count, the rest is ignored. */
bool rows_from_totals(struct stat_rows *rows, const struct fdr_file *file, const struct fdr_select *select,
                      enum stat_by by);
/* From kept events; BY_REGION, BY_DEPTH or BY_LOCATION. Closed calls only, as in the totals. */
bool rows_from_events(struct stat_rows *rows, struct fdr_file *file, const struct fdr_select *select, enum stat_by by);
void rows_free(struct stat_rows *rows);
/* How many regions are chosen; SIZE_MAX: all, also those that are not known. */
size_t chosen_regions(const struct fdr_select *select);
/* false: 64 bits do not hold the sum, it is the most they hold. */
bool add_time(uint64_t *sum, uint64_t ns);

/* Events without duration, summed over locations: one row per class and id. */
struct point_row {
    uint32_t class_, id, value_type; /* of sum, min, max: 0 u64, 1 i64, 2 f64 */
    bool has_histogram, rest, at_least;
    bool saturated; /* 64 bits did not hold the sum: this is the bound it met */
    uint64_t events, sum, min, max;
    uint64_t histogram[HISTOGRAM_BINS];
    uint32_t beside_rest; /* rows of it in locations that found no room for all rows */
};
bool points_from_totals(struct point_row **rows, size_t *count, const struct fdr_file *file,
                        const struct fdr_select *select);
/* Events of kinds that found no room for a row: they are in no sum. */
uint64_t points_without_row(const struct fdr_file *file, const struct fdr_select *select);
const char *point_name(const struct fdr_file *file, const struct point_row *row);

#endif
