/* SPDX-License-Identifier: MIT */
/* Pieces: power-of-two parts of a bin, private to one location. Owner's thread only. Below: bins.h; pieces that
 * other threads return are in pressure/. */
#ifndef FDRI_BINS_PIECES_H
#define FDRI_BINS_PIECES_H

#include <stdint.h>

#include "bins/bins.h"
#include "format/arena/arena.h"

/* ---- pieces: power-of-two parts of a bin, private to one location ---- */
uint32_t fdri_bins_piece_take(struct fdri_bins_arena *a, struct fdri_arena_location *l, uint32_t size_log2);
/* The same from the free pieces the location has: no whole bin is taken for it. */
uint32_t fdri_bins_piece_own(struct fdri_bins_arena *a, struct fdri_arena_location *l, uint32_t size_log2);
/* Keeps the lower `want` of a held piece; the rest becomes free pieces of the location. */
void fdri_bins_piece_split(struct fdri_bins_arena *a, struct fdri_arena_location *l, uint32_t off, uint32_t have,
                           uint32_t want);
/* Any free piece this location has, the largest not above size_log2 first, none below least_log2 (>= 9); 0 when it has
 * none. */
uint32_t fdri_bins_piece_any(struct fdri_bins_arena *a, struct fdri_arena_location *l, uint32_t size_log2,
                             uint32_t least_log2, uint32_t *got_log2);
/* The other half of the piece of twice its size. */
static inline struct fdri_arena_bin *fdri_bins_piece_buddy(const struct fdri_bins_arena *a, uint32_t off,
                                                           uint32_t size_log2)
{
    uint32_t first = (uint32_t)a->bins_off;
    return fdri_bins_bin(a, first + ((off - first) ^ 1u << size_log2));
}
void fdri_bins_piece_give(struct fdri_bins_arena *a, struct fdri_arena_location *l, uint32_t off, uint32_t size_log2);
/* How much waits in pieces that were returned, 512 bytes each; in those large enough to change hands; of these, in bins
 * that are strewn already. */
struct fdri_bins_returned {
    uint32_t units, fit, strewn;
};
/* The location ends: of what is left of its pieces, those of strewn bins are given back. */
void fdri_bins_piece_leave(struct fdri_bins_arena *a, struct fdri_arena_location *l);

#endif
