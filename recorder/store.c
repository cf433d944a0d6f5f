/* SPDX-License-Identifier: MIT */
/* A place for the next record: partitions are made when their first record comes, their bins grow from 512 bytes to
 * the configured size, and where no bin is free reduce.c gives something up. */
#include <string.h>

#include "recorder/recorder.h"

static uint32_t full_log2(void) { return fdr_log2_floor(fdri_rec.arena.super->bin_bytes); }

/* The last bins serve locations that have next to nothing. */
static bool may_take(const struct fdri_thread *t)
{
    return t->loc->bins_held < 4 || fdri_bins_free(&fdri_rec.arena) > fdri_rec.bin_reserve;
}

/* `p` asks, or NULL: a meta block does. */
static uint32_t find_bin(struct fdri_thread *t, struct fdr_part *p, uint32_t want, uint32_t *got)
{
    struct fdri_arena *a = &fdri_rec.arena;
    uint32_t off = may_take(t) ? fdri_piece_take(a, t->loc, want) : 0;
    *got = want;
    if (!off) off = fdri_piece_any(a, t->loc, want, got);
    if (!off) off = fdri_reduce(t, p, want, got);
    return off;
}

/* ---- meta blocks ---- */

enum { SLAB_LOG2 = 11, SMALL_BYTES = 640 };

static uint32_t set_head(struct fdri_thread *t, uint32_t off, enum fdr_meta_kind kind, uint32_t bytes)
{
    struct fdr_meta_head *h = fdri_off(t, off);
    memset(h, 0, bytes);
    h->kind = (uint16_t)kind;
    h->bytes = bytes;
    h->location = t->loc->id;
    fdr_signal_fence();
    h->magic = FDR_META_MAGIC;
    return off;
}

/* A piece of a bin of its own; for it something else may be given back. */
static uint32_t meta_in_piece(struct fdri_thread *t, enum fdr_meta_kind kind, uint32_t want)
{
    uint32_t got = 0, off = 0;
    if (want > full_log2() || !t->loc->level_blocks) return 0;
    for (int tries = 0; tries < 64 && !(off = fdri_piece_take(&fdri_rec.arena, t->loc, want)); tries++) {
        off = fdri_reduce(t, NULL, want, &got);
        if (!off) return 0;
        if (got == want) break;
        fdri_piece_give(&fdri_rec.arena, t->loc, off, got); /* too small; its neighbours may follow */
        off = 0;
    }
    if (!off) return 0;
    fdr_add_relaxed(&fdri_rec.meta_in_bins, 1ull << want);
    return set_head(t, off, kind, 1u << want);
}

static uint32_t meta_in_slab(struct fdri_thread *t, enum fdr_meta_kind kind, uint32_t bytes)
{
    struct fdr_location *l = t->loc;
    if (l->meta_end - l->meta_off < bytes) {
        uint32_t log2 = SLAB_LOG2 < full_log2() ? SLAB_LOG2 : full_log2();
        uint32_t slab = (1u << log2) >= bytes + 64 ? meta_in_piece(t, FDR_META_SLAB, log2) : 0;
        if (!slab) return 0;
        l->meta_off = slab + 64;
        l->meta_end = slab + (1u << log2);
    }
    uint32_t off = l->meta_off;
    l->meta_off += bytes;
    return set_head(t, off, kind, bytes);
}

uint32_t fdri_meta(struct fdri_thread *t, enum fdr_meta_kind kind, uint32_t bytes)
{
    struct fdr_location *l = t->loc;
    bytes = (uint32_t)fdr_align_up(bytes, FDR_META_ALIGN);
    uint32_t *reuse = bytes < SMALL_BYTES ? &l->meta_free[bytes / FDR_META_ALIGN] : NULL;
    if (reuse && *reuse) {
        uint32_t off = *reuse;
        memcpy(reuse, (uint8_t *)fdri_off(t, off) + sizeof(struct fdr_meta_head), sizeof *reuse);
        return set_head(t, off, kind, bytes);
    }
    uint32_t off = fdri_meta_take(&fdri_rec.arena, kind, bytes, l->id);
    if (!off && reuse) off = meta_in_slab(t, kind, bytes);
    if (!off) off = meta_in_piece(t, kind, (uint32_t)fdr_max(fdr_log2_ceil(bytes), 9));
    return off;
}

void fdri_meta_give(struct fdri_thread *t, uint32_t off)
{
    struct fdr_meta_head *h = fdri_off(t, off);
    h->kind = FDR_META_FREE;
    if (h->bytes >= SMALL_BYTES) return; /* rare: a row table that grew */
    uint32_t *list = &t->loc->meta_free[h->bytes / FDR_META_ALIGN];
    memcpy(h + 1, list, sizeof *list);
    fdr_signal_fence();
    *list = off;
}

/* ---- partitions ---- */

/* The encoder's table of partition p, large enough for bins of 1 << size_log2 bytes. */
static bool have_table(struct fdri_thread *t, struct fdr_part *p, uint32_t size_log2)
{
    const uint32_t head = sizeof(struct fdr_meta_head);
    uint32_t need = p->class_ == FDR_CLASS_REGION ? fdr_contexts(1u << size_log2) * 8 : sizeof(struct fdr_point_table);
    if (p->table_off) {
        const struct fdr_meta_head *h = fdri_off(t, p->table_off - head);
        if (h->bytes - head >= need) return true;
    }
    uint32_t off = fdri_meta(t, FDR_META_TABLE, head + need);
    if (!off) return false;
    if (p->table_off) fdri_meta_give(t, p->table_off - head);
    p->table_off = off + head;
    return true;
}

static struct fdr_part *make_part(struct fdri_thread *t, uint32_t depth, uint32_t class_, uint32_t band)
{
    uint32_t off = fdri_meta(t, FDR_META_PART, sizeof(struct fdr_part));
    if (!off) return NULL;
    struct fdr_part *p = fdri_off(t, off);
    p->depth = (uint16_t)depth;
    p->class_ = (uint8_t)class_;
    p->band = (uint8_t)band;
    p->list_head = 1ull << 32; /* the first bin has seq 1 */
    p->bit = 1;                /* bit > limit: asks for a bin */
    p->next = t->loc->parts_first;
    fdr_signal_fence();
    fdr_store_release(&t->loc->parts_first, off); /* R:part - pairs with A:part in export/ */
    t->victim = NULL;                             /* the new one may be worth less */
    return p;
}

static bool gate_closed(const struct fdri_thread *t, uint32_t depth, uint32_t class_, uint32_t band)
{
    const struct fdr_location *l = t->loc;
    if (l->flags & FDR_LOCATION_STOPPED || l->class_closed >> class_ & 1) return true;
    return class_ == FDR_CLASS_REGION && l->gate_depth[band] && depth >= l->gate_depth[band];
}

uint32_t *fdri_slot_of(struct fdri_thread *t, const struct fdr_part *p)
{
    struct fdr_level *v = fdri_level(t, p->depth);
    if (p->class_ == FDR_CLASS_REGION) return &v->part[p->band];
    struct fdr_level_points *points = fdri_off(t, v->points_off);
    return &points->by_class[p->class_].part;
}

void fdri_close_gate(struct fdri_thread *t, struct fdr_part *p)
{
    struct fdr_location *l = t->loc;
    *fdri_slot_of(t, p) = FDRI_GATE_CLOSED;
    p->flags |= 1;
    if (p->class_ == FDR_CLASS_REGION) {
        uint32_t *gate = &l->gate_depth[p->band];
        if (!*gate || p->depth < *gate) *gate = p->depth;
    } else {
        l->class_closed |= 1u << p->class_;
    }
}

static uint32_t next_size(struct fdri_thread *t, struct fdr_part *p)
{
    uint32_t want = p->size_log2 ? p->size_log2 + 1u : 9u;
    if (want > full_log2()) want = full_log2();
    while (!have_table(t, p, want)) {
        if (want == 9 || !p->table_off) return 0;
        want--;
    }
    return want;
}

struct fdr_part *fdri_room(struct fdri_thread *t, uint32_t *slot, uint32_t depth, uint32_t class_, uint32_t band,
                           uint64_t *reduced, uint64_t *lost)
{
    struct fdr_part *p = NULL;
    uint32_t want = 0, got = 0, off = 0;
    if (*slot == 0) {
        if (gate_closed(t, depth, class_, band)) *slot = FDRI_GATE_CLOSED;
        else if ((p = make_part(t, depth, class_, band))) *slot = fdri_off_of(t, p);
    } else if (*slot != FDRI_GATE_CLOSED) {
        p = fdri_off(t, *slot);
    }
    if (p) {
        fdri_part_seal(&fdri_rec.arena, p);
        if ((want = next_size(t, p))) off = find_bin(t, p, want, &got);
    }
    const struct fdr_level *v = fdri_level(t, depth);
    bool calls = class_ == FDR_CLASS_REGION;
    if (off && *slot == FDRI_GATE_CLOSED) { /* closed by what its own table or bin took */
        fdri_piece_give(&fdri_rec.arena, t->loc, off, got);
        off = 0;
    }
    if (!off && *slot != FDRI_GATE_CLOSED && fdri_rec.set.strategy == FDR_STRATEGY_FIRST) fdri_stop(t, t->loc->last_tick);
    if (!off) {
        /* when storing stopped on account of this very call, it was settled with the frozen ones */
        bool settled = calls && (v->flags & FDR_LEVEL_SETTLED);
        if (!settled) fdr_bump_relaxed(*slot == FDRI_GATE_CLOSED ? reduced : lost, 1);
        return NULL;
    }
    if (t->loc->bins_held >= 8) fdri_reserve_ledger(t);
    uint32_t ordinal = calls && v->zero_tick == p->last_tick ? v->zero_count : 0;
    fdri_part_open(&fdri_rec.arena, t->loc, p, off, got, ordinal, fdri_bits_max(class_));
    fdri_maybe_cut(t, p->last_tick);
    return p;
}
