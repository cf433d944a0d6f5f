/* SPDX-License-Identifier: MIT */
/* Which ranks are behind, and the name for it. Proof comes first: a mismatch, a circle, or a rank that waits for one
 * that is gone, stopped or in MPI_Finalize. Then come the ranks that others wait for and that wait for nobody. They are
 * slow while they move or use processor time. They hang if nothing of them has moved for the limit. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/hang/verdict.h"

static const uint64_t least_limit_ns = 30000000000u; /* of standing, and so many times what is usual in this run */
enum { TIMES_USUAL = 20 };

struct work {
    const struct job *job;
    struct verdict *v;
    bool *stuck, *circle, *mark;
    size_t *told_in; /* 1 + the finding that a rank was put in last */
    bool failed;     /* out of memory */
};

/* ---- findings ---- */

static void push(struct work *w, uint32_t **list, size_t *count, uint32_t rank)
{
    if ((*count & (*count - 1)) == 0) { /* full at each power of two */
        uint32_t *wider = realloc(*list, (*count ? *count * 2 : 1) * sizeof *wider);
        if (!wider) {
            w->failed = true;
            return;
        }
        *list = wider;
    }
    (*list)[(*count)++] = rank;
}

/* The finding of this kind about the same collective; i: a rank that waits, SIZE_MAX: none. */
static struct finding *finding_for(struct work *w, enum hang_kind kind, enum judgement judgement, size_t i)
{
    struct verdict *v = w->v;
    struct finding like = {
        .kind = kind, .judgement = judgement, .ordinal = UINT64_MAX, .one = w->job->ranks, .waits = i};
    const struct job_wait *wait = i < w->job->ranks ? &w->job->rank[i].wait : NULL;
    bool collective = wait && v->edges[i].group != SIZE_MAX;
    if (wait) like.comm = wait->comm, like.wait = wait->kind, like.peer = wait->peer, like.tag = wait->tag;
    if (collective) like.ordinal = wait->ordinal, like.operation = wait->operation;
    for (size_t f = 0; f < v->findings; f++) {
        struct finding *g = &v->finding[f];
        bool same = g->kind == kind && g->judgement == judgement && kind != BY_CYCLE && g->comm == like.comm &&
                    g->ordinal == like.ordinal;
        if (!same) continue;
        if (wait && wait->since_ns < g->since_ns) g->since_ns = wait->since_ns;
        return g;
    }
    struct finding *wider = realloc(v->finding, (v->findings + 1) * sizeof *wider);
    if (!wider) {
        w->failed = true;
        return NULL;
    }
    v->finding = wider;
    like.since_ns = wait ? wait->since_ns : UINT64_MAX;
    wider[v->findings] = like;
    return &wider[v->findings++];
}

static void blame(struct work *w, struct finding *f, size_t behind)
{
    size_t number = f ? (size_t)(f - w->v->finding) + 1 : 0;
    if (!f || w->told_in[behind] == number) return;
    w->told_in[behind] = number;
    push(w, &f->behind, &f->behinds, w->job->rank[behind].rank);
    if (f->one == w->job->ranks) f->one = behind;
}

/* ---- proof ---- */

static enum hang_kind kind_of(const struct job_rank *r, bool gone)
{
    bool in_call = r->wait.in_call;
    if (gone) return r->end == LEFT ? BY_ENDED : BY_DEAD;
    if (r->stopped) return BY_STOPPED;
    if (in_call && r->wait.kind == FDR_MPI_WAIT_FINALIZE) return BY_ENDED;
    if (in_call && r->wait.kind != FDR_MPI_WAIT_NOTHING) return BY_UNKNOWN;
    return r->doing == IN_IO ? BY_IO : r->doing == ON_LOCK ? BY_LOCK : BY_COMPUTING;
}

static bool never_comes(const struct job *job, size_t i, uint32_t to)
{
    const struct job_rank *t = &job->rank[to];
    return t->stopped || (t->wait.in_call && t->wait.kind == FDR_MPI_WAIT_FINALIZE) || hang_is_gone(t, &job->rank[i]);
}

static void find_gone(struct work *w)
{
    for (size_t i = 0; i < w->job->ranks; i++)
        for (size_t k = 0; w->stuck[i] && k < w->v->edges[i].count; k++) {
            uint32_t to = w->v->edges[i].to[k];
            if (!never_comes(w->job, i, to)) continue;
            bool gone = hang_is_gone(&w->job->rank[to], &w->job->rank[i]);
            blame(w, finding_for(w, kind_of(&w->job->rank[to], gone), HANG, i), to);
        }
}

/* Leaves those in the set that lie on circles, or between two. */
static void keep_circles(struct work *w, bool *set)
{
    const struct job *job = w->job;
    for (bool again = true; again;) {
        again = false;
        memset(w->mark, 0, job->ranks);
        for (size_t i = 0; i < job->ranks; i++)
            for (size_t k = 0; set[i] && k < w->v->edges[i].count; k++) w->mark[w->v->edges[i].to[k]] = true;
        for (size_t i = 0; i < job->ranks; i++) {
            if (!set[i] || w->mark[i]) continue;
            set[i] = false, again = true;
        }
    }
}

/* Marks all that rank i waits for, directly or through others of the set. */
static void mark_from(struct work *w, const bool *set, size_t i)
{
    memset(w->mark, 0, w->job->ranks);
    w->mark[i] = true;
    for (bool again = true; again;) {
        again = false;
        for (size_t n = 0; n < w->job->ranks; n++)
            for (size_t k = 0; w->mark[n] && set[n] && k < w->v->edges[n].count; k++) {
                uint32_t to = w->v->edges[n].to[k];
                if (w->mark[to] || !set[to]) continue;
                w->mark[to] = again = true;
            }
    }
}

static void find_circles(struct work *w)
{
    keep_circles(w, w->circle);
    for (size_t i = 0; i < w->job->ranks; i++) {
        if (!w->circle[i]) continue;
        struct finding *f = finding_for(w, BY_CYCLE, HANG, i);
        mark_from(w, w->circle, i);
        for (size_t n = 0; n < w->job->ranks; n++) {
            if (!w->mark[n]) continue;
            blame(w, f, n);
            if (f && w->job->rank[n].wait.since_ns > f->since_ns) f->since_ns = w->job->rank[n].wait.since_ns;
            w->circle[n] = false;
            w->stuck[n] = true; /* told */
        }
    }
}

static bool stands_in(const struct work *w, size_t i, size_t group)
{
    return w->v->edges[i].group == group && w->job->rank[i].wait.in_call;
}

static bool same_call(const struct job_wait *a, const struct job_wait *b)
{
    return a->operation == b->operation && a->peer == b->peer;
}

/* How many of the group call what rank i calls. */
static size_t alike(const struct work *w, size_t group, size_t i)
{
    size_t n = 0;
    for (size_t k = 0; k < w->job->ranks; k++)
        n += stands_in(w, k, group) && same_call(&w->job->rank[k].wait, &w->job->rank[i].wait);
    return n;
}

/* Those that call what most do not; without a majority, all. */
static void find_mismatch(struct work *w, size_t group)
{
    const struct group *g = &w->v->group[group];
    struct finding *f = NULL;
    size_t one = w->job->ranks, most = 0;
    uint64_t earliest = UINT64_MAX;
    for (size_t i = 0; i < w->job->ranks; i++) {
        if (!stands_in(w, i, group)) continue;
        size_t n = alike(w, group, i);
        if (n > most) most = n, one = i;
        if (w->job->rank[i].seen_ns < earliest) earliest = w->job->rank[i].seen_ns;
    }
    if (earliest < g->last_since_ns + HANG_LEAST_WAIT_NS) return; /* they may still go on */
    for (size_t i = 0; i < w->job->ranks; i++) {
        if (!stands_in(w, i, group)) continue;
        bool odd = 2 * most <= g->waiting || !same_call(&w->job->rank[i].wait, &w->job->rank[one].wait);
        if (odd && !f) f = finding_for(w, BY_MISMATCH, HANG, one);
        if (odd) blame(w, f, i);
    }
    if (f) f->since_ns = g->last_since_ns;
}

/* ---- collectives that some have left ---- */

/* How many collectives of the communicator have ended on the rank, as far as is known. */
static uint64_t ended(const struct job_rank *r, uint64_t comm)
{
    for (size_t i = 0; i < r->comms; i++)
        if (r->comm[i].comm == comm) return r->comm[i].ended;
    return 0;
}

/* Rank `at` was past the collective a while before rank i was last seen in it. */
static bool has_left(const struct work *w, size_t at, size_t i)
{
    const struct job_wait *in = &w->job->rank[i].wait;
    if (at == w->job->ranks || stands_in(w, at, w->v->edges[i].group)) return false;
    if (ended(&w->job->rank[at], in->comm) <= in->ordinal) return false;
    return w->job->rank[at].moved_ns + HANG_LEAST_WAIT_NS <= w->job->rank[i].seen_ns;
}

/* All have begun it and some are past it, so it has ended there. A rank that still stands in it waits for another
 * collective: one rank called something else under this number. A collective that does not block proves nothing. Its
 * last steps may need a call of MPI by a rank that is past it, or that has not come to wait for it. */
static bool is_left_by_some(const struct work *w, size_t i)
{
    size_t g = w->v->edges[i].group;
    const struct job_rank *r = &w->job->rank[i];
    const struct job_comm *c = job_comm_of(w->job, r->wait.comm);
    if (g == SIZE_MAX || !c || w->v->group[g].behinds || w->v->group[g].absent) return false;
    if (r->wait.kind != FDR_MPI_WAIT_COLLECTIVE) return false;
    if (w->v->group[g].waiting >= c->size || !hang_needs_all(r->wait.collective)) return false;
    for (uint32_t m = 0; m < c->size; m++)
        if (has_left(w, job_find(w->job, job_member(c, m)), i)) return true;
    return false;
}

static void find_left(struct work *w, size_t i)
{
    const struct job_rank *r = &w->job->rank[i];
    const struct job_comm *c = job_comm_of(w->job, r->wait.comm);
    uint64_t stands = r->seen_ns > r->wait.since_ns ? r->seen_ns - r->wait.since_ns : 0;
    enum judgement j = stands >= hang_limit(w->job, r) ? HANG : stands >= HANG_LEAST_WAIT_NS ? UNDECIDED : NOTHING;
    struct finding *f = finding_for(w, BY_MISMATCH, j, i);
    for (uint32_t m = 0; m < c->size; m++) {
        size_t at = job_find(w->job, job_member(c, m));
        if (has_left(w, at, i)) blame(w, f, at);
    }
}

/* ---- without proof ---- */

uint64_t hang_limit(const struct job *job, const struct job_rank *r)
{
    if (job->after_ns) return job->after_ns;
    uint64_t usual = r->longest_still_ns;
    uint64_t many = usual > UINT64_MAX / TIMES_USUAL ? UINT64_MAX : usual * TIMES_USUAL;
    return many > least_limit_ns ? many : least_limit_ns;
}

static uint64_t stood(const struct job_rank *r) { return r->seen_ns > r->moved_ns ? r->seen_ns - r->moved_ns : 0; }

static enum judgement judge_one(const struct job *job, const struct job_rank *r)
{
    if (r->moves == YES) return SLOW;
    if (r->busy == YES && !job->after_ns) return SLOW;
    if (stood(r) >= hang_limit(job, r)) return HANG;
    return r->moves == UNKNOWN && stood(r) < HANG_LEAST_WAIT_NS ? SLOW : UNDECIDED;
}

static uint64_t waited(const struct job_rank *r)
{
    return r->wait.in_call && r->seen_ns > r->wait.since_ns ? r->seen_ns - r->wait.since_ns : 0;
}

/* Others wait for it, and as far as is known it waits for nobody. */
static bool is_end_of_chain(const struct verdict *v, uint32_t i) { return !v->edges[i].count && !v->edges[i].open; }

/* Of those that have not begun a collective, the ones with the lowest ordinal are behind. */
static uint64_t lowest(const struct work *w, size_t i)
{
    const struct edges *e = &w->v->edges[i];
    uint64_t least = UINT64_MAX;
    for (size_t k = 0; k < e->count; k++) {
        uint64_t n = job_begun(&w->job->rank[e->to[k]], w->job->rank[i].wait.comm);
        if (is_end_of_chain(w->v, e->to[k]) && n < least) least = n;
    }
    return least;
}

static bool was_told(const struct work *w, size_t i)
{
    size_t group = w->v->edges[i].group;
    return w->stuck[i] || (group != SIZE_MAX && w->v->group[group].mismatch);
}

/* One of a group is enough: all of it wait for the same ones. */
static bool is_first_of_group(struct work *w, size_t i)
{
    size_t g = w->v->edges[i].group;
    if (g == SIZE_MAX) return true;
    bool first = !w->v->group[g].told;
    w->v->group[g].told = true;
    return first;
}

/* How long the group, or this one, waits. */
static uint64_t waiting_for(const struct work *w, size_t i)
{
    const struct job_rank *r = &w->job->rank[i];
    size_t g = w->v->edges[i].group;
    uint64_t since = g == SIZE_MAX ? r->wait.since_ns : w->v->group[g].since_ns;
    return r->seen_ns > since ? r->seen_ns - since : 0;
}

static void find_behind(struct work *w, size_t i)
{
    const struct edges *e = &w->v->edges[i];
    const struct job_rank *r = &w->job->rank[i];
    uint64_t least = e->group != SIZE_MAX ? lowest(w, i) : 0;
    for (size_t k = 0; k < e->count; k++) {
        const struct job_rank *t = &w->job->rank[e->to[k]];
        if (!is_end_of_chain(w->v, e->to[k])) continue;
        if (was_told(w, e->to[k]) || is_left_by_some(w, e->to[k])) continue;
        if (e->group != SIZE_MAX && job_begun(t, r->wait.comm) != least) continue;
        enum hang_kind kind = kind_of(t, false);
        enum judgement j = waiting_for(w, i) < HANG_LEAST_WAIT_NS ? NOTHING : judge_one(w->job, t);
        if (kind == BY_UNKNOWN && j == HANG) j = UNDECIDED; /* no counter shows for whom it waits */
        blame(w, finding_for(w, kind, j, i), e->to[k]);
    }
}

static void find_absent(struct work *w, size_t i)
{
    const struct edges *e = &w->v->edges[i];
    const struct job_rank *r = &w->job->rank[i];
    if (e->count || !e->open) return;
    struct finding *f = finding_for(w, BY_ABSENT, waiting_for(w, i) < HANG_LEAST_WAIT_NS ? NOTHING : UNDECIDED, i);
    const struct job_comm *c = e->group != SIZE_MAX ? job_comm_of(w->job, r->wait.comm) : NULL;
    if (f && !c && e->group == SIZE_MAX) push(w, &f->behind, &f->behinds, r->wait.peer);
    for (uint32_t m = 0; f && c && m < c->size; m++) {
        size_t at = job_find(w->job, job_member(c, m));
        uint64_t n = at < w->job->ranks ? job_begun(&w->job->rank[at], r->wait.comm) : UINT64_MAX;
        if (n == UINT64_MAX || n <= r->wait.ordinal) push(w, &f->behind, &f->behinds, job_member(c, m));
    }
}

/* ---- who waits for them ---- */

static int by_rank(const void *x, const void *y)
{
    const uint32_t *a = x, *b = y;
    return (*a > *b) - (*a < *b);
}

static bool is_behind(const struct finding *f, uint32_t rank)
{
    return f->behinds && bsearch(&rank, f->behind, f->behinds, sizeof rank, by_rank);
}

static bool waits_for_marked(const struct work *w, const struct finding *f, size_t i)
{
    const struct edges *e = &w->v->edges[i];
    for (size_t k = 0; k < e->count; k++)
        if (w->mark[e->to[k]]) return true;
    bool same = f->comm == w->job->rank[i].wait.comm && w->job->rank[i].wait.in_call;
    if (f->kind == BY_MISMATCH) return same && e->group != SIZE_MAX && f->ordinal == w->job->rank[i].wait.ordinal;
    if (f->kind != BY_ABSENT || !e->open || e->count) return false;
    return e->group == SIZE_MAX ? is_behind(f, w->job->rank[i].wait.peer)
                                : same && f->ordinal == w->job->rank[i].wait.ordinal;
}

static void sort_once(struct finding *f)
{
    size_t left = 0;
    if (f->behinds) qsort(f->behind, f->behinds, sizeof *f->behind, by_rank);
    for (size_t i = 0; i < f->behinds; i++)
        if (!i || f->behind[i] != f->behind[i - 1]) f->behind[left++] = f->behind[i];
    f->behinds = left;
}

static void find_waiting(struct work *w, struct finding *f)
{
    const struct job *job = w->job;
    sort_once(f);
    for (size_t i = 0; i < job->ranks; i++) w->mark[i] = is_behind(f, job->rank[i].rank);
    for (bool again = true; again;) {
        again = false;
        for (size_t i = 0; i < job->ranks; i++) {
            if (w->mark[i] || !waits_for_marked(w, f, i)) continue;
            w->mark[i] = again = true;
        }
    }
    for (size_t i = 0; i < job->ranks; i++)
        if (w->mark[i] && !is_behind(f, job->rank[i].rank)) push(w, &f->waiting, &f->waitings, job->rank[i].rank);
}

/* ---- all of it ---- */

static enum rank_class class_of(const struct work *w, size_t i)
{
    const struct job_rank *r = &w->job->rank[i];
    for (size_t f = 0; f < w->v->findings; f++) {
        const struct finding *g = &w->v->finding[f];
        if (g->kind == BY_MISMATCH && is_behind(g, r->rank)) return IS_MISMATCHED;
        if (g->kind == BY_CYCLE && is_behind(g, r->rank)) return IS_IN_CYCLE;
    }
    if (r->stopped) return IS_STOPPED;
    if (r->end == FAULT) return IS_DEAD;
    if (r->end == LEFT) return IS_ENDED;
    if (r->wait.in_call && r->wait.kind != FDR_MPI_WAIT_NOTHING)
        return r->wait.kind == FDR_MPI_WAIT_FINALIZE ? IS_ENDED : IS_WAITING;
    if (r->end == OUTSIDE) return IS_DEAD;
    return r->doing == IN_IO ? IS_IN_IO : r->doing == ON_LOCK ? IS_ON_LOCK : IS_COMPUTING;
}

static int by_importance(const void *x, const void *y)
{
    const struct finding *a = x, *b = y;
    if (a->judgement != b->judgement) return a->judgement > b->judgement ? -1 : 1;
    if (a->waitings != b->waitings) return a->waitings > b->waitings ? -1 : 1;
    return (a->since_ns > b->since_ns) - (a->since_ns < b->since_ns);
}

static void find_all(struct work *w)
{
    struct verdict *v = w->v;
    hang_find_stuck(w->job, v, true, w->stuck);
    hang_find_stuck(w->job, v, false, w->circle);
    for (size_t g = 0; g < v->groups; g++)
        if (v->group[g].mismatch) find_mismatch(w, g);
    find_gone(w);
    find_circles(w);
    for (size_t i = 0; i < w->job->ranks; i++) {
        if (!w->job->rank[i].wait.in_call || was_told(w, i) || !is_first_of_group(w, i)) continue;
        if (is_left_by_some(w, i)) find_left(w, i);
        find_behind(w, i);
        find_absent(w, i);
    }
    for (size_t f = 0; f < v->findings; f++) find_waiting(w, &v->finding[f]);
    if (v->findings) qsort(v->finding, v->findings, sizeof *v->finding, by_importance);
}

static bool is_explained(const struct work *w, size_t i)
{
    const struct edges *e = &w->v->edges[i];
    for (size_t f = 0; f < w->v->findings; f++)
        if (is_behind(&w->v->finding[f], w->job->rank[i].rank)) return true;
    return e->count || e->open;
}

/* A rank that waits for long, or is stopped, makes it uncertain if no counter says for whom, or whom that keeps. */
static enum judgement of_unexplained(const struct work *w)
{
    for (size_t i = 0; i < w->job->ranks; i++) {
        const struct job_rank *r = &w->job->rank[i];
        bool waits = r->wait.in_call && r->wait.kind != FDR_MPI_WAIT_NOTHING;
        bool stands = r->stopped || (waits && waited(r) >= hang_limit(w->job, r));
        if (stands && !is_explained(w, i)) return UNDECIDED;
    }
    return NOTHING;
}

bool hang_judge(const struct job *job, struct verdict *v)
{
    size_t n = job->ranks + 1;
    struct work w = {.job = job, .v = v};
    *v = (struct verdict){0};
    w.stuck = calloc(n, sizeof *w.stuck), w.circle = calloc(n, sizeof *w.circle), w.mark = calloc(n, sizeof *w.mark);
    v->class_of = calloc(n, sizeof *v->class_of), w.told_in = calloc(n, sizeof *w.told_in);
    w.failed = !w.told_in || !w.stuck || !w.circle || !w.mark || !v->class_of || !hang_find_edges(job, v);
    for (size_t i = 0; i < job->ranks; i++)
        if (job->rank[i].seen_ns > v->now_ns) v->now_ns = job->rank[i].seen_ns;
    if (!w.failed) {
        find_all(&w);
        v->judgement = of_unexplained(&w);
        if (v->findings && v->finding[0].judgement > v->judgement) v->judgement = v->finding[0].judgement;
        for (size_t i = 0; i < job->ranks; i++) v->class_of[i] = class_of(&w, i);
        hang_say(job, v);
    }
    free(w.stuck), free(w.circle), free(w.mark), free(w.told_in);
    return !w.failed;
}

void hang_verdict_free(struct verdict *v)
{
    for (size_t f = 0; f < v->findings; f++) free(v->finding[f].behind), free(v->finding[f].waiting);
    for (size_t g = 0; g < v->groups; g++) free(v->group[g].behind);
    free(v->finding), free(v->edges), free(v->group), free(v->class_of);
}
