/* SPDX-License-Identifier: MIT */
/* Special cases of scarce memory: first moments (FDR_PIN), joined bands, bins ready, late work. Simpler mechanisms
 * shall replace them; do not add users.
 *
 *   ready.c       bins given back ahead                 aside.c       the first moments, pinned (FDR_PIN)
 *   join.c        fewer bands in little memory          later.c       work that a call leaves to those behind it
 *   refused.c     open calls that found no level        epoch_walk.c  the end of an epoch, some rows at a time */
#ifndef FDRI_RECORDER_PRESSURE_RECORDER_PRESSURE_H
#define FDRI_RECORDER_PRESSURE_RECORDER_PRESSURE_H

#include <stdbool.h>
#include <stdint.h>

#include "format/arena/arena.h"

struct fdri_bins_given;
struct fdri_bins_run;
struct fdri_thread;

/* A call without a level begins. Returns how many such calls are open then: the new location.overflow. */
uint32_t fdri_refused_enter(const struct fdri_thread *t, uint32_t region);
/* Returns how many stay open after the leave of the newest one of this region; as many as now if none has it. */
uint32_t fdri_refused_leave(const struct fdri_thread *t, uint32_t region);

/* Leaves work to a later call. False: it is left already, or no later call will do it. */
bool fdri_leave_for_later(struct fdri_thread *t, uint32_t what);
void fdri_do_later(void); /* does one piece of such work; the thread is in no operation */

/* FDR_PIN: notes whether the first moments are over, or have used up their share. */
void fdri_aside_look(struct fdri_thread *t);
/* A call enters at `tick` after the first moments. If the tick is a new one, this pins the partitions and sets all
 * slots to 0, so later records begin new partitions. */
void fdri_aside(struct fdri_thread *t, uint64_t tick);
void fdri_aside_left(struct fdri_thread *t); /* after a longjmp: completes a pinning that was left */
/* The pinned partition of this kind, or NULL. */
struct fdri_arena_part *fdri_aside_of(struct fdri_thread *t, uint32_t depth, uint32_t class_, uint32_t band);

/* Joins bands if there is little memory for many partitions. The slots of joined bands are 0 then, and lead to
 * partitions of the longer band from now on. */
void fdri_join_look(struct fdri_thread *t);
uint64_t fdri_join_room(const struct fdri_thread *t); /* bytes that the location may come to hold */
/* True: p replaces partitions of joined bands, and was counted when they were joined. */
bool fdri_join_expected(const struct fdri_thread *t, const struct fdri_arena_part *p);
bool fdri_joined_away(const struct fdri_thread *t, const struct fdri_arena_part *p); /* no more records go to p */
/* All bands are joined: the next bin of p numbers calls of length 0 on from the newest one, which another band may
 * have. */
void fdri_join_zero(struct fdri_thread *t, struct fdri_arena_part *p);
/* The slot that the band shares with a longer one; sets *band to the longer one. NULL: the band has its own slot. */
uint32_t *fdri_joined_slot(struct fdri_thread *t, uint32_t depth, uint32_t class_, uint32_t *band);
void fdri_leave_slots(struct fdri_thread *t, const struct fdri_arena_part *p); /* clears all slots that lead to p */

/* How many bins to take off a list at once for `asking`; below 2: only one. */
uint32_t fdri_ready_run(const struct fdri_thread *t, const struct fdri_arena_part *asking);
uint32_t fdri_ready_take(struct fdri_thread *t, uint32_t size_log2); /* a bin ready, or a part of it; 0: none is left */
/* Adds a bin to the bins ready; a piece joins the free pieces. */
void fdri_ready_keep(struct fdri_thread *t, uint32_t off, uint32_t size_log2);
void fdri_ready_release(struct fdri_thread *t); /* the thread ends: its bins ready become free for all */
void fdri_ready_look(struct fdri_thread *t);    /* examines one more bin of the next run */
void fdri_ready_forget(struct fdri_thread *t);  /* a rewind is about to change the lists: forgets the run */

/* While rows are walked (t->walk.block): a call of this row enters. */
void fdri_epoch_enters(struct fdri_thread *t, const struct fdri_arena_row *row);

uint32_t fdri_ready_most(const struct fdri_thread *t); /* bins that one step may leave ready */
/* Takes up to `most` whole bins that ended by `tick` off the list of p, or smaller ones if `small`, and adds them to
 * the bins ready. The returned run lists them, until the next call of these functions. NULL: there is none. */
const struct fdri_bins_run *fdri_ready_give(struct fdri_thread *t, struct fdri_arena_part *p, uint64_t tick,
                                            uint32_t most, bool small, struct fdri_bins_given *given);
uint32_t fdri_ready_first(struct fdri_thread *t); /* a whole bin, or 0 */
/* The next bins to go are probably those of p that ended by `tick`. p NULL: they are not known. */
void fdri_ready_ahead(struct fdri_thread *t, const struct fdri_arena_part *p, uint64_t tick);
/* The gain of the totals since the last cut becomes sums and rows of epoch `i`, after which another one begins; the
 * base moves up to now. With many rows this only begins the walk, which fdri_epoch_walk continues. */
void fdri_epoch_rows_cut(struct fdri_thread *t, struct fdri_arena_epochs *e, uint32_t i);
void fdri_epoch_walk(struct fdri_thread *t);     /* walks some more rows, if any are left */
void fdri_epoch_walk_all(struct fdri_thread *t); /* walks all rows: they are about to change in other ways */

#endif
