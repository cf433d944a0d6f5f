/* SPDX-License-Identifier: MIT */
/* Recordings as tables of SQLite: each table is a source of rows over the reader; nothing is copied. The command and
 * the extension libfdr-sqlite have the same tables.
 *
 *   virtual_tables_sqlite.c   the calls of SQLite, for all tables
 *   call_table_sqlite.c       calls
 *   grouped_calls_sqlite.c    the same for GROUP BY, one group after another
 *   point_tables_sqlite.c     messages, collectives, metrics, markers, events, io
 *   sample_table_sqlite.c     samples
 *   account_tables_sqlite.c   totals, ledger, reductions, epochs
 *   origin_tables_sqlite.c    recordings, locations, regions, notes
 *   extension_sqlite.c        what `.load libfdr-sqlite` finds; not part of the command
 *   sql_cursor.h              a table, and where a query stands in it
 *
 * Neighbours: tools/common/ below; the verb sql above. Recordings are read through <fdr/reader.h>. */
#ifndef FDRI_TOOLS_SQL_SQL_TABLES_H
#define FDRI_TOOLS_SQL_SQL_TABLES_H

#include <fdr/reader.h>
#include <sqlite3.h>

struct sql_recording {
    struct fdr_file *file;
    const char *path;
    int rank; /* -1: not known */
};
struct sql_recordings {
    struct sql_recording *recording;
    size_t count;
    void (*progress)(void *context, uint64_t events); /* as in fdr_select */
    void *progress_context;
};
/* Adds all tables to the connection. `r` must stay until db is closed. Returns a code of SQLite. */
int sql_add_tables(sqlite3 *db, struct sql_recordings *r);

/* A table by its index, for lists. NULL: there are no more. *columns: their names, as SQL has them. */
const char *sql_table_name(size_t index, const char **columns);

#endif
