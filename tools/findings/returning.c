/* SPDX-License-Identifier: MIT */
/* Long calls that come back every so many calls of their caller. Counts have no noise. On a machine with more threads
 * than processors the times between such calls differ, and the usual calls take as long as the rare ones. */
#include "tools/findings/run_facts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/common/short_names.h"

enum { MOST_CALLS = 4096, MOST_TRIED = 8, RARE = 20 /* calls of the caller for one of it, at least */ };
#define LEAST_SHARE 0.005 /* of the run */
#define LONGER      4     /* times the median of its caller */
#define WORK        0.1   /* of the run: what takes more is its work, and nobody asks for its period */

struct returning {
    const struct fdr_total *total;
    uint32_t caller;
    uint64_t *gap; /* calls of the caller between two of it */
    size_t calls;  /* of it that are kept */
    uint64_t first_ns, last_ns, duration_ns;
    uint64_t callers; /* kept calls of the caller */
};

static struct fdr_select select_in(const uint32_t *location, const uint8_t *region, size_t regions)
{
    return (struct fdr_select){.locations = location,
                               .location_count = 1,
                               .classes = 1u << FDR_IN_REGION,
                               .regions = region,
                               .region_count = regions};
}

/* The region around a call; 0: it is not kept, or there is none. */
static uint32_t caller_of(const struct run_facts *f, const struct fdr_read_event *call)
{
    struct fdr_select s = select_in(&call->location, NULL, 0);
    struct fdr_read_event e;
    uint32_t region = 0;
    s.depth_min = s.depth_max = call->depth - 1;
    s.from_ns = call->time_ns;
    s.to_ns = call->time_ns + 1;
    struct fdr_iter *iter = call->depth > 1 ? fdr_iter_open(f->file, &s) : NULL;
    while (iter && fdr_iter_next(iter, &e))
        if (e.kind == FDR_ENTER && e.time_ns <= call->time_ns && !e.reduced) region = e.id;
    fdr_iter_close(iter);
    return region;
}

/* The caller of its first kept call. 0: not known. */
static uint32_t usual_caller(const struct run_facts *f, const struct fdr_total *t, uint8_t *wanted)
{
    struct fdr_select s = select_in(&t->location, wanted, f->regions);
    struct fdr_read_event e;
    uint32_t caller = 0;
    wanted[t->id] = 1;
    struct fdr_iter *iter = fdr_iter_open(f->file, &s);
    while (iter && !caller && fdr_iter_next(iter, &e))
        if (e.kind == FDR_ENTER && e.id == t->id) caller = caller_of(f, &e);
    fdr_iter_close(iter);
    return caller;
}

static void count_between(const struct run_facts *f, struct returning *r, uint8_t *wanted)
{
    struct fdr_select s = select_in(&r->total->location, wanted, f->regions);
    struct fdr_read_event e;
    uint64_t before = 0;
    wanted[r->caller] = 1;
    struct fdr_iter *iter = fdr_iter_open(f->file, &s);
    while (iter && fdr_iter_next(iter, &e)) {
        if (e.kind != FDR_ENTER || e.reduced) continue;
        r->callers += e.id == r->caller;
        if (e.id != r->total->id || r->calls == MOST_CALLS) continue;
        if (r->calls) r->gap[r->calls - 1] = r->callers - before;
        else r->first_ns = e.time_ns, r->duration_ns = e.duration_ns;
        before = r->callers;
        r->last_ns = e.time_ns;
        r->calls++;
    }
    fdr_iter_close(iter);
}

/* ---- the finding ---- */

static bool is_told(const struct findings *to, uint32_t region)
{
    for (size_t i = 0; i < to->count; i++)
        if (to->row[i].kind == FINDING_PERIODIC && to->row[i].region == region) return true;
    return false;
}

/* The calls that come back explain the slow calls around them. */
static void remove_outliers(struct findings *to, uint32_t region)
{
    for (size_t i = 0; i < to->count; i++)
        if (to->row[i].kind == FINDING_OUTLIER && to->row[i].region == region) to->row[i--] = to->row[--to->count];
}

static void add_returning(const struct run_facts *f, struct findings *to, const struct returning *r, uint64_t period,
                          double fits)
{
    char mean[HUMAN_BYTES], usual[HUMAN_BYTES], thread[LABEL_BYTES], every[HUMAN_BYTES], calls[HUMAN_BYTES];
    const struct fdr_total *t = r->total;
    double share = (double)t->inclusive_ns / f->length_ns;
    size_t threads;
    if (is_told(to, t->id)) return;
    remove_outliers(to, t->id);
    struct finding *row = add_finding(to, FINDING_PERIODIC, share);
    if (!row) return;
    rows_of(f, t->id, &threads);
    row->region = t->id;
    add_location(row, t->location);
    row->from_ns = r->first_ns;
    row->to_ns = r->first_ns + r->duration_ns;
    row->value = (double)(r->last_ns - r->first_ns) / (double)(r->calls - 1);
    row->unit = "ns";
    row->share = share;
    row->sure = fits >= 0.95 ? 0.95 : 0.8;
    say(row, "%s times %s in %.100s, every %s calls of %.80s, in %s%s: %.2g %% of the run.",
        human_count(calls, t->calls), human_time(mean, t->inclusive_ns / t->calls), plain_shown(f->file, t->id),
        human_count(every, period), plain_shown(f->file, r->caller), thread_label(f->file, t->location, thread),
        threads == 1 ? " only" : "", 100 * share);
    add_evidence(
        row,
        "%.0f of 100 gaps are that number of calls, or a multiple of it; half of the calls of %.100s stay below %s",
        100 * fits, plain_shown(f->file, r->caller), human_time(usual, (uint64_t)f->region[r->caller].p50_ns));
}

/* Long beside its caller's usual calls, and rare. */
static bool stands_out(const struct run_facts *f, const struct fdr_total *t, uint32_t caller)
{
    const struct region_facts *around = &f->region[caller];
    const struct fdr_total *own = total_of(f, caller, t->location);
    return own && own->calls >= RARE * t->calls && around->p50_ns > 0 &&
           (double)(t->inclusive_ns / t->calls) >= LONGER * around->p50_ns;
}

static void leave_open(const struct run_facts *f, struct findings *to, const struct returning *r)
{
    static const char what[] = "calls that come back";
    for (size_t i = 0; i < to->not_judged_count; i++)
        if (!strcmp(to->not_judged[i].what, what)) return;
    cannot_judge(to, what, "whether %.100s has a period is not known: calls of %.100s between them were given back",
                 plain_shown(f->file, r->total->id), plain_shown(f->file, r->caller));
}

static void try_one(const struct run_facts *f, struct findings *to, const struct fdr_total *t)
{
    uint64_t gap[MOST_CALLS];
    struct returning r = {.total = t, .gap = gap};
    uint8_t *wanted = calloc(f->regions, 1);
    double fits = 0;
    to->failed |= !wanted;
    r.caller = wanted ? usual_caller(f, t, wanted) : 0;
    if (r.caller && stands_out(f, t, r.caller)) {
        const struct fdr_total *own = total_of(f, r.caller, t->location);
        count_between(f, &r, wanted);
        bool whole = r.calls == t->calls && 100 * r.callers >= 99 * own->calls;
        uint64_t period = whole ? period_of_gaps(gap, r.calls - 1, &fits) : 0;
        if (period) add_returning(f, to, &r, period, fits);
        else if (!whole && (double)t->inclusive_ns < WORK * f->length_ns && !is_told(to, t->id)) leave_open(f, to, &r);
    }
    free(wanted);
}

void find_returning(const struct run_facts *f, struct findings *to)
{
    size_t tried = 0;
    for (size_t i = 0; i < f->rows && tried < MOST_TRIED; i++) {
        const struct fdr_total *t = f->row[i];
        bool few = t->calls >= LEAST_RETURNS && t->calls <= MOST_CALLS && !f->region[t->id].waits;
        if (!few || (double)t->inclusive_ns < LEAST_SHARE * f->length_ns) continue;
        tried++;
        try_one(f, to, t);
    }
}
