/* SPDX-License-Identifier: MIT */
/* Giving memory back when the buffer is full: four strategies, one log of reductions.
 *
 *   reduce.c        which strategy; the log of reductions  worth_order.c   partitions in order of worth
 *   whole.c  last.c  first.c  telescope.c                  epoch.c, epoch_totals.c   epochs of `telescope`
 *
 * Neighbours: memory/ asks for bins; policies/ decides; bins/ takes the bins off their lists. All functions: owner's
 * thread only. */
#ifndef FDRI_RECORDER_STRATEGY_STRATEGY_H
#define FDRI_RECORDER_STRATEGY_STRATEGY_H

#include <stdbool.h>
#include <stdint.h>

#include "format/arena/arena.h"

struct fdri_bins_given;
struct fdri_thread;

/* Gives something back and returns a bin or piece for partition p, of at most 1 << size_log2 bytes. 0: nothing to give,
 * or p's own gate was closed. */
uint32_t fdri_strategy_reduce(struct fdri_thread *t, struct fdri_arena_part *p, uint32_t size_log2, uint32_t *got_log2);
void fdri_strategy_reserve_ledger(struct fdri_thread *t); /* takes memory for the log while there is room */
/* writes a claim into the log of t; giver: id of the location that gave */
void fdri_strategy_note_claim(struct fdri_thread *t, uint32_t giver, const struct fdri_bins_given *given);

/* Strategy `first`: makes room to remember so many open calls when storage stops. false: no memory. */
bool fdri_strategy_frozen_prepare(struct fdri_thread *t, uint32_t levels);
/* true: a timed call of this depth is in that list */
bool fdri_strategy_was_frozen(const struct fdri_thread *t, uint32_t depth);
void fdri_strategy_stop(struct fdri_thread *t, uint64_t tick); /* strategy `first`: storage stops */
/* strategy `last`: begins a new epoch if it is time */
void fdri_strategy_maybe_cut(struct fdri_thread *t, uint64_t tick);

void fdri_strategy_telescope_part(struct fdri_thread *t, struct fdri_arena_part *p); /* partition p was made */
/* the newest bin of p takes no more records */
void fdri_strategy_telescope_sealed(struct fdri_thread *t, struct fdri_arena_part *p);
/* a bin was appended to p; does the epochs' next step if it is due */
void fdri_strategy_telescope_opened(struct fdri_thread *t, struct fdri_arena_part *p);
void fdri_strategy_telescope_epoch(struct fdri_thread *t); /* does the next step of the epochs */
/* counts the bins of all epochs anew, after partitions changed in another way */
void fdri_strategy_telescope_recount(struct fdri_thread *t);
/* forgets all noted list heads: lists may have gone back to an older state */
void fdri_strategy_telescope_cut(struct fdri_thread *t);
/* The oldest bin of p was popped; its last record left at `end`. newest: it was the newest bin, too. */
void fdri_strategy_telescope_popped(struct fdri_thread *t, struct fdri_arena_part *p, bool newest, uint64_t end,
                                    uint32_t size_log2);
/* A rewind is about to remove the bins of p from `off` on, or to make one of them the newest. They leave the counts of
 * their epochs. */
void fdri_strategy_telescope_uncount(struct fdri_thread *t, struct fdri_arena_part *p, uint32_t off);
void fdri_strategy_telescope_pinned(struct fdri_thread *t); /* partitions were pinned (FDR_PIN) */
void fdri_strategy_telescope_mend(struct fdri_thread *t);   /* an operation was broken off */
/* there are many totals rows: begins the epochs if they have not begun */
void fdri_strategy_epochs_begin_early(struct fdri_thread *t);
void fdri_strategy_epoch_row(struct fdri_thread *t, uint32_t row_off); /* a totals row was made */
/* makes room for one; false: the epochs' sums would lack it */
bool fdri_strategy_epoch_row_fits(struct fdri_thread *t, uint32_t key);
void fdri_strategy_epochs_mend(struct fdri_thread *t); /* an operation was broken off */

#endif
