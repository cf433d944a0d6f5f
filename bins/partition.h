/* SPDX-License-Identifier: MIT */
/* Partitions: lists of bins in the order of time, appended at the new end and given back at the old end. Owner's
 * thread only; another thread takes the oldest bin through claims.h. */
#ifndef FDRI_BINS_PARTITION_H
#define FDRI_BINS_PARTITION_H

#include <stdbool.h>
#include <stdint.h>

#include "format/arena/arena.h"

struct fdri_bins_arena;

/* ---- partitions (owner's thread only) ---- */
/* Puts the bin at `off` behind the newest of partition p and makes it the open one. */
void fdri_bins_part_open(struct fdri_bins_arena *a, struct fdri_arena_location *l, struct fdri_arena_part *p,
                         uint32_t off, uint32_t size_log2, uint32_t base_ordinal, uint32_t record_bits_max);
/* Closes the open bin: no record goes there any more. */
void fdri_bins_part_seal(struct fdri_bins_arena *a, struct fdri_arena_part *p);
/* The same after an operation that was given up in the middle: the newest bin is the last one linked, whatever open_off
 * says. The location is pinned. */
void fdri_bins_part_mend(struct fdri_bins_arena *a, struct fdri_arena_part *p);
/* What a step gave back. from_tick 0: from the beginning of the partition on. */
struct fdri_bins_given {
    uint64_t events, bytes, from_tick, to_tick;
};
/* Takes the oldest sealed bin off the list. Returns its off and size, or 0 when only the open bin is left.
 * The caller now holds the bin, its generation is even. */
uint32_t fdri_bins_part_pop(struct fdri_bins_arena *a, struct fdri_arena_part *p, uint32_t *size_log2,
                            struct fdri_bins_given *given);
/* The same, if that bin ends at or before `tick`. */
uint32_t fdri_bins_part_pop_older(struct fdri_bins_arena *a, struct fdri_arena_part *p, uint64_t tick,
                                  uint32_t *size_log2, struct fdri_bins_given *given);
/* Bin `off` is no longer listed and the caller's: what it held, which ended at `end`, is added to *given. */
uint32_t fdri_bins_part_popped(struct fdri_bins_arena *a, struct fdri_arena_part *p, uint32_t off, uint64_t end,
                               uint32_t *size_log2, struct fdri_bins_given *given);
/* Does the oldest bin end at or before `tick`, and is it sealed? */
bool fdri_bins_part_older(const struct fdri_bins_arena *a, const struct fdri_arena_part *p, uint64_t tick);
bool fdri_bins_part_has_sealed(const struct fdri_arena_part *p);
/* Newest leave in the oldest bin; UINT64_MAX when there is no bin. */
uint64_t fdri_bins_part_oldest_end(const struct fdri_bins_arena *a, const struct fdri_arena_part *p);

#endif
