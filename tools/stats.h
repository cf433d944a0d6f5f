/* SPDX-License-Identifier: MIT */
/* The tables of fdr stats.
 *
 *   stats.c         rows of figures       stats_points.c   events without duration
 *   stats_path.c    call paths            stats_ledger.c   the ledger
 *   stats_epoch.c   epochs                stats_time.c     equal slices of time
 *   stats_longest.c the longest calls     stats_layout.c   how a table fits the terminal */
#ifndef FDRI_TOOLS_STATS_H
#define FDRI_TOOLS_STATS_H

#include "tools/common/job_files.h"
#include "tools/common/verbs.h"
#include "tools/common/selection.h"
#include "tools/common/stat_rows.h"

struct stats_arguments {
    struct file_list files;
    const char *path; /* for messages */
    enum stat_by by;
    bool events, json, all, longest, limit_given;
    uint64_t limit; /* 0: all */
    struct selection selection;
};

/* Each prints its table and returns DONE or COULD_NOT. */
int print_paths(const struct stats_arguments *a, struct fdr_file *file, const struct fdr_select *select);
int print_epochs(const struct stats_arguments *a, struct fdr_file *file, const struct fdr_select *select);
int print_times(const struct stats_arguments *a, struct fdr_file *file, const struct fdr_select *select);
int print_accounts(const struct stats_arguments *a, struct fdr_file *file, const struct fdr_select *select);

/* The longest kept call of each region, by id; ns 0: none is kept. To be freed; NULL: out of memory. */
struct longest {
    uint64_t ns, start_ns;
    uint32_t location;
};
struct longest *find_longest(struct fdr_file *file, const struct stat_rows *rows, size_t shown);

/* How a table of regions fits its terminal. */
struct layout {
    bool narrow;         /* without the columns inclusive and mean, and without files */
    unsigned name;       /* columns for names; 0: no limit */
    size_t folder_bytes; /* of the folder that all files share, which the head names */
};
struct layout layout_of(const struct stats_arguments *a, const struct fdr_file *file, const struct stat_rows *rows,
                        size_t shown);
/* Prints the region's name, and its file and line if there is room. */
void region_label(const struct fdr_file *file, const struct stat_row *r, const struct layout *layout);
/* Prints the folder that all files share, if they do. */
void folder_line(const struct fdr_file *file, const struct stat_rows *rows, const struct layout *layout);

/* Rows of a table for people: --limit, else at most 40 without --all. */
size_t shown_rows(const struct stats_arguments *a, size_t count);
size_t limited(const struct stats_arguments *a, size_t count);
int out_of_memory(const struct stats_arguments *a);
/* Prints ', "key": value'. */
void key_u64(const char *key, uint64_t value);
/* Prints "  12.34 %". */
void out_share(uint64_t part, uint64_t total);
void histogram_json(bool has, const uint64_t *histogram);
/* Prints the table of points. False: out of memory. */
bool points_text(const struct stats_arguments *a, const struct fdr_file *file, const struct fdr_select *select);
/* Prints how many rows were left out, if any. */
/* fdr stats --by file. */
int print_files(const struct stats_arguments *a, const struct fdr_file *file, const struct fdr_select *select);

void more_rows(size_t count, size_t shown);

#endif
