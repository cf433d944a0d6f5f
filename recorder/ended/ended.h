/* SPDX-License-Identifier: MIT */
/* Threads that ended: their bins go first, then their accounts are folded into one location named [ended].
 *
 *   ended_threads.c     the queue, its lock, giving bins    fold_accounts.c     moving accounts, undone after a kill
 *
 * Neighbours: shares/ and memory/ ask for room; a snapshot freezes the folding. */
#ifndef FDRI_RECORDER_ENDED_ENDED_H
#define FDRI_RECORDER_ENDED_ENDED_H

#include <stdbool.h>
#include <stdint.h>

#include "format/arena/arena.h"

struct fdri_thread;

/* Looks after the oldest location that ended: gives some of its bins back, or folds some of its accounts. true: there
 * may be room now. Not before its last moments have aged, but for a location that has next to nothing, or for accounts.
 * Bounded; does nothing where another thread does it. */
enum fdri_ended_urgency {
    FDRI_ENDED_IF_AGED,
    FDRI_ENDED_FOR_POOR,
    FDRI_ENDED_FOR_ACCOUNTS,    /* wants what no bin is: memory of accounts */
    FDRI_ENDED_FOR_ATTACH,      /* wants bins; waits for others, 20 ms in all */
    FDRI_ENDED_FOR_ATTACH_WHOLE /* the same; wants all memory of one that ended, accounts and all */
};
bool fdri_ended_room(struct fdri_thread *t, enum fdri_ended_urgency urgency);
/* A thread that comes makes room for accounts of its own where there is little: it may wait for others, which it must
 * not once it records. */
void fdri_ended_make_room_early(struct fdri_thread *t);
/* Bins that make a place for the accounts of l, which ended, if bins can hold it at all: who claims more than is fair
 * leaves these. */
uint32_t fdri_ended_bins_reserved(const struct fdri_arena_location *l);
void fdri_ended_prepare(struct fdri_thread *t);         /* a place for its accounts; waits 10 ms at most */
void fdri_ended_push(struct fdri_arena_location *l);    /* its thread ended: it is not the caller's any more */
bool fdri_ended_try_hold(uint32_t who, uint32_t tries); /* keeps everybody from folding */
bool fdri_ended_lock(uint32_t who, uint32_t tries);     /* the same, to move accounts: not beside a snapshot */
void fdri_ended_unlock(void);
/* For a snapshot: accounts stay where they are until it goes on; bins do not. Waits that long at most for who moves
 * some. */
bool fdri_ended_freeze(uint64_t ns);
void fdri_ended_unfreeze(void);
void fdri_ended_unlock_of(uint32_t who);
void fdri_ended_abandoned(const struct fdri_arena_location *l); /* an operation of l was given up in the middle */

bool fdri_ended_fold_start(void); /* room for the words under way */
/* Moves some of the accounts of t's location, which holds no bin, to `into`. 1: all are moved; 0: some; -1: no room. */
int fdri_ended_fold(struct fdri_thread *into, struct fdri_thread *t);
/* A place for each of them there, before t's location has given its bins away. 1: all have one; 0: some; -1: no
 * room. */
int fdri_ended_fold_prepare(struct fdri_thread *into, struct fdri_thread *t);
/* Adds row r to the rest of the same location, and what stands for it in the epochs' base (or NULL, both) to the
 * rest's place there. r is left without calls. Under the lock. */
void fdri_ended_fold_to_rest(struct fdri_thread *t, struct fdri_arena_row *r, struct fdri_arena_base_row *from,
                             struct fdri_arena_base_row *to);
void fdri_ended_fold_undo(void);

#endif
