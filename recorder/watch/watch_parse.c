/* SPDX-License-Identifier: MIT */
/* A line of text to a trigger: name, source, condition, options. docs/TRIGGERS.md has the syntax. */
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/text/message.h"
#include "base/text/number.h"
#include "export/view.h"
#include "recorder/life/settings.h"
#include "recorder/recording.h"
#include "recorder/watch/watch_table.h"

#define NOT_SAID UINT64_MAX

struct words {
    char text[512];
    char *word[25]; /* one more than a line may have: cut_name */
    int count, at;
};

static const char *next_word(struct words *w) { return w->at < w->count ? w->word[w->at++] : ""; }
static bool accept(struct words *w, const char *word)
{
    bool is = w->at < w->count && !strcmp(w->word[w->at], word);
    w->at += is;
    return is;
}

static bool number(const char *text, const char *end_is, double *out)
{
    const char *end;
    *out = fdri_text_number(text, &end);
    return end != text && !strcmp(end, end_is) && isfinite(*out);
}

/* A plain number, or a size with a unit. */
static bool value(const char *text, double *out)
{
    uint64_t bytes;
    if (number(text, "", out)) return true;
    if (!fdri_life_parse_size(text, &bytes)) return false;
    *out = (double)bytes;
    return true;
}

static const char *region(struct words *w, struct fdri_watch *t)
{
    t->source = FDRI_WATCH_BY_REGION;
    if (accept(w, "stuck")) {
        t->source = FDRI_WATCH_BY_STUCK;
        return fdri_life_parse_duration(next_word(w), &t->ns) && t->ns ? NULL : "expected: region GLOB stuck DURATION";
    }
    const char *limit = accept(w, "over") ? next_word(w) : "";
    if (number(limit, "p99", &t->limit) && t->limit > 0) {
        t->source = FDRI_WATCH_BY_P99;
        return NULL;
    }
    return fdri_life_parse_duration(limit, &t->ns) && t->ns
               ? NULL
               : "expected: region GLOB over DURATION, over Kp99, or stuck DURATION";
}

static const char *metric(struct words *w, struct fdri_watch *t)
{
    t->source = accept(w, "rate") ? FDRI_WATCH_BY_METRIC_RATE : FDRI_WATCH_BY_METRIC;
    t->below = accept(w, "below");
    t->ns = 100000000;
    bool good = (t->below || accept(w, "above")) && value(next_word(w), &t->limit);
    return good ? NULL : "expected: metric GLOB [rate] above VALUE, or below VALUE";
}

static const char *event(struct words *w, struct fdri_watch *t)
{
    static const char wrong[] = "expected: event GLOB count N, or event GLOB rate N/DURATION";
    char *slash = NULL;
    t->source = accept(w, "rate") ? FDRI_WATCH_BY_EVENT_RATE : FDRI_WATCH_BY_COUNT;
    if (t->source == FDRI_WATCH_BY_COUNT && !accept(w, "count")) return wrong;
    const char *count = next_word(w);
    errno = 0;
    t->count = *count >= '0' && *count <= '9' ? strtoull(count, &slash, 10) : 0;
    if (!t->count || errno) return wrong;
    if (t->source == FDRI_WATCH_BY_COUNT) return *slash ? wrong : NULL;
    return *slash == '/' && fdri_life_parse_duration(slash + 1, &t->ns) && t->ns ? NULL : wrong;
}

static const char *memory(struct words *w, struct fdri_watch *t)
{
    t->source = FDRI_WATCH_BY_MEMORY;
    const char *limit = accept(w, "above") ? next_word(w) : "";
    uint64_t bytes;
    t->percent = number(limit, "%", &t->limit);
    /* 0 % and 100 % are refused: they would always or never hold */
    bool good = t->percent ? t->limit > 0 && t->limit < 100 : fdri_life_parse_size(limit, &bytes);
    if (good && !t->percent) t->limit = (double)bytes;
    return good ? NULL : "expected: memory above SIZE, or above N%, N between 0 and 100";
}

static const char *stuck_in_mpi(struct words *w, struct fdri_watch *t)
{
    t->source = FDRI_WATCH_BY_MPI;
    bool good = accept(w, "in") && accept(w, "mpi") && accept(w, "over");
    return good && fdri_life_parse_duration(next_word(w), &t->ns) && t->ns ? NULL
                                                                           : "expected: stuck in mpi over DURATION";
}

static const char *parse_keep(const char *text, struct fdri_export_trigger *t)
{
    char *end;
    unsigned long n = strtoul(text, &end, 10);
    if (end == text || n < 1 || n > 1000000 || (*end && strcmp(end, ",oldest") && strcmp(end, ",newest")))
        return "expected: keep N, keep N,oldest or keep N,newest";
    t->keep = (uint32_t)fdri_bits_min(n, FDRI_EXPORT_KEEP_MAX);
    t->keep_newest = !strcmp(end, ",newest");
    if (n > FDRI_EXPORT_KEEP_MAX)
        fdri_text_message("trigger with keep %.40s: no more than 256 snapshots are kept; using 256%s", text, end);
    return NULL;
}

static const char *parse_scope(struct words *w, struct fdri_export_trigger *t)
{
    t->job = accept(w, "job");
    return t->job || accept(w, "process") ? NULL : "expected: scope job, or scope process";
}

static const char *options(struct words *w, struct fdri_export_trigger *t)
{
    const char *wrong = NULL;
    while (w->at < w->count && !wrong) {
        if (accept(w, "window"))
            wrong = fdri_life_parse_duration(next_word(w), &t->window_ns) ? NULL : "expected: window DURATION";
        else if (accept(w, "holdoff"))
            wrong = fdri_life_parse_duration(next_word(w), &t->holdoff_ns) ? NULL : "expected: holdoff DURATION";
        else if (accept(w, "keep")) wrong = parse_keep(next_word(w), t);
        else if (accept(w, "scope")) wrong = parse_scope(w, t);
        else wrong = "unknown word after the condition; known are window, holdoff, keep, scope";
    }
    return wrong;
}

static const char *source(struct words *w, struct fdri_watch *t)
{
    if (accept(w, "api")) return t->source = FDRI_WATCH_BY_API, NULL;
    if (accept(w, "memory")) return memory(w, t);
    if (accept(w, "stuck")) return stuck_in_mpi(w, t);
    int which = accept(w, "region") ? 1 : accept(w, "metric") ? 2 : accept(w, "event") ? 3 : 0;
    if (!which) return "unknown source; known are region, metric, event, memory, stuck, api";
    const char *glob = next_word(w);
    if (strlen(glob) >= sizeof t->glob) return "pattern longer than 199 bytes";
    strcpy(t->glob, glob);
    return which == 1 ? region(w, t) : which == 2 ? metric(w, t) : event(w, t);
}

static const char *split(const char *line, struct words *w)
{
    char *save = NULL;
    size_t n = strcspn(line, "#\n");
    if (n >= sizeof w->text) return "line longer than 511 bytes";
    memcpy(w->text, line, n);
    w->text[n] = 0;
    w->count = w->at = 0;
    for (char *p = strtok_r(w->text, " \t\r", &save); p && w->count < 24; p = strtok_r(NULL, " \t\r", &save))
        w->word[w->count++] = p;
    return NULL;
}

/* Splits "NAME: SOURCE" or "NAME:SOURCE", so that the first word is the name. False: there is no name. */
static bool cut_name(struct words *w)
{
    char *colon = strrchr(w->word[0], ':');
    if (!colon || colon == w->word[0]) return false;
    *colon = 0;
    if (!colon[1]) return true;
    memmove(&w->word[2], &w->word[1], (size_t)(w->count - 1) * sizeof w->word[0]);
    w->word[1] = colon + 1;
    w->count++;
    return true;
}

/* Stores the condition as text: the line without name and options. */
static void set_condition_text(const struct words *w, int from, int to, struct fdri_export_trigger *t)
{
    size_t used = 0;
    t->condition[0] = 0;
    for (int i = from; i < to && used < sizeof t->condition - 1; i++)
        used += (size_t)snprintf(t->condition + used, sizeof t->condition - used, "%s%s", i > from ? " " : "",
                                 w->word[i]);
}

/* A second slow call soon after the first must not be lost. Where the newest snapshots are kept, writing never ends, so
 * the longer time holds. */
static uint64_t usual_holdoff(const struct fdri_watch *t, const struct fdri_life_settings *set)
{
    bool region = t->source == FDRI_WATCH_BY_REGION || t->source == FDRI_WATCH_BY_P99 ||
                  t->source == FDRI_WATCH_BY_STUCK;
    return region && !t->trigger.keep_newest ? set->region_holdoff_ns : set->holdoff_ns;
}

const char *fdri_watch_parse(const char *line, const struct fdri_life_settings *set, struct fdri_watch *t)
{
    struct words w;
    memset(t, 0, sizeof *t);
    t->trigger.holdoff_ns = NOT_SAID;
    t->trigger.keep = set->keep;
    t->trigger.keep_newest = set->keep_newest;
    const char *wrong = split(line, &w);
    if (wrong || w.count == 0) return wrong;
    bool named = cut_name(&w);
    if (named && strlen(w.word[0]) >= sizeof t->trigger.name) return "name longer than 63 bytes";
    if (named) strcpy(t->trigger.name, w.word[0]);
    w.at = named;
    wrong = source(&w, t);
    set_condition_text(&w, named, w.at, &t->trigger);
    if (!named) snprintf(t->trigger.name, sizeof t->trigger.name, "%.63s", t->trigger.condition);
    if (!wrong) wrong = options(&w, &t->trigger);
    if (t->trigger.holdoff_ns == NOT_SAID) t->trigger.holdoff_ns = usual_holdoff(t, set);
    return wrong;
}
