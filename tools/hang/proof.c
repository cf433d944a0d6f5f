/* SPDX-License-Identifier: MIT */
/* Ranks that can never go on. At first all waiting ranks count as stuck. Then ranks that others may still help are
 * taken out, until nothing changes. A rank that waits for all of several ranks stays in if one of them is stuck. A rank
 * that waits for any one of them stays in if all are stuck. The ranks left over wait in a circle, or for ranks that are
 * gone.
 *
 * Recordings are of different moments. So there must be one moment at which all of these ranks waited. Take a rank that
 * was last seen before the newest of these waits began. It may have gone on by then, so it is taken out as well. */
#include <string.h>

#include "tools/hang/verdict.h"

/* A call that is only passed through waits, too, for some microseconds: a circle must have stood. A rank
 * that waits for a gone one waits from the first moment on. */
static bool has_stood(const struct job_rank *r)
{
    return r->moves != YES && r->seen_ns >= r->wait.since_ns + HANG_LEAST_WAIT_NS;
}

static bool waits(const struct job_rank *r, const struct edges *e, bool seeds)
{
    return r->wait.in_call && (e->count || e->open) && r->callers == 1 && (seeds || has_stood(r));
}

static bool counts_for(const struct job *job, size_t i, uint32_t to, bool seeds, const bool *stuck)
{
    const struct job_rank *t = &job->rank[to];
    bool finalizes = t->wait.in_call && t->wait.kind == FDR_MPI_WAIT_FINALIZE;
    if (seeds && (t->stopped || finalizes || hang_is_gone(t, &job->rank[i]))) return true;
    return stuck[to];
}

static bool stays(const struct job *job, const struct verdict *v, size_t i, bool seeds, const bool *stuck)
{
    const struct edges *e = &v->edges[i];
    size_t bad = 0;
    for (size_t k = 0; k < e->count; k++) bad += counts_for(job, i, e->to[k], seeds, stuck);
    return e->all ? bad > 0 : bad && bad == e->count && !e->open;
}

/* False: somebody was taken out. */
static bool settled(const struct job *job, const struct verdict *v, bool seeds, bool *stuck)
{
    bool same = true;
    for (size_t i = 0; i < job->ranks; i++) {
        if (!stuck[i] || stays(job, v, i, seeds, stuck)) continue;
        stuck[i] = same = false;
    }
    return same;
}

/* False: somebody was taken out, as no moment is known at which all waited. */
static bool at_one_moment(const struct job *job, bool *stuck)
{
    uint64_t newest = 0;
    bool same = true;
    for (size_t i = 0; i < job->ranks; i++)
        if (stuck[i] && job->rank[i].wait.since_ns > newest) newest = job->rank[i].wait.since_ns;
    for (size_t i = 0; i < job->ranks; i++) {
        if (!stuck[i] || job->rank[i].seen_ns >= newest) continue;
        stuck[i] = same = false;
    }
    return same;
}

void hang_find_stuck(const struct job *job, const struct verdict *v, bool seeds, bool *stuck)
{
    for (size_t i = 0; i < job->ranks; i++)
        stuck[i] = waits(&job->rank[i], &v->edges[i], seeds) && !(seeds && job->rank[i].stopped);
    do {
        while (!settled(job, v, seeds, stuck)) {}
    } while (!at_one_moment(job, stuck));
}
