/* SPDX-License-Identifier: MIT */
/* Pieces of bins, and partitions as lists of bins: append at the new end, give back at the old end. */
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/atomic.h"
#include "base/bits.h"
#include "base/racy.h"
#include "bins/bins.h"
#include "bins/claims.h"
#include "bins/partition.h"
#include "bins/pieces.h"
#include "bins/pressure/bins_pressure.h"
#include "format/arena/arena.h"
#include "format/codec/encode.h"
#include "format/codec/running_check.h"

#define LIST(seq, off) ((uint64_t)(seq) << 32 | (uint32_t)(off))

/* The free pieces of one size form a list of the location. It is linked both ways, because any piece may be joined with
 * its other half. While a piece is free, its commit word is {location:32, previous piece:32}. A broken-off operation
 * may leave a word that contradicts the list. Such a piece is not joined; it leaves the list when it gets to its
 * front. */
static uint32_t list_of(const struct fdri_bins_arena *a, const struct fdri_arena_location *l)
{
    return (uint32_t)((const uint8_t *)l - a->base);
}
static void set_before(struct fdri_bins_arena *a, const struct fdri_arena_location *l, uint32_t off, uint32_t before)
{
    if (off) fdri_atomic_store_relaxed(&fdri_bins_bin(a, off)->commit, LIST(list_of(a, l), before));
}

static void piece_push(struct fdri_bins_arena *a, struct fdri_arena_location *l, uint32_t off, uint32_t size_log2)
{
    struct fdri_arena_bin *b = fdri_bins_bin(a, off);
    uint32_t *first = &l->piece_free[size_log2 - 9], next = *first;
    fdri_atomic_store_release(&b->generation, (fdri_atomic_load_relaxed(&b->generation) | 1u) + 1); /* G:give */
    /* G:take - these bytes may have been the middle of a bin; a copier must see the even generation before the magic */
    fdri_atomic_fence_release();
    b->magic = FDRI_ARENA_BIN_MAGIC;
    b->size_log2 = (uint8_t)size_log2;
    fdri_atomic_store_relaxed(&b->next, next);
    set_before(a, l, off, 0);
    l->piece_units += 1u << (size_log2 - 9); /* never too low, wherever the operation is broken off */
    fdri_atomic_signal_fence();
    *first = off;
    fdri_atomic_signal_fence();
    set_before(a, l, next, off);
}

/* Removes `off` from its list. `link` is the word that leads to it, in the piece `before` or, if that is 0, in the
 * location. */
static void piece_remove(struct fdri_bins_arena *a, struct fdri_arena_location *l, uint32_t *link, uint32_t before,
                         uint32_t off)
{
    struct fdri_arena_bin *b = fdri_bins_bin(a, off);
    uint32_t next = fdri_atomic_load_relaxed(&b->next);
    fdri_atomic_store_relaxed(&b->commit, 0ull);
    fdri_atomic_signal_fence();
    fdri_atomic_store_relaxed(link, next);
    fdri_atomic_signal_fence();
    set_before(a, l, next, before);
    fdri_atomic_signal_fence();
}

static uint32_t piece_pop(struct fdri_bins_arena *a, struct fdri_arena_location *l, uint32_t size_log2)
{
    uint32_t *first = &l->piece_free[size_log2 - 9], off = *first;
    if (!off) return 0;
    piece_remove(a, l, first, 0, off);
    l->piece_units -= 1u << (size_log2 - 9);
    return off;
}

/* Racy: in a strewn bin the piece may belong to another location, which writes to it. */
FDRI_RACY static uint64_t word_of(const struct fdri_arena_bin *b) { return fdri_atomic_load_relaxed(&b->commit); }

/* Takes `off` off the free list of its size. false: it is not on that list, or its links do not prove it. */
static bool piece_unlink(struct fdri_bins_arena *a, struct fdri_arena_location *l, uint32_t off, uint32_t size_log2)
{
    uint64_t word = word_of(fdri_bins_bin(a, off));
    uint32_t *link = &l->piece_free[size_log2 - 9], before = (uint32_t)word;
    if (word >> 32 != list_of(a, l)) return false;
    if (before) {
        if (!fdri_bins_may_be_bin(a, before)) return false;
        if (word_of(fdri_bins_bin(a, before)) >> 32 != list_of(a, l)) return false;
        link = &fdri_bins_bin(a, before)->next;
    }
    if (fdri_atomic_load_relaxed(link) != off) return false;
    piece_remove(a, l, link, before, off);
    l->piece_units -= 1u << (size_log2 - 9);
    return true;
}

uint32_t fdri_bins_piece_own(struct fdri_bins_arena *a, struct fdri_arena_location *l, uint32_t size_log2)
{
    uint32_t have = size_log2, off = 0, full = a->bin_log2;
    while (have < full && !(off = piece_pop(a, l, have))) have++;
    if (!off) return 0;
    fdri_bins_piece_split(a, l, off, have, size_log2);
    return off;
}

uint32_t fdri_bins_piece_take(struct fdri_bins_arena *a, struct fdri_arena_location *l, uint32_t size_log2)
{
    fdri_piece_collect(a, l);
    uint32_t off = fdri_bins_piece_own(a, l, size_log2);
    if (off) return off;
    off = fdri_bins_take(a, fdri_bins_node_here(a, l));
    if (!off) return 0;
    fdri_atomic_add_relaxed(&l->bins_held, 1u);
    fdri_bins_piece_split(a, l, off, a->bin_log2, size_log2);
    return off;
}

void fdri_bins_piece_split(struct fdri_bins_arena *a, struct fdri_arena_location *l, uint32_t off, uint32_t have,
                           uint32_t want)
{
    /* the size comes before the pieces behind it: a reader that scans the bins steps by it */
    fdri_bins_bin(a, off)->size_log2 = (uint8_t)want;
    fdri_atomic_signal_fence();
    if (have > want && have == a->bin_log2) {
        fdri_atomic_add_relaxed(&l->split_bins, 1u);
        fdri_atomic_add_relaxed(&a->split_bins, 1u);
    }
    /* these headers are not in the cache: fetch them together, not one after the other */
    for (uint32_t half = want; half < have; half++) __builtin_prefetch(fdri_bins_bin(a, off + (1u << half)), 1, 3);
    while (have > want) {
        have--;
        piece_push(a, l, off + (1u << have), have);
    }
}

uint32_t fdri_bins_piece_any(struct fdri_bins_arena *a, struct fdri_arena_location *l, uint32_t size_log2,
                             uint32_t least_log2, uint32_t *got_log2)
{
    uint32_t full = a->bin_log2;
    for (uint32_t s = size_log2 < full ? size_log2 : full - 1; s >= least_log2 && s >= 9; s--) {
        uint32_t off = s < full ? piece_pop(a, l, s) : 0;
        if (!off) continue;
        *got_log2 = s;
        return off;
    }
    return 0;
}

/* true: b is a free piece of that size. Racy: in a strewn bin another location may write to it. Then piece_unlink does
 * not find it on our list. */
FDRI_RACY static bool may_join(const struct fdri_arena_bin *b, uint32_t size_log2)
{
    return b->size_log2 == size_log2 && !(fdri_atomic_load_relaxed(&b->generation) & 1);
}

void fdri_bins_piece_give(struct fdri_bins_arena *a, struct fdri_arena_location *l, uint32_t off, uint32_t size_log2)
{
    uint32_t full = a->bin_log2, was = size_log2;
    while (size_log2 < full) { /* two free halves become a whole */
        struct fdri_arena_bin *b = fdri_bins_piece_buddy(a, off, size_log2);
        uint32_t buddy = (uint32_t)((uint8_t *)b - a->base);
        if (!may_join(b, size_log2) || !piece_unlink(a, l, buddy, size_log2)) break;
        /* clear the upper half's header: a reader that scans must not find it inside of the whole */
        fdri_racy_clear(fdri_bins_bin(a, off < buddy ? buddy : off), FDRI_ARENA_BIN_HEADER);
        off = off < buddy ? off : buddy;
        size_log2++;
    }
    if (size_log2 < full) {
        piece_push(a, l, off, size_log2);
    } else if (was < full && fdri_strewn(a, off)) { /* all pieces of the strewn bin came to l */
        fdri_atomic_sub_relaxed(&l->strewn_units, 1u << (full - 9));
        fdri_strewn_whole(a, off);
    } else {
        fdri_atomic_sub_relaxed(&l->split_bins, (uint32_t)(was < full));
        fdri_atomic_sub_relaxed(&a->split_bins, (uint32_t)(was < full));
        fdri_bins_give(a, off);
        fdri_atomic_sub_relaxed(&l->bins_held, 1u);
    }
}

/* No piece of the location's bins is in use any more. A broken-off operation may have left a bin whose pieces were not
 * joined. It is given back when its first piece is found on a list, after all others are off. */
void fdri_bins_piece_leave(struct fdri_bins_arena *a, struct fdri_arena_location *l)
{
    uint32_t bins = 0;
    for (uint32_t log2 = 9, off; log2 < a->bin_log2; log2++)
        while ((off = piece_pop(a, l, log2))) {
            if (fdri_strewn(a, off)) {
                if (!fdri_may_strew(a, log2)) continue;
                fdri_atomic_sub_relaxed(&l->strewn_units, 1u << (log2 - 9));
                fdri_strewn_give(a, off, log2);
            } else if ((off - a->bins_off) % a->super->bin_bytes == 0) {
                fdri_atomic_store_relaxed(&fdri_bins_bin(a, off)->next, bins);
                bins = off;
            }
        }
    for (uint32_t next; bins; bins = next) {
        next = fdri_atomic_load_relaxed(&fdri_bins_bin(a, bins)->next);
        for (uint32_t at = FDRI_ARENA_BIN_MIN_BYTES; at < a->super->bin_bytes;
             at += FDRI_ARENA_BIN_MIN_BYTES) /* also the headers of pieces that are on no list */
            fdri_racy_clear(fdri_bins_bin(a, bins + at), FDRI_ARENA_BIN_HEADER);
        fdri_atomic_sub_relaxed(&l->split_bins, 1u);
        fdri_atomic_sub_relaxed(&a->split_bins, 1u);
        fdri_bins_give(a, bins);
        fdri_atomic_sub_relaxed(&l->bins_held, 1u);
    }
}

void fdri_bins_part_open(struct fdri_bins_arena *a, struct fdri_arena_location *l, struct fdri_arena_part *p,
                         uint32_t off, uint32_t size_log2, uint32_t base_ordinal, uint32_t record_bits_max)
{
    struct fdri_arena_bin *b = fdri_bins_bin(a, off);
    uint32_t seq = p->open_seq + 1, bytes = 1u << size_log2;
    /* G:take - pairs with G:check. The generation is even, so a copier that saw any of the following stores drops the
     * bin. Otherwise it would copy a bin with one partition's header and another's records */
    fdri_atomic_fence_release();
    fdri_atomic_store_relaxed(&b->commit, FDRI_ARENA_COMMIT(0, 0, fdri_codec_check24(FDRI_CODEC_HASH_SEED)));
    b->location = l->id;
    b->seq = seq;
    b->depth = p->depth;
    b->class_ = p->class_;
    b->band = p->band;
    b->size_log2 = (uint8_t)size_log2;
    b->flags = l->flags & FDRI_ARENA_LOCATION_NS ? FDRI_ARENA_BIN_NS : 0;
    b->reserved = 0;
    b->epoch = l->epoch;
    b->base_ordinal = base_ordinal;
    b->base_tick = p->last_tick;
    b->first_index = p->total;
    fdri_atomic_store_relaxed(&b->next, 0);
    b->check = fdri_arena_check32((const uint8_t *)b + 8, 40);
    fdri_atomic_signal_fence();
    b->magic = FDRI_ARENA_BIN_MAGIC;
    /* G:open - odd: header and contents are this partition's from here on */
    fdri_atomic_store_release(&b->generation, (fdri_atomic_load_relaxed(&b->generation) | 1u));
    fdri_atomic_signal_fence();
    p->size_log2 = (uint8_t)size_log2;
    fdri_atomic_add_relaxed(&p->bins, 1u);
    fdri_atomic_add_relaxed(&p->bytes, bytes >> 9);
    l->epoch_bins++;
    fdri_codec_encode_begin(p, fdri_bins_at(a, p->table_off), (uint8_t *)(b + 1), bytes, record_bits_max);
    uint64_t head = fdri_atomic_load_relaxed(&p->list_head);
    uint32_t newest = p->open_off;
    /* Link it before it becomes the open bin: an operation that is broken off in between leaves an empty bin, which the
     * next one replaces. */
    /* R:link - pairs with A:list in export/: the header is complete; else: a list that leads to an unwritten header */
    if (!(uint32_t)head) fdri_atomic_store_release(&p->list_head, LIST(seq, off));
    else fdri_atomic_store_release(&fdri_bins_bin(a, newest)->next, off); /* R:link */
    fdri_atomic_signal_fence();
    p->open_off = off;
    p->open_seq = seq;
}

void fdri_bins_part_seal(struct fdri_bins_arena *a, struct fdri_arena_part *p)
{
    if (!p->open_off) return;
    /* only committed records count: a broken-off operation may have left bits behind them */
    const struct fdri_arena_bin *b = fdri_bins_bin(a, p->open_off);
    p->total = b->first_index + FDRI_ARENA_COMMIT_RECORDS(b->commit);
    fdri_codec_encode_close(p); /* so the next record asks for a bin */
}

void fdri_bins_part_mend(struct fdri_bins_arena *a, struct fdri_arena_part *p)
{
    uint64_t head = fdri_atomic_load_acquire(&p->list_head); /* A:claim */
    uint32_t off = (uint32_t)head;
    /* if the open bin is listed, it was the newest, or one bin was linked behind it */
    if (off && p->open_off && (int32_t)(p->open_seq - (uint32_t)(head >> 32)) >= 0) off = p->open_off;
    /* A:list */
    for (uint32_t next = off; next; next = fdri_atomic_load_acquire(&fdri_bins_bin(a, off)->next)) off = next;
    if (off) p->open_seq = fdri_bins_bin(a, off)->seq;
    p->open_off = off;
    if (off) fdri_bins_part_seal(a, p);
    /* broken off between beginning the bin and linking it: the next record would go to offset 0 */
    else fdri_codec_encode_close(p);
}

/* ---- the old end ----
 * One compare-and-swap pops the head of the list. The owner does it, or a claimer, which never takes the newest bin.
 * The head holds the seq of the oldest bin, which only rises, so an old head cannot come back. Hence a swap that
 * succeeds proves the `next` that was read before it. Only rewinding goes back to older seqs, and it pins the location
 * first. */

FDRI_RACY static uint64_t base_tick_of(const struct fdri_bins_arena *a, uint32_t off)
{
    return fdri_bins_may_be_bin(a, off) ? fdri_bins_bin(a, off)->base_tick : 0;
}

/* The oldest bin at the time when `head` was read. end: tick of its newest record, which is the base_tick of the next
 * bin. */
struct oldest {
    uint32_t off, next;
    uint64_t end;
};

static struct oldest oldest_of(const struct fdri_bins_arena *a, const struct fdri_arena_part *p, uint64_t head)
{
    struct oldest o = {.off = (uint32_t)head, .end = p->last_tick};
    if (!o.off || o.off == p->open_off) return o;
    o.next = fdri_racy_peek_acquire(&fdri_bins_bin(a, o.off)->next); /* A:list */
    o.end = base_tick_of(a, o.next);
    return o;
}

uint32_t fdri_bins_part_popped(struct fdri_bins_arena *a, struct fdri_arena_part *p, uint32_t off, uint64_t end,
                               uint32_t *size_log2, struct fdri_bins_given *given)
{
    struct fdri_arena_bin *b = fdri_bins_bin(a, off);
    FDRI_BINS_HOLDS(a, b->magic == FDRI_ARENA_BIN_MAGIC && b->generation & 1);
    /* other threads may take bins of p at the same time */
    FDRI_BINS_HOLDS(a, fdri_atomic_load_relaxed(&p->bins) > 0);
    FDRI_BINS_HOLDS(a, fdri_atomic_load_relaxed(&p->bytes) >= 1u << (b->size_log2 - 9));
    given->events += FDRI_ARENA_COMMIT_RECORDS(b->commit);
    given->bytes += 1ull << b->size_log2;
    given->from_tick = fdri_bits_min(given->from_tick, b->base_tick);
    given->to_tick = fdri_bits_max(given->to_tick, end);
    *size_log2 = b->size_log2;
    fdri_atomic_sub_relaxed(&p->bins, 1u);
    fdri_atomic_sub_relaxed(&p->bytes, 1u << (b->size_log2 - 9));
    /* G:give - even until the caller opens it for a partition */
    fdri_atomic_store_release(&b->generation, (b->generation | 1u) + 1);
    return off;
}

static uint32_t account_popped(struct fdri_bins_arena *a, struct fdri_arena_part *p, const struct oldest *o,
                               uint32_t *size_log2, struct fdri_bins_given *given)
{
    fdri_racy_peeked(&fdri_bins_bin(a, o->off)->next);
    return fdri_bins_part_popped(a, p, o->off, o->end, size_log2, given);
}

uint64_t fdri_bins_part_oldest_end(const struct fdri_bins_arena *a, const struct fdri_arena_part *p)
{
    uint64_t head = fdri_atomic_load_acquire(&p->list_head); /* A:claim */
    return (uint32_t)head ? oldest_of(a, p, head).end : UINT64_MAX;
}

bool fdri_bins_part_has_sealed(const struct fdri_arena_part *p)
{
    uint64_t head = fdri_atomic_load_relaxed(&p->list_head);
    return (uint32_t)head && ((uint32_t)head != p->open_off || fdri_codec_encode_full(p));
}

bool fdri_bins_part_older(const struct fdri_bins_arena *a, const struct fdri_arena_part *p, uint64_t tick)
{
    uint64_t head = fdri_atomic_load_acquire(&p->list_head); /* A:claim */
    return (uint32_t)head && oldest_of(a, p, head).end <= tick;
}

/* Pops the oldest bin if it ends at or before `tick`. */
static uint32_t pop_before(struct fdri_bins_arena *a, struct fdri_arena_part *p, uint64_t tick, uint32_t *size_log2,
                           struct fdri_bins_given *given)
{
    /* A:claim - pairs with L:claim: the bin as its writer left it; else: a bin read before its last record */
    uint64_t head = fdri_atomic_load_acquire(&p->list_head);
    for (int i = 0; i < FDRI_BINS_TRIES && fdri_bins_part_has_sealed(p); i++) {
        struct oldest o = oldest_of(a, p, head);
        if (o.end > tick) return 0;
        /* The last bin, which no claimer takes. Without it only the partition's floor says how far its records were
         * reduced. */
        if (o.off == p->open_off) {
            fdri_bins_part_seal(a, p);
            p->floor_tick = o.end;
            /* killed here: the floor has risen, and the bin's records count as reduced by their times */
            fdri_atomic_signal_fence();
        }
        /* L:claim */
        if (!fdri_atomic_cas_acq_rel_u64(&p->list_head, &head, LIST((uint32_t)(head >> 32) + 1, o.next))) continue;
        if (o.off == p->open_off) p->open_off = 0;
        return account_popped(a, p, &o, size_log2, given);
    }
    return 0;
}

uint32_t fdri_bins_part_pop(struct fdri_bins_arena *a, struct fdri_arena_part *p, uint32_t *size_log2,
                            struct fdri_bins_given *given)
{
    return pop_before(a, p, UINT64_MAX, size_log2, given);
}

uint32_t fdri_bins_part_pop_older(struct fdri_bins_arena *a, struct fdri_arena_part *p, uint64_t tick,
                                  uint32_t *size_log2, struct fdri_bins_given *given)
{
    return pop_before(a, p, tick, size_log2, given);
}

/* ---- claims: another thread pops ---- */

static struct oldest oldest_claimable(const struct fdri_bins_arena *a, uint64_t head)
{
    struct oldest o = {.off = (uint32_t)head};
    if (!o.off) return o;
    /* A:list - a bin with a successor is sealed, and its owner no longer writes to it */
    o.next = fdri_racy_peek_acquire(&fdri_bins_bin(a, o.off)->next);
    o.end = base_tick_of(a, o.next);
    return o;
}

uint32_t fdri_bins_part_claim(struct fdri_bins_arena *a, struct fdri_arena_part *p, uint32_t *size_log2,
                              struct fdri_bins_given *given)
{
    uint64_t head = fdri_atomic_load_acquire(&p->list_head); /* A:claim */
    struct oldest o = oldest_claimable(a, head);
    if (!o.next) return 0;
    /* L:claim */
    if (!fdri_atomic_cas_acq_rel_u64(&p->list_head, &head, LIST((uint32_t)(head >> 32) + 1, o.next))) return 0;
    return account_popped(a, p, &o, size_log2, given);
}
