/* SPDX-License-Identifier: MIT */
/* Strewn bins: their pieces belong to several locations. A sleeping thread does not collect the pieces that claimers
 * took off its lists. Where many sleep, most of the buffer lies in such pieces. Other locations make them their own.
 *
 * A word for each bin says whether it is strewn, and which eighths of it were given back for good. A strewn bin counts
 * for no location any more. Its pieces stay with their holders, which use them again and again, and give them back when
 * they end. The holder of the last piece gives the whole bin back. Until then others may take the pieces that were
 * given back. No piece smaller than an eighth changes hands. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/atomic.h"
#include "base/bits.h"
#include "base/racy.h"
#include "bins/bins.h"
#include "bins/pressure/bins_pressure.h"
#include "format/arena/arena.h"

enum { EIGHTHS = 8, ALL = (1 << EIGHTHS) - 1, STREWN = 1 << EIGHTHS, LOOK = 1024 };

static uint32_t index_of(const struct fdri_bins_arena *a, uint32_t off)
{
    return (off - (uint32_t)a->bins_off) >> a->bin_log2;
}

static uint32_t eighth_log2(const struct fdri_bins_arena *a) { return a->bin_log2 - 3; }

void fdri_arena_strew(struct fdri_bins_arena *a)
{
    if (a->bin_log2 == 9) return; /* there are no pieces */
    uint32_t bytes = (uint32_t)(sizeof(struct fdri_arena_meta_head) + a->super->bins_total * sizeof *a->strewn);
    uint32_t off = fdri_bins_meta_take(a, FDRI_ARENA_META_STREWN, bytes, UINT32_MAX);
    a->strewn = off ? fdri_bins_at(a, off + (uint32_t)sizeof(struct fdri_arena_meta_head)) : NULL;
}

bool fdri_strewn(const struct fdri_bins_arena *a, uint32_t off)
{
    return a->strewn && fdri_atomic_load_relaxed(&a->strewn[index_of(a, off)]) & STREWN;
}

bool fdri_strew(struct fdri_bins_arena *a, uint32_t off)
{
    /* before it is: whoever is left in between leaves no less than there are */
    fdri_atomic_add_relaxed(&a->strewn_bins, 1u);
    if (!(fdri_atomic_or_acq_rel(&a->strewn[index_of(a, off)], (uint16_t)STREWN) & STREWN)) return true; /* L:strewn */
    fdri_atomic_sub_relaxed(&a->strewn_bins, 1u);
    return false;
}

uint32_t fdri_strewn_least(const struct fdri_bins_arena *a, uint32_t size_log2)
{
    return (uint32_t)fdri_bits_max(size_log2, eighth_log2(a));
}

bool fdri_may_strew(const struct fdri_bins_arena *a, uint32_t size_log2)
{
    return a->strewn && size_log2 >= eighth_log2(a) && size_log2 < a->bin_log2;
}

void fdri_strewn_whole(struct fdri_bins_arena *a, uint32_t off)
{
    /* R:push, when the bin is given, publishes it */
    fdri_atomic_store_relaxed(&a->strewn[index_of(a, off)], (uint16_t)0);
    fdri_atomic_sub_relaxed(&a->strewn_bins, 1u);
    fdri_atomic_sub_relaxed(&a->split_bins, 1u);
    fdri_bins_give(a, off);
}

/* No header inside a part that begins at `off`. */
static void clear_headers(const struct fdri_bins_arena *a, uint32_t off, uint32_t size_log2)
{
    uint32_t step = (uint32_t)fdri_bits_max(1u << eighth_log2(a), FDRI_ARENA_BIN_MIN_BYTES);
    for (uint32_t at = step; at < 1u << size_log2; at += step)
        fdri_racy_clear(fdri_bins_bin(a, off + at), FDRI_ARENA_BIN_HEADER);
}

static uint32_t eighths(const struct fdri_bins_arena *a, uint32_t size_log2)
{
    return 1u << (size_log2 - eighth_log2(a));
}

/* `count` eighths, a power of two, from the first on. */
static uint16_t bits(uint32_t first, uint32_t count) { return (uint16_t)(((1u << count) - 1) << first); }

void fdri_strewn_give(struct fdri_bins_arena *a, uint32_t off, uint32_t size_log2)
{
    uint32_t index = index_of(a, off), whole = (uint32_t)a->bins_off + (index << a->bin_log2);
    uint32_t count = eighths(a, size_log2);
    uint16_t mine = bits((off - whole) >> eighth_log2(a), count);
    fdri_atomic_add_relaxed(&a->given_eighths, count);
    /* L:strewn - what the others wrote into theirs is over */
    uint16_t all = (uint16_t)(fdri_atomic_or_acq_rel(&a->strewn[index], mine) | mine);
    if ((all & ALL) != ALL) return;
    fdri_atomic_sub_relaxed(&a->given_eighths, (uint32_t)EIGHTHS);
    clear_headers(a, whole, a->bin_log2);
    fdri_strewn_whole(a, whole);
}

/* The largest of the parts of `least` eighths or more that were given back, as a whole: so it begins where one of them
 * does. 0: none, or all of the bin is, which is its giver's then. */
static uint16_t given_part(uint16_t word, uint32_t least, uint32_t *first, uint32_t *count)
{
    if ((word & ALL) == ALL) return 0;
    for (*count = EIGHTHS / 2; *count >= least; *count /= 2)
        for (*first = 0; *first < EIGHTHS; *first += *count)
            if ((word & bits(*first, *count)) == bits(*first, *count)) return bits(*first, *count);
    return 0;
}

uint32_t fdri_strewn_take(struct fdri_bins_arena *a, uint32_t size_log2, uint32_t *got_log2)
{
    uint32_t total = a->super->bins_total, at = fdri_atomic_load_relaxed(&a->strewn_cursor),
             least = eighths(a, size_log2), first, count;
    for (uint32_t i = 0; i < LOOK && fdri_atomic_load_relaxed(&a->given_eighths); i++, at++) {
        if (at >= total) at = 0;
        uint16_t word = fdri_atomic_load_relaxed(&a->strewn[at]), part = given_part(word, least, &first, &count);
        /* L:strewn - who had it is done with it */
        if (!part || !fdri_atomic_cas_acq_rel_u16(&a->strewn[at], &word, (uint16_t)(word & ~part))) continue;
        uint32_t off = (uint32_t)a->bins_off + (at << a->bin_log2) + (first << eighth_log2(a));
        *got_log2 = eighth_log2(a) + fdri_bits_log2_floor(count);
        fdri_atomic_sub_relaxed(&a->given_eighths, count);
        fdri_atomic_store_relaxed(&a->strewn_cursor, at); /* it may have more */
        clear_headers(a, off, *got_log2);
        return off;
    }
    fdri_atomic_store_relaxed(&a->strewn_cursor, at);
    return 0;
}

uint64_t fdri_strewn_left(const struct fdri_bins_arena *a)
{
    uint64_t left = 0;
    for (uint32_t i = 0; a->strewn && i < a->super->bins_total; i++) {
        uint32_t word = fdri_atomic_load_relaxed(&a->strewn[i]);
        if (word) left += (uint64_t)(EIGHTHS - __builtin_popcount(word & ALL)) << eighth_log2(a);
    }
    return left;
}

uint32_t fdri_strewn_count(const struct fdri_bins_arena *a)
{
    uint32_t count = 0;
    for (uint32_t i = 0; a->strewn && i < a->super->bins_total; i++)
        count += fdri_atomic_load_relaxed(&a->strewn[i]) != 0;
    return count;
}
