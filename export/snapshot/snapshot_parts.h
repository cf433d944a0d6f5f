/* SPDX-License-Identifier: MIT */
/* Shared by the parts of a snapshot: arena_copy.c (order, meta blocks, bins, superblock) and snapshot_locations.c
 * (accounts, open calls, new blocks and tail of each location). One snapshot at a time. */
#ifndef FDRI_EXPORT_SNAPSHOT_SNAPSHOT_PARTS_H
#define FDRI_EXPORT_SNAPSHOT_SNAPSHOT_PARTS_H

#include <stdint.h>

#include "format/arena/arena.h"

enum { FDRI_SNAPSHOT_BATCH_BYTES = 256 * 1024 };
extern uint8_t fdri_snapshot_batch[FDRI_SNAPSHOT_BATCH_BYTES];

/* ---- arena_copy.c ---- */
/* fdri_snapshot_put for memory that other threads write, through the batch. 0 or -errno. */
int fdri_snapshot_put_live(int fd, const uint8_t *from, uint64_t count, uint64_t off);

/* ---- snapshot_locations.c: the list of locations from `first` on ---- */
/* Call before anything is copied. Locations with ids from `newcomers` on are left out of the snapshot. */
void fdri_snapshot_locations_note(const struct fdri_arena_location *first, uint32_t newcomers);
/* Copies each open stack again: after the meta blocks, before the bins. 0 or -errno, as the next. */
int fdri_snapshot_locations_stacks(int fd, const struct fdri_arena_location *first);
/* Call after the bins: copies new blocks, the partitions again, and the tail. */
int fdri_snapshot_locations_finish(int fd, const struct fdri_arena_location *first);
uint32_t fdri_snapshot_tail_bytes(void);
#endif
