/* SPDX-License-Identifier: MIT */
/* fdr outliers: kept calls unlike their region's own distribution, with what ran inside and beside. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/common/short_names.h"
#include "tools/common/terminal.h"
#include "tools/findings/run_facts.h"

enum { ROWS = 12, BESIDE = 3, TEXT = 600 };

struct arguments {
    const char *path;
    const char *region;
    bool json, all;
};

static const struct argp_option options[] = {{"all", 'a', 0, 0, "Every call, not the longest 12 alone", 0},
                                             {"region", 'r', "NAME", 0, "Calls of this region only", 0},
                                             {"json", 'j', 0, 0, "As JSON", 0},
                                             {0}};

static error_t parse(int key, char *text, struct argp_state *state)
{
    struct arguments *a = state->input;
    switch (key) {
    case 'a': a->all = true; return 0;
    case 'r': a->region = text; return 0;
    case 'j': a->json = true; return 0;
    default: return one_file(state, key, text, &a->path);
    }
}

/* ---- beside: what the other threads were in ---------------------------------------------------------------------- */

struct beside {
    uint32_t location, region;
    uint64_t ns; /* of the outlier's time */
};

static uint64_t overlap(uint64_t from, uint64_t to, uint64_t start, uint64_t end)
{
    uint64_t a = from > start ? from : start, b = to < end ? to : end;
    return b > a ? b - a : 0;
}

/* For each other thread the innermost call that covers most of the outlier; the longest of them first. */
static size_t beside_of(const struct run_facts *f, const struct outlier_call *c, struct beside *to, size_t room)
{
    struct fdr_read_event e;
    size_t count = 0;
    uint64_t end = c->start_ns + c->duration_ns;
    struct fdr_select select = {.classes = 1u << FDR_IN_REGION,
                                .from_ns = c->start_ns,
                                .to_ns = end,
                                .min_duration_ns = c->duration_ns / 3,
                                .one_location_after_another = true};
    struct fdr_iter *i = fdr_iter_open(f->file, &select);
    while (i && fdr_iter_next(i, &e)) {
        if (e.kind != FDR_ENTER || e.location == c->location || e.reduced || !thread_facts(f, e.location)) continue;
        uint64_t ns = overlap(c->start_ns, end, e.time_ns, e.time_ns + e.duration_ns);
        if (3 * ns < c->duration_ns) continue;
        bool same = count && to[count - 1].location == e.location; /* an inner call says more */
        if (!same && count == room) continue;
        struct beside *row = same ? &to[count - 1] : &to[count++];
        if (!same || 2 * ns >= row->ns) *row = (struct beside){e.location, e.id, ns};
    }
    fdr_iter_close(i);
    return count;
}

/* ---- output ------------------------------------------------------------------------------------------------------ */

static void print_call(const struct run_facts *f, const struct outlier_call *c)
{
    char time[HUMAN_BYTES], usual[HUMAN_BYTES], since[HUMAN_BYTES], thread[LABEL_BYTES], text[TEXT];
    struct beside beside[BESIDE];
    const struct region_facts *r = &f->region[c->region];
    size_t count = beside_of(f, c, beside, BESIDE);
    printf("%12s  %8.0f x  %s  %.60s in %s\n", human_time(time, c->duration_ns),
           (double)c->duration_ns / (r->p50_ns > 0 ? r->p50_ns : 1), human_since(since, c->start_ns, f->start_ns),
           plain_shown(f->file, c->region), thread_label(f->file, c->location, thread));
    int used = c->inner == c->region ? snprintf(text, sizeof text, "inside: its own time, or many short calls")
                                     : snprintf(text, sizeof text, "inside: %.120s took %s",
                                                plain_shown(f->file, c->inner), human_time(usual, c->inner_ns));
    for (size_t i = 0; i < count && used > 0 && (size_t)used + 220 < sizeof text; i++)
        used += snprintf(text + used, sizeof text - (size_t)used, "%s %s was in %.100s for %s",
                         i ? "," : "; beside:", thread_label(f->file, beside[i].location, thread),
                         plain_shown(f->file, beside[i].region), human_time(usual, beside[i].ns));
    print_wrapped("", text);
}

static json_t *call_json(const struct run_facts *f, const struct outlier_call *c)
{
    struct beside beside[64];
    json_t *o = json_object(), *list = json_array();
    size_t count = beside_of(f, c, beside, 64);
    json_object_set_new(o, "location", json_u64(c->location));
    json_object_set_new(o, "region", json_text(region_name(f->file, c->region)));
    json_object_set_new(o, "depth", json_u64(c->depth));
    json_object_set_new(o, "start_ns", json_u64(c->start_ns));
    json_object_set_new(o, "duration_ns", json_u64(c->duration_ns));
    json_object_set_new(o, "median_ns", json_f64(f->region[c->region].p50_ns));
    json_object_set_new(o, "p99_ns", json_f64(f->region[c->region].p99_ns));
    json_object_set_new(o, "inside", c->inner == c->region ? json_null() : json_text(region_name(f->file, c->inner)));
    json_object_set_new(o, "inside_ns", c->inner == c->region ? json_null() : json_u64(c->inner_ns));
    for (size_t i = 0; i < count; i++) {
        json_t *row = json_object();
        json_object_set_new(row, "location", json_u64(beside[i].location));
        json_object_set_new(row, "region", json_text(region_name(f->file, beside[i].region)));
        json_object_set_new(row, "ns", json_u64(beside[i].ns));
        json_array_append_new(list, row);
    }
    json_object_set_new(o, "beside", list);
    return o;
}

static int by_duration(const void *x, const void *y)
{
    const struct outlier_call *a = x, *b = y;
    if (a->duration_ns != b->duration_ns) return a->duration_ns < b->duration_ns ? 1 : -1;
    return a->start_ns < b->start_ns ? -1 : a->start_ns > b->start_ns;
}

/* Leaves out calls that are most of an outlier inside of them, which says more, and other regions. */
static size_t choose_rows(const struct run_facts *f, const struct arguments *a, struct outlier_calls *o)
{
    size_t used = 0;
    bool *outer = calloc(o->count + 1, sizeof *outer);
    for (size_t i = 0; outer && i < o->count; i++) {
        uint32_t within = o->call[i].within;
        if (within != UINT32_MAX && 10 * o->call[i].duration_ns >= 9 * o->call[within].duration_ns)
            outer[within] = true;
    }
    for (size_t i = 0; outer && i < o->count; i++) {
        bool wanted = a->region ? !strcmp(region_name(f->file, o->call[i].region), a->region) : !outer[i];
        if (wanted) o->call[used++] = o->call[i];
    }
    free(outer);
    if (used) qsort(o->call, used, sizeof *o->call, by_duration);
    return used;
}

static void print_head(const struct run_facts *f, const struct outlier_calls *o, size_t rows)
{
    char text[TEXT], a[HUMAN_BYTES], b[HUMAN_BYTES];
    uint64_t all = 0, regions = 0;
    for (size_t id = 0; id < f->regions; id++)
        all += f->region[id].slow_calls, regions += f->region[id].slow_calls != 0;
    if (!all) {
        print_wrapped("", "no call is unlike the others of its region");
        return;
    }
    snprintf(
        text, sizeof text,
        "%s calls of %llu regions are unlike the others of their region: far longer, few, and nothing lies between. "
        "%s of them are kept one by one%s.",
        human_count(a, all), (unsigned long long)regions, human_count(b, o->count < all ? o->count : all),
        rows < o->count ? "; of those around one another the innermost is shown" : "");
    print_wrapped("", text);
    printf("%12s  %10s  %s\n", "took", "x median", "when, what, where");
}

static int tell(const struct arguments *a, const struct run_facts *f)
{
    struct outlier_calls o;
    outlier_calls_of(f, &o);
    size_t kept = o.count, count = choose_rows(f, a, &o), shown = a->all || count < ROWS ? count : ROWS;
    if (o.failed) {
        complain("%s: out of memory", a->path);
        free(o.call);
        return COULD_NOT;
    }
    o.count = kept;
    json_t *json = a->json ? json_array() : NULL;
    if (!json) print_head(f, &o, count);
    for (size_t i = 0; i < (json ? count : shown); i++) {
        explain_outlier(f, &o.call[i]);
        if (json) json_array_append_new(json, call_json(f, &o.call[i]));
        else print_call(f, &o.call[i]);
    }
    if (!json && shown < count) printf("# and %zu more: --all\n", count - shown);
    free(o.call);
    return json ? print_json(json) : finish_output();
}

int verb_outliers(int argc, char **argv)
{
    static const struct argp_child children[] = {{&names_argp, 0, NULL, 0}, {0}};
    static const struct argp argp = {options,
                                     parse,
                                     "FILE",
                                     "The kept calls that are unlike the others of their own region, the longest "
                                     "first: when, where, what ran inside, and what other threads did meanwhile.",
                                     children,
                                     NULL,
                                     NULL};
    struct arguments a = {0};
    struct run_facts f;
    int status = DONE;
    parse_arguments(&argp, argc, argv, &a);
    struct fdr_file *file = open_recording(a.path, &status);
    if (!file) return status;
    if (run_facts_of(file, a.path, &f)) {
        status = worse(status, tell(&a, &f));
        run_facts_free(&f);
    } else status = COULD_NOT;
    return worse(status, close_partly_read(file, a.path));
}
