/* SPDX-License-Identifier: MIT */
/* The filters of dump, tree, stats --events and export, as an argp child, and what they come to for one file. */
#ifndef FDRI_TOOLS_COMMON_SELECTION_H
#define FDRI_TOOLS_COMMON_SELECTION_H

#include "tools/common/verbs.h"

#define SELECT_TEXTS 16

/* As given on the command line; zero-initialised = everything. */
struct selection {
    const char *location[SELECT_TEXTS];
    const char *region[SELECT_TEXTS];
    size_t location_count, region_count;
    uint32_t classes;
    uint32_t depth_min, depth_max;
    const char *from, *to;
    uint64_t min_duration_ns;
};
/* Its input is a struct selection. */
extern const struct argp select_argp;

/* What the reader is asked for; owns its arrays. */
struct chosen {
    struct fdr_select select;
    uint32_t *locations;
    uint8_t *regions;
};
/* Says so where a filter matches nothing in this file. False: no memory. */
bool choose(const struct selection *selection, const struct fdr_file *file, const char *path, struct chosen *chosen);
void chosen_free(struct chosen *chosen);

/* The filter --to, for a verb whose own option of that name was given a time. Ends the program where it is none. */
void select_to(struct selection *s, const char *text, struct argp_state *state);

/* For a verb that shows one class only, and calls it `what`: ends the program where --class asks for others. */
void select_one_class(struct argp_state *state, const struct selection *s, uint32_t class_, const char *what);

#endif
