/* SPDX-License-Identifier: MIT */
/* Fair shares of one buffer: which thread holds more than others, and taking a bin from it.
 *
 *   fair_share.c        shares and the richest location    claim_bin.c         taking a bin from another location
 *   choose_partition.c  which of its partitions gives
 *
 * Neighbours: memory/ asks; ended/ gives the memory of threads that ended first. */
#ifndef FDRI_RECORDER_SHARES_SHARES_H
#define FDRI_RECORDER_SHARES_SHARES_H

#include <stdbool.h>
#include <stdint.h>

#include "format/arena/arena.h"

struct fdri_thread;

/* Bins it holds, those counted that it has in pieces beside others. */
uint32_t fdri_shares_bins_of(const struct fdri_arena_location *l);
bool fdri_shares_poor(const struct fdri_thread *t);          /* beside its accounts it has next to nothing */
uint32_t fdri_shares_fair(void);                             /* bins for each live location, of those in use */
uint32_t fdri_shares_fair_when_full(void);                   /* the same when all will be */
enum { FDRI_SHARES_MANY_THREADS = 8 };                       /* more live ones than that are many */
bool fdri_shares_crowded(void);                              /* that is little, and they are many */
bool fdri_shares_only_location(const struct fdri_thread *t); /* nobody else is there, or was */
bool fdri_shares_rich(const struct fdri_thread *t);          /* it holds more than live ones do on average */
void fdri_shares_note_taken(const struct fdri_thread *t);    /* this location took a bin */

/* The part of a whole bin that is `size_log2` large, from a location that holds more; 0: nobody does. */
uint32_t fdri_shares_claim_piece(struct fdri_thread *t, uint32_t size_log2);
/* A piece that was taken off the lists of another, who does not collect it, or of a strewn bin, given back; 0: there is
 * none among those looked at, or no need. */
uint32_t fdri_shares_take_returned(struct fdri_thread *t, uint32_t size_log2);
/* What is looked for, as log2 of bytes; least: what will do, where no more is found; must: even if others do not keep
 * their share then. */
struct fdri_shares_size {
    uint32_t want, least;
    uint32_t must;
};
/* Room for a location when nothing is free: from ended ones that have aged, from richer ones; where it has much less
 * than a fair share from all ended ones, and where next to nothing from any that hold more than what all can have. 0:
 * there is none. */
uint32_t fdri_shares_any_room(struct fdri_thread *t, struct fdri_shares_size size, uint32_t *got_log2);

#endif
