/* SPDX-License-Identifier: MIT */
/* All sources: finding counters by name, and which of them work in this process on this machine. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/fd/descriptor.h"
#include "sampler/counters/counter.h"

/* A name without source means the first of these that has it and where it works: exact and cheap ones come first. */
static const struct fdri_counters_source *const built_in[] = {
    &fdri_counters_source_perf,    &fdri_counters_source_hardware, &fdri_counters_source_sched,
    &fdri_counters_source_task,    &fdri_counters_source_switches, &fdri_counters_source_derived,
    &fdri_counters_source_process, &fdri_counters_source_io,       &fdri_counters_source_energy,
    &fdri_counters_source_rusage};
enum { BUILT_IN = sizeof built_in / sizeof *built_in };
static const struct fdri_counters_source *added[FDRI_COUNTERS_SOURCES_MAX - BUILT_IN];
static size_t added_count;

static const char default_list[] = "page-faults,context-switches,task-clock|cpu-time|user-time,run-delay,rss";

size_t fdri_counters_source_count(void) { return added_count + BUILT_IN; }
const struct fdri_counters_source *fdri_counters_source_at(size_t i)
{
    return i < added_count ? added[i] : built_in[i - added_count];
}

void fdri_counters_source_add(const struct fdri_counters_source *source)
{
    if (!source) added_count = 0;
    else if (added_count < sizeof added / sizeof *added) added[added_count++] = source;
}

/* ---- handles ---- */

int fdri_counters_handle_open(struct fdri_counters_handle *h, const struct fdri_counters_source *source, int tid,
                              uint32_t wanted)
{
    *h = (struct fdri_counters_handle){.source = source, .tid = tid, .wanted = wanted};
    for (size_t i = 0; i < FDRI_COUNTERS_SOURCE_COUNTERS; i++) h->fd[i] = -1;
    if (!fdri_fd_budget_take(source->descriptors(wanted))) {
        h->source = NULL;
        return -EMFILE;
    }
    int e = source->open(h);
    if (e) {
        fdri_fd_budget_give(source->descriptors(wanted));
        h->source = NULL;
    }
    for (size_t i = 0; !e && i < FDRI_COUNTERS_SOURCE_COUNTERS; i++)
        if (h->fd[i] >= 0) h->mark[i] = fdri_fd_identify(h->fd[i]);
    return e;
}

/* The first descriptor suffices: a program that closes descriptors of fdr closes them all. */
int fdri_counters_handle_read(struct fdri_counters_handle *h, uint64_t *value)
{
    size_t i = 0;
    if (!h->source) return -EBADF; /* it could not be opened again */
    while (i < FDRI_COUNTERS_SOURCE_COUNTERS && h->fd[i] < 0) i++;
    if (i < FDRI_COUNTERS_SOURCE_COUNTERS && !fdri_fd_is(h->fd[i], &h->mark[i])) return -EBADF;
    return h->source->read(h, value);
}

void fdri_counters_handle_close(struct fdri_counters_handle *h)
{
    if (!h->source) return;
    for (size_t i = 0; i < FDRI_COUNTERS_SOURCE_COUNTERS; i++)
        if (h->fd[i] >= 0 && !fdri_fd_is(h->fd[i], &h->mark[i])) h->fd[i] = -1;
    h->source->close(h);
    fdri_fd_budget_give(h->source->descriptors(h->wanted));
    h->source = NULL;
}

/* ---- names ---- */

void fdri_counters_text(char *text, size_t bytes, struct fdri_counters_choice c)
{
    snprintf(text, bytes, "%s:%s", c.source->name, c.source->counter[c.index].name);
}

fdr_metric_id fdri_counters_define(struct fdri_counters_choice c)
{
    const struct fdri_counters *counter = &c.source->counter[c.index];
    char name[64];
    fdri_counters_text(name, sizeof name, c);
    return fdr_metric_define(name, counter->unit, fdri_counters_type(c), counter->kind);
}

struct list {
    struct fdri_counters_choice *out;
    size_t count, most;
    bool threads_only;
    char *missing;
    size_t missing_bytes, missing_used;
};

static void __attribute__((format(printf, 2, 3))) note_missing(struct list *l, const char *format, ...)
{
    va_list ap;
    if (l->missing_used + 3 >= l->missing_bytes) return;
    if (l->missing_used) l->missing_used += (size_t)sprintf(l->missing + l->missing_used, "; ");
    va_start(ap, format);
    int n = vsnprintf(l->missing + l->missing_used, l->missing_bytes - l->missing_used, format, ap);
    va_end(ap);
    l->missing_used += n > 0 ? (size_t)n : 0;
    if (l->missing_used >= l->missing_bytes) l->missing_used = l->missing_bytes - 1;
}

static bool list_has(const struct list *l, struct fdri_counters_choice c)
{
    for (size_t i = 0; i < l->count; i++)
        if (l->out[i].source == c.source && l->out[i].index == c.index) return true;
    return false;
}

/* Tries the counter and adds it. False: the reason is in `why`. */
static bool try_counter(struct list *l, struct fdri_counters_choice c, char *why, size_t bytes)
{
    if (l->threads_only && !c.source->per_thread) {
        snprintf(why, bytes, "counts the whole process; a call belongs to a thread");
        return false;
    }
    if (l->threads_only && !c.source->read) {
        snprintf(why, bytes, "is computed by the monitor thread");
        return false;
    }
    if (list_has(l, c)) return true;
    if (c.source->probe(c.index, why, bytes)) return false;
    if (l->count == l->most) {
        snprintf(why, bytes, "more than %zu counters", l->most);
        return false;
    }
    l->out[l->count++] = c;
    return true;
}

/* Finds the counter `name`, with or without its source, from place *at in the order of sources on. */
static bool find(const char *name, size_t *at, struct fdri_counters_choice *c)
{
    const char *colon = strchr(name, ':');
    size_t length = colon ? (size_t)(colon - name) : 0;
    for (; *at < fdri_counters_source_count(); ++*at) {
        const struct fdri_counters_source *s = fdri_counters_source_at(*at);
        if (colon && (strncmp(s->name, name, length) || s->name[length])) continue;
        for (uint32_t i = 0; i < s->count; i++) {
            if (strcmp(s->counter[i].name, colon ? colon + 1 : name)) continue;
            *c = (struct fdri_counters_choice){s, i};
            ++*at;
            return true;
        }
    }
    return false;
}

/* Adds the first working counter of this name. False: `why` is about the first one that has the name. */
static bool take_name(struct list *l, const char *name, char *why, size_t bytes)
{
    struct fdri_counters_choice c;
    char later[FDRI_COUNTERS_WHY_BYTES];
    bool any = false;
    for (size_t at = 0; find(name, &at, &c); any = true)
        if (try_counter(l, c, any ? later : why, any ? sizeof later : bytes)) return true;
    if (!any) snprintf(why, bytes, "unknown; `fdr counters` lists the counters");
    return false;
}

/* "A|B|C" */
static void take_alternatives(struct list *l, char *names)
{
    char why[FDRI_COUNTERS_WHY_BYTES] = "", later[FDRI_COUNTERS_WHY_BYTES], *save = NULL, *first = NULL;
    for (char *name = strtok_r(names, "|", &save); name; name = strtok_r(NULL, "|", &save)) {
        if (take_name(l, name, first ? later : why, FDRI_COUNTERS_WHY_BYTES)) return;
        if (!first) first = name;
    }
    if (first) note_missing(l, "%s: %s", first, why);
}

static void take_all(struct list *l)
{
    for (size_t i = 0; i < fdri_counters_source_count(); i++) {
        const struct fdri_counters_source *s = fdri_counters_source_at(i);
        char why[FDRI_COUNTERS_WHY_BYTES] = "", first_why[FDRI_COUNTERS_WHY_BYTES] = "";
        const char *first = NULL;
        uint32_t more = 0;
        if (l->threads_only && (!s->per_thread || !s->read)) continue;
        for (uint32_t k = 0; k < s->count; k++) {
            if (try_counter(l, (struct fdri_counters_choice){s, k}, why, sizeof why)) continue;
            if (first) {
                more++;
                continue;
            }
            first = s->counter[k].name;
            memcpy(first_why, why, sizeof why);
        }
        if (first && more) note_missing(l, "%s:%s and %u more of %s: %s", s->name, first, more, s->name, first_why);
        else if (first) note_missing(l, "%s:%s: %s", s->name, first, first_why);
    }
}

static void take_list(struct list *l, const char *text)
{
    char copy[512], *save = NULL;
    snprintf(copy, sizeof copy, "%s", text);
    for (char *word = strtok_r(copy, ", \t", &save); word; word = strtok_r(NULL, ", \t", &save)) {
        if (!strcmp(word, "all")) take_all(l);
        else if (!strcmp(word, "default")) take_list(l, default_list);
        else take_alternatives(l, word);
    }
}

size_t fdri_counters_choose(const char *list, bool threads_only, struct fdri_counters_choice *out, size_t most,
                            char *missing, size_t missing_bytes)
{
    struct list l = {
        .out = out, .most = most, .threads_only = threads_only, .missing = missing, .missing_bytes = missing_bytes};
    missing[0] = 0;
    take_list(&l, list);
    return l.count;
}
