/* SPDX-License-Identifier: MIT */
/* Parses the filters of the command line and resolves them for one file. */
#include "tools/common/selection.h"

#include "tools/common/file_rank.h"
#include "tools/common/job_files.h"
#include "tools/common/short_names.h"

#include <ctype.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    OPTION_LOCATION = 0x1000,
    OPTION_CLASS,
    OPTION_RANK,
    OPTION_DEPTH,
    OPTION_REGION,
    OPTION_FROM,
    OPTION_TO,
    OPTION_MIN_DURATION
};

static const struct argp_option options[] = {
    {0, 0, 0, 0, "Selection (default: everything):", 1},
    {"location", OPTION_LOCATION, "ID|GLOB", 0,
     "Only this location: its id, or a pattern its name matches; of several files also RANK:ID; may be repeated", 1},
    {"rank", OPTION_RANK, "LIST", 0, "Only these ranks of a job: 0,4..7; may be repeated", 1},
    {"class", OPTION_CLASS, "LIST", 0,
     "Only these event classes: region, message, collective, metric, marker, sample, io, task, user; "
     "separated by commas. Verbs that show one class refuse other classes",
     1},
    {"depth", OPTION_DEPTH, "A..B", 0, "Only calling depths A to B (1 = outermost); also A, A.. and ..B", 1},
    {"region", OPTION_REGION, "GLOB", 0,
     "Only calls of regions whose name, whole or as in tables, matches; may be repeated. Other classes are then shown "
     "only with "
     "--class",
     1},
    {"from", OPTION_FROM, "TIME", 0,
     "From this time on, counted from the first event kept; -TIME counts back from the last one, and @TIME is on the "
     "recording's own line",
     1},
    {"to", OPTION_TO, "TIME", 0, "Up to this time, given as for --from; calls that overlap are shown", 1},
    {"min-duration", OPTION_MIN_DURATION, "TIME", 0,
     "Only calls that took at least this long. TIME: 100ns, 2.5us, 1ms, 3s", 1},
    {0}};

static void add_text(struct argp_state *state, const char **list, size_t *count, const char *text)
{
    if (*count == SELECT_TEXTS) argp_error(state, "more than %d patterns of a kind: '%s'", SELECT_TEXTS, text);
    list[(*count)++] = text;
}

static void add_ranks(struct argp_state *state, struct selection *s, const char *text)
{
    for (const char *at = text;; at++) {
        char *end = (char *)at;
        unsigned long from = isdigit((unsigned char)*at) ? strtoul(at, &end, 10) : ULONG_MAX, to = from;
        if (!strncmp(end, "..", 2) && isdigit((unsigned char)end[2])) to = strtoul(end + 2, &end, 10);
        if (to > INT32_MAX || from > to || (*end && *end != ','))
            argp_error(state, "--rank: no list of ranks: '%s'", text);
        if (s->rank_count == SELECT_TEXTS) argp_error(state, "--rank: more than %d ranges: '%s'", SELECT_TEXTS, text);
        s->rank[s->rank_count++] = (struct rank_range){(uint32_t)from, (uint32_t)to};
        at = end;
        if (!*at) return;
    }
}

static uint32_t class_bit(const char *name, size_t length)
{
    for (uint32_t i = FDR_IN_REGION; i <= FDR_IN_USER; i++)
        if (strlen(fdr_class_name(i)) == length && memcmp(fdr_class_name(i), name, length) == 0) return 1u << i;
    return 0;
}

static uint32_t parse_classes(struct argp_state *state, const char *text)
{
    uint32_t classes = 0;
    for (const char *at = text;; at++) {
        size_t length = strcspn(at, ",");
        uint32_t bit = class_bit(at, length);
        if (!bit) argp_error(state, "--class: no event class '%.*s'", (int)length, at);
        classes |= bit;
        at += length;
        if (!*at) return classes;
    }
}

/* Parses "A..B", "A..", "..B", "A". */
static bool parse_depth(const char *text, uint32_t *from, uint32_t *to)
{
    char *end = NULL;
    const char *dots = strstr(text, "..");
    unsigned long a = 0, b = 0;
    bool starts = text[0] >= '0' && text[0] <= '9';
    if (starts) a = strtoul(text, &end, 10);
    if (starts && end != (dots ? dots : text + strlen(text))) return false;
    if (dots && dots[2]) {
        if (dots[2] < '0' || dots[2] > '9') return false;
        b = strtoul(dots + 2, &end, 10);
        if (*end || b == 0) return false;
    }
    if (!dots) b = a;
    if ((!starts && !dots) || a > UINT32_MAX || b > UINT32_MAX || (b && a > b) || (!dots && a == 0)) return false;
    *from = (uint32_t)a;
    *to = (uint32_t)b;
    return true;
}

/* The text behind the mark of a time: '-' counts from the last event, '@' on the recording's own time line, else from
 * the first event. */
static const char *without_mark(const char *text) { return text + (text[0] == '@' || text[0] == '-'); }

static void check_time(struct argp_state *state, const char *option, const char *text)
{
    uint64_t ns;
    if (!parse_duration(without_mark(text), &ns)) argp_error(state, "%s: not a time: '%s'", option, text);
}

void select_to(struct selection *s, const char *text, struct argp_state *state)
{
    check_time(state, "--to", text);
    s->to = text;
}

void select_one_class(struct argp_state *state, const struct selection *s, uint32_t class_, const char *what)
{
    if (s->classes & ~(1u << class_))
        argp_error(state, "--class: this verb shows %s only; fdr dump shows all classes", what);
}

static error_t parse(int key, char *text, struct argp_state *state)
{
    struct selection *s = state->input;
    switch (key) {
    case OPTION_LOCATION: add_text(state, s->location, &s->location_count, text); return 0;
    case OPTION_RANK: add_ranks(state, s, text); return 0;
    case OPTION_REGION: add_text(state, s->region, &s->region_count, text); return 0;
    case OPTION_CLASS: s->classes |= parse_classes(state, text); return 0;
    case OPTION_DEPTH:
        if (!parse_depth(text, &s->depth_min, &s->depth_max)) argp_error(state, "--depth: not A..B: '%s'", text);
        return 0;
    case OPTION_FROM:
        check_time(state, "--from", text);
        s->from = text;
        return 0;
    case OPTION_TO: select_to(s, text, state); return 0;
    case OPTION_MIN_DURATION:
        if (!parse_duration(text, &s->min_duration_ns)) argp_error(state, "--min-duration: not a duration: '%s'", text);
        return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

const struct argp select_argp = {options, parse, NULL, NULL, NULL, NULL, NULL};

/* ---- for one file ------------------------------------------------------------------------------------------- */

bool selection_shows_rank(const struct selection *s, int rank)
{
    bool shown = s->rank_count == 0;
    for (size_t i = 0; i < s->rank_count; i++)
        shown |= rank >= 0 && (uint32_t)rank >= s->rank[i].from && (uint32_t)rank <= s->rank[i].to;
    return shown;
}

/* In a job an id is that of each rank, and "RANK:ID" of one. */
static bool matches_location(const char *pattern, const struct fdr_location_info *location, struct fdr_origin origin)
{
    char label[LOCATION_LABEL_BYTES];
    uint64_t id;
    if (parse_count(pattern, &id)) return id == origin.id;
    snprintf(label, sizeof label, "%d:%u", origin.rank, origin.id);
    return fnmatch(pattern, location->name, 0) == 0 || (origin.rank >= 0 && strcmp(pattern, label) == 0);
}

static bool shows_location(const struct selection *s, const struct fdr_location_info *location,
                           struct fdr_origin origin)
{
    bool shown = s->location_count == 0;
    for (size_t i = 0; i < s->location_count; i++) shown |= matches_location(s->location[i], location, origin);
    return shown && selection_shows_rank(s, origin.rank);
}

static bool choose_locations(const struct selection *s, const struct fdr_file *file, const char *path, struct chosen *c)
{
    size_t count = fdr_location_count(file), found = 0;
    int rank = rank_of_file(file, path);
    if (s->location_count == 0 && s->rank_count == 0) return true;
    c->locations = malloc((count + 1) * sizeof *c->locations);
    if (!c->locations) return false;
    for (size_t i = 0; i < count; i++) {
        const struct fdr_location_info *l = fdr_location_info(file, i);
        struct fdr_origin origin = {.id = l->id, .rank = rank};
        fdr_location_origin(file, l->id, &origin);
        if (shows_location(s, l, origin)) c->locations[found++] = l->id;
    }
    if (found == 0 && s->location_count) complain("%s: no location matches '%s'", path, s->location[0]);
    if (found == 0 && !s->location_count) complain("%s: no location is of a rank of --rank", path);
    c->select.locations = c->locations;
    c->select.location_count = found;
    return true;
}

static bool region_matches(const struct selection *s, const char *name)
{
    for (size_t i = 0; i < s->region_count; i++)
        if (fnmatch(s->region[i], name, 0) == 0) return true;
    return false;
}

static bool choose_regions(const struct selection *s, const struct fdr_file *file, const char *path, struct chosen *c)
{
    /* ids count from 1; 0 is [unknown] */
    size_t count = fdr_definition_count(file, FDR_REGION_DEFINITION) + 1, found = 0;
    if (s->region_count == 0) return true;
    c->regions = calloc(count, 1);
    if (!c->regions) return false;
    for (size_t id = 0; id < count; id++) {
        c->regions[id] = region_matches(s, region_name(file, (uint32_t)id)) ||
                         region_matches(s, shown_region(file, (uint32_t)id));
        found += c->regions[id];
    }
    if (found == 0) complain("%s: no region matches '%s'", path, s->region[0]);
    c->select.regions = c->regions;
    c->select.region_count = count;
    return true;
}

static uint64_t time_of(const char *text, const struct fdr_file_info *info)
{
    uint64_t ns = 0;
    if (!text) return 0;
    parse_duration(without_mark(text), &ns);
    if (text[0] == '-') ns = info->last_ns > ns ? info->last_ns - ns : 0;
    else if (text[0] != '@') ns = ns > UINT64_MAX - info->first_ns ? UINT64_MAX : ns + info->first_ns;
    return ns;
}

bool choose(const struct selection *s, const struct fdr_file *file, const char *path, struct chosen *c)
{
    const struct fdr_file_info *info = fdr_file_info(file);
    *c = (struct chosen){0};
    c->select.classes = s->classes;
    /* A pattern for regions selects calls: a message has no region. */
    if (s->region_count > 0 && s->classes == 0) c->select.classes = 1u << FDR_IN_REGION;
    c->select.depth_min = s->depth_min;
    c->select.depth_max = s->depth_max;
    c->select.from_ns = time_of(s->from, info);
    c->select.to_ns = time_of(s->to, info);
    if (s->to && !c->select.to_ns) c->select.to_ns = 1; /* the reader takes 0 for "no bound" */
    c->select.min_duration_ns = s->min_duration_ns;
    if (s->from && s->to && c->select.from_ns > c->select.to_ns)
        complain("%s: --to %s is before --from %s: nothing is between them", path, s->to, s->from);
    if (choose_locations(s, file, path, c) && choose_regions(s, file, path, c)) return true;
    complain("%s: out of memory", path);
    chosen_free(c);
    return false;
}

void chosen_free(struct chosen *c)
{
    free(c->locations);
    free(c->regions);
    *c = (struct chosen){0};
}
