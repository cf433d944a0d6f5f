/* SPDX-License-Identifier: MIT */
/* The table of strategies, one row for each, and the parts that they share. policies/ decides what goes; a strategy
 * gives it back bin by bin and writes the ledger. No step looks at single events. */
#ifndef FDRI_RECORDER_STRATEGY_REDUCE_H
#define FDRI_RECORDER_STRATEGY_REDUCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bins/bin_run.h"
#include "bins/partition.h"
#include "format/arena/arena.h"
#include "policies/policies.h"
#include "recorder/thread/arena_place.h"
#include "recorder/thread/thread_state.h"

struct fdri_bins_given;
struct fdri_bins_run;

#define FDRI_STRATEGY_NOTHING_GIVEN                                                                                    \
    {                                                                                                                  \
        0, 0, UINT64_MAX, 0                                                                                            \
    }

/* Writes a step into the ledger. Steps of one kind on one partition share a line. p NULL: the step concerns all
 * partitions. */
void fdri_strategy_reduction_note(struct fdri_thread *t, uint8_t step, uint8_t reason, const struct fdri_arena_part *p,
                                  const struct fdri_bins_given *g, bool closed);
/* Returns the duration of a step that began at tick `since` of the recording's clock, and remembers the longest one. */
uint64_t fdri_strategy_reduction_took(struct fdri_thread *t, uint64_t since);
static inline struct fdri_arena_part *fdri_strategy_part_at(struct fdri_thread *t, uint32_t off)
{
    return off ? fdri_thread_at(t, off) : NULL;
}
struct fdri_policies_part_view fdri_strategy_view_of(const struct fdri_arena_part *p, const uint64_t *class_bytes);

extern const struct fdri_strategy fdri_strategy_whole, fdri_strategy_last, fdri_strategy_first, fdri_strategy_telescope;
/* last.c: takes the oldest bin of all partitions. */
uint32_t fdri_strategy_pop_oldest(struct fdri_thread *t, const struct fdri_arena_part *asking, uint32_t size_log2,
                                  uint32_t *got);

/* telescope.c: counts the bins of all epochs anew, after partitions changed in another way. */
void fdri_strategy_telescope_recount(struct fdri_thread *t);

/* ---- epoch.c ---- */
/* As in the table of strategies. */
void fdri_strategy_epochs_begin_early(struct fdri_thread *t);
void fdri_strategy_epochs_mend(struct fdri_thread *t);
static inline struct fdri_arena_epochs *fdri_strategy_epochs(struct fdri_thread *t)
{
    return t->loc->epochs_off ? fdri_thread_at(t, t->loc->epochs_off) : NULL;
}
/* The location's part of the memory in units of 512 bytes. These are its bins without those of pinned partitions, and
 * at least a 16th of all bins. */
uint64_t fdri_strategy_epoch_total(const struct fdri_thread *t);
uint32_t fdri_strategy_epoch_tiers(const struct fdri_arena_epochs *e);
/* Counts `units` of 512 bytes opened in the current epoch; starts the epochs if need be. true: a step of the epochs is
 * due, because the epoch is full, or two epochs are to be merged, or a walk goes on. */
bool fdri_strategy_epoch_opened(struct fdri_thread *t, uint32_t units);
bool fdri_strategy_epoch_step(struct fdri_thread *t); /* does one such step; true: it began a new epoch */
/* Index of the epoch in which a bin ended whose newest record left at `tick`. */
uint32_t fdri_strategy_epoch_of(const struct fdri_arena_epochs *e, uint64_t tick);

/* The version is odd while epochs change. A snapshot or a crash handler that finds it odd does not use them. */
void fdri_strategy_epoch_begin_change(struct fdri_arena_epochs *e);
void fdri_strategy_epoch_end_change(struct fdri_arena_epochs *e);

/* ---- epoch_totals.c ---- */
/* As in the table of strategies: row_made and row_fits. False: the epochs' sums would lack the row. */
void fdri_strategy_epoch_row(struct fdri_thread *t, uint32_t row_off);
bool fdri_strategy_epoch_row_fits(struct fdri_thread *t, uint32_t key);
/* Takes a block of rows: a spare one, or new memory. Returns its offset, or 0. */
uint32_t fdri_strategy_epoch_block(struct fdri_thread *t, struct fdri_arena_epochs *e);
void fdri_strategy_epoch_block_give(struct fdri_thread *t, struct fdri_arena_epochs *e, uint32_t off);
uint32_t fdri_strategy_epoch_room(const struct fdri_arena_epoch_rows *b);
/* The epoch ends: its block, which is empty, gets the messages and collectives since the newest end of another. */
void fdri_strategy_epoch_traffic_cut(struct fdri_thread *t, struct fdri_arena_epoch *epoch);
/* Removes the rows of all epochs and sets the base to 0, the beginning of the totals. For a change that was broken
 * off. */
void fdri_strategy_epoch_rows_anew(struct fdri_thread *t, struct fdri_arena_epochs *e);
/* Offers a row to b, which keeps the most important ones. All calls for one block share `heap`, false at first. */
void fdri_strategy_epoch_offer(struct fdri_arena_epoch_rows *b, bool *heap, const struct fdri_arena_epoch_row *r);
/* Adds the sums and rows of epoch i + 1 to those of epoch i. */
void fdri_strategy_epoch_rows_merge(struct fdri_thread *t, struct fdri_arena_epochs *e, uint32_t i);
void fdri_strategy_epoch_rows_start(struct fdri_thread *t, struct fdri_arena_epochs *e);

#endif
