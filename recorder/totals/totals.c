/* SPDX-License-Identifier: MIT */
/* Exact totals: one row for each region or kind of point of a location, found through a small hash table. Rows come
 * from slabs of meta memory. If the share of totals is used up, first histograms go; then the least used rows share the
 * row named [rest]: row_eviction.c. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/atomic.h"
#include "base/bits.h"
#include "format/arena/arena.h"
#include "recorder/ended/ended.h"
#include "recorder/memory/memory.h"
#include "recorder/names/names.h"
#include "recorder/names/region_rules.h"
#include "recorder/recording.h"
#include "recorder/strategy_table.h"
#include "recorder/thread/arena_place.h"
#include "recorder/thread/thread_state.h"
#include "recorder/totals/totals.h"

enum {
    FIRST_SLAB = 512,
    NEXT_SLAB = 960, /* the usable bytes of a slab of 1 KiB */
    FIRST_TABLE_LOG2 = 6,
    EPOCHS_TABLE_LOG2 = 10,
    HISTOGRAM_STEP = 8,
    STEPS = 8
};

/* Is meta memory below this part of the buffer? Totals share the buffer with events: rows may grow up to four eighths,
 * histograms up to three. */
static bool meta_below_eighths(uint64_t eighths)
{
    return fdri_memory_meta_bytes() < fdri_life_recording.arena.super->arena_bytes / 8 * eighths;
}

/* The same, after folding ended threads where that makes room. */
static bool make_meta_room(struct fdri_thread *t, uint64_t eighths)
{
    for (int i = 0; i < STEPS && !meta_below_eighths(eighths); i++)
        if (!fdri_ended_room(t, FDRI_ENDED_FOR_ACCOUNTS)) break;
    return meta_below_eighths(eighths);
}

/* Keeps the former cells of a grown histogram for the next row or histogram of that size. Not while a snapshot copies
 * rows: it may have read the row that led here. */
static void spare_cells(struct fdri_thread *t, uint32_t off, uint32_t bytes)
{
    uint32_t *spare = bytes / 64 <= FDRI_THREAD_SPARE_CELLS ? &t->spare_cells[bytes / 64 - 1] : NULL;
    if (!spare || *spare || !fdri_ended_lock(fdri_thread_offset_of(t, t->loc), 0)) return;
    memset(fdri_thread_at(t, off), 0, bytes);
    fdri_atomic_signal_fence();
    *spare = off;
    fdri_ended_unlock();
}

/* A multiple of 64 bytes of zeroed memory, or 0. */
static uint32_t new_cells(struct fdri_thread *t, uint32_t bytes)
{
    struct fdri_arena_location *l = t->loc;
    uint32_t *spare = bytes / 64 <= FDRI_THREAD_SPARE_CELLS ? &t->spare_cells[bytes / 64 - 1] : NULL;
    if (spare && *spare) {
        uint32_t off = *spare;
        *spare = 0;
        fdri_atomic_signal_fence(); /* a longjmp before this loses the cell; it is never handed out with data in it */
        return off;
    }
    if (l->slab_end - l->slab_off < bytes) {
        uint32_t want = l->slab_off ? NEXT_SLAB : FIRST_SLAB;
        if (want < bytes + 64) want = bytes + 64;
        t->search_barriers = 0;
        uint32_t off = fdri_memory_meta(t, FDRI_ARENA_META_ROWS, want);
        if (!off) return 0;
        fdri_memory_set_stretch(l, offsetof(struct fdri_arena_location, slab_off), off + 64, off + want);
    }
    uint32_t off = l->slab_off;
    l->slab_off += bytes;
    return off;
}

/* The thread has the table's place and size in its own state. If the arena's file is truncated, zeros replace the
 * table's contents. */
static struct fdri_arena_rowtable *table_of(struct fdri_thread *t)
{
    return (struct fdri_arena_rowtable *)(void *)t->row_slot - 1;
}
static uint32_t log2_of(const struct fdri_thread *t) { return 32 - t->row_shift; }

static struct fdri_arena_rowtable *new_table(struct fdri_thread *t, uint32_t log2)
{
    uint32_t off = fdri_memory_meta(t, FDRI_ARENA_META_ROWTABLE,
                                    (uint32_t)sizeof(struct fdri_arena_rowtable) + (4u << log2));
    if (!off) return NULL;
    struct fdri_arena_rowtable *table = fdri_thread_at(t, off);
    table->log2 = log2;
    return table;
}

static uint32_t *slots_of(struct fdri_arena_rowtable *table) { return (uint32_t *)(void *)(table + 1); }

static void insert(struct fdri_thread *t, struct fdri_arena_rowtable *table, uint32_t log2, uint32_t off)
{
    uint32_t key = ((struct fdri_arena_row *)fdri_thread_at(t, off))->key, mask = (1u << log2) - 1;
    uint32_t i = key * 0x9E3779B1u >> (32 - log2);
    uint32_t *slot = slots_of(table);
    while (slot[i]) i = (i + 1) & mask;       /* the loop ends: the table is never full */
    table->used++;                            /* first: after a longjmp the table must not be fuller than `used` */
    fdri_atomic_store_release(&slot[i], off); /* R:rows */
}

/* The slot where the search for a row begins. */
static uint32_t home_of(const struct fdri_thread *t, uint32_t off)
{
    return ((const struct fdri_arena_row *)(const void *)(t->base + off))->key * 0x9E3779B1u >> t->row_shift;
}

static void use_table(struct fdri_thread *t, struct fdri_arena_rowtable *table, uint32_t log2)
{
    t->row_slot = slots_of(table);
    t->row_shift = 32 - log2;
    fdri_atomic_signal_fence();
    fdri_atomic_store_release(&t->loc->rows_table_off, fdri_thread_offset_of(t, table)); /* R:rows */
}

void fdri_totals_rows_mend(struct fdri_thread *t)
{
    struct fdri_arena_rowtable *table = fdri_thread_at(t, t->loc->rows_table_off);
    if (table->log2) use_table(t, table, table->log2); /* else the arena's file was truncated */
}

/* Doubles the slots. False: no room; then the table may fill up to one free slot. */
static bool grow_table(struct fdri_thread *t)
{
    uint32_t log2 = log2_of(t);
    struct fdri_arena_rowtable *old = table_of(t), *table = new_table(t, log2 + 1);
    if (!table) return false;
    const uint32_t *slot = slots_of(old), count = 1u << log2;
    for (uint32_t i = 0; i < count; i++) {
        if (i + FDRI_TOTALS_ROWS_PREFETCHED < count && slot[i + FDRI_TOTALS_ROWS_PREFETCHED])
            __builtin_prefetch(fdri_thread_at(t, slot[i + FDRI_TOTALS_ROWS_PREFETCHED]));
        if (slot[i]) insert(t, table, log2 + 1, slot[i]);
    }
    use_table(t, table, log2 + 1);
    /* the old table stays as it is: a snapshot may be reading it */
    if (log2 + 1 >= EPOCHS_TABLE_LOG2) fdri_strategy_many_rows(t);
    return true;
}

/* Removes a row from the table. Rows behind it in its run move closer to their home slots. Each is written to its new
 * slot before its old slot is overwritten. So at every moment each row has a slot, and some have two. */
static void take_out(struct fdri_thread *t, uint32_t off)
{
    struct fdri_arena_rowtable *table = table_of(t);
    uint32_t *slot = slots_of(table), mask = (1u << log2_of(t)) - 1, i = home_of(t, off);
    while (slot[i] && slot[i] != off) i = (i + 1) & mask;
    if (!slot[i]) return; /* a longjmp left its making: it has no slot */
    for (uint32_t k = (i + 1) & mask; slot[k]; k = (k + 1) & mask) {
        if (((k - home_of(t, slot[k])) & mask) < ((k - i) & mask)) continue;
        fdri_atomic_store_release(&slot[i], slot[k]); /* R:rows */
        i = k;
    }
    fdri_atomic_store_release(&slot[i], 0u); /* R:rows */
    table->used--;
}

bool fdri_totals_rows_full(struct fdri_thread *t) { return table_of(t)->used >= (1u << log2_of(t)) / 8 * 7; }

static struct fdri_arena_row *blank_row(struct fdri_thread *t, uint32_t off, uint32_t key)
{
    struct fdri_arena_row *r = fdri_thread_at(t, off);
    *r = (struct fdri_arena_row){.min = UINT64_MAX, .key = key};
    if (fdri_arena_row_of_traffic(key)) r->flags |= FDRI_ARENA_ROW_NO_HISTOGRAM;
    if (key >> 24 == FDRI_ARENA_DEF_REGION && fdri_names_rule_now(key & 0xffffffu)) r->flags |= FDRI_ARENA_ROW_GATED;
    fdri_atomic_signal_fence();
    return r;
}

struct fdri_arena_row *fdri_totals_row_place(struct fdri_thread *t, uint32_t off, uint32_t key)
{
    struct fdri_arena_row *r = blank_row(t, off, key);
    fdri_strategy_row_made(t, off); /* first: after a longjmp it is a row without calls that no search finds */
    fdri_atomic_signal_fence();
    insert(t, table_of(t), log2_of(t), off);
    return r;
}

struct fdri_arena_row *fdri_totals_row_rename(struct fdri_thread *t, uint32_t off, uint32_t key)
{
    take_out(t, off);
    fdri_atomic_signal_fence();
    struct fdri_arena_row *r = blank_row(t, off, key);
    insert(t, table_of(t), log2_of(t), off);
    return r;
}

static struct fdri_arena_row *new_row(struct fdri_thread *t, uint32_t key)
{
    uint32_t off = fdri_strategy_row_fits(t, key) ? new_cells(t, sizeof(struct fdri_arena_row)) : 0;
    return off ? fdri_totals_row_place(t, off, key) : NULL;
}

bool fdri_totals_rows_start(struct fdri_thread *t)
{
    t->loc->slab_off = t->loc->slab_end = 0;
    memset(t->spare_cells, 0, sizeof t->spare_cells);
    struct fdri_arena_rowtable *table = new_table(t, FIRST_TABLE_LOG2);
    if (!table) return false;
    use_table(t, table, FIRST_TABLE_LOG2);
    struct fdri_arena_row *rest = new_row(t, FDRI_ARENA_ROW_KEY_REST);
    if (!rest) return false;
    if (fdri_names_rules_any()) rest->flags |= FDRI_ARENA_ROW_GATED; /* it may stand for any region with a rule */
    t->loc->rest_row_off = fdri_thread_offset_of(t, rest);
    return true;
}

static struct fdri_arena_row *find(struct fdri_thread *t, uint32_t key)
{
    const struct fdri_arena_rowtable *table = table_of(t);
    const uint32_t *slot = (const void *)(table + 1);
    uint32_t mask = (1u << log2_of(t)) - 1, i = key * 0x9E3779B1u >> t->row_shift;
    for (uint32_t n = 0; n <= mask && slot[i]; n++, i = (i + 1) & mask) {
        struct fdri_arena_row *r = fdri_thread_at(t, slot[i]);
        if (r->key == key) return r;
    }
    return NULL;
}

/* Makes a row, if the limit and the table allow it. NULL: no room. */
static struct fdri_arena_row *make(struct fdri_thread *t, uint32_t key)
{
    uint32_t mask = (1u << log2_of(t)) - 1;
    bool room = table_of(t)->used < mask * 3 / 4 || (make_meta_room(t, 4) && grow_table(t)) ||
                !fdri_totals_rows_full(t);
    bool cell = t->loc->slab_end - t->loc->slab_off >= sizeof(struct fdri_arena_row);
    return room && (cell || make_meta_room(t, 4)) ? new_row(t, key) : NULL;
}

struct fdri_arena_row *fdri_totals_row_slow(struct fdri_thread *t, uint32_t key)
{
    struct fdri_arena_row *r = find(t, key);
    if (r) return r;
    if (fdri_totals_row_in_rest(t, key)) return fdri_totals_row_rest(t, key);
    if (!(r = make(t, key))) r = fdri_totals_row_evict(t, key);
    return r ? r : fdri_totals_row_rest(t, key);
}

bool fdri_totals_row_prepare(struct fdri_thread *t, uint32_t key, uint32_t from, uint32_t end)
{
    struct fdri_arena_row *r = find(t, key);
    if (!r && !fdri_totals_row_in_rest(t, key)) r = make(t, key);
    bool whole = r && (from == end || r->flags & FDRI_ARENA_ROW_NO_HISTOGRAM ||
                       fdri_totals_histogram_cover(t, r, from, end));
    return whole || !meta_below_eighths(3) || fdri_totals_row_in_rest(t, key);
}

static uint32_t cells_of(uint32_t buckets) { return (uint32_t)fdri_bits_align_up(buckets * 8, 64); }

/* Extends [*from, *end) to contain [first, last), and by the buckets that fit the same cells, on the side where it
 * grew. */
static void widen_buckets(uint32_t first, uint32_t last, uint32_t *from, uint32_t *end)
{
    uint32_t low = (uint32_t)fdri_bits_min(first, *from), high = (uint32_t)fdri_bits_max(last, *end);
    uint32_t more = cells_of(high - low) / 8 - (high - low);
    if (low < first) low -= (uint32_t)fdri_bits_min(low, more);
    else high = (uint32_t)fdri_bits_min(high + more, 64);
    *from = low;
    *end = high;
}

bool fdri_totals_histogram_cover(struct fdri_thread *t, struct fdri_arena_row *r, uint32_t from, uint32_t end)
{
    uint64_t word = r->histogram;
    uint32_t first = fdri_arena_histogram_first(word), count = fdri_arena_histogram_count(word);
    if (r->flags & FDRI_ARENA_ROW_NO_HISTOGRAM) return false;
    if (count && from >= first && end <= first + count) return true;
    if (count) widen_buckets(first, first + count, &from, &end);
    uint32_t bytes = cells_of(end - from);
    uint32_t off = make_meta_room(t, 3) ? new_cells(t, bytes) : 0;
    if (!off) return false;
    uint64_t *counts = fdri_thread_at(t, off);
    if (count) memcpy(counts + (first - from), fdri_thread_at(t, fdri_arena_histogram_off(word)), count * 8);
    fdri_atomic_signal_fence();
    /* R:rows - the counters are written before the row names their place */
    fdri_atomic_store_release(&r->histogram, fdri_arena_histogram_word(off, from, end - from));
    if (count) spare_cells(t, fdri_arena_histogram_off(word), cells_of(count));
    return true;
}

void fdri_totals_histogram_drop(struct fdri_thread *t, struct fdri_arena_row *r)
{
    r->flags |= FDRI_ARENA_ROW_NO_HISTOGRAM;
    r->histogram = 0;
    t->loc->hists_dropped++;
}

void fdri_totals_histogram_slow(struct fdri_thread *t, struct fdri_arena_row *r, uint32_t bucket)
{
    uint64_t word = r->histogram;
    uint32_t from = bucket & ~(uint32_t)(HISTOGRAM_STEP / 2 - 1), end = from + HISTOGRAM_STEP;
    if (r->flags & FDRI_ARENA_ROW_NO_HISTOGRAM) return;
    if (word) end = (bucket / 4 + 1) * 4;
    if (!fdri_totals_histogram_cover(t, r, from, end < 64 ? end : 64)) fdri_totals_histogram_drop(t, r);
}

bool fdri_totals_add_value(uint32_t type, uint64_t *sum, uint64_t value)
{
    int64_t both;
    if (type == FDRI_ARENA_VALUE_F64) {
        *sum = fdri_bits_of_double(fdri_bits_to_double(*sum) + fdri_bits_to_double(value));
        return true;
    }
    bool fits = type == FDRI_ARENA_VALUE_I64 ? !__builtin_add_overflow((int64_t)*sum, (int64_t)value, &both)
                                             : *sum <= UINT64_MAX - value;
    if (fits) *sum += value;
    else if (type == FDRI_ARENA_VALUE_I64) *sum = (int64_t)value < 0 ? (uint64_t)INT64_MIN : INT64_MAX;
    else *sum = UINT64_MAX;
    return fits;
}

/* A sum that reached its bound stays there, even if later values would bring it back. The flag comes first, so it is
 * true after a kill. */
static void add_value(struct fdri_arena_row *r, enum fdri_arena_value_type type, uint64_t value)
{
    uint64_t sum = r->sum;
    /* the sum of sent and received bytes did not fit */
    bool both = r->key >> 24 == FDRI_ARENA_DEF_COLLECTIVE && value == UINT64_MAX;
    if (r->flags & FDRI_ARENA_ROW_SATURATED) return;
    if (!fdri_totals_add_value(type, &sum, value) || both) r->flags |= FDRI_ARENA_ROW_SATURATED;
    fdri_atomic_signal_fence();
    r->sum = sum;
}

void fdri_totals_count_point(struct fdri_thread *t, uint32_t key, enum fdri_arena_value_type type, uint64_t value,
                             uint64_t ticks)
{
    struct fdri_arena_row *r = fdri_totals_row(t, key);
    /* no room, and [rest] has no sum for points: bytes, values and times do not add up. The ledger counts the point */
    if (r->key != key) return;
    bool first = r->calls == 0;
    r->flags = (r->flags & ~(3u << FDRI_ARENA_ROW_VALUE_SHIFT)) | (uint32_t)type << FDRI_ARENA_ROW_VALUE_SHIFT;
    fdri_atomic_bump_relaxed(&r->calls, 1);
    add_value(r, type, value);
    if (ticks) fdri_atomic_bump_relaxed(&r->exclusive, ticks);
    uint64_t magnitude = value;
    if (type == FDRI_ARENA_VALUE_F64) {
        double v = fdri_bits_to_double(value);
        double low = fdri_bits_to_double(r->min), high = fdri_bits_to_double(r->max);
        if (first || v < low || low != low) r->min = value; /* any number replaces a NaN as the extreme */
        if (first || v > high || high != high) r->max = value;
        magnitude = v >= 0x1p63 ? 1ull << 63 : v >= 1 ? (uint64_t)v : 0;
    } else if (type == FDRI_ARENA_VALUE_I64) {
        if (first || (int64_t)value < (int64_t)r->min) r->min = value;
        if (first || (int64_t)value > (int64_t)r->max) r->max = value;
        magnitude = (int64_t)value > 0 ? value : 0;
    } else {
        if (first || value < r->min) r->min = value;
        if (first || value > r->max) r->max = value;
    }
    uint32_t counter = fdri_totals_histogram_counter(t, r, fdri_totals_bucket(magnitude));
    if (counter) fdri_atomic_bump_relaxed((uint64_t *)fdri_thread_at(t, counter), 1);
}
