/* SPDX-License-Identifier: MIT */
/* The tables of fdr counters FILE. Each figure comes with its number of readings. */
#define _GNU_SOURCE
#include <fnmatch.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/counters.h"

enum { ROWS_SHOWN = 10 };

static bool shown(const struct counters_arguments *a, const struct counter *c)
{
    return !a->glob || !fnmatch(a->glob, c->name, 0);
}

static double seconds(double ns) { return ns / 1e9; }
static double per_second(double amount, double ns) { return ns > 0 ? amount / seconds(ns) : 0; }
static double mean(const struct rate *r) { return r->readings ? r->sum / (double)r->readings : 0; }

/* ---- numbers for people ------------------------------------------------------------------------------------------ */

/* Prints "1.23 M" right-aligned in 10 columns; times and bytes in their own units. */
static void print_amount(double v, const char *unit)
{
    char text[HUMAN_BYTES];
    static const char *const steps[] = {"", "k", "M", "G", "T", "P"};
    size_t step = 0;
    if (!isfinite(v)) {
        printf(" %12s", isnan(v) ? "NaN" : v < 0 ? "-inf" : "inf"); /* a program may record such a value */
        return;
    }
    bool whole = v >= 0 && v < 0x1p64;
    if (!strcmp(unit, "ns") && whole) {
        printf(" %12s", human_time(text, (uint64_t)(v + 0.5)));
        return;
    }
    if (!strcmp(unit, "bytes") && whole) {
        printf(" %12s", human_bytes(text, (uint64_t)(v + 0.5)));
        return;
    }
    double x = v < 0 ? -v : v;
    for (; x >= 10000 && step < 5; x /= 1000) step++;
    snprintf(text, sizeof text, "%.4g %s%s", v < 0 ? -x : x, steps[step], unit);
    printf(" %12s", plain_name(text));
}

/* A rate of ns per second is printed as a share of one processor. */
static void print_rate(double v, const char *unit)
{
    char text[HUMAN_BYTES];
    if (!strcmp(unit, "ns") && isfinite(v)) {
        snprintf(text, sizeof text, "%.2f %%", v / 1e7);
        printf(" %12s  ", text);
        return;
    }
    print_amount(v, unit);
    printf("/s");
}

static void print_figures(const struct counter *c, const struct rate *r, double amount, double ns)
{
    if (c->gauge) {
        print_amount(mean(r), c->unit);
        print_amount(r->min, c->unit);
        print_amount(r->max, c->unit);
    } else {
        print_amount(amount, c->unit);
        print_rate(per_second(amount, ns), c->unit);
    }
    printf(" %10llu", (unsigned long long)r->readings);
}

/* ---- names of rows ---------------------------------------------------------------------------------------------- */

static bool of_application(const struct counter *c) { return !c->sampled && !c->at_edges; }

static uint32_t thread_id(const struct fdr_file *file, const struct counter *c, uint32_t key)
{
    return of_application(c) ? fdr_location_info(file, key)->tid : key;
}

static const char *thread_name(const struct fdr_file *file, const struct counter *c, uint32_t key)
{
    const struct fdr_location_info *l = of_application(c) ? fdr_location_info(file, key)
                                        : key             ? location_of_thread(file, key)
                                                          : NULL;
    return l ? l->name : key ? "(never called fdr)" : "(process)";
}

static const char *region_text(const struct fdr_file *file, uint32_t key)
{
    if (key == NO_REGION) return "(outside any region)";
    if (key == REDUCED) return "[reduced]";
    if (key == FILTERED) return "[filtered]";
    if (key == NOT_OVER) return "[open]";
    return key == NO_LOCATION ? "(threads that never called fdr)" : region_name(file, key);
}

/* ---- text ------------------------------------------------------------------------------------------------------- */

static void counter_lines(const struct counters_arguments *a, const struct rates *r)
{
    printf("# kind     amount or mean    rate, or min .. max     readings  counter\n");
    size_t rows = 0;
    for (uint32_t i = 0; i < r->count; i++) {
        const struct counter *c = &r->counter[i];
        if (!shown(a, c) || (a->limit && rows++ >= a->limit)) continue;
        printf("%-8s", c->gauge ? "gauge" : "counter");
        print_figures(c, &c->all, c->all.self, (double)(c->to_ns - c->from_ns));
        printf("  %s%s\n", plain_name(c->name),
               c->sampled    ? ""
               : c->at_edges ? "  (at the edges of calls: --by call)"
                             : "  (by the application)");
    }
    if (a->limit && rows > a->limit) printf("# and %zu more rows\n", rows - (size_t)a->limit);
}

static int by_amount(const void *a, const void *b)
{
    const struct rate_row *x = a, *y = b;
    double dx = x->rate.self + x->rate.sum, dy = y->rate.self + y->rate.sum;
    if (dx != dy) return dx < dy ? 1 : -1;
    return x->key < y->key ? -1 : x->key > y->key;
}

static void row_line(const struct counters_arguments *a, const struct fdr_file *file, const struct counter *c,
                     const struct rate_row *row)
{
    const struct rate *x = &row->rate;
    if (a->by == BY_CALL) {
        print_amount(x->total, c->unit);
        print_amount(x->self, c->unit);
        print_amount(mean(x), c->unit);
        print_amount(x->min, c->unit);
        print_amount(x->max, c->unit);
        printf(" %10llu  %s\n", (unsigned long long)x->readings, plain_name(region_text(file, row->key)));
        return;
    }
    print_figures(c, x, x->self, x->self_ns);
    if (a->by == BY_REGION_OF_COUNTER) {
        if (!c->gauge) print_amount(x->total, c->unit);
        printf("  %s\n", plain_name(region_text(file, row->key)));
    } else {
        printf("  %u %s\n", thread_id(file, c, row->key), plain_name(thread_name(file, c, row->key)));
    }
}

static void slice_line(const struct counters_arguments *a, const struct rates *r, const struct counter *c,
                       const struct rate_row *row)
{
    char text[HUMAN_BYTES];
    (void)a;
    printf("%14s", human_since(text, r->from_ns + row->key * r->slice_ns, r->from_ns));
    print_figures(c, &row->rate, row->rate.self, (double)r->slice_ns);
    printf("\n");
}

static void head(const struct counters_arguments *a, const struct counter *c)
{
    printf("\n%s (%s%s%s)\n", plain_name(c->name), c->gauge ? "gauge" : "counter", c->unit[0] ? ", " : "",
           plain_name(c->unit));
    if (a->by == BY_CALL) {
        printf("       amount  in it alone     per call          min          max calls read  region\n");
        return;
    }
    if (a->by == BY_TIME) printf("          from");
    printf(c->gauge ? "         mean          min          max   readings" : "       amount         rate     readings");
    if (a->by == BY_REGION_OF_COUNTER) printf(c->gauge ? "  region\n" : "   with called  region\n");
    else printf(a->by == BY_THREAD ? "  thread\n" : "\n");
}

static void rows_of_counter(const struct counters_arguments *a, const struct fdr_file *file, const struct rates *r,
                            uint32_t counter, struct rate_row *row, size_t count)
{
    const struct counter *c = &r->counter[counter];
    size_t limit = a->limit ? (size_t)a->limit : ROWS_SHOWN;
    head(a, c);
    if (a->by != BY_TIME) qsort(row, count, sizeof *row, by_amount);
    for (size_t i = 0; i < count && (a->by == BY_TIME || i < limit); i++)
        if (a->by == BY_TIME) slice_line(a, r, c, &row[i]);
        else row_line(a, file, c, &row[i]);
    if (a->by != BY_TIME && count > limit) printf("# and %zu more rows\n", count - limit);
}

static uint64_t since(uint64_t at, uint64_t start) { return at > start ? at - start : 0; }

/* Prints the covered part of the run: a small buffer may hold readings of only a part. */
static void print_reach(const struct rates *r)
{
    char from[HUMAN_BYTES], to[HUMAN_BYTES], run[HUMAN_BYTES];
    uint64_t first = UINT64_MAX, last = 0;
    for (uint32_t i = 0; i < r->count; i++) {
        const struct counter *c = &r->counter[i];
        if (!c->to_ns) continue;
        first = c->from_ns < first ? c->from_ns : first;
        last = c->to_ns > last ? c->to_ns : last;
    }
    if (!last) return;
    printf("# readings from %s to %s of a run of %s: %.0f %% of it\n", human_time(from, since(first, r->start_ns)),
           human_time(to, since(last, r->start_ns)), human_time(run, r->to_ns - r->start_ns),
           100.0 * (double)(last - first) / (double)(r->to_ns - r->start_ns));
}

static bool any_shown(const struct counters_arguments *a, const struct rates *r)
{
    for (uint32_t i = 0; i < r->count; i++)
        if (shown(a, &r->counter[i])) return true;
    return false;
}

static int print_text(const struct counters_arguments *a, struct fdr_file *file, struct rates *r)
{
    if (r->count) print_reach(r);
    if (r->count == 0) printf("# no counter was recorded; FDR_COUNTERS=default records some\n");
    else if (a->by == BY_COUNTER) counter_lines(a, r);
    else if (a->by == BY_REGION_OF_COUNTER)
        printf("# sampled: the amount between two readings of a thread, spread by the time that it spent in each "
               "region\n");
    for (size_t i = 0, next; a->by != BY_COUNTER && i < r->table.count; i = next) {
        uint32_t counter = r->table.row[i].counter;
        for (next = i + 1; next < r->table.count && r->table.row[next].counter == counter;) next++;
        if (shown(a, &r->counter[counter])) rows_of_counter(a, file, r, counter, r->table.row + i, next - i);
    }
    for (uint32_t i = 0; i < r->missing_count; i++) printf("# could not be counted: %s\n", plain_name(r->missing[i]));
    return finish_output();
}

/* ---- JSON ------------------------------------------------------------------------------------------------------- */

static void figures_json(json_t *o, const struct counter *c, const struct rate *r, double amount, double ns)
{
    json_object_set_new(o, "readings", json_u64(r->readings));
    if (c->gauge) {
        json_object_set_new(o, "mean", json_f64(mean(r)));
        json_object_set_new(o, "min", json_f64(r->min));
        json_object_set_new(o, "max", json_f64(r->max));
    } else {
        json_object_set_new(o, "amount", json_f64(amount));
        json_object_set_new(o, "per_second", json_f64(per_second(amount, ns)));
    }
}

/* The stretch of the run covered by readings. */
static json_t *covers_json(const struct rates *r, const struct counter *c)
{
    json_t *o = json_object();
    json_object_set_new(o, "from_ns", json_u64(c->from_ns));
    json_object_set_new(o, "to_ns", json_u64(c->to_ns));
    json_object_set_new(o, "run_from_ns", json_u64(r->start_ns));
    json_object_set_new(o, "run_to_ns", json_u64(r->to_ns));
    json_object_set_new(o, "share", json_f64((double)(c->to_ns - c->from_ns) / (double)(r->to_ns - r->start_ns)));
    return o;
}

static json_t *counter_json(const struct rates *r, const struct counter *c)
{
    json_t *o = json_object();
    json_object_set_new(o, "counter", json_text(c->name));
    json_object_set_new(o, "unit", json_text(c->unit));
    json_object_set_new(o, "kind", json_text(c->gauge ? "gauge" : "counter"));
    json_object_set_new(o, "covers", covers_json(r, c));
    return o;
}

static json_t *row_json(const struct counters_arguments *a, const struct fdr_file *file, const struct rates *r,
                        const struct rate_row *row)
{
    const struct counter *c = &r->counter[row->counter];
    json_t *o = counter_json(r, c);
    if (a->by == BY_TIME) {
        json_object_set_new(o, "from_ns", json_u64(r->from_ns + row->key * r->slice_ns));
        json_object_set_new(o, "to_ns", json_u64(r->from_ns + (row->key + 1) * r->slice_ns));
        figures_json(o, c, &row->rate, row->rate.self, (double)r->slice_ns);
        return o;
    }
    if (a->by == BY_THREAD) {
        json_object_set_new(o, "thread", json_u64(thread_id(file, c, row->key)));
        json_object_set_new(o, "name", json_text(thread_name(file, c, row->key)));
    } else {
        json_object_set_new(o, "id", row->key >= NOT_OVER ? json_null() : json_u64(row->key));
        json_object_set_new(o, "region", json_text(region_text(file, row->key)));
        if (a->by == BY_CALL) {
            const struct rate *x = &row->rate;
            json_object_set_new(o, "calls_read", json_u64(x->readings));
            json_object_set_new(o, "amount", json_f64(x->total));
            json_object_set_new(o, "self", json_f64(x->self));
            json_object_set_new(o, "per_call", json_f64(mean(x)));
            json_object_set_new(o, "min", json_f64(x->min));
            json_object_set_new(o, "max", json_f64(x->max));
            return o;
        }
        if (!c->gauge) json_object_set_new(o, "with_called", json_f64(row->rate.total));
        json_object_set_new(o, "observed_ns", json_f64(row->rate.self_ns));
    }
    figures_json(o, c, &row->rate, row->rate.self, row->rate.self_ns);
    return o;
}

static json_t *all_json(const struct rates *r, const struct counter *c)
{
    json_t *o = counter_json(r, c);
    json_object_set_new(o, "sampled", json_boolean(c->sampled));
    json_object_set_new(o, "at_edges", json_boolean(c->at_edges));
    json_object_set_new(o, "from_ns", json_u64(c->from_ns));
    json_object_set_new(o, "to_ns", json_u64(c->to_ns));
    figures_json(o, c, &c->all, c->all.self, (double)(c->to_ns - c->from_ns));
    return o;
}

static int print_as_json(const struct counters_arguments *a, const struct fdr_file *file, const struct rates *r)
{
    json_t *array = json_array();
    if (a->by == BY_COUNTER)
        for (uint32_t i = 0; i < r->count && (!a->limit || json_array_size(array) < a->limit); i++)
            if (shown(a, &r->counter[i])) json_array_append_new(array, all_json(r, &r->counter[i]));
    for (size_t i = 0; a->by != BY_COUNTER && i < r->table.count; i++)
        if (shown(a, &r->counter[r->table.row[i].counter]))
            json_array_append_new(array, row_json(a, file, r, &r->table.row[i]));
    return print_json(array);
}

int print_counters(const struct counters_arguments *a, struct fdr_file *file)
{
    static struct rates r;
    if (!rates_gather(&r, file, a->by, (uint32_t)a->slices)) {
        rates_free(&r);
        complain("%s: out of memory", a->path);
        return COULD_NOT;
    }
    if (r.count && !any_shown(a, &r)) complain("%s: no counter matches '%s'", a->path, a->glob);
    int status = a->json ? print_as_json(a, file, &r) : print_text(a, file, &r);
    rates_free(&r);
    return status;
}
