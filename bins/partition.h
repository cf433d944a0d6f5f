/* SPDX-License-Identifier: MIT */
/* Partitions: lists of bins in order of time. Bins are appended at the new end and given back at the old end, by the
 * owner's thread. Other threads take the oldest bin through claims.h. */
#ifndef FDRI_BINS_PARTITION_H
#define FDRI_BINS_PARTITION_H

#include <stdbool.h>
#include <stdint.h>

#include "format/arena/arena.h"

struct fdri_bins_arena;

/* Appends the held bin at `off` to partition p and makes it the open bin. */
void fdri_bins_part_open(struct fdri_bins_arena *a, struct fdri_arena_location *l, struct fdri_arena_part *p,
                         uint32_t off, uint32_t size_log2, uint32_t base_ordinal, uint32_t record_bits_max);
/* Closes the open bin: it takes no more records. */
void fdri_bins_part_seal(struct fdri_bins_arena *a, struct fdri_arena_part *p);
/* Closes the newest bin after an operation was broken off. The newest bin is the last one linked, whatever open_off
 * says. The location is pinned. */
void fdri_bins_part_mend(struct fdri_bins_arena *a, struct fdri_arena_part *p);
/* The records that were given back. from_tick 0: from the beginning of the partition. */
struct fdri_bins_given {
    uint64_t events, bytes, from_tick, to_tick;
};
/* Takes the oldest sealed bin off the list and adds its contents to *given. Returns its offset and size, or 0 if there
 * is none, or after FDRI_BINS_TRIES tries. The caller then holds the bin; its generation is even. */
uint32_t fdri_bins_part_pop(struct fdri_bins_arena *a, struct fdri_arena_part *p, uint32_t *size_log2,
                            struct fdri_bins_given *given);
/* The same if that bin ends at or before `tick`; else 0. */
uint32_t fdri_bins_part_pop_older(struct fdri_bins_arena *a, struct fdri_arena_part *p, uint64_t tick,
                                  uint32_t *size_log2, struct fdri_bins_given *given);
/* Accounts for bin `off`, which has left the list and is held by the caller. Adds its contents, which ended at `end`,
 * to *given, and makes its generation even. Returns `off`. */
uint32_t fdri_bins_part_popped(struct fdri_bins_arena *a, struct fdri_arena_part *p, uint32_t off, uint64_t end,
                               uint32_t *size_log2, struct fdri_bins_given *given);
/* true: p has bins, and the oldest one ends at or before `tick`. The open bin ends at the partition's last tick. */
bool fdri_bins_part_older(const struct fdri_bins_arena *a, const struct fdri_arena_part *p, uint64_t tick);
bool fdri_bins_part_has_sealed(const struct fdri_arena_part *p);
/* Tick of the newest record in the oldest bin; UINT64_MAX if there is no bin. */
uint64_t fdri_bins_part_oldest_end(const struct fdri_bins_arena *a, const struct fdri_arena_part *p);

#endif
