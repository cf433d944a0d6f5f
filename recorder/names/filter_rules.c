/* SPDX-License-Identifier: MIT */
/* Include and exclude rules from FDR_FILTER, applied once to each region: when it is defined, or when its names are
 * known. They are read when a recording begins and do not change. docs/FILTER.md has the syntax. */
#define _GNU_SOURCE
#include <assert.h>
#include <errno.h>
#include <fdr/fdr.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/atomic.h"
#include "base/system/signal_mask.h"
#include "base/text/glob.h"
#include "base/text/line_file.h"
#include "base/text/message.h"
#include "format/codec/record_codec.h"
#include "recorder/life/settings.h"
#include "format/arena/arena.h"
#include "recorder/names/names.h"
#include "recorder/names/region_rules.h"
#include "recorder/recording.h"
#include "recorder/thread/arena_place.h"
#include "recorder/thread/thread.h"
#include "recorder/thread/thread_state.h"

enum {
    RULES_MAX = 4095,
    PHASES_MAX = 32,
    LINE_MOST = 16383,
    TEXT_BYTES = 1 << 20,
    EDGES_BYTES = 512, /* of FDR_EDGE_REGIONS */
    COUNT_MAX = (1 << 20) - 1
};

struct pattern {
    struct fdri_names_rule rule;
    bool by_file, named; /* named: not for regions known by address */
    bool yields;         /* a rule that leaves calls out takes precedence */
    bool exact;          /* the text is a name, not a pattern */
    uint8_t matched;     /* atomic: some region did */
    uint32_t line;       /* of FDR_FILTER; 0: of FDR_EDGE_REGIONS */
    const char *text;
};
/* Reserved address space, touched as rules and regions come. Made once: a late reader may still look at it. */
static struct rules {
    uint16_t decision[FDRI_CODEC_ID_MAX + 1]; /* atomic, by region id: 0 none, else pattern index + 1 */
    uint8_t late[FDRI_CODEC_ID_MAX + 1];      /* the decision came after the first call */
    struct pattern pattern[RULES_MAX];
    char text[TEXT_BYTES]; /* of the patterns */
} * rules;
static size_t text_used;
/* any, named: atomic, as they are read while another recording begins */
static uint32_t pattern_count, any, named;
static char phases[PHASES_MAX][64];
static uint32_t phase_count; /* atomic, like any */

bool fdri_names_rules_loaded(void) { return fdri_atomic_load_relaxed(&any); }
bool fdri_names_rules_named(void) { return fdri_atomic_load_relaxed(&named); }
bool fdri_names_rules_phases(void) { return fdri_atomic_load_relaxed(&phase_count) != 0; }

bool fdri_names_rules_phase(const char *name)
{
    for (uint32_t i = 0; i < phase_count; i++)
        if (fdri_text_glob(phases[i], name)) return true;
    return false;
}

/* Has this thread a row of the region without the mark of a rule? Then its row was made before the decision. A handler
 * that interrupts an operation works on the lane. */
static bool knows_no_rule(uint32_t region)
{
    const struct fdri_thread *lane = &fdri_record_lane, *t = &fdri_record_self;
    if (lane->recording == fdri_life_recording.number && lane->loc && fdri_atomic_load_relaxed(&lane->loc->busy))
        t = lane;
    if (t->recording != fdri_life_recording.number || !t->loc) return false;
    uint32_t table_off = fdri_atomic_load_relaxed(&t->loc->rows_table_off), key = region | FDRI_ARENA_DEF_REGION << 24;
    if (!table_off) return false;
    const struct fdri_arena_rowtable *table = fdri_thread_at(t, table_off);
    const uint32_t *slot = (const void *)(table + 1);
    uint32_t mask = (1u << table->log2) - 1, i = key * 0x9E3779B1u >> (32 - table->log2);
    for (uint32_t n = 0, off; n <= mask && (off = fdri_atomic_load_relaxed(&slot[i])) != 0; i = (i + 1) & mask, n++) {
        const struct fdri_arena_row *row = fdri_thread_at(t, off);
        if (row->key == key) return !(row->flags & FDRI_ARENA_ROW_GATED);
    }
    return false;
}

const struct fdri_names_rule *fdri_names_rule_of(uint32_t region)
{
    if (!rules || region > FDRI_CODEC_ID_MAX) return NULL;
    uint16_t d = fdri_atomic_load_acquire(&rules->decision[region]); /* A:decision */
    if (d && rules->late[region] && knows_no_rule(region)) return NULL;
    return d ? &rules->pattern[d - 1].rule : NULL;
}

const char *fdri_names_rule_pattern(const struct fdri_names_rule *rule)
{
    return ((const struct pattern *)(const void *)rule)->text;
}

bool fdri_names_is_ruled(uint32_t region)
{
    return rules && region <= FDRI_CODEC_ID_MAX && fdri_atomic_load_relaxed(&rules->decision[region]);
}

static bool matches(struct pattern *p, const struct fdri_names_called *called, const char *file)
{
    bool found = p->by_file && fdri_text_glob(p->text, file);
    for (uint32_t i = 0; !found && !p->by_file && i < called->count; i++)
        found = p->exact ? !strcmp(p->text, called->name[i]) : fdri_text_glob(p->text, called->name[i]);
    if (found) fdri_atomic_store_relaxed(&p->matched, (uint8_t)1);
    return found;
}

/* The last rule that matches decides. Returns its index + 1; 0: none. */
static uint16_t decide(const struct fdri_names_called *called, const char *file, bool by_address)
{
    uint16_t d = 0;
    for (uint32_t i = 0; i < pattern_count; i++) {
        struct pattern *p = &rules->pattern[i];
        if ((p->named && by_address) || !matches(p, called, file)) continue;
        if (p->yields && d && rules->pattern[d - 1].rule.mode != FDRI_NAMES_RULE_COUNTERS) continue;
        d = p->rule.mode == FDRI_NAMES_RULE_NONE ? 0 : (uint16_t)(i + 1);
    }
    return d;
}

void fdri_names_rules_define(uint32_t region, const struct fdri_names_called *called, const char *file, bool by_address)
{
    if (!rules || region > FDRI_CODEC_ID_MAX) return;
    uint16_t d = called->count ? decide(called, file, by_address) : 0;
    fdri_atomic_store_relaxed(&rules->decision[region], d);
}

/* A region that has a rule already keeps it: threads may have calls that it left out. */
bool fdri_names_rules_decide_late(uint32_t region, const struct fdri_names_called *called)
{
    if (!rules || region > FDRI_CODEC_ID_MAX) return false;
    uint16_t d = decide(called, "", true);
    if (!d || fdri_atomic_load_relaxed(&rules->decision[region])) return false;
    rules->late[region] = 1;
    fdri_atomic_store_release(&rules->decision[region], d); /* R:decision - who sees the rule sees that it is late */
    return true;
}

void fdri_names_rules_patterns(void (*each)(const char *pattern, bool exact))
{
    for (uint32_t i = 0; i < pattern_count; i++)
        if (!rules->pattern[i].by_file && !rules->pattern[i].named)
            each(rules->pattern[i].text, rules->pattern[i].exact);
}

void fdri_names_rules_unmatched(void (*each)(const char *where, const char *pattern))
{
    char where[40];
    for (uint32_t i = 0; i < pattern_count; i++) {
        const struct pattern *p = &rules->pattern[i];
        if (fdri_atomic_load_relaxed(&p->matched) || p->named) continue;
        snprintf(where, sizeof where, p->line ? "FDR_FILTER line %u" : "FDR_EDGE_REGIONS", p->line);
        each(where, p->text);
    }
}

static bool parse_count(const char *text, uint32_t *count)
{
    char *end;
    errno = 0;
    unsigned long v = strtoul(text, &end, 10);
    if (errno || *end || end == text || v < 1 || v > COUNT_MAX) return false;
    *count = (uint32_t)v;
    return true;
}

/* The next word of a line; NULL: its end, or a comment. */
static char *next_word(char **at)
{
    char *word = *at + strspn(*at, " \t\r\n"), *end = word + strcspn(word, " \t\r\n#");
    if (end == word) return NULL;
    *at = *end && *end != '#' ? end + 1 : strchr(end, 0);
    *end = 0;
    return word;
}

/* The rest of a line, without blanks around it. */
static const char *rest_of(char *at)
{
    at += strspn(at, " \t");
    size_t bytes = strcspn(at, "\r\n");
    while (bytes && (at[bytes - 1] == ' ' || at[bytes - 1] == '\t')) bytes--;
    at[bytes] = 0;
    return at;
}

/* Reads name GLOB, file GLOB or exact NAME: the regions of the rule. The text stays in the line. */
static const char *parse_what(char *at, bool whole, struct pattern *p)
{
    static const char expected[] = "expected: name GLOB, file GLOB, or exact NAME";
    const char *what = next_word(&at);
    if (!what) return expected;
    p->exact = !strcmp(what, "exact");
    p->by_file = !strcmp(what, "file");
    if (!p->exact && !p->by_file && strcmp(what, "name")) return expected;
    if (p->exact && !whole) return "longer than 16383 bytes";
    p->text = p->exact ? rest_of(at) : next_word(&at);
    return !p->text || !*p->text || (!p->exact && next_word(&at)) ? expected : NULL;
}

static_assert(offsetof(struct pattern, rule) == 0, "fdri_names_rule_pattern");

/* Reads the words after `iterations`: every COUNT, or differing. */
static bool parse_iterations(char **at, uint32_t *count)
{
    const char *which = next_word(at);
    if (which && !strcmp(which, "differing")) return true; /* count 0 */
    const char *text = which && !strcmp(which, "every") ? next_word(at) : NULL;
    return text && parse_count(text, count);
}

/* VERB [COUNT or DURATION] name GLOB, file GLOB, or exact NAME. Returns NULL, or a text that says why the line is
 * bad. */
static const char *parse_rule(const char *verb, char *at, bool whole, struct pattern *p)
{
    memset(p, 0, sizeof *p);
    if (!strcmp(verb, "exclude")) p->rule.mode = FDRI_NAMES_RULE_EXCLUDE;
    else if (!strcmp(verb, "include")) p->rule.mode = FDRI_NAMES_RULE_NONE;
    else if (!strcmp(verb, "counters")) p->rule.mode = FDRI_NAMES_RULE_COUNTERS;
    else if (!strcmp(verb, "first") || !strcmp(verb, "every")) {
        p->rule.mode = verb[0] == 'f' ? FDRI_NAMES_RULE_FIRST : FDRI_NAMES_RULE_EVERY;
        const char *count = next_word(&at);
        if (!count || !parse_count(count, &p->rule.count)) return "a count from 1 to 1048575 must follow";
    } else if (!strcmp(verb, "min")) {
        p->rule.mode = FDRI_NAMES_RULE_MIN;
        const char *time = next_word(&at);
        if (!time || !fdri_life_parse_duration(time, &p->rule.min_ns)) return "a duration such as 5us must follow";
    } else if (!strcmp(verb, "iterations")) {
        p->rule.mode = FDRI_NAMES_RULE_ITERATIONS;
        if (!parse_iterations(&at, &p->rule.count)) return "every COUNT (1 to 1048575) or differing must follow";
    } else {
        return "unknown verb; known are include, exclude, first, every, min, counters, iterations, phase";
    }
    return parse_what(at, whole, p);
}

static const char *add_phase(char *at)
{
    const char *name = next_word(&at);
    if (!name || next_word(&at) || strlen(name) >= sizeof phases[0]) return "expected: phase NAME (under 64 bytes)";
    if (phase_count == PHASES_MAX) return "more than 32 phases";
    strcpy(phases[phase_count], name);
    fdri_atomic_store_relaxed(&phase_count, phase_count + 1);
    return NULL;
}

/* The line lies at the end of rules->text, and stays there if it is a rule. whole: with its end. */
static const char *add_line(char *line, unsigned number, bool whole)
{
    char *at = line;
    const char *verb = next_word(&at);
    if (!verb) return NULL;
    if (!strcmp(verb, "phase")) return add_phase(at);
    if (pattern_count == RULES_MAX) return "more than 4095 rules";
    struct pattern *p = &rules->pattern[pattern_count];
    const char *wrong = parse_rule(verb, at, whole, p);
    if (wrong) return wrong;
    p->line = number;
    pattern_count++;
    size_t bytes = strlen(p->text) + 1;
    memmove(line, p->text, bytes);
    p->text = line;
    text_used += bytes;
    return NULL;
}

static void load_file(const char *path)
{
    FILE *f = fdri_text_open_lines(path);
    if (!f) {
        fdri_text_message("FDR_FILTER=%s: %s; recording everything", path,
                          errno == EINVAL ? "not a file" : strerror(errno));
        return;
    }
    const size_t line_bytes = LINE_MOST + 3; /* with its end, and one byte that shows a longer line */
    char *line;
    for (unsigned number = 1; fgets(line = rules->text + text_used, (int)line_bytes, f); number++) {
        bool read = strchr(line, '\n') || feof(f), whole = read && strcspn(line, "\n") <= LINE_MOST;
        char shown[81]; /* add_line splits the line */
        snprintf(shown, sizeof shown, "%.*s", (int)strcspn(line, "#\r\n"), line);
        const char *wrong = strcspn(line, "#\n") > LINE_MOST ? "longer than 16383 bytes"
                                                             : add_line(line, number, whole);
        for (int c = 0; !read && c != '\n' && c != EOF;) c = getc(f); /* skip the rest of a line too long */
        if (wrong)
            fdri_text_message("FDR_FILTER=%s line %u '%s': %s; this line is ignored", path, number, shown, wrong);
        if (text_used > TEXT_BYTES - EDGES_BYTES - line_bytes) {
            fdri_text_message("FDR_FILTER=%s: more than 1 MiB; using the rules up to line %u", path, number);
            break;
        }
    }
    if (ferror(f)) fdri_text_message("FDR_FILTER=%s: %s; using the lines read before that", path, strerror(errno));
    fclose(f);
}

/* Selects the calls at whose edges counters are read: FDR_EDGE_REGIONS, else the rules of the file, else all regions
 * defined by name. Without counters, the file's rules about them are dropped. */
static void add_edges(bool edges, const char *regions)
{
    char *copy = rules->text + text_used, *save = NULL;
    struct pattern *p = rules->pattern;
    bool chosen = false;
    for (uint32_t i = 0; i < pattern_count; i++) {
        if (p[i].rule.mode != FDRI_NAMES_RULE_COUNTERS) continue;
        chosen = true;
        if (!edges) p[i].rule.mode = FDRI_NAMES_RULE_NONE;
    }
    if (!edges) return;
    snprintf(copy, EDGES_BYTES, "%s", regions);
    for (char *glob = strtok_r(copy, ",", &save); glob; glob = strtok_r(NULL, ",", &save)) {
        chosen = true;
        if (pattern_count == RULES_MAX)
            fdri_text_message("FDR_EDGE_REGIONS: '%.40s': more than 4095 rules; this pattern is ignored", glob);
        else p[pattern_count++] = (struct pattern){.rule.mode = FDRI_NAMES_RULE_COUNTERS, .yields = true, .text = glob};
    }
    if (chosen || pattern_count == RULES_MAX) return;
    memmove(p + 1, p, pattern_count++ * sizeof *p); /* first: every other rule overrides it */
    p[0] = (struct pattern){.rule.mode = FDRI_NAMES_RULE_COUNTERS, .named = true, .text = "*"};
}

static bool have_rules(const char *path)
{
    if (rules) return true;
    void *m = mmap(NULL, sizeof *rules, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (m != MAP_FAILED) rules = m;
    else fdri_text_message("FDR_FILTER=%s: no memory for rules; recording everything", path);
    return rules != NULL;
}

void fdri_names_rules_load(const char *path, bool edges, const char *edge_regions)
{
    pattern_count = 0;
    text_used = 0;
    fdri_atomic_store_relaxed(&phase_count, 0u);
    if (rules) { /* decisions of an earlier recording */
        memset(rules->decision, 0, sizeof rules->decision);
        memset(rules->late, 0, sizeof rules->late);
    }
    if ((*path || edges) && have_rules(path)) {
        if (*path) load_file(path);
        add_edges(edges, edge_regions);
    }
    uint32_t about_functions = 0;
    for (uint32_t i = 0; i < pattern_count; i++)
        about_functions += !rules->pattern[i].by_file && !rules->pattern[i].named;
    fdri_atomic_store_relaxed(&named, about_functions);
    fdri_atomic_store_relaxed(&any, pattern_count);
}

/* A phase of a thread that has no room for a location yet. */
static void phase_before(const char *name, bool begin)
{
    struct fdri_thread_wishes *said = fdri_thread_wishes();
    sigset_t old;
    if (!said) return;
    fdri_system_signals_block(&old); /* a handler could leave by longjmp */
    if (fdri_thread_hold_recording(said->recording)) {
        if (fdri_names_rules_phase(name)) fdri_thread_nest(&said->phases, begin);
        fdri_thread_release_recording();
    }
    fdri_system_signals_restore(&old);
}

/* A phase begins or ends; only those named by rules count. Phases nest; an end without a begin does nothing. Lanes are
 * not paused. The names are read inside of the operation, as they change only when no thread is in one. */
static void phase(const char *name, bool begin)
{
    struct fdri_thread *t = fdri_names_rules_phases() ? fdri_thread_begin(FDRI_THREAD_NO_EVENT) : NULL;
    if (!name) name = "";
    if (!t) {
        phase_before(name, begin);
        return;
    }
    if (fdri_names_rules_phase(name)) {
        fdri_thread_nest(&t->phases, begin);
        fdri_thread_update_pause(t);
    }
    fdri_thread_end(t);
}
void fdr_phase_begin(const char *name) { phase(name, true); }
void fdr_phase_end(const char *name) { phase(name, false); }
