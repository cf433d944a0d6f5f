/* SPDX-License-Identifier: MIT */
/* fdr info: counters of the process (tallies), and sections that this reader does not know. */
#include <stdio.h>

#include <fdr/tally.h>

#include "tools/common/short_names.h"
#include "tools/info.h"

enum { LINES_MOST = 12, KEY_BYTES = 64 };

/* ---- text ------------------------------------------------------------------------------------------------------- */

/* Messages of an envelope: the high bits say how many are being posted now. Of collectives: is one under way? */
static uint64_t shown(const struct fdr_tally_row *t, unsigned c)
{
    bool envelope = t->kind == FDR_TALLY_SENT || t->kind == FDR_TALLY_RECEIVED;
    if (t->kind == FDR_TALLY_COLLECTIVES && c == 2) return t->counter[2] != 0;
    return envelope && c == 0 ? t->counter[0] & (((uint64_t)1 << 48) - 1) : t->counter[c];
}

/* Calls and waits of MPI have lines of their own. */
static bool is_shown(const struct fdr_tally_row *t) { return t->kind != FDR_TALLY_CALL && t->kind != FDR_TALLY_WAIT; }

static void print_tally(const struct fdr_tally_row *t)
{
    char key[KEY_BYTES];
    fdr_tally_key_text(t, key, sizeof key);
    const char *kind = fdr_tally_kind_name(t->kind);
    if (*kind) printf("  %-10s %s:", kind, plain_name(key));
    else printf("  kind %-5u %s:", t->kind, key);
    for (unsigned c = 0; c < 3; c++)
        printf("%s %s %llu", c ? "," : "", fdr_tally_counter_name(t->kind, c), (unsigned long long)shown(t, c));
    putchar('\n');
}

void print_tallies(const struct fdr_file *file, bool full)
{
    const struct fdr_tally_row *rows;
    size_t count = fdr_tallies(file, &rows), most = full || count < LINES_MOST ? count : LINES_MOST;
    struct fdr_tally_room room = fdr_tally_room(file);
    if (!count && !room.half && !room.damaged && !room.refused) return;
    printf("\n%zu of %u tallies: counters of the process, exact whatever was given back\n", count, room.places);
    for (size_t i = 0; i < most; i++)
        if (is_shown(&rows[i])) print_tally(&rows[i]);
    if (most < count) printf("  and %zu more: fdr info --ledger\n", count - most);
    if (room.half) printf("  %u more were being made at that moment; nothing was counted in them\n", room.half);
    if (room.damaged) printf("  %u more are damaged\n", room.damaged);
    if (room.refused)
        printf("  %llu times a key found no room: what it names has no numbers; a larger FDR_BUFFER has room\n",
               (unsigned long long)room.refused);
}

static bool unknown_section(const struct fdr_section *s, char *text, size_t bytes)
{
    if (s->known) return false;
    char of[40] = "";
    if (s->location != UINT32_MAX) snprintf(of, sizeof of, " of location %u", s->location);
    snprintf(text, bytes, "section '%s' version %u%s (%llu bytes) is of a newer fdr, and was skipped", s->name,
             s->version, of, (unsigned long long)s->bytes);
    return true;
}

void each_unknown_section(const struct fdr_file *file, void (*found)(const char *text, void *argument), void *argument)
{
    const struct fdr_section *rows;
    char text[160];
    size_t count = fdr_sections(file, &rows);
    for (size_t i = 0; i < count; i++)
        if (unknown_section(&rows[i], text, sizeof text)) found(text, argument);
}

static void print_section(const char *text, void *unused)
{
    (void)unused;
    printf("note       %s\n", text);
}

void print_unknown_sections(const struct fdr_file *file) { each_unknown_section(file, print_section, NULL); }

/* ---- JSON ------------------------------------------------------------------------------------------------------- */

static json_t *hex_json(const uint8_t *bytes, size_t count)
{
    char text[2 * KEY_BYTES + 1] = "";
    for (size_t i = 0; i < count; i++) snprintf(text + 2 * i, 3, "%02x", bytes[i]);
    return json_text(text);
}

static json_t *tally_json(const struct fdr_tally_row *t)
{
    json_t *o = json_object(), *counters = json_object();
    char key[KEY_BYTES];
    fdr_tally_key_text(t, key, sizeof key);
    const char *kind = fdr_tally_kind_name(t->kind);
    json_object_set_new(o, "kind", json_u64(t->kind));
    json_object_set_new(o, "kind_name", *kind ? json_text(kind) : json_null());
    json_object_set_new(o, "key", hex_json(t->key, sizeof t->key));
    json_object_set_new(o, "name", *kind ? json_text(key) : json_null());
    for (unsigned c = 0; c < 3; c++)
        json_object_set_new(counters, fdr_tally_counter_name(t->kind, c), json_u64(shown(t, c)));
    json_object_set_new(o, "counters", counters);
    return o;
}

/* The same in short: kind and key as texts, and the counters in their order. */
json_t *process_json(const struct fdr_file *file)
{
    const struct fdr_tally_row *rows;
    size_t count = fdr_tallies(file, &rows);
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++) {
        char key[KEY_BYTES], number[16];
        const char *kind = fdr_tally_kind_name(rows[i].kind);
        json_t *o = json_object(), *values = json_array();
        fdr_tally_key_text(&rows[i], key, sizeof key);
        snprintf(number, sizeof number, "%u", rows[i].kind);
        json_object_set_new(o, "kind", json_text(*kind ? kind : number));
        json_object_set_new(o, "key", json_text(key));
        for (unsigned c = 0; c < 3; c++) json_array_append_new(values, json_u64(shown(&rows[i], c)));
        json_object_set_new(o, "values", values);
        json_array_append_new(list, o);
    }
    return list;
}

json_t *tallies_json(const struct fdr_file *file)
{
    const struct fdr_tally_row *rows;
    size_t count = fdr_tallies(file, &rows);
    struct fdr_tally_room room = fdr_tally_room(file);
    json_t *o = json_object(), *list = json_array();
    for (size_t i = 0; i < count; i++) json_array_append_new(list, tally_json(&rows[i]));
    json_object_set_new(o, "places", json_u64(room.places));
    json_object_set_new(o, "refused", json_u64(room.refused));
    json_object_set_new(o, "half", json_u64(room.half));
    json_object_set_new(o, "damaged", json_u64(room.damaged));
    json_object_set_new(o, "rows", list);
    return o;
}

json_t *sections_json(const struct fdr_file *file)
{
    const struct fdr_section *rows;
    size_t count = fdr_sections(file, &rows);
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++) {
        json_t *o = json_object();
        json_object_set_new(o, "name", json_text(rows[i].name));
        json_object_set_new(o, "version", json_u64(rows[i].version));
        json_object_set_new(o, "location", rows[i].location == UINT32_MAX ? json_null() : json_u64(rows[i].location));
        json_object_set_new(o, "bytes", json_u64(rows[i].bytes));
        json_object_set_new(o, "known", json_boolean(rows[i].known));
        json_array_append_new(list, o);
    }
    return list;
}
