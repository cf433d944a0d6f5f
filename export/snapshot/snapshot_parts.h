/* SPDX-License-Identifier: MIT */
/* What the parts of a snapshot share: arena_copy.c (the order of it, meta, bins, superblock) and snapshot_locations.c
 * (what each location had done, its open calls, what came to it since, the tail). One snapshot at a time. */
#ifndef FDRI_EXPORT_SNAPSHOT_SNAPSHOT_PARTS_H
#define FDRI_EXPORT_SNAPSHOT_SNAPSHOT_PARTS_H

#include <stdint.h>

#include "format/arena/arena.h"

enum { FDRI_SNAPSHOT_BATCH_BYTES = 256 * 1024 };
extern uint8_t fdri_snapshot_batch[FDRI_SNAPSHOT_BATCH_BYTES];

/* ---- arena_copy.c ---- */
/* fdri_snapshot_put from memory that is being written, through the batch. */
int fdri_snapshot_put_live(int fd, const uint8_t *from, uint64_t count, uint64_t off);

/* ---- snapshot_locations.c: the chain from `first` on ---- */
/* Before anything is copied. Those with ids from `newcomers` on are not part of it. */
void fdri_snapshot_locations_note(const struct fdri_arena_location *first, uint32_t newcomers);
/* Each open stack once more: behind meta, before the bins. 0 or -errno, as the next. */
int fdri_snapshot_locations_stacks(int fd, const struct fdri_arena_location *first);
/* Behind the bins: what came since, partitions once more, the tail. */
int fdri_snapshot_locations_finish(int fd, const struct fdri_arena_location *first);
uint32_t fdri_snapshot_tail_bytes(void);
#endif
