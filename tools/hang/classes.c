/* SPDX-License-Identifier: MIT */
/* Ranks that do the same, ranks without a recording, and what the verdict stands on. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/hang/print.h"

/* The activity of a rank, without the parts that differ between ranks. */
static void what_of(const struct job *job, const struct verdict *v, size_t i, char *text, size_t bytes)
{
    const struct job_rank *r = &job->rank[i];
    enum rank_class c = v->class_of[i];
    if (r->wait.in_call && c != IS_DEAD) hang_call_text(job, &r->wait, text, bytes);
    else if (c == IS_DEAD) snprintf(text, bytes, "%s", r->cause[0] ? r->cause : "killed, or it left without a word");
    else snprintf(text, bytes, "%s%s", r->where[0] ? "in " : "outside of MPI", r->where);
}

struct line {
    char key[224]; /* the class in a word, and what it does */
    uint32_t index;
};

static int by_key(const void *x, const void *y)
{
    const struct line *a = x, *b = y;
    int order = strcmp(a->key, b->key);
    return order ? order : (a->index > b->index) - (a->index < b->index);
}

static int by_count(const void *x, const void *y)
{
    const struct alike *a = x, *b = y;
    return a->count != b->count ? (a->count < b->count ? -1 : 1) : (a->one > b->one) - (a->one < b->one);
}

static bool gather(const struct job *job, const struct verdict *v, const struct line *line, struct alike *a,
                   size_t *count)
{
    for (size_t i = 0, end; i < job->ranks; i = end) {
        for (end = i + 1; end < job->ranks && strcmp(line[end].key, line[i].key) == 0;) end++;
        struct alike *to = &a[(*count)++];
        *to = (struct alike){.class_ = v->class_of[line[i].index], .one = line[i].index, .count = end - i};
        snprintf(to->what, sizeof to->what, "%s", strchr(line[i].key, ' ') + 1);
        to->rank = malloc(to->count * sizeof *to->rank);
        if (!to->rank) return false;
        for (size_t k = i; k < end; k++) to->rank[k - i] = job->rank[line[k].index].rank;
    }
    return true;
}

struct alike *find_alike(const struct job *job, const struct verdict *v, size_t *count)
{
    struct line *line = calloc(job->ranks + 1, sizeof *line);
    struct alike *a = calloc(job->ranks + 1, sizeof *a);
    char what[200];
    *count = 0;
    for (size_t i = 0; line && i < job->ranks; i++) {
        line[i].index = (uint32_t)i;
        const char *word = hang_class_text(v->class_of[i], &job->rank[i]);
        what_of(job, v, i, what, sizeof what);
        snprintf(line[i].key, sizeof line[i].key, "%s %s", word, what);
    }
    if (line) qsort(line, job->ranks, sizeof *line, by_key);
    bool good = line && a && gather(job, v, line, a, count);
    free(line);
    if (!good) {
        free_alike(a, a ? *count : 0);
        return NULL;
    }
    qsort(a, *count, sizeof *a, by_count);
    return a;
}

void free_alike(struct alike *a, size_t count)
{
    for (size_t i = 0; i < count; i++) free(a[i].rank);
    free(a);
}

void each_missing(const struct job *job, void (*found)(uint32_t from, uint32_t to, void *argument), void *argument)
{
    uint32_t next = 0;
    for (size_t i = 0; i <= job->ranks; i++) {
        uint32_t end = i < job->ranks ? job->rank[i].rank : job->world;
        if (next < end) found(next, end - 1, argument);
        if (i < job->ranks) next = end + 1;
    }
}

/* ---- evidence --------------------------------------------------------------------------------------------------- */

struct lines {
    void (*found)(const char *line, void *argument);
    void *argument;
};

static void tell_rank(const struct job *job, const struct verdict *v, size_t i, struct lines *to)
{
    const struct job_rank *r = &job->rank[i];
    char line[512], call[160], time[24];
    int n = snprintf(line, sizeof line, "rank %u: ", r->rank);
    if (r->wait.in_call)
        n += snprintf(line + n, sizeof line - (size_t)n, "in %s for %s",
                      hang_call_text(job, &r->wait, call, sizeof call),
                      hang_time_text(r->seen_ns > r->wait.since_ns ? r->seen_ns - r->wait.since_ns : 0, time));
    else n += snprintf(line + n, sizeof line - (size_t)n, "outside of MPI%s%s", r->where[0] ? ", in " : "", r->where);
    n += snprintf(line + n, sizeof line - (size_t)n, "; its newest event is %s old",
                  hang_time_text(r->seen_ns > r->moved_ns ? r->seen_ns - r->moved_ns : 0, time));
    if (r->moves == YES) n += snprintf(line + n, sizeof line - (size_t)n, "; it moves");
    if (r->busy != UNKNOWN)
        n += snprintf(line + n, sizeof line - (size_t)n, "; it uses %s processor time", r->busy == YES ? "its" : "no");
    if (r->longest_still_ns)
        n += snprintf(line + n, sizeof line - (size_t)n, "; before, the longest time without an event was %s",
                      hang_time_text(r->longest_still_ns, time));
    if (v->now_ns > r->seen_ns + 1000000000u)
        snprintf(line + n, sizeof line - (size_t)n, "; last seen %s before the newest recording",
                 hang_time_text(v->now_ns - r->seen_ns, time));
    to->found(line, to->argument);
}

static void tell_counts(const struct job *job, const struct finding *f, size_t i, struct lines *to)
{
    char line[200];
    const struct job_rank *r = &job->rank[i];
    const struct job_comm *c = job_comm_of(job, f->comm);
    uint64_t begun = job_begun(r, f->comm);
    if (f->ordinal == UINT64_MAX || !c) return;
    if (begun == UINT64_MAX)
        snprintf(line, sizeof line, "rank %u has no counters of %s; the others wait in number %llu", r->rank, c->name,
                 (unsigned long long)f->ordinal);
    else
        snprintf(line, sizeof line, "rank %u has begun %llu collectives on %s; the others wait in number %llu", r->rank,
                 (unsigned long long)begun, c->name, (unsigned long long)f->ordinal);
    to->found(line, to->argument);
}

void each_evidence(const struct job *job, const struct verdict *v, void (*found)(const char *line, void *argument),
                   void *argument)
{
    enum { FINDINGS = 4, RANKS = 4 };
    struct lines to = {found, argument};
    for (size_t n = 0; n < v->findings && n < FINDINGS; n++) {
        const struct finding *f = &v->finding[n];
        for (size_t k = 0; k < f->behinds && k < RANKS; k++) {
            size_t i = job_find(job, f->behind[k]);
            if (i == job->ranks) continue;
            if (f->kind != BY_CYCLE && f->kind != BY_MISMATCH) tell_counts(job, f, i, &to);
            tell_rank(job, v, i, &to);
        }
        if (f->kind != BY_CYCLE && f->waits < job->ranks) tell_rank(job, v, f->waits, &to);
    }
}

static void tell_missing(uint32_t from, uint32_t end, void *argument)
{
    struct lines *to = argument;
    char line[100];
    if (from == end) snprintf(line, sizeof line, "rank %u has no recording here", from);
    else snprintf(line, sizeof line, "ranks %u to %u have no recordings here", from, end);
    to->found(line, to->argument);
}

void each_not_judged(const struct job *job, const struct verdict *v, void (*found)(const char *line, void *argument),
                     void *argument)
{
    struct lines to = {found, argument};
    char line[300], call[160];
    size_t unknown = 0, one = 0;
    each_missing(job, tell_missing, &to);
    if (job->others) {
        snprintf(line, sizeof line, "%zu recording%s of other jobs, left out: name %s alone", job->others,
                 job->others == 1 ? "" : "s", job->others == 1 ? "it" : "them");
        found(line, argument);
    }
    for (size_t g = 0; g < v->groups; g++) {
        const struct group *group = &v->group[g];
        if (!group->absent || !group->behinds) continue;
        snprintf(
            line, sizeof line,
            "%zu member%s of the communicator of collective #%llu may be further behind: no recording, one that is "
            "too old, or no counters of this communicator",
            group->absent, group->absent == 1 ? "" : "s", (unsigned long long)group->ordinal);
        found(line, argument);
    }
    for (size_t i = 0; i < job->ranks; i++) {
        const struct edges *e = &v->edges[i];
        bool waits = v->class_of[i] == IS_WAITING && !e->count && !e->open;
        if (waits && !unknown++) one = i;
    }
    if (!unknown) return;
    snprintf(line, sizeof line, "%zu rank%s, as rank %u, wait%s in %s: no counter shows for whom", unknown,
             unknown == 1 ? "" : "s", job->rank[one].rank, unknown == 1 ? "s" : "",
             hang_call_text(job, &job->rank[one].wait, call, sizeof call));
    found(line, argument);
}
