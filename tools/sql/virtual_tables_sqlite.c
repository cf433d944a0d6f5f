/* SPDX-License-Identifier: MIT */
/* What SQLite calls for all tables: which rows a query wants, and one row after another. */
#include <math.h>
#include <stdlib.h>

#include "tools/common/utf8.h"
#include "tools/sql/sql_cursor.h"

static const struct sql_table *table_at(size_t i)
{
    if (i == 0) return &sql_call_table;
    if (i <= 5) return &sql_account_tables[i - 1];
    if (i <= 9) return &sql_origin_tables[i - 6];
    if (i <= 15) return &sql_point_tables[i - 10];
    return i == 16 ? &sql_sample_table : NULL;
}

const char *sql_table_name(size_t index, const char **columns)
{
    const struct sql_table *t = table_at(index);
    if (t && columns) *columns = t->columns;
    return t ? t->name : NULL;
}

/* ---- for all tables ---- */

/* A copy in UTF-8. */
static char *mended(const char *text)
{
    sqlite3_str *copy = sqlite3_str_new(NULL);
    while (*text) {
        size_t bytes = character_bytes((const unsigned char *)text);
        sqlite3_str_append(copy, bytes ? text : "\xef\xbf\xbd", bytes ? (int)bytes : 3);
        text += bytes ? bytes : 1;
    }
    return sqlite3_str_finish(copy);
}

void sql_text(sqlite3_context *out, const char *text)
{
    unsigned char any = 0;
    size_t length = 0;
    for (; text[length]; length++) any |= (unsigned char)text[length];
    if (any < 0x80) sqlite3_result_text(out, text, (int)length, SQLITE_STATIC);
    else sqlite3_result_text(out, mended(text), -1, sqlite3_free);
}

void sql_own_text(sqlite3_context *out, char *text)
{
    if (text) sqlite3_result_text(out, mended(text), -1, sqlite3_free);
    sqlite3_free(text);
}

void sql_value(sqlite3_context *out, enum fdr_value_type type, uint64_t bits)
{
    double real;
    memcpy(&real, &bits, sizeof real);
    if (type == FDR_VALUE_U64) sql_number(out, bits);
    else if (type == FDR_VALUE_I64) sqlite3_result_int64(out, (sqlite3_int64)bits);
    else if (!isnan(real)) sqlite3_result_double(out, real);
}

void sql_array(struct sql_cursor *c, const void *rows, size_t count)
{
    c->index = SIZE_MAX; /* before the first row */
    c->rows = rows;
    c->count = count;
}

bool sql_next_in_array(struct sql_cursor *c) { return ++c->index < c->count; }

void sql_events(struct sql_cursor *c, uint32_t classes)
{
    const struct sql_wanted *w = &c->wanted;
    struct fdr_select select = {.classes = classes,
                                .from_ns = w->from_ns,
                                .to_ns = w->to_ns,
                                .one_location_after_another = true,
                                .progress = c->recordings->progress,
                                .progress_context = c->recordings->progress_context};
    select.locations = w->location_given ? &w->location : NULL;
    select.location_count = w->location_given;
    uint8_t *regions = w->id_given ? calloc((size_t)w->id + 1, 1) : NULL;
    if (regions) regions[w->id] = 1;
    select.regions = regions;
    select.region_count = regions ? (size_t)w->id + 1 : 0;
    free(c->regions);
    c->regions = regions;
    c->iter = fdr_iter_open(c->file, &select);
    c->no_memory |= !c->iter;
}

bool sql_next_event(struct sql_cursor *c)
{
    if (c->iter && fdr_iter_next(c->iter, &c->event)) return true;
    fdr_iter_close(c->iter);
    c->iter = NULL;
    return false;
}

/* ---- a table of a connection ---- */

struct virtual
{
    sqlite3_vtab base;
    const struct sql_table *table;
    const struct sql_recordings *recordings;
};
struct module {
    const struct sql_table *table;
    const struct sql_recordings *recordings;
};

static int on_connect(sqlite3 *db, void *data, int count, const char *const *argument, sqlite3_vtab **out, char **error)
{
    const struct module *m = data;
    (void)count, (void)argument, (void)error;
    char *schema = sqlite3_mprintf("create table x(recording, rank, %s)", m->table->columns);
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

/* ---- which rows ---- */

/* The letter by which sql_filter knows a condition; 0: SQLite alone checks it. */
static char letter_of(const struct sql_table *t, int column, unsigned char op)
{
    bool equal = op == SQLITE_INDEX_CONSTRAINT_EQ;
    bool least = op == SQLITE_INDEX_CONSTRAINT_GE || op == SQLITE_INDEX_CONSTRAINT_GT;
    bool most = op == SQLITE_INDEX_CONSTRAINT_LE || op == SQLITE_INDEX_CONSTRAINT_LT;
    if (equal && column == SQL_RECORDING) return 'r';
    if (equal && column == SQL_RANK) return 'k';
    if (column <= SQL_RANK) return 0;
    if (equal && column == t->location) return 'l';
    if (equal && column == t->id) return 'i';
    if (column == t->time) return equal ? 'e' : least ? 'f' : most ? 't' : 0;
    return 0;
}

/* Rows and work of a query, as far as letters lower them; rough. */
static void estimate(const struct sql_table *t, const char *letters, sqlite3_index_info *info)
{
    double rows = t->long_list ? 1e6 : 1000, work = rows;
    for (; *letters; letters++) {
        bool direct = *letters == 'i' && !t->long_list;
        double less = direct ? rows : *letters == 'i' ? 20 : strchr("rkl", *letters) ? 4 : 2;
        rows /= less;
        work /= *letters == 'i' && !direct ? 1.5 : less;
    }
    info->estimatedCost = work + 1;
    info->estimatedRows = (sqlite3_int64)rows + 1;
}

/* Can calls come in the wanted order? Then *orders has a letter for each column, a capital one if it descends. Sorting
 * millions of rows costs SQLite twice the time. */
static bool known_order(const struct sql_table *t, const sqlite3_index_info *info, char orders[SQL_ORDERS + 1])
{
    if (t != &sql_call_table || info->nOrderBy > SQL_ORDERS) return false;
    for (int i = 0; i < info->nOrderBy; i++) {
        int column = info->aOrderBy[i].iColumn;
        if (!sql_call_groups(column)) return false;
        orders[i] = (char)((info->aOrderBy[i].desc ? 'A' : 'a') + column);
    }
    return info->nOrderBy > 0;
}

static int on_best_index(sqlite3_vtab *v, sqlite3_index_info *info)
{
    const struct sql_table *t = ((const struct virtual *)v)->table;
    char letters[SQL_ARGUMENTS + 1] = "", orders[SQL_ORDERS + 1] = "";
    int used = 0;
    for (int i = 0; i < info->nConstraint && used < SQL_ARGUMENTS; i++) {
        char letter = letter_of(t, info->aConstraint[i].iColumn, info->aConstraint[i].op);
        if (!letter || !info->aConstraint[i].usable || strchr(letters, letter)) continue;
        letters[used++] = letter;
        info->aConstraintUsage[i].argvIndex = used;
    }
    estimate(t, letters, info);
    info->orderByConsumed = known_order(t, info, orders);
    info->idxStr = sqlite3_mprintf("%s %llx %s", letters, (unsigned long long)info->colUsed,
                                   info->orderByConsumed ? orders : "");
    info->needToFreeIdxStr = 1;
    return info->idxStr ? SQLITE_OK : SQLITE_NOMEM;
}

static void want_recordings(struct sql_cursor *c, bool by_rank, sqlite3_int64 value)
{
    for (size_t i = c->at; i < c->end; i++) {
        bool right = by_rank ? c->recordings->recording[i].rank == value : (sqlite3_int64)i + 1 == value;
        if (!right) continue;
        size_t end = i + 1;
        while (by_rank && end < c->end && c->recordings->recording[end].rank == value) end++;
        for (size_t k = end; by_rank && k < c->end; k++)
            if (c->recordings->recording[k].rank == value) return; /* not in one piece: SQLite sorts them out */
        c->at = i;
        c->end = end;
        return;
    }
    c->end = c->at;
}

/* One condition. SQLite checks each row once more, so more rows than wanted do no harm. */
static void want(struct sql_cursor *c, char letter, sqlite3_value *value)
{
    struct sql_wanted *w = &c->wanted;
    int type = sqlite3_value_type(value);
    sqlite3_int64 n = sqlite3_value_int64(value);
    bool is_id = n >= 0 && n < UINT32_MAX, whole = type == SQLITE_INTEGER;
    if (type == SQLITE_NULL) w->nothing = true; /* no comparison with NULL is true */
    if (!whole && !(type == SQLITE_FLOAT && (letter == 'f' || letter == 't'))) return;
    uint64_t time = n < 0 ? 0 : (uint64_t)n;
    switch (letter) {
    case 'r': want_recordings(c, false, n); break;
    case 'k': want_recordings(c, true, n); break;
    case 'l': w->location_given = is_id, w->location = (uint32_t)n, w->nothing |= !is_id; break;
    case 'i': w->id_given = is_id && n <= 1 << 28, w->id = (uint32_t)n, w->nothing |= !is_id; break;
    case 'e': w->from_ns = w->to_ns = time; break;
    case 'f': w->from_ns = time; break;
    default: w->to_ns = time; break;
    }
}

/* ---- rows ---- */

static int on_open(sqlite3_vtab *v, sqlite3_vtab_cursor **out)
{
    const struct virtual *of = (const struct virtual *)v;
    struct sql_cursor *c = calloc(1, sizeof *c);
    if (!c) return SQLITE_NOMEM;
    c->table = of->table;
    c->recordings = of->recordings;
    *out = &c->base;
    return SQLITE_OK;
}

static int on_close(sqlite3_vtab_cursor *base)
{
    struct sql_cursor *c = (struct sql_cursor *)base;
    fdr_iter_close(c->iter);
    sql_grouped_free(c);
    free(c->frame);
    free(c->ordinal);
    free(c->regions);
    free(c);
    return SQLITE_OK;
}

/* Goes to the next row, in the next recording if need be. */
static void go_on(struct sql_cursor *c)
{
    while (!c->table->next(c)) {
        if (++c->at >= c->end || c->no_memory) break;
        sql_begin(c);
    }
}

void sql_begin(struct sql_cursor *c)
{
    c->file = c->recordings->recording[c->at].file;
    c->table->begin(c);
}

static int on_next(sqlite3_vtab_cursor *base)
{
    struct sql_cursor *c = (struct sql_cursor *)base;
    c->row++;
    if (c->grouped) sql_grouped_next(c);
    else go_on(c);
    return c->no_memory ? SQLITE_NOMEM : SQLITE_OK;
}

/* Recordings come one after another, and so do the locations of each. */
static bool comes_anyway(const struct sql_cursor *c)
{
    bool one = c->end - c->at == 1; /* recording */
    int i = 0;
    for (; i < c->orders; i++) {
        int column = c->order[i].column;
        bool settled = one && (column == SQL_RECORDING || column == SQL_RANK);
        if (settled) continue;
        if (column != SQL_RECORDING || c->order[i].descending) break;
        one = true; /* at a time */
    }
    bool location = i + 1 == c->orders && one && c->order[i].column == c->table->location && !c->order[i].descending;
    return i == c->orders || location;
}

static void read_orders(struct sql_cursor *c, const char *orders)
{
    for (c->orders = 0; orders[c->orders]; c->orders++) {
        char letter = orders[c->orders];
        bool descending = letter < 'a';
        c->order[c->orders] = (struct sql_order){letter - (descending ? 'A' : 'a'), descending};
    }
}

static int on_filter(sqlite3_vtab_cursor *base, int unused, const char *letters, int count, sqlite3_value **value)
{
    struct sql_cursor *c = (struct sql_cursor *)base;
    fdr_iter_close(c->iter);
    sql_grouped_free(c);
    c->iter = NULL;
    c->row = 0;
    c->at = 0;
    c->end = c->recordings->count;
    char *orders;
    (void)unused;
    c->wanted = (struct sql_wanted){.columns = strtoull(strchr(letters, ' '), &orders, 16)};
    read_orders(c, orders + 1);
    for (int i = 0; i < count; i++) want(c, letters[i], value[i]);
    if (c->wanted.nothing) c->end = c->at;
    if (c->at >= c->end) return SQLITE_OK;
    if (c->orders && !comes_anyway(c)) {
        sql_group_calls(c);
        return c->no_memory ? SQLITE_NOMEM : SQLITE_OK;
    }
    sql_begin(c);
    return on_next(base);
}

static int on_eof(sqlite3_vtab_cursor *base)
{
    const struct sql_cursor *c = (const struct sql_cursor *)base;
    return c->at >= c->end;
}

static int on_column(sqlite3_vtab_cursor *base, sqlite3_context *out, int column)
{
    const struct sql_cursor *c = (const struct sql_cursor *)base;
    int rank = c->recordings->recording[c->at].rank;
    if (column == SQL_RECORDING) sql_number(out, c->at + 1);
    else if (column > SQL_RANK && c->grouped) sql_grouped_column(c, out, column);
    else if (column > SQL_RANK) c->table->column(c, out, column);
    else if (rank >= 0) sqlite3_result_int(out, rank);
    return SQLITE_OK;
}

static int on_row(sqlite3_vtab_cursor *base, sqlite3_int64 *row)
{
    *row = ((struct sql_cursor *)base)->row;
    return SQLITE_OK;
}

int sql_add_tables(sqlite3 *db, struct sql_recordings *r)
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
    const struct sql_table *t;
    for (size_t i = 0; (t = table_at(i)) && code == SQLITE_OK; i++) {
        struct module *m = malloc(sizeof *m);
        if (!m) return SQLITE_NOMEM;
        *m = (struct module){t, r};
        code = sqlite3_create_module_v2(db, t->name, &functions, m, free);
    }
    return code;
}
