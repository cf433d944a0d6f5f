/* SPDX-License-Identifier: MIT */
/* A prefix tree over the ranks of a job: open regions and, below them, native functions where the stack is known. */
#ifndef FDRI_TOOLS_HANG_RANK_TREE_H
#define FDRI_TOOLS_HANG_RANK_TREE_H

#include "tools/hang/verdict.h"

struct tree_node {
    const char *name; /* of the region; of a function "module+0xoffset" if it has no name */
    bool native;
    size_t depth;
    const uint32_t *rank; /* ascending */
    size_t ranks;
};
/* Ranks whose stack is not known, all for one reason. */
struct tree_gap {
    const char *why;
    uint32_t *rank;
    size_t ranks;
};
enum { TREE_GAPS = 8 };
struct rank_tree {
    struct tree_node *node; /* each before those below it */
    size_t nodes, left_out; /* left_out: behind the first `most` */
    struct tree_gap gap[TREE_GAPS];
    size_t gaps;
    struct rank_path *path;
    size_t paths;
};
/* names_off: FDR_SYMBOLS was set to 0 for this job, and is taken back for the few stacks that are unwound. False: out
 * of memory. */
bool rank_tree_make(struct rank_tree *t, const struct job *job, const struct verdict *v, bool names_off, size_t most);
void rank_tree_free(struct rank_tree *t);

#endif
