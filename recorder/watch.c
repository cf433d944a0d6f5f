/* SPDX-License-Identifier: MIT */
/* Triggers come and go while others record: the table of what is watched, and what definitions it holds. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fnmatch.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#define URCU_INLINE_SMALL_FUNCTIONS
#define _LGPL_SOURCE /* liburcu's small read-side functions inline; its licence allows that to MIT code */
#include <urcu/urcu-memb.h>

#include "base/lines.h"
#include "recorder/watch.h"

enum { FIRST_LOG2 = 6 };

struct fdri_watch_table *fdri_watch_table;
struct fdri_watching fdri_watching[FDRI_TRIGGERS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool full; /* said that there was no memory for an entry */

void fdri_watch_lock(sigset_t *old)
{
    sigset_t all;
    fdr_signals_but_faults(&all);
    pthread_sigmask(SIG_SETMASK, &all, old);
    pthread_mutex_lock(&lock);
}
void fdri_watch_unlock(const sigset_t *old)
{
    pthread_mutex_unlock(&lock);
    pthread_sigmask(SIG_SETMASK, old, NULL);
}

/* ---- the table; all under the lock ---- */

static void put(struct fdri_watch_table *t, const struct fdri_watch_entry *e)
{
    uint32_t mask = (1u << t->log2) - 1, i = e->key * 0x9E3779B1u >> (32 - t->log2);
    while (t->entry[i].key) i = (i + 1) & mask;
    t->entry[i] = *e;
    t->entry[i].key = 0;
    t->used++;
    fdr_store_release(&t->entry[i].key, e->key); /* R:watch - pairs with A:watch: the entry is whole before its key */
}

/* One with room; entries of triggers that went are left behind. */
static struct fdri_watch_table *writable(void)
{
    struct fdri_watch_table *old = fdri_watch_table;
    if (old && old->used < (1u << old->log2) * 3 / 4) return old;
    uint32_t log2 = old ? old->log2 + 1 : FIRST_LOG2;
    struct fdri_watch_table *t = calloc(1, sizeof *t + (sizeof t->entry[0] << log2));
    if (!t) return NULL;
    t->log2 = log2;
    for (uint32_t i = 0; old && i < 1u << old->log2; i++)
        if (old->entry[i].key && !old->entry[i].gone) put(t, &old->entry[i]);
    t->older = old;
    fdr_store_release(&fdri_watch_table, t); /* R:watch - the table is whole; also by rcu_dereference */
    return t;
}

static void free_tables(void *newest)
{
    for (struct fdri_watch_table *t = newest, *older; t; t = older) {
        older = t->older;
        free(t);
    }
}

static uint64_t to_ticks(uint64_t ns) { return ns > UINT64_MAX / 2 ? UINT64_MAX : fdri_ns_to_ticks(ns); }

void fdri_watch_thresholds(void)
{
    const struct fdri_watch_table *t = fdri_watch_table;
    uint64_t least = UINT64_MAX;
    uint32_t classes = 0;
    static const uint8_t class_of[] = {[0] = FDR_CLASS_MESSAGE,
                                       [FDR_DEF_METRIC] = FDR_CLASS_METRIC,
                                       [FDR_DEF_MARKER] = FDR_CLASS_MARKER,
                                       [FDR_DEF_EVENT] = FDR_CLASS_USER};
    for (uint32_t i = 0; t && i < 1u << t->log2; i++) {
        const struct fdri_watch_entry *e = &t->entry[i];
        if (!e->key || e->gone) continue;
        if (e->key >> 24 == FDR_DEF_REGION) least = fdr_min(least, e->threshold_ns);
        else classes |= 1u << class_of[e->key >> 24];
    }
    fdr_store_relaxed(&fdri_watch_ns, least);
    fdr_store_relaxed(&fdri_watch_ticks, to_ticks(least));
    fdr_store_relaxed(&fdri_watch_classes, classes);
}

/* Does this trigger watch that key already? */
static bool there(uint32_t slot, uint32_t key, uint32_t field)
{
    const struct fdri_watch_entry *e;
    if (!fdri_watch_table) return false;
    FDRI_EACH_ENTRY(fdri_watch_table, key, e)
    if (e->slot == slot && e->field == field) return true;
    return false;
}

static void add_entry(uint32_t slot, uint32_t key, uint32_t field, uint32_t type)
{
    const struct fdri_watch *w = &fdri_watching[slot].watch;
    struct fdri_watch_entry e = {.key = key,
                                 .slot = (uint8_t)slot,
                                 .field = (uint8_t)field,
                                 .type = (uint8_t)type,
                                 .threshold_ns = w->source == FDRI_BY_REGION ? w->ns : UINT64_MAX};
    if (there(slot, key, field)) return;
    struct fdri_watch_table *t = writable();
    if (t) put(t, &e);
    else if (!full) fdri_say("trigger %s: no memory; it does not see everything", w->trigger.name);
    full = full || !t;
}

/* ---- what is defined ---- */

static bool matches(const char *glob, const char *name) { return *name && fnmatch(glob, name, 0) == 0; }

/* EVENT.FIELD */
static void match_fields(uint32_t slot, uint32_t key, const char *event, const struct fdr_def_field *field,
                         uint32_t count)
{
    char name[256];
    for (uint32_t i = 0; i < count; i++) {
        snprintf(name, sizeof name, "%.200s.%.27s", event, field[i].name);
        if (matches(fdri_watching[slot].watch.glob, name)) add_entry(slot, key, i, field[i].type);
    }
}

static void match(uint32_t slot, enum fdr_def_kind kind, uint32_t id, const char *name, const void *payload,
                  uint32_t bytes)
{
    const struct fdri_watch *w = &fdri_watching[slot].watch;
    bool of_region = w->source == FDRI_BY_REGION || w->source == FDRI_BY_P99 || w->source == FDRI_BY_STUCK;
    bool of_metric = w->source == FDRI_BY_METRIC || w->source == FDRI_BY_METRIC_RATE;
    bool of_event = w->source == FDRI_BY_COUNT || w->source == FDRI_BY_EVENT_RATE;
    bool right = (of_region && kind == FDR_DEF_REGION) || (of_metric && kind == FDR_DEF_METRIC) ||
                 (of_event && (kind == FDR_DEF_MARKER || kind == FDR_DEF_EVENT));
    if (right && matches(w->glob, name)) add_entry(slot, FDRI_KEY(kind, id), 255, 0);
    if (of_metric && kind == FDR_DEF_EVENT)
        match_fields(slot, FDRI_KEY(kind, id), name, payload, bytes / sizeof(struct fdr_def_field));
}

bool fdri_watch_regions(void)
{
    for (uint32_t i = 0; i < FDRI_TRIGGERS; i++) {
        enum fdri_source s = fdri_watching[i].watch.source;
        if (fdri_watching[i].used && !fdri_watching[i].leaving &&
            (s == FDRI_BY_REGION || s == FDRI_BY_P99 || s == FDRI_BY_STUCK))
            return true;
    }
    return false;
}

void fdri_watch_define(enum fdr_def_kind kind, uint32_t id, const char *name, const void *payload, uint32_t bytes)
{
    sigset_t old;
    fdri_watch_lock(&old);
    for (uint32_t i = 0; i < FDRI_TRIGGERS; i++)
        if (fdri_watching[i].used && !fdri_watching[i].leaving) match(i, kind, id, name, payload, bytes);
    fdri_watch_thresholds();
    fdri_watch_unlock(&old);
}

/* The loader may know the name of what is known by its address. Its lock is never taken under ours. */
static void match_def(uint32_t slot, const struct fdr_def *d)
{
    const char *name = (const char *)(d + 1);
    Dl_info info;
    sigset_t old;
    if (d->kind == FDR_DEF_REGION && !d->name_bytes && d->value && dladdr((void *)(uintptr_t)d->value, &info) &&
        info.dli_sname)
        name = info.dli_sname;
    fdri_watch_lock(&old);
    match(slot, (enum fdr_def_kind)d->kind, d->id, name,
          (const char *)(d + 1) + fdr_align_up(d->name_bytes + d->file_bytes + 2u, 8), d->payload_bytes);
    fdri_watch_unlock(&old);
}

/* Everything defined so far. What is defined meanwhile is matched there, too. */
static void match_all(uint32_t slot)
{
    for (uint32_t off = fdr_load_acquire(&fdri_rec.arena.super->defs_first); off;) { /* A:defs */
        const struct fdr_defs_block *b = fdri_at(&fdri_rec.arena, off);
        uint32_t used = fdr_load_acquire(&b->used); /* A:defs */
        for (uint32_t at = 0; at < used;
             at += ((const struct fdr_def *)(const void *)((const char *)(b + 1) + at))->bytes)
            match_def(slot, (const void *)((const char *)(b + 1) + at));
        off = fdr_load_acquire(&b->next); /* A:defs */
    }
}

/* ---- add and remove ---- */

/* Messages are not defined. */
static void match_messages(uint32_t slot)
{
    const struct fdri_watch *w = &fdri_watching[slot].watch;
    if (w->source != FDRI_BY_COUNT && w->source != FDRI_BY_EVENT_RATE) return;
    if (matches(w->glob, "send")) add_entry(slot, FDRI_KEY(0, 1), 255, 0);
    if (matches(w->glob, "recv")) add_entry(slot, FDRI_KEY(0, 2), 255, 0);
}

/* id, or -ENOSPC. */
static int add(const struct fdri_watch *w)
{
    sigset_t old;
    uint32_t slot = 0;
    fdri_watch_lock(&old);
    while (slot < FDRI_TRIGGERS && fdri_watching[slot].used) slot++;
    if (slot < FDRI_TRIGGERS) {
        memset(&fdri_watching[slot], 0, sizeof fdri_watching[slot]);
        fdri_watching[slot].watch = *w;
        fdri_watching[slot].used = true;
        fdri_trigger_arm(slot, &w->trigger);
        match_messages(slot);
    }
    fdri_watch_unlock(&old);
    return slot < FDRI_TRIGGERS ? (int)slot + 1 : -ENOSPC;
}

static void finish_add(uint32_t slot)
{
    sigset_t old;
    match_all(slot);
    fdri_watch_lock(&old);
    fdri_watch_thresholds();
    fdri_watch_unlock(&old);
}

int fdr_trigger_add(const char *line)
{
    struct fdri_watch w;
    if (!fdr_load_relaxed(&fdr_switch_.on)) return -ESRCH;
    const char *wrong = line ? fdri_watch_parse(line, &fdri_rec.set, &w) : "no text";
    if (!wrong && !w.trigger.name[0]) wrong = "nothing in it";
    if (wrong) fdri_say("trigger '%.200s': %s; it is not set", line ? line : "", wrong);
    int id = wrong ? -EINVAL : add(&w);
    if (id > 0) finish_add((uint32_t)id - 1);
    int e = id > 0 ? fdri_dumper_start() : 0;
    if (e) fdri_say("trigger %s: no thread for snapshots: %s", w.trigger.name, strerror(-e));
    if (id > 0) fdri_dumper_wake(); /* it may have to look now and then */
    return id;
}

static struct fdri_watching *of(int trigger)
{
    return trigger > 0 && trigger <= FDRI_TRIGGERS && fdri_watching[trigger - 1].used &&
                   !fdri_watching[trigger - 1].leaving
               ? &fdri_watching[trigger - 1]
               : NULL;
}

/* After a grace period: nobody is looking at it any more. */
static void free_slot(void *watching)
{
    sigset_t old;
    fdri_watch_lock(&old);
    ((struct fdri_watching *)watching)->used = false;
    fdri_watch_unlock(&old);
}

int fdr_trigger_remove(int trigger)
{
    sigset_t old;
    if (!of(trigger)) return -ENOENT;
    fdri_trigger_disarm((uint32_t)trigger - 1);
    fdri_watch_lock(&old);
    struct fdri_watch_table *t = fdri_watch_table;
    for (uint32_t i = 0; t && i < 1u << t->log2; i++)
        if (t->entry[i].slot == trigger - 1 && t->entry[i].key) fdr_store_relaxed(&t->entry[i].gone, (uint8_t)1);
    fdri_watching[trigger - 1].leaving = true;
    fdri_watch_thresholds();
    fdri_watch_unlock(&old);
    fdri_after_grace(free_slot, &fdri_watching[trigger - 1]);
    return 0;
}

void fdr_trigger_fire(int trigger, double value)
{
    struct fdri_seen seen = {
        .tick = fdri_tick_now(), .type = FDR_VALUE_F64, .location = UINT32_MAX, .key = FDRI_NO_KEY};
    if (!fdr_load_relaxed(&fdr_switch_.on) || !of(trigger)) return;
    memcpy(&seen.value, &value, sizeof value);
    fdri_trigger_seen((uint32_t)trigger - 1, &seen);
}

uint64_t fdr_trigger_count(int trigger) { return of(trigger) ? fdri_trigger_count((uint32_t)trigger - 1) : 0; }

/* ---- start and end of a recording ---- */

static void load_line(const char *where, unsigned number, const char *line)
{
    struct fdri_watch w;
    const char *wrong = fdri_watch_parse(line, &fdri_rec.set, &w);
    if (!wrong && !w.trigger.name[0]) return;
    if (!wrong && add(&w) < 0) wrong = "there are 64 already";
    if (wrong) fdri_say("FDR_TRIGGERS=%s line %u: %s; this line is ignored", where, number, wrong);
}

static void load_file(const char *path)
{
    char line[1024];
    FILE *f = fdri_open_lines(path);
    if (!f) {
        fdri_say("FDR_TRIGGERS=%s: %s; no triggers", path, errno == EINVAL ? "not a file" : strerror(errno));
        return;
    }
    for (unsigned number = 1; fgets(line, sizeof line, f); number++) load_line(path, number, line);
    fclose(f);
}

void fdri_watch_start(const char *text)
{
    char copy[1024], *save = NULL;
    fdri_watch_stop();
    if (!*text) return;
    if (!strpbrk(text, " ;")) {
        load_file(text);
        return;
    }
    unsigned number = 1;
    snprintf(copy, sizeof copy, "%s", text);
    for (char *line = strtok_r(copy, ";", &save); line; line = strtok_r(NULL, ";", &save))
        load_line("(text)", number++, line);
}

void fdri_watch_stop(void)
{
    sigset_t old;
    fdri_watch_lock(&old);
    struct fdri_watch_table *t = fdri_watch_table;
    rcu_set_pointer(&fdri_watch_table, (struct fdri_watch_table *)NULL);
    for (uint32_t i = 0; i < FDRI_TRIGGERS; i++) {
        fdri_trigger_disarm(i);
        fdri_watching[i].used = false;
    }
    fdri_watch_thresholds();
    fdri_watch_unlock(&old);
    if (t) fdri_after_grace(free_tables, t);
}

void fdri_watch_fork(int phase)
{
    if (phase == 3) pthread_mutex_init(&lock, NULL);
    else if (phase == 0) pthread_mutex_lock(&lock);
    else pthread_mutex_unlock(&lock);
}
