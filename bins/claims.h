/* SPDX-License-Identifier: MIT */
/* Claims: a thread other than the owner takes the oldest bin of a partition. claims.c notes which claimers are inside
 * which location. No claimer enters a pinned location. */
#ifndef FDRI_BINS_CLAIMS_H
#define FDRI_BINS_CLAIMS_H

#include <stdbool.h>
#include <stdint.h>

#include "format/arena/arena.h"

struct fdri_bins_arena;
struct fdri_bins_given;

#define FDRI_BINS_PINNED 0x80000000u
/* Notes that the thread of location `claimer` takes bins of l. Returns its place, or 0: l is pinned or no place was
 * free; try another location. Each `claimer` has one place at a time. */
uint32_t fdri_bins_claim_enter(struct fdri_bins_arena *a, const struct fdri_arena_location *claimer,
                               struct fdri_arena_location *l);
void fdri_bins_claim_leave(struct fdri_bins_arena *a, uint32_t place);
/* Leaving late, after the recording may have changed: the place may belong to another claimer by now. So read the word
 * on entry, and leave only if it still stands there. */
uint64_t fdri_bins_claim_word(const struct fdri_bins_arena *a, uint32_t place);
void fdri_bins_claim_leave_as(struct fdri_bins_arena *a, uint32_t place, uint64_t word);
/* Clears the places that abandoned operations of `claimer` left. Called by its owner, which is inside no location. */
void fdri_bins_claim_abandoned(struct fdri_bins_arena *a, const struct fdri_arena_location *claimer);
/* Keeps further claimers out of l. true: no claimer is inside any more. It looks a bounded number of times. Call unpin
 * in both cases. */
bool fdri_bins_claim_pin(struct fdri_bins_arena *a, struct fdri_arena_location *l);
void fdri_bins_claim_unpin(struct fdri_arena_location *l);
/* Takes the oldest bin of p; the caller holds it then. 0: it is the newest bin, which claims leave, or another thread
 * moved the list's head. One try. Call it inside of p's location. */
uint32_t fdri_bins_part_claim(struct fdri_bins_arena *a, struct fdri_arena_part *p, uint32_t *size_log2,
                              struct fdri_bins_given *given);

#endif
