/* SPDX-License-Identifier: MIT */
/* Edges: which rank waits for which, as far as counters show it. A collective waits for the members that have not begun
 * it. A receive waits for its sender, if that has not posted the message. A send waits for its receiver, if that has
 * not posted the receive. */
#include <stdlib.h>
#include <string.h>

#include "tools/hang/verdict.h"

/* A look at a rank may be this much older than the newest look at those that wait for it. */
static const uint64_t recent_ns = 5000000000u;
/* Two looks at very many processes, or on a busy machine, take up to this long. */
static const uint64_t looks_ns = 60000000000u;
/* A signal that ends a whole job reaches all ranks within this time. */
static const uint64_t together_ns = 3000000000u;

size_t job_find(const struct job *job, uint32_t rank)
{
    size_t low = 0, high = job->ranks;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (job->rank[middle].rank < rank) low = middle + 1;
        else high = middle;
    }
    return low < job->ranks && job->rank[low].rank == rank ? low : job->ranks;
}

const struct job_comm *job_comm_of(const struct job *job, uint64_t identity)
{
    for (size_t i = 0; i < job->comms; i++)
        if (job->comm[i].identity == identity) return &job->comm[i];
    return NULL;
}

uint32_t job_member(const struct job_comm *c, uint32_t i) { return c->member ? c->member[i] : i; }

bool hang_is_recent(const struct job_rank *to, uint64_t since_ns, uint64_t seen_ns)
{
    if (to->end != GOES_ON) return true;
    uint64_t late = to->looked_twice ? looks_ns : recent_ns;
    return to->seen_ns >= since_ns && to->seen_ns + late >= seen_ns;
}

bool hang_is_gone(const struct job_rank *r, const struct job_rank *before)
{
    if (r->end == GOES_ON) return false;
    if (before->end == GOES_ON || before->seen_ns > r->end_ns + together_ns) return true;
    return r->end != OUTSIDE && r->end_ns <= before->seen_ns;
}

/* ---- counters ---- */

/* Of a communicator without counters of its own. */
static uint64_t without_counters(const struct job_rank *r, uint64_t comm)
{
    return r->counts && (!r->leaves_out || comm == JOB_WORLD) ? 0 : UINT64_MAX;
}

uint64_t job_begun(const struct job_rank *r, uint64_t comm)
{
    for (size_t i = 0; i < r->comms; i++)
        if (r->comm[i].comm == comm) return r->comm[i].begun;
    return without_counters(r, comm);
}

/* The messages counted for an envelope; UINT64_MAX: not known. */
static uint64_t counted(const struct job_rank *r, bool sent, uint64_t comm, uint32_t peer, int32_t tag)
{
    for (size_t i = 0; i < r->envelopes; i++) {
        const struct job_envelope *e = &r->envelope[i];
        if (e->comm == comm && e->sent == sent && e->peer == peer && e->tag == tag)
            return e->unsure ? UINT64_MAX : e->count;
    }
    return without_counters(r, comm);
}

/* ---- messages ---- */

static void to_one(struct edges *e, size_t to)
{
    *e = (struct edges){.one = (uint32_t)to, .count = 1, .all = true, .group = SIZE_MAX};
    e->to = &e->one;
}

static void to_absent(struct edges *e) { *e = (struct edges){.open = true, .group = SIZE_MAX}; }

static bool takes_anything(const struct job_wait *w)
{
    bool receives = w->kind >= FDR_MPI_WAIT_RECEIVE && w->kind <= FDR_MPI_WAIT_PROBE;
    return w->in_call && (receives || w->operation == 0) && (w->peer == FDR_MPI_ANY || w->tag == INT32_MIN);
}

/* Message `ordinal` of the envelope between rank i and its peer: has the peer posted its side? If not, i waits for
 * it. */
static void for_message(const struct job *job, size_t i, bool sends, uint64_t ordinal, struct edges *e)
{
    const struct job_rank *r = &job->rank[i];
    const struct job_wait *w = &r->wait;
    size_t peer = job_find(job, w->peer);
    if (!w->comm || w->peer >= FDR_MPI_ANY || w->tag == INT32_MIN || ordinal == UINT64_MAX) return;
    if (peer == job->ranks) {
        to_absent(e);
        return;
    }
    const struct job_rank *p = &job->rank[peer];
    uint64_t its = counted(p, !sends, w->comm, r->rank, w->tag);
    if (peer == i || its > ordinal || (sends && takes_anything(&p->wait))) return;
    if (!hang_is_recent(p, w->since_ns, r->seen_ns)) to_absent(e);
    else to_one(e, peer);
}

static void for_probe(const struct job *job, size_t i, struct edges *e)
{
    const struct job_wait *w = &job->rank[i].wait;
    for_message(job, i, false, counted(&job->rank[i], false, w->comm, w->peer, w->tag), e);
}

/* ---- collectives ---- */

static const struct job_wait *collective_of(const struct job_rank *r)
{
    const struct job_wait *w = &r->wait;
    bool requests = w->kind == FDR_MPI_WAIT_REQUESTS || (w->kind == FDR_MPI_WAIT_ANY && w->pending == 1);
    bool collective = w->kind == FDR_MPI_WAIT_COLLECTIVE || (requests && w->operation > 1);
    return w->in_call && collective && w->comm && w->ordinal != UINT64_MAX ? w : NULL;
}

static int by_collective(const void *x, const void *y)
{
    const struct job_wait *a = &(*(const struct job_rank *const *)x)->wait,
                          *b = &(*(const struct job_rank *const *)y)->wait;
    if (a->comm != b->comm) return a->comm < b->comm ? -1 : 1;
    return (a->ordinal > b->ordinal) - (a->ordinal < b->ordinal);
}

/* Operations that nobody leaves before all have begun. */
bool hang_needs_all(const char *operation)
{
    static const char *const name[] = {"Barrier", "Allreduce", "Alltoall", "Allgather", "Reduce_scatter"};
    for (size_t i = 0; i < sizeof name / sizeof *name; i++)
        if (strstr(operation, name[i])) return true;
    return false;
}

static void join(struct group *g, const struct job_wait *w, uint64_t seen_ns)
{
    bool first = g->waiting++ == 0;
    if (first) g->operation = w->operation, g->root = w->peer, g->since_ns = w->since_ns;
    g->mismatch |= g->operation != w->operation || g->root != w->peer;
    if (w->since_ns < g->since_ns) g->since_ns = w->since_ns;
    if (w->since_ns > g->last_since_ns) g->last_since_ns = w->since_ns;
    if (seen_ns > g->seen_ns) g->seen_ns = seen_ns;
}

/* The members that have not begun the collective. */
static bool find_missing_members(const struct job *job, struct group *g)
{
    const struct job_comm *c = job_comm_of(job, g->comm);
    if (!c || !c->size) {
        g->absent = 1, g->first_absent = UINT32_MAX;
        return true;
    }
    g->behind = malloc(c->size * sizeof *g->behind);
    for (uint32_t m = 0; g->behind && m < c->size; m++) {
        uint32_t world = job_member(c, m);
        size_t at = job_find(job, world);
        uint64_t n = at < job->ranks ? job_begun(&job->rank[at], g->comm) : UINT64_MAX;
        if (n != UINT64_MAX && n > g->ordinal) continue;
        bool known = n != UINT64_MAX && hang_is_recent(&job->rank[at], g->last_since_ns, g->seen_ns);
        if (known) g->behind[g->behinds++] = (uint32_t)at;
        else if (!g->absent++) g->first_absent = world;
    }
    return g->behind != NULL;
}

static bool find_groups(const struct job *job, struct verdict *v)
{
    const struct job_rank **in = malloc((job->ranks + 1) * sizeof *in);
    size_t count = 0;
    v->group = calloc(job->ranks + 1, sizeof *v->group);
    if (!in || !v->group) {
        free(in);
        return false;
    }
    for (size_t i = 0; i < job->ranks; i++)
        if (collective_of(&job->rank[i])) in[count++] = &job->rank[i];
    if (count) qsort(in, count, sizeof *in, by_collective);
    bool good = true;
    for (size_t i = 0; i < count; i++) {
        if (!i || by_collective(&in[i - 1], &in[i]))
            v->group[v->groups++] = (struct group){.comm = in[i]->wait.comm, .ordinal = in[i]->wait.ordinal};
        join(&v->group[v->groups - 1], &in[i]->wait, in[i]->seen_ns);
        v->edges[in[i] - job->rank].group = v->groups - 1;
    }
    for (size_t g = 0; g < v->groups; g++) good = good && find_missing_members(job, &v->group[g]);
    free(in);
    return good;
}

static void for_members(const struct job_wait *w, const struct group *g, struct edges *e)
{
    e->to = g->behind, e->count = g->behinds;
    e->open = g->absent != 0;
    e->all = hang_needs_all(w->collective);
}

/* ---- all of them ---- */

static void for_call(const struct job *job, size_t i, struct edges *e)
{
    const struct job_wait *w = &job->rank[i].wait;
    bool several = w->kind == FDR_MPI_WAIT_ANY && w->pending != 1;
    switch (w->kind) {
    case FDR_MPI_WAIT_SEND: for_message(job, i, true, w->ordinal, e); break;
    case FDR_MPI_WAIT_RECEIVE:
    case FDR_MPI_WAIT_SENDRECV: for_message(job, i, false, w->ordinal, e); break;
    case FDR_MPI_WAIT_PROBE: for_probe(job, i, e); break;
    case FDR_MPI_WAIT_ANY:
    case FDR_MPI_WAIT_REQUESTS:
        if (!several && w->pending && w->operation <= 1) for_message(job, i, w->operation == 1, w->ordinal, e);
        break;
    default: break;
    }
}

bool hang_find_edges(const struct job *job, struct verdict *v)
{
    v->edges = calloc(job->ranks + 1, sizeof *v->edges);
    if (!v->edges) return false;
    for (size_t i = 0; i < job->ranks; i++) v->edges[i].group = SIZE_MAX;
    if (!find_groups(job, v)) return false;
    for (size_t i = 0; i < job->ranks; i++) {
        struct edges *e = &v->edges[i];
        if (!job->rank[i].wait.in_call) continue;
        if (e->group != SIZE_MAX) for_members(&job->rank[i].wait, &v->group[e->group], e);
        else for_call(job, i, e);
    }
    return true;
}
