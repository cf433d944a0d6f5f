/* SPDX-License-Identifier: MIT */
/* Runs: bins that a partition gives back together. A run notes the headers of the next bins in advance, so giving the
 * bins back reads none of them. Owner's thread only. */
#ifndef FDRI_BINS_BIN_RUN_H
#define FDRI_BINS_BIN_RUN_H

#include <stdbool.h>
#include <stdint.h>

#include "format/arena/arena.h"

struct fdri_bins_arena;
struct fdri_bins_given;

struct fdri_bins_run_bin {
    uint64_t base_tick, first_index;
    uint32_t off, generation, size_log2, pad;
};
struct fdri_bins_run {
    const struct fdri_arena_part *part;
    /* list_head: that of the partition when the run began. last_end: bins that end later stay. */
    uint64_t list_head, last_end;
    uint32_t capacity;      /* most bins of a run */
    uint32_t next_off;      /* offset of the bin to look at next; 0: the run is complete */
    uint32_t noted, popped; /* noted: entries of `bin`; popped: the number of these that were popped */
    /* true: the last bin seen ended after `last_end`, at the base_tick in the entry of `bin` behind it */
    bool past_last_end;
    struct fdri_bins_run_bin bin[]; /* room + 1 entries; all but the last one seen may be popped */
};
/* Begins a run of the oldest bins of p that end at or before `last_end`. If *r is the rest of the same run, the run
 * keeps what it has seen. */
void fdri_bins_run_begin(const struct fdri_bins_arena *a, const struct fdri_arena_part *p, uint64_t tick,
                         struct fdri_bins_run *r);
/* Looks at one more bin and prefetches the header behind it. false: the run is complete. */
bool fdri_bins_run_look(const struct fdri_bins_arena *a, struct fdri_bins_run *r);
void fdri_bins_run_forget(struct fdri_bins_run *r);
/* true: there may be more bins to pop */
static inline bool fdri_bins_run_more(const struct fdri_bins_run *r) { return r->next_off || r->noted - r->popped > 1; }
/* The value of list_head behind the popped bins. Only valid after the run has seen a bin. */
uint64_t fdri_bins_run_list(const struct fdri_bins_run *r);
/* The tick at which the oldest remaining bin ends; 0: unknown. */
static inline uint64_t fdri_bins_run_left_end(const struct fdri_bins_run *r)
{
    return r->noted + r->past_last_end > r->popped + 1 ? r->bin[r->popped + 1].base_tick : 0;
}
/* Takes the oldest bins of the run off the list of p: at most `most` whole bins. With `small`, small bins may be taken,
 * too, a quarter of these bytes in all. Returns their number; the caller then holds them and finds them in r->bin.
 * Returns 0 if there are none, or if a claimer moved the list's head. */
uint32_t fdri_bins_run_pop(struct fdri_bins_arena *a, struct fdri_arena_part *p, uint32_t most, bool small,
                           struct fdri_bins_run *r, struct fdri_bins_given *given);
/* Makes the generations of the popped bins even: they hold no records. Call it before one of them is used again. */
void fdri_bins_run_empty(const struct fdri_bins_arena *a, const struct fdri_bins_run *r);

#endif
