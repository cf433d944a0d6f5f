/* SPDX-License-Identifier: MIT */
/* The filters of dump, tree, stats --events and export, as an argp child, and their result for one file. */
#ifndef FDRI_TOOLS_COMMON_SELECTION_H
#define FDRI_TOOLS_COMMON_SELECTION_H

#include "tools/common/verbs.h"

#define SELECT_TEXTS 16

/* As given on the command line; zero-initialised = everything. */
struct selection {
    const char *location[SELECT_TEXTS];
    const char *region[SELECT_TEXTS];
    struct rank_range {
        uint32_t from, to;
    } rank[SELECT_TEXTS];
    size_t location_count, region_count, rank_count;
    uint32_t classes;
    uint32_t depth_min, depth_max;
    const char *from, *to;
    uint64_t min_duration_ns;
};
/* Its input is a struct selection. */
extern const struct argp select_argp;

/* The selection for the reader; owns its arrays. */
struct chosen {
    struct fdr_select select;
    uint32_t *locations;
    uint8_t *regions;
};
/* Reports filters that match nothing in this file. False: out of memory. */
bool choose(const struct selection *selection, const struct fdr_file *file, const char *path, struct chosen *chosen);
void chosen_free(struct chosen *chosen);

/* Does --rank show this rank? Without --rank, every one; below 0: of a file whose rank is not known. */
bool selection_shows_rank(const struct selection *selection, int rank);

/* Sets the filter --to, for a verb whose own option --to got a time. Ends the program if `text` is no time. */
void select_to(struct selection *s, const char *text, struct argp_state *state);

/* For a verb that shows one class only, named `what`: ends the program if --class names others. */
void select_one_class(struct argp_state *state, const struct selection *s, uint32_t class_, const char *what);

#endif
