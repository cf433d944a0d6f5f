/* SPDX-License-Identifier: MIT */
/* fdr sql: questions to recordings in SQL. The rows go to standard output, tab separated with a header, or as JSON. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/common/fast_output.h"
#include "tools/common/file_rank.h"
#include "tools/common/progress.h"
#include "tools/common/verbs.h"
#include "tools/sql/sql_tables.h"

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

/* The shortest text that reads back as the same number. */
static void real(double value, const char *infinite)
{
    if (isfinite(value)) out_f64(value);
    else out_text(infinite);
}

static void json_value(sqlite3_stmt *s, int column)
{
    int type = sqlite3_column_type(s, column);
    if (type == SQLITE_NULL) out_text("null");
    else if (type == SQLITE_INTEGER) out_text(text_of(s, column));
    else if (type == SQLITE_FLOAT) real(sqlite3_column_double(s, column), "null");
    else out_json(text_of(s, column));
}

static void row(sqlite3_stmt *s, bool json, bool first)
{
    if (json) out_text(first ? "\n{" : ",\n{");
    for (int i = 0; i < sqlite3_column_count(s); i++) {
        if (i) out_text(json ? ", " : "\t");
        if (!json && sqlite3_column_type(s, i) == SQLITE_FLOAT) real(sqlite3_column_double(s, i), text_of(s, i));
        else if (!json) out_cell(text_of(s, i));
        if (!json) continue;
        out_json(sqlite3_column_name(s, i));
        out_text(": ");
        json_value(s, i);
    }
    out_text(json ? "}" : "\n");
}

/* Says what is wrong with a query, and where. Returns COULD_NOT. */
static int wrong(sqlite3 *db)
{
    const char *text = sqlite3_errmsg(db), *name;
    char tables[400] = "";
    size_t used = 0;
    for (size_t i = 0; (name = sql_table_name(i, NULL)); i++)
        used += (size_t)snprintf(tables + used, sizeof tables - used, "%s%s", i ? ", " : "", name);
    if (!strncmp(text, "no such table", 13)) complain("sql: %s; the tables are %s", text, tables);
    else if (!strncmp(text, "no such column", 14)) complain("sql: %s; .schema lists the columns", text);
    else complain("sql: %s", text);
    return COULD_NOT;
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
    return code == SQLITE_DONE ? DONE : wrong(db);
}

static int statements(sqlite3 *db, const char *query, bool json)
{
    int status = DONE;
    while (status == DONE && *query) {
        sqlite3_stmt *s;
        if (sqlite3_prepare_v2(db, query, -1, &s, &query) != SQLITE_OK) {
            return wrong(db);
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

static void list_tables(bool columns, const char *only)
{
    const char *name, *text;
    bool any = false;
    for (size_t i = 0; (name = sql_table_name(i, &text)); i++) {
        if (*only && strcmp(only, name) != 0) continue;
        any = true;
        out_text(name);
        if (columns) out_text("(recording, rank, "), out_text(text), out_text(")");
        out_char('\n');
    }
    if (!any) complain("sql: no table '%s'; .tables lists them", plain_name(only));
}

/* A line with a dot in front, as those of sqlite3. Returns false to end. */
static bool command(char *line)
{
    line[strcspn(line, "\r\n")] = 0;
    char *word = strchr(line, ' ');
    const char *argument = word ? word + strspn(word, " ") : "";
    size_t length = word ? (size_t)(word - line) : strlen(line);
    if (!strncmp(line, ".quit", length) || !strncmp(line, ".exit", length)) return length < 2;
    if (!strncmp(line, ".tables", length)) list_tables(false, "");
    else if (!strncmp(line, ".schema", length)) list_tables(true, argument);
    else if (!strncmp(line, ".help", length))
        out_text(".tables          the tables\n.schema [TABLE]  their columns\n.quit            the end\n"
                 "A statement ends with a semicolon. docs/SQL.md has examples.\n");
    else complain("sql: no command '%s'; .help lists them", plain_name(line));
    out_flush();
    return true;
}

/* Collects lines to a statement that ends with a semicolon. After an error on a terminal it goes on. */
static int shell(sqlite3 *db, bool json)
{
    char *line = NULL, *query = NULL;
    size_t room = 0, used = 0;
    int status = DONE;
    for (prompt(false); getline(&line, &room, stdin) > 0; prompt(used > 0)) {
        if (!used && line[0] == '.') {
            if (!command(line)) break;
            continue;
        }
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

static void on_progress(void *context, uint64_t events) { progress_now(context, events); }

static int ask(const struct arguments *a, struct sql_recordings *r)
{
    sqlite3 *db;
    struct progress progress = {.what = "sql"};
    int status = COULD_NOT;
    r->progress = on_progress;
    r->progress_context = &progress;
    if (sqlite3_open(":memory:", &db) != SQLITE_OK || sql_add_tables(db, r) != SQLITE_OK)
        complain("sql: %s", sqlite3_errmsg(db));
    else status = a->query ? statements(db, a->query, a->json) : shell(db, a->json);
    progress_end(&progress);
    sqlite3_close(db);
    return worse(status, out_finish());
}

int verb_sql(int argc, char **argv)
{
    static const struct argp argp = {options,
                                     parse,
                                     "FILE... [QUERY]",
                                     "Answers questions in SQL, over tables of calls, totals, messages, samples and "
                                     "more; docs/SQL.md has examples. Without a QUERY it reads queries from standard "
                                     "input; .tables and .schema list what there is.",
                                     NULL,
                                     NULL,
                                     NULL};
    struct arguments a = {0};
    int status = DONE;
    parse_arguments(&argp, argc, argv, &a);
    struct sql_recordings r = {.recording = calloc((size_t)a.count, sizeof *r.recording)};
    for (int i = 0; r.recording && i < a.count; i++) {
        struct fdr_file *file = open_recording(a.words[i], &status);
        if (!file) continue;
        r.recording[r.count++] = (struct sql_recording){file, a.words[i], rank_of_file(file, a.words[i])};
    }
    if (r.count) status = worse(status, ask(&a, &r));
    for (size_t i = 0; i < r.count; i++)
        status = worse(status, close_partly_read(r.recording[i].file, r.recording[i].path));
    free(r.recording);
    return status;
}
