/* SPDX-License-Identifier: MIT */
/* A table of rows over the reader, and where a query stands in it. */
#ifndef FDRI_TOOLS_SQL_SQL_CURSOR_H
#define FDRI_TOOLS_SQL_SQL_CURSOR_H

#include <stdbool.h>
#include <string.h>

#include <sqlite3ext.h>

#include "tools/sql/sql_tables.h"
SQLITE_EXTENSION_INIT3

enum { SQL_ARGUMENTS = 12, SQL_ORDERS = 7 };
/* The conditions of a query by which a table leaves out rows itself. SQLite compares the remaining rows once more. */
struct sql_wanted {
    bool location_given, id_given, nothing;
    uint32_t location, id;
    uint64_t from_ns, to_ns; /* 0: no limit */
    uint64_t columns;        /* bits of the columns that the query reads */
};

struct sql_grouped_calls;
struct sql_frame { /* an open call of the location under way */
    uint64_t enter_ns, inside_ns;
    const char *name;
};
struct sql_cursor {
    sqlite3_vtab_cursor base;
    const struct sql_table *table;
    const struct sql_recordings *recordings;
    struct sql_wanted wanted;
    size_t at, end;        /* the recording, and the one behind the last */
    sqlite3_int64 row;     /* of the whole table */
    struct fdr_file *file; /* of recording `at` */
    size_t index, count;   /* rows of the file that are in an array */
    const void *rows;      /* the array */
    struct fdr_iter *iter; /* of events */
    uint8_t *regions;      /* that the iterator selects; NULL: all */
    struct fdr_read_event event;
    struct sql_frame *frame; /* of calls: [0] lies outside of every call */
    size_t depth, frames;
    uint32_t location; /* of the newest call */
    struct sql_ordinal {
        uint64_t token, ordinal;
    } * ordinal; /* of messages: numbers that became known later, sorted by token */
    size_t ordinals;
    struct sql_order {
        int column;
        bool descending;
    } order[SQL_ORDERS]; /* of calls: columns by which rows come in order, the first one first */
    int orders;
    struct sql_grouped_calls *grouped;
    bool no_memory;
};

/* Numbers of columns: these two, then those of the table. */
enum { SQL_RECORDING, SQL_RANK, SQL_COMMON_COLUMNS };
struct sql_table {
    const char *name, *columns;
    /* Numbers of the columns that select rows; 0: none does. */
    int location, time, id;
    bool long_list; /* one row for each event */
    /* Begins with the next file; then one row at a time, false at the end of the file. */
    void (*begin)(struct sql_cursor *c);
    bool (*next)(struct sql_cursor *c);
    void (*column)(const struct sql_cursor *c, sqlite3_context *out, int column);
};

extern const struct sql_table sql_call_table, sql_sample_table;
extern const struct sql_table sql_point_tables[6], sql_account_tables[5], sql_origin_tables[4];

static inline void sql_number(sqlite3_context *out, uint64_t value)
{
    sqlite3_result_int64(out, value > INT64_MAX ? INT64_MAX : (sqlite3_int64)value);
}
/* Texts of recordings live as long as these. Bytes that are not UTF-8 become U+FFFD: programs refuse such texts. */
void sql_text(sqlite3_context *out, const char *text);
/* The same for a text that is to be freed by sqlite3_free. */
void sql_own_text(sqlite3_context *out, char *text);
/* Of a value type; not a number becomes NULL. */
void sql_value(sqlite3_context *out, enum fdr_value_type type, uint64_t bits);

/* Begins with the rows of recording c->at. */
void sql_begin(struct sql_cursor *c);
/* For tables of arrays: sets the number of rows, and goes to the next one. */
void sql_array(struct sql_cursor *c, const void *rows, size_t count);
bool sql_next_in_array(struct sql_cursor *c);
/* For tables of events: opens the iterator on the wanted ones of these classes, and takes the next event. */
void sql_events(struct sql_cursor *c, uint32_t classes);
bool sql_next_event(struct sql_cursor *c);

/* Does the query read this column? */
static inline bool sql_reads(const struct sql_cursor *c, int column)
{
    return c->wanted.columns >> (column < 63 ? column : 63) & 1;
}

/* ---- calls ---- */

/* Has the column few values? By these calls can come in order. */
bool sql_call_groups(int column);
enum { SQL_CALL_REGION = SQL_COMMON_COLUMNS + 5, SQL_CALL_NAME };
#define SQL_NO_VALUE UINT64_MAX
/* A column of the newest call: a number, the address of a name, or SQL_NO_VALUE; and how SQLite sees that. */
uint64_t sql_call_value(const struct sql_cursor *c, int number);
void sql_call_result(sqlite3_context *out, int number, uint64_t value);

/* The calls in the order of c->order. Reads all recordings at once, and keeps 8 bytes for each other column of each
 * call that the query reads. Goes to the first one. */
void sql_group_calls(struct sql_cursor *c);
/* Sets c->at to the recording of the next call, at the end to c->end. */
void sql_grouped_next(struct sql_cursor *c);
void sql_grouped_column(const struct sql_cursor *c, sqlite3_context *out, int column);
void sql_grouped_free(struct sql_cursor *c);

#endif
