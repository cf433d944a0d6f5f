/* SPDX-License-Identifier: MIT */
/* Recordings as virtual tables of SQLite. Every query reads a table from its begin to its end. */
#include "tools/sql_tables.h"

#include <stdlib.h>
#include <string.h>

struct cursor {
    sqlite3_vtab_cursor base;
    const struct table *table;
    const struct recordings *recordings;
    size_t at;         /* the recording */
    sqlite3_int64 row; /* of the whole table */
    bool end;
    struct fdr_file *file; /* recording[at] */
    size_t index, count;   /* rows of the file that are in an array */
    struct fdr_iter *iter; /* of calls */
    struct fdr_read_event event;
    const struct fdr_total *total;
};
struct table {
    const char *name, *columns;
    /* Begins with the next file; then one row at a time, false at the end of the file. */
    void (*begin)(struct cursor *c);
    bool (*next)(struct cursor *c);
    /* Column 0, the number of the recording, is the same in all tables. */
    void (*column)(const struct cursor *c, sqlite3_context *out, int column);
};

static void number(sqlite3_context *out, uint64_t value) { sqlite3_result_int64(out, (sqlite3_int64)value); }

/* Names live as long as the recording. */
static void text(sqlite3_context *out, const char *text) { sqlite3_result_text(out, text, -1, SQLITE_STATIC); }

static bool next_in_array(struct cursor *c) { return ++c->index < c->count; }

static void array(struct cursor *c, size_t count)
{
    c->index = SIZE_MAX; /* before the first row */
    c->count = count;
}

/* ---- calls ---- */

static void calls_begin(struct cursor *c)
{
    const struct fdr_select select = {.classes = 1u << FDR_IN_REGION, .one_location_after_another = true};
    c->iter = fdr_iter_open(c->file, &select);
}

static bool calls_next(struct cursor *c)
{
    while (c->iter && fdr_iter_next(c->iter, &c->event))
        if (c->event.kind == FDR_ENTER) return true;
    fdr_iter_close(c->iter);
    c->iter = NULL;
    return false;
}

static const char *call_name(const struct cursor *c)
{
    const struct fdr_read_event *e = &c->event;
    return e->filtered ? "[filtered]" : e->not_over ? "[open]" : e->reduced ? "[reduced]" : region_name(c->file, e->id);
}

static void calls_column(const struct cursor *c, sqlite3_context *out, int column)
{
    const struct fdr_read_event *e = &c->event;
    switch (column) {
    case 1: number(out, e->location); break;
    case 2: number(out, e->time_ns); break;
    case 3:
        if (!e->open) number(out, e->duration_ns);
        break; /* else NULL: it did not end */
    case 4: number(out, e->depth); break;
    case 5: number(out, e->id); break;
    default: text(out, call_name(c)); break;
    }
}

/* ---- totals ---- */

static void totals_begin(struct cursor *c) { array(c, fdr_totals(c->file, &c->total)); }

static void totals_column(const struct cursor *c, sqlite3_context *out, int column)
{
    const struct fdr_total *t = &c->total[c->index];
    const uint64_t value[] = {t->calls,  t->untimed, t->inclusive_ns, t->exclusive_ns,
                              t->min_ns, t->max_ns,  t->at_least};
    switch (column) {
    case 1: number(out, t->location); break;
    case 2: text(out, fdr_class_name(t->class_)); break;
    case 3: number(out, t->id); break;
    case 4: text(out, t->rest ? "[rest]" : fdr_id_name(c->file, t->class_, t->id)); break;
    default: number(out, value[column - 5]); break;
    }
}

/* ---- regions ---- */

static void regions_begin(struct cursor *c) { array(c, fdr_definition_count(c->file, FDR_REGION_DEFINITION)); }

static void regions_column(const struct cursor *c, sqlite3_context *out, int column)
{
    uint32_t id = (uint32_t)c->index + 1;
    const struct fdr_definition *d = fdr_definition(c->file, FDR_REGION_DEFINITION, id);
    switch (column) {
    case 1: number(out, id); break;
    case 2: text(out, d->name); break;
    case 3: text(out, d->file); break;
    default: number(out, d->line); break;
    }
}

/* ---- locations ---- */

static void locations_begin(struct cursor *c) { array(c, fdr_location_count(c->file)); }

static void locations_column(const struct cursor *c, sqlite3_context *out, int column)
{
    const struct fdr_location_info *l = fdr_location_info(c->file, c->index);
    const uint64_t value[] = {l->tid, l->live, l->start_ns, l->end_ns, l->from_ns, l->to_ns, l->open_count, l->samples};
    if (column == 1) number(out, l->id);
    else if (column == 2) text(out, l->name);
    else number(out, value[column - 3]);
}

static const struct table tables[] = {
    {"calls", "recording, location, enter_ns, duration_ns, depth, region, name", calls_begin, calls_next, calls_column},
    {"totals",
     "recording, location, class, id, name, calls, untimed, inclusive_ns, exclusive_ns, min_ns, max_ns, at_least",
     totals_begin, next_in_array, totals_column},
    {"regions", "recording, id, name, file, line", regions_begin, next_in_array, regions_column},
    {"locations", "recording, id, name, tid, live, start_ns, end_ns, from_ns, to_ns, open, samples", locations_begin,
     next_in_array, locations_column},
};

/* ---- what SQLite calls ---- */

struct virtual
{
    sqlite3_vtab base;
    const struct table *table;
    const struct recordings *recordings;
};
struct module {
    const struct table *table;
    const struct recordings *recordings;
};

static int on_connect(sqlite3 *db, void *data, int count, const char *const *argument, sqlite3_vtab **out, char **error)
{
    const struct module *m = data;
    (void)count, (void)argument, (void)error;
    char *schema = sqlite3_mprintf("create table x(%s)", m->table->columns);
    int code = schema ? sqlite3_declare_vtab(db, schema) : SQLITE_NOMEM;
    struct virtual *v = code == SQLITE_OK ? calloc(1, sizeof *v) : NULL;
    sqlite3_free(schema);
    if (!v) return code == SQLITE_OK ? SQLITE_NOMEM : code;
    v->table = m->table;
    v->recordings = m->recordings;
    *out = &v->base;
    return SQLITE_OK;
}

static int on_disconnect(sqlite3_vtab *v)
{
    free(v);
    return SQLITE_OK;
}

static int on_best_index(sqlite3_vtab *v, sqlite3_index_info *info)
{
    (void)v;
    info->estimatedCost = 1e6;
    return SQLITE_OK;
}

static int on_open(sqlite3_vtab *v, sqlite3_vtab_cursor **out)
{
    const struct virtual *of = (const struct virtual *)v;
    struct cursor *c = calloc(1, sizeof *c);
    if (!c) return SQLITE_NOMEM;
    c->table = of->table;
    c->recordings = of->recordings;
    *out = &c->base;
    return SQLITE_OK;
}

static int on_close(sqlite3_vtab_cursor *base)
{
    struct cursor *c = (struct cursor *)base;
    fdr_iter_close(c->iter);
    free(c);
    return SQLITE_OK;
}

static int on_next(sqlite3_vtab_cursor *base)
{
    struct cursor *c = (struct cursor *)base;
    c->row++;
    while (!c->table->next(c)) {
        c->at++;
        c->end = c->at >= c->recordings->count;
        if (c->end) break;
        c->file = c->recordings->file[c->at];
        c->table->begin(c);
    }
    return SQLITE_OK;
}

static int on_filter(sqlite3_vtab_cursor *base, int index, const char *index_text, int count, sqlite3_value **value)
{
    struct cursor *c = (struct cursor *)base;
    (void)index, (void)index_text, (void)count, (void)value;
    fdr_iter_close(c->iter);
    c->iter = NULL;
    c->at = 0;
    c->row = 0;
    c->end = !c->recordings->count;
    if (c->end) return SQLITE_OK;
    c->file = c->recordings->file[0];
    c->table->begin(c);
    return on_next(base);
}

static int on_eof(sqlite3_vtab_cursor *base) { return ((struct cursor *)base)->end; }

static int on_column(sqlite3_vtab_cursor *base, sqlite3_context *out, int column)
{
    const struct cursor *c = (const struct cursor *)base;
    if (column == 0) number(out, c->at + 1);
    else c->table->column(c, out, column);
    return SQLITE_OK;
}

static int on_row(sqlite3_vtab_cursor *base, sqlite3_int64 *row)
{
    *row = ((struct cursor *)base)->row;
    return SQLITE_OK;
}

int add_tables(sqlite3 *db, struct recordings *r)
{
    static const sqlite3_module functions = {.xConnect = on_connect,
                                             .xBestIndex = on_best_index,
                                             .xDisconnect = on_disconnect,
                                             .xOpen = on_open,
                                             .xClose = on_close,
                                             .xFilter = on_filter,
                                             .xNext = on_next,
                                             .xEof = on_eof,
                                             .xColumn = on_column,
                                             .xRowid = on_row};
    int code = SQLITE_OK;
    for (size_t i = 0; i < sizeof tables / sizeof *tables && code == SQLITE_OK; i++) {
        struct module *m = malloc(sizeof *m);
        if (!m) return SQLITE_NOMEM;
        *m = (struct module){&tables[i], r};
        code = sqlite3_create_module_v2(db, tables[i].name, &functions, m, free);
    }
    return code;
}
