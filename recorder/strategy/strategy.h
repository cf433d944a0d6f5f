/* SPDX-License-Identifier: MIT */
/* Giving memory back when the buffer is full: four strategies, one log of reductions.
 *
 *   strategies.c    calls the one that is on (recorder/strategy_table.h)
 *   whole.c  last.c  first.c  telescope.c  one row each    worth_order.c     partitions in order of worth
 *   epoch.c, epoch_totals.c                epochs          reduce.c          the log of reductions
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

void fdri_strategy_reserve_ledger(struct fdri_thread *t); /* takes memory for the log while there is room */
/* writes a claim into the log of t; giver: id of the location that gave */
void fdri_strategy_note_claim(struct fdri_thread *t, uint32_t giver, const struct fdri_bins_given *given);
/* Storage stopped while a timed call of this depth was open. */
bool fdri_strategy_was_frozen(const struct fdri_thread *t, uint32_t depth);

#endif
