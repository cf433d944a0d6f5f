/* SPDX-License-Identifier: MIT */
/* Shortens the names of functions for tables, and finds copies of one function. */
#include "tools/common/short_names.h"

#include <stdlib.h>
#include <string.h>

#include "tools/common/cxx_name.h"

static bool full_names;

static const struct argp_option options[] = {
    {"full-names", 0x2000, 0, 0, "Whole names of C++ functions in tables (JSON and TSV always have them)", 2}, {0}};

static error_t parse(int key, char *text, struct argp_state *state)
{
    (void)text;
    (void)state;
    if (key != options[0].key) return ARGP_ERR_UNKNOWN;
    full_names = true;
    return 0;
}

const struct argp names_argp = {options, parse, NULL, NULL, NULL, NULL, NULL};

/* ---- short names of one file ------------------------------------------------------------------------------------- */

static struct {
    const struct fdr_file *file;
    char **name; /* by region; NULL: the whole name */
    size_t count;
} known;

struct order {
    const char *shown, *whole;
    uint32_t region;
};

static int by_shown(const void *a, const void *b)
{
    const struct order *x = a, *y = b;
    int order = strcmp(x->shown, y->shown);
    return order ? order : strcmp(x->whole, y->whole);
}

/* Of different functions that share a short name, all get their parameters, or in the second round their whole name.
 * False: out of memory. */
static bool tell_apart(struct order *order, bool parameters)
{
    size_t next;
    for (uint32_t id = 1; id <= known.count; id++) {
        const char *whole = region_name(known.file, id);
        order[id - 1] = (struct order){known.name[id] ? known.name[id] : whole, whole, id};
    }
    qsort(order, known.count, sizeof *order, by_shown);
    for (size_t i = 0; i < known.count; i = next) {
        for (next = i + 1; next < known.count && !strcmp(order[i].shown, order[next].shown);) next++;
        if (!strcmp(order[i].whole, order[next - 1].whole)) continue; /* sorted: all are equal */
        for (size_t k = i; k < next; k++) {
            char **name = &known.name[order[k].region];
            char *longer = *name && parameters ? cxx_name_short(order[k].whole, true) : NULL;
            if (*name && parameters && !longer) return false;
            free(*name);
            *name = longer;
        }
    }
    return true;
}

/* Without memory, names stay whole. */
static void build(const struct fdr_file *file)
{
    size_t count = fdr_definition_count(file, FDR_REGION_DEFINITION);
    struct order *order = calloc(count + 1, sizeof *order);
    short_names_forget(known.file);
    known.file = file;
    known.name = calloc(count + 1, sizeof *known.name);
    known.count = known.name ? count : 0;
    bool good = order && known.name;
    for (uint32_t id = 1; good && id <= count; id++) {
        const struct fdr_definition *d = fdr_definition(file, FDR_REGION_DEFINITION, id);
        if (!d->address) continue;
        known.name[id] = cxx_name_short(d->name, false);
        good = known.name[id] != NULL;
    }
    good = good && tell_apart(order, true) && tell_apart(order, false);
    free(order);
    if (good) return;
    short_names_forget(file);
    known.file = file;
}

void short_names_forget(const struct fdr_file *file)
{
    if (known.file != file) return;
    for (size_t id = 1; id <= known.count; id++) free(known.name[id]);
    free(known.name);
    memset(&known, 0, sizeof known);
}

const char *shown_region(const struct fdr_file *file, uint32_t region)
{
    if (!full_names && known.file != file) build(file);
    if (full_names || region > known.count || !known.name[region]) return region_name(file, region);
    return known.name[region];
}

const char *plain_shown(const struct fdr_file *file, uint32_t region)
{
    const char *name = shown_region(file, region);
    return *name ? plain_name(name) : "\"\"";
}

const char *shown_event(const struct fdr_file *file, const struct fdr_read_event *event)
{
    bool call = (event->kind == FDR_ENTER || event->kind == FDR_LEAVE) && !event->reduced;
    return call ? shown_region(file, event->id) : event_name(file, event);
}

/* ---- copies of one function -------------------------------------------------------------------------------------- */

static int by_function(const void *a, const void *b, void *file)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    const struct fdr_definition *p = fdr_definition(file, FDR_REGION_DEFINITION, x),
                                *q = fdr_definition(file, FDR_REGION_DEFINITION, y);
    int order = strcmp(p->name, q->name);
    if (!order) order = strcmp(p->file, q->file);
    if (!order) order = p->line < q->line ? -1 : p->line > q->line;
    return order ? order : x < y ? -1 : x > y;
}

static bool is_copy(const struct fdr_file *file, uint32_t a, uint32_t b)
{
    const struct fdr_definition *p = fdr_definition(file, FDR_REGION_DEFINITION, a),
                                *q = fdr_definition(file, FDR_REGION_DEFINITION, b);
    return p->address && q->address && p->file[0] && p->line && p->line == q->line && !strcmp(p->name, q->name) &&
           !strcmp(p->file, q->file);
}

uint32_t *same_functions(const struct fdr_file *file)
{
    size_t count = fdr_definition_count(file, FDR_REGION_DEFINITION);
    uint32_t *same = calloc(count + 1, sizeof *same), *order = calloc(count + 1, sizeof *order);
    for (uint32_t i = 0; same && order && i < count; i++) order[i] = i + 1;
    if (same && order && count) qsort_r(order, count, sizeof *order, by_function, (void *)file);
    for (size_t i = 0, first = 0; same && order && i < count; i++) {
        if (i && !is_copy(file, order[first], order[i])) first = i;
        same[order[i]] = order[first];
    }
    if (!order) {
        free(same);
        same = NULL;
    }
    free(order);
    return same;
}

const char *plain_function(const char *name)
{
    enum { COLUMNS = 100 };
    char text[COLUMNS * 4 + 4];
    char *brief = full_names ? NULL : cxx_name_short(name, false);
    const char *shown = plain_name(full_names ? name : fit(text, brief ? brief : name, COLUMNS));
    free(brief);
    return shown;
}
