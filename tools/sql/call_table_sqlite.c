/* SPDX-License-Identifier: MIT */
/* The table of kept calls. A row is made when a call ends: by then the time inside of it is known. */
#include <assert.h>
#include <stdlib.h>

#include "tools/sql/sql_cursor.h"

enum { LOCATION = SQL_COMMON_COLUMNS, ENTER, DURATION, EXCLUSIVE, DEPTH, CALLER = SQL_CALL_NAME + 1 };

static_assert(DEPTH + 1 == SQL_CALL_REGION, "numbers of the columns");

static void begin(struct sql_cursor *c)
{
    struct sql_wanted all = c->wanted;
    /* Calls around and inside of a wanted one must be read for these two. */
    if (sql_reads(c, EXCLUSIVE) || sql_reads(c, CALLER)) {
        c->wanted.id_given = false;
        c->wanted.from_ns = c->wanted.to_ns = 0;
    }
    sql_events(c, 1u << FDR_IN_REGION);
    c->wanted = all;
    c->location = UINT32_MAX;
    c->depth = 0;
}

static const char *name_of(const struct sql_cursor *c)
{
    const struct fdr_read_event *e = &c->event;
    if (e->reduced) return e->filtered ? "[filtered]" : e->not_over ? "[open]" : "[reduced]";
    return fdr_definition(c->file, FDR_REGION_DEFINITION, e->id)->name;
}

static bool enter(struct sql_cursor *c)
{
    if (c->depth + 1 >= c->frames) {
        size_t frames = c->frames ? c->frames * 2 : 64;
        struct sql_frame *more = realloc(c->frame, frames * sizeof *more);
        if (!more) return false;
        c->frame = more;
        c->frames = frames;
        c->frame[0] = (struct sql_frame){0};
    }
    c->frame[++c->depth] = (struct sql_frame){c->event.time_ns, 0, name_of(c)};
    return true;
}

static bool next(struct sql_cursor *c)
{
    while (sql_next_event(c)) {
        const struct fdr_read_event *e = &c->event;
        if (e->location != c->location) c->depth = 0;
        c->location = e->location;
        if (e->kind == FDR_LEAVE && c->depth) {
            uint64_t inside = e->reduced ? c->frame[c->depth].inside_ns : e->duration_ns;
            c->frame[--c->depth].inside_ns += inside;
            return true;
        }
        if (e->kind == FDR_ENTER && !enter(c)) {
            c->no_memory = true;
            return false;
        }
    }
    return false;
}

bool sql_call_groups(int column) { return column != ENTER && column != DURATION && column != EXCLUSIVE && column >= 0; }

static uint64_t text(const char *name) { return (uint64_t)(uintptr_t)name; }

uint64_t sql_call_value(const struct sql_cursor *c, int number)
{
    const struct fdr_read_event *e = &c->event;
    const struct sql_frame *ended = &c->frame[c->depth + 1], *caller = &c->frame[c->depth];
    switch (number) {
    case LOCATION: return e->location;
    case ENTER: return ended->enter_ns;
    case DURATION: return e->open || e->reduced ? SQL_NO_VALUE : e->duration_ns; /* not known */
    case EXCLUSIVE:
        if (e->open || e->reduced) return SQL_NO_VALUE;
        return e->duration_ns > ended->inside_ns ? e->duration_ns - ended->inside_ns : 0;
    case DEPTH: return e->depth;
    case SQL_CALL_REGION: return e->reduced ? SQL_NO_VALUE : e->id;
    case SQL_CALL_NAME: return text(ended->name);
    default: return c->depth ? text(caller->name) : SQL_NO_VALUE;
    }
}

void sql_call_result(sqlite3_context *out, int number, uint64_t value)
{
    if (value == SQL_NO_VALUE) return;
    if (number >= SQL_CALL_NAME) sql_text(out, (const char *)(uintptr_t)value);
    else sql_number(out, value);
}

static void column(const struct sql_cursor *c, sqlite3_context *out, int number)
{
    sql_call_result(out, number, sql_call_value(c, number));
}

/* Depths are no choice for the reader: a missing call is known from the calls inside and around it. */
const struct sql_table sql_call_table = {
    .name = "calls",
    .columns = "location, enter_ns, duration_ns, exclusive_ns, depth, region, name, caller",
    .location = LOCATION,
    .time = ENTER,
    .id = SQL_CALL_REGION,
    .long_list = true,
    .begin = begin,
    .next = next,
    .column = column,
};
