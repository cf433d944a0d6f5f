/* SPDX-License-Identifier: MIT */
/* Recordings as tables of SQLite: each table is a source of rows over the reader; nothing is copied. */
#ifndef FDRI_TOOLS_SQL_TABLES_H
#define FDRI_TOOLS_SQL_TABLES_H

#include <sqlite3.h>

#include "tools/common/verbs.h"

struct recordings {
    struct fdr_file **file;
    size_t count;
};
/* Adds the tables calls, totals, regions and locations. Returns a code of SQLite. `r` must stay until db is closed. */
int add_tables(sqlite3 *db, struct recordings *r);

#endif
