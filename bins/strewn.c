/* SPDX-License-Identifier: MIT */
/* Strewn bins: those whose pieces belong to several locations. A thread that sleeps does not collect the pieces that claimers took off
 * its lists; where many sleep, most of the buffer lies in such pieces. Who comes makes them its own.
 *
 * Per bin a word: is it strewn, and which eighths of it were given back for good. A strewn bin counts for no location any
 * more; its pieces stay with those who have them, who use them again and again, and are given back when these end. Who gives back the
 * last one gives the whole. Nothing smaller than an eighth changes hands. */
#include "base/racy.h"
#include "bins/bins.h"

enum { EIGHTHS = 8, ALL = (1 << EIGHTHS) - 1, STREWN = 1 << EIGHTHS };

static uint32_t index_of(const struct fdri_arena *a, uint32_t off)
{
    return (off - (uint32_t)a->bins_off) >> a->bin_log2;
}

static uint32_t eighth_log2(const struct fdri_arena *a) { return a->bin_log2 - 3; }

void fdri_arena_strew(struct fdri_arena *a)
{
    if (a->bin_log2 == 9) return; /* there are no pieces */
    uint32_t bytes = (uint32_t)(sizeof(struct fdr_meta_head) + a->super->bins_total * sizeof *a->strewn);
    uint32_t off = fdri_meta_take(a, FDR_META_STREWN, bytes, UINT32_MAX);
    a->strewn = off ? fdri_at(a, off + (uint32_t)sizeof(struct fdr_meta_head)) : NULL;
}

bool fdri_strewn(const struct fdri_arena *a, uint32_t off)
{
    return a->strewn && fdr_load_relaxed(&a->strewn[index_of(a, off)]) & STREWN;
}

bool fdri_strew(const struct fdri_arena *a, uint32_t off)
{
    return !(fdr_or_acq_rel(&a->strewn[index_of(a, off)], (uint16_t)STREWN) & STREWN); /* L:strewn */
}

uint32_t fdri_strewn_least(const struct fdri_arena *a, uint32_t size_log2)
{
    return (uint32_t)fdr_max(size_log2, eighth_log2(a));
}

bool fdri_may_strew(const struct fdri_arena *a, uint32_t size_log2)
{
    return a->strewn && size_log2 >= eighth_log2(a) && size_log2 < a->bin_log2;
}

void fdri_strewn_whole(struct fdri_arena *a, uint32_t off)
{
    fdr_store_relaxed(&a->strewn[index_of(a, off)], (uint16_t)0); /* R:push, when the bin is given, publishes it */
    fdr_sub_relaxed(&a->pinned, 1u);
    fdri_bin_give(a, off);
}

/* No header inside the whole. */
static void clear_headers(const struct fdri_arena *a, uint32_t whole)
{
    uint32_t step = fdr_max(1u << eighth_log2(a), FDR_BIN_MIN_BYTES);
    for (uint32_t at = step; at < 1u << a->bin_log2; at += step)
        fdr_clear_racy(fdri_bin(a, whole + at), FDR_BIN_HEADER);
}

void fdri_strewn_give(struct fdri_arena *a, uint32_t off, uint32_t size_log2)
{
    uint32_t index = index_of(a, off), whole = (uint32_t)a->bins_off + (index << a->bin_log2);
    uint32_t first = (off - whole) >> eighth_log2(a), count = 1u << (size_log2 - eighth_log2(a));
    uint16_t mine = (uint16_t)(((1u << count) - 1) << first);
    /* L:strewn - what the others wrote into theirs is over */
    uint16_t all = (uint16_t)(fdr_or_acq_rel(&a->strewn[index], mine) | mine);
    if ((all & ALL) != ALL) return;
    clear_headers(a, whole);
    fdri_strewn_whole(a, whole);
}

uint64_t fdri_strewn_left(const struct fdri_arena *a)
{
    uint64_t left = 0;
    for (uint32_t i = 0; a->strewn && i < a->super->bins_total; i++) {
        uint32_t word = fdr_load_relaxed(&a->strewn[i]);
        if (word) left += (uint64_t)(EIGHTHS - __builtin_popcount(word & ALL)) << eighth_log2(a);
    }
    return left;
}

uint32_t fdri_strewn_count(const struct fdri_arena *a)
{
    uint32_t count = 0;
    for (uint32_t i = 0; a->strewn && i < a->super->bins_total; i++) count += fdr_load_relaxed(&a->strewn[i]) != 0;
    return count;
}
