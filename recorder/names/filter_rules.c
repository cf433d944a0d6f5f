/* SPDX-License-Identifier: MIT */
/* Include and exclude rules from FDR_FILTER, applied once to each region when it is defined. They are read when a
 * recording begins and do not change. A region's decision is one byte. docs/FILTER.md has the syntax. */
#define _GNU_SOURCE
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
#include "recorder/names/names.h"
#include "recorder/thread/thread.h"
#include "recorder/thread/thread_state.h"

enum { RULES_MAX = 255, PHASES_MAX = 32, LINE_MOST = 511, COUNT_MAX = (1 << 20) - 1 };

struct pattern {
    struct fdri_names_rule rule;
    bool by_file, named; /* named: not for regions known by address */
    bool yields;         /* a rule that leaves calls out takes precedence */
    char glob[200];
};
static struct pattern patterns[RULES_MAX];
static uint32_t pattern_count, any; /* any: atomic, as it is read while another recording begins */
static char phases[PHASES_MAX][64];
static uint32_t phase_count; /* atomic, like any */
/* By region id: 0 none, else pattern index + 1. Reserved address space, touched as regions come. */
static uint8_t *decision;

bool fdri_names_rules_any(void) { return fdri_atomic_load_relaxed(&any); }
bool fdri_names_rules_phases(void) { return fdri_atomic_load_relaxed(&phase_count) != 0; }

bool fdri_names_rules_phase(const char *name)
{
    for (uint32_t i = 0; i < phase_count; i++)
        if (fdri_text_glob(phases[i], name)) return true;
    return false;
}

const struct fdri_names_rule *fdri_names_rule_of(uint32_t region)
{
    if (!decision || region > FDRI_CODEC_ID_MAX) return NULL;
    uint8_t d = fdri_atomic_load_relaxed(&decision[region]);
    return d ? &patterns[d - 1].rule : NULL;
}

void fdri_names_rules_define(uint32_t region, const char *name, const char *file, bool by_address)
{
    if (!decision || region > FDRI_CODEC_ID_MAX) return;
    uint8_t d = 0;
    for (uint32_t i = 0; i < pattern_count; i++) { /* the last one that matches decides */
        const char *text = patterns[i].by_file ? file : name;
        if (!fdri_text_glob(patterns[i].glob, text) || (patterns[i].named && by_address)) continue;
        if (patterns[i].yields && d && patterns[d - 1].rule.mode != FDRI_NAMES_RULE_COUNTERS) continue;
        d = patterns[i].rule.mode == FDRI_NAMES_RULE_NONE ? 0 : (uint8_t)(i + 1);
    }
    fdri_atomic_store_relaxed(&decision[region], d);
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

/* VERB [COUNT or DURATION] name GLOB, or file GLOB. Returns NULL, or a text that says why the line is bad. */
static const char *parse_rule(char **words, int n, struct pattern *p)
{
    int next = 1;
    memset(p, 0, sizeof *p);
    if (!strcmp(words[0], "exclude")) p->rule.mode = FDRI_NAMES_RULE_EXCLUDE;
    else if (!strcmp(words[0], "include")) p->rule.mode = FDRI_NAMES_RULE_NONE;
    else if (!strcmp(words[0], "counters")) p->rule.mode = FDRI_NAMES_RULE_COUNTERS;
    else if (!strcmp(words[0], "first") || !strcmp(words[0], "every")) {
        p->rule.mode = words[0][0] == 'f' ? FDRI_NAMES_RULE_FIRST : FDRI_NAMES_RULE_EVERY;
        if (n < 2 || !parse_count(words[next++], &p->rule.count)) return "a count from 1 to 1048575 must follow";
    } else if (!strcmp(words[0], "min")) {
        p->rule.mode = FDRI_NAMES_RULE_MIN;
        if (n < 2 || !fdri_life_parse_duration(words[next++], &p->rule.min_ns))
            return "a duration such as 5us must follow";
    } else {
        return "unknown verb; known are include, exclude, first, every, min, counters, phase";
    }
    if (n - next != 2) return "expected: name GLOB, or file GLOB";
    if (!strcmp(words[next], "file")) p->by_file = true;
    else if (strcmp(words[next], "name")) return "expected: name GLOB, or file GLOB";
    if (strlen(words[next + 1]) >= sizeof p->glob) return "pattern longer than 199 bytes";
    strcpy(p->glob, words[next + 1]);
    return NULL;
}

static const char *add_line(char *line)
{
    char *words[6], *save = NULL;
    int n = 0;
    line[strcspn(line, "#\n")] = 0;
    for (char *w = strtok_r(line, " \t\r", &save); w && n < 6; w = strtok_r(NULL, " \t\r", &save)) words[n++] = w;
    if (n == 0) return NULL;
    if (!strcmp(words[0], "phase")) {
        if (n != 2 || strlen(words[1]) >= sizeof phases[0]) return "expected: phase NAME (under 64 bytes)";
        if (phase_count == PHASES_MAX) return "more than 32 phases";
        strcpy(phases[phase_count], words[1]);
        fdri_atomic_store_relaxed(&phase_count, phase_count + 1);
        return NULL;
    }
    if (pattern_count == RULES_MAX) return "more than 255 rules";
    const char *wrong = parse_rule(words, n, &patterns[pattern_count]);
    if (!wrong) pattern_count++;
    return wrong;
}

static void load_file(const char *path)
{
    FILE *f = fdri_text_open_lines(path);
    if (!f) {
        fdri_text_message("FDR_FILTER=%s: %s; recording everything", path,
                          errno == EINVAL ? "not a file" : strerror(errno));
        return;
    }
    char line[LINE_MOST + 3]; /* with its end, and one byte that shows a longer line */
    for (unsigned number = 1; fgets(line, sizeof line, f); number++) {
        bool read = strchr(line, '\n') || feof(f);
        char shown[81]; /* add_line splits the line */
        snprintf(shown, sizeof shown, "%.*s", (int)strcspn(line, "#\r\n"), line);
        const char *wrong = strcspn(line, "#\n") > LINE_MOST ? "longer than 511 bytes" : add_line(line);
        for (int c = 0; !read && c != '\n' && c != EOF;) c = getc(f); /* skip the rest of a line too long */
        if (wrong)
            fdri_text_message("FDR_FILTER=%s line %u '%s': %s; this line is ignored", path, number, shown, wrong);
    }
    if (ferror(f)) fdri_text_message("FDR_FILTER=%s: %s; using the lines read before that", path, strerror(errno));
    fclose(f);
}

/* Selects the calls at whose edges counters are read: FDR_EDGE_REGIONS, else the rules of the file, else all regions
 * defined by name. Without counters, the file's rules about them are dropped. */
static void add_edges(bool edges, const char *regions)
{
    char copy[512], *save = NULL;
    bool chosen = false;
    for (uint32_t i = 0; i < pattern_count; i++) {
        if (patterns[i].rule.mode != FDRI_NAMES_RULE_COUNTERS) continue;
        chosen = true;
        if (!edges) patterns[i].rule.mode = FDRI_NAMES_RULE_NONE;
    }
    if (!edges) return;
    snprintf(copy, sizeof copy, "%s", regions);
    for (char *glob = strtok_r(copy, ",", &save); glob; glob = strtok_r(NULL, ",", &save)) {
        struct pattern *p = &patterns[pattern_count];
        chosen = true;
        if (pattern_count == RULES_MAX || strlen(glob) >= sizeof p->glob) {
            fdri_text_message("FDR_EDGE_REGIONS: '%.40s': %s; this pattern is ignored", glob,
                              pattern_count == RULES_MAX ? "more than 255 rules" : "pattern longer than 199 bytes");
            continue;
        }
        *p = (struct pattern){.rule.mode = FDRI_NAMES_RULE_COUNTERS, .yields = true};
        strcpy(p->glob, glob);
        pattern_count++;
    }
    if (chosen || pattern_count == RULES_MAX) return;
    memmove(patterns + 1, patterns, pattern_count++ * sizeof *patterns); /* first: every other rule overrides it */
    patterns[0] = (struct pattern){.rule.mode = FDRI_NAMES_RULE_COUNTERS, .named = true, .glob = "*"};
}

void fdri_names_rules_load(const char *path, bool edges, const char *edge_regions)
{
    pattern_count = 0;
    fdri_atomic_store_relaxed(&phase_count, 0u);
    if (decision) memset(decision, 0, FDRI_CODEC_ID_MAX + 1); /* decisions of an earlier recording */
    if (*path) load_file(path);
    add_edges(edges, edge_regions);
    fdri_atomic_store_relaxed(&any, pattern_count);
    if (!pattern_count || decision) return;
    void *m = mmap(NULL, FDRI_CODEC_ID_MAX + 1, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
                   0);
    if (m == MAP_FAILED) fdri_text_message("FDR_FILTER=%s: no memory for rules; recording everything", path);
    else decision = m;
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
