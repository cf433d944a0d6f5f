/* SPDX-License-Identifier: MIT */
/* The parser of FDR_SAMPLE: a rate or a period, and words, separated by commas: "1kHz", "on", "500Hz,wall",
 * "2ms,unwind", "wall,signal". Or an event and a count: "cache-misses/100000", "PAPI_TOT_INS/100000". */
#include <ctype.h>
#include <linux/perf_event.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/message.h"
#include "base/text/number.h"
#include "sampler/samples/sample_setting.h"

enum { USUAL_NS = 1000000, LEAST_NS = 100000 };

/* "1kHz" or "1ms" in ns; 0: the text is neither. */
static uint64_t period_of(const char *text)
{
    static const struct {
        const char *unit;
        double ns;
        bool rate;
    } units[] = {{"Hz", 1e9, true}, {"kHz", 1e6, true}, {"khz", 1e6, true}, {"hz", 1e9, true},  {"MHz", 1e3, true},
                 {"GHz", 1, true},  {"ns", 1, false},   {"us", 1e3, false}, {"ms", 1e6, false}, {"s", 1e9, false}};
    const char *end;
    double v = fdri_text_number(text, &end);
    if (end == text || !(v > 0 && v < 1e18)) return 0;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if (strcmp(end, units[i].unit)) continue;
        double ns = units[i].rate ? units[i].ns / v : units[i].ns * v;
        return ns < 1 ? 1 : ns > 3.6e12 ? 0 : (uint64_t)(ns + 0.5);
    }
    return 0;
}

/* True for events of PAPI, which have capitals ("PAPI_TOT_INS", "perf::PAGE-FAULTS", "PAGE-FAULTS"); perf's below have
 * none. */
static bool is_provided(const char *name, const char *end)
{
    while (name < end && !isupper((unsigned char)*name)) name++;
    return name < end;
}

/* "page-faults/100": a sample after each 100 page faults of the thread. */
static bool event(struct fdri_samples_settings *s, const char *w)
{
    static const struct {
        const char *name;
        uint32_t type;
        uint64_t config;
    } events[] = {{"cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES},
                  {"instructions", PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS},
                  {"cache-references", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_REFERENCES},
                  {"cache-misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES},
                  {"branches", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_INSTRUCTIONS},
                  {"branch-misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_MISSES},
                  {"page-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS},
                  {"minor-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS_MIN},
                  {"major-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS_MAJ}};
    const char *slash = strrchr(w, '/');
    char *end;
    if (!slash || !isdigit((unsigned char)slash[1])) return false;
    unsigned long long each = strtoull(slash + 1, &end, 10);
    if (*end || !each || each > 1ull << 48 || slash - w >= (ptrdiff_t)sizeof s->name) return false;
    if (is_provided(w, slash)) {
        s->events = s->provided = true;
        s->period_ns = each;
        snprintf(s->name, sizeof s->name, "%.*s", (int)(slash - w), w);
        return true;
    }
    for (size_t i = 0; i < sizeof events / sizeof *events; i++) {
        if (strlen(events[i].name) != (size_t)(slash - w) || strncmp(events[i].name, w, (size_t)(slash - w))) continue;
        s->events = true;
        s->type = events[i].type;
        s->config = events[i].config;
        s->period_ns = each;
        memcpy(s->name, events[i].name, strlen(events[i].name) + 1);
        return true;
    }
    return false;
}

/* The decision that a word makes; the last word of a kind counts. */
enum kind { UNKNOWN, OTHER, PERIOD, CLOCK, STACKS, SIGNAL, KINDS };

/* Words on the period or the clock, which exclude an event. */
static enum kind time_word(struct fdri_samples_settings *s, const char *w, uint64_t *period_ns)
{
    uint64_t period = period_of(w);
    if (period) return *period_ns = period, PERIOD;
    bool wall = !strcmp(w, "wall");
    if (!wall && strcmp(w, "cpu")) return UNKNOWN;
    return s->wall = wall, CLOCK;
}

static enum kind word(struct fdri_samples_settings *s, const char *w, uint64_t *period_ns)
{
    bool unwind = !strcmp(w, "unwind");
    if (unwind || !strcmp(w, "nostack"))
        return s->stacks = unwind ? FDRI_SAMPLES_UNWINDER : FDRI_SAMPLES_NO_STACKS, STACKS;
    if (!strcmp(w, "signal")) return SIGNAL;
    if (!strcmp(w, "off") || !strcmp(w, "0")) return *period_ns = 0, OTHER;
    if (strcmp(w, "on") && strcmp(w, "1")) return !s->events && event(s, w) ? OTHER : UNKNOWN;
    if (!*period_ns) *period_ns = USUAL_NS; /* keeps an explicit period */
    return OTHER;
}

/* Reports two words of one kind: "cpu,wall", "1ms,2ms". */
static void say_both(const char *text, const char *const pair[2])
{
    fdri_text_message("FDR_SAMPLE=%s: '%s' and '%s' exclude each other; using '%s'", text, pair[0], pair[1], pair[1]);
}

static void say_unknown(const char *text, const char *w)
{
    fdri_text_message("FDR_SAMPLE=%s: '%s' is no rate (1kHz), no period (1ms) and none of on, off, cpu, wall, signal, "
                      "unwind, nostack, EVENT/COUNT; "
                      "using off: no samples are taken",
                      text, w);
}

/* `wall` looks from outside unless `signal` is given. A line names words that then have no effect, except `nostack`. */
static void choose_way(struct fdri_samples_settings *s, const char *text, const char *const before[KINDS])
{
    s->outside = s->wall && !before[SIGNAL];
    if (before[SIGNAL] && !s->wall)
        fdri_text_message("FDR_SAMPLE=%s: 'signal' is a way of 'wall'; using it without 'signal'", text);
    if (s->outside && s->stacks == FDRI_SAMPLES_UNWINDER)
        fdri_text_message("FDR_SAMPLE=%s: 'wall' reads no stacks ('wall,signal' does); using it without 'unwind'",
                          text);
}

struct fdri_samples_settings fdri_samples_parse_setting(const char *text)
{
    struct fdri_samples_settings s = {.period_ns = 0};
    char copy[160], *save = NULL;
    const char *timed = NULL, *wrong = *text ? "" : NULL, *before[KINDS] = {NULL};
    const char *pair[2] = {NULL};
    bool pair_of_time = false;
    uint64_t period_ns = *text ? USUAL_NS : 0, named = 0;
    strncpy(copy, text, sizeof copy - 1);
    copy[sizeof copy - 1] = 0;
    for (char *w = strtok_r(copy, ",", &save); w; w = strtok_r(NULL, ",", &save)) {
        enum kind of_time = time_word(&s, w, &period_ns), kind = of_time ? of_time : word(&s, w, &period_ns);
        wrong = kind ? NULL : w;
        if (wrong) break;
        if (of_time) timed = w;
        bool same = !before[kind] || (kind == PERIOD ? named == period_ns : !strcmp(before[kind], w));
        if (kind != OTHER && !same) pair[0] = before[kind], pair[1] = w, pair_of_time = of_time;
        before[kind] = w;
        if (kind == PERIOD) named = period_ns;
    }
    if (wrong) {
        say_unknown(text, wrong);
        return (struct fdri_samples_settings){0};
    }
    if (pair[0] && !(s.events && pair_of_time)) say_both(text, pair);
    if (s.events && timed)
        fdri_text_message("FDR_SAMPLE=%s: an event's overflow takes no rate, period or clock; using it without '%s'",
                          text, timed);
    if (s.events) s.wall = false;
    choose_way(&s, text, before);
    if (!s.events || !period_ns) s.period_ns = period_ns; /* "off" switches an event off, too */
    if (s.provided && strstr(s.name, "CLOCK") && s.period_ns < LEAST_NS) {
        fdri_text_message("FDR_SAMPLE=%s: below 100000ns of %s leave a program no time for itself; using 100000", text,
                          s.name);
        s.period_ns = LEAST_NS;
    }
    if (s.period_ns && s.period_ns < LEAST_NS && !s.events) {
        fdri_text_message(
            "FDR_SAMPLE=%s: a period below 100us leaves a program no time for itself; using 100us (10kHz)", text);
        s.period_ns = LEAST_NS;
    }
    return s;
}
