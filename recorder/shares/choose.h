/* SPDX-License-Identifier: MIT */
/* The interface between fair_share.c, choose_partition.c and claim_bin.c. Statements about another location are true
 * when read, and may be out of date when used. */
#ifndef FDRI_RECORDER_SHARES_CHOOSE_H
#define FDRI_RECORDER_SHARES_CHOOSE_H

#include <stdbool.h>
#include <stdint.h>

#include "format/arena/arena.h"
#include "recorder/thread/thread_state.h"

struct fdri_thread;

enum { FDRI_SHARES_LOOK = 8 }; /* locations that one search examines */

/* Locations to take from: RICHER: those with more than a fair share. ENDED: those whose thread ended, without the lock
 * of ended/. ANY: any location with bins, for a poor location that found nothing else. */
enum fdri_shares_givers { FDRI_SHARES_RICHER, FDRI_SHARES_ENDED, FDRI_SHARES_ANY };

/* ---- fair_share.c ---- */
uint32_t fdri_shares_units(const struct fdri_arena_location *l);    /* bytes of its stored events, in units of 512 */
uint32_t fdri_shares_history(const struct fdri_arena_location *l);  /* the same in whole bins */
uint32_t fdri_shares_left_to_owner(enum fdri_shares_givers givers); /* bins that claims leave to each location */
bool fdri_shares_ended(const struct fdri_arena_location *l); /* its thread ended, and its accounts are not folded */
bool fdri_shares_below_fair(const struct fdri_thread *t);    /* t holds less than half of a fair share */
bool fdri_shares_starving(const struct fdri_thread *t);      /* t is poor, and the buffer is crowded */
/* The location that gives to t: the richest of the remembered one and of the next few on the chain. NULL: none may be
 * taken from. */
struct fdri_arena_location *fdri_shares_richest(struct fdri_thread *t, enum fdri_shares_givers givers);
/* The same, of the next few the one that ended first. */
struct fdri_arena_location *fdri_shares_oldest_ended(struct fdri_thread *t);

/* ---- choose_partition.c ---- */
/* The number of v's bins that must stay listed. must: 0 for records; else the number of tries so far for memory that
 * cannot be done without. */
uint32_t fdri_shares_must_leave(const struct fdri_arena_location *v, bool newest, enum fdri_shares_givers givers,
                                uint32_t must);
/* The partition of v to take from, if v lists more than `leave` bins; else NULL. newest: a partition whose only bin is
 * the one that its owner writes to. */
struct fdri_arena_part *fdri_shares_choose(const struct fdri_arena_location *v, bool newest, uint32_t leave);

#endif
