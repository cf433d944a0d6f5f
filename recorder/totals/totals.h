/* SPDX-License-Identifier: MIT */
/* Exact totals: one row for each region and kind of point of a location.
 *
 *   totals.c           rows, histograms, sums     row_eviction.c     which row goes when there is no room
 *
 * Neighbours: record/ counts into rows; strategy/ takes differences for epochs; memory/ gives the cells. */
#ifndef FDRI_RECORDER_TOTALS_TOTALS_H
#define FDRI_RECORDER_TOTALS_TOTALS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/atomic.h"
#include "base/bits.h"
#include "format/arena/arena.h"
#include "recorder/thread/thread_state.h"

#define FDRI_TOTALS_KEY(kind, id) ((uint32_t)(id) | (uint32_t)(kind) << 24)
struct fdri_arena_row *fdri_totals_row_slow(struct fdri_thread *t, uint32_t key);
static inline struct fdri_arena_row *fdri_totals_row(struct fdri_thread *t, uint32_t key)
{
    uint32_t off = t->row_slot[key * 0x9E3779B1u >> t->row_shift];
    struct fdri_arena_row *r = fdri_thread_at(t, off); /* off 0 is the superblock, whose first word is no key */
    return FDRI_LIKELY(r->key == key) ? r : fdri_totals_row_slow(t, key);
}
/* Sees to it that there is a row for `key`, with buckets [from, end) of its histogram, if totals may grow by that at
 * all; false: they may, but there is no memory now. */
bool fdri_totals_row_prepare(struct fdri_thread *t, uint32_t key, uint32_t from, uint32_t end);
bool fdri_totals_rows_start(struct fdri_thread *t);
enum { FDRI_TOTALS_ROWS_PREFETCHED = 16 };         /* asked of memory while those before them are looked at */
void fdri_totals_rows_mend(struct fdri_thread *t); /* an operation may have been left while the table was replaced */
/* A row for `key` in a cell of zeros, or in that of a row without calls. */
struct fdri_arena_row *fdri_totals_row_place(struct fdri_thread *t, uint32_t off, uint32_t key);
/* while handlers wait */
struct fdri_arena_row *fdri_totals_row_rename(struct fdri_thread *t, uint32_t off, uint32_t key);
bool fdri_totals_rows_full(struct fdri_thread *t); /* the table: searches would take long */
/* The row's histogram has room for buckets [from, end) as well; false: no room. */
bool fdri_totals_histogram_cover(struct fdri_thread *t, struct fdri_arena_row *r, uint32_t from, uint32_t end);
void fdri_totals_histogram_drop(struct fdri_thread *t, struct fdri_arena_row *r);
/* Makes room for that bucket, if there is any. */
void fdri_totals_histogram_slow(struct fdri_thread *t, struct fdri_arena_row *r, uint32_t bucket);
/* The newest call that the fast path ended comes into its histogram: before anything else looks at histograms or moves
 * them. The order is what a kill leaves: a counter is missing one only while its row has more calls than they have. */
static inline void fdri_totals_count_pending(uint8_t *base, struct fdri_arena_location *l)
{
    uint32_t off = l->counting;
    if (!off) return;
    fdri_atomic_bump_relaxed((uint64_t *)(void *)(base + off), 1);
    fdri_atomic_signal_fence();
    l->counting = 0;
    fdri_atomic_signal_fence();
}
/* Off of that bucket's counter; 0: there is none. */
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
/* Adds a value of that type. false: the sum is beyond what it holds; *sum is the bound it would have passed. */
bool fdri_totals_add_value(uint32_t type, uint64_t *sum, uint64_t value);
/* One event of a point class: value v counted in, as value type. */
void fdri_totals_count_point(struct fdri_thread *t, uint32_t key, enum fdri_arena_value_type type, uint64_t value);

/* A row for `key` in the place of what was used least, or NULL. */
struct fdri_arena_row *fdri_totals_row_evict(struct fdri_thread *t, uint32_t key);
/* The rest, to which calls of `key` go from now on, and have they gone there? */
struct fdri_arena_row *fdri_totals_row_rest(struct fdri_thread *t, uint32_t key);
bool fdri_totals_row_in_rest(struct fdri_thread *t, uint32_t key);

#endif
