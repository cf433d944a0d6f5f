/* SPDX-License-Identifier: MIT */
/* Tables of where events come from: recordings, locations, regions, notes. */
#include "tools/sql/sql_cursor.h"

enum { FIRST = SQL_COMMON_COLUMNS };

/* ---- recordings ---- */

static void recordings_begin(struct sql_cursor *c) { sql_array(c, fdr_file_info(c->file), 1); }

/* The first damage, of all bins; NULL: none. */
static void damage(const struct sql_cursor *c, sqlite3_context *out)
{
    fdr_file_verify(c->file);
    if (fdr_file_damage_count(c->file)) sql_own_text(out, sqlite3_mprintf("%s", fdr_file_damage(c->file, 0)));
}

static void recordings_column(const struct sql_cursor *c, sqlite3_context *out, int number)
{
    enum { PATH = FIRST, HOST, PID, EXE, STATE, REASON, SIGNAL, FROM, TO, COMMON_FROM, TO_REALTIME, BUFFER, STORED };
    const struct fdr_file_info *i = c->rows;
    switch (number) {
    case PATH: sql_text(out, c->recordings->recording[c->at].path); break;
    case HOST: sql_text(out, i->host); break;
    case PID: sql_number(out, i->pid); break;
    case EXE: sql_text(out, i->exe); break;
    case STATE: sql_text(out, i->state); break;
    case REASON: sql_text(out, i->reason); break;
    case SIGNAL:
        if (i->has_cause) sqlite3_result_int(out, i->cause_signal);
        break;
    case FROM: sql_number(out, i->first_ns); break;
    case TO: sql_number(out, i->last_ns); break;
    case COMMON_FROM: sql_number(out, i->common_from_ns); break;
    case TO_REALTIME: sqlite3_result_int64(out, i->realtime_offset_ns); break;
    case BUFFER: sql_number(out, i->buffer_bytes); break;
    case STORED: sql_number(out, i->bytes_stored); break;
    default: damage(c, out); break;
    }
}

/* ---- locations ---- */

/* The index of a location, or the number of locations. */
static size_t find(const struct fdr_file *file, uint32_t id)
{
    size_t low = 0, high = fdr_location_count(file);
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (fdr_location_info(file, middle)->id < id) low = middle + 1;
        else high = middle;
    }
    return low < fdr_location_count(file) && fdr_location_info(file, low)->id == id ? low : fdr_location_count(file);
}

/* One row, unless its index is the number of rows. */
static void only(struct sql_cursor *c, size_t index)
{
    if (index >= c->count) return;
    c->index = index - 1; /* wraps before 0 */
    c->count = index + 1;
}

static void locations_begin(struct sql_cursor *c)
{
    sql_array(c, NULL, fdr_location_count(c->file));
    if (!c->wanted.id_given) return;
    size_t index = find(c->file, c->wanted.id);
    if (index == c->count) c->count = 0;
    only(c, index);
}

static void locations_column(const struct sql_cursor *c, sqlite3_context *out, int number)
{
    enum { ID = FIRST, NAME, TID, PARENT, LIVE };
    const struct fdr_location_info *l = fdr_location_info(c->file, c->index);
    const uint64_t value[] = {l->live, l->start_ns, l->end_ns, l->from_ns, l->to_ns, l->open_count, l->samples};
    switch (number) {
    case ID: sql_number(out, l->id); break;
    case NAME: sql_text(out, l->name); break;
    case TID: sql_number(out, l->tid); break;
    case PARENT:
        if (l->parent != UINT32_MAX) sql_number(out, l->parent);
        break;
    default: sql_number(out, value[number - LIVE]); break;
    }
}

/* ---- regions ---- */

static void regions_begin(struct sql_cursor *c)
{
    sql_array(c, NULL, fdr_definition_count(c->file, FDR_REGION_DEFINITION));
    if (!c->wanted.id_given) return;
    if (c->wanted.id - 1 >= c->count) c->count = 0;
    only(c, c->wanted.id - 1);
}

static void regions_column(const struct sql_cursor *c, sqlite3_context *out, int number)
{
    enum { ID = FIRST, NAME, FILE_NAME, LINE };
    uint32_t id = (uint32_t)c->index + 1;
    const struct fdr_definition *d = fdr_definition(c->file, FDR_REGION_DEFINITION, id);
    switch (number) {
    case ID: sql_number(out, id); break;
    case NAME: sql_text(out, d->name); break;
    case FILE_NAME: sql_text(out, d->file); break;
    default: sql_number(out, d->line); break;
    }
}

/* ---- notes ---- */

static void notes_begin(struct sql_cursor *c)
{
    const struct fdr_note_info *rows = NULL;
    size_t count = fdr_notes(c->file, &rows);
    sql_array(c, rows, count);
}

static void notes_column(const struct sql_cursor *c, sqlite3_context *out, int number)
{
    const struct fdr_note_info *n = (const struct fdr_note_info *)c->rows + c->index;
    sql_text(out, number == FIRST ? n->key : n->value);
}

const struct sql_table sql_origin_tables[4] = {
    {.name = "recordings",
     .columns = "path, host, pid, exe, state, reason, signal, first_ns, last_ns, common_from_ns, realtime_offset_ns, "
                "buffer_bytes, bytes_stored, damage",
     .begin = recordings_begin,
     .next = sql_next_in_array,
     .column = recordings_column},
    {.name = "locations",
     .columns = "id, name, tid, parent, live, start_ns, end_ns, from_ns, to_ns, open, samples",
     .id = FIRST,
     .begin = locations_begin,
     .next = sql_next_in_array,
     .column = locations_column},
    {.name = "regions",
     .columns = "id, name, file, line",
     .id = FIRST,
     .begin = regions_begin,
     .next = sql_next_in_array,
     .column = regions_column},
    {.name = "notes", .columns = "key, value", .begin = notes_begin, .next = sql_next_in_array, .column = notes_column},
};
