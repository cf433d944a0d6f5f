/* SPDX-License-Identifier: MIT */
/* Slabs: memory of locations' meta blocks, taken from the meta end of the arena. Slots: locations that were given back;
 * they are used again as locations only. Lock-free. recorder/memory/ calls this. */
#ifndef FDRI_BINS_SLABS_H
#define FDRI_BINS_SLABS_H

#include <stdbool.h>
#include <stdint.h>

#include "format/arena/arena.h"

struct fdri_bins_arena;

enum { FDRI_BINS_SLAB_EXACT = 8192 };
struct fdri_bins_slabs { /* stacks of free memory: atomic words, {tag:32, off:32} */
    uint64_t exact[FDRI_BINS_SLAB_EXACT / FDRI_ARENA_META_ALIGN + 1]; /* by bytes / 64 */
    uint64_t power[32];                                               /* larger slabs, by log2 of their bytes */
    uint64_t slots;                                                   /* locations */
    uint64_t free_bytes;
    /* bytes at the meta end that slabs leave to new locations, to their first blocks, and to definitions */
    uint64_t reserve;
    /* atomic: bytes of meta_reserve that each enum fdri_bins_spare_user has used */
    uint64_t reserve_used[3];
};
enum fdri_bins_spare_user { FDRI_BINS_SPARE_NOTES, FDRI_BINS_SPARE_STREAMS, FDRI_BINS_SPARE_TALLIES };
enum {
    /* a spare user may take a 16th of meta_reserve; locations may take 13 of the 16 */
    FDRI_BINS_SPARED_SHARE = 16
};
/* true: `bytes` may be taken at the meta end for `user`. They come from beside the reserve, else from that user's
 * share of meta_reserve; then they count as taken. */
bool fdri_bins_meta_spares(const struct fdri_bins_arena *a, struct fdri_bins_slabs *s, enum fdri_bins_spare_user user,
                           uint64_t bytes);
uint32_t fdri_bins_slab_bytes(uint32_t bytes); /* bytes of the slab that has room for `bytes` */
/* A slab, zero but for its head; 0: none. `bytes` is a result of fdri_bins_slab_bytes. New memory comes from the meta
 * end, if `leave` bytes remain there for new locations. Lock-free, FDRI_BINS_TRIES tries. */
uint32_t fdri_bins_slab_take(struct fdri_bins_arena *a, struct fdri_bins_slabs *s, uint32_t bytes, uint64_t leave);
/* A free slab of more than `bytes`, up to twice as many; 0: none. Its head has its size. */
uint32_t fdri_bins_slab_take_larger(struct fdri_bins_arena *a, struct fdri_bins_slabs *s, uint32_t bytes);
void fdri_bins_slab_give(struct fdri_bins_arena *a, struct fdri_bins_slabs *s, uint32_t off);
/* Takes a location that was given back; 0: none. Of its fields only ended_next changes. */
uint32_t fdri_bins_location_slot_take(struct fdri_bins_arena *a, struct fdri_bins_slabs *s);
void fdri_bins_location_slot_give(struct fdri_bins_arena *a, struct fdri_bins_slabs *s, uint32_t off);

#endif
