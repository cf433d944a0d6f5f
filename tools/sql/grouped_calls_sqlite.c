/* SPDX-License-Identifier: MIT */
/* Calls in order of their name or region: what GROUP BY needs. Each call is put to the others of its group, with the
 * columns that the query reads; then the groups are sorted, not the calls. */
#include <stdlib.h>

#include "tools/sql/sql_cursor.h"

enum { COLUMNS = SQL_CALL_NAME + 2, CHUNK = 4096 };
struct chunk {
    struct chunk *next;
    size_t used;
    uint64_t value[CHUNK]; /* whole rows only */
};
struct group {
    uint64_t key; /* the address of the name, or the region */
    struct chunk *first, *last;
};
struct sql_grouped_calls {
    struct group *group;
    size_t groups, room;
    uint32_t *slot; /* hash table of indices + 1; 0: free */
    size_t slots;
    int column[COLUMNS]; /* of each value of a row: its column; 0 stands for the recording */
    int place[COLUMNS];  /* of each column: its value in the row; -1: not read */
    size_t width;        /* values of a row */
    /* where the query stands */
    size_t at;
    struct chunk *chunk;
    size_t row; /* in the chunk */
};

/* ---- groups ---- */

static size_t slot_of(const struct sql_grouped_calls *g, uint64_t key)
{
    size_t i = key * 0x9E3779B97F4A7C15u >> 32 & (g->slots - 1);
    while (g->slot[i] && g->group[g->slot[i] - 1].key != key) i = (i + 1) & (g->slots - 1);
    return i;
}

/* The table is at most half full. */
static bool room_for_group(struct sql_grouped_calls *g)
{
    if (g->groups * 2 < g->slots) return true;
    size_t slots = g->slots ? g->slots * 2 : 1024;
    struct group *group = realloc(g->group, slots / 2 * sizeof *group);
    if (group) g->group = group;
    uint32_t *slot = group ? calloc(slots, sizeof *slot) : NULL;
    if (!slot) return false;
    free(g->slot);
    g->slot = slot;
    g->slots = slots;
    for (uint32_t i = 0; i < g->groups; i++) slot[slot_of(g, g->group[i].key)] = i + 1;
    return true;
}

static struct group *group_of(struct sql_grouped_calls *g, uint64_t key)
{
    if (!room_for_group(g)) return NULL;
    size_t i = slot_of(g, key);
    if (!g->slot[i]) {
        g->group[g->groups] = (struct group){.key = key};
        g->slot[i] = (uint32_t)++g->groups;
    }
    return &g->group[g->slot[i] - 1];
}

static int by_number(const void *x, const void *y)
{
    uint64_t a = ((const struct group *)x)->key + 1, b = ((const struct group *)y)->key + 1; /* no value comes first */
    return (a > b) - (a < b);
}

/* Regions of one name, also of several recordings, come to stand side by side. */
static int by_name(const void *x, const void *y)
{
    const struct group *a = x, *b = y;
    return strcmp((const char *)(uintptr_t)a->key, (const char *)(uintptr_t)b->key);
}

/* ---- rows ---- */

static void choose_columns(struct sql_cursor *c)
{
    struct sql_grouped_calls *g = c->grouped;
    for (int i = 0; i < COLUMNS; i++) g->place[i] = -1;
    for (int i = 0; i < COLUMNS; i++) {
        bool is_origin = i < SQL_COMMON_COLUMNS, stored = is_origin && g->place[0] >= 0;
        if (i == c->group || stored || !sql_reads(c, i)) continue;
        g->place[is_origin ? 0 : i] = (int)g->width;
        g->column[g->width++] = is_origin ? 0 : i;
    }
}

static bool add(struct sql_cursor *c)
{
    struct sql_grouped_calls *g = c->grouped;
    struct group *group = group_of(g, sql_call_value(c, c->group));
    struct chunk *chunk = group ? group->last : NULL;
    size_t width = g->width ? g->width : 1; /* a row without values still counts */
    if (group && (!chunk || chunk->used + width > CHUNK)) {
        chunk = malloc(sizeof *chunk);
        if (!chunk) return false;
        chunk->used = 0;
        chunk->next = NULL;
        if (group->last) group->last->next = chunk;
        else group->first = chunk;
        group->last = chunk;
    }
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
    c->at = !g->chunk ? c->end : g->place[0] < 0 ? 0 : (size_t)g->chunk->value[g->row + (size_t)g->place[0]];
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
    else if (g->groups) qsort(g->group, g->groups, sizeof *g->group, c->group == SQL_CALL_NAME ? by_name : by_number);
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
    if (number == c->group) sql_call_result(out, number, g->group[g->at].key);
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
