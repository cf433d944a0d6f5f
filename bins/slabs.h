/* SPDX-License-Identifier: MIT */
/* Slabs: memory of a location's meta blocks, from the meta end of the arena. Slots: locations that were given back,
 * which are used again as locations only. Lock-free. Above: recorder/memory/; below: bins.h. */
#ifndef FDRI_BINS_SLABS_H
#define FDRI_BINS_SLABS_H

#include <stdbool.h>
#include <stdint.h>

#include "format/arena/arena.h"

struct fdri_bins_arena;

/* ---- slabs: memory of a location's meta blocks; and locations, which are used again as locations only ---- */
enum { FDRI_BINS_SLAB_EXACT = 8192 };
struct fdri_bins_slabs {                                              /* atomic words, {tag:32, off:32} */
    uint64_t exact[FDRI_BINS_SLAB_EXACT / FDRI_ARENA_META_ALIGN + 1]; /* by bytes / 64 */
    uint64_t power[32];                                               /* larger ones, by log2 */
    uint64_t slots;                                                   /* locations */
    uint64_t free_bytes;
    uint64_t reserve; /* bytes at the meta end that slabs leave to locations, what those begin with, and definitions */
    /* atomic: bytes that others got when nothing was left beside it, by enum fdri_bins_spare_user */
    uint64_t spared[2];
};
enum fdri_bins_spare_user { FDRI_BINS_SPARE_NOTES, FDRI_BINS_SPARE_STREAMS };
enum {
    /* of what bins never take: the share of each of them in it. Locations leave three */
    FDRI_BINS_SPARED_SHARE = 16
};
/* Are there `bytes` at the meta end for one of those: beside the reserve, or of that share, when there is nothing
 * beside it? These count as taken. */
bool fdri_bins_meta_spares(const struct fdri_bins_arena *a, struct fdri_bins_slabs *s, enum fdri_bins_spare_user whose,
                           uint64_t bytes);
uint32_t fdri_bins_slab_bytes(uint32_t bytes); /* what a slab for that many bytes takes */
/* A slab of `bytes` from fdri_bins_slab_bytes, zero but for its head; 0: none. From the meta end only, where `leave`
 * bytes must be left: what is reserved there is for a location that begins. Lock-free, FDRI_BINS_TRIES tries. */
uint32_t fdri_bins_slab_take(struct fdri_bins_arena *a, struct fdri_bins_slabs *s, uint32_t bytes, uint64_t leave);
/* A free one of up to twice as many bytes; its head says how many. */
uint32_t fdri_bins_slab_take_larger(struct fdri_bins_arena *a, struct fdri_bins_slabs *s, uint32_t bytes);
void fdri_bins_slab_give(struct fdri_bins_arena *a, struct fdri_bins_slabs *s, uint32_t off);
/* A location that was given back; 0: none. Nothing in it changes but ended_next. */
uint32_t fdri_bins_location_slot_take(struct fdri_bins_arena *a, struct fdri_bins_slabs *s);
void fdri_bins_location_slot_give(struct fdri_bins_arena *a, struct fdri_bins_slabs *s, uint32_t off);

#endif
