/* SPDX-License-Identifier: MIT */
/* The hierarchical memory buffer: bins and meta blocks of one arena, and the partitions built of them.
 *
 *   arena = superblock + bins [0,lo) handed out upwards + untouched + meta [hi,end) handed out downwards
 *
 * Invariants (fdri_bins_check walks them):
 *   lo * bin_bytes + bins_off <= hi * 64,  both ends move only towards each other
 *   bins [0,lo) = bins on the free stack + bins held by locations
 *   a partition's list is contiguous in seq from head to newest; first_index(next) = first_index + records
 *   generation of a bin is odd exactly while somebody holds it
 *
 * Who may call what at the same time:
 *                 bin_take  bin_give  meta_take  part_*(same part)
 *   bin_take         -         -         -          -
 *   bin_give         -         -         -          -
 *   meta_take        -         -         -          -
 *   part_*           -         -         -          X      (X: only the owner's thread)
 *
 * Progress: bin_take, bin_give and meta_take are lock-free with at most FDRI_TRIES tries, then they fail. */
#ifndef FDR_BINS_BINS_H
#define FDR_BINS_BINS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bits.h"
#include "format/arena.h"

enum { FDRI_TRIES = 256 };

struct fdri_arena {
    uint8_t *base;
    struct fdr_superblock *super;
    uint64_t meta_reserve;  /* bytes at the end that bins never take */
    uint64_t meta_limit;    /* most bytes meta may take */
};

static inline void *fdri_at(const struct fdri_arena *a, uint32_t off) { return a->base + off; }
static inline struct fdr_bin *fdri_bin(const struct fdri_arena *a, uint32_t off)
{
    return (struct fdr_bin *)(void *)(a->base + off);
}

/* Lays out an empty arena in zeroed memory. Returns 0, or -ENOSPC when `bytes` does not hold two bins. */
int fdri_arena_format(struct fdri_arena *a, void *memory, uint64_t bytes, uint32_t bin_bytes);

/* A whole bin, or 0 when there is none. Its generation is odd on return. */
uint32_t fdri_bin_take(struct fdri_arena *a);
void fdri_bin_give(struct fdri_arena *a, uint32_t off);
uint32_t fdri_bins_free(const struct fdri_arena *a);  /* on the free stack and untouched; a hint */

/* A zeroed meta block of `bytes` (rounded up to 64) or 0. `urgent` may use the last of the share. */
uint32_t fdri_meta_take(struct fdri_arena *a, enum fdr_meta_kind kind, uint32_t bytes, uint32_t location);
uint64_t fdri_meta_used(const struct fdri_arena *a);

/* ---- pieces: power-of-two parts of a bin, private to one location ---- */
uint32_t fdri_piece_take(struct fdri_arena *a, struct fdr_location *l, uint32_t size_log2);
/* Keeps the lower `want` of a held piece; the rest becomes free pieces of the location. */
void fdri_piece_split(struct fdri_arena *a, struct fdr_location *l, uint32_t off, uint32_t have, uint32_t want);
/* Any free piece this location has, the largest not above size_log2 first; 0 when it has none. */
uint32_t fdri_piece_any(struct fdri_arena *a, struct fdr_location *l, uint32_t size_log2, uint32_t *got_log2);
void fdri_piece_give(struct fdri_arena *a, struct fdr_location *l, uint32_t off, uint32_t size_log2);

/* ---- partitions (owner's thread only) ---- */
/* Puts the bin at `off` behind the newest of partition p and makes it the open one. */
void fdri_part_open(struct fdri_arena *a, struct fdr_location *l, struct fdr_part *p, uint32_t off, uint32_t size_log2,
                    uint32_t base_ordinal, uint32_t record_bits_max);
/* Closes the open bin: no record goes there any more. */
void fdri_part_seal(struct fdri_arena *a, struct fdr_part *p);

/* What a step gave back. */
struct fdri_given { uint64_t events, bytes, from_tick, to_tick; };

/* Takes the oldest sealed bin off the list. Returns its off and size, or 0 when only the open bin is left.
 * The partition's floor rises to the newest leave that went with it. The caller now holds the bin. */
uint32_t fdri_part_pop(struct fdri_arena *a, struct fdr_location *l, struct fdr_part *p, uint32_t *size_log2,
                       struct fdri_given *given);
/* Does the oldest bin end at or before `tick`, and is it sealed? */
bool fdri_part_older(const struct fdri_arena *a, const struct fdr_part *p, uint64_t tick);
bool fdri_part_has_sealed(const struct fdr_part *p);

/* NULL, or what is wrong. For tests and debug builds; the arena must be quiet. */
const char *fdri_bins_check(const struct fdri_arena *a, char *text, size_t text_bytes);

#endif
