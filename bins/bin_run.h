/* SPDX-License-Identifier: MIT */
/* Runs: bins that a partition gives at once. A run knows the headers of the bins that go next, so that giving them
 * reads none. Owner's thread only. */
#ifndef FDRI_BINS_BIN_RUN_H
#define FDRI_BINS_BIN_RUN_H

#include <stdbool.h>
#include <stdint.h>

#include "format/arena/arena.h"

struct fdri_bins_arena;
struct fdri_bins_given;

/* ---- runs: bins that a partition gives at once (owner's thread only) ---- */
struct fdri_bins_run_bin {
    uint64_t base_tick, first_index;
    uint32_t off, generation, size_log2, pad;
};
struct fdri_bins_run {
    const struct fdri_arena_part *part;
    uint64_t list, tick; /* its list_head when looking began; bins that end later do not go */
    uint32_t room;       /* bins at most */
    uint32_t ahead;      /* the one to look at next, or 0 */
    uint32_t seen, gone; /* entries of `bin`; of these, popped */
    bool late;           /* the last one seen ended after `tick`: at the base_tick that stands behind it in `bin` */
    struct fdri_bins_run_bin bin[]; /* room + 1: all but the last one seen may go */
};
/* Looks at the oldest bins of p that end at or before `tick` from here on: what it knows of them already it keeps. */
void fdri_bins_run_begin(const struct fdri_bins_arena *a, const struct fdri_arena_part *p, uint64_t tick,
                         struct fdri_bins_run *r);
/* Looks at one bin more and asks the cache for the header behind it; false: that was all. */
bool fdri_bins_run_look(const struct fdri_bins_arena *a, struct fdri_bins_run *r);
void fdri_bins_run_forget(struct fdri_bins_run *r);
/* May there be more to pop? */
static inline bool fdri_bins_run_more(const struct fdri_bins_run *r) { return r->ahead || r->seen - r->gone > 1; }
/* list_head behind those popped; something must have been seen */
uint64_t fdri_bins_run_list(const struct fdri_bins_run *r);
/* When the oldest bin that is left behind those popped ends; 0: that is not known. */
static inline uint64_t fdri_bins_run_left_end(const struct fdri_bins_run *r)
{
    return r->seen + r->late > r->gone + 1 ? r->bin[r->gone + 1].base_tick : 0;
}
/* Takes bins that were seen off the list of p, the oldest first: at most `most` whole ones, or small ones of a quarter
 * of that in all if they may go, too. Returns how many, which the caller holds and finds in r->bin; or 0: there are
 * none, or a claimer was faster. */
uint32_t fdri_bins_run_pop(struct fdri_bins_arena *a, struct fdri_arena_part *p, uint32_t most, bool small,
                           struct fdri_bins_run *r, struct fdri_bins_given *given);
/* Those popped hold nothing any more, which each of them must say before it is used for anything else. */
void fdri_bins_run_empty(const struct fdri_bins_arena *a, const struct fdri_bins_run *r);

#endif
