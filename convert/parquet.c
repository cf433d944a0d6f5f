/* SPDX-License-Identifier: MIT */
/* A table of all events as Parquet: for DuckDB, pandas, Spark. The columns are those of csv, and names of threads.
 *
 * Pages are not compressed. Numbers are plain. A text that recurs (kind, thread, name) is a number in the dictionary of
 * its row group. Each number has 1, 2 or 4 bytes: a bit-packed run of such a width is the plain numbers. The metadata
 * at the end are structures of Thrift. No value is ever absent, so there are no levels. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "convert/convert_text.h"
#include "convert/event_text.h"
#include "convert/exporters.h"
#include "convert/interned.h"
#include "convert/thrift.h"
#include "convert/titles.h"

enum { GROUP_ROWS = 1 << 17, PLAIN = 0, RLE = 3, DICTIONARY = 8, DATA_PAGE = 0, DICTIONARY_PAGE = 2 };
enum type { INT32 = 1, INT64 = 2, TEXT = 6, WORD = 106 }; /* WORD: a text that recurs */
static const struct description {
    const char *name;
    enum type type;
} columns[] = {{"recording", INT32}, {"location", INT64}, {"thread", WORD},       {"time_ns", INT64}, {"kind", WORD},
               {"depth", INT32},     {"name", WORD},      {"duration_ns", INT64}, {"values", TEXT}};
enum { RECORDING, LOCATION, THREAD, TIME, KIND, DEPTH, NAME, DURATION, VALUES, COLUMNS };

struct column {
    struct fdri_convert_thrift data; /* of the row group: values, or numbers of 4 bytes */
    struct fdri_convert_interned words;
};
struct chunk { /* a column of a written row group */
    uint64_t at, bytes, dictionary_bytes;
};
struct parquet {
    struct fdri_convert_text *out;
    uint64_t at; /* bytes written */
    struct column column[COLUMNS];
    uint32_t rows; /* of the row group under way */
    struct group {
        uint32_t rows;
        struct chunk chunk[COLUMNS];
    } * group;
    size_t groups, room;
    struct fdri_convert_thrift head, page;
    char *plain; /* a text in UTF-8 */
    size_t plain_room;
    bool no_memory;
};

static void put(struct parquet *p, const struct fdri_convert_thrift *t)
{
    fdri_convert_text_bytes(p->out, t->bytes, t->used);
    p->at += t->used;
    p->no_memory |= t->no_memory;
}

/* ---- rows ---- */

/* Characters that are not plain become spaces, as in fdr dump. */
static const char *plain(struct parquet *p, const char *text, size_t *length)
{
    size_t room = strlen(text) + 1, used = 0;
    if (room > p->plain_room) {
        char *more = realloc(p->plain, room * 2);
        p->no_memory |= !more;
        if (!more) return *length = 0, "";
        p->plain = more;
        p->plain_room = room * 2;
    }
    for (size_t n; *text; text += n ? n : 1) {
        n = fdri_convert_text_plain(text);
        if (n) memcpy(p->plain + used, text, n);
        else p->plain[used] = ' ';
        used += n ? n : 1;
    }
    *length = used;
    return p->plain;
}

static void number(struct parquet *p, int column, uint64_t value)
{
    fdri_convert_thrift_number(&p->column[column].data, value, columns[column].type == INT32 ? 4 : 8);
}

static void text(struct parquet *p, int column, const char *string)
{
    bool is_new;
    size_t length;
    struct column *c = &p->column[column];
    const char *bytes = plain(p, string, &length);
    if (columns[column].type == WORD) {
        uint32_t word = fdri_convert_intern(&c->words, bytes, length, &is_new);
        p->no_memory |= word == FDRI_CONVERT_NO_NUMBER;
        fdri_convert_thrift_number(&c->data, word, 4);
    } else {
        fdri_convert_thrift_number(&c->data, length, 4);
        fdri_convert_thrift_raw(&c->data, bytes, length);
    }
}

static void row(struct parquet *p, const struct fdr_file *file, size_t place, const char *thread,
                const struct fdr_read_event *e)
{
    char values[FDRI_CONVERT_EVENT_VALUES];
    fdri_convert_event_values(file, e, values);
    number(p, RECORDING, place);
    number(p, LOCATION, e->location);
    text(p, THREAD, thread);
    number(p, TIME, e->time_ns);
    text(p, KIND, fdr_kind_info(e->kind)->name);
    number(p, DEPTH, e->depth);
    text(p, NAME, fdri_convert_event_name(file, e));
    number(p, DURATION, e->duration_ns);
    text(p, VALUES, values);
    p->rows++;
}

/* ---- row groups ---- */

static void page_head(struct parquet *p, int type, size_t bytes, uint32_t values, int encoding)
{
    struct fdri_convert_thrift *h = &p->head;
    h->used = 0;
    fdri_convert_thrift_begin(h, 0);
    fdri_convert_thrift_i32(h, 1, type);
    fdri_convert_thrift_i32(h, 2, (int32_t)bytes);
    fdri_convert_thrift_i32(h, 3, (int32_t)bytes);
    fdri_convert_thrift_begin(h, type == DATA_PAGE ? 5 : 7);
    fdri_convert_thrift_i32(h, 1, (int32_t)values);
    fdri_convert_thrift_i32(h, 2, encoding);
    if (type == DATA_PAGE) fdri_convert_thrift_i32(h, 3, RLE);
    if (type == DATA_PAGE) fdri_convert_thrift_i32(h, 4, RLE);
    fdri_convert_thrift_end(h);
    fdri_convert_thrift_end(h);
    put(p, h);
}

static void dictionary(struct parquet *p, const struct column *c)
{
    struct fdri_convert_thrift *page = &p->page;
    page->used = 0;
    for (uint32_t i = 0; i < c->words.count; i++) {
        fdri_convert_thrift_number(page, c->words.key[i].count, 4);
        fdri_convert_thrift_raw(page, fdri_convert_interned_key(&c->words, i), c->words.key[i].count);
    }
    page_head(p, DICTIONARY_PAGE, page->used, c->words.count, PLAIN);
    put(p, page);
}

/* The width in bits, and one run of groups of eight numbers. */
static void words(struct parquet *p, const struct column *c)
{
    struct fdri_convert_thrift *page = &p->page;
    unsigned width = c->words.count <= 1 << 8 ? 1 : c->words.count <= 1 << 16 ? 2 : 4;
    uint32_t groups = (p->rows + 7) / 8;
    page->used = 0;
    fdri_convert_thrift_number(page, width * 8, 1);
    fdri_convert_thrift_varint(page, (uint64_t)groups << 1 | 1);
    for (size_t i = 0; i < c->data.used; i += 4) fdri_convert_thrift_raw(page, c->data.bytes + i, width);
    for (uint32_t i = p->rows; i < groups * 8; i++) fdri_convert_thrift_number(page, 0, width);
    page_head(p, DATA_PAGE, page->used, p->rows, DICTIONARY);
    put(p, page);
}

static void write_column(struct parquet *p, int i, struct chunk *chunk)
{
    struct column *c = &p->column[i];
    *chunk = (struct chunk){.at = p->at};
    if (columns[i].type == WORD) {
        dictionary(p, c);
        chunk->dictionary_bytes = p->at - chunk->at;
        words(p, c);
        fdri_convert_interned_free(&c->words);
    } else {
        page_head(p, DATA_PAGE, c->data.used, p->rows, PLAIN);
        put(p, &c->data);
    }
    p->no_memory |= c->data.no_memory;
    chunk->bytes = p->at - chunk->at;
    c->data.used = 0;
}

static void write_group(struct parquet *p)
{
    if (!p->rows || p->no_memory) return;
    if (p->groups == p->room) {
        size_t room = p->room ? p->room * 2 : 16;
        struct group *more = realloc(p->group, room * sizeof *more);
        p->no_memory |= !more;
        if (!more) return;
        p->group = more;
        p->room = room;
    }
    struct group *g = &p->group[p->groups++];
    g->rows = p->rows;
    for (int i = 0; i < COLUMNS; i++) write_column(p, i, &g->chunk[i]);
    p->rows = 0;
}

/* ---- metadata ---- */

static int parquet_type(int column) { return columns[column].type == WORD ? (int)TEXT : (int)columns[column].type; }

static void schema(struct fdri_convert_thrift *t)
{
    enum { UTF8 = 0 };
    fdri_convert_thrift_list(t, 2, FDRI_CONVERT_THRIFT_STRUCT, COLUMNS + 1);
    fdri_convert_thrift_begin(t, 0);
    fdri_convert_thrift_text(t, 4, "events");
    fdri_convert_thrift_i32(t, 5, COLUMNS);
    fdri_convert_thrift_end(t);
    for (int i = 0; i < COLUMNS; i++) {
        fdri_convert_thrift_begin(t, 0);
        fdri_convert_thrift_i32(t, 1, parquet_type(i));
        fdri_convert_thrift_i32(t, 3, 0); /* required */
        fdri_convert_thrift_text(t, 4, columns[i].name);
        if (parquet_type(i) == TEXT) fdri_convert_thrift_i32(t, 6, UTF8);
        fdri_convert_thrift_end(t);
    }
}

static void chunk_data(struct fdri_convert_thrift *t, int column, uint32_t rows, const struct chunk *c)
{
    bool by_word = columns[column].type == WORD;
    fdri_convert_thrift_begin(t, 0);
    fdri_convert_thrift_i64(t, 2, (int64_t)c->at);
    fdri_convert_thrift_begin(t, 3);
    fdri_convert_thrift_i32(t, 1, parquet_type(column));
    fdri_convert_thrift_list(t, 2, FDRI_CONVERT_THRIFT_I32, by_word ? 2 : 1);
    fdri_convert_thrift_element_i32(t, PLAIN);
    if (by_word) fdri_convert_thrift_element_i32(t, DICTIONARY);
    fdri_convert_thrift_list(t, 3, FDRI_CONVERT_THRIFT_TEXT, 1);
    fdri_convert_thrift_element_text(t, columns[column].name);
    fdri_convert_thrift_i32(t, 4, 0); /* not compressed */
    fdri_convert_thrift_i64(t, 5, rows);
    fdri_convert_thrift_i64(t, 6, (int64_t)c->bytes);
    fdri_convert_thrift_i64(t, 7, (int64_t)c->bytes);
    fdri_convert_thrift_i64(t, 9, (int64_t)(c->at + c->dictionary_bytes));
    if (by_word) fdri_convert_thrift_i64(t, 11, (int64_t)c->at);
    fdri_convert_thrift_end(t);
    fdri_convert_thrift_end(t);
}

static void row_group(struct fdri_convert_thrift *t, const struct group *g)
{
    uint64_t bytes = 0;
    fdri_convert_thrift_begin(t, 0);
    fdri_convert_thrift_list(t, 1, FDRI_CONVERT_THRIFT_STRUCT, COLUMNS);
    for (int i = 0; i < COLUMNS; i++) {
        chunk_data(t, i, g->rows, &g->chunk[i]);
        bytes += g->chunk[i].bytes;
    }
    fdri_convert_thrift_i64(t, 2, (int64_t)bytes);
    fdri_convert_thrift_i64(t, 3, g->rows);
    fdri_convert_thrift_end(t);
}

static void write_metadata(struct parquet *p)
{
    struct fdri_convert_thrift *t = &p->page;
    uint64_t rows = 0;
    for (size_t i = 0; i < p->groups; i++) rows += p->group[i].rows;
    t->used = 0;
    fdri_convert_thrift_begin(t, 0);
    fdri_convert_thrift_i32(t, 1, 1);
    schema(t);
    fdri_convert_thrift_i64(t, 3, (int64_t)rows);
    fdri_convert_thrift_list(t, 4, FDRI_CONVERT_THRIFT_STRUCT, p->groups);
    for (size_t i = 0; i < p->groups; i++) row_group(t, &p->group[i]);
    fdri_convert_thrift_text(t, 6, "fdr");
    fdri_convert_thrift_end(t);
    fdri_convert_thrift_number(t, t->used, 4);
    fdri_convert_thrift_raw(t, "PAR1", 4);
    put(p, t);
}

/* ---- files ---- */

static const char *name_of_thread(const struct fdr_file *file, uint32_t location)
{
    for (size_t i = 0; i < fdr_location_count(file); i++)
        if (fdr_location_info(file, i)->id == location) return fdr_location_info(file, i)->name;
    return "";
}

static int one_file(struct parquet *p, struct fdr_file *file, size_t place, const struct fdr_select *select)
{
    struct fdr_select chosen = select ? *select : (struct fdr_select){0};
    uint64_t location = UINT64_MAX;
    const char *thread = "";
    struct fdr_read_event e;
    chosen.one_location_after_another = true;
    struct fdr_iter *iter = fdr_iter_open(file, &chosen);
    if (!iter) return -ENOMEM;
    while (!p->no_memory && !p->out->error && fdr_iter_next(iter, &e)) {
        if (e.location != location) thread = name_of_thread(file, e.location);
        location = e.location;
        row(p, file, place, thread, &e);
        if (p->rows == GROUP_ROWS) write_group(p);
    }
    fdr_iter_close(iter);
    return p->no_memory ? -ENOMEM : 0;
}

static void free_all(struct parquet *p)
{
    for (int i = 0; i < COLUMNS; i++) {
        free(p->column[i].data.bytes);
        fdri_convert_interned_free(&p->column[i].words);
    }
    free(p->group);
    free(p->head.bytes);
    free(p->page.bytes);
    free(p->plain);
}

static int run(struct fdr_file *const *files, size_t count, const struct fdr_select *select, const char *const *value,
               const char *out_path)
{
    struct parquet p = {.at = 4};
    (void)value;
    int status = fdri_convert_text_open(&p.out, out_path);
    if (status) return status;
    fdri_convert_text_string(p.out, "PAR1");
    for (size_t i = 0; i < count && !status; i++) status = one_file(&p, files[i], i + 1, select ? &select[i] : NULL);
    write_group(&p);
    write_metadata(&p);
    if (!status && p.no_memory) status = -ENOMEM;
    free_all(&p);
    return fdri_convert_text_close(p.out, status);
}

const struct fdr_exporter fdri_convert_parquet = {
    .name = "parquet",
    .help = "the same table as csv for DuckDB, pandas, Spark",
    .call_bytes = 74,
    .run = run,
};
