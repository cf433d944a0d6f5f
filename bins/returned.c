/* SPDX-License-Identifier: MIT */
/* Pieces that claimers took off the way to whole bins. They come back to the location over a stack: any number pushes,
 * the owner takes all and joins them with those it has. An owner who sleeps does not: then claimers look whether some
 * of them are a bin, and who has next to nothing makes some its own. */
#include "base/atomic.h"
#include "base/racy.h"
#include "bins/bins.h"

/* Of 512 bytes each. */
static uint32_t units(uint32_t size_log2) { return 1u << (size_log2 - 9); }

/* Chained from `off` to `last`. */
static void return_chain(struct fdri_arena *a, struct fdr_location *l, uint32_t off, uint32_t last)
{
    uint32_t first = fdr_load_relaxed(&l->returned);
    do {
        fdr_store_relaxed(&fdri_bin(a, last)->next, first);
    } while (!fdr_cas_acq_rel_u32(&l->returned, &first, off)); /* R:return - the pieces' `next` and size */
}

void fdri_piece_return(struct fdri_arena *a, struct fdr_location *l, uint32_t off) { return_chain(a, l, off, off); }

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

/* Where the part of 1 << log2 bytes begins that a piece is in. */
static uint32_t part_of(const struct fdri_arena *a, uint32_t off, uint32_t log2)
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
static void take_some(struct fdri_arena *a, struct fdr_location *l, struct pieces *p)
{
    uint32_t off = take_all(l);
    for (p->count = 0; off && p->count < AT_ONCE; off = fdr_load_relaxed(&fdri_bin(a, off)->next))
        p->off[p->count++] = off;
    p->more = off;
}

/* Those that were not looked at come to lie in front: who looks next sees others. */
static void return_rest(struct fdri_arena *a, struct fdr_location *l, const struct pieces *p)
{
    for (uint32_t i = 0; i < p->count; i++)
        if (p->off[i]) fdri_piece_return(a, l, p->off[i]);
    for (uint32_t off = p->more, next; off; off = next) {
        next = fdr_load_relaxed(&fdri_bin(a, off)->next);
        fdri_piece_return(a, l, off);
    }
}

static uint32_t bytes_in(const struct fdri_arena *a, const struct pieces *p, uint32_t part, uint32_t log2)
{
    uint32_t bytes = 0;
    for (uint32_t i = 0; i < p->count; i++)
        if (p->off[i] && part_of(a, p->off[i], log2) == part) bytes += 1u << fdri_bin(a, p->off[i])->size_log2;
    return bytes;
}

/* The first part of 1 << log2 bytes, less than a bin, all of which is there: it is one piece then, and gone. 0: there
 * is none. */
static uint32_t join(struct fdri_arena *a, struct pieces *p, uint32_t log2)
{
    for (uint32_t i = 0; i < p->count; i++) {
        uint32_t part = p->off[i];
        if (!part || part_of(a, part, log2) != part || bytes_in(a, p, part, log2) >> log2 == 0) continue;
        for (uint32_t k = 0; k < p->count; k++) {
            if (!p->off[k] || part_of(a, p->off[k], log2) != part) continue;
            if (p->off[k] != part)
                fdr_clear_racy(fdri_bin(a, p->off[k]), FDR_BIN_HEADER); /* no header inside the whole */
            p->off[k] = 0;
        }
        return part;
    }
    return 0;
}

/* How much was returned of each bin: a slot for some of them, others at another time. */
enum { SLOTS_LOG2 = 8 };
struct tally {
    struct {
        uint32_t bin, units; /* 512 bytes each */
    } slot[1 << SLOTS_LOG2];
    uint32_t salt;
};

/* Counts a piece of that bin. Is all of it there now? */
static bool completes(const struct fdri_arena *a, struct tally *t, uint32_t bin, uint32_t size_log2)
{
    uint32_t k = (bin ^ t->salt) * 0x9E3779B1u >> (32 - SLOTS_LOG2);
    if (!t->slot[k].bin) t->slot[k].bin = bin;
    if (t->slot[k].bin != bin) return false;
    t->slot[k].units += units(size_log2);
    return t->slot[k].units == units(a->bin_log2) && !fdri_strewn(a, bin);
}

/* The first bin that is whole among the pieces chained from `off` on; 0: there is none. One look at each of them, as
 * those of one bin lie anywhere. Bins that are strewn do not count for the location. */
static uint32_t whole_among(const struct fdri_arena *a, uint32_t off, uint32_t salt)
{
    struct tally t = {.salt = salt};
    for (; off; off = fdr_load_relaxed(&fdri_bin(a, off)->next)) {
        uint32_t bin = part_of(a, off, a->bin_log2);
        if (completes(a, &t, bin, fdri_bin(a, off)->size_log2)) return bin;
    }
    return 0;
}

/* Takes those of that bin out of the chain: no header inside the whole. */
static uint32_t without(const struct fdri_arena *a, uint32_t off, uint32_t whole, uint32_t *last)
{
    uint32_t first = 0, next;
    for (*last = 0; off; off = next) {
        next = fdr_load_relaxed(&fdri_bin(a, off)->next);
        if (whole && part_of(a, off, a->bin_log2) == whole) {
            if (off != whole) fdr_clear_racy(fdri_bin(a, off), FDR_BIN_HEADER);
            continue;
        }
        if (*last) fdr_store_relaxed(&fdri_bin(a, *last)->next, off);
        else first = off;
        *last = off;
    }
    return first;
}

uint32_t fdri_piece_whole(struct fdri_arena *a, struct fdr_location *l)
{
    uint32_t off = take_all(l), last;
    if (!off) return 0;
    uint32_t whole = whole_among(a, off, off);
    off = without(a, off, whole, &last);
    if (off) return_chain(a, l, off, last);
    if (!whole) return 0;
    fdr_sub_relaxed(&l->split_bins, 1u);
    fdr_sub_relaxed(&a->pinned, 1u);
    return whole;
}

/* One of them that is large enough: of a bin that is strewn already, else of which the least was returned. The others
 * may be whole once more is. */
static uint32_t larger(const struct fdri_arena *a, struct pieces *p, uint32_t log2, uint32_t *got_log2)
{
    uint32_t best = 0, best_bytes = UINT32_MAX;
    for (uint32_t i = 0; i < p->count; i++) {
        uint32_t off = p->off[i];
        if (!off || fdri_bin(a, off)->size_log2 < log2) continue;
        uint32_t bytes = fdri_strewn(a, off) ? 0 : bytes_in(a, p, part_of(a, off, a->bin_log2), a->bin_log2);
        if (bytes >= best_bytes) continue;
        best = i;
        best_bytes = bytes;
    }
    if (best_bytes == UINT32_MAX) return 0;
    uint32_t off = p->off[best];
    *got_log2 = fdri_bin(a, off)->size_log2;
    p->off[best] = 0;
    return off;
}

uint32_t fdri_piece_adopt(struct fdri_arena *a, struct fdr_location *l, uint32_t size_log2, uint32_t *got_log2)
{
    struct pieces p;
    size_log2 = fdri_strewn_least(a, size_log2);
    if (!fdri_may_strew(a, size_log2)) return 0;
    take_some(a, l, &p);
    uint32_t off = larger(a, &p, *got_log2 = size_log2, got_log2);
    if (!off && (off = join(a, &p, size_log2))) fdri_bin(a, off)->size_log2 = (uint8_t)size_log2;
    return_rest(a, l, &p);
    if (!off) return 0;
    if (fdri_strew(a, off)) { /* until now all of that bin was l's */
        fdr_sub_relaxed(&l->split_bins, 1u);
        fdr_sub_relaxed(&l->bins_held, 1u);
        fdr_add_relaxed(&l->strewn_units, units(a->bin_log2));
    }
    fdr_sub_relaxed(&l->strewn_units, units(*got_log2));
    return off;
}
