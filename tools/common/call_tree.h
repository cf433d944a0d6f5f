/* SPDX-License-Identifier: MIT */
/* The call tree of the kept events, summed over locations. */
#ifndef FDRI_TOOLS_COMMON_CALL_TREE_H
#define FDRI_TOOLS_COMMON_CALL_TREE_H

#include "tools/common/progress.h"
#include "tools/common/verbs.h"

#define NO_NODE UINT32_MAX

struct tree_node {
    uint32_t region; /* meaningless if reduced */
    bool reduced, filtered, not_over;
    uint64_t key;
    uint32_t parent, child, sibling;                     /* NO_NODE: none */
    uint64_t calls, open;                                /* closed calls; calls still open */
    uint64_t inclusive_ns, exclusive_ns, min_ns, max_ns; /* min and max of closed calls */
    bool exact;                                          /* calltree_find_exact */
    uint64_t not_kept_ns; /* part of inclusive_ns: children that are no longer kept; in no other node */
};
struct calltree {
    struct tree_node *node; /* [0] is the parent of the outermost calls */
    size_t count, capacity;
    uint32_t *same;   /* of each region: the one whose node it shares, same_functions */
    size_t regions;   /* the greatest in `same` */
    uint32_t *slot;   /* hash table of the nodes by parent and key, 0: free */
    size_t slots;     /* a power of two */
    uint32_t current; /* during the build, as is `progress` */
    struct progress progress;
};
/* False: out of memory. */
bool calltree_build(struct calltree *tree, struct fdr_file *file, const struct fdr_select *select);
/* Takes the time of children that are no longer kept out of exclusive_ns: by the exact totals, a region's own share of
 * its time. An estimate, as that share is the one of the whole run. Nothing changes if every call is kept. */
void calltree_correct(struct calltree *tree, struct fdr_file *file);
/* Which nodes have exact calls and times: those whose every call is kept, with all calls inside. Call it before the
 * correction. If calls were given back, the exact totals decide, so an open call is not exact, nor a part of a run. */
bool calltree_find_exact(struct calltree *tree, struct fdr_file *file);
void calltree_free(struct calltree *tree);
/* Time of all outermost calls. */
uint64_t calltree_total(const struct calltree *tree);
/* In whole; shown: for a table. */
const char *calltree_shown(const struct fdr_file *file, const struct tree_node *node);
const char *calltree_name(const struct fdr_file *file, const struct tree_node *node);

#endif
