/* SPDX-License-Identifier: MIT */
/* Kept calls unlike their region's others: single ones, and those that come back with a period. */
#include "tools/findings/run_facts.h"

#include <stdio.h>
#include <stdlib.h>

#include "tools/common/short_names.h"

enum { MOST_EXPLAINED = 256, PERIOD_WITHIN = 15 /* percent */ };
#define LEAST_CALL  0.0001 /* of the run: shorter calls are no finding, however many */
#define LEAST_SHARE 0.005  /* of the run that one call took, or several together */
#define LONG_NS     20000000u

/* ---- groups: outliers with the same cause ---- */

struct group {
    uint32_t inner;
    struct outlier_call *call; /* by location, then by start */
    size_t count;
    uint64_t total_ns, longest_ns;
    const struct outlier_call *longest;
    bool victim;     /* it waited for a slow call elsewhere */
    uint32_t waiter; /* the region in which others waited meanwhile; UINT32_MAX: none */
};

static int by_duration(const void *x, const void *y)
{
    const struct outlier_call *a = x, *b = y;
    return a->duration_ns < b->duration_ns ? 1 : a->duration_ns > b->duration_ns ? -1 : 0;
}

static int by_cause(const void *x, const void *y)
{
    const struct outlier_call *a = x, *b = y;
    if (a->inner != b->inner) return a->inner < b->inner ? -1 : 1;
    if (a->location != b->location) return a->location < b->location ? -1 : 1;
    return a->start_ns < b->start_ns ? -1 : a->start_ns > b->start_ns;
}

/* Leaves the calls that matter, the longest first: long enough, and not part of a longer outlier. */
static size_t choose_calls(const struct run_facts *f, struct outlier_calls *o)
{
    size_t used = 0;
    for (size_t i = 0; i < o->count; i++) {
        const struct outlier_call *c = &o->call[i];
        const struct outlier_call *around = c->within == UINT32_MAX ? NULL : &o->call[c->within];
        bool small = (double)c->duration_ns < LEAST_CALL * f->length_ns && c->duration_ns < LONG_NS;
        bool part = around && 2 * c->duration_ns >= around->duration_ns;
        o->call[i].depth |= small || part ? 1u << 31 : 0; /* marked; `within` needs all of them in place */
    }
    for (size_t i = 0; i < o->count; i++)
        if (!(o->call[i].depth >> 31)) o->call[used++] = o->call[i];
    if (used) qsort(o->call, used, sizeof *o->call, by_duration);
    return used < MOST_EXPLAINED ? used : MOST_EXPLAINED;
}

static int by_place(const void *x, const void *y)
{
    const struct outlier_call *a = x, *b = y;
    if (a->location != b->location) return a->location < b->location ? -1 : 1;
    return a->start_ns < b->start_ns ? -1 : a->start_ns > b->start_ns;
}

static size_t make_groups(struct outlier_call *call, size_t count, struct group *group)
{
    size_t groups = 0;
    for (size_t i = 0, end; i < count; i = end) {
        struct group *g = &group[groups++];
        for (end = i + 1; end < count && call[end].inner == call[i].inner;) end++;
        *g = (struct group){.inner = call[i].inner, .call = call + i, .count = end - i, .waiter = UINT32_MAX};
        for (size_t k = i; k < end; k++) {
            g->total_ns += call[k].inner_ns;
            if (call[k].inner_ns <= g->longest_ns) continue;
            g->longest_ns = call[k].inner_ns;
            g->longest = &call[k];
        }
    }
    return groups;
}

static bool overlaps(const struct outlier_call *a, const struct outlier_call *b)
{
    uint64_t from = a->start_ns > b->start_ns ? a->start_ns : b->start_ns;
    uint64_t to_a = a->start_ns + a->duration_ns, to_b = b->start_ns + b->duration_ns;
    uint64_t to = to_a < to_b ? to_a : to_b;
    return a->location != b->location && to > from && 2 * (to - from) >= a->duration_ns;
}

/* Did this call wait while one was slow in another thread? Then says so at its group. */
static bool met_slow(const struct run_facts *f, const struct outlier_call *call, struct group *group, size_t count)
{
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; !f->region[group[i].inner].waits && k < group[i].count; k++) {
            if (!overlaps(call, &group[i].call[k])) continue;
            group[i].waiter = call->inner;
            return true;
        }
    return false;
}

static void find_victims(const struct run_facts *f, struct group *group, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        size_t met = 0;
        for (size_t k = 0; f->region[group[i].inner].waits && k < group[i].count; k++)
            met += met_slow(f, &group[i].call[k], group, count);
        group[i].victim = 2 * met > group[i].count;
    }
}

/* ---- a period ---- */

static int by_value(const void *x, const void *y)
{
    uint64_t a = *(const uint64_t *)x, b = *(const uint64_t *)y;
    return a < b ? -1 : a > b;
}

static bool is_multiple(uint64_t gap, uint64_t period)
{
    uint64_t times = (gap + period / 2) / period;
    uint64_t apart = gap > times * period ? gap - times * period : times * period - gap;
    return times >= 1 && times <= 4 && 100 * apart <= PERIOD_WITHIN * period;
}

uint64_t period_of_gaps(uint64_t *gap, size_t count, double *fits)
{
    uint64_t right = 0, once = 0;
    *fits = 0;
    if (count + 1 < LEAST_RETURNS) return 0;
    qsort(gap, count, sizeof *gap, by_value);
    uint64_t period = gap[count / 2];
    for (size_t i = 0; period && i < count; i++) {
        uint64_t apart = gap[i] > period ? gap[i] - period : period - gap[i];
        right += is_multiple(gap[i], period);
        once += 100 * apart <= PERIOD_WITHIN * period;
    }
    *fits = (double)right / (double)count;
    return *fits >= 0.8 && 10 * once >= 6 * count ? period : 0;
}

/* The period of the calls of one thread, and the share of gaps that fit it; 0: they have none. */
static uint64_t period_of(const struct outlier_call *call, size_t count, double *fits)
{
    uint64_t gap[MOST_EXPLAINED];
    for (size_t i = 1; i < count; i++) gap[i - 1] = call[i].start_ns - call[i - 1].start_ns;
    return period_of_gaps(gap, count ? count - 1 : 0, fits);
}

/* ---- sentences ---- */

static void where(const struct run_facts *f, struct finding *row, const struct group *g, char *text, size_t bytes)
{
    char thread[LABEL_BYTES];
    size_t count, threads = 0;
    for (size_t i = 0; i < g->count; i++)
        if (!i || g->call[i].location != g->call[i - 1].location) threads++, add_location(row, g->call[i].location);
    rows_of(f, g->call[0].region, &count);
    thread_label(f->file, g->call[0].location, thread);
    if (threads == 1) snprintf(text, bytes, "%s%s%s", thread, count > 1 ? " only" : "", "");
    else snprintf(text, bytes, "%zu threads", threads);
}

static void add_outer(const struct run_facts *f, struct finding *row, const struct group *g)
{
    char usual[HUMAN_BYTES], longest[HUMAN_BYTES], count[HUMAN_BYTES];
    const struct outlier_call *c = g->longest;
    const struct region_facts *r = &f->region[c->region];
    add_evidence(
        row, "%.100s: half of its %s calls stay below %s, 99 of 100 below %s; %s calls do not fit, the longest took %s",
        plain_shown(f->file, c->region), human_count(count, r->calls), human_time(usual, (uint64_t)r->p50_ns),
        human_time((char[HUMAN_BYTES]){0}, (uint64_t)r->p99_ns), human_count((char[HUMAN_BYTES]){0}, r->slow_calls),
        human_time(longest, r->max_ns));
    if (g->waiter != UINT32_MAX)
        add_evidence(row, "other threads waited meanwhile in %.100s", plain_shown(f->file, g->waiter));
}

/* Functions that otherwise take a fraction of it, and in which nothing recorded ran: the time was not theirs. */
static bool is_stall(const struct run_facts *f, const struct group *g)
{
    const struct region_facts *r = &f->region[g->inner];
    return r->p99_ns > 0 && !r->waits && (double)g->longest_ns >= 64 * r->p99_ns;
}

static void add_stall(const struct run_facts *f, struct finding *row, const struct group *g)
{
    if (is_stall(f, g)) add_evidence(row, "no recorded call ran inside: it computed, waited, or had no processor");
}

/* "every 101 ms, about every 700 calls of step" */
static void period_text(const struct run_facts *f, const struct outlier_call *c, uint64_t period, char *text,
                        size_t bytes)
{
    char time[HUMAN_BYTES];
    const struct fdr_total *t = total_of(f, c->region, c->location);
    int used = snprintf(text, bytes, "every %s", human_time(time, period));
    double around = t ? (double)t->calls * (double)period / f->length_ns : 0;
    uint64_t step = 1; /* of the third digit */
    while (around >= 1000 * (double)step) step *= 10;
    if (around >= 2)
        snprintf(text + used, bytes - (size_t)used, ", about every %s calls of %.80s",
                 human_count(time, (uint64_t)(around / (double)step + 0.5) * step), plain_shown(f->file, c->region));
}

static void add_periodic(const struct run_facts *f, struct findings *to, const struct group *g, uint64_t period,
                         double fits)
{
    char mean[HUMAN_BYTES], place[96], every[200];
    double share = (double)g->total_ns / f->length_ns;
    struct finding *row = add_finding(to, FINDING_PERIODIC, share);
    if (!row) return;
    row->region = g->inner;
    row->from_ns = g->longest->start_ns;
    row->to_ns = g->longest->start_ns + g->longest->duration_ns;
    row->value = (double)period;
    row->unit = "ns";
    row->share = share;
    row->sure = fits >= 0.95 ? 0.95 : 0.8;
    where(f, row, g, place, sizeof place);
    period_text(f, g->longest, period, every, sizeof every);
    say(row, "%zu times %s in %.100s, %s, in %s: %.2g %% of the run.", g->count,
        human_time(mean, g->total_ns / g->count), plain_shown(f->file, g->inner), every, place, 100 * share);
    add_outer(f, row, g);
    add_stall(f, row, g);
}

static void add_outlier(const struct run_facts *f, struct findings *to, const struct group *g)
{
    char longest[HUMAN_BYTES], usual[HUMAN_BYTES], place[96], since[HUMAN_BYTES], times[32] = "One call";
    const struct outlier_call *c = g->longest;
    const struct region_facts *r = &f->region[c->region];
    double share = (double)g->total_ns / f->length_ns;
    struct finding *row = add_finding(to, FINDING_OUTLIER, share);
    if (!row) return;
    row->region = g->inner;
    row->from_ns = c->start_ns;
    row->to_ns = c->start_ns + c->duration_ns;
    row->longest_ns = (double)c->duration_ns;
    row->value = (double)c->duration_ns;
    row->unit = "ns";
    row->share = share;
    row->sure = 0.95;
    where(f, row, g, place, sizeof place);
    if (g->count > 1) snprintf(times, sizeof times, "%zu calls", g->count);
    say(row, "%s of %.100s took %s%s", times, plain_shown(f->file, c->region), g->count > 1 ? "up to " : "",
        human_time(longest, c->duration_ns));
    if (c->inner != c->region)
        say(row, ", of it %s in %.100s", human_time(longest, c->inner_ns), plain_shown(f->file, c->inner));
    say(row, ": in %s, %s%s; 99 of 100 stay below %s.", place, g->count > 1 ? "the longest at " : "at ",
        human_since(since, c->start_ns, f->start_ns), human_time(usual, (uint64_t)r->p99_ns));
    add_outer(f, row, g);
    add_stall(f, row, g);
}

static void add_group(const struct run_facts *f, struct findings *to, const struct group *g)
{
    double fits = 0;
    uint64_t period = 0;
    bool notable = (double)g->total_ns >= LEAST_SHARE * f->length_ns ||
                   (g->longest_ns >= LONG_NS && (double)g->longest_ns >= 64 * f->region[g->longest->region].p99_ns);
    if (!notable || g->victim) return;
    for (size_t i = 0, end; i < g->count && !period; i = end) {
        for (end = i + 1; end < g->count && g->call[end].location == g->call[i].location;) end++;
        period = period_of(g->call + i, end - i, &fits);
    }
    if (period) add_periodic(f, to, g, period, fits);
    else add_outlier(f, to, g);
}

/* ---- stalls: a thread that did not run ---- */

static size_t take_stalls(const struct run_facts *f, const struct group *group, size_t count, struct outlier_call *call)
{
    size_t calls = 0;
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; is_stall(f, &group[i]) && k < group[i].count; k++) call[calls++] = group[i].call[k];
    return calls;
}

static void add_stalls(const struct run_facts *f, struct findings *to, const struct group *group, size_t count,
                       const struct group *all)
{
    char longest[HUMAN_BYTES], place[96];
    double share = (double)all->total_ns / f->length_ns;
    struct finding *row = add_finding(to, FINDING_OUTLIER, share);
    if (!row) return;
    row->from_ns = all->longest->start_ns;
    row->to_ns = all->longest->start_ns + all->longest->duration_ns;
    row->longest_ns = (double)all->longest->duration_ns;
    row->value = (double)all->longest_ns;
    row->unit = "ns";
    row->share = share;
    row->sure = 0.7;
    where(f, row, all, place, sizeof place);
    say(row, "%zu times %s stood for up to %s, each time in another short function (", all->count, place,
        human_time(longest, all->longest_ns));
    for (size_t i = 0, named = 0; i < count && named < 3; i++)
        if (is_stall(f, &group[i])) say(row, "%s%.60s", named++ ? ", " : "", plain_shown(f->file, group[i].inner));
    say(row, ", ..): probably it did not run.");
    add_evidence(row, "99 of 100 calls of each of these functions take less than a 64th; no recorded call ran inside");
    add_evidence(row, "a thread without a processor looks like this, and so does a page fault");
}

/* One finding of all stalls. False: there are too few, in too few functions, to tell them from slow functions. */
static bool find_stalls(const struct run_facts *f, struct findings *to, const struct group *group, size_t count)
{
    struct outlier_call *call = calloc(MOST_EXPLAINED, sizeof *call);
    size_t kinds = 0, calls = call ? take_stalls(f, group, count, call) : 0;
    struct group all = {.call = call, .count = calls, .waiter = UINT32_MAX};
    for (size_t i = 0; i < count; i++) kinds += is_stall(f, &group[i]);
    if (calls) qsort(call, calls, sizeof *call, by_place);
    for (size_t i = 0; i < calls; i++) {
        all.total_ns += call[i].inner_ns;
        if (call[i].inner_ns <= all.longest_ns) continue;
        all.longest_ns = call[i].inner_ns;
        all.longest = &call[i];
    }
    bool many = kinds >= 3;
    if (many && (double)all.total_ns >= LEAST_SHARE * f->length_ns) add_stalls(f, to, group, count, &all);
    free(call);
    return many;
}

/* Exact histograms count all slow calls; some may be kept no more. */
static void tell_missing(const struct run_facts *f, struct findings *to, size_t kept)
{
    char a[HUMAN_BYTES], b[HUMAN_BYTES];
    uint64_t all = 0;
    for (size_t id = 0; id < f->regions; id++) all += f->region[id].slow_calls;
    if (all > kept)
        cannot_judge(to, "slow calls", "of %s that stand out in exact totals, %s are kept one by one",
                     human_count(a, all), human_count(b, kept));
}

void find_slow_calls(const struct run_facts *f, struct findings *to)
{
    struct outlier_calls o;
    outlier_calls_of(f, &o);
    tell_missing(f, to, o.count);
    size_t count = choose_calls(f, &o);
    struct group *group = calloc(count + 1, sizeof *group);
    to->failed |= o.failed || !group;
    for (size_t i = 0; i < count; i++) explain_outlier(f, &o.call[i]);
    if (count) qsort(o.call, count, sizeof *o.call, by_cause);
    size_t groups = group ? make_groups(o.call, count, group) : 0;
    find_victims(f, group, groups);
    bool stalls = groups && find_stalls(f, to, group, groups);
    for (size_t i = 0; i < groups; i++)
        if (!stalls || !is_stall(f, &group[i])) add_group(f, to, &group[i]);
    free(group);
    free(o.call);
}
