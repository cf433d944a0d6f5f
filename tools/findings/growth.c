/* SPDX-License-Identifier: MIT */
/* A region whose calls take longer as the run goes on: from the exact totals of epochs, else from all kept calls. */
#include "tools/findings/run_facts.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "tools/common/short_names.h"

enum { SLICES = 24, LEAST_POINTS = 6, MOST_REGIONS = 4096 };
#define LEAST_SHARE  0.02 /* of the run that the longer calls cost one thread */
#define LEAST_FACTOR 1.5

/* The calls of a region that ended in one stretch of one thread. */
struct point {
    uint32_t region, location;
    uint64_t from_ns, to_ns;
    double calls, inclusive_ns, exclusive_ns;
    double level; /* log of the time per call, against that of the thread over the whole run */
};
struct points {
    struct point *row;
    size_t count, room;
};

static struct point *add_point(struct points *p)
{
    if (p->count == p->room) {
        size_t room = p->room ? p->room * 2 : 1024;
        struct point *grown = realloc(p->row, room * sizeof *grown);
        if (!grown) return NULL;
        p->row = grown;
        p->room = room;
    }
    p->row[p->count] = (struct point){0};
    return &p->row[p->count++];
}

struct pace_sum {
    double calls, ns;
};

/* ---- points ---- */

static bool from_epochs(const struct run_facts *f, struct points *p)
{
    const struct fdr_epoch_info *epoch;
    const struct fdr_epoch_total *t;
    size_t epochs = fdr_epochs(f->file, &epoch), count = fdr_epoch_totals(f->file, &t), at = 0;
    for (size_t i = 0; i < count; i++) {
        while (at < epochs && (epoch[at].location < t[i].location ||
                               (epoch[at].location == t[i].location && epoch[at].index < t[i].epoch)))
            at++;
        if (t[i].rest || t[i].calls < 3 || t[i].region >= f->regions || at == epochs) continue;
        if (epoch[at].location != t[i].location || epoch[at].index != t[i].epoch) continue;
        struct point *point = add_point(p);
        if (!point) return false;
        *point = (struct point){.region = t[i].region,
                                .location = t[i].location,
                                .from_ns = epoch[at].from_ns,
                                .to_ns = epoch[at].to_ns,
                                .calls = (double)t[i].calls,
                                .inclusive_ns = (double)t[i].inclusive_ns,
                                .exclusive_ns = (double)t[i].exclusive_ns};
    }
    return true;
}

struct slices {
    const struct run_facts *facts;
    struct point *cell; /* SLICES of each region, of the location that is read */
    struct points *to;
    uint32_t location;
    uint64_t start_ns[1100]; /* of the open calls */
    size_t depth;
    bool failed;
};

static void flush(struct slices *s)
{
    for (size_t i = 0; i < s->facts->regions * SLICES; i++) {
        if (s->cell[i].calls < 3) {
            s->cell[i] = (struct point){0};
            continue;
        }
        struct point *point = add_point(s->to);
        s->failed |= !point;
        if (!point) return;
        uint64_t width = (uint64_t)(s->facts->length_ns / SLICES);
        *point = s->cell[i];
        point->region = (uint32_t)(i / SLICES);
        point->location = s->location;
        point->from_ns = s->facts->start_ns + width * (i % SLICES);
        point->to_ns = point->from_ns + width;
        s->cell[i] = (struct point){0};
    }
}

static void on_location(void *context, uint32_t location)
{
    struct slices *s = context;
    flush(s);
    s->location = location;
    s->depth = 0;
}

static bool on_enter(void *context, const struct fdr_read_event *e)
{
    struct slices *s = context;
    if (s->depth < sizeof s->start_ns / sizeof *s->start_ns) s->start_ns[s->depth] = e->time_ns;
    s->depth++;
    return !s->failed;
}

static void on_leave(void *context, const struct fdr_call *c)
{
    struct slices *s = context;
    if (!s->depth--) return;
    if (c->open || c->reduced || c->region >= s->facts->regions || s->depth >= sizeof s->start_ns / sizeof *s->start_ns)
        return;
    uint64_t end = s->start_ns[s->depth] + c->duration_ns - s->facts->start_ns;
    size_t slice = (size_t)((double)end / s->facts->length_ns * SLICES);
    struct point *cell = &s->cell[c->region * SLICES + (slice < SLICES ? slice : SLICES - 1)];
    cell->calls++;
    cell->inclusive_ns += (double)c->duration_ns;
    cell->exclusive_ns += (double)c->exclusive_ns;
}

static bool from_calls(const struct run_facts *f, struct points *p)
{
    struct slices *s = calloc(1, sizeof *s);
    struct point *cell = s ? calloc(f->regions * SLICES, sizeof *cell) : NULL;
    const struct fdr_call_visitor visitor = {s, on_location, on_enter, on_leave, NULL};
    const struct fdr_select select = {.classes = 1u << FDR_IN_REGION};
    bool good = cell != NULL;
    if (good) {
        *s = (struct slices){.facts = f, .cell = cell, .to = p};
        good = fdr_visit_calls(f->file, &select, &visitor) == 0;
        flush(s);
        good = good && !s->failed;
    }
    free(cell);
    free(s);
    return good;
}

static int by_region_and_time(const void *x, const void *y)
{
    const struct point *a = x, *b = y;
    if (a->region != b->region) return a->region < b->region ? -1 : 1;
    uint64_t i = a->from_ns / 2 + a->to_ns / 2, k = b->from_ns / 2 + b->to_ns / 2;
    return i != k ? (i < k ? -1 : 1) : a->location < b->location ? -1 : a->location > b->location;
}

/* Threads may differ in pace all the time: each point is compared with its own thread's. sum: of each location. */
static void set_levels(const struct run_facts *f, struct pace_sum *sum, struct point *p, size_t count)
{
    for (size_t i = 0; i < count; i++) sum[location_index(f->file, p[i].location)] = (struct pace_sum){0, 0};
    for (size_t i = 0; i < count; i++) {
        struct pace_sum *s = &sum[location_index(f->file, p[i].location)];
        s->calls += p[i].calls;
        s->ns += p[i].inclusive_ns;
    }
    for (size_t i = 0; i < count; i++) {
        const struct pace_sum *s = &sum[location_index(f->file, p[i].location)];
        double own = p[i].inclusive_ns / p[i].calls, all = s->ns / s->calls;
        p[i].level = own > 0 && all > 0 ? log(own / all) : 0;
    }
}

/* ---- the knee ---- */

/* Where the levels before and after differ most. */
static size_t best_split(const struct point *p, size_t count)
{
    double sum = 0, left = 0, best = 0;
    size_t at = 0;
    for (size_t i = 0; i < count; i++) sum += p[i].level;
    for (size_t i = 1; i < count; i++) {
        left += p[i - 1].level;
        double a = left / (double)i, b = (sum - left) / (double)(count - i);
        double score = (b - a) * (b - a) * (double)i * (double)(count - i);
        if (b > a && i >= 2 && count - i >= 2 && score > best) best = score, at = i;
    }
    return at;
}

/* The share of pairs of an earlier and a later point in which the later one is slower. 1: no point is an exception. */
static double order(const struct point *p, size_t split, size_t count)
{
    double right = 0;
    for (size_t i = 0; i < split; i++)
        for (size_t k = split; k < count; k++) right += p[k].level > p[i].level;
    return right / ((double)split * (double)(count - split));
}

struct pace {
    double calls, ns, own_ns; /* own: per call, without the calls inside */
};
static struct pace pace(const struct point *p, size_t count)
{
    double calls = 0, ns = 0, own = 0;
    for (size_t i = 0; i < count; i++) calls += p[i].calls, ns += p[i].inclusive_ns, own += p[i].exclusive_ns;
    return (struct pace){calls, ns / calls, own / calls};
}

struct growth {
    uint32_t region;
    struct pace before, after, last; /* last: of the newest quarter of the points after the knee */
    struct pace first;               /* of the oldest quarter before it */
    uint64_t from_ns, knee_ns;       /* it began between these */
    size_t points, threads;
    double extra_ns, own_extra_ns, sure;
    bool steady;
    uint32_t location[FINDING_LOCATIONS];
};

static void list_threads(struct growth *g, const struct point *p, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        size_t k = 0;
        while (k < g->threads && g->location[k] != p[i].location) k++;
        if (k == g->threads && g->threads < FINDING_LOCATIONS) g->location[g->threads++] = p[i].location;
    }
}

/* How far the mean of so many calls may be off by chance, from the spread of all calls of the region. */
static double standard_error(const struct region_facts *r, double calls)
{
    double count = 0, sum = 0, squares = 0;
    for (int b = 0; b < 64; b++) {
        double n = (double)r->histogram[b], ns = 1.5 * (double)(1ull << b);
        count += n, sum += n * ns, squares += n * ns * ns;
    }
    double mean = count > 0 ? sum / count : 0, spread = count > 0 ? squares / count - mean * mean : 0;
    return sqrt((spread > 0 ? spread : 0) / calls);
}

/* False: the region does not grow. */
static bool judge(const struct run_facts *f, struct pace_sum *sum, struct point *p, size_t count, struct growth *g)
{
    if (count < LEAST_POINTS || (double)f->region[p->region].inclusive_ns < LEAST_SHARE * f->length_ns) return false;
    set_levels(f, sum, p, count);
    size_t split = best_split(p, count);
    double sure = split ? order(p, split, count) : 0;
    if (sure < 0.95) return false;
    size_t tail = (count - split + 3) / 4, head = (split + 3) / 4;
    *g = (struct growth){.region = p[0].region,
                         .before = pace(p, split),
                         .after = pace(p + split, count - split),
                         .first = pace(p, head),
                         .last = pace(p + count - tail, tail),
                         .from_ns = p[split - 1].to_ns < p[split].from_ns ? p[split - 1].to_ns : p[split].from_ns,
                         .knee_ns = p[split].from_ns,
                         .points = count,
                         .sure = sure - (count < 12 ? 0.2 : 0.05)};
    list_threads(g, p, count);
    double middle = pace(p + split, (count - split + 1) / 2).ns;
    g->steady = g->last.ns > 1.3 * middle || g->before.ns > 1.3 * g->first.ns;
    g->extra_ns = (g->after.ns - g->before.ns) * g->after.calls;
    g->own_extra_ns = (g->after.own_ns - g->before.own_ns) * g->after.calls;
    double chance = standard_error(&f->region[g->region],
                                   g->after.calls < g->before.calls ? g->after.calls : g->before.calls);
    return g->after.ns >= LEAST_FACTOR * g->before.ns && g->after.ns - g->before.ns >= 4 * chance &&
           g->extra_ns / (double)g->threads / f->length_ns >= LEAST_SHARE;
}

/* Of regions inside one another that grow by the same time, the innermost says most. */
static bool is_explained(const struct growth *g, const struct growth *all, size_t count)
{
    if (g->own_extra_ns >= 0.5 * g->extra_ns) return false;
    for (size_t i = 0; i < count; i++) {
        if (&all[i] == g) continue;
        bool same = all[i].extra_ns < g->extra_ns && all[i].extra_ns >= 0.95 * g->extra_ns;
        if (same || all[i].own_extra_ns >= 0.5 * g->extra_ns) return true;
    }
    return false;
}

static void add(const struct run_facts *f, struct findings *to, const struct growth *g, bool epochs)
{
    char a[HUMAN_BYTES], b[HUMAN_BYTES], since[HUMAN_BYTES], thread[LABEL_BYTES], threads[96];
    double share = g->extra_ns / (double)g->threads / f->length_ns;
    bool waits = f->region[g->region].waits;
    struct finding *row = add_finding(to, FINDING_GROWTH, waits ? 0.3 * share : share);
    if (!row) return;
    double first = g->steady ? g->first.ns : g->before.ns, last = g->steady ? g->last.ns : g->after.ns;
    row->region = g->region;
    for (size_t i = 0; i < g->threads; i++) add_location(row, g->location[i]);
    row->from_ns = g->knee_ns;
    row->to_ns = f->end_ns;
    row->value = last / (first > 0 ? first : 1);
    row->unit = "times";
    row->share = share;
    row->sure = g->sure;
    if (g->threads == 1) snprintf(threads, sizeof threads, "in %s", thread_label(f->file, g->location[0], thread));
    else snprintf(threads, sizeof threads, "in all %zu threads that call it", g->threads);
    snprintf(since, sizeof since, "%+.3g s", (double)(g->knee_ns - f->start_ns) / 1e9);
    human_time(a, (uint64_t)first);
    human_time(b, (uint64_t)last);
    if (g->steady)
        say(row, "%.100s grew %.3g times, steadily: from %s a call to %s, %s.", plain_shown(f->file, g->region),
            row->value, a, b, threads);
    else
        say(row, "%.100s grew %.3g times at %s: from %s a call to %s, %s.", plain_shown(f->file, g->region), row->value,
            since, a, b, threads);
    add_evidence(row, "%s of %zu stretches of the run; %s more in sum than at the pace before",
                 epochs ? "exact totals" : "all calls", g->points, human_time(a, (uint64_t)g->extra_ns));
    if (waits) add_evidence(row, "by its name it waits: look for the cause in the threads it waits for");
}

static void judge_all(const struct run_facts *f, struct findings *to, struct points *p, bool epochs)
{
    struct growth *g = calloc(MOST_REGIONS, sizeof *g);
    struct pace_sum *sum = calloc(fdr_location_count(f->file) + 1, sizeof *sum);
    size_t count = 0;
    to->failed |= !g || !sum;
    if (p->count) qsort(p->row, p->count, sizeof *p->row, by_region_and_time);
    for (size_t i = 0, end; g && sum && i < p->count; i = end) {
        for (end = i + 1; end < p->count && p->row[end].region == p->row[i].region;) end++;
        if (count < MOST_REGIONS && judge(f, sum, p->row + i, end - i, &g[count])) count++;
    }
    for (size_t i = 0; i < count; i++)
        if (!is_explained(&g[i], g, count)) add(f, to, &g[i], epochs);
    free(g);
    free(sum);
}

void find_growth(const struct run_facts *f, struct findings *to)
{
    const struct fdr_epoch_info *epoch;
    struct points p = {0};
    size_t epochs = fdr_epochs(f->file, &epoch);
    bool enough = epochs >= LEAST_POINTS * (f->threads ? f->threads : 1);
    bool calls = !enough && f->all_kept && f->regions <= MOST_REGIONS;
    bool good = calls ? from_calls(f, &p) : from_epochs(f, &p);
    to->failed |= !good;
    if (good) judge_all(f, to, &p, !calls);
    if (!calls && epochs && p.count < f->threads * LEAST_POINTS)
        cannot_judge(to, "growth", "memory kept too few totals by region and stretch: %zu of %zu stretches", p.count,
                     epochs);
    if (!calls && !epochs)
        cannot_judge(to, "growth", "the strategy %s keeps no totals by epoch, and calls were given back",
                     fdr_file_info(f->file)->strategy);
    free(p.row);
}
