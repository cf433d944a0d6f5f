/* SPDX-License-Identifier: MIT */
/* Adds and removes triggers while threads record, matches them with definitions, and keeps the table of keys. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fdr/fdr.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "base/atomic.h"
#include "base/bits.h"
#include "base/system/cancellation.h"
#include "base/system/signal_mask.h"
#include "base/text/glob.h"
#include "base/text/line_file.h"
#include "base/text/message.h"
#include "bins/bins.h"
#include "export/view.h"
#include "format/arena/arena.h"
#include "format/classes/class_table.h"
#include "format/tallies/tally_table.h"
#include "recorder/names/module_symbols.h"
#include "recorder/names/names.h"
#include "recorder/recording.h"
#include "recorder/tally/tally.h"
#include "recorder/thread/grace_period.h"
#include "recorder/thread/thread.h"
#include "recorder/thread/thread_clock.h"
#include "recorder/thread/thread_state.h"
#include "recorder/totals/totals.h"
#include "recorder/watch/watch.h"
#include "recorder/watch/watch_table.h"

enum { FIRST_LOG2 = 6 };

struct fdri_watch_table *fdri_watch_table;
struct fdri_watch_slot fdri_watch_slots[FDRI_EXPORT_TRIGGERS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool full;        /* the message about missing memory was given */
static uint32_t regions; /* atomic: there is a trigger on regions */

void fdri_watch_lock(sigset_t *old)
{
    fdri_system_signals_block(old);
    pthread_mutex_lock(&lock);
}
void fdri_watch_unlock(const sigset_t *old)
{
    pthread_mutex_unlock(&lock);
    fdri_system_signals_restore(old);
}

/* ---- the table; all functions under the lock ---- */

static void insert_entry(struct fdri_watch_table *t, const struct fdri_watch_entry *e)
{
    uint32_t mask = (1u << t->log2) - 1, i = e->key * 0x9E3779B1u >> (32 - t->log2);
    while (t->entry[i].key) i = (i + 1) & mask;
    struct fdri_watch_entry *to = &t->entry[i]; /* field by field: recording threads read the key meanwhile */
    to->slot = e->slot;
    to->field = e->field;
    to->type = e->type;
    to->stuck_ns = e->stuck_ns;
    to->p99_factor = e->p99_factor;
    fdri_atomic_store_relaxed(&to->threshold_ns, fdri_atomic_load_relaxed(&e->threshold_ns));
    t->used++;
    fdri_atomic_store_release(&to->key, e->key); /* R:watch - pairs with A:watch: entry complete before its key */
}

static size_t table_bytes(uint32_t log2)
{
    return sizeof(struct fdri_watch_table) + (sizeof(struct fdri_watch_entry) << log2);
}

/* log2 of the size that a table needs to be at most half full with the living entries of `old` and one more. */
static uint32_t next_log2(const struct fdri_watch_table *old)
{
    uint32_t log2 = FIRST_LOG2, living = 1;
    for (uint32_t i = 0; old && i < 1u << old->log2; i++) living += old->entry[i].key && !old->entry[i].removed;
    while (living * 2 > 1u << log2) log2++;
    return log2;
}

/* The table, with room for one more entry, replaced if need be; NULL: no memory. Entries of removed triggers are not
 * copied. The memory is mapped: a definition may be made by a handler that interrupted the allocator. */
static struct fdri_watch_table *writable(void)
{
    struct fdri_watch_table *old = fdri_watch_table;
    if (old && old->used < (1u << old->log2) * 3 / 4) return old;
    uint32_t log2 = next_log2(old);
    struct fdri_watch_table *t = mmap(NULL, table_bytes(log2), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
                                      0);
    if (t == MAP_FAILED) return NULL;
    t->log2 = log2;
    for (uint32_t i = 0; old && i < 1u << old->log2; i++)
        if (old->entry[i].key && !old->entry[i].removed) insert_entry(t, &old->entry[i]);
    t->older = old;
    fdri_atomic_store_release(&fdri_watch_table, t); /* R:watch - the table is complete */
    return t;
}

static void free_tables(void *newest)
{
    for (struct fdri_watch_table *t = newest, *older; t; t = older) {
        older = t->older;
        munmap(t, table_bytes(t->log2));
    }
}

void fdri_watch_free_older(void)
{
    sigset_t old;
    fdri_watch_lock(&old);
    struct fdri_watch_table *t = fdri_watch_table, *older = t ? t->older : NULL;
    if (older) fdri_atomic_store_relaxed(&t->older, (struct fdri_watch_table *)NULL);
    fdri_watch_unlock(&old);
    if (older) fdri_thread_after_grace(free_tables, older);
}

static uint64_t to_ticks(uint64_t ns) { return ns > UINT64_MAX / 2 ? UINT64_MAX : fdri_life_ns_to_ticks(ns); }

/* The words that recording threads compare with. */
struct least {
    uint64_t ns;
    uint32_t classes;
};

static void count_in(struct least *all, const struct fdri_watch_entry *e)
{
    if (e->key >> 24 == FDRI_ARENA_DEF_REGION)
        all->ns = fdri_bits_min(all->ns, fdri_atomic_load_relaxed(&e->threshold_ns));
    else all->classes |= 1u << fdri_classes_of_row(e->key);
}

static void publish_least(const struct least *all)
{
    fdri_atomic_store_relaxed(&fdri_watch_ns, all->ns);
    fdri_atomic_store_relaxed(&fdri_watch_ticks, to_ticks(all->ns));
    fdri_atomic_store_relaxed(&fdri_watch_classes, all->classes);
}

void fdri_watch_thresholds(void)
{
    const struct fdri_watch_table *t = fdri_watch_table;
    struct least all = {UINT64_MAX, 0};
    for (uint32_t i = 0; t && i < 1u << t->log2; i++)
        if (t->entry[i].key && !t->entry[i].removed) count_in(&all, &t->entry[i]);
    publish_least(&all);
}

/* Lowers the words for a new entry. Only when a threshold rises or a trigger is removed must all entries be read. */
static void threshold_of(const struct fdri_watch_entry *e)
{
    struct least all = {fdri_watch_ns, fdri_watch_classes};
    count_in(&all, e);
    publish_least(&all);
}

/* Does this trigger watch that key already? */
static bool watches_key(uint32_t slot, uint32_t key, uint32_t field)
{
    const struct fdri_watch_entry *e;
    if (!fdri_watch_table) return false;
    FDRI_WATCH_EACH_ENTRY(fdri_watch_table, key, e)
    if (e->slot == slot && e->field == field) return true;
    return false;
}

static void add_entry(uint32_t slot, uint32_t key, uint32_t field, uint32_t type)
{
    const struct fdri_watch *w = &fdri_watch_slots[slot].watch;
    struct fdri_watch_entry e = {.key = key,
                                 .slot = (uint8_t)slot,
                                 .field = (uint8_t)field,
                                 .type = (uint8_t)type,
                                 .threshold_ns = w->source == FDRI_WATCH_BY_REGION ? w->ns : UINT64_MAX,
                                 .stuck_ns = w->source == FDRI_WATCH_BY_STUCK ? w->ns : UINT64_MAX,
                                 .p99_factor = w->source == FDRI_WATCH_BY_P99 ? w->limit : 0};
    fdri_watch_slots[slot].hit = true;
    if (watches_key(slot, key, field)) return;
    struct fdri_watch_table *t = writable();
    if (t) {
        insert_entry(t, &e);
        threshold_of(&e);
    } else if (!full)
        fdri_text_message("trigger %s: no memory for more definitions; it does not watch all that match",
                          w->trigger.name);
    full = full || !t;
}

/* ---- matching with definitions ---- */

static bool matches(const char *glob, const char *name) { return *name && fdri_text_glob(glob, name); }

/* Adds an entry for each field whose name EVENT.FIELD matches. */
static void match_fields(uint32_t slot, uint32_t key, const char *event, const struct fdri_arena_def_field *field,
                         uint32_t count)
{
    char name[256];
    for (uint32_t i = 0; i < count; i++) {
        snprintf(name, sizeof name, "%.200s.%.27s", event, field[i].name);
        if (matches(fdri_watch_slots[slot].watch.glob, name)) add_entry(slot, key, i, field[i].type);
    }
}

bool fdri_watch_of_regions(const struct fdri_watch *w)
{
    return w->source == FDRI_WATCH_BY_REGION || w->source == FDRI_WATCH_BY_P99 || w->source == FDRI_WATCH_BY_STUCK;
}

static bool of_metrics(const struct fdri_watch *w)
{
    return w->source == FDRI_WATCH_BY_METRIC || w->source == FDRI_WATCH_BY_METRIC_RATE;
}

/* Adds the entries of this trigger for one definition. Under the lock. */
static void match(uint32_t slot, enum fdri_arena_def_kind kind, uint32_t id, const char *name, const void *payload,
                  uint32_t bytes)
{
    const struct fdri_watch *w = &fdri_watch_slots[slot].watch;
    bool of_metric = of_metrics(w);
    bool of_event = w->source == FDRI_WATCH_BY_COUNT || w->source == FDRI_WATCH_BY_EVENT_RATE;
    bool right = (fdri_watch_of_regions(w) && kind == FDRI_ARENA_DEF_REGION) ||
                 (of_metric && kind == FDRI_ARENA_DEF_METRIC) ||
                 (of_event && (kind == FDRI_ARENA_DEF_MARKER || kind == FDRI_ARENA_DEF_EVENT));
    if (right && matches(w->glob, name)) add_entry(slot, FDRI_TOTALS_KEY(kind, id), FDRI_EXPORT_NO_FIELD, 0);
    if (of_metric && kind == FDRI_ARENA_DEF_EVENT)
        match_fields(slot, FDRI_TOTALS_KEY(kind, id), name, payload, bytes / sizeof(struct fdri_arena_def_field));
}

/* After a trigger was added or removed. Under the lock. */
static void update_watched(void)
{
    bool any = false;
    for (uint32_t i = 0; i < FDRI_EXPORT_TRIGGERS; i++)
        any |= fdri_watch_slots[i].state == FDRI_WATCH_USED && fdri_watch_of_regions(&fdri_watch_slots[i].watch);
    fdri_atomic_store_relaxed(&regions, (uint32_t)any);
    fdri_names_symbols_watched(any);
    fdri_watch_thresholds();
}

bool fdri_watch_regions(void) { return fdri_atomic_load_relaxed(&regions); }

void fdri_watch_define(enum fdri_arena_def_kind kind, uint32_t id, const char *name, const void *payload,
                       uint32_t bytes)
{
    sigset_t old;
    fdri_watch_lock(&old);
    for (uint32_t i = 0; i < FDRI_EXPORT_TRIGGERS; i++)
        if (fdri_watch_slots[i].state == FDRI_WATCH_USED) match(i, kind, id, name, payload, bytes);
    fdri_watch_unlock(&old);
}

/* The names of a definition. Those of a function may come later: then fdri_watch_define matches them. */
static struct fdri_names_called names_of(const struct fdri_arena_def *d)
{
    struct fdri_names_called called = {.count = 1, .name = {(const char *)(d + 1)}};
    Dl_info info;
    if (d->kind != FDRI_ARENA_DEF_REGION || d->name_bytes || !d->value) return called;
    bool ready = fdri_names_symbols_ready((uint32_t)d->value2);
    /* the loader's lock is never taken under ours */
    if (!ready && dladdr((void *)(uintptr_t)d->value, &info) && info.dli_sname) called.name[0] = info.dli_sname;
    fdri_names_symbols_of((uint32_t)d->value2, d->value, &called);
    return called;
}

static void match_def(uint32_t slot, const struct fdri_arena_def *d)
{
    const struct fdri_names_called called = names_of(d);
    sigset_t old;
    fdri_watch_lock(&old);
    for (uint32_t i = 0; i < called.count; i++)
        match(slot, (enum fdri_arena_def_kind)d->kind, d->id, called.name[i],
              (const char *)(d + 1) + fdri_bits_align_up(d->name_bytes + d->file_bytes + 2u, 8), d->payload_bytes);
    fdri_watch_unlock(&old);
}

/* Matches all definitions so far. Those made meanwhile are matched by fdri_watch_define; watches_key() avoids
 * duplicates. */
static void match_all(uint32_t slot)
{
    const struct fdri_arena_def *d;
    for (struct fdri_names_cursor c = fdri_names_definitions(); (d = fdri_names_next(&c)) != NULL;) match_def(slot, d);
}

/* ---- add and remove ---- */

/* Messages have no definitions: their names are send and recv. */
static void match_messages(uint32_t slot)
{
    const struct fdri_watch *w = &fdri_watch_slots[slot].watch;
    if (w->source != FDRI_WATCH_BY_COUNT && w->source != FDRI_WATCH_BY_EVENT_RATE) return;
    if (matches(w->glob, "send")) add_entry(slot, FDRI_TOTALS_KEY(0, 1), FDRI_EXPORT_NO_FIELD, 0);
    if (matches(w->glob, "recv")) add_entry(slot, FDRI_TOTALS_KEY(0, 2), FDRI_EXPORT_NO_FIELD, 0);
}

/* The first ids are 1 to 64. An old id never leads to the next trigger in the same place. */
static uint32_t new_id(uint32_t slot, uint32_t turn) { return (turn & 0xffffff) * FDRI_EXPORT_TRIGGERS + slot + 1; }
static uint32_t slot_of(int trigger) { return ((uint32_t)trigger - 1) % FDRI_EXPORT_TRIGGERS; }

/* Makes or clears the table of followed metrics. It is mapped, so pages never touched cost nothing. False: no
 * memory. */
static bool follows_nobody(struct fdri_watch_slot *p)
{
    size_t bytes = sizeof *p->followed * FDRI_WATCH_FOLLOWED;
    if (p->followed) {
        if (madvise(p->followed, bytes, MADV_DONTNEED) != 0) memset(p->followed, 0, bytes); /* mlocked pages */
        return true;
    }
    void *m = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (m != MAP_FAILED) p->followed = m;
    return m != MAP_FAILED;
}

/* Triggers of one name, also one after another, have one tally. */
static void arm(uint32_t slot, const struct fdri_export_trigger *t)
{
    struct fdri_export_trigger armed = *t;
    uint8_t key[FDRI_ARENA_TALLY_KEY_BYTES];
    fdri_tallies_name_key(t->name, key);
    armed.tally = fdri_tally_row(FDRI_ARENA_TALLY_TRIGGER, key);
    fdri_trigger_arm(slot, &armed);
}

/* Takes a place for a trigger. Returns its id, -ENOSPC or -ENOMEM. finish_add must follow. */
static int take_slot(const struct fdri_watch *w)
{
    sigset_t old;
    uint32_t slot = 0, id = 0;
    fdri_watch_lock(&old);
    while (slot < FDRI_EXPORT_TRIGGERS && fdri_watch_slots[slot].state != FDRI_WATCH_FREE) slot++;
    bool room = slot == FDRI_EXPORT_TRIGGERS || !of_metrics(w) || follows_nobody(&fdri_watch_slots[slot]);
    if (slot < FDRI_EXPORT_TRIGGERS && room) {
        struct fdri_watch_slot *p = &fdri_watch_slots[slot];
        uint32_t tenancy = p->tenancy + 1, turns = p->turns + 1;
        /* not the id, which other threads read; it is 0 */
        memset(&p->watch, 0, sizeof *p - offsetof(struct fdri_watch_slot, watch));
        p->tenancy = tenancy;
        p->turns = turns;
        p->watch = *w;
        id = new_id(slot, turns - 1);
        fdri_atomic_store_relaxed(&p->state, (uint32_t)FDRI_WATCH_USED);
        arm(slot, &w->trigger);
        fdri_atomic_store_relaxed(&p->id, id);
        match_messages(slot);
        update_watched();
        if (fdri_watch_of_regions(w)) fdri_names_symbols_watch(w->glob);
    }
    fdri_watch_unlock(&old);
    if (!room) return -ENOMEM;
    return id ? (int)id : -ENOSPC;
}

/* Not under the lock, as dladdr takes the loader's. */
static void finish_add(uint32_t slot)
{
    sigset_t old;
    match_all(slot);
    fdri_watch_lock(&old);
    fdri_watch_slots[slot].matched = true;
    fdri_watch_unlock(&old);
}

/* The caller holds the recording, so it cannot end meanwhile. Returns the id or -errno, after a message. */
static int add_line(const char *line)
{
    struct fdri_watch w;
    const char *wrong = fdri_watch_parse(line, &fdri_life_recording.settings, &w);
    if (!wrong && !w.trigger.name[0]) wrong = "empty line";
    if (wrong) fdri_text_message("trigger '%.200s': %s; it is not set", line, wrong);
    int id = wrong ? -EINVAL : take_slot(&w);
    if (id > 0) finish_add(slot_of(id));
    int e = id > 0 ? fdri_trigger_dumper_start() : 0;
    if (e)
        fdri_text_message("trigger %s: cannot start the thread that takes snapshots: %s; it only counts",
                          w.trigger.name, strerror(-e));
    if (id > 0) fdri_trigger_dumper_wake(); /* it may have to poll from now on */
    return id;
}

/* fdr_finalize waits for the hold for a short time only. If it ran meanwhile, the trigger was removed with the others,
 * or is removed when the next recording begins, which waits longer. */
int fdr_trigger_add(const char *line)
{
    uint32_t on = fdri_atomic_load_relaxed(&fdr_switch_.on);
    char copy[1024] = ""; /* copied first: a bad pointer faults before a lock is held. Cut lines stay too long */
    sigset_t old;
    int id = -ESRCH;
    if (!on) return id;
    if (line) memcpy(copy, line, strnlen(line, sizeof copy - 1));
    fdri_system_signals_block(&old);
    struct fdri_system_cancel cancel = fdri_system_cancel_off();
    if (fdri_thread_hold_recording(on)) {
        id = add_line(copy);
        if (id > 0 && fdri_atomic_load_relaxed(&fdr_switch_.on) != on) id = -ESRCH;
        fdri_thread_release_recording();
    }
    fdri_system_cancel_defer(cancel);
    fdri_system_signals_restore(&old);
    fdri_system_cancel_restore(cancel);
    return id;
}

static bool trigger_exists(int trigger)
{
    return trigger > 0 && fdri_atomic_load_relaxed(&fdri_watch_slots[slot_of(trigger)].id) == (uint32_t)trigger;
}

/* Frees the place of a removed trigger after a grace period. The recording may be over by then, and the place in use
 * again: so `which` holds the tenancy, too. */
static void free_slot(void *which)
{
    sigset_t old;
    struct fdri_watch_slot *w = &fdri_watch_slots[(uintptr_t)which % FDRI_EXPORT_TRIGGERS];
    fdri_watch_lock(&old);
    if (w->state == FDRI_WATCH_LEAVING && w->tenancy == (uint32_t)((uintptr_t)which / FDRI_EXPORT_TRIGGERS))
        fdri_atomic_store_relaxed(&w->state, (uint32_t)FDRI_WATCH_FREE);
    fdri_watch_unlock(&old);
}

/* Removes a trigger; its place stays reserved until free_slot. Under the lock. */
static void take_away(uint32_t slot)
{
    struct fdri_watch_table *t = fdri_watch_table;
    fdri_trigger_disarm(slot);
    for (uint32_t i = 0; t && i < 1u << t->log2; i++)
        if (t->entry[i].slot == slot && t->entry[i].key) fdri_atomic_store_relaxed(&t->entry[i].removed, (uint8_t)1);
    fdri_atomic_store_relaxed(&fdri_watch_slots[slot].id, 0u);
    fdri_atomic_store_relaxed(&fdri_watch_slots[slot].state, (uint32_t)FDRI_WATCH_LEAVING);
    update_watched();
}

int fdr_trigger_remove(int trigger)
{
    sigset_t old;
    if (!trigger_exists(trigger)) return -ENOENT;
    uint32_t slot = slot_of(trigger);
    fdri_watch_lock(&old);
    bool there = trigger_exists(trigger); /* another thread may have removed it before we had the lock */
    uintptr_t which = (uintptr_t)fdri_watch_slots[slot].tenancy * FDRI_EXPORT_TRIGGERS + slot;
    if (there) take_away(slot);
    fdri_watch_unlock(&old);
    if (there) fdri_thread_after_grace(free_slot, (void *)which);
    return there ? 0 : -ENOENT;
}

/* Async-signal-safe. The hold keeps the place from a trigger of the next recording. The section keeps it from another
 * trigger of this one, but only if liburcu knows this thread. To register takes a lock, which a handler must not.
 * Signals are blocked, as a longjmp would leave the section open until the thread's next record. */
void fdr_trigger_fire(int trigger, double value)
{
    struct fdri_export_seen seen = {
        .type = FDRI_ARENA_VALUE_F64, .location = UINT32_MAX, .key = FDRI_EXPORT_NO_KEY, .field = FDRI_EXPORT_NO_FIELD};
    sigset_t old;
    memcpy(&seen.value, &value, sizeof value);
    uint32_t on = fdri_atomic_load_relaxed(&fdr_switch_.on);
    if (!on || !trigger_exists(trigger)) return;
    fdri_system_signals_block(&old);
    if (fdri_thread_hold_recording(on)) {
        bool known = fdri_record_self.recording == on && fdri_names_is_reader();
        seen.tick = fdri_thread_tick_now();
        if (known) fdri_thread_read_begin();
        if (trigger_exists(trigger)) fdri_trigger_seen(slot_of(trigger), &seen);
        if (known) fdri_thread_read_end();
        fdri_thread_release_recording();
    }
    fdri_system_signals_restore(&old);
}

uint64_t fdr_trigger_count(int trigger) { return trigger_exists(trigger) ? fdri_trigger_count(slot_of(trigger)) : 0; }

/* ---- start and end of a recording ---- */

static void load_line(const char *where, unsigned number, const char *line)
{
    struct fdri_watch w;
    const char *wrong = fdri_watch_parse(line, &fdri_life_recording.settings, &w);
    if (!wrong && !w.trigger.name[0]) return;
    int id = wrong ? 0 : take_slot(&w);
    if (id > 0) fdri_watch_slots[slot_of(id)].matched = true; /* there are no definitions yet */
    if (id < 0) wrong = id == -ENOMEM ? "no memory" : "64 triggers exist already";
    line += strspn(line, " \t");
    if (wrong)
        fdri_text_message("FDR_TRIGGERS=%s line %u '%.*s': %s; this line is ignored", where, number,
                          (int)strcspn(line, "\r\n") < 80 ? (int)strcspn(line, "\r\n") : 80, line, wrong);
}

static void load_file(const char *path)
{
    char line[1024];
    FILE *f = fdri_text_open_lines(path);
    if (!f) {
        fdri_text_message("FDR_TRIGGERS=%s: %s; no trigger is set", path,
                          errno == EINVAL ? "not a file" : strerror(errno));
        return;
    }
    for (unsigned number = 1; fgets(line, sizeof line, f); number++) {
        bool whole = strchr(line, '\n') || feof(f);
        load_line(path, number, line);
        for (int c = 0; !whole && c != '\n' && c != EOF;) c = getc(f); /* load_line has reported it as too long */
    }
    if (ferror(f)) fdri_text_message("FDR_TRIGGERS=%s: %s; using the lines read before that", path, strerror(errno));
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

void fdri_watch_unmatched(void (*each)(const char *where, const char *pattern))
{
    sigset_t old;
    fdri_watch_lock(&old);
    for (uint32_t i = 0; i < FDRI_EXPORT_TRIGGERS; i++) {
        const struct fdri_watch_slot *s = &fdri_watch_slots[i];
        if (s->state == FDRI_WATCH_USED && !s->hit && s->watch.glob[0]) each("trigger", s->watch.trigger.name);
    }
    fdri_watch_unlock(&old);
}

void fdri_watch_stop(void)
{
    sigset_t old;
    fdri_watch_lock(&old);
    struct fdri_watch_table *t = fdri_watch_table;
    fdri_atomic_store_release(&fdri_watch_table, (struct fdri_watch_table *)NULL); /* R:watch */
    for (uint32_t i = 0; i < FDRI_EXPORT_TRIGGERS; i++) {
        fdri_trigger_forget(i);
        fdri_atomic_store_relaxed(&fdri_watch_slots[i].id, 0u);
        fdri_atomic_store_relaxed(&fdri_watch_slots[i].state, (uint32_t)FDRI_WATCH_FREE);
        fdri_watch_slots[i].turns = 0;
    }
    update_watched();
    fdri_watch_unlock(&old);
    if (t) fdri_thread_after_grace(free_tables, t);
}

void fdri_watch_fork(int phase)
{
    if (phase == 3) pthread_mutex_init(&lock, NULL);
    else if (phase == 0) pthread_mutex_lock(&lock);
    else pthread_mutex_unlock(&lock);
}
