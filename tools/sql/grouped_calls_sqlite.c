/* SPDX-License-Identifier: MIT */
/* Calls in the order of columns with few values: what GROUP BY needs. Each call is put to the others of its group, with
 * the columns that the query reads; then the groups are sorted, not the calls. */
#include <stdlib.h>

#include "tools/common/utf8.h"
#include "tools/sql/sql_cursor.h"

enum { COLUMNS = SQL_CALL_NAME + 2, FIRST_CHUNK = 32, CHUNK = 8192 };
struct chunk {
    struct chunk *next;
    size_t used, room;
    uint64_t value[]; /* whole rows only */
};
struct group {
    uint64_t key[SQL_ORDERS]; /* of c->order[i]: a number, the address of a name, or the recording */
    struct chunk *first, *last;
};
struct sql_grouped_calls {
    struct group *group;
    size_t groups, room;
    uint32_t *slot; /* hash table of indices + 1; 0: free */
    size_t slots;
    int key[COLUMNS];    /* of each column: its key; -1: none */
    int column[COLUMNS]; /* of each value of a row: its column; 0 stands for the recording */
    int place[COLUMNS];  /* of each column: its value in the row; -1: not read */
    size_t width;        /* values of a row */
    /* where the query stands */
    size_t at;
    struct chunk *chunk;
    size_t row; /* in the chunk */
};

/* ---- groups ---- */

static size_t slot_of(const struct sql_cursor *c, const uint64_t *key)
{
    const struct sql_grouped_calls *g = c->grouped;
    uint64_t mixed = 0;
    for (int i = 0; i < c->orders; i++) {
        mixed = (mixed ^ key[i]) * 0x9E3779B97F4A7C15u;
        mixed ^= mixed >> 32;
    }
    size_t i = mixed & (g->slots - 1);
    while (g->slot[i] && memcmp(g->group[g->slot[i] - 1].key, key, (size_t)c->orders * sizeof *key) != 0)
        i = (i + 1) & (g->slots - 1);
    return i;
}

/* The table is at most half full. */
static bool room_for_group(struct sql_cursor *c)
{
    struct sql_grouped_calls *g = c->grouped;
    if (g->groups * 2 < g->slots) return true;
    size_t slots = g->slots ? g->slots * 2 : 1024;
    struct group *group = realloc(g->group, slots / 2 * sizeof *group);
    if (group) g->group = group;
    uint32_t *slot = group ? calloc(slots, sizeof *slot) : NULL;
    if (!slot) return false;
    free(g->slot);
    g->slot = slot;
    g->slots = slots;
    for (uint32_t i = 0; i < g->groups; i++) slot[slot_of(c, g->group[i].key)] = i + 1;
    return true;
}

static struct group *group_of(struct sql_cursor *c)
{
    struct sql_grouped_calls *g = c->grouped;
    if (!room_for_group(c)) return NULL;
    struct group new = {0};
    for (int i = 0; i < c->orders; i++) {
        int column = c->order[i].column;
        new.key[i] = column < SQL_COMMON_COLUMNS ? c->at : sql_call_value(c, column);
    }
    size_t i = slot_of(c, new.key);
    if (!g->slot[i]) {
        g->group[g->groups] = new;
        g->slot[i] = (uint32_t)++g->groups;
    }
    return &g->group[g->slot[i] - 1];
}

/* As SQLite compares these texts: each byte that is not UTF-8 is U+FFFD for it. */
static int compare_texts(const char *a, const char *b)
{
    int difference = 0;
    while (!difference && (*a || *b)) {
        size_t in_a = character_bytes((const unsigned char *)a), in_b = character_bytes((const unsigned char *)b);
        char x[5] = "\xef\xbf\xbd", y[5] = "\xef\xbf\xbd";
        if (in_a) memcpy(x, a, in_a), x[in_a] = 0;
        if (in_b) memcpy(y, b, in_b), y[in_b] = 0;
        difference = strcmp(x, y);
        a += in_a ? in_a : 1;
        b += in_b ? in_b : 1;
    }
    return difference;
}

static int compare_keys(const struct sql_cursor *c, int column, uint64_t a, uint64_t b)
{
    if (column == SQL_RANK)
        a = (uint64_t)c->recordings->recording[a].rank, b = (uint64_t)c->recordings->recording[b].rank;
    if (a == b) return 0;
    bool both = a != SQL_NO_VALUE && b != SQL_NO_VALUE;
    if (both && column >= SQL_CALL_NAME) return compare_texts((const char *)(uintptr_t)a, (const char *)(uintptr_t)b);
    return a + 1 < b + 1 ? -1 : 1; /* no value comes first */
}

/* Regions of one name, also of several recordings, come to stand side by side. */
static int by_keys(const void *x, const void *y, void *cursor)
{
    const struct sql_cursor *c = cursor;
    for (int i = 0; i < c->orders; i++) {
        int order = compare_keys(c, c->order[i].column, ((const struct group *)x)->key[i],
                                 ((const struct group *)y)->key[i]);
        if (order) return c->order[i].descending ? -order : order;
    }
    return 0;
}

/* ---- rows ---- */

/* One key or value of a row tells the recording, and so the rank. */
static void choose_columns(struct sql_cursor *c)
{
    struct sql_grouped_calls *g = c->grouped;
    for (int i = 0; i < COLUMNS; i++) g->place[i] = g->key[i] = -1;
    for (int i = 0; i < c->orders; i++) g->key[c->order[i].column] = i;
    bool known = g->key[SQL_RECORDING] >= 0 || g->key[SQL_RANK] >= 0;
    for (int i = 0; i < COLUMNS; i++) {
        bool is_origin = i < SQL_COMMON_COLUMNS;
        if (g->key[i] >= 0 || (is_origin && known) || !sql_reads(c, i)) continue;
        known |= is_origin;
        g->place[is_origin ? 0 : i] = (int)g->width;
        g->column[g->width++] = is_origin ? 0 : i;
    }
}

/* Chunks of a group grow: many groups may have few calls each. */
static struct chunk *room_for_row(struct group *group, size_t width)
{
    struct chunk *last = group->last;
    if (last && last->used + width <= last->room) return last;
    size_t room = !last ? FIRST_CHUNK : last->room < CHUNK ? last->room * 4 : CHUNK;
    struct chunk *chunk = malloc(sizeof *chunk + room * sizeof *chunk->value);
    if (!chunk) return NULL;
    *chunk = (struct chunk){.room = room};
    if (last) last->next = chunk;
    else group->first = chunk;
    return group->last = chunk;
}

static bool add(struct sql_cursor *c)
{
    struct sql_grouped_calls *g = c->grouped;
    struct group *group = group_of(c);
    size_t width = g->width ? g->width : 1; /* a row without values still counts */
    struct chunk *chunk = group ? room_for_row(group, width) : NULL;
    if (!chunk) return false;
    for (size_t i = 0; i < g->width; i++)
        chunk->value[chunk->used + i] = g->column[i] ? sql_call_value(c, g->column[i]) : c->at;
    chunk->used += width;
    return true;
}

static bool read_all(struct sql_cursor *c)
{
    for (; c->at < c->end; c->at++) {
        sql_begin(c);
        while (c->table->next(c))
            if (!add(c)) return false;
        if (c->no_memory) return false;
    }
    return true;
}

/* ---- one after another ---- */

static void show_row(struct sql_cursor *c)
{
    const struct sql_grouped_calls *g = c->grouped;
    int key = g->key[SQL_RECORDING] >= 0 ? g->key[SQL_RECORDING] : g->key[SQL_RANK];
    if (!g->chunk) c->at = c->end;
    else if (key >= 0) c->at = (size_t)g->group[g->at].key[key];
    else c->at = g->place[0] < 0 ? 0 : (size_t)g->chunk->value[g->row + (size_t)g->place[0]];
}

static void show_group(struct sql_cursor *c)
{
    struct sql_grouped_calls *g = c->grouped;
    g->chunk = g->at < g->groups ? g->group[g->at].first : NULL;
    g->row = 0;
}

static void free_chunks(struct group *group)
{
    for (struct chunk *next, *i = group->first; i; i = next) {
        next = i->next;
        free(i);
    }
    group->first = NULL;
}

void sql_group_calls(struct sql_cursor *c)
{
    struct sql_grouped_calls *g = c->grouped = calloc(1, sizeof *g);
    c->no_memory |= !g;
    if (!g) return;
    choose_columns(c);
    if (!read_all(c)) c->no_memory = true;
    else if (g->groups) qsort_r(g->group, g->groups, sizeof *g->group, by_keys, c);
    show_group(c);
    show_row(c);
}

void sql_grouped_next(struct sql_cursor *c)
{
    struct sql_grouped_calls *g = c->grouped;
    g->row += g->width ? g->width : 1;
    if (g->row >= g->chunk->used) {
        g->chunk = g->chunk->next;
        g->row = 0;
    }
    if (!g->chunk) {
        free_chunks(&g->group[g->at++]);
        show_group(c);
    }
    show_row(c);
}

void sql_grouped_column(const struct sql_cursor *c, sqlite3_context *out, int number)
{
    const struct sql_grouped_calls *g = c->grouped;
    int key = g->key[number];
    if (key >= 0) sql_call_result(out, number, g->group[g->at].key[key]);
    else if (g->place[number] >= 0) sql_call_result(out, number, g->chunk->value[g->row + (size_t)g->place[number]]);
}

void sql_grouped_free(struct sql_cursor *c)
{
    struct sql_grouped_calls *g = c->grouped;
    for (size_t i = 0; g && i < g->groups; i++) free_chunks(&g->group[i]);
    if (g) {
        free(g->group);
        free(g->slot);
    }
    free(g);
    c->grouped = NULL;
}
