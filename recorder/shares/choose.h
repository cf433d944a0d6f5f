/* SPDX-License-Identifier: MIT */
/* Fair shares: what fair_share.c, choose_partition.c and claim_bin.c know of each other. Whatever is asked about
 * another location is true when it is read, and may have changed by the time it is known. */
#ifndef FDRI_RECORDER_SHARES_CHOOSE_H
#define FDRI_RECORDER_SHARES_CHOOSE_H

#include <stdbool.h>
#include <stdint.h>

#include "format/arena/arena.h"
#include "recorder/thread/thread_state.h"

struct fdri_thread;

enum { FDRI_SHARES_LOOK = 8 }; /* locations that one search looks at */

/* Whose bins are taken: of those that hold more than a fair share; of those that ended, without the lock of who looks
 * after them; of whoever has some, for who has next to nothing and finds no room anywhere else. */
enum fdri_shares_whose { FDRI_SHARES_RICHER, FDRI_SHARES_ENDED, FDRI_SHARES_ANY };

/* ---- fair_share.c ---- */
uint32_t fdri_shares_units(const struct fdri_arena_location *l);   /* its history, in 512 bytes */
uint32_t fdri_shares_history(const struct fdri_arena_location *l); /* the same in bins */
uint32_t fdri_shares_left_to_owner(enum fdri_shares_whose whose);  /* bins that are left to everybody */
bool fdri_shares_ended(const struct fdri_arena_location *l); /* its thread did, and its accounts are its own still */
bool fdri_shares_below_fair(const struct fdri_thread *t);    /* it holds much less than a fair share */
bool fdri_shares_starving(const struct fdri_thread *t);      /* next to nothing, among very many */
/* Who is to give to t: the richest of those that are known and of the next few on the chain; of these the one that
 * ended first. NULL: nobody who may be taken from. */
struct fdri_arena_location *fdri_shares_richest(struct fdri_thread *t, enum fdri_shares_whose whose);
struct fdri_arena_location *fdri_shares_oldest_ended(struct fdri_thread *t);

/* ---- choose_partition.c ---- */
/* The bins of v that must stay listed. must: how often it was tried for what needs a place, 0 for records. */
uint32_t fdri_shares_must_leave(const struct fdri_arena_location *v, bool newest, enum fdri_shares_whose whose,
                                uint32_t must);
/* The partition of v to take from, where more than `leave` bins are listed, or NULL. newest: one that has only the bin
 * that its owner would write into. */
struct fdri_arena_part *fdri_shares_choose(const struct fdri_arena_location *v, bool newest, uint32_t leave);

#endif
