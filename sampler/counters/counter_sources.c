/* SPDX-License-Identifier: MIT */
/* All sources: finding counters by name, and which of them work in this process on this machine. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/fd/descriptor.h"
#include "sampler/counters/counter.h"

/* A name without source means the first of these that has it and where it works: exact and cheap ones come first. */
static const struct fdr_counter_source *const built_in[] = {
    &fdri_counters_source_perf,    &fdri_counters_source_hardware, &fdri_counters_source_sched,
    &fdri_counters_source_task,    &fdri_counters_source_switches, &fdri_counters_source_derived,
    &fdri_counters_source_process, &fdri_counters_source_io,       &fdri_counters_source_energy,
    &fdri_counters_source_rusage};
enum { BUILT_IN = sizeof built_in / sizeof *built_in };
static const struct fdr_counter_source *added[FDRI_COUNTERS_SOURCES_MAX - BUILT_IN];
static size_t added_count; /* under the lock; a place below it does not change */
static pthread_mutex_t adding = PTHREAD_MUTEX_INITIALIZER;

static const char default_list[] = "page-faults,context-switches,task-clock|cpu-time|user-time,run-delay,rss";

static size_t count_added(void)
{
    pthread_mutex_lock(&adding);
    size_t n = added_count;
    pthread_mutex_unlock(&adding);
    return n;
}

size_t fdri_counters_source_count(void) { return count_added() + BUILT_IN; }
const struct fdr_counter_source *fdri_counters_source_at(size_t i)
{
    size_t n = count_added();
    return i < n ? added[i] : built_in[i - n];
}

void fdri_counters_source_forget(void)
{
    pthread_mutex_lock(&adding);
    added_count = 0;
    pthread_mutex_unlock(&adding);
}

/* Characters of lists of counters cannot be part of a name. */
static bool named_well(const char *name) { return name && *name && !strpbrk(name, ":,| \t"); }

static bool complete(const struct fdr_counter_source *s)
{
    if (!s || s->size < sizeof *s || !named_well(s->name) || !s->counter || !s->read) return false;
    if (!s->count || s->count > FDR_SOURCE_COUNTERS || (unsigned)s->scope > FDR_COUNTER_OWN_THREAD) return false;
    for (uint32_t i = 0; i < s->count; i++)
        if (!named_well(s->counter[i].name) || !s->counter[i].unit || (unsigned)s->counter[i].type > FDR_F64)
            return false;
    return true;
}

int fdr_counter_source_add(const struct fdr_counter_source *source)
{
    int e = complete(source) ? 0 : -EINVAL;
    for (size_t i = 0; !e && i < BUILT_IN; i++)
        if (!strcmp(built_in[i]->name, source->name)) e = -EEXIST;
    pthread_mutex_lock(&adding);
    for (size_t i = 0; !e && i < added_count; i++)
        if (!strcmp(added[i]->name, source->name)) e = added[i] == source ? 1 : -EEXIST;
    if (!e && added_count == sizeof added / sizeof *added) e = -ENOSPC;
    if (!e) added[added_count++] = source;
    pthread_mutex_unlock(&adding);
    return e < 0 ? e : 0;
}

/* ---- handles ---- */

int fdri_counters_handle_open(struct fdri_counters_handle *h, const struct fdr_counter_source *source, int tid,
                              uint32_t wanted)
{
    uint32_t descriptors = source->descriptors ? source->descriptors(wanted) : 0;
    *h = (struct fdri_counters_handle){.open = {.source = source, .tid = tid, .wanted = wanted}};
    for (size_t i = 0; i < FDR_SOURCE_COUNTERS; i++) h->open.fd[i] = -1;
    if (!fdri_fd_budget_take(descriptors)) {
        h->open.source = NULL;
        return -EMFILE;
    }
    int e = source->open ? source->open(&h->open) : 0;
    if (e) {
        fdri_fd_budget_give(descriptors);
        h->open.source = NULL;
    }
    for (size_t i = 0; !e && i < FDR_SOURCE_COUNTERS; i++)
        if (h->open.fd[i] >= 0) h->mark[i] = fdri_fd_identify(h->open.fd[i]);
    return e;
}

bool fdri_counters_closed(const struct fdr_counter_handle *h, uint32_t i)
{
    const struct fdri_counters_handle *all = (const void *)h;
    return !fdri_fd_is(h->fd[i], &all->mark[i]);
}

/* The first descriptor suffices: a program that closes descriptors of fdr closes them all. */
int fdri_counters_handle_read(struct fdri_counters_handle *h, uint64_t *value)
{
    size_t i = 0;
    if (!h->open.source) return -EBADF; /* it could not be opened again */
    while (i < FDR_SOURCE_COUNTERS && h->open.fd[i] < 0) i++;
    if (i < FDR_SOURCE_COUNTERS && !fdri_fd_is(h->open.fd[i], &h->mark[i])) return -EBADF;
    return h->open.source->read(&h->open, value);
}

static void forget_handle(struct fdri_counters_handle *h)
{
    const struct fdr_counter_source *source = h->open.source;
    fdri_fd_budget_give(source->descriptors ? source->descriptors(h->open.wanted) : 0);
    h->open.source = NULL;
}

void fdri_counters_handle_close(struct fdri_counters_handle *h)
{
    if (!h->open.source) return;
    for (size_t i = 0; i < FDR_SOURCE_COUNTERS; i++)
        if (h->open.fd[i] >= 0 && !fdri_fd_is(h->open.fd[i], &h->mark[i])) h->open.fd[i] = -1;
    if (h->open.source->close) h->open.source->close(&h->open);
    forget_handle(h);
}

void fdri_counters_handle_drop(struct fdri_counters_handle *h)
{
    if (!h->open.source) return;
    if (h->open.source->scope == FDR_COUNTER_OWN_THREAD) forget_handle(h);
    else fdri_counters_handle_close(h);
}

/* ---- names ---- */

void fdri_counters_text(char *text, size_t bytes, struct fdri_counters_choice c)
{
    const char *source = c.source->name;
    snprintf(text, bytes, "%s%s%s", source, *source ? ":" : "", c.source->counter[c.index].name);
}

enum { FIELD_NAME = 27 }; /* longer field names are cut */

void fdri_counters_fields(struct fdr_field *field, char text[][64], const struct fdri_counters_choice *choice,
                          uint32_t count, size_t offset)
{
    for (uint32_t i = 0; i < count; i++) {
        fdr_metric_id metric = fdri_counters_define(choice[i]);
        char number[16];
        int n = snprintf(number, sizeof number, "#%u", metric);
        fdri_counters_text(text[i], sizeof text[i], choice[i]);
        if (strlen(text[i]) > FIELD_NAME && metric) memcpy(text[i] + FIELD_NAME - n, number, (size_t)n + 1);
        field[i] = (struct fdr_field){text[i], fdri_counters_type(choice[i]), offset + 8 * (size_t)i};
    }
}

fdr_metric_id fdri_counters_define(struct fdri_counters_choice c)
{
    const struct fdr_counter *counter = &c.source->counter[c.index];
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

int fdri_counters_try(struct fdri_counters_choice c, char *why, size_t bytes)
{
    return c.source->probe ? c.source->probe(c.index, why, bytes) : 0;
}

/* Tries the counter and adds it. False: the reason is in `why`. */
static bool try_counter(struct list *l, struct fdri_counters_choice c, char *why, size_t bytes)
{
    if (!l->threads_only && c.source->scope == FDR_COUNTER_OWN_THREAD) {
        snprintf(why, bytes, "only the counted thread can read it; FDR_EDGE_COUNTERS does");
        return false;
    }
    if (l->threads_only && c.source->scope == FDR_COUNTER_PROCESS) {
        snprintf(why, bytes, "counts the whole process; a call belongs to a thread");
        return false;
    }
    if (l->threads_only && !c.source->read) {
        snprintf(why, bytes, "is computed by the monitor thread");
        return false;
    }
    if (list_has(l, c)) return true;
    if (fdri_counters_try(c, why, bytes)) return false;
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
        const struct fdr_counter_source *s = fdri_counters_source_at(*at);
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
        const struct fdr_counter_source *s = fdri_counters_source_at(i);
        char why[FDRI_COUNTERS_WHY_BYTES] = "", first_why[FDRI_COUNTERS_WHY_BYTES] = "";
        const char *first = NULL;
        uint32_t more = 0;
        if (l->threads_only ? s->scope == FDR_COUNTER_PROCESS || !s->read : s->scope == FDR_COUNTER_OWN_THREAD)
            continue;
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
