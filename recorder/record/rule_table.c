/* SPDX-License-Identifier: MIT */
/* Rows of regions with a rule keep their regions (row_eviction.c), so an entry stays true while the recording runs.
 *
 * The table is made with the thread's first region that has a rule, with 64 entries. It grows to 1024 while it misses
 * often and the buffer is large enough. Without a table all calls of these regions take the slow path. */
#include "recorder/record/rule_table.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/atomic.h"
#include "base/bits.h"
#include "format/arena/arena.h"
#include "recorder/life/life.h"
#include "recorder/recording.h"
#include "recorder/memory/memory.h"
#include "recorder/names/names.h"
#include "recorder/names/region_rules.h"
#include "recorder/record/record.h"
#include "recorder/thread/arena_place.h"
#include "recorder/thread/thread.h"
#include "recorder/thread/thread_state.h"

enum { FIRST_LOG2 = 6, LAST_LOG2 = 10, BYTES_SHARE = 512 };

static uint32_t entries_of(const struct fdri_thread *t) { return t->ruled ? 1u << (32 - t->ruled_shift) : 0; }

/* Makes an empty table of 1 << log2 entries, if memory allows. The old one stays, because an operation that a handler
 * interrupted may be looking into it; it finds nothing there any more. */
static void make(struct fdri_thread *t, uint32_t log2)
{
    const uint32_t head = sizeof(struct fdri_arena_meta_head), bytes = (uint32_t)sizeof(struct fdri_record_ruled)
                                                                       << log2;
    struct fdri_record_ruled *old = t->ruled;
    uint32_t old_entries = entries_of(t);
    uint32_t off = bytes <= fdri_life_recording.arena.super->arena_bytes / BYTES_SHARE
                       ? fdri_memory_meta_without_reduction(t, FDRI_ARENA_META_TABLE, head + bytes)
                       : 0;
    t->ruled_misses = 0;
    if (!off) return;
    t->ruled_shift = 31; /* a handler in between looks into the first entries of either table */
    fdri_atomic_signal_fence();
    t->ruled = (void *)((uint8_t *)fdri_thread_at(t, off) + head);
    fdri_atomic_signal_fence();
    t->ruled_shift = 32 - log2;
    for (uint32_t i = 0; i < old_entries; i++) old[i].key = 0;
    fdri_thread_update_soft(t);
}

/* The shortest duration that the rule stores, in ticks of the location: the least number whose time, rounded down to ns
 * as everywhere, is min_ns. */
static uint64_t least_ticks(const struct fdri_thread *t, uint64_t min_ns)
{
    unsigned __int128 ticks = (((unsigned __int128)min_ns << 32) + t->to_ns - 1) / t->to_ns;
    return fdri_bits_max(ticks > UINT64_MAX ? UINT64_MAX : (uint64_t)ticks, t->min_ticks);
}

static void put(struct fdri_record_ruled *at, struct fdri_record_ruled entry)
{
    uint64_t key = entry.key;
    at->key = entry.key = 0;
    fdri_atomic_signal_fence();
    *at = entry;
    fdri_atomic_signal_fence();
    at->key = key;
}

/* Takes the entry into the first slot of its key. The entry there moves to the neighbouring slot, where a search finds
 * it as well. */
static void insert(const struct fdri_thread *t, struct fdri_record_ruled entry)
{
    uint32_t slot = fdri_record_ruled_slot(t, entry.key);
    struct fdri_record_ruled *r = &t->ruled[slot];
    if (r->key && r->key != entry.key) put(&t->ruled[slot ^ 1], *r);
    put(r, entry);
}

static struct fdri_record_ruled *entry_of(const struct fdri_thread *t, uint64_t key)
{
    if (!t->ruled) return NULL;
    struct fdri_record_ruled *r = fdri_record_ruled_find(t, key);
    return fdri_record_ruled_is(t, r, key) ? r : NULL;
}

/* Marks the open calls of an entry's region as frames that its leaves may belong to, and counts them. Calls that began
 * before the region was muted are among them. Not inlined: gcc 12 would take the address of fdri_record_self for NULL
 * in its check of undefined behaviour. */
static FDRI_NOINLINE uint32_t mark_frames(const struct fdri_thread *t, uint64_t key)
{
    uint32_t frames = 0;
    for (uint32_t d = t->loc->depth; d; d--) {
        struct fdri_arena_level *v = fdri_thread_level(t, d);
        if (fdri_record_ruled_key(v->region, v->address) != key) continue;
        v->flags |= FDRI_ARENA_LEVEL_NTH;
        frames++;
    }
    return frames;
}

static struct fdri_record_ruled new_entry(const struct fdri_thread *t, uint64_t key, const struct fdri_names_rule *rule,
                                          const struct fdri_arena_row *row)
{
    struct fdri_record_ruled r = {.key = key,
                                  .limit = UINT64_MAX,
                                  .row_off = fdri_thread_offset_of(t, row),
                                  .count = rule->count,
                                  .mode = rule->mode};
    if (rule->mode == FDRI_NAMES_RULE_MIN) r.limit = least_ticks(t, rule->min_ns);
    else r.framed = mark_frames(t, key);
    if (rule->mode == FDRI_NAMES_RULE_MUTED) {
        r.limit = fdri_record_ruled_next_timed(row, rule->count);
        r.framed |= t->loc->unbalanced ? FDRI_RECORD_RULED_ALWAYS : 0;
    } else if (rule->mode != FDRI_NAMES_RULE_EXCLUDE) r.framed |= FDRI_RECORD_RULED_SLOW;
    return r;
}

struct fdri_record_ruled *fdri_record_ruled_add(struct fdri_thread *t, fdr_region region,
                                                const struct fdri_record_function *f,
                                                const struct fdri_names_rule *rule, struct fdri_arena_row *row)
{
    uint64_t key = fdri_record_ruled_key(region, f ? f->address : 0);
    uint32_t version = fdri_atomic_load_relaxed(&fdri_names_address_version), log2 = t->ruled ? 32 - t->ruled_shift : 0;
    if (t != &fdri_record_self || fdri_names_rule_records_all(rule)) return NULL;
    if (row->key == FDRI_ARENA_ROW_KEY_REST && rule->mode == FDRI_NAMES_RULE_MIN) return NULL;
    struct fdri_record_ruled *there = entry_of(t, key);
    if (there && there->mode == rule->mode) return there;
    if (!log2) make(t, FIRST_LOG2);
    else if (++t->ruled_misses > 8u << log2 && log2 < LAST_LOG2) make(t, log2 + 2);
    if (!t->ruled) return NULL;
    if (t->ruled_version != version) memset(t->ruled, 0, sizeof *t->ruled * entries_of(t));
    t->ruled_version = version;
    /* The region was muted a moment ago, and this thread has not adopted it yet. */
    if (!(row->flags & FDRI_ARENA_ROW_GATED) && row->key != FDRI_ARENA_ROW_KEY_REST) {
        row->flags |= FDRI_ARENA_ROW_GATED;
        fdri_names_cache_drop(t, fdri_thread_offset_of(t, row));
    }
    insert(t, new_entry(t, key, rule, row));
    return entry_of(t, key);
}

void fdri_record_ruled_forget(struct fdri_thread *t, fdr_region region, const struct fdri_record_function *f)
{
    struct fdri_record_ruled *r = entry_of(t, fdri_record_ruled_key(region, f ? f->address : 0));
    if (r && r->mode != FDRI_NAMES_RULE_MIN) r->key = 0;
}

void fdri_record_ruled_drop(struct fdri_thread *t, uint32_t row_off)
{
    for (uint32_t i = 0; i < entries_of(t); i++)
        if (t->ruled[i].row_off == row_off) t->ruled[i].key = 0;
}

void fdri_record_ruled_opened(struct fdri_thread *t, const struct fdri_arena_level *v)
{
    struct fdri_record_ruled *r = entry_of(t, fdri_record_ruled_key(v->region, v->address));
    if (r) r->framed++;
}

void fdri_record_ruled_closed(struct fdri_thread *t, const struct fdri_arena_level *v)
{
    struct fdri_record_ruled *r = entry_of(t, fdri_record_ruled_key(v->region, v->address));
    if (r && fdri_record_ruled_frames(r)) r->framed--;
}

void fdri_record_ruled_jumped(struct fdri_thread *t)
{
    for (uint32_t i = 0; i < entries_of(t); i++)
        if (t->ruled[i].mode == FDRI_NAMES_RULE_MUTED) t->ruled[i].framed |= FDRI_RECORD_RULED_ALWAYS;
}

void fdri_record_ruled_recount(struct fdri_thread *t)
{
    for (uint32_t i = 0; i < entries_of(t); i++) t->ruled[i].framed -= fdri_record_ruled_frames(&t->ruled[i]);
    for (uint32_t d = t->ruled ? t->loc->depth : 0; d; d--) {
        const struct fdri_arena_level *v = fdri_thread_level(t, d);
        if (v->flags & FDRI_ARENA_LEVEL_NTH) fdri_record_ruled_opened(t, v);
    }
}
