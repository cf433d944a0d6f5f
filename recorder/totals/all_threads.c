/* SPDX-License-Identifier: MIT */
/* Totals of all threads together, read by fdr's own thread while they change. */
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/atomic.h"
#include "base/racy.h"
#include "bins/bins.h"
#include "format/arena/arena.h"
#include "recorder/ended/ended.h"
#include "recorder/recording.h"
#include "recorder/totals/totals.h"

/* Adds the histogram of one region on one location, durations in ns, to count[]. */
FDRI_RACY static void add_histogram(const struct fdri_arena_location *l, uint32_t key, uint64_t *count)
{
    const struct fdri_arena_rowtable *t = fdri_bins_at(&fdri_life_recording.arena,
                                                       fdri_atomic_load_acquire(&l->rows_table_off)); /* A:rows */
    const uint32_t *slot = (const void *)(t + 1);
    uint32_t mask = (1u << t->log2) - 1, i = key * 0x9E3779B1u >> (32 - t->log2);
    for (uint32_t n = 0; n <= mask; n++, i = (i + 1) & mask) {
        uint32_t off = fdri_atomic_load_acquire(&slot[i]); /* A:rows */
        if (!off) return;
        const struct fdri_arena_row *r = fdri_bins_at(&fdri_life_recording.arena, off);
        if (r->key != key) continue;
        uint64_t word = fdri_atomic_load_acquire(&r->histogram); /* A:rows */
        uint32_t first = fdri_arena_histogram_first(word), end = first + fdri_arena_histogram_count(word);
        const uint64_t *h = fdri_bins_at(&fdri_life_recording.arena, (uint32_t)word);
        for (uint32_t b = first; word && b < end && b < 64; b++) count[b] += h[b];
        return;
    }
}

bool fdri_totals_histogram_of_all(uint32_t key, uint64_t *count)
{
    memset(count, 0, 64 * sizeof *count);
    if (!fdri_ended_try_hold(UINT32_MAX, 1000)) return false;
    /* A:location */
    for (uint32_t off = fdri_atomic_load_acquire(&fdri_life_recording.arena.super->location_first); off;) {
        const struct fdri_arena_location *l = fdri_bins_at(&fdri_life_recording.arena, off);
        bool free_one = fdri_atomic_load_acquire(&l->flags) & FDRI_ARENA_LOCATION_FREE; /* A:location */
        if (!free_one && l->rows_table_off) add_histogram(l, key, count);
        off = l->next;
    }
    fdri_ended_unlock();
    return true;
}
