/* SPDX-License-Identifier: MIT */
/* fdr check: decodes every bin and checks the ledger: presented = kept + filtered + reduced + lost. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/common/verbs.h"
#include "tools/common/live_files.h"
#include "tools/info.h"

struct arguments {
    const char *path; /* the file being checked */
    char **paths;
    size_t count;
    bool json, quiet;
    json_t *list; /* with several files: the results as JSON */
};

static const struct argp_option options[] = {
    {"quiet", 'q', 0, 0, "Only the exit code", 0}, {"json", 'j', 0, 0, "As JSON", 0}, {0}};

static error_t parse(int key, char *text, struct argp_state *state)
{
    struct arguments *a = state->input;
    switch (key) {
    case 'q': a->quiet = true; return 0;
    case 'j': a->json = true; return 0;
    case ARGP_KEY_ARG: a->paths[a->count++] = text; return 0;
    case ARGP_KEY_END:
        if (!a->count) argp_error(state, "a FILE is needed");
        return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

/* ---- the ledger ------------------------------------------------------------------------------------------------- */

struct findings {
    json_t *damage, *ledger, *notes;
};

static void add(json_t *list, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void add(json_t *list, const char *format, ...)
{
    char line[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    json_array_append_new(list, json_text(line));
}

/* How far the two sides of one location's ledger may differ. */
enum strictness {
    EXACT,     /* the writers were quiet: every row must balance */
    ONE_EVENT, /* the process was killed: one event of a location may be half recorded */
    BOUNDED,   /* copied during recording: before <= sum <= after */
    UNCHECKED  /* being written now */
};

static uint64_t right_side(const struct fdr_ledger_row *r) { return r->kept + r->filtered + r->reduced + r->lost; }

static uint64_t distance(uint64_t a, uint64_t b) { return a > b ? a - b : b - a; }

static void row_differs(struct findings *f, const struct fdr_ledger_row *r)
{
    add(f->ledger,
        "ledger: location %u, class %s, depth %u: %llu presented, but kept %llu + filtered %llu + reduced "
        "%llu + lost %llu = %llu",
        r->location, fdr_class_name(r->class_), r->depth, (unsigned long long)r->presented, (unsigned long long)r->kept,
        (unsigned long long)r->filtered, (unsigned long long)r->reduced, (unsigned long long)r->lost,
        (unsigned long long)right_side(r));
}

/* Checks the rows of one location. */
static void check_rows(struct findings *f, const struct fdr_ledger_row *rows, size_t count, uint64_t slack)
{
    uint64_t apart = 0;
    for (size_t i = 0; i < count; i++) apart += distance(rows[i].presented, right_side(&rows[i]));
    for (size_t i = 0; i < count && apart > slack; i++)
        if (rows[i].presented != right_side(&rows[i])) row_differs(f, &rows[i]);
}

static void check_bounds(struct findings *f, const struct fdr_ledger_row *rows, size_t count, uint64_t before,
                         uint64_t after, bool dropped)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < count; i++) sum += right_side(&rows[i]);
    /* Bins given back during the copy are on neither side, so only the upper bound holds then. */
    if (sum > after || (sum < before && !dropped))
        add(f->ledger, "ledger: location %u: accounts come to %llu, outside the %llu to %llu presented around its copy",
            rows[0].location, (unsigned long long)sum, (unsigned long long)before, (unsigned long long)after);
}

static enum strictness strictness_of(const struct fdr_file_info *info, bool live, uint64_t before, uint64_t after)
{
    bool snapshot = info->reason[0] != '\0';
    if (live) return UNCHECKED;
    if (before != after) return BOUNDED;
    if (strcmp(info->state, "finalized") == 0) return EXACT;
    return snapshot && strcmp(info->state, "recording") == 0 ? EXACT : ONE_EVENT;
}

static void check_location(struct findings *f, const struct fdr_file *file, const struct fdr_ledger_row *rows,
                           size_t count, bool live)
{
    uint64_t before = 0, after = 0;
    const struct fdr_file_info *info = fdr_file_info(file);
    fdr_ledger_bounds(file, rows[0].location, &before, &after);
    switch (strictness_of(info, live, before, after)) {
    case EXACT: check_rows(f, rows, count, 0); break;
    case ONE_EVENT: check_rows(f, rows, count, 1); break;
    case BOUNDED: check_bounds(f, rows, count, before, after, info->dropped_bins > 0); break;
    case UNCHECKED: break;
    }
}

static size_t check_ledger(struct findings *f, struct fdr_file *file, bool live)
{
    const struct fdr_ledger_row *rows;
    size_t count = fdr_ledger(file, &rows);
    for (size_t i = 0, end; i < count; i = end) {
        for (end = i + 1; end < count && rows[end].location == rows[i].location;) end++;
        check_location(f, file, rows + i, end - i, live);
    }
    return count;
}

/* ---- the report ------------------------------------------------------------------------------------------------- */

static void add_notes(struct findings *f, const struct fdr_file_info *info, bool live)
{
    if (live)
        add(f->notes, "a process is writing to it right now: the ledger was not checked; take a snapshot to "
                      "check that");
    else if (strcmp(info->state, "recording") == 0 && !info->reason[0])
        add(f->notes, "the process was killed, or ended by _exit or exec; at most the record in flight on each thread "
                      "is missing");
    if (info->over)
        add(f->notes, "over: the process no longer needed this live file%s%s",
            info->over_error ? " and could not remove it: " : "", info->over_error ? strerror(info->over_error) : "");
    if (info->killed_in_handler)
        add(f->notes,
            "killed while it handled its fatal signal: stacks, registers, memory map and messages are missing");
    if (info->dropped_bins)
        add(f->notes, "%llu bins were given back during the copy; their events are missing",
            (unsigned long long)info->dropped_bins);
    if (info->threads_gone)
        add(f->notes, "%llu threads ended during the copy from outside; their events and totals are missing",
            (unsigned long long)info->threads_gone);
    if (info->accounts_anew)
        add(f->notes,
            "recovered: the accounts of %llu locations were rebuilt from the readable events; they may be too low",
            (unsigned long long)info->accounts_anew);
    if (info->totals_lost)
        add(f->notes, "%llu locations have damaged totals: fdr stats shows exact rows, but some are missing",
            (unsigned long long)info->totals_lost);
    if (info->histograms_left_out)
        add(f->notes, "%llu histograms are not shown: they changed during the copy and do not match their calls",
            (unsigned long long)info->histograms_left_out);
    if (info->unlisted_bins)
        add(f->notes, "%llu bins belong to no location and are not shown", (unsigned long long)info->unlisted_bins);
}

static void add_section(const char *text, void *findings) { add(((struct findings *)findings)->notes, "%s", text); }

static void print_lines(const json_t *list, const char *before)
{
    for (size_t i = 0; i < json_array_size(list); i++)
        printf("%s%s\n", before, plain_name(json_string_value(json_array_get(list, i))));
}

static int print_report(const struct arguments *a, const struct fdr_file *file, const struct findings *f,
                        const char *verdict, size_t rows)
{
    char text[HUMAN_BYTES];
    const struct fdr_file_info *info = fdr_file_info(file);
    if (a->quiet) return DONE;
    size_t locations = fdr_location_count(file), findings = json_array_size(f->damage) + json_array_size(f->ledger);
    printf("%s: %s: %zu location%s, %s stored, %zu ledger rows, %zu finding%s", plain_name(a->path), verdict, locations,
           locations == 1 ? "" : "s", human_bytes(text, info->bytes_stored), rows, findings, findings == 1 ? "" : "s");
    const json_t *told = json_array_size(f->damage) ? f->damage : f->ledger;
    if (a->count > 1 && findings)
        printf(": %s%s", plain_name(json_string_value(json_array_get(told, 0))), findings > 1 ? ", ..." : "");
    putchar('\n');
    if (a->count == 1) {
        print_lines(f->damage, "damage: ");
        print_lines(f->ledger, "");
        print_lines(f->notes, "note: ");
    }
    return finish_output();
}

static int print_object(const struct arguments *a, const char *verdict, const struct findings *f, size_t rows)
{
    json_t *o = json_object();
    json_object_set_new(o, "file", json_text(a->path));
    json_object_set_new(o, "verdict", json_text(verdict));
    json_object_set(o, "damage", f->damage);
    json_object_set(o, "ledger", f->ledger);
    json_object_set(o, "notes", f->notes);
    json_object_set_new(o, "ledger_rows", json_u64(rows));
    if (a->list) json_array_append_new(a->list, o);
    return a->list ? DONE : print_json(o);
}

static int unreadable(const struct arguments *a, struct findings *f, const char *message)
{
    if (!a->quiet) complain("%s: %s", a->path, message[0] ? message : "not readable as a recording");
    add(f->damage, "%s", message);
    if (a->json) print_object(a, "unreadable", f, 0);
    return COULD_NOT;
}

static int check_one(const struct arguments *a, struct findings *f)
{
    struct fdr_file *file = NULL;
    char message[512] = "";
    open_quietly(a->path, &file, message, sizeof message);
    if (!file) return unreadable(a, f, message);
    bool live = written_by(a->path, fdr_file_info(file)) != 0; /* and could not be read from its process */
    size_t rows = check_ledger(f, file, live);
    if (fdr_file_verify(file) == FDR_UNREADABLE) { /* out of memory: it is not known whether the file is damaged */
        snprintf(message, sizeof message, "%s", fdr_file_damage(file, fdr_file_damage_count(file) - 1));
        fdr_file_close(file);
        return unreadable(a, f, message);
    }
    fdr_tally_room(file); /* reads the tallies, so that damage to them is known */
    for (size_t i = 0; i < fdr_file_damage_count(file); i++) add(f->damage, "%s", fdr_file_damage(file, i));
    add_notes(f, fdr_file_info(file), live);
    each_unknown_section(file, add_section, f);
    bool whole = json_array_size(f->damage) == 0 && json_array_size(f->ledger) == 0;
    const char *word = whole ? "whole" : "damaged";
    int printed = a->json ? print_object(a, word, f, rows) : print_report(a, file, f, word, rows);
    fdr_file_close(file);
    return worse(whole ? DONE : DIFFERENT, printed);
}

static int check(const struct arguments *a)
{
    struct findings f = {json_array(), json_array(), json_array()};
    int status = check_one(a, &f);
    json_decref(f.damage);
    json_decref(f.ledger);
    json_decref(f.notes);
    return status;
}

int verb_check(int argc, char **argv)
{
    static const struct argp argp = {options,
                                     parse,
                                     "FILE...",
                                     "Verifies everything. For several files it prints one line each. Exit code 0: "
                                     "whole, also after every death (a record in flight is no damage); 1: damaged, or "
                                     "the ledger does not add up; 2: not readable. Several files: the worst code.",
                                     NULL,
                                     NULL,
                                     NULL};
    struct arguments a = {.paths = calloc((size_t)argc + 1, sizeof *a.paths)};
    int status = DONE;
    if (!a.paths) return COULD_NOT;
    parse_arguments(&argp, argc, argv, &a);
    if (a.json && a.count > 1) a.list = json_array();
    for (size_t i = 0; i < a.count; i++) {
        a.path = a.paths[i];
        status = worse(status, check(&a));
    }
    if (a.list) status = worse(status, print_json(a.list));
    free(a.paths);
    return status;
}
