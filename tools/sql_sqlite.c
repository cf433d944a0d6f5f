/* SPDX-License-Identifier: MIT */
/* fdr sql: questions to recordings in SQL. The rows go to standard output, tab separated with a header, or as JSON. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/sql_tables.h"
#include "tools/common/fast_output.h"

struct arguments {
    char **words; /* FILE... [QUERY] */
    int count;
    bool json;
    const char *query; /* NULL: from standard input */
};

static const struct argp_option options[] = {{"json", 'j', 0, 0, "Rows as JSON", 0}, {0}};

/* The last word is a query if no file has this name and it has a space. */
static bool is_query(const char *word) { return strchr(word, ' ') && access(word, F_OK) != 0; }

static error_t parse(int key, char *text, struct argp_state *state)
{
    struct arguments *a = state->input;
    (void)text;
    switch (key) {
    case 'j': a->json = true; return 0;
    case ARGP_KEY_ARGS:
        a->words = state->argv + state->next;
        a->count = state->argc - state->next;
        if (is_query(a->words[a->count - 1])) a->query = a->words[--a->count];
        return 0;
    case ARGP_KEY_END:
        if (!a->count) argp_error(state, "a FILE is needed");
        return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

/* ---- rows ---- */

static void header(sqlite3_stmt *s)
{
    for (int i = 0; i < sqlite3_column_count(s); i++) {
        if (i) out_char('\t');
        out_cell(sqlite3_column_name(s, i));
    }
    out_char('\n');
}

static const char *text_of(sqlite3_stmt *s, int column)
{
    const unsigned char *text = sqlite3_column_text(s, column);
    return text ? (const char *)text : "";
}

static void json_value(sqlite3_stmt *s, int column)
{
    int type = sqlite3_column_type(s, column);
    if (type == SQLITE_NULL) out_text("null");
    else if (type == SQLITE_INTEGER || type == SQLITE_FLOAT) out_text(text_of(s, column));
    else out_json(text_of(s, column));
}

static void row(sqlite3_stmt *s, bool json, bool first)
{
    if (json) out_text(first ? "\n{" : ",\n{");
    for (int i = 0; i < sqlite3_column_count(s); i++) {
        if (i) out_text(json ? ", " : "\t");
        if (!json) {
            out_cell(text_of(s, i));
            continue;
        }
        out_json(sqlite3_column_name(s, i));
        out_text(": ");
        json_value(s, i);
    }
    out_text(json ? "}" : "\n");
}

/* Returns DONE or, after a message, COULD_NOT. */
static int one_statement(sqlite3 *db, sqlite3_stmt *s, bool json)
{
    bool first = true, rows = sqlite3_column_count(s) > 0;
    int code;
    if (rows && json) out_text("[");
    if (rows && !json) header(s);
    while ((code = sqlite3_step(s)) == SQLITE_ROW) {
        row(s, json, first);
        first = false;
    }
    if (rows && json) out_text("\n]\n");
    if (code != SQLITE_DONE) complain("sql: %s", sqlite3_errmsg(db));
    return code == SQLITE_DONE ? DONE : COULD_NOT;
}

static int statements(sqlite3 *db, const char *query, bool json)
{
    int status = DONE;
    while (status == DONE && *query) {
        sqlite3_stmt *s;
        if (sqlite3_prepare_v2(db, query, -1, &s, &query) != SQLITE_OK) {
            complain("sql: %s", sqlite3_errmsg(db));
            return COULD_NOT;
        }
        if (s) status = one_statement(db, s, json);
        sqlite3_finalize(s);
    }
    return status;
}

/* ---- queries from standard input ---- */

static void prompt(bool more)
{
    if (!isatty(STDIN_FILENO)) return;
    fputs(more ? "...> " : "fdr> ", stderr);
}

/* Collects lines to a statement that ends with a semicolon. After an error on a terminal it goes on. */
static int shell(sqlite3 *db, bool json)
{
    char *line = NULL, *query = NULL;
    size_t room = 0, used = 0;
    int status = DONE;
    for (prompt(false); getline(&line, &room, stdin) > 0; prompt(used > 0)) {
        size_t length = strlen(line);
        char *more = realloc(query, used + length + 1);
        if (!more) break;
        query = more;
        memcpy(query + used, line, length + 1);
        used += length;
        if (!sqlite3_complete(query)) continue;
        status = worse(status, statements(db, query, json));
        out_flush();
        used = 0;
    }
    if (used && query) status = worse(status, statements(db, query, json));
    free(query);
    free(line);
    return status;
}

/* ---- the verb ---- */

static int ask(const struct arguments *a, struct recordings *r)
{
    sqlite3 *db;
    int status = COULD_NOT;
    if (sqlite3_open(":memory:", &db) != SQLITE_OK || add_tables(db, r) != SQLITE_OK)
        complain("sql: %s", sqlite3_errmsg(db));
    else status = a->query ? statements(db, a->query, a->json) : shell(db, a->json);
    sqlite3_close(db);
    return worse(status, out_finish());
}

int verb_sql(int argc, char **argv)
{
    static const struct argp argp = {
        options,
        parse,
        "FILE... [QUERY]",
        "Answers questions in SQL, over the tables calls, totals, regions and locations. Without a QUERY it reads "
        "queries from standard input.",
        NULL,
        NULL,
        NULL};
    struct arguments a = {0};
    int status = DONE;
    parse_arguments(&argp, argc, argv, &a);
    struct recordings r = {calloc((size_t)a.count, sizeof *r.file), 0};
    const char **path = calloc((size_t)a.count, sizeof *path);
    for (int i = 0; r.file && path && i < a.count; i++) {
        struct fdr_file *file = open_recording(a.words[i], &status);
        if (file) path[r.count] = a.words[i], r.file[r.count++] = file;
    }
    if (r.count) status = worse(status, ask(&a, &r));
    for (size_t i = 0; i < r.count; i++) status = worse(status, close_recording(r.file[i], path[i], true));
    free(r.file);
    free(path);
    return status;
}
