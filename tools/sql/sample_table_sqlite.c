/* SPDX-License-Identifier: MIT */
/* The table of kept samples. */
#include "tools/sql/sql_cursor.h"

enum { LOCATION = SQL_COMMON_COLUMNS, TIME, THREAD, TID, WEIGHT, WEIGHT_NS, REGION, FUNCTION, STATE, PATH };

static void begin(struct sql_cursor *c) { sql_events(c, 1u << FDR_IN_SAMPLE); }

static bool next(struct sql_cursor *c)
{
    while (sql_next_event(c))
        if (c->event.sample) return true;
    return false;
}

static const struct fdr_sample_stream *stream_of(const struct sql_cursor *c)
{
    static const struct fdr_sample_stream none = {.parent = UINT32_MAX, .name = ""};
    const struct fdr_sample_stream *s;
    for (size_t i = 0, n = fdr_sample_streams(c->file, &s); i < n; i++)
        if (s[i].location == c->event.location) return &s[i];
    return &none;
}

static const char *region(const struct sql_cursor *c, uint32_t id)
{
    return fdr_definition(c->file, FDR_REGION_DEFINITION, id)->name;
}

static void add(sqlite3_str *text, const char *name)
{
    sqlite3_str_appendf(text, sqlite3_str_length(text) ? ";%s" : "%s", name);
}

/* Open regions, then native functions, outermost first, with ";" between. */
static void path(const struct sql_cursor *c, sqlite3_context *out)
{
    const struct fdr_sample_path *s = c->event.sample;
    uint64_t time = c->event.time_ns;
    sqlite3_str *text = sqlite3_str_new(NULL);
    for (uint32_t i = 0; i < s->region_count; i++) add(text, region(c, s->region[i]));
    for (uint32_t i = 0; i < s->frame_count; i++) add(text, fdr_place_at(c->file, s->frame[i], true, time)->function);
    if (s->pc) add(text, fdr_place_at(c->file, s->pc, false, time)->function);
    sql_own_text(out, sqlite3_str_finish(text));
}

static void column(const struct sql_cursor *c, sqlite3_context *out, int number)
{
    const struct fdr_sample_path *s = c->event.sample;
    const struct fdr_sample_stream *of = stream_of(c);
    switch (number) {
    case LOCATION: sql_number(out, c->event.location); break;
    case TIME: sql_number(out, c->event.time_ns); break;
    case THREAD:
        if (of->parent != UINT32_MAX) sql_number(out, of->parent);
        break;
    case TID: sql_number(out, of->tid); break;
    case WEIGHT: sql_number(out, s->weight); break;
    case WEIGHT_NS:
        if (of->by != 2) sql_number(out, s->weight * of->period);
        break;
    case REGION:
        if (s->region_count) sql_text(out, region(c, s->region[s->region_count - 1]));
        break;
    case FUNCTION:
        if (s->pc) sql_text(out, fdr_place_at(c->file, s->pc, false, c->event.time_ns)->function);
        break;
    case STATE:
        if (s->state != UINT32_MAX) sql_text(out, region(c, s->state));
        break;
    default: path(c, out); break;
    }
}

const struct sql_table sql_sample_table = {
    .name = "samples",
    .columns = "location, time_ns, thread, tid, weight, weight_ns, region, function, state, path",
    .time = TIME,
    .long_list = true,
    .begin = begin,
    .next = next,
    .column = column,
};
