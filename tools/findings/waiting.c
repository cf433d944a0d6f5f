/* SPDX-License-Identifier: MIT */
/* Waiting told from working: threads that wait for one another, who comes last, and a stretch in which all wait. Which
 * regions wait is a guess from their names, so these are less sure. */
#include "tools/findings/run_facts.h"

#include <stdio.h>
#include <stdlib.h>

#include "tools/common/short_names.h"

#define LEAST_WAIT    0.10 /* of the time of the threads that meet */
#define LEAST_STRETCH 0.01 /* of the run */
#define IDLE          0.50 /* threads that all wait longer than that wait for work */
#define SPECTATOR     0.90 /* a thread that waits longer than that works for no one: it joins, or serves */
#define LEAST_WORK    0.10 /* of the run: a thread with less time in ended calls takes no part */

/* ---- threads that wait for one another ---- */

struct waiters {
    const struct thread_facts *least, *most;
    double waiting_ns, all_ns;
    size_t threads;
};

static struct waiters waiters_of(const struct run_facts *f)
{
    struct waiters w = {0};
    for (size_t i = 0; i < f->threads; i++) {
        const struct thread_facts *t = &f->thread[i];
        if ((double)t->exclusive_ns < LEAST_WORK * f->length_ns) continue;
        if ((double)t->waiting_ns > SPECTATOR * (double)t->exclusive_ns) continue;
        w.threads++;
        w.waiting_ns += (double)t->waiting_ns;
        w.all_ns += (double)t->exclusive_ns;
        if (!w.least || t->waiting_ns < w.least->waiting_ns) w.least = t;
        if (!w.most || t->waiting_ns > w.most->waiting_ns) w.most = t;
    }
    return w;
}

/* The region with most waiting below `most`. 0: none. */
static uint32_t next_place(const struct run_facts *f, uint64_t most)
{
    uint32_t best = 0;
    for (uint32_t id = 1; id < f->regions; id++)
        if (f->region[id].waits && f->region[id].exclusive_ns < most &&
            f->region[id].exclusive_ns > f->region[best].exclusive_ns * (best != 0))
            best = id;
    return best;
}

/* Another finding already says that threads wait there. */
static bool is_told(const struct findings *to, uint32_t region)
{
    for (size_t i = 0; i < to->count; i++)
        if (to->row[i].waited_in == region || (to->row[i].kind == FINDING_WAIT && to->row[i].region == region))
            return true;
    return false;
}

static void find_meeting(const struct run_facts *f, struct findings *to)
{
    char own[HUMAN_BYTES], most[HUMAN_BYTES], sum[HUMAN_BYTES], thread[LABEL_BYTES];
    struct waiters w = waiters_of(f);
    uint32_t place = next_place(f, UINT64_MAX);
    double share = w.all_ns > 0 ? w.waiting_ns / w.all_ns : 0;
    if (w.threads < 2 || share < LEAST_WAIT || share > IDLE || is_told(to, place)) return;
    struct finding *row = add_finding(to, FINDING_WAIT, 0.5 * share);
    if (!row) return;
    row->region = place;
    for (size_t i = 0; i < f->threads; i++)
        if (f->thread[i].waiting_ns) add_location(row, f->thread[i].info->id);
    row->value = w.waiting_ns;
    row->unit = "ns";
    row->share = share;
    row->sure = 0.6;
    say(row, "%zu threads wait %.2g %% of their time, most of it in %.100s", w.threads, 100 * share,
        plain_shown(f->file, place));
    if (2 * w.least->waiting_ns < w.most->waiting_ns)
        say(row, "; %s waits least, %s, so the others wait for it: up to %s.",
            thread_label(f->file, w.least->info->id, thread), human_time(own, w.least->waiting_ns),
            human_time(most, w.most->waiting_ns));
    else say(row, ", each about as long.");
    uint32_t second = next_place(f, f->region[place].exclusive_ns);
    add_evidence(row, "exact totals: %s in all, %s of it in %.80s%s%.80s; that these wait is a guess from their names",
                 human_time(sum, (uint64_t)w.waiting_ns), human_time(most, f->region[place].exclusive_ns),
                 plain_shown(f->file, place), second ? ", the next is " : "",
                 second ? plain_shown(f->file, second) : "");
}

/* ---- a stretch in which all wait ---- */

struct edge { /* a thread begins (1) or ends (-1) to wait */
    uint64_t time_ns;
    uint32_t region;
    int step;
};

static int by_time(const void *x, const void *y)
{
    const struct edge *a = x, *b = y;
    if (a->time_ns != b->time_ns) return a->time_ns < b->time_ns ? -1 : 1;
    return a->step - b->step; /* an end comes before a beginning */
}

/* Long waits of a thread, without those inside others. */
static struct edge *long_waits(const struct run_facts *f, size_t *count)
{
    size_t room = 256, depth = 0;
    uint32_t location = UINT32_MAX;
    struct edge *edge = malloc(room * sizeof *edge);
    uint8_t *waits = calloc(f->regions, 1);
    struct fdr_read_event e;
    for (size_t id = 0; waits && id < f->regions; id++) waits[id] = f->region[id].waits;
    struct fdr_select select = {.classes = 1u << FDR_IN_REGION,
                                .min_duration_ns = (uint64_t)(LEAST_STRETCH * f->length_ns),
                                .regions = waits,
                                .region_count = f->regions,
                                .one_location_after_another = true};
    struct fdr_iter *i = waits ? fdr_iter_open(f->file, &select) : NULL;
    *count = 0;
    while (edge && i && fdr_iter_next(i, &e)) {
        if (e.reduced || (e.kind != FDR_ENTER && e.kind != FDR_LEAVE)) continue;
        if (e.location != location) location = e.location, depth = 0;
        if (e.kind == FDR_LEAVE ? !depth || --depth : depth++) continue;
        if (!thread_facts(f, e.location)) continue;
        if (*count == room) {
            struct edge *grown = realloc(edge, (room *= 2) * sizeof *edge);
            if (!grown) break;
            edge = grown;
        }
        edge[(*count)++] = (struct edge){e.time_ns, e.id, e.kind == FDR_ENTER ? 1 : -1};
    }
    fdr_iter_close(i);
    free(waits);
    return edge;
}

static size_t threads_at(const struct run_facts *f, uint64_t ns)
{
    size_t count = 0;
    for (size_t i = 0; i < f->threads; i++) {
        const struct fdr_location_info *l = f->thread[i].info;
        count += l->start_ns <= ns && (!l->end_ns || l->end_ns > ns);
    }
    return count;
}

static void add_stretch(const struct run_facts *f, struct findings *to, const struct edge *from, uint64_t end_ns)
{
    char length[HUMAN_BYTES], since[HUMAN_BYTES];
    double ns = (double)(end_ns - from->time_ns);
    struct finding *row = add_finding(to, FINDING_WAIT, 0.8 * ns / f->length_ns);
    if (!row) return;
    row->region = from->region;
    row->from_ns = from->time_ns;
    row->to_ns = end_ns;
    row->value = ns;
    row->unit = "ns";
    row->share = ns / f->length_ns;
    row->sure = 0.6;
    say(row, "All %zu threads waited for %s from %s on, the last of them in %.100s.", threads_at(f, from->time_ns),
        human_time(length, end_ns - from->time_ns), human_since(since, from->time_ns, f->start_ns),
        plain_shown(f->file, from->region));
    add_evidence(row, "kept calls of regions that wait, by their names; nothing recorded worked meanwhile");
}

static void find_stretch(const struct run_facts *f, struct findings *to)
{
    size_t count, waiting = 0;
    struct edge *edge = long_waits(f, &count);
    const struct edge *longest = NULL;
    uint64_t longest_ns = (uint64_t)(LEAST_STRETCH * f->length_ns), end_ns = 0;
    to->failed |= !edge;
    if (edge && count) qsort(edge, count, sizeof *edge, by_time);
    for (size_t i = 0; edge && i + 1 < count; i++) {
        waiting += edge[i].step > 0 ? 1 : (size_t)-1;
        if (edge[i].step < 0 || waiting < 2 || edge[i + 1].step > 0) continue;
        if (waiting < threads_at(f, edge[i].time_ns) || edge[i + 1].time_ns - edge[i].time_ns <= longest_ns) continue;
        longest = &edge[i];
        end_ns = edge[i + 1].time_ns;
        longest_ns = end_ns - longest->time_ns;
    }
    if (longest) add_stretch(f, to, longest, end_ns);
    free(edge);
}

/* Threads that wait most of the time wait for work; that all do so is no finding. */
static bool is_idle(const struct run_facts *f)
{
    double waiting = 0, all = 0;
    for (size_t i = 0; i < f->threads; i++) {
        waiting += (double)f->thread[i].waiting_ns;
        all += (double)f->thread[i].exclusive_ns;
    }
    return waiting > IDLE * all;
}

void find_waiting(const struct run_facts *f, struct findings *to)
{
    if (f->threads < 2) return;
    if (!next_place(f, UINT64_MAX)) {
        cannot_judge(to, "waiting", "no recorded name is that of a barrier, a lock, a sleep or a call of MPI");
        return;
    }
    if (!is_idle(f)) find_stretch(f, to);
    find_meeting(f, to);
}
