/* SPDX-License-Identifier: MIT */
/* Kept calls that are unlike the others of their region, and what ran inside of them. */
#include "tools/findings/run_facts.h"

#include <stdlib.h>

enum { MOST_CALLS = 1000000, MOST_OPEN = 4096 };

/* ---- which ---- */

struct gather {
    const struct run_facts *facts;
    struct outlier_calls *to;
    uint32_t open[MOST_OPEN]; /* for each open call of the iterator its index, or UINT32_MAX */
    size_t depth;
    uint32_t location;
};

static uint32_t append(struct outlier_calls *to, const struct fdr_read_event *e, uint32_t within)
{
    if (to->count == MOST_CALLS) return UINT32_MAX;
    if (to->count == to->room) {
        size_t room = to->room ? to->room * 2 : 1024;
        struct outlier_call *grown = realloc(to->call, room * sizeof *grown);
        to->failed |= !grown;
        if (!grown) return UINT32_MAX;
        to->call = grown;
        to->room = room;
    }
    to->call[to->count] = (struct outlier_call){.location = e->location,
                                                .region = e->id,
                                                .depth = e->depth,
                                                .start_ns = e->time_ns,
                                                .duration_ns = e->duration_ns,
                                                .within = within,
                                                .inner = e->id,
                                                .inner_ns = e->duration_ns};
    return (uint32_t)to->count++;
}

static bool is_slow(const struct run_facts *f, const struct fdr_read_event *e)
{
    if (e->open || e->reduced || e->repaired || e->id >= f->regions) return false;
    return f->region[e->id].slow_ns && e->duration_ns >= f->region[e->id].slow_ns;
}

static void on_event(struct gather *g, const struct fdr_read_event *e)
{
    if (e->location != g->location) g->location = e->location, g->depth = 0;
    if (e->kind == FDR_LEAVE) {
        if (g->depth) g->depth--;
        return;
    }
    uint32_t around = g->depth && g->depth <= MOST_OPEN ? g->open[g->depth - 1] : UINT32_MAX;
    uint32_t own = is_slow(g->facts, e) ? append(g->to, e, around) : UINT32_MAX;
    if (g->depth < MOST_OPEN) g->open[g->depth] = own == UINT32_MAX ? around : own;
    g->depth++;
}

/* Regions with outliers, and the shortest of these. NULL: none, or out of memory. */
static uint8_t *wanted_regions(const struct run_facts *f, uint64_t *least_ns)
{
    uint8_t *wanted = calloc(f->regions, 1);
    size_t count = 0;
    *least_ns = UINT64_MAX;
    for (size_t id = 0; wanted && id < f->regions; id++) {
        if (!f->region[id].slow_ns) continue;
        wanted[id] = 1;
        count++;
        if (f->region[id].slow_ns < *least_ns) *least_ns = f->region[id].slow_ns;
    }
    if (count) return wanted;
    free(wanted);
    return NULL;
}

void outlier_calls_of(const struct run_facts *f, struct outlier_calls *calls)
{
    uint64_t least;
    struct fdr_read_event e;
    uint8_t *wanted = wanted_regions(f, &least);
    struct gather *g = wanted ? calloc(1, sizeof *g) : NULL;
    struct fdr_select select = {.classes = 1u << FDR_IN_REGION,
                                .min_duration_ns = least,
                                .regions = wanted,
                                .region_count = f->regions,
                                .one_location_after_another = true};
    *calls = (struct outlier_calls){.failed = wanted && !g};
    struct fdr_iter *i = g ? fdr_iter_open(f->file, &select) : NULL;
    if (g) *g = (struct gather){.facts = f, .to = calls, .location = UINT32_MAX};
    while (i && fdr_iter_next(i, &e))
        if (e.kind == FDR_ENTER || e.kind == FDR_LEAVE) on_event(g, &e);
    fdr_iter_close(i);
    free(g);
    free(wanted);
}

/* ---- what ran inside ---- */

/* The innermost call that still takes most of the outlier: each level must hold that share of the one above. */
void explain_outlier(const struct run_facts *f, struct outlier_call *call)
{
    const double most = 0.7;
    struct fdr_read_event e;
    struct fdr_select select = {.locations = &call->location,
                                .location_count = 1,
                                .classes = 1u << FDR_IN_REGION,
                                .from_ns = call->start_ns,
                                .to_ns = call->start_ns + call->duration_ns,
                                .min_duration_ns = (uint64_t)(most * (double)call->duration_ns * most)};
    struct fdr_iter *i = fdr_iter_open(f->file, &select);
    while (i && fdr_iter_next(i, &e)) {
        if (e.kind != FDR_ENTER || e.reduced || e.depth <= call->depth || e.time_ns < call->start_ns) continue;
        if ((double)e.duration_ns < most * (double)call->duration_ns || e.duration_ns > call->duration_ns) continue;
        call->inner = e.id;
        call->inner_ns = e.duration_ns;
    }
    fdr_iter_close(i);
}
