/* SPDX-License-Identifier: MIT */
/* Each thread's cache of the functions it calls: struct fdri_names_cached. The table is made with the first function,
 * with 64 entries. It grows to 1024 while it misses often and the buffer is large enough. */
#include <fdr/fdr.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/atomic.h"
#include "base/bits.h"
#include "base/stack/frame_size.h"
#include "format/arena/arena.h"
#include "recorder/memory/memory.h"
#include "recorder/names/names.h"
#include "recorder/names/region_rules.h"
#include "recorder/record/record.h"
#include "recorder/record/shadow_stack.h"
#include "recorder/recording.h"
#include "recorder/thread/arena_place.h"
#include "recorder/thread/thread_state.h"

enum { PLACE_SHIFT = 16, PLACE_BITS = 0xffff, PLACE_MOST = (1 << 18) - 8 };
enum {
    FIRST_LOG2 = 6,
    LAST_LOG2 = 10,
    BYTES_SHARE = 512,
    AGAIN = 7,
    ENTRY_BYTES = sizeof(struct fdri_names_cached) + 8
};

uint32_t fdri_names_address_version;

/* An address that no function has. A free entry has address 0; the two entries where 0 would be looked for have
 * this. */
enum { NO_ADDRESS = 1 };
static struct fdri_names_cached nothing[2] = {{.address = NO_ADDRESS}, {.address = NO_ADDRESS}};

void fdri_names_cache_start(struct fdri_thread *t)
{
    t->address_cache_shift = 31; /* after a longjmp from here, it probes the first entries of the old table */
    fdri_atomic_signal_fence();
    t->address_cache = nothing;
    t->address_cache_misses = 0;
    t->address_cache_version = fdri_atomic_load_relaxed(&fdri_names_address_version);
}

static void make_empty(struct fdri_thread *t)
{
    t->address_cache[0].address = t->address_cache[1].address = NO_ADDRESS;
}

static uint32_t log2_of(const struct fdri_thread *t)
{
    return t->address_cache == nothing ? 0 : 32 - t->address_cache_shift;
}

/* Behind the entries lie as many words about the places that hooks were called from, by hash. */
static uint64_t *place_words(const struct fdri_thread *t, uint32_t log2)
{
    return (uint64_t *)(t->address_cache + (1u << log2));
}

/* Makes a table of 1 << log2 entries, if memory allows, and frees the old one. */
static void make(struct fdri_thread *t, uint32_t log2)
{
    const uint32_t head = sizeof(struct fdri_arena_meta_head), bytes = ENTRY_BYTES << log2;
    struct fdri_names_cached *old = t->address_cache == nothing ? NULL : t->address_cache;
    uint32_t off = bytes <= fdri_life_recording.arena.super->arena_bytes / BYTES_SHARE
                       ? fdri_memory_meta_without_reduction(t, FDRI_ARENA_META_TABLE, head + bytes)
                       : 0;
    t->address_cache_misses = 0;
    if (!off) return;
    t->address_cache = (void *)((uint8_t *)fdri_thread_at(t, off) + head);
    fdri_atomic_signal_fence(); /* table before shift: a handler in between probes within the larger one */
    t->address_cache_shift = 32 - log2;
    make_empty(t);
    if (old) fdri_memory_meta_give(t, fdri_thread_offset_of(t, old) - head);
}

/* The entry of f, which has this key, if its frame size is still being measured, or NULL. Such an entry holds the
 * complement of the key, and in the low bits of frame_bytes the number of measurements to come. */
static struct fdri_names_cached *entry_under_measurement(const struct fdri_thread *t,
                                                         const struct fdri_record_function *f, uint64_t key)
{
    uint32_t slot = fdri_names_cache_slot(t, key);
    for (uint32_t way = 0; way < FDRI_NAMES_CACHE_WAYS; way++) {
        struct fdri_names_cached *k = &t->address_cache[slot ^ way];
        if (k->address == ~key && k->site == (uint32_t)f->site) return k;
    }
    return NULL;
}

/* Frees the first slot of a function. The entry there moves to the neighbouring slot, where a probe finds it as
 * well. */
static struct fdri_names_cached *make_room(const struct fdri_thread *t, uint64_t address)
{
    uint32_t slot = fdri_names_cache_slot(t, address);
    struct fdri_names_cached *k = &t->address_cache[slot], *other = &t->address_cache[slot ^ 1];
    bool own = k->address == address || k->address == ~address;
    if (k->address > NO_ADDRESS && !own) *other = *k;
    return k;
}

/* The word about a place: address in the high bits, frame size in units of 8 bytes, bit 0: not inlined there. */
static uint64_t place_word(uint64_t site, uint64_t address)
{
    uint64_t bytes = fdri_stack_frame_bytes(site);
    if (bytes % 8 || bytes > PLACE_MOST) bytes = 0;
    return site << PLACE_SHIFT | bytes / 8 << 1 | (fdri_stack_function_begin(site) == address);
}

/* The word is cached only under a busy mark of our own, as a handler may free the table. Inside of another operation
 * nothing is cached. */
struct fdri_names_place fdri_names_cache_place(struct fdri_thread *t, const struct fdri_record_function *f)
{
    struct fdri_arena_location *l = t->loc;
    bool mine = !l->busy;
    if (mine) fdri_atomic_store_relaxed(&l->busy, FDRI_RECORD_HERE());
    fdri_atomic_signal_fence();
    uint32_t log2 = log2_of(t);
    uint64_t *p = log2 ? &place_words(t, log2)[fdri_names_cache_slot(t, f->site)] : NULL, word = p ? *p : 0;
    bool known = p && t->address_cache_version == fdri_atomic_load_relaxed(&fdri_names_address_version);
    if (!known || word >> PLACE_SHIFT != (f->site & UINT64_MAX >> PLACE_SHIFT)) word = place_word(f->site, f->address);
    if (mine && known) *p = word;
    fdri_atomic_signal_fence();
    if (mine) fdri_atomic_store_release(&l->busy, 0); /* R:busy */
    return (struct fdri_names_place){.frame_bytes = (word & PLACE_BITS) >> 1 << 3, .whole = word & 1};
}

uint64_t fdri_names_cache_frame(const struct fdri_thread *t, const struct fdri_record_function *f)
{
    const struct fdri_names_cached *k = fdri_names_cache_find(t, f->address);
    bool here = t->address_cache_version == fdri_atomic_load_relaxed(&fdri_names_address_version) &&
                k->site == (uint32_t)f->site;
    return here && k->address == f->address ? k->frame_bytes : 0;
}

static void measure_frame(struct fdri_names_cached *k, const struct fdri_record_function *f, uint64_t key)
{
    uint32_t again = (k->frame_bytes & AGAIN) - 1;
    k->frame_bytes = (uint32_t)fdri_bits_max(k->frame_bytes & ~AGAIN, f->frame - f->upper) | again;
    if (!again) k->address = key;
}

void fdri_names_cache_add(struct fdri_thread *t, const struct fdri_record_function *f, fdr_region region,
                          const struct fdri_arena_row *row, const struct fdri_names_rule *rule)
{
    bool timed = rule && rule->mode == FDRI_NAMES_RULE_MIN;
    uint64_t key = timed ? f->address | FDRI_NAMES_CACHED_RULED : f->address;
    uint32_t version = fdri_atomic_load_relaxed(&fdri_names_address_version), log2 = log2_of(t);
    if (t->address_cache_version != version) {
        if (log2) memset(t->address_cache, 0, ENTRY_BYTES << log2), make_empty(t);
        t->address_cache_version = version;
    }
    if (!f->address || (rule && !timed)) return;
    struct fdri_names_cached *k = entry_under_measurement(t, f, key);
    if (k && k->row_off == fdri_thread_offset_of(t, row)) {
        measure_frame(k, f, key);
        return;
    }
    if (!log2) make(t, FIRST_LOG2);
    else if (++t->address_cache_misses > 8u << log2 && log2 < LAST_LOG2) make(t, log2 + 2);
    if (!log2_of(t) || row->key == FDRI_ARENA_ROW_KEY_REST) return;
    bool known = f->frame == FDRI_RECORD_FRAME_UNKNOWN || fdri_names_at_entry(f->address, f->site) ||
                 fdri_names_cache_place(t, f).frame_bytes;
    *make_room(t, key) = (struct fdri_names_cached){
        .address = known ? key : ~key,
        .row_off = fdri_thread_offset_of(t, row),
        .region = region,
        .site = (uint32_t)f->site,
        .frame_bytes = (uint32_t)fdri_bits_max(f->frame - f->upper, FDRI_NAMES_LEAST_FRAME) | (known ? 0 : AGAIN)};
}

void fdri_names_cache_drop(struct fdri_thread *t, uint32_t row_off)
{
    for (uint32_t i = 0, log2 = log2_of(t); log2 && i < 1u << log2; i++)
        if (t->address_cache[i].row_off == row_off)
            t->address_cache[i] = (struct fdri_names_cached){.address = i < FDRI_NAMES_CACHE_WAYS ? NO_ADDRESS : 0};
}
