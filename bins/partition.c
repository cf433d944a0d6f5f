/* SPDX-License-Identifier: MIT */
/* Pieces of bins, and partitions as lists of them: append at the newest end, give back at the oldest. */
#include <string.h>

#include "base/atomic.h"
#include "bins/bins.h"
#include "format/record.h"

#define LIST(seq, off) ((uint64_t)(seq) << 32 | (uint32_t)(off))

static uint32_t full_log2(const struct fdri_arena *a) { return fdr_log2_floor(a->super->bin_bytes); }

static void piece_push(struct fdri_arena *a, struct fdr_location *l, uint32_t off, uint32_t size_log2)
{
    struct fdr_bin *b = fdri_bin(a, off);
    b->magic = FDR_BIN_MAGIC;
    b->size_log2 = (uint8_t)size_log2;
    fdr_store_relaxed(&b->next, l->piece_free[size_log2 - 9]);
    fdr_store_release(&b->generation, (fdr_load_relaxed(&b->generation) | 1u) + 1); /* G:give */
    fdr_signal_fence();
    l->piece_free[size_log2 - 9] = off;
}

static uint32_t piece_pop(struct fdri_arena *a, struct fdr_location *l, uint32_t size_log2)
{
    uint32_t off = l->piece_free[size_log2 - 9];
    if (!off) return 0;
    struct fdr_bin *b = fdri_bin(a, off);
    l->piece_free[size_log2 - 9] = fdr_load_relaxed(&b->next);
    fdr_store_release(&b->generation, (fdr_load_relaxed(&b->generation) + 1) | 1u); /* G:take */
    return off;
}

/* Takes `off` off the free list of its size; false when it is not there. Lists are short: they hold only halves
 * whose other half is in use. The bound keeps a broken list from trapping the caller. */
static bool piece_unlink(struct fdri_arena *a, struct fdr_location *l, uint32_t off, uint32_t size_log2)
{
    uint32_t *link = &l->piece_free[size_log2 - 9];
    for (int i = 0; *link && i < FDRI_TRIES; i++) {
        if (*link == off) {
            *link = fdri_bin(a, off)->next;
            return true;
        }
        link = &fdri_bin(a, *link)->next;
    }
    return false;
}

uint32_t fdri_piece_take(struct fdri_arena *a, struct fdr_location *l, uint32_t size_log2)
{
    uint32_t have = size_log2, off = 0, full = full_log2(a);
    while (have < full && !(off = piece_pop(a, l, have))) have++;
    if (!off) {
        off = fdri_bin_take(a);
        if (!off) return 0;
        l->bins_held++;
    }
    fdri_piece_split(a, l, off, have, size_log2);
    fdri_bin(a, off)->size_log2 = (uint8_t)size_log2;
    return off;
}

void fdri_piece_split(struct fdri_arena *a, struct fdr_location *l, uint32_t off, uint32_t have, uint32_t want)
{
    while (have > want) {
        have--;
        piece_push(a, l, off + (1u << have), have);
    }
}

uint32_t fdri_piece_any(struct fdri_arena *a, struct fdr_location *l, uint32_t size_log2, uint32_t *got_log2)
{
    uint32_t full = full_log2(a);
    for (uint32_t s = size_log2 < full ? size_log2 : full - 1; s >= 9; s--) {
        uint32_t off = s < full ? piece_pop(a, l, s) : 0;
        if (!off) continue;
        *got_log2 = s;
        return off;
    }
    return 0;
}

void fdri_piece_give(struct fdri_arena *a, struct fdr_location *l, uint32_t off, uint32_t size_log2)
{
    uint32_t full = full_log2(a);
    while (size_log2 < full) { /* two free halves are a whole again */
        uint32_t rel = off - (uint32_t)a->super->bins_off, buddy = (uint32_t)a->super->bins_off + (rel ^ 1u << size_log2);
        struct fdr_bin *b = fdri_bin(a, buddy);
        if (b->size_log2 != size_log2 || (b->generation & 1) || !piece_unlink(a, l, buddy, size_log2)) break;
        memset(fdri_bin(a, off < buddy ? buddy : off), 0, FDR_BIN_HEADER); /* no header inside the whole */
        off = off < buddy ? off : buddy;
        size_log2++;
    }
    if (size_log2 < full) {
        piece_push(a, l, off, size_log2);
    } else {
        fdri_bin_give(a, off);
        l->bins_held--;
    }
}

void fdri_part_open(struct fdri_arena *a, struct fdr_location *l, struct fdr_part *p, uint32_t off, uint32_t size_log2,
                    uint32_t base_ordinal, uint32_t record_bits_max)
{
    struct fdr_bin *b = fdri_bin(a, off);
    uint32_t seq = p->open_seq + 1, bytes = 1u << size_log2;
    fdr_store_relaxed(&b->commit, FDR_COMMIT(0, 0, fdr_check24(FDR_HASH_SEED)));
    b->location = l->id;
    b->seq = seq;
    b->depth = p->depth;
    b->class_ = p->class_;
    b->band = p->band;
    b->size_log2 = (uint8_t)size_log2;
    b->flags = 0;
    b->reserved = 0;
    b->epoch = l->epoch;
    b->base_ordinal = base_ordinal;
    b->base_tick = p->last_tick;
    b->first_index = p->total;
    fdr_store_relaxed(&b->next, 0);
    b->check = fdr_check32((const uint8_t *)b + 8, 40);
    fdr_signal_fence();
    b->magic = FDR_BIN_MAGIC;
    fdr_signal_fence();
    p->size_log2 = (uint8_t)size_log2;
    p->bins++;
    p->bytes += bytes >> 9;
    l->epoch_bins++;
    fdr_encode_begin(p, fdri_at(a, p->table_off), bytes, record_bits_max);
    uint64_t head = fdr_load_relaxed(&p->list_head);
    uint32_t newest = p->open_off;
    /* linked before it is the open one: an operation abandoned in between leaves an empty bin that the next one replaces */
    if (!(uint32_t)head) fdr_store_release(&p->list_head, LIST(seq, off)); /* R:link - pairs with A:list in export/ */
    else fdr_store_release(&fdri_bin(a, newest)->next, off);               /* R:link */
    fdr_signal_fence();
    p->open_off = off;
    p->open_seq = seq;
}

void fdri_part_seal(struct fdri_arena *a, struct fdr_part *p)
{
    if (!p->open_off) return;
    /* what was committed counts: an abandoned operation may have left more behind */
    const struct fdr_bin *b = fdri_bin(a, p->open_off);
    p->total = b->first_index + FDR_COMMIT_RECORDS(b->commit);
    p->bit = 1;
    p->limit = 0; /* bit > limit: the next record asks for a bin */
}

/* Newest leave in the oldest bin = where the bin behind it starts counting. */
static uint64_t oldest_end(const struct fdri_arena *a, const struct fdr_part *p, const struct fdr_bin *b)
{
    uint32_t next = fdr_load_acquire(&b->next); /* A:list */
    return next ? fdri_bin(a, next)->base_tick : p->last_tick;
}

bool fdri_part_has_sealed(const struct fdr_part *p)
{
    uint64_t head = fdr_load_relaxed(&p->list_head);
    return (uint32_t)head && ((uint32_t)head != p->open_off || p->limit < p->bit);
}

bool fdri_part_older(const struct fdri_arena *a, const struct fdr_part *p, uint64_t tick)
{
    uint64_t head = fdr_load_relaxed(&p->list_head);
    return (uint32_t)head && oldest_end(a, p, fdri_bin(a, (uint32_t)head)) <= tick;
}

uint32_t fdri_part_pop(struct fdri_arena *a, struct fdr_location *l, struct fdr_part *p, uint32_t *size_log2,
                       struct fdri_given *given)
{
    (void)l;
    uint64_t head = fdr_load_relaxed(&p->list_head);
    uint32_t off = (uint32_t)head;
    if (!fdri_part_has_sealed(p)) return 0;
    if (off == p->open_off) fdri_part_seal(a, p); /* it is full, but nobody asked for the next one yet */
    struct fdr_bin *b = fdri_bin(a, off);
    uint64_t end = oldest_end(a, p, b);
    uint32_t next = fdr_load_relaxed(&b->next);
    given->events += FDR_COMMIT_RECORDS(b->commit);
    given->bytes += 1ull << b->size_log2;
    given->from_tick = fdr_min(given->from_tick, b->base_tick ? b->base_tick : end);
    given->to_tick = fdr_max(given->to_tick, end);
    *size_log2 = b->size_log2;
    p->floor_tick = end;
    fdr_signal_fence(); /* killed here: the floor is up and the bin's records count as reduced by their times */
    fdr_store_release(&p->list_head, LIST((uint32_t)(head >> 32) + 1, next)); /* R:link; seqs below are dead now */
    if (off == p->open_off) p->open_off = 0;
    p->bins--;
    p->bytes -= 1u << (b->size_log2 - 9);
    fdr_store_release(&b->generation, (b->generation | 1u) + 1); /* G:give - until the next holder takes it over */
    fdr_store_release(&b->generation, b->generation + 1);        /* G:take - the caller holds it */
    return off;
}
