/* SPDX-License-Identifier: MIT */
/* Claims: a thread that is not the owner takes the oldest bin of a partition. claims.c knows which claimers are
 * inside; a pinned location lets nobody in. */
#ifndef FDRI_BINS_CLAIMS_H
#define FDRI_BINS_CLAIMS_H

#include <stdbool.h>
#include <stdint.h>

#include "format/arena/arena.h"

struct fdri_bins_arena;
struct fdri_bins_given;

/* ---- claims: another thread than the owner's takes the oldest bin ----
 * claims.c knows which claimers are inside; pinned, nobody enters. */
#define FDRI_BINS_PINNED 0x80000000u
/* `who` takes bins of l. Returns its place, or 0: go elsewhere (l is pinned). One place at a time for each `who`. */
uint32_t fdri_bins_claim_enter(struct fdri_bins_arena *a, const struct fdri_arena_location *who,
                               struct fdri_arena_location *l);
void fdri_bins_claim_leave(struct fdri_bins_arena *a, uint32_t place);
/* The same by who may be late: with the word that stood there when it entered. By now the place may be another's, of
 * another recording. */
uint64_t fdri_bins_claim_word(const struct fdri_bins_arena *a, uint32_t place);
void fdri_bins_claim_leave_as(struct fdri_bins_arena *a, uint32_t place, uint64_t word);
/* By the owner of `who`, which is inside nowhere: what it left in the middle is over. */
void fdri_bins_claim_abandoned(struct fdri_bins_arena *a, const struct fdri_arena_location *who);
/* Keeps claimers out; true when none is inside any more. It looks for a bounded time, then unpin all the same. */
bool fdri_bins_claim_pin(struct fdri_bins_arena *a, struct fdri_arena_location *l);
void fdri_bins_claim_unpin(struct fdri_arena_location *l);
/* Takes the oldest bin unless it is the newest, or another was faster: then 0. One try. The caller holds the bin. */
uint32_t fdri_bins_part_claim(struct fdri_bins_arena *a, struct fdri_arena_part *p, uint32_t *size_log2,
                              struct fdri_bins_given *given);

#endif
