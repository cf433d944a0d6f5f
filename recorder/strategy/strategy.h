/* SPDX-License-Identifier: MIT */
/* Giving memory back when the buffer is full: four strategies, one ledger.
 *
 *   reduce.c        which strategy; lines of the ledger    worth_order.c   partitions in order of worth
 *   whole.c  last.c  first.c  telescope.c                  epoch.c, epoch_totals.c   epochs of `telescope`
 *
 * Neighbours: memory/ asks; policies/ decides; bins/ carries out. */
#ifndef FDRI_RECORDER_STRATEGY_STRATEGY_H
#define FDRI_RECORDER_STRATEGY_STRATEGY_H

#include <stdbool.h>
#include <stdint.h>

#include "format/arena/arena.h"

struct fdri_bins_given;
struct fdri_thread;

/* A bin or piece of at most 1 << size_log2 bytes for partition p by giving something else back; 0: nothing to give,
 * or p itself was closed. */
uint32_t fdri_strategy_reduce(struct fdri_thread *t, struct fdri_arena_part *p, uint32_t size_log2, uint32_t *got_log2);
void fdri_strategy_reserve_ledger(struct fdri_thread *t); /* lines for reductions, while there is room */
/* a line of the ledger */
void fdri_strategy_note_claim(struct fdri_thread *t, uint32_t giver, const struct fdri_bins_given *given);

/* Strategy `first`: room to tell which calls are open when storing stops, on so many levels; false: there is none. */
bool fdri_strategy_frozen_prepare(struct fdri_thread *t, uint32_t levels);
/* a call stands in that list for this depth */
bool fdri_strategy_was_frozen(const struct fdri_thread *t, uint32_t depth);
void fdri_strategy_stop(struct fdri_thread *t, uint64_t tick);      /* strategy `first`: store nothing from now on */
void fdri_strategy_maybe_cut(struct fdri_thread *t, uint64_t tick); /* strategy `last`: is it time for a new epoch? */

void fdri_strategy_telescope_part(struct fdri_thread *t, struct fdri_arena_part *p); /* a partition was made */
/* its newest bin takes no more records */
void fdri_strategy_telescope_sealed(struct fdri_thread *t, struct fdri_arena_part *p);
/* a bin was put behind it: time for a cut? */
void fdri_strategy_telescope_opened(struct fdri_thread *t, struct fdri_arena_part *p);
void fdri_strategy_telescope_epoch(struct fdri_thread *t);   /* the next step of its epochs */
void fdri_strategy_telescope_recount(struct fdri_thread *t); /* partitions went by another way */
void fdri_strategy_telescope_cut(struct fdri_thread *t);     /* lists may have gone back to where they were */
/* The oldest bin of p, which may have been its newest, is gone; its last record left at `end`. */
void fdri_strategy_telescope_popped(struct fdri_thread *t, struct fdri_arena_part *p, bool newest, uint64_t end,
                                    uint32_t size_log2);
/* Bins of p from `off` on, which is still in its list, go or become the newest: no epoch counts them any more. */
void fdri_strategy_telescope_uncount(struct fdri_thread *t, struct fdri_arena_part *p, uint32_t off);
void fdri_strategy_telescope_pinned(struct fdri_thread *t);   /* partitions were set aside */
void fdri_strategy_telescope_mend(struct fdri_thread *t);     /* an operation ended in the middle */
void fdri_strategy_epochs_begin_early(struct fdri_thread *t); /* there are many rows: they begin, if they have not */
void fdri_strategy_epoch_row(struct fdri_thread *t, uint32_t row_off); /* a row of totals is made */
/* makes room for one; false: the sums would lack it */
bool fdri_strategy_epoch_row_fits(struct fdri_thread *t, uint32_t key);
void fdri_strategy_epochs_mend(struct fdri_thread *t); /* an operation ended in the middle */

#endif
