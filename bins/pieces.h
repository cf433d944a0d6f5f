/* SPDX-License-Identifier: MIT */
/* Pieces: power-of-two parts of a bin, each held by one location. Owner's thread only. pressure/ handles pieces that
 * other threads return. */
#ifndef FDRI_BINS_PIECES_H
#define FDRI_BINS_PIECES_H

#include <stdint.h>

#include "bins/bins.h"
#include "format/arena/arena.h"

uint32_t fdri_bins_piece_take(struct fdri_bins_arena *a, struct fdri_arena_location *l, uint32_t size_log2);
/* The same from the location's own free pieces only; takes no whole bin. */
uint32_t fdri_bins_piece_own(struct fdri_bins_arena *a, struct fdri_arena_location *l, uint32_t size_log2);
/* Splits a held piece of 1 << have bytes. The caller keeps the lower 1 << want bytes; the rest becomes free pieces of
 * the location. */
void fdri_bins_piece_split(struct fdri_bins_arena *a, struct fdri_arena_location *l, uint32_t off, uint32_t have,
                           uint32_t want);
/* The largest free piece of the location that has at most 1 << size_log2 and at least 1 << least_log2 bytes (least_log2
 * >= 9); 0: none. */
uint32_t fdri_bins_piece_any(struct fdri_bins_arena *a, struct fdri_arena_location *l, uint32_t size_log2,
                             uint32_t least_log2, uint32_t *got_log2);
/* The other half of the piece of twice the size. */
static inline struct fdri_arena_bin *fdri_bins_piece_buddy(const struct fdri_bins_arena *a, uint32_t off,
                                                           uint32_t size_log2)
{
    uint32_t first = (uint32_t)a->bins_off;
    return fdri_bins_bin(a, first + ((off - first) ^ 1u << size_log2));
}
void fdri_bins_piece_give(struct fdri_bins_arena *a, struct fdri_arena_location *l, uint32_t off, uint32_t size_log2);
/* The pieces that other threads returned to a location, in units of 512 bytes. All; those large enough to change hands;
 * and of these, those in bins already strewn. */
struct fdri_bins_returned {
    uint32_t units, large_units, strewn_units;
};
/* The location ends: gives back its bins that consist of free pieces, and its free pieces of strewn bins. */
void fdri_bins_piece_leave(struct fdri_bins_arena *a, struct fdri_arena_location *l);

#endif
