/* SPDX-License-Identifier: MIT */
/* Pieces that claimers took off the way to whole bins. They come back to the location over a stack: any number pushes, the owner
 * takes all and joins them with those it has. An owner who sleeps does not: then claimers look whether some of them are a bin. */
#include "base/atomic.h"
#include "base/racy.h"
#include "bins/bins.h"

void fdri_piece_return(struct fdri_arena *a, struct fdr_location *l, uint32_t off)
{
    uint32_t first = fdr_load_relaxed(&l->returned);
    do {
        fdr_store_relaxed(&fdri_bin(a, off)->next, first);
    } while (!fdr_cas_acq_rel_u32(&l->returned, &first, off)); /* R:return - the piece's `next` and size */
}

/* All of them, chained; they are the caller's. */
static uint32_t take_all(struct fdr_location *l)
{
    return fdr_load_relaxed(&l->returned) ? fdr_swap_acq_rel(&l->returned, 0u) : 0; /* A:return */
}

void fdri_piece_collect(struct fdri_arena *a, struct fdr_location *l)
{
    uint32_t off = take_all(l);
    while (off) {
        uint32_t next = fdr_load_relaxed(&fdri_bin(a, off)->next);
        fdri_piece_give(a, l, off, fdri_bin(a, off)->size_log2);
        off = next;
    }
}

/* The first byte of the bin that a piece is of. */
static uint32_t whole_of(const struct fdri_arena *a, uint32_t off)
{
    uint32_t first = (uint32_t)a->bins_off;
    return first + ((off - first) & ~((1u << a->bin_log2) - 1));
}

enum { AT_ONCE = 64 };

/* Of these pieces, which are the caller's, those of the first bin of which all are there: it is whole, and they are 0. */
static uint32_t join(struct fdri_arena *a, uint32_t *piece, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        uint32_t whole = whole_of(a, piece[i]), bytes = 0;
        if (piece[i] != whole) continue; /* each bin once */
        for (uint32_t k = 0; k < count; k++)
            if (piece[k] && whole_of(a, piece[k]) == whole) bytes += 1u << fdri_bin(a, piece[k])->size_log2;
        if (bytes >> a->bin_log2 == 0) continue;
        for (uint32_t k = 0; k < count; k++) {
            if (!piece[k] || whole_of(a, piece[k]) != whole) continue;
            if (piece[k] != whole)
                fdr_clear_racy(fdri_bin(a, piece[k]), FDR_BIN_HEADER); /* no header inside the whole */
            piece[k] = 0;
        }
        return whole;
    }
    return 0;
}

uint32_t fdri_piece_whole(struct fdri_arena *a, struct fdr_location *l)
{
    uint32_t piece[AT_ONCE], count = 0, off = take_all(l), whole;
    for (; off && count < AT_ONCE; off = fdr_load_relaxed(&fdri_bin(a, off)->next)) piece[count++] = off;
    while (off) { /* more than can be looked at */
        uint32_t next = fdr_load_relaxed(&fdri_bin(a, off)->next);
        fdri_piece_return(a, l, off);
        off = next;
    }
    whole = join(a, piece, count);
    for (uint32_t i = 0; i < count; i++)
        if (piece[i]) fdri_piece_return(a, l, piece[i]);
    if (!whole) return 0;
    fdr_sub_relaxed(&l->split_bins, 1u);
    fdr_sub_relaxed(&a->pinned, 1u);
    return whole;
}
