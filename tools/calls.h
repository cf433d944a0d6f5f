/* SPDX-License-Identifier: MIT */
/* Kept events as calls: a stack per location turns enters and leaves into calls with inclusive and exclusive time. */
#ifndef FDR_TOOLS_CALLS_H
#define FDR_TOOLS_CALLS_H

#include "tools/common.h"

struct call {
    uint32_t location, region, depth;
    uint64_t duration_ns;  /* what lies in the window asked for; open calls: up to the newest event of the location */
    uint64_t exclusive_ns; /* duration - all its kept children, shown or not */
    bool open;             /* an edge was added: not a closed call */
    bool reduced;          /* stands for an ancestor that is no longer held */
};
struct call_visitor {
    void *context;
    /* Either may be NULL. False from enter: out of memory, stop. */
    bool (*enter)(void *context, const struct fdr_read_event *event);
    void (*leave)(void *context, const struct call *call);
    /* A new location begins; its calls are complete before the next one's. */
    void (*location)(void *context, uint32_t location);
};
/* Goes through all calls that `select` shows, one location after another, and decodes what they contain whether that is
 * shown or not. False: out of memory. */
bool visit_calls(struct fdr_file *file, const struct fdr_select *select, const struct call_visitor *visitor,
                 const char *what);

#endif
