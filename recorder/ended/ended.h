/* SPDX-License-Identifier: MIT */
/* Threads that ended: their bins are given back first, then their accounts are added to one location named [ended].
 *
 *   ended_threads.c     the queue, its lock, giving bins    fold_accounts.c     moving accounts, undone after a kill
 *
 * Neighbours: shares/ and memory/ ask for room. export/snapshot/ freezes the folding while it copies. */
#ifndef FDRI_RECORDER_ENDED_ENDED_H
#define FDRI_RECORDER_ENDED_ENDED_H

#include <stdbool.h>
#include <stdint.h>

#include "format/arena/arena.h"

struct fdri_thread;

/* Works on the oldest ended location: gives some of its bins back, or folds some of its accounts. true: there may be
 * room now. A location that ended a short time ago is spared, unless a poor location or accounts need the memory.
 * Bounded. Does nothing while another thread holds the lock; the urgencies FOR_ATTACH wait. */
enum fdri_ended_urgency {
    FDRI_ENDED_IF_AGED,      /* the caller needs a bin; only locations that have aged give */
    FDRI_ENDED_FOR_POOR,     /* the caller needs a bin and has few; the age does not matter */
    FDRI_ENDED_FOR_ACCOUNTS, /* the caller needs memory for accounts, not bins */
    /* the caller attaches and needs bins; it waits for other threads, at most 20 ms in all */
    FDRI_ENDED_FOR_ATTACH,
    /* the same, but it needs all memory of one ended location, with its accounts */
    FDRI_ENDED_FOR_ATTACH_WHOLE
};
bool fdri_ended_room(struct fdri_thread *t, enum fdri_ended_urgency urgency);
/* For a thread that attaches: folds ended locations if memory for accounts is short. It may wait for other threads,
 * which it must not do once it records. */
void fdri_ended_make_room_early(struct fdri_thread *t);
/* The number of bins of the ended location l that become the place for its accounts in [ended]. Claims leave them. 0 if
 * bins are too small to hold accounts. */
uint32_t fdri_ended_bins_reserved(const struct fdri_arena_location *l);
/* makes a place in [ended] for t's accounts; waits at most 10 ms */
void fdri_ended_prepare(struct fdri_thread *t);
/* appends l, whose thread ended, to the queue; the caller no longer owns it */
void fdri_ended_push(struct fdri_arena_location *l);
/* The lock of ended locations. holder: offset of the holder's location, or a value that is no location. tries: further
 * looks before it gives up. */
bool fdri_ended_try_hold(uint32_t holder, uint32_t tries); /* takes the lock; no other thread folds then */
/* the same in order to move accounts; false also while a snapshot copies */
bool fdri_ended_lock(uint32_t holder, uint32_t tries);
void fdri_ended_unlock(void);
/* For a snapshot: no accounts move until fdri_ended_unfreeze; bins may. Waits at most `ns` for a thread that moves
 * accounts. false: that thread did not finish, and nothing is frozen. */
bool fdri_ended_freeze(uint64_t ns);
void fdri_ended_unfreeze(void);
void fdri_ended_unlock_of(uint32_t holder);                     /* releases the lock only if `holder` still holds it */
void fdri_ended_abandoned(const struct fdri_arena_location *l); /* an operation of l was broken off */

bool fdri_ended_fold_start(void); /* takes memory for the undo list of folding */
/* Moves some accounts of t's location, which holds no bin, to `into`. 1: all are moved; 0: some; -1: no room. */
int fdri_ended_fold(struct fdri_thread *into, struct fdri_thread *t);
/* Makes a place in `into` for each account of t's location, before that gives its bins back. 1: all have one; 0: some;
 * -1: no room. */
int fdri_ended_fold_prepare(struct fdri_thread *into, struct fdri_thread *t);
/* Adds totals row r to row [rest] of the same location, and `from` (its row in the epochs' base) to `to` (that of
 * [rest]); both may be NULL. r has no calls then. Under the lock. */
void fdri_ended_fold_to_rest(struct fdri_thread *t, struct fdri_arena_row *r, struct fdri_arena_base_row *from,
                             struct fdri_arena_base_row *to);
/* Undoes the change under way, after an operation was broken off. Under the lock. */
void fdri_ended_fold_undo(void);

#endif
