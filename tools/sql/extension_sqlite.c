/* SPDX-License-Identifier: MIT */
/* libfdr-sqlite: the tables of fdr sql in any program that loads extensions of SQLite.
 *
 *     .load libfdr-sqlite
 *     select fdr_open('solver.r0.fdr', 'solver.r1.fdr');
 *     select name, sum(duration_ns) from calls group by name; */
#include <stdlib.h>

#include "tools/common/file_rank.h"
#include "tools/sql/sql_cursor.h"
SQLITE_EXTENSION_INIT1

__attribute__((visibility("default"))) int sqlite3_fdrsqlite_init(sqlite3 *db, char **error,
                                                                  const sqlite3_api_routines *api);

static void close_all(void *context)
{
    struct sql_recordings *r = context;
    for (size_t i = 0; i < r->count; i++) {
        fdr_file_close(r->recording[i].file);
        sqlite3_free((char *)(uintptr_t)r->recording[i].path);
    }
    free(r->recording);
    free(r);
}

/* Returns false after an error. */
static bool open_one(struct sql_recordings *r, sqlite3_context *out, const char *path)
{
    char message[512] = "";
    struct sql_recording *more = realloc(r->recording, (r->count + 1) * sizeof *more), *new;
    if (more) r->recording = more;
    new = more ? &more[r->count] : NULL;
    char *copy = new ? sqlite3_mprintf("%s", path) : NULL;
    if (!copy) {
        sqlite3_result_error_nomem(out);
        return false;
    }
    *new = (struct sql_recording){.path = copy};
    if (fdr_file_open(path, &new->file, message, sizeof message) == FDR_UNREADABLE) {
        char *text = sqlite3_mprintf("fdr_open: %s: %s", path, message);
        sqlite3_result_error(out, text ? text : "fdr_open: out of memory", -1);
        sqlite3_free(text);
        sqlite3_free(copy);
        return false;
    }
    new->rank = rank_of_file(new->file, path);
    r->count++;
    return true;
}

/* fdr_open(FILE...): the tables show these recordings, too. Returns how many are open. */
static void fdr_open(sqlite3_context *out, int count, sqlite3_value **value)
{
    struct sql_recordings *r = sqlite3_user_data(out);
    for (int i = 0; i < count; i++) {
        const char *path = (const char *)sqlite3_value_text(value[i]);
        if (!open_one(r, out, path ? path : "")) return;
    }
    sqlite3_result_int64(out, (sqlite3_int64)r->count);
}

int sqlite3_fdrsqlite_init(sqlite3 *db, char **error, const sqlite3_api_routines *api)
{
    SQLITE_EXTENSION_INIT2(api);
    (void)error;
    struct sql_recordings *r = calloc(1, sizeof *r);
    if (!r) return SQLITE_NOMEM;
    /* From here on the connection owns r, also if this fails. DIRECTONLY: no schema of a database opens files. */
    int code = sqlite3_create_function_v2(db, "fdr_open", -1, SQLITE_UTF8 | SQLITE_DIRECTONLY, r, fdr_open, NULL, NULL,
                                          close_all);
    return code == SQLITE_OK ? sql_add_tables(db, r) : code;
}
