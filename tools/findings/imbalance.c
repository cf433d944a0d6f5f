/* SPDX-License-Identifier: MIT */
/* One thread unlike the others: the same region takes longer there, call by call. From exact totals. */
#include "tools/findings/run_facts.h"

#include <stdio.h>
#include <stdlib.h>

#include "tools/common/short_names.h"

enum { MANY_CALLS = 10 };
#define LEAST_SHARE 0.02 /* of the run that the longer calls cost */

/* The mean of a region's calls in each thread, without its longest call: one slow call is another finding. */
struct mean {
    const struct fdr_total *total;
    double ns, own_ns; /* with and without the calls inside */
};

static struct mean mean_of(const struct fdr_total *t)
{
    double others = (double)(t->calls - 1);
    return (struct mean){t, (double)(t->inclusive_ns - t->max_ns) / others, (double)t->exclusive_ns / (double)t->calls};
}

static int by_mean(const void *x, const void *y)
{
    double a = ((const struct mean *)x)->ns, b = ((const struct mean *)y)->ns;
    return a < b ? -1 : a > b;
}

struct candidate {
    const struct fdr_total *slow;
    double ns, usual_ns, next_ns;  /* a call of it; of the thread in the middle; of the next slowest thread */
    double extra_ns, own_extra_ns; /* what it took longer, with and without the calls inside */
    size_t threads;
};

/* False: the threads are alike. */
static bool judge(const struct run_facts *f, const struct fdr_total **row, size_t count, struct candidate *c)
{
    struct mean *m = calloc(count, sizeof *m);
    size_t used = 0;
    for (size_t i = 0; m && i < count; i++)
        if (row[i]->calls >= MANY_CALLS && row[i]->inclusive_ns >= row[i]->max_ns) m[used++] = mean_of(row[i]);
    if (used < 2) {
        free(m);
        return false;
    }
    qsort(m, used, sizeof *m, by_mean);
    const struct mean *most = &m[used - 1], *middle = &m[(used - 1) / 2];
    *c = (struct candidate){.slow = most->total,
                            .ns = most->ns,
                            .usual_ns = middle->ns,
                            .next_ns = m[used - 2].ns,
                            .extra_ns = (most->ns - middle->ns) * (double)most->total->calls,
                            .own_extra_ns = (most->own_ns - middle->own_ns) * (double)most->total->calls,
                            .threads = used};
    free(m);
    return c->ns >= 1.5 * c->usual_ns && c->ns >= 1.3 * c->next_ns && c->extra_ns / f->length_ns >= LEAST_SHARE;
}

/* A region is slow because of one that it calls, if that one alone took most of the extra time itself. */
static bool is_explained(const struct candidate *c, const struct candidate *all, size_t count)
{
    if (c->own_extra_ns >= 0.5 * c->extra_ns) return false;
    for (size_t i = 0; i < count; i++)
        if (&all[i] != c && all[i].slow->location == c->slow->location && all[i].own_extra_ns >= 0.5 * c->extra_ns)
            return true;
    return false;
}

/* The region in which the other threads spend longer than the slow one, by about as much as it is slow. */
static uint32_t waited_in(const struct run_facts *f, const struct candidate *c, double *waited_ns)
{
    uint32_t best = UINT32_MAX;
    *waited_ns = 0;
    for (size_t i = 0, end; i < f->rows; i = end) {
        double others = 0, own = 0, number = 0;
        for (end = i; end < f->rows && f->row[end]->id == f->row[i]->id; end++) {
            bool slow = f->row[end]->location == c->slow->location;
            if (slow) own = (double)f->row[end]->exclusive_ns;
            else others += (double)f->row[end]->exclusive_ns, number++;
        }
        if (!number || f->row[i]->id == c->slow->id) continue;
        double longer = others / number - own;
        if (longer < 0.4 * c->extra_ns || longer > 1.6 * c->extra_ns || longer < *waited_ns) continue;
        *waited_ns = longer;
        best = f->row[i]->id;
    }
    return best;
}

static void add(const struct run_facts *f, struct findings *to, const struct candidate *c)
{
    char slow[HUMAN_BYTES], usual[HUMAN_BYTES], thread[LABEL_BYTES], wait[HUMAN_BYTES], calls[HUMAN_BYTES];
    double waited_ns;
    struct finding *row = add_finding(to, FINDING_IMBALANCE, c->extra_ns / f->length_ns);
    if (!row) return;
    row->region = c->slow->id;
    add_location(row, c->slow->location);
    row->value = c->ns / (c->usual_ns > 0 ? c->usual_ns : 1);
    row->unit = "times";
    row->share = c->extra_ns / f->length_ns;
    row->sure = c->threads > 2 ? 0.9 : 0.7;
    thread_label(f->file, c->slow->location, thread);
    row->waited_in = waited_in(f, c, &waited_ns);
    say(row, "%.100s takes %s a call in %s, %s elsewhere", plain_shown(f->file, c->slow->id),
        human_time(slow, (uint64_t)c->ns), thread, human_time(usual, (uint64_t)c->usual_ns));
    if (row->waited_in != UINT32_MAX)
        say(row,
            f->region[row->waited_in].waits ? "; the others wait %s for it in %.80s."
                                            : "; the others spend %s longer in %.80s.",
            human_time(wait, (uint64_t)waited_ns), plain_shown(f->file, row->waited_in));
    else say(row, ".");
    add_evidence(row, "exact totals of %zu threads: %s calls in %s, %s longer in sum than at the usual pace",
                 c->threads, human_count(calls, c->slow->calls), thread, human_time(usual, (uint64_t)c->extra_ns));
    if (row->waited_in != UINT32_MAX)
        add_evidence(row, "each other thread spent %s more in %.80s than %s did", wait,
                     plain_shown(f->file, row->waited_in), thread);
}

void find_imbalance(const struct run_facts *f, struct findings *to)
{
    struct candidate *c = calloc(f->rows + 1, sizeof *c);
    size_t count = 0, compared = 0;
    to->failed |= !c;
    for (size_t i = 0, end; c && i < f->rows; i = end) {
        for (end = i + 1; end < f->rows && f->row[end]->id == f->row[i]->id;) end++;
        compared += end - i > 1;
        if (end - i > 1 && !f->region[f->row[i]->id].waits && judge(f, f->row + i, end - i, &c[count])) count++;
    }
    for (size_t i = 0; i < count; i++)
        if (!is_explained(&c[i], c, count)) add(f, to, &c[i]);
    free(c);
    if (f->threads < 2)
        cannot_judge(to, "imbalance between threads",
                     f->threads ? "one thread recorded calls" : "no thread recorded a call");
    else if (!compared) cannot_judge(to, "imbalance between threads", "no region ran in two threads");
}
