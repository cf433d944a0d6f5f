/* SPDX-License-Identifier: MIT */
/* Fair shares of one buffer: which location holds more than others, and how another takes a bin from it.
 *
 *   fair_share.c        shares and the richest location    claim_bin.c         taking a bin from another location
 *   choose_partition.c  which of its partitions gives
 *
 * Neighbours: memory/ asks for bins. ended/ gives the bins of ended threads, which go first. bins/claims.h takes the
 * bin. */
#ifndef FDRI_RECORDER_SHARES_SHARES_H
#define FDRI_RECORDER_SHARES_SHARES_H

#include <stdbool.h>
#include <stdint.h>

#include "format/arena/arena.h"

struct fdri_thread;

/* Bins that l holds, including its pieces in strewn bins. */
uint32_t fdri_shares_bins_of(const struct fdri_arena_location *l);
bool fdri_shares_poor(const struct fdri_thread *t); /* beside its accounts it holds next to nothing */
uint32_t fdri_shares_fair(void);                    /* a fair share: bins in use / live locations */
uint32_t fdri_shares_fair_when_full(void);          /* the fair share once all memory is in use */
enum { FDRI_SHARES_MANY_THREADS = 8 };              /* with more live locations the buffer may be crowded */
/* many live locations, and their fair share will be small */
bool fdri_shares_crowded(void);
/* no other thread is live, and none ended with bins or accounts left */
bool fdri_shares_only_location(const struct fdri_thread *t);
bool fdri_shares_rich(const struct fdri_thread *t);       /* it holds more than the average of live locations */
void fdri_shares_note_taken(const struct fdri_thread *t); /* call it when t's location took a bin */

/* A piece of 1 << size_log2 bytes, of a whole bin taken from a location that holds more; 0: none. */
uint32_t fdri_shares_claim_piece(struct fdri_thread *t, uint32_t size_log2);
/* A piece that another location was given back and does not collect, or a piece of a strewn bin that was given back. 0:
 * none of the examined locations has one, or t is not starving. */
uint32_t fdri_shares_take_returned(struct fdri_thread *t, uint32_t size_log2);
/* Sizes for a search, as log2 of bytes. want: preferred. least: acceptable if no more is found. must: not 0 if the
 * memory cannot be done without; others may then keep less than their share. */
struct fdri_shares_size {
    uint32_t preferred_log2, least_log2;
    uint32_t essential_tries;
};
/* Room for a location when no bin is free. It asks ended locations that have aged, then richer locations. If t holds
 * less than half of a fair share, it asks all ended ones. If t is poor, it asks any location that holds more than its
 * part among locations_sure. 0: none. */
uint32_t fdri_shares_any_room(struct fdri_thread *t, struct fdri_shares_size size, uint32_t *got_log2);

#endif
