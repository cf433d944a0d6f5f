/* SPDX-License-Identifier: MIT */
/* A place for the next record: partitions are made when their first record comes, their bins grow from 512 bytes to
 * the configured size, and where no bin is free reduce.c gives something up. */
#include "recorder/recorder.h"

static uint32_t full_log2(void) { return fdr_log2_floor(fdri_rec.arena.super->bin_bytes); }

/* The encoder's table of partition p, large enough for bins of 1 << size_log2 bytes. */
static bool have_table(struct fdri_thread *t, struct fdr_part *p, uint32_t size_log2)
{
    const uint32_t head = sizeof(struct fdr_meta_head);
    uint32_t need = p->class_ == FDR_CLASS_REGION ? fdr_contexts(1u << size_log2) * 8 : sizeof(struct fdr_point_table);
    if (p->table_off) {
        const struct fdr_meta_head *h = fdri_off(t, p->table_off - head);
        if (h->bytes - head >= need) return true;
    }
    uint32_t off = fdri_meta_take(&fdri_rec.arena, FDR_META_TABLE, head + need, t->loc->id);
    if (!off) return false;
    if (p->table_off) ((struct fdr_meta_head *)fdri_off(t, p->table_off - head))->kind = FDR_META_FREE;
    p->table_off = off + head;
    return true;
}

static struct fdr_part *make_part(struct fdri_thread *t, uint32_t depth, uint32_t class_, uint32_t band)
{
    uint32_t off = fdri_meta_take(&fdri_rec.arena, FDR_META_PART, sizeof(struct fdr_part), t->loc->id);
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

/* The last bins serve locations that have next to nothing. */
static bool may_take(const struct fdri_thread *t)
{
    return t->loc->bins_held < 4 || fdri_bins_free(&fdri_rec.arena) > fdri_rec.bin_reserve;
}

static uint32_t find_bin(struct fdri_thread *t, struct fdr_part *p, uint32_t want, uint32_t *got)
{
    struct fdri_arena *a = &fdri_rec.arena;
    uint32_t off = may_take(t) ? fdri_piece_take(a, t->loc, want) : 0;
    *got = want;
    if (!off) off = fdri_piece_any(a, t->loc, want, got);
    if (!off) off = fdri_reduce(t, p, want, got);
    return off;
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
    if (!off) {
        /* when storing stopped on account of this very call, it is among the frozen ones */
        bool frozen = class_ == FDR_CLASS_REGION && t->loc->frozen_off && p;
        if (!frozen) fdr_bump_relaxed(*slot == FDRI_GATE_CLOSED ? reduced : lost, 1);
        return NULL;
    }
    const struct fdr_level *v = fdri_level(t, depth);
    bool calls = class_ == FDR_CLASS_REGION;
    uint32_t ordinal = calls && v->zero_tick == p->last_tick ? v->zero_count : 0;
    fdri_part_open(&fdri_rec.arena, t->loc, p, off, got, ordinal, fdri_bits_max(class_));
    fdri_maybe_cut(t, p->last_tick);
    return p;
}
