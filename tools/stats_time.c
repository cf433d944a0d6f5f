/* SPDX-License-Identifier: MIT */
/* fdr stats --by time: equal slices of the run over all threads, a line for each region. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/common/fast_output.h"
#include "tools/common/short_names.h"
#include "tools/common/terminal.h"
#include "tools/common/time_slices.h"
#include "tools/stats.h"

enum { SLICES = 32, ROWS = 20, NAME = 28 };

struct row {
    uint32_t region;
    double exclusive_ns, greatest;
};

static int by_time(const void *x, const void *y)
{
    const struct row *a = x, *b = y;
    return a->exclusive_ns < b->exclusive_ns ? 1 : a->exclusive_ns > b->exclusive_ns ? -1 : 0;
}

static const struct slice_cell *cells_of(const struct time_slices *s, uint32_t region)
{
    return &s->cell[region * s->count];
}

/* Regions that took time, those with most of it first. NULL: out of memory. */
static struct row *rows_of(const struct time_slices *s, const struct fdr_select *select, size_t *count)
{
    struct row *row = calloc(s->regions + 1, sizeof *row);
    *count = 0;
    for (uint32_t id = 0; row && id < s->regions; id++) {
        struct row r = {.region = id};
        if (select->regions && (id >= select->region_count || !select->regions[id])) continue;
        for (size_t i = 0; i < s->count; i++) {
            const struct slice_cell *c = &cells_of(s, id)[i];
            r.exclusive_ns += c->exclusive_ns;
            if (c->exclusive_ns > r.greatest) r.greatest = c->exclusive_ns;
        }
        if (r.exclusive_ns > 0) row[(*count)++] = r;
    }
    if (row) qsort(row, *count, sizeof *row, by_time);
    return row;
}

/* The time per call in the first and in the last quarter of the slices with calls. */
static void paces(const struct time_slices *s, uint32_t region, double *first, double *last)
{
    struct slice_cell a = {0}, b = {0};
    for (size_t i = 0; i < s->count; i++) {
        struct slice_cell *to = 4 * i < s->count ? &a : 4 * i >= 3 * s->count ? &b : NULL;
        if (!to) continue;
        to->calls += cells_of(s, region)[i].calls;
        to->inclusive_ns += cells_of(s, region)[i].inclusive_ns;
    }
    *first = a.calls >= 1 ? a.inclusive_ns / a.calls : 0;
    *last = b.calls >= 1 ? b.inclusive_ns / b.calls : 0;
}

static void out_pace(double ns)
{
    if (ns > 0) out_time((uint64_t)ns);
    else out_text_wide("- ", 12);
}

static void time_line(const struct fdr_file *file, const struct time_slices *s, const struct row *r)
{
    char name[NAME * 4 + 4];
    double first, last;
    paces(s, r->region, &first, &last);
    out_time((uint64_t)r->exclusive_ns);
    out_text(" ");
    for (size_t i = 0; i < s->count; i++) out_text(spark(cells_of(s, r->region)[i].exclusive_ns, r->greatest));
    out_pace(r->region ? first : 0);
    out_pace(r->region ? last : 0);
    out_text("  ");
    out_cell(r->region ? fit(name, shown_region(file, r->region), NAME) : "[all others]");
    out_char('\n');
}

static void time_json(const struct fdr_file *file, const struct time_slices *s, const struct row *r)
{
    out_text("{\"region\": ");
    if (r->region) out_json(region_name(file, r->region));
    else out_text("null");
    key_u64("from_ns", s->from_ns);
    key_u64("to_ns", s->to_ns);
    out_text(s->epochs ? ", \"exact\": true, \"slices\": [" : ", \"exact\": false, \"slices\": [");
    for (size_t i = 0; i < s->count; i++) {
        const struct slice_cell *c = &cells_of(s, r->region)[i];
        out_text(i ? ", [" : "[");
        out_u64((uint64_t)(c->calls + 0.5));
        out_char(',');
        out_u64((uint64_t)(c->inclusive_ns + 0.5));
        out_char(',');
        out_u64((uint64_t)(c->exclusive_ns + 0.5));
        out_char(']');
    }
    out_text("]}");
}

static void head(const struct time_slices *s)
{
    char slice[HUMAN_BYTES], epoch[HUMAN_BYTES];
    out_text(s->epochs ? "# exact totals of epochs, over all threads; "
                       : "# from the calls that are kept, over all threads; ");
    out_text("each column is ");
    out_text(human_time(slice, (s->to_ns - s->from_ns) / s->count));
    if (s->epochs && s->epoch_ns > (double)(s->to_ns - s->from_ns) / (double)s->count) {
        out_text("\n# old epochs are longer, up to ");
        out_text(human_time(epoch, (uint64_t)s->epoch_ns));
        out_text(": within one, time is spread evenly");
    }
    out_text("\n   exclusive ");
    out_text("over the run, from first to last");
    out_text(" mean, first   and last  region\n");
}

int print_times(const struct stats_arguments *a, struct fdr_file *file, const struct fdr_select *select)
{
    struct time_slices s;
    size_t count;
    if (!time_slices_build(&s, file, select, SLICES)) return out_of_memory(a);
    struct row *row = rows_of(&s, select, &count);
    size_t shown = a->json || a->limit_given || a->all || count < ROWS ? limited(a, count) : ROWS;
    if (a->json) out_char('[');
    else head(&s);
    for (size_t i = 0; row && i < shown; i++) {
        if (a->json) out_text(i ? ",\n" : "\n"), time_json(file, &s, &row[i]);
        else time_line(file, &s, &row[i]);
    }
    if (a->json) out_text("\n]\n");
    else more_rows(count, shown);
    free(row);
    time_slices_free(&s);
    return row ? out_finish() : out_of_memory(a);
}
