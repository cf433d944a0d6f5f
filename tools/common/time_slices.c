/* SPDX-License-Identifier: MIT */
/* Equal slices of a run, from epochs or from kept calls. */
#include "tools/common/time_slices.h"

#include <stdlib.h>

static bool wanted(const struct fdr_select *s, uint32_t location)
{
    for (size_t i = 0; i < s->location_count; i++)
        if (s->locations[i] == location) return true;
    return s->locations == NULL;
}

/* ---- from epochs ---- */

static void spread(struct time_slices *s, const struct fdr_epoch_info *e, const struct fdr_epoch_total *t)
{
    double width = (double)(s->to_ns - s->from_ns) / (double)s->count, length = (double)(e->to_ns - e->from_ns);
    double from = (double)(e->from_ns - s->from_ns), to = (double)(e->to_ns - s->from_ns);
    size_t region = t->rest || t->region >= s->regions ? 0 : t->region;
    for (size_t i = (size_t)(from / width); i < s->count && (double)i * width < to; i++) {
        double a = (double)i * width > from ? (double)i * width : from;
        double b = (double)(i + 1) * width < to ? (double)(i + 1) * width : to;
        double part = length > 0 ? (b - a) / length : 1;
        struct slice_cell *c = &s->cell[region * s->count + i];
        c->calls += part * (double)t->calls;
        c->inclusive_ns += part * (double)t->inclusive_ns;
        c->exclusive_ns += part * (double)t->exclusive_ns;
        if (length <= 0) return;
    }
}

static void from_epochs(struct time_slices *s, struct fdr_file *file, const struct fdr_select *select)
{
    const struct fdr_epoch_info *e;
    const struct fdr_epoch_total *t;
    size_t epochs = fdr_epochs(file, &e), count = fdr_epoch_totals(file, &t), at = 0;
    for (size_t i = 0; i < epochs; i++)
        if ((double)(e[i].to_ns - e[i].from_ns) > s->epoch_ns) s->epoch_ns = (double)(e[i].to_ns - e[i].from_ns);
    for (size_t i = 0; i < count; i++) {
        while (at < epochs &&
               (e[at].location < t[i].location || (e[at].location == t[i].location && e[at].index < t[i].epoch)))
            at++;
        if (at == epochs) return;
        bool same = e[at].location == t[i].location && e[at].index == t[i].epoch;
        if (same && wanted(select, t[i].location) && e[at].from_ns >= s->from_ns && e[at].to_ns <= s->to_ns)
            spread(s, &e[at], &t[i]);
    }
}

/* ---- from kept calls ---- */

struct gather {
    struct time_slices *slices;
    uint64_t *start_ns; /* of the open calls */
    size_t depth, room;
    bool failed;
};

static void on_location(void *context, uint32_t location)
{
    (void)location;
    ((struct gather *)context)->depth = 0;
}

static bool on_enter(void *context, const struct fdr_read_event *e)
{
    struct gather *g = context;
    if (g->depth == g->room) {
        size_t room = g->room ? g->room * 2 : 256;
        uint64_t *grown = realloc(g->start_ns, room * sizeof *grown);
        g->failed = !grown;
        if (!grown) return false;
        g->start_ns = grown;
        g->room = room;
    }
    g->start_ns[g->depth++] = e->time_ns;
    return true;
}

static void on_leave(void *context, const struct fdr_call *c)
{
    struct gather *g = context;
    struct time_slices *s = g->slices;
    uint64_t start = g->depth ? g->start_ns[--g->depth] : s->from_ns, end = start + c->duration_ns;
    if (c->open || c->reduced || end < s->from_ns) return;
    size_t at = (size_t)((double)(end - s->from_ns) / (double)(s->to_ns - s->from_ns) * (double)s->count);
    size_t region = c->region < s->regions ? c->region : 0;
    struct slice_cell *cell = &s->cell[region * s->count + (at < s->count ? at : s->count - 1)];
    cell->calls++;
    cell->inclusive_ns += (double)c->duration_ns;
    cell->exclusive_ns += (double)c->exclusive_ns;
}

static bool from_calls(struct time_slices *s, struct fdr_file *file, const struct fdr_select *select)
{
    struct gather g = {.slices = s};
    const struct fdr_select chosen = {.locations = select->locations, .location_count = select->location_count};
    const struct fdr_call_visitor visitor = {&g, on_location, on_enter, on_leave, NULL};
    bool good = fdr_visit_calls(file, &chosen, &visitor) == 0 && !g.failed;
    free(g.start_ns);
    return good;
}

bool time_slices_build(struct time_slices *s, struct fdr_file *file, const struct fdr_select *select, size_t count)
{
    const struct fdr_epoch_info *e;
    size_t epochs = fdr_epochs(file, &e);
    *s = (struct time_slices){.from_ns = run_start(file), .to_ns = fdr_file_info(file)->last_ns, .count = count};
    for (size_t i = 0; i < epochs; i++) {
        if (e[i].from_ns < s->from_ns) s->from_ns = e[i].from_ns;
        if (e[i].to_ns > s->to_ns) s->to_ns = e[i].to_ns;
    }
    if (s->to_ns <= s->from_ns) s->to_ns = s->from_ns + 1;
    s->regions = fdr_definition_count(file, FDR_REGION_DEFINITION) + 1;
    s->cell = calloc(s->regions * count, sizeof *s->cell);
    s->epochs = epochs != 0;
    bool good = s->cell != NULL;
    if (good && epochs) from_epochs(s, file, select);
    else if (good) good = from_calls(s, file, select);
    if (!good) time_slices_free(s);
    return good;
}

void time_slices_free(struct time_slices *s)
{
    free(s->cell);
    *s = (struct time_slices){0};
}
