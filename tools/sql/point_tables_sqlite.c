/* SPDX-License-Identifier: MIT */
/* Tables of the kept events that are no calls: messages, collectives, metrics, markers, user events, io. */
#include <stdlib.h>

#include "tools/common/utf8.h"
#include "tools/sql/sql_cursor.h"

enum { LOCATION = SQL_COMMON_COLUMNS, TIME, KIND, REST };

static void identity(sqlite3_context *out, uint64_t value)
{
    char text[17];
    sqlite3_snprintf(sizeof text, text, "%016llx", (unsigned long long)value);
    sqlite3_result_text(out, text, -1, SQLITE_TRANSIENT);
}

/* The first two columns of all. */
static bool place(const struct sql_cursor *c, sqlite3_context *out, int number)
{
    if (number == LOCATION) sql_number(out, c->event.location);
    else if (number == TIME) sql_number(out, c->event.time_ns);
    return number <= TIME;
}

static void field(sqlite3_context *out, const struct fdr_read_event *e, uint32_t index)
{
    if (index < e->field_count) sql_number(out, e->field[index]);
}

/* ---- messages ---- */

static int by_token(const void *x, const void *y)
{
    const struct sql_ordinal *a = x, *b = y;
    return (a->token > b->token) - (a->token < b->token);
}

/* Receives that were open tell their number by an event of its own. */
static void find_ordinals(struct sql_cursor *c)
{
    const struct fdr_select select = {.classes = 1u << FDR_IN_MESSAGE, .one_location_after_another = true};
    struct fdr_iter *iter = fdr_iter_open(c->file, &select);
    struct fdr_read_event e;
    size_t room = 0;
    c->ordinals = 0;
    while (iter && fdr_iter_next(iter, &e)) {
        if (e.kind != FDR_RESOLVE || e.field_count < 2) continue;
        if (c->ordinals == room) {
            struct sql_ordinal *more = realloc(c->ordinal, (room = room ? room * 2 : 64) * sizeof *more);
            c->no_memory |= !more;
            if (!more) break;
            c->ordinal = more;
        }
        c->ordinal[c->ordinals++] = (struct sql_ordinal){e.field[0], e.field[1]};
    }
    c->no_memory |= !iter;
    fdr_iter_close(iter);
    if (c->ordinals) qsort(c->ordinal, c->ordinals, sizeof *c->ordinal, by_token);
}

/* NULL, unless the number is known for sure. */
static void ordinal(const struct sql_cursor *c, sqlite3_context *out)
{
    const uint64_t ambiguous = (uint64_t)1 << 63;
    const struct fdr_read_event *e = &c->event;
    const struct sql_ordinal key = {.token = e->ordinal}, *found = NULL;
    if (e->ordinal_kind == FDR_ORDINAL_KNOWN) sql_number(out, e->ordinal);
    if (e->ordinal_kind == FDR_ORDINAL_OPEN && c->ordinals)
        found = bsearch(&key, c->ordinal, c->ordinals, sizeof key, by_token);
    if (found && !(found->ordinal & ambiguous)) sql_number(out, found->ordinal);
}

static void messages_begin(struct sql_cursor *c)
{
    find_ordinals(c);
    sql_events(c, 1u << FDR_IN_MESSAGE);
}

static bool messages_next(struct sql_cursor *c)
{
    while (sql_next_event(c))
        if (c->event.kind != FDR_RESOLVE) return true;
    return false;
}

static void messages_column(const struct sql_cursor *c, sqlite3_context *out, int number)
{
    enum { PEER = REST, TAG, BYTES, ORDINAL, COMM, COMM_NAME, IDENTITY };
    const struct fdr_read_event *e = &c->event;
    const struct fdr_comm_info *comm = fdr_comm_info(c->file, (uint32_t)e->field[2]);
    if (place(c, out, number)) return;
    switch (number) {
    case KIND: sql_text(out, fdr_kind_info(e->kind)->name); break;
    case PEER:
        if ((uint32_t)e->field[0] != UINT32_MAX) sql_number(out, (uint32_t)e->field[0]);
        break;
    case TAG: sqlite3_result_int64(out, (sqlite3_int64)e->field[1]); break;
    case BYTES: sql_number(out, e->field[3]); break;
    case ORDINAL: ordinal(c, out); break;
    case COMM: sql_number(out, e->field[2]); break;
    case COMM_NAME: sql_text(out, comm->id ? comm->name : "world"); break;
    default: identity(out, comm->identity); break;
    }
}

/* ---- collectives ---- */

static void collectives_begin(struct sql_cursor *c) { sql_events(c, 1u << FDR_IN_COLLECTIVE); }

static void collectives_column(const struct sql_cursor *c, sqlite3_context *out, int number)
{
    enum { OPERATION = REST, ORDINAL, ROOT, SENT, RECEIVED, COMM, COMM_NAME, IDENTITY };
    const struct fdr_read_event *e = &c->event;
    const struct fdr_comm_info *comm = e->field_count ? fdr_comm_info(c->file, (uint32_t)e->field[0]) : NULL;
    if (place(c, out, number)) return;
    switch (number) {
    case KIND: sql_text(out, fdr_kind_info(e->kind)->phase); break;
    case OPERATION: sql_text(out, fdr_id_name(c->file, e->class_, e->id)); break;
    case ORDINAL: ordinal(c, out); break;
    case ROOT:
        if (e->field_count > 1 && (int64_t)e->field[1] >= 0) sql_number(out, e->field[1]);
        break;
    case SENT: field(out, e, 2); break;
    case RECEIVED: field(out, e, 3); break;
    case COMM: field(out, e, 0); break;
    case COMM_NAME:
        if (comm) sql_text(out, comm->id ? comm->name : "world");
        break;
    default:
        if (comm) identity(out, comm->identity);
        break;
    }
}

/* ---- metrics, markers, user events ---- */

static void metrics_begin(struct sql_cursor *c) { sql_events(c, 1u << FDR_IN_METRIC); }

static void metrics_column(const struct sql_cursor *c, sqlite3_context *out, int number)
{
    enum { VALUE = KIND, NAME, UNIT, COUNTER, ID };
    const struct fdr_read_event *e = &c->event;
    const struct fdr_metric_info *m = fdr_metric_info(c->file, e->id);
    if (place(c, out, number)) return;
    switch (number) {
    case VALUE: sql_value(out, m->type, e->field[0]); break;
    case NAME: sql_text(out, m->name); break;
    case UNIT: sql_text(out, m->unit); break;
    case COUNTER: sql_number(out, m->counter); break;
    default: sql_number(out, e->id); break;
    }
}

static void markers_begin(struct sql_cursor *c) { sql_events(c, 1u << FDR_IN_MARKER); }

static void markers_column(const struct sql_cursor *c, sqlite3_context *out, int number)
{
    enum { VALUE = KIND, NAME, ID };
    const struct fdr_read_event *e = &c->event;
    if (place(c, out, number)) return;
    if (number == VALUE) field(out, e, 0);
    else if (number == NAME) sql_text(out, fdr_id_name(c->file, e->class_, e->id));
    else sql_number(out, e->id);
}

static void events_begin(struct sql_cursor *c) { sql_events(c, 1u << FDR_IN_USER | 1u << FDR_IN_TASK); }

/* JSON in UTF-8. */
static void add_key(sqlite3_str *text, const char *name)
{
    sqlite3_str_appendchar(text, 1, '"');
    for (size_t n; *name; name += n ? n : 1) {
        n = character_bytes((const unsigned char *)name);
        if (!n) sqlite3_str_appendall(text, "\xef\xbf\xbd");
        else if (*name == '"' || *name == '\\') sqlite3_str_appendf(text, "\\%c", *name);
        else if (n == 1 && (unsigned char)*name < ' ') sqlite3_str_appendf(text, "\\u%04x", (unsigned char)*name);
        else sqlite3_str_append(text, name, (int)n);
    }
    sqlite3_str_appendall(text, "\":");
}

static void add_number(sqlite3_str *text, enum fdr_value_type type, uint64_t bits)
{
    double real;
    memcpy(&real, &bits, sizeof real);
    if (type == FDR_VALUE_U64) sqlite3_str_appendf(text, "%llu", (unsigned long long)bits);
    else if (type == FDR_VALUE_I64) sqlite3_str_appendf(text, "%lld", (long long)bits);
    else if (real - real == 0) sqlite3_str_appendf(text, "%!.17g", real);
    else sqlite3_str_appendall(text, "null");
}

static void fields_json(const struct sql_cursor *c, sqlite3_context *out)
{
    const struct fdr_field_info *info;
    const struct fdr_read_event *e = &c->event;
    size_t count = fdr_event_fields(c->file, e, &info);
    sqlite3_str *text = sqlite3_str_new(NULL);
    sqlite3_str_appendchar(text, 1, '{');
    for (uint32_t i = 0; i < count && i < e->field_count && i < 16; i++) {
        if (i) sqlite3_str_appendchar(text, 1, ',');
        add_key(text, info[i].name);
        add_number(text, info[i].type, e->field[i]);
    }
    sqlite3_str_appendchar(text, 1, '}');
    sqlite3_result_text(out, sqlite3_str_finish(text), -1, sqlite3_free);
}

static void events_column(const struct sql_cursor *c, sqlite3_context *out, int number)
{
    enum { NAME = KIND, FIELDS, DEPTH, ID };
    const struct fdr_read_event *e = &c->event;
    if (place(c, out, number)) return;
    if (number == NAME) sql_text(out, fdr_id_name(c->file, e->class_, e->id));
    else if (number == FIELDS) fields_json(c, out);
    else sql_number(out, number == DEPTH ? e->depth : e->id);
}

/* ---- io ---- */

static void io_begin(struct sql_cursor *c) { sql_events(c, 1u << FDR_IN_IO); }

static void io_column(const struct sql_cursor *c, sqlite3_context *out, int number)
{
    enum { OPERATION = REST, FILE_NAME, BYTES, OFFSET, ERROR, ID };
    const struct fdr_read_event *e = &c->event;
    const struct fdr_field_info *info;
    bool is_end = e->kind == FDR_IO_END;
    if (place(c, out, number)) return;
    switch (number) {
    case KIND: sql_text(out, fdr_kind_info(e->kind)->phase); break;
    case OPERATION:
        if (fdr_event_fields(c->file, e, &info) && e->field_count && info[0].word) {
            uint64_t i = 0;
            while (i < e->field[0] && info[0].word[i]) i++;
            if (info[0].word[i]) sql_text(out, info[0].word[i]);
        }
        break;
    case FILE_NAME: sql_text(out, fdr_id_name(c->file, e->class_, e->id)); break;
    case BYTES: field(out, e, 1); break;
    case OFFSET:
        if (!is_end) field(out, e, 2);
        break;
    case ERROR:
        if (is_end) sql_number(out, e->field_count > 2 ? e->field[2] : 0);
        break;
    default: sql_number(out, e->id); break;
    }
}

#define EVENTS .location = LOCATION, .time = TIME, .long_list = true
const struct sql_table sql_point_tables[6] = {
    {.name = "messages",
     .columns = "location, time_ns, kind, peer, tag, bytes, ordinal, comm, comm_name, comm_identity",
     .begin = messages_begin,
     .next = messages_next,
     .column = messages_column,
     EVENTS},
    {.name = "collectives",
     .columns = "location, time_ns, phase, operation, ordinal, root, sent, received, comm, comm_name, comm_identity",
     .begin = collectives_begin,
     .next = sql_next_event,
     .column = collectives_column,
     EVENTS},
    {.name = "metrics",
     .columns = "location, time_ns, value, name, unit, counter, metric",
     .begin = metrics_begin,
     .next = sql_next_event,
     .column = metrics_column,
     EVENTS},
    {.name = "markers",
     .columns = "location, time_ns, value, name, marker",
     .begin = markers_begin,
     .next = sql_next_event,
     .column = markers_column,
     EVENTS},
    {.name = "events",
     .columns = "location, time_ns, name, fields, depth, type",
     .begin = events_begin,
     .next = sql_next_event,
     .column = events_column,
     EVENTS},
    {.name = "io",
     .columns = "location, time_ns, phase, operation, file, bytes, offset, error, file_id",
     .begin = io_begin,
     .next = sql_next_event,
     .column = io_column,
     EVENTS},
};
