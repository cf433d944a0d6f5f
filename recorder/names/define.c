/* SPDX-License-Identifier: MIT */
/* Definitions: append-only records in meta memory, found again through a private index. There is one lock. Signals are
 * blocked while it is held, so that a handler cannot wait for the thread that it interrupted. */
#define _GNU_SOURCE
#include <errno.h>
#include <fdr/fdr.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/bits.h"
#include "base/system/signal_mask.h"
#include "base/text/message.h"
#include "bins/bins.h"
#include "format/arena/arena.h"
#include "format/codec/record_codec.h"
#include "recorder/names/module_symbols.h"
#include "recorder/names/region_rules.h"
#include "recorder/names/names.h"
#include "recorder/names/wanted_definition.h"
#include "recorder/recording.h"
#include "recorder/thread/thread_state.h"
#include "recorder/watch/watch.h"

enum {
    NAME_MAX_BYTES = 4095,
    BLOCK_BYTES = 4096,
    FILES_MAX = FDRI_CODEC_ID_MAX >> 4 /* the low bits of an id say the operation */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* Hash table with open addressing of the records' offsets; only this file reads it. It lies in a mapping of its own, as
 * a definition may be made by a signal handler that interrupted the program's allocator. */
static uint32_t *index_off;
static uint32_t index_log2, index_used;
static uint64_t block_bytes; /* total size of all blocks of definitions */
/* by kind: a saved definition found no room, so no new ids are given: they would differ from the saved ones */
static bool out_of_ids[FDRI_ARENA_DEF_KINDS];

static struct fdri_names_held enter_lock(void)
{
    struct fdri_names_held h = {.error = errno};
    fdri_system_signals_block(&h.mask);
    fdri_thread_inside++;
    pthread_mutex_lock(&lock);
    return h;
}
void fdri_names_leave_lock(const struct fdri_names_held *h)
{
    pthread_mutex_unlock(&lock);
    fdri_thread_inside--;
    fdri_system_signals_restore(&h->mask);
    errno = h->error;
}

/* Takes the lock for a definition by the program. False, and the lock is free: nothing records. The switch is read
 * before the lock. A child for which no atfork handler ran has it off, and the lock may be held by a thread of the
 * parent. It is read again under the lock: if it is on, the recording cannot end before
 * fdri_names_leave_lock (fdri_names_define_end). */
bool fdri_names_enter_on(struct fdri_names_held *h)
{
    if (!fdri_atomic_load_relaxed(&fdr_switch_.on)) return false;
    *h = enter_lock();
    if (fdri_atomic_load_relaxed(&fdr_switch_.on)) return true;
    fdri_names_leave_lock(h);
    return false;
}

uint64_t fdri_names_hash_text(uint64_t h, const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++) h = (h ^ (uint8_t)s[i]) * 0x100000001B3u;
    return h ^ h >> 29;
}

static uint64_t hash_of(const struct fdri_names_wanted *w)
{
    uint64_t h = 0xCBF29CE484222325u ^ w->kind ^ (uint64_t)w->line << 8;
    h = fdri_names_hash_text(h, w->name, w->name_bytes);
    h = fdri_names_hash_text(h, w->file, w->file_bytes);
    return fdri_names_hash_text(h, (const char *)&w->value, 8) * 0x9E3779B97F4A7C15u;
}

static const char *text_of(const struct fdri_arena_def *d) { return (const char *)(d + 1); }

static bool same_definition(const struct fdri_arena_def *d, const struct fdri_names_wanted *w)
{
    return d->kind == w->kind && d->line == w->line && d->value == w->value &&
           d->value2 == w->value2 && /* of regions the module: addresses are reused */
           d->name_bytes == w->name_bytes && d->file_bytes == w->file_bytes &&
           !memcmp(text_of(d), w->name, w->name_bytes) &&
           !memcmp(text_of(d) + w->name_bytes + 1, w->file, w->file_bytes);
}

static struct fdri_names_wanted wanted_of(const struct fdri_arena_def *d)
{
    return (struct fdri_names_wanted){d->kind,       text_of(d),    text_of(d) + d->name_bytes + 1,
                                      d->name_bytes, d->file_bytes, d->line,
                                      d->value,      d->value2};
}

/* The index entry of w, or the free entry where it belongs. The index has a free entry. */
static uint32_t *find(const struct fdri_names_wanted *w)
{
    uint32_t mask = (1u << index_log2) - 1, i = (uint32_t)(hash_of(w) >> (64 - index_log2));
    for (; index_off[i]; i = (i + 1) & mask)
        if (same_definition(fdri_bins_at(&fdri_life_recording.arena, index_off[i]), w)) break;
    return &index_off[i];
}

static void drop_index(void)
{
    if (index_off) munmap(index_off, sizeof *index_off << index_log2);
    index_off = NULL;
}

/* Doubles the index. True: there is room for one more entry, even if doubling failed. */
static bool grow_index(void)
{
    uint32_t log2 = index_off ? index_log2 + 1 : 10, mask = (1u << log2) - 1;
    uint32_t *wider = mmap(NULL, sizeof *wider << log2, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (wider == MAP_FAILED) return index_off && index_used < (1u << index_log2) - 1;
    for (uint32_t i = 0; index_off && i < 1u << index_log2; i++) {
        if (!index_off[i]) continue;
        const struct fdri_names_wanted known = wanted_of(fdri_bins_at(&fdri_life_recording.arena, index_off[i]));
        uint32_t j = (uint32_t)(hash_of(&known) >> (64 - log2));
        while (wider[j]) j = (j + 1) & mask;
        wider[j] = index_off[i];
    }
    drop_index();
    index_off = wider;
    index_log2 = log2;
    return true;
}

/* Definitions leave an eighth of the limit for meta blocks to the accounts of threads: names are useless without
 * threads that record calls. */
static bool too_many(uint32_t more)
{
    const struct fdri_bins_arena *a = &fdri_life_recording.arena;
    return block_bytes + more > a->meta_limit - a->meta_limit / 8;
}

/* Room for `bytes` at the end of the newest block, of which *block is set; NULL: no room. A new block is linked before
 * it is used. */
static struct fdri_arena_def *append(uint32_t bytes, struct fdri_arena_defs_block **block)
{
    struct fdri_arena_superblock *s = fdri_life_recording.arena.super;
    struct fdri_arena_defs_block *b = s->defs_last ? fdri_bins_at(&fdri_life_recording.arena, s->defs_last) : NULL;
    if (!b || b->head.bytes - sizeof *b - b->used < bytes) {
        uint32_t want = bytes + (uint32_t)sizeof *b > BLOCK_BYTES ? bytes + (uint32_t)sizeof *b : BLOCK_BYTES;
        uint32_t off = too_many(want)
                           ? 0
                           : fdri_bins_meta_take(&fdri_life_recording.arena, FDRI_ARENA_META_DEFS, want, UINT32_MAX);
        if (!off) return NULL;
        block_bytes += want;
        if (b) fdri_atomic_store_release(&b->next, off);     /* R:defs */
        else fdri_atomic_store_release(&s->defs_first, off); /* R:defs */
        s->defs_last = off;
        b = fdri_bins_at(&fdri_life_recording.arena, off);
    }
    *block = b;
    return (struct fdri_arena_def *)(void *)((uint8_t *)(b + 1) + b->used);
}

static uint32_t max_of_kind(uint32_t kind)
{
    return kind == FDRI_ARENA_DEF_METRIC  ? FDRI_NAMES_METRICS_MAX - 1
           : kind == FDRI_ARENA_DEF_EVENT ? FDRI_NAMES_EVENTS_MAX - 1
           : kind == FDRI_ARENA_DEF_FILE  ? FILES_MAX - 1
                                          : FDRI_CODEC_ID_MAX;
}

/* One message for each reason. */
static void report_lost(const struct fdri_names_wanted *w, bool indexed)
{
    static unsigned said_full, said_most, said_index;
    uint32_t most = max_of_kind(w->kind);
    bool full = fdri_life_recording.arena.super->def_count[w->kind] < most;
    if (!fdri_text_once(!indexed ? &said_index : full ? &said_full : &said_most)) return;
    if (!indexed)
        fdri_text_message(
            "'%.80s' is not defined: no memory for the index of names; events of it are recorded as [unknown]",
            w->name);
    else if (full)
        fdri_text_message("no room for the definition of '%.80s'; events of it are recorded as [unknown] (a larger "
                          "FDR_BUFFER has room)",
                          w->name);
    else
        fdri_text_message(
            "'%.80s' is not defined: there are %u of its kind already; events of it are recorded as [unknown]", w->name,
            most);
}

/* Appends a record with the next id of its kind; returns its offset, 0: no room. */
static uint32_t write_def(const struct fdri_names_wanted *w, const void *payload, uint32_t payload_bytes)
{
    struct fdri_arena_superblock *s = fdri_life_recording.arena.super;
    uint32_t text = (uint32_t)fdri_bits_align_up(w->name_bytes + w->file_bytes + 2, 8);
    uint32_t bytes = (uint32_t)sizeof(struct fdri_arena_def) + text + (uint32_t)fdri_bits_align_up(payload_bytes, 8);
    struct fdri_arena_defs_block *block;
    bool allowed = !out_of_ids[w->kind] && s->def_count[w->kind] < max_of_kind(w->kind);
    struct fdri_arena_def *d = allowed ? append(bytes, &block) : NULL;
    if (!d) return 0;
    *d = (struct fdri_arena_def){.bytes = bytes,
                                 .kind = w->kind,
                                 .id = s->def_count[w->kind] + 1,
                                 .line = w->line,
                                 .value = w->value,
                                 .value2 = w->value2,
                                 .name_bytes = (uint16_t)w->name_bytes,
                                 .file_bytes = (uint16_t)w->file_bytes,
                                 .payload_bytes = payload_bytes};
    char *p = (char *)(d + 1);
    memcpy(p, w->name, w->name_bytes);
    memcpy(p + w->name_bytes + 1, w->file, w->file_bytes);
    if (payload_bytes) memcpy(p + text, payload, payload_bytes);
    d->check = fdri_arena_check32(d, bytes);
    fdri_atomic_bump_relaxed(&s->def_count[w->kind], 1u);
    fdri_atomic_store_release(&block->used, block->used + bytes); /* R:defs - a copier reads `used` first */
    return (uint32_t)((uint8_t *)d - fdri_life_recording.arena.base);
}

/* Functions from here to fdri_names_define_wanted() need the lock. */

/* The index entry of w, or a free one for it. NULL: w is not defined, and the index cannot grow. */
static uint32_t *place_of(const struct fdri_names_wanted *w)
{
    uint32_t *slot = index_off ? find(w) : NULL;
    if (slot && (*slot || index_used < (1u << index_log2) * 3 / 4)) return slot;
    return grow_index() ? find(w) : NULL;
}

uint32_t fdri_names_find_or_write(const struct fdri_names_wanted *w, const void *payload, uint32_t payload_bytes)
{
    uint32_t *slot = place_of(w);
    if (slot && *slot) return ((struct fdri_arena_def *)fdri_bins_at(&fdri_life_recording.arena, *slot))->id;
    uint32_t off = slot ? write_def(w, payload, payload_bytes) : 0;
    if (!off) {
        fdri_atomic_add_relaxed(&fdri_life_recording.arena.super->lost_definitions, 1u);
        report_lost(w, slot);
        return 0;
    }
    *slot = off;
    index_used++;
    return ((struct fdri_arena_def *)fdri_bins_at(&fdri_life_recording.arena, off))->id;
}

struct fdri_names_wanted fdri_names_wanted_as(enum fdri_arena_def_kind kind, const char *name, const char *file)
{
    struct fdri_names_wanted w = {.kind = (uint16_t)kind, .name = name ? name : "", .file = file ? file : ""};
    w.name_bytes = strnlen(w.name, NAME_MAX_BYTES);
    w.file_bytes = strnlen(w.file, NAME_MAX_BYTES);
    return w;
}

uint32_t fdri_names_defined(enum fdri_arena_def_kind kind) { return fdri_life_recording.arena.super->def_count[kind]; }

uint32_t fdri_names_define_wanted(const struct fdri_names_wanted *w, const void *payload, uint32_t payload_bytes)
{
    uint32_t before = fdri_names_defined((enum fdri_arena_def_kind)w->kind),
             id = fdri_names_find_or_write(w, payload, payload_bytes);
    if (id > before && w->name_bytes)
        fdri_watch_define((enum fdri_arena_def_kind)w->kind, id, w->name, payload, payload_bytes);
    return id;
}

uint32_t fdri_names_define(enum fdri_arena_def_kind kind, const char *name, const char *file, uint32_t line,
                           uint64_t value, uint64_t value2, const void *payload, uint32_t payload_bytes)
{
    struct fdri_names_wanted w = fdri_names_wanted_as(kind, name, file);
    w.line = line;
    w.value = value;
    w.value2 = value2;
    struct fdri_names_held h = enter_lock();
    uint32_t id = fdri_life_recording.running ? fdri_names_define_wanted(&w, payload, payload_bytes) : 0;
    fdri_names_leave_lock(&h);
    return id;
}

struct fdri_names_cursor fdri_names_definitions(void)
{
    uint32_t first = fdri_atomic_load_acquire(&fdri_life_recording.arena.super->defs_first); /* A:defs */
    return (struct fdri_names_cursor){first, 0};
}

const struct fdri_arena_def *fdri_names_next(struct fdri_names_cursor *c)
{
    while (c->block) {
        const struct fdri_arena_defs_block *b = fdri_bins_at(&fdri_life_recording.arena, c->block);
        if (c->at < fdri_atomic_load_acquire(&b->used)) { /* A:defs */
            const struct fdri_arena_def *d = (const void *)((const char *)(b + 1) + c->at);
            c->at += d->bytes;
            return d;
        }
        uint32_t next = fdri_atomic_load_acquire(&b->next); /* A:defs */
        *c = (struct fdri_names_cursor){next, 0};
    }
    return NULL;
}

static void watch_names(uint32_t region, const struct fdri_names_called *called)
{
    for (uint32_t i = 0; i < called->count; i++)
        if (*called->name[i]) fdri_watch_define(FDRI_ARENA_DEF_REGION, region, called->name[i], NULL, 0);
}

uint32_t fdri_names_define_function(uint64_t address, uint32_t module, const struct fdri_names_called *called)
{
    struct fdri_names_wanted w = fdri_names_wanted_as(FDRI_ARENA_DEF_REGION, "", "");
    w.value = address;
    w.value2 = module;
    struct fdri_names_held h = enter_lock();
    uint32_t id = fdri_life_recording.running ? fdri_names_define_wanted(&w, NULL, 0) : 0;
    if (id) fdri_names_rules_define(id, called, "", true);
    if (id) watch_names(id, called);
    fdri_names_leave_lock(&h);
    return id;
}

const struct fdri_arena_def *fdri_names_definition(enum fdri_arena_def_kind kind, uint32_t id)
{
    const struct fdri_arena_def *d = NULL;
    for (struct fdri_names_cursor c = fdri_names_definitions(); (d = fdri_names_next(&c)) != NULL;)
        if (d->kind == kind && d->id == id) break;
    return d;
}

uint32_t fdri_names_define_late(uint32_t module)
{
    uint32_t ruled = 0;
    const struct fdri_arena_def *d;
    for (struct fdri_names_cursor c = fdri_names_definitions(); (d = fdri_names_next(&c)) != NULL;) {
        struct fdri_names_called called = {0};
        if (d->kind != FDRI_ARENA_DEF_REGION || d->name_bytes || !d->value || d->value2 != module) continue;
        fdri_names_symbols_of(module, d->value, &called);
        ruled += fdri_names_rules_decide_late(d->id, &called);
        watch_names(d->id, &called);
    }
    if (ruled) fdri_names_mutes_changed();
    return ruled;
}

/* Ids outlive a recording, as callers keep them in static variables. So a later recording of the process begins with
 * the definitions of the earlier ones, in their order. */
static uint8_t *saved;
static size_t saved_bytes;

void fdri_names_define_save(void)
{
    const struct fdri_arena_superblock *s = fdri_life_recording.arena.super;
    if (memcmp(s->magic, FDRI_ARENA_MAGIC, sizeof s->magic) != 0) return; /* the live file was truncated */
    free(saved);
    saved = NULL;
    saved_bytes = 0;
    for (uint32_t off = s->defs_first; off;) {
        const struct fdri_arena_defs_block *b = fdri_bins_at(&fdri_life_recording.arena, off);
        /* A:defs - in a forked child, the parent may be appending */
        uint32_t used = fdri_atomic_load_acquire(&b->used);
        uint8_t *wider = realloc(saved, saved_bytes + used);
        if (!wider) return;
        saved = wider;
        memcpy(saved + saved_bytes, b + 1, used);
        saved_bytes += used;
        off = fdri_atomic_load_acquire(&b->next); /* A:defs */
    }
}

void fdri_names_define_end(void)
{
    struct fdri_names_held h = enter_lock();
    fdri_names_define_save();
    fdri_atomic_store_relaxed(&fdri_life_recording.running, false); /* no definition after this */
    fdri_names_leave_lock(&h);
}

/* Stores a saved definition that does not fit with a shortened name, so that the following ones get their old ids. If
 * even that does not fit, nothing of its kind is defined any more. */
static void define_cut(const struct fdri_arena_def *d)
{
    char name[40] = "";
    struct fdri_names_wanted w = {.kind = d->kind, .name = name, .file = "", .value = d->value};
    w.name_bytes = fdri_bits_min(d->name_bytes, sizeof name - 4);
    memcpy(name, text_of(d), w.name_bytes);
    if (w.name_bytes < d->name_bytes) memcpy(name + w.name_bytes, "...", 3), w.name_bytes += 3;
    if (fdri_life_recording.arena.super->def_count[d->kind] + 1 == d->id) write_def(&w, NULL, 0);
}

static void define_again(const struct fdri_arena_def *d)
{
    const struct fdri_names_wanted w = wanted_of(d);
    uint32_t id = fdri_names_define_wanted(&w, w.name + fdri_bits_align_up(d->name_bytes + d->file_bytes + 2u, 8),
                                           d->payload_bytes);
    /* rules may have changed; a code address is matched with them at its next first call */
    const struct fdri_names_called called = {.count = 1, .name = {w.name}};
    if (d->kind == FDRI_ARENA_DEF_REGION && !d->value && id) fdri_names_rules_define(id, &called, w.file, false);
    if (id != d->id) define_cut(d);
    out_of_ids[d->kind] = fdri_names_defined((enum fdri_arena_def_kind)d->kind) < d->id;
}

/* The lock is held throughout: a new definition in between would take the id of a saved one. */
void fdri_names_define_reset(void)
{
    struct fdri_names_held h = enter_lock();
    drop_index();
    index_log2 = index_used = 0;
    block_bytes = 0;
    memset(out_of_ids, 0, sizeof out_of_ids);
    for (size_t at = 0; at < saved_bytes;) {
        const struct fdri_arena_def *d = (const void *)(saved + at);
        define_again(d);
        at += d->bytes;
    }
    fdri_atomic_store_relaxed(&fdri_life_recording.running, true);
    fdri_names_leave_lock(&h);
}

void fdri_names_define_fork(int phase)
{
    if (phase == 3) pthread_mutex_init(&lock, NULL);
    else if (phase == 0) pthread_mutex_lock(&lock);
    else pthread_mutex_unlock(&lock);
}
