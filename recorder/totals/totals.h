/* SPDX-License-Identifier: MIT */
/* Exact totals: one row for each region and kind of point of a location.
 *
 *   totals.c           rows, histograms, sums     row_eviction.c     chooses the row that goes if memory is full
 *   traffic.c          messages and collectives by region
 *
 * Neighbours: record/ counts into rows; strategy/ takes differences for epochs; memory/ gives the cells. */
#ifndef FDRI_RECORDER_TOTALS_TOTALS_H
#define FDRI_RECORDER_TOTALS_TOTALS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/atomic.h"
#include "base/bits.h"
#include "format/arena/arena.h"
#include "recorder/thread/arena_place.h"
#include "recorder/thread/thread_state.h"

#define FDRI_TOTALS_KEY(kind, id) ((uint32_t)(id) | (uint32_t)(kind) << 24)
struct fdri_arena_row *fdri_totals_row_slow(struct fdri_thread *t, uint32_t key);
static inline struct fdri_arena_row *fdri_totals_row(struct fdri_thread *t, uint32_t key)
{
    uint32_t off = t->row_slot[key * 0x9E3779B1u >> t->row_shift];
    struct fdri_arena_row *r = fdri_thread_at(t, off); /* offset 0 is the superblock; its first word is no key */
    return FDRI_LIKELY(r->key == key) ? r : fdri_totals_row_slow(t, key);
}
/* Makes a row for `key` with buckets [from, end) of its histogram, unless the limit of totals forbids it. False: the
 * limit allows it, but there is no memory now. */
bool fdri_totals_row_prepare(struct fdri_thread *t, uint32_t key, uint32_t from, uint32_t end);
bool fdri_totals_rows_start(struct fdri_thread *t);
/* This many rows are prefetched while those before them are read. */
enum { FDRI_TOTALS_ROWS_PREFETCHED = 16 };
/* Repairs the table after a longjmp left an operation that may have been replacing it. */
void fdri_totals_rows_mend(struct fdri_thread *t);
/* Makes a row for `key` in a zeroed cell, or in the cell of a row without calls. */
struct fdri_arena_row *fdri_totals_row_place(struct fdri_thread *t, uint32_t off, uint32_t key);
/* Gives the row at `off` another key and empties it. All signals must be blocked. */
struct fdri_arena_row *fdri_totals_row_rename(struct fdri_thread *t, uint32_t off, uint32_t key);
bool fdri_totals_rows_full(struct fdri_thread *t); /* is the table so full that searches would take long? */
/* Extends the row's histogram to buckets [from, end), too; false: no room. */
bool fdri_totals_histogram_cover(struct fdri_thread *t, struct fdri_arena_row *r, uint32_t from, uint32_t end);
void fdri_totals_histogram_drop(struct fdri_thread *t, struct fdri_arena_row *r);
/* Makes room for this bucket, or drops the histogram if there is none. */
void fdri_totals_histogram_slow(struct fdri_thread *t, struct fdri_arena_row *r, uint32_t bucket);
/* Counts the newest call that the fast path ended in its histogram. Required before histograms are read or moved. The
 * order of stores matters for a kill: a histogram lacks a call only while its row has more calls than the histogram. */
static inline void fdri_totals_count_pending(uint8_t *base, struct fdri_arena_location *l)
{
    uint32_t off = l->pending_counter_off;
    if (!off) return;
    fdri_atomic_bump_relaxed((uint64_t *)(void *)(base + off), 1);
    fdri_atomic_signal_fence();
    l->pending_counter_off = 0;
    fdri_atomic_signal_fence();
}
/* Offset of this bucket's counter; 0: the row has no histogram. */
static inline uint32_t fdri_totals_histogram_counter(struct fdri_thread *t, struct fdri_arena_row *r, uint32_t bucket)
{
    uint64_t word = r->histogram;
    if (FDRI_UNLIKELY(bucket - fdri_arena_histogram_first(word) >= fdri_arena_histogram_count(word))) {
        fdri_totals_histogram_slow(t, r, bucket);
        word = r->histogram;
    }
    return word ? (uint32_t)word + bucket * (uint32_t)sizeof(uint64_t) : 0;
}
static inline uint32_t fdri_totals_bucket(uint64_t v) { return 63u ^ (uint32_t)__builtin_clzll(v | 1); }
/* Adds a value of this type. False: the sum would exceed its type; *sum is then the bound it would have passed. */
bool fdri_totals_add_value(uint32_t type, uint64_t *sum, uint64_t value);
/* Counts one event of a point class with value `value` of this type. ticks: how long it took, of timed classes. */
void fdri_totals_count_point(struct fdri_thread *t, uint32_t key, enum fdri_arena_value_type type, uint64_t value,
                             uint64_t ticks);
/* traffic.c: counts a message or a collective for the region under way, the one around it, and for epochs. received: of
 * collectives. */
void fdri_totals_count_traffic(struct fdri_thread *t, enum fdri_arena_traffic what, uint64_t bytes, uint64_t received);

/* Evicts the least valuable row or histogram nearby and returns a row for `key` in its place; NULL: none may go. */
struct fdri_arena_row *fdri_totals_row_evict(struct fdri_thread *t, uint32_t key);
/* Messages or collectives of the location are in no region's row. From now on it makes no such row: one that began
 * later would not have all. */
static inline void fdri_totals_traffic_lost(struct fdri_arena_location *l)
{
    fdri_atomic_store_relaxed(&l->flags, l->flags | FDRI_ARENA_LOCATION_TRAFFIC_LOST);
}
/* The row [rest]. From now on calls of `key` count there. */
struct fdri_arena_row *fdri_totals_row_rest(struct fdri_thread *t, uint32_t key);
/* Do calls of `key` count in [rest]? */
bool fdri_totals_row_in_rest(struct fdri_thread *t, uint32_t key);

/* The histogram of one region on all threads: count[64], durations in ns by powers of two. False: an ended thread is
 * being folded. For fdr's own thread. */
bool fdri_totals_histogram_of_all(uint32_t key, uint64_t *count);

#endif
