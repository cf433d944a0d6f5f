/* SPDX-License-Identifier: MIT */
/* Searches of a thread for memory: the past ones decide whether the next one is made. */
#ifndef FDRI_RECORDER_THREAD_SEARCH_PAUSE_H
#define FDRI_RECORDER_THREAD_SEARCH_PAUSE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bits.h"
#include "bins/pieces.h"

/* The returned pieces of a location, as a thread last saw them when no whole bin was among them. */
enum { FDRI_THREAD_RETURNED_SEEN = 4 };
struct fdri_thread_returned_seen {
    uint32_t location_id; /* the location's id */
    uint32_t first_piece; /* the first of its pieces then; 0: look again */
    struct fdri_bins_returned remaining;
    /* No piece of 1 << missing_log2 bytes could be had; 0: not tried. */
    uint32_t missing_log2;
};

/* The results of past searches for memory. */
struct fdri_thread_search {
    uint32_t failures;         /* failed searches in a row, up to now */
    uint32_t requests_to_skip; /* this many of the next requests do not search */
    int32_t credit;            /* in records */
    uint64_t skip_end;         /* the latest end of a pause; ticks of the location */
};

/* Pauses between searches. If memory is much too small for all threads, a search takes a hundred times as long as
 * recording an event. Each event would begin one, and other threads would take the bin again at once. So
 *   - after FDRI_THREAD_PATIENCE fruitless searches in a row, the next 2, 4, .. 1024 requests make none. The pause ends
 *     with the second event after FDRI_THREAD_PAUSE_NS of recorded time, so a thread that records rarely profits once
 *     a burst of other threads is over;
 *   - a search costs credit if the location's share and holdings are less than its levels need. Each stored record
 *     earns one credit. Without credit only every FDRI_THREAD_POOR_PAUSE-th request makes a search.
 * A request without a search counts its event as lost, and the thread goes on at its own speed. */
enum {
    FDRI_THREAD_PATIENCE = 8,
    FDRI_THREAD_PAUSE_LOG2 = 10,
    FDRI_THREAD_PAUSE_NS = 10000000,
    FDRI_THREAD_CREDIT = 4096, /* records */
    FDRI_THREAD_SEARCH_COST = 16,
    FDRI_THREAD_POOR_PAUSE = 64
};
static inline uint32_t fdri_thread_search_failures(const struct fdri_thread_search *s)
{
    return s->failures > FDRI_THREAD_PATIENCE ? s->failures - FDRI_THREAD_PATIENCE : 0;
}
/* Must this request do without a search? Counts the pause down. now: in the unit of `skip_end`, ticks of the
 * location. */
static inline bool fdri_thread_search_pauses(struct fdri_thread_search *s, uint64_t now)
{
    if (FDRI_LIKELY(!s->requests_to_skip)) return false;
    s->requests_to_skip = now < s->skip_end ? s->requests_to_skip - 1 : 0;
    return now < s->skip_end;
}
/* A bin with `records` records was sealed: they earn credit. */
static inline void fdri_thread_search_yields(struct fdri_thread_search *s, uint32_t records)
{
    int32_t credit = s->credit + (int32_t)records;
    s->credit = credit < FDRI_THREAD_CREDIT ? credit : FDRI_THREAD_CREDIT;
}
/* After each search: decides about the next pause, which ends at `skip_end` at the latest. */
static inline void fdri_thread_search_over(struct fdri_thread_search *s, bool found, uint64_t until)
{
    s->skip_end = until;
    if (found) s->failures = 0;
    else if (s->failures < FDRI_THREAD_PATIENCE + FDRI_THREAD_PAUSE_LOG2) s->failures++;
    uint32_t weary = fdri_thread_search_failures(s);
    if (weary) s->requests_to_skip = 1u << weary;
    if (s->credit >= 0) return;
    s->credit += FDRI_THREAD_SEARCH_COST;
    s->requests_to_skip = (uint32_t)fdri_bits_max(s->requests_to_skip, FDRI_THREAD_POOR_PAUSE);
}

#endif
