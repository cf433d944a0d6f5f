/* SPDX-License-Identifier: MIT */
/* What the strategies share. Each gives memory back in its own way; what goes is decided in policies/, carried out bin
 * by bin, and written into the ledger. No step looks at single events.
 *
 *   reduce.c       which strategy; the ledger's lines       last.c      strategy `last`
 *   whole.c  strategy `whole`                         telescope.c   strategy `telescope`
 *   first.c        strategy `first`                         epoch.c       its epochs: cut, merged, counted
 *   worth_order.c        partitions by worth                      epoch_totals.c, epoch_walk.c  their totals */
#ifndef FDRI_RECORDER_STRATEGY_REDUCE_H
#define FDRI_RECORDER_STRATEGY_REDUCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bins/bin_run.h"
#include "bins/partition.h"
#include "format/arena/arena.h"
#include "policies/policies.h"
#include "recorder/thread/thread_state.h"

struct fdri_bins_given;
struct fdri_bins_run;

#define FDRI_STRATEGY_NOTHING_GIVEN                                                                                    \
    {                                                                                                                  \
        0, 0, UINT64_MAX, 0                                                                                            \
    }

/* One step of the ledger; steps of the same kind on the same partition share a line. p NULL: of everything. */
void fdri_strategy_reduction_note(struct fdri_thread *t, uint8_t step, uint8_t reason, const struct fdri_arena_part *p,
                                  const struct fdri_bins_given *g, bool closed);
/* How long a step took that began at tick `since` of the recording's clock; the longest is remembered. */
uint64_t fdri_strategy_reduction_took(struct fdri_thread *t, uint64_t since);
static inline struct fdri_arena_part *fdri_strategy_part_at(struct fdri_thread *t, uint32_t off)
{
    return off ? fdri_thread_at(t, off) : NULL;
}
struct fdri_policies_part_view fdri_strategy_view_of(const struct fdri_arena_part *p, const uint64_t *class_bytes);

uint32_t fdri_strategy_reduce_whole(struct fdri_thread *t, struct fdri_arena_part *asking, uint32_t size_log2,
                                    uint32_t *got);
uint32_t fdri_strategy_reduce_last(struct fdri_thread *t, struct fdri_arena_part *asking, uint32_t size_log2,
                                   uint32_t *got);
uint32_t fdri_strategy_reduce_telescope(struct fdri_thread *t, struct fdri_arena_part *asking, uint32_t size_log2,
                                        uint32_t *got);

/* ---- epoch.c ---- */
static inline struct fdri_arena_epochs *fdri_strategy_epochs(struct fdri_thread *t)
{
    return t->loc->epochs_off ? fdri_thread_at(t, t->loc->epochs_off) : NULL;
}
/* The location's part of the memory, in units of 512 bytes: what it holds, and something to begin with. */
uint64_t fdri_strategy_epoch_total(const struct fdri_thread *t);
uint32_t fdri_strategy_epoch_tiers(const struct fdri_arena_epochs *e);
/* Units more were opened in the current epoch: is that enough for it, or are there any to be merged? Then the step is
 * due. */
bool fdri_strategy_epoch_opened(struct fdri_thread *t, uint32_t units);
bool fdri_strategy_epoch_step(struct fdri_thread *t); /* one of them; true: a new epoch was begun */
/* The epoch in which a bin ended whose newest record left at `tick`. */
uint32_t fdri_strategy_epoch_of(const struct fdri_arena_epochs *e, uint64_t tick);

/* The version is odd while epochs move: who copies or inherits them then does not believe them. */
void fdri_strategy_epoch_begin_change(struct fdri_arena_epochs *e);
void fdri_strategy_epoch_end_change(struct fdri_arena_epochs *e);

/* ---- epoch_totals.c ---- */
uint32_t fdri_strategy_epoch_block(struct fdri_thread *t,
                                   struct fdri_arena_epochs *e); /* off of a block of rows, or 0 */
void fdri_strategy_epoch_block_give(struct fdri_thread *t, struct fdri_arena_epochs *e, uint32_t off);
uint32_t fdri_strategy_epoch_room(const struct fdri_arena_epoch_rows *b);
/* No epoch has any rows; the base stands where the totals begin. Where a change was left in the middle. */
void fdri_strategy_epoch_rows_anew(struct fdri_thread *t, struct fdri_arena_epochs *e);
/* A row for b, which keeps those that matter most; all are offered with one `heap`, false at first. */
void fdri_strategy_epoch_offer(struct fdri_arena_epoch_rows *b, bool *heap, const struct fdri_arena_epoch_row *r);
/* Sums and rows of i + 1 come to those of i. */
void fdri_strategy_epoch_rows_merge(struct fdri_thread *t, struct fdri_arena_epochs *e, uint32_t i);
void fdri_strategy_epoch_rows_start(struct fdri_thread *t, struct fdri_arena_epochs *e);

#endif
