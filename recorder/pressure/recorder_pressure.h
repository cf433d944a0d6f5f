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

/* A call deeper than the levels held begins: how many are open then? (location.overflow as it is to be) */
uint32_t fdri_refused_enter(const struct fdri_thread *t, uint32_t region);
/* How many are open behind the leave of the newest of this region? Less than are now, unless none of them is. */
uint32_t fdri_refused_leave(const struct fdri_thread *t, uint32_t region);

/* False: it was left before, or nobody will come by who does it. */
bool fdri_leave_for_later(struct fdri_thread *t, uint32_t what);
void fdri_do_later(void); /* one of those things, by a thread that is in no operation */

/* FDR_PIN: are the first moments over, or have they used up their share? */
void fdri_aside_look(struct fdri_thread *t);
/* They are, and a call enters at `tick`: where that is a new one partitions are set aside. Where records go is new
 * then: slots are 0. */
void fdri_aside(struct fdri_thread *t, uint64_t tick);
void fdri_aside_left(struct fdri_thread *t); /* an operation was left by longjmp: does what is left of it */
/* The partition of this kind that was set aside, or NULL. */
struct fdri_arena_part *fdri_aside_of(struct fdri_thread *t, uint32_t depth, uint32_t class_, uint32_t band);

/* With little memory for many partitions bands become one. Then the slots of the joined ones are 0, and lead to
 * partitions of the longer one from now on. */
void fdri_join_look(struct fdri_thread *t);
uint64_t fdri_join_room(const struct fdri_thread *t); /* bytes that it may come to hold */
/* It takes the place of others, which counted for it since they were joined. */
bool fdri_join_expected(const struct fdri_thread *t, const struct fdri_arena_part *p);
bool fdri_joined_away(const struct fdri_thread *t, const struct fdri_arena_part *p); /* nothing more is stored in it */
/* All bands are one. p's next bin must not begin to count before the newest call of length 0, which another band may
 * have. */
void fdri_join_zero(struct fdri_thread *t, struct fdri_arena_part *p);
/* The slot that the band shares with a longer one, which *band is then; or NULL: it has its own. */
uint32_t *fdri_joined_slot(struct fdri_thread *t, uint32_t depth, uint32_t class_, uint32_t *band);
void fdri_leave_slots(struct fdri_thread *t, const struct fdri_arena_part *p); /* no slot leads to p any more */

/* How many bins to take off a list at once for who asks; below 2: only one. */
uint32_t fdri_ready_run(const struct fdri_thread *t, const struct fdri_arena_part *asking);
uint32_t fdri_ready_take(struct fdri_thread *t, uint32_t size_log2); /* one of them, or a part of it; 0: none is left */
/* One more; of small ones larger ones become. */
void fdri_ready_keep(struct fdri_thread *t, uint32_t off, uint32_t size_log2);
void fdri_ready_release(struct fdri_thread *t); /* the thread ends: they go to all */
void fdri_ready_look(struct fdri_thread *t);    /* what goes next is looked at by one bin more */
void fdri_ready_forget(struct fdri_thread *t);  /* lists are about to go back to what they were */

/* While rows are walked (t->walk.block): a call of that row enters. */
void fdri_epoch_enters(struct fdri_thread *t, const struct fdri_arena_row *row);

uint32_t fdri_ready_most(const struct fdri_thread *t); /* bins that one step may leave ready */
/* Takes up to `most` whole bins that ended by `tick` off the list of p, or small ones if they may go. They are kept for
 * who asks; the run says which they were, until the next call of these. NULL: none. */
const struct fdri_bins_run *fdri_ready_give(struct fdri_thread *t, struct fdri_arena_part *p, uint64_t tick,
                                            uint32_t most, bool small, struct fdri_bins_given *given);
uint32_t fdri_ready_first(struct fdri_thread *t); /* a whole one, or 0 */
/* The next to go are likely to be such of p that ended by `tick`; NULL: nobody knows. */
void fdri_ready_ahead(struct fdri_thread *t, const struct fdri_arena_part *p, uint64_t tick);
/* The totals since the last cut become sums and rows of epoch `i`, behind which another one begins; the base moves up
 * to now. Where there are many rows that has only begun then: fdri_epoch_walk. */
void fdri_epoch_rows_cut(struct fdri_thread *t, struct fdri_arena_epochs *e, uint32_t i);
void fdri_epoch_walk(struct fdri_thread *t);     /* some more of these, if any are left */
void fdri_epoch_walk_all(struct fdri_thread *t); /* all of them: rows are about to change in other ways */

#endif
