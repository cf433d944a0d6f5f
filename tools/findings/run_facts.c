/* SPDX-License-Identifier: MIT */
/* The facts of a run that findings are made of, from its exact totals. */
#include "tools/findings/run_facts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *thread_label(const struct fdr_file *file, uint32_t location, char *text)
{
    const struct fdr_location_info *l = find_location(file, location);
    if (l && l->name[0]) snprintf(text, LABEL_BYTES, "%.60s", plain_name(l->name));
    else if (l && l->tid) snprintf(text, LABEL_BYTES, "thread %u", l->tid);
    else snprintf(text, LABEL_BYTES, "location %u", location);
    return text;
}

/* ---- the run ---- */

bool times_are_given(const struct fdr_file *file)
{
    const struct fdr_file_info *i = fdr_file_info(file);
    for (size_t k = 0; k < fdr_location_count(file); k++)
        if (fdr_location_info(file, k)->given_times) return true;
    /* of a replayed stream: older than the recording, or newer than the snapshot */
    return i->first_ns + (uint64_t)i->realtime_offset_ns + 1000000000u < i->created_realtime_ns ||
           (i->taken_ns && i->last_ns > i->taken_ns + 1000000000u);
}

uint64_t newest_moment(const struct fdr_file *file)
{
    const struct fdr_file_info *i = fdr_file_info(file);
    uint64_t end = i->last_ns > i->first_ns ? i->last_ns : i->first_ns + 1;
    for (size_t k = 0; k < fdr_location_count(file); k++)
        if (fdr_location_info(file, k)->moved_ns > end) end = fdr_location_info(file, k)->moved_ns;
    if (times_are_given(file)) return end;
    if (i->taken_ns > end) end = i->taken_ns;
    if (i->alive_ns > end) end = i->alive_ns;
    if (i->has_cause && i->cause_time_ns > end) end = i->cause_time_ns;
    return end;
}

static bool is_thread(const struct fdr_location_info *l)
{
    return !l->samples && l->parent == UINT32_MAX && !l->ended_threads && l->start_ns;
}

struct thread_facts *thread_facts(const struct run_facts *f, uint32_t location)
{
    for (size_t i = 0; i < f->threads; i++)
        if (f->thread[i].info->id == location) return &f->thread[i];
    return NULL;
}

/* ---- distributions ---- */

/* Calls are unlike the others if few of them take far longer, and nothing lies between. A tail that thins out slowly is
 * no such thing. */
static void set_slow(struct region_facts *r)
{
    enum { FACTOR = 8, EMPTY = 2 /* powers of two between the two kinds */ };
    uint64_t above = 0;
    int empty = 0;
    r->p50_ns = percentile(r->histogram, 0.5);
    r->p99_ns = percentile(r->histogram, 0.99);
    for (int b = 63; b > 0 && (double)(2ull << (b < 63 ? b : 62)) >= FACTOR * r->p50_ns / 2; b--) {
        bool is_empty = 10 * r->histogram[b] <= above && above;
        empty = is_empty ? empty + 1 : 0;
        above += r->histogram[b];
        if (50 * above > r->calls) return;
        if (empty < EMPTY || (double)(2ull << (b + EMPTY - 1)) < FACTOR * r->p50_ns) continue;
        r->slow_ns = 1ull << (b + EMPTY);
        r->slow_calls = 0;
        for (int k = b + EMPTY; k < 64; k++) r->slow_calls += r->histogram[k];
    }
}

static void add_total(struct run_facts *f, const struct fdr_total *t)
{
    struct thread_facts *thread = thread_facts(f, t->location);
    if (thread) thread->exclusive_ns += t->exclusive_ns;
    if (t->rest || t->id >= f->regions) return;
    struct region_facts *r = &f->region[t->id];
    r->calls += t->calls;
    r->inclusive_ns += t->inclusive_ns;
    r->exclusive_ns += t->exclusive_ns;
    if (t->max_ns > r->max_ns) r->max_ns = t->max_ns;
    for (int b = 0; b < 64 && t->has_histogram; b++) r->histogram[b] += t->histogram[b];
    if (thread && r->waits) thread->waiting_ns += t->exclusive_ns;
}

/* The sum of its calls is longer than all that its threads did: levels of recursion are no distribution. Times are
 * rounded from ticks, so the outermost region may come to a little more than all. */
static bool is_recursive(const struct run_facts *f, const struct region_facts *r)
{
    double all = 0;
    for (size_t i = 0; i < f->threads; i++) all += (double)f->thread[i].exclusive_ns;
    return (double)r->inclusive_ns > 1.01 * all;
}

static bool all_calls_kept(struct fdr_file *file)
{
    const struct fdr_ledger_row *l;
    uint64_t missing = 0;
    for (size_t i = 0, n = fdr_ledger(file, &l); i < n; i++)
        if (l[i].class_ == FDR_IN_REGION) missing += l[i].reduced + l[i].lost + l[i].filtered;
    return !missing;
}

static int by_region(const void *x, const void *y)
{
    const struct fdr_total *a = *(const struct fdr_total *const *)x, *b = *(const struct fdr_total *const *)y;
    if (a->id != b->id) return a->id < b->id ? -1 : 1;
    return a->location < b->location ? -1 : a->location > b->location;
}

const struct fdr_total **rows_of(const struct run_facts *f, uint32_t region, size_t *count)
{
    size_t low = 0, high = f->rows;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (f->row[middle]->id < region) low = middle + 1;
        else high = middle;
    }
    *count = 0;
    while (low + *count < f->rows && f->row[low + *count]->id == region) ++*count;
    return f->row + low;
}

const struct fdr_total *total_of(const struct run_facts *f, uint32_t region, uint32_t location)
{
    size_t count;
    const struct fdr_total **row = rows_of(f, region, &count);
    for (size_t i = 0; i < count; i++)
        if (row[i]->location == location) return row[i];
    return NULL;
}

static void add_totals(struct run_facts *f)
{
    for (size_t i = 0; i < f->totals; i++) {
        const struct fdr_total *t = &f->total[i];
        if (t->class_ != FDR_IN_REGION) continue;
        add_total(f, t);
        if (!t->rest && t->id < f->regions && thread_facts(f, t->location)) f->row[f->rows++] = t;
    }
    qsort(f->row, f->rows, sizeof *f->row, by_region);
}

bool run_facts_of(struct fdr_file *file, const char *path, struct run_facts *f)
{
    size_t count = fdr_location_count(file);
    *f = (struct run_facts){.file = file, .path = path, .start_ns = run_start(file), .end_ns = newest_moment(file)};
    f->length_ns = f->end_ns > f->start_ns ? (double)(f->end_ns - f->start_ns) : 1;
    f->regions = fdr_definition_count(file, FDR_REGION_DEFINITION) + 1;
    f->region = calloc(f->regions, sizeof *f->region);
    f->thread = calloc(count + 1, sizeof *f->thread);
    f->totals = fdr_totals(file, &f->total);
    f->row = calloc(f->totals + 1, sizeof *f->row);
    if (!f->region || !f->thread || !f->row) {
        run_facts_free(f);
        return false;
    }
    for (size_t i = 0; i < count; i++)
        if (is_thread(fdr_location_info(file, i))) f->thread[f->threads++].info = fdr_location_info(file, i);
    for (size_t id = 1; id < f->regions; id++) f->region[id].waits = name_waits(region_name(file, (uint32_t)id));
    add_totals(f);
    for (size_t id = 0; id < f->regions; id++)
        if (f->region[id].calls >= LEAST_CALLS && !is_recursive(f, &f->region[id])) set_slow(&f->region[id]);
    f->all_kept = all_calls_kept(file);
    return true;
}

void run_facts_free(struct run_facts *f)
{
    free(f->region);
    free(f->thread);
    free(f->row);
    *f = (struct run_facts){0};
}
