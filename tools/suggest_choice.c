/* SPDX-License-Identifier: MIT */
/* Which functions to leave out: short, frequent and alike ones. */
#include <stdlib.h>
#include <string.h>

#include "tools/common/cxx_name.h"
#include "tools/common/short_names.h"
#include "tools/suggest.h"

/* A call is tiny if it is not longer than a few recorded calls cost: most of the time shown is fdr's own. */
enum { TINY_NS = 128, SHORT_NS = 16384, LINE_MOST = 16383 };
static const double LEAST_EVENTS = 0.001, COLLATERAL_TIME = 0.01;

double suggest_share(uint64_t part, uint64_t whole) { return whole ? (double)part / (double)whole : 0; }

bool suggest_rule_can_name(const char *symbol)
{
    size_t count = strlen(symbol);
    return count && count < LINE_MOST - sizeof "exclude exact " && !strpbrk(symbol, "\r\n") &&
           !strchr(" \t", symbol[0]) && !strchr(" \t", symbol[count - 1]);
}

/* ---- functions from totals --------------------------------------------------------------------------------------- */

struct gather {
    const struct fdr_file *file;
    uint64_t (*histogram)[64]; /* by region */
    struct suggest_function *by_region;
};

static void add(uint64_t *sum, uint64_t more) { *sum = more > UINT64_MAX - *sum ? UINT64_MAX : *sum + more; }

static void add_total(struct suggestion *s, struct gather *g, const struct fdr_total *t, size_t regions)
{
    if (t->class_ != FDR_IN_REGION) {
        add(&s->events, t->calls);
        return;
    }
    add(&s->events, t->calls * 2);
    add(&s->time_ns, t->exclusive_ns);
    add(&s->untimed, t->untimed);
    if (t->rest || t->id > regions) {
        add(&s->rest_calls, t->calls);
        return;
    }
    struct suggest_function *f = &g->by_region[t->id];
    add(&f->calls, t->calls);
    add(&f->exclusive_ns, t->exclusive_ns);
    add(&f->inclusive_ns, t->inclusive_ns);
    if (t->calls && t->max_ns > f->max_ns) f->max_ns = t->max_ns;
    for (size_t i = 0; t->has_histogram && i < 64; i++) g->histogram[t->id][i] += t->histogram[i];
}

static int by_name(const void *a, const void *b, void *context)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    int order = strcmp(region_name(context, x), region_name(context, y));
    return order ? order : x < y ? -1 : x > y;
}

/* Half of the calls lie in bins up to `middle`. Alike: 99 of 100 are at most 16 times as long. */
static void judge_durations(struct suggest_function *f, const uint64_t *histogram)
{
    uint64_t all = 0, sum = 0, near = 0;
    unsigned middle = 0;
    for (unsigned i = 0; i < 64; i++) all += histogram[i];
    for (; middle < 63 && sum + histogram[middle] < all - all / 2; middle++) sum += histogram[middle];
    for (unsigned i = 0; i <= middle + 4 && i < 64; i++) near += histogram[i];
    f->typical_ns = all ? 2ull << (middle < 62 ? middle : 62) : f->calls ? f->inclusive_ns / f->calls : 0;
    f->alike = near >= all - all / 100;
}

static bool is_place(const char *name)
{
    const char *plus = strrchr(name, '+');
    return !strncmp(plus ? plus + 1 : name, "0x", 2);
}

static bool name_for_gcc(struct suggest_function *f)
{
    bool none;
    if (!f->hooked || is_place(f->name)) return true;
    f->printed = cxx_name_qualified(f->name);
    f->item = cxx_name_gcc_item(f->name, &none);
    bool good = f->printed && f->item;
    if (good && none) {
        free(f->item);
        f->item = NULL;
    }
    return good;
}

/* Regions of one name become one function: rules and gcc's list know functions by name. */
static bool join_names(struct suggestion *s, struct gather *g, size_t regions)
{
    for (size_t i = 0; i < regions; i++) s->region[i] = (uint32_t)i + 1;
    if (regions) qsort_r(s->region, regions, sizeof *s->region, by_name, (void *)g->file);
    for (size_t i = 0, next; i < regions; i = next) {
        const char *name = region_name(g->file, s->region[i]);
        struct suggest_function f = {.name = name,
                                     .shown = shown_region(g->file, s->region[i]),
                                     .region = &s->region[i],
                                     .hooked = true,
                                     .by_rules = true};
        uint64_t histogram[64] = {0};
        for (next = i; next < regions && !strcmp(name, region_name(g->file, s->region[next])); next++) {
            const struct fdr_definition *d = fdr_definition(g->file, FDR_REGION_DEFINITION, s->region[next]);
            const struct suggest_function *part = &g->by_region[s->region[next]];
            add(&f.calls, part->calls);
            add(&f.exclusive_ns, part->exclusive_ns);
            add(&f.inclusive_ns, part->inclusive_ns);
            f.max_ns = part->max_ns > f.max_ns ? part->max_ns : f.max_ns;
            f.hooked &= d->address != 0;
            f.by_rules &= suggest_rule_can_name(d->symbol);
            for (size_t b = 0; b < 64; b++) histogram[b] += g->histogram[s->region[next]][b];
        }
        f.regions = next - i;
        if (f.calls == 0) continue;
        judge_durations(&f, histogram);
        if (!name_for_gcc(&f)) return false;
        s->function[s->count++] = f;
    }
    return true;
}

static bool take_functions(struct suggestion *s, const struct fdr_file *file)
{
    const struct fdr_total *total;
    size_t regions = fdr_definition_count(file, FDR_REGION_DEFINITION), totals = fdr_totals(file, &total);
    struct gather g = {file, calloc(regions + 1, sizeof *g.histogram), calloc(regions + 1, sizeof *g.by_region)};
    s->function = calloc(regions + 1, sizeof *s->function);
    s->region = calloc(regions + 1, sizeof *s->region);
    bool good = g.histogram && g.by_region && s->function && s->region;
    for (size_t i = 0; good && i < totals; i++) add_total(s, &g, &total[i], regions);
    good = good && join_names(s, &g, regions);
    free(g.histogram);
    free(g.by_region);
    return good;
}

/* ---- the choice -------------------------------------------------------------------------------------------------- */

static bool is_tiny(const struct suggest_function *f) { return f->typical_ns <= TINY_NS; }

/* Tiny functions first, then those that remove most events for the time that is lost. */
static int by_worth(const void *a, const void *b)
{
    const struct suggest_function *x = a, *y = b;
    if (is_tiny(x) != is_tiny(y)) return is_tiny(x) ? -1 : 1;
    double p = (double)x->exclusive_ns / (double)x->calls, q = (double)y->exclusive_ns / (double)y->calls;
    if (p != q) return p < q ? -1 : 1;
    return x->calls != y->calls ? (x->calls < y->calls ? 1 : -1) : strcmp(x->name, y->name);
}

static int chosen_first(const void *a, const void *b)
{
    const struct suggest_function *x = a, *y = b;
    if (x->chosen != y->chosen) return x->chosen ? -1 : 1;
    return by_worth(a, b);
}

static void count_in(struct suggest_sum *sum, const struct suggestion *s, const struct suggest_function *f)
{
    sum->functions++;
    sum->events += suggest_share(f->calls * 2, s->events);
    sum->time += suggest_share(f->exclusive_ns, s->time_ns);
}

static void choose_functions(struct suggestion *s, const struct suggest_limits *limits)
{
    double time_limit = 1 - limits->keep_time / 100;
    bool free_choice = limits->keep_time == 0;
    double limited_time = 0;
    qsort(s->function, s->count, sizeof *s->function, by_worth);
    for (size_t i = 0; i < s->count && s->all.events * 100 < limits->most_events; i++) {
        struct suggest_function *f = &s->function[i];
        double time = suggest_share(f->exclusive_ns, s->time_ns);
        if (suggest_share(f->calls * 2, s->events) < LEAST_EVENTS) continue;
        if (!free_choice && (!f->alike || f->typical_ns > SHORT_NS)) continue;
        if (!free_choice && !is_tiny(f) && limited_time + time > time_limit) continue;
        if (!is_tiny(f)) limited_time += time;
        f->chosen = true;
        s->chosen++;
        count_in(&s->all, s, f);
        if (f->by_rules) count_in(&s->rules, s, f);
    }
    qsort(s->function, s->count, sizeof *s->function, chosen_first);
}

/* ---- gcc's list -------------------------------------------------------------------------------------------------- */

bool suggest_matches(const struct suggest_function *of_item, const struct suggest_function *f)
{
    return f != of_item && f->printed && strstr(f->printed, of_item->item);
}

/* The first function worth keeping that the item would leave out, too: one that is not short, or those with too much
 * time together. */
static const char *harmed(const struct suggestion *s, const struct suggest_function *of_item)
{
    double time = 0;
    for (size_t i = s->chosen; i < s->count; i++) {
        const struct suggest_function *f = &s->function[i];
        if (!suggest_matches(of_item, f)) continue;
        time += suggest_share(f->exclusive_ns, s->time_ns);
        if (f->typical_ns > SHORT_NS || time > COLLATERAL_TIME) return f->shown;
    }
    return NULL;
}

static void list_for_gcc(struct suggestion *s)
{
    for (size_t i = 0; i < s->chosen; i++) {
        struct suggest_function *f = &s->function[i];
        if (!f->hooked) f->why = "the program defines it itself: no compiler's hook calls it";
        else if (!f->printed) f->why = "its name is not known here";
        else if (!f->item) f->why = "its name in gcc is not known: a lambda, a local class or a conversion";
        else if ((f->harm = harmed(s, f))) f->why = "its name is part of the name of a function worth keeping";
        if (f->why) continue;
        f->by_gcc = true;
        count_in(&s->gcc, s, f);
        for (size_t k = s->chosen; k < s->count; k++) {
            struct suggest_function *other = &s->function[k];
            if (other->collateral || !suggest_matches(f, other)) continue;
            other->collateral = true;
            count_in(&s->gcc, s, other);
            s->gcc.functions--; /* functions chosen, only */
        }
    }
}

/* ---- what is known ----------------------------------------------------------------------------------------------- */

static const char *unknown(const struct suggestion *s, const struct fdr_file *file)
{
    if (s->count) return NULL;
    if (s->rest_calls) return "memory had no room for totals of functions: all calls are in the row [rest]";
    if (fdr_file_info(file)->totals_lost) return "the totals of functions are damaged";
    if (s->untimed) return "no call that ended has a time: rules, FDR_DEPTH or a pause left all of them out";
    for (size_t i = 0; i < fdr_location_count(file); i++)
        if (fdr_location_info(file, i)->open_count) return "no call ended during the recording";
    return "the recording has no calls";
}

bool suggest_choose(struct suggestion *s, const struct fdr_file *file, const struct suggest_limits *limits)
{
    *s = (struct suggestion){0};
    if (!take_functions(s, file)) return false;
    s->unknown = unknown(s, file);
    choose_functions(s, limits);
    list_for_gcc(s);
    return true;
}

void suggest_free(struct suggestion *s)
{
    for (size_t i = 0; i < s->count; i++) {
        free(s->function[i].printed);
        free(s->function[i].item);
    }
    free(s->function);
    free(s->region);
    *s = (struct suggestion){0};
}
