/* SPDX-License-Identifier: MIT */
/* Pieces that claimers took off the way to whole bins. They come back to the location over a stack. Any number of
 * threads push; the owner takes all and joins them with its own. A sleeping owner does not. Then claimers look whether
 * some of the pieces are a whole bin. They keep some if many wait, or if they have next to nothing themselves. */
#include <stdbool.h>
#include <stdint.h>

#include "base/atomic.h"
#include "base/bits.h"
#include "base/racy.h"
#include "bins/bins.h"
#include "bins/pieces.h"
#include "bins/pressure/bins_pressure.h"
#include "format/arena/arena.h"

/* Of 512 bytes each. */
static uint32_t units(uint32_t size_log2) { return 1u << (size_log2 - 9); }

/* Chained from `off` to `last`. */
static void return_chain(struct fdri_bins_arena *a, struct fdri_arena_location *l, uint32_t off, uint32_t last)
{
    uint32_t first = fdri_atomic_load_relaxed(&l->returned_pieces);
    do {
        fdri_atomic_store_relaxed(&fdri_bins_bin(a, last)->next, first);
    } while (
        !fdri_atomic_cas_acq_rel_u32(&l->returned_pieces, &first, off)); /* R:return - the pieces' `next` and size */
}

void fdri_piece_return(struct fdri_bins_arena *a, struct fdri_arena_location *l, uint32_t off)
{
    return_chain(a, l, off, off);
}

/* All of them, chained; they are the caller's. */
static uint32_t take_all(struct fdri_arena_location *l)
{
    /* A:return */
    return fdri_atomic_load_relaxed(&l->returned_pieces) ? fdri_atomic_swap_acq_rel(&l->returned_pieces, 0u) : 0;
}

void fdri_piece_collect(struct fdri_bins_arena *a, struct fdri_arena_location *l)
{
    uint32_t off = take_all(l);
    while (off) {
        uint32_t next = fdri_atomic_load_relaxed(&fdri_bins_bin(a, off)->next);
        fdri_bins_piece_give(a, l, off, fdri_bins_bin(a, off)->size_log2);
        off = next;
    }
}

/* Where the part of 1 << log2 bytes begins that a piece is in. */
static uint32_t part_of(const struct fdri_bins_arena *a, uint32_t off, uint32_t log2)
{
    uint32_t first = (uint32_t)a->bins_off;
    return first + ((off - first) & ~((1u << log2) - 1));
}

enum { AT_ONCE = 64 };
struct pieces {
    uint32_t off[AT_ONCE]; /* 0: gone */
    uint32_t count;
    uint32_t more; /* chained: those that are not looked at this time */
};

/* Some of those that were returned, which are the caller's then. */
static void take_some(struct fdri_bins_arena *a, struct fdri_arena_location *l, struct pieces *p)
{
    uint32_t off = take_all(l);
    for (p->count = 0; off && p->count < AT_ONCE; off = fdri_atomic_load_relaxed(&fdri_bins_bin(a, off)->next))
        p->off[p->count++] = off;
    p->more = off;
}

/* Those that were not looked at come to lie in front: who looks next sees others. */
static void return_rest(struct fdri_bins_arena *a, struct fdri_arena_location *l, const struct pieces *p)
{
    for (uint32_t i = 0; i < p->count; i++)
        if (p->off[i]) fdri_piece_return(a, l, p->off[i]);
    for (uint32_t off = p->more, next; off; off = next) {
        next = fdri_atomic_load_relaxed(&fdri_bins_bin(a, off)->next);
        fdri_piece_return(a, l, off);
    }
}

static uint32_t bytes_in(const struct fdri_bins_arena *a, const struct pieces *p, uint32_t part, uint32_t log2)
{
    uint32_t bytes = 0;
    for (uint32_t i = 0; i < p->count; i++)
        if (p->off[i] && part_of(a, p->off[i], log2) == part) bytes += 1u << fdri_bins_bin(a, p->off[i])->size_log2;
    return bytes;
}

/* How much was returned of each part of 1 << log2 bytes: a slot for some of them, others at another time. */
enum { SLOTS_LOG2 = 8 };
struct tally {
    struct {
        uint32_t part, units; /* 512 bytes each */
    } slot[1 << SLOTS_LOG2];
    uint32_t salt, log2;
};

/* Counts a piece. Is all of the part there now that it lies in? */
static bool completes(struct tally *t, uint32_t part, uint32_t size_log2)
{
    uint32_t k = (part ^ t->salt) * 0x9E3779B1u >> (32 - SLOTS_LOG2);
    if (!t->slot[k].part) t->slot[k].part = part;
    if (t->slot[k].part != part) return false;
    t->slot[k].units += units(size_log2);
    return t->slot[k].units >= units(t->log2);
}

enum which { NOT_STREWN, STREWN, ANY };

/* The first part of 1 << log2 bytes that is whole among the pieces of such bins chained from `off` on. 0: there is
 * none; *left has the pieces that are there. One look at each piece, as those of one part lie anywhere. */
static uint32_t whole_among(const struct fdri_bins_arena *a, uint32_t off, uint32_t log2, enum which which,
                            struct fdri_bins_returned *left)
{
    struct tally t = {.salt = off, .log2 = log2};
    for (; off; off = fdri_atomic_load_relaxed(&fdri_bins_bin(a, off)->next)) {
        uint32_t part = part_of(a, off, log2), size_log2 = fdri_bins_bin(a, off)->size_log2;
        bool strewn = fdri_strewn(a, off);
        uint32_t fits = fdri_may_strew(a, size_log2) ? units(size_log2) : 0;
        left->units += units(size_log2);
        left->large_units += fits;
        left->strewn_units += strewn ? fits : 0;
        if (which != ANY && strewn != (which == STREWN)) continue;
        if (completes(&t, part, size_log2)) return part;
    }
    return 0;
}

/* Takes those of that part out of the chain: no header inside the whole. */
static uint32_t without(const struct fdri_bins_arena *a, uint32_t off, uint32_t whole, uint32_t log2, uint32_t *last)
{
    uint32_t first = 0, next;
    for (*last = 0; off; off = next) {
        next = fdri_atomic_load_relaxed(&fdri_bins_bin(a, off)->next);
        if (whole && part_of(a, off, log2) == whole) {
            if (off != whole) fdri_racy_clear(fdri_bins_bin(a, off), FDRI_ARENA_BIN_HEADER);
            continue;
        }
        if (*last) fdri_atomic_store_relaxed(&fdri_bins_bin(a, *last)->next, off);
        else first = off;
        *last = off;
    }
    return first;
}

/* Of what was returned a part of 1 << log2 bytes that is whole, or 0. */
static uint32_t take_part(struct fdri_bins_arena *a, struct fdri_arena_location *l, uint32_t log2, enum which which,
                          struct fdri_bins_returned *left)
{
    uint32_t off = take_all(l), last;
    *left = (struct fdri_bins_returned){0, 0, 0};
    if (!off) return 0;
    uint32_t whole = whole_among(a, off, log2, which, left);
    off = without(a, off, whole, log2, &last);
    if (off) return_chain(a, l, off, last);
    return whole;
}

/* Bins that are strewn do not count for the location. */
uint32_t fdri_piece_whole(struct fdri_bins_arena *a, struct fdri_arena_location *l, struct fdri_bins_returned *left)
{
    uint32_t whole = take_part(a, l, a->bin_log2, NOT_STREWN, left);
    if (!whole) return 0;
    fdri_atomic_sub_relaxed(&l->split_bins, 1u);
    fdri_atomic_sub_relaxed(&a->split_bins, 1u);
    return whole;
}

/* One of the pieces looked at that is large enough. It is of a bin that is strewn already. Else, where that is allowed,
 * it is of the bin of which the least was returned; other bins may be whole once more is. */
static uint32_t larger(const struct fdri_bins_arena *a, struct pieces *p, uint32_t log2, bool strew, uint32_t *got_log2)
{
    uint32_t best = 0, best_bytes = UINT32_MAX;
    for (uint32_t i = 0; i < p->count; i++) {
        uint32_t off = p->off[i];
        if (!off || fdri_bins_bin(a, off)->size_log2 < log2) continue;
        bool strewn = fdri_strewn(a, off);
        if (!strewn && !strew) continue;
        uint32_t bytes = strewn ? 0 : bytes_in(a, p, part_of(a, off, a->bin_log2), a->bin_log2);
        if (bytes >= best_bytes) continue;
        best = i;
        best_bytes = bytes;
    }
    if (best_bytes == UINT32_MAX) return 0;
    uint32_t off = p->off[best];
    *got_log2 = fdri_bins_bin(a, off)->size_log2;
    p->off[best] = 0;
    return off;
}

static uint32_t take_larger(struct fdri_bins_arena *a, struct fdri_arena_location *l, uint32_t log2, bool strew,
                            uint32_t *got_log2)
{
    struct pieces p;
    take_some(a, l, &p);
    uint32_t off = larger(a, &p, log2, strew, got_log2);
    return_rest(a, l, &p);
    return off;
}

uint32_t fdri_piece_adopt(struct fdri_bins_arena *a, struct fdri_arena_location *l, uint32_t size_log2, bool strew,
                          uint32_t *got_log2)
{
    struct fdri_bins_returned left;
    size_log2 = fdri_strewn_least(a, size_log2);
    if (!fdri_may_strew(a, size_log2)) return 0;
    uint32_t off = take_larger(a, l, size_log2, strew, got_log2);
    if (!off && (off = take_part(a, l, size_log2, strew ? ANY : STREWN, &left))) {
        *got_log2 = (uint32_t)fdri_bits_max(size_log2, fdri_bins_bin(a, off)->size_log2);
        fdri_bins_bin(a, off)->size_log2 = (uint8_t)*got_log2;
    }
    if (!off) return 0;
    if (fdri_strew(a, off)) { /* until now all of that bin was l's */
        fdri_atomic_sub_relaxed(&l->split_bins, 1u);
        fdri_atomic_sub_relaxed(&l->bins_held, 1u);
        fdri_atomic_add_relaxed(&l->strewn_units, units(a->bin_log2));
    }
    fdri_atomic_sub_relaxed(&l->strewn_units, units(*got_log2));
    return off;
}
