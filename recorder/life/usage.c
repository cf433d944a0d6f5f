/* SPDX-License-Identifier: MIT */
#include <fdr/fdr.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/atomic.h"
#include "base/bits.h"
#include "base/racy.h"
#include "bins/bins.h"
#include "bins/claims.h"
#include "format/arena/arena.h"
#include "format/codec/record_codec.h"
#include "recorder/ended/ended.h"
#include "recorder/life/recording.h"
#include "recorder/memory/memory.h"
#include "recorder/thread/thread.h"
#include "recorder/thread/thread_state.h"

enum { LOOKS = 10000 };

/* In what follows memory may be that of a recording which is over: it stays mapped, and an offset is either what it was
 * or 0 (docs/ORDERING.md). */
static const void *at(const uint8_t *base, uint32_t off) { return base + off; }
static const struct fdr_bin *bin(const uint8_t *base, uint32_t off) { return at(base, off); }

FDR_RACY static void add_part(struct fdr_usage *u, const uint8_t *base, const struct fdr_part *p)
{
    struct fdr_part copy;
    fdr_copy_racy(&copy, p, sizeof copy);
    uint32_t oldest = (uint32_t)copy.list_head, open = copy.open_off;
    uint64_t first = oldest ? bin(base, oldest)->first_index : fdr_part_given(&copy), ever = first;
    if (oldest) ever = copy.total;
    if (oldest && open) {
        uint64_t with_open = bin(base, open)->first_index +
                             FDR_COMMIT_RECORDS(fdr_load_relaxed(&bin(base, open)->commit));
        bool its = fdr_load_relaxed(&bin(base, open)->seq) == copy.open_seq; /* else it is somebody else's by now */
        fdr_fence_acquire(); /* G:check - given back meanwhile the word is none of records */
        if (fdr_load_relaxed(&bin(base, open)->generation) & 1 && its && with_open >= first) ever = with_open;
    }
    if (p->class_ != FDR_CLASS_SAMPLE) { /* those are in no ledger of events */
        u->stored += ever - first;
        u->reduced += first;
    }
    u->bytes_stored += (uint64_t)p->bytes << 9;
}

FDR_RACY static void add_level(struct fdr_usage *u, const uint8_t *base, const struct fdr_level *v)
{
    u->presented += fdr_load_relaxed(&v->presented);
    u->filtered += fdr_load_relaxed(&v->filtered);
    u->reduced += fdr_load_relaxed(&v->reduced_gate);
    u->lost += fdr_load_relaxed(&v->lost);
    if (!v->points_off) return;
    const struct fdr_level_points *points = at(base, v->points_off);
    for (int c = 0; c < FDR_CLASS_COUNT; c++) {
        u->presented += fdr_load_relaxed(&points->by_class[c].presented);
        u->filtered += fdr_load_relaxed(&points->by_class[c].filtered);
        u->reduced += fdr_load_relaxed(&points->by_class[c].reduced_gate);
        u->lost += fdr_load_relaxed(&points->by_class[c].lost);
    }
}

static uint64_t ns_of(uint64_t ticks)
{
    return fdri_rec.ticks ? (uint64_t)((unsigned __int128)ticks * fdri_rec.tick_to_ns >> 32) : ticks;
}

FDR_RACY static void add_location(struct fdr_usage *u, const uint8_t *base, const struct fdr_location *l)
{
    add_level(u, base, at(base, l->level0_off));
    for (uint32_t i = 0; i < l->level_blocks; i++) {
        const struct fdr_levels_block *b = at(base, l->levels_off[i]);
        for (uint32_t k = 0; k < fdr_levels_of(i); k++) add_level(u, base, &b->level[k]);
    }
    for (uint32_t off = fdr_load_acquire(&l->parts_first); off;) { /* A:part */
        const struct fdr_part *p = at(base, off);
        add_part(u, base, p);
        off = p->next;
    }
    u->presented += l->presented_overflow;
    u->lost += l->lost_overflow;
    u->reductions += l->reduction_steps;
    u->reduction_ns += ns_of(fdr_load_relaxed(&l->reduction_ticks));
    u->reduction_worst_ns = fdr_max(u->reduction_worst_ns, ns_of(fdr_load_relaxed(&l->reduction_worst)));
}

/* Who looks, and has the lock of ended ones or not. */
struct looker {
    const struct fdri_thread *t; /* NULL: it is not attached */
    bool still;
};

/* Where another thread's location may be folded at any moment, and its memory be others' then: not while we are inside.
 * 0: it cannot be entered now. */
enum { ENTERS = 8 };
static uint32_t enter(const struct looker *k, const uint8_t *base, struct fdr_location *l)
{
    const struct fdr_location *who = k->t ? k->t->loc : (const void *)base;
    uint32_t place = 0;
    for (int i = 0; i < ENTERS && !place && !(fdr_load_relaxed(&l->claim) & FDRI_PINNED); i++)
        place = fdri_claim_enter(&fdri_rec.arena, who, l);
    return place;
}

static void look_at(struct fdr_usage *u, const struct looker *k, const uint8_t *base, struct fdr_location *l)
{
    bool own = k->t && (l == fdri_self.loc || l == fdri_lane.loc);
    uint32_t place = 0;
    if (fdr_load_acquire(&l->flags) & FDR_LOCATION_FREE) return; /* A:location */
    if (!k->still && !own && !(place = enter(k, base, l))) return;
    uint64_t word = place ? fdri_claim_word(&fdri_rec.arena, place) : 0;
    bool there = !(fdr_load_acquire(&l->flags) & FDR_LOCATION_FREE); /* A:location - and stays so */
    if (there) add_location(u, base, l);
    if (place) fdri_claim_leave_as(&fdri_rec.arena, place, word);
}

static void look_at_all(struct fdr_usage *u, const struct looker *k, const uint8_t *base)
{
    const struct fdr_superblock *s = at(base, 0);
    for (uint32_t off = fdr_load_acquire(&s->location_first); off;) { /* A:location */
        struct fdr_location *l = (struct fdr_location *)(uintptr_t)at(base, off);
        look_at(u, k, base, l);
        off = l->next;
    }
}

FDR_RACY static struct fdr_usage sums(const uint8_t *base, uint32_t who, const struct fdri_thread *t)
{
    const struct fdr_superblock *s = at(base, 0);
    struct fdr_usage u = {.buffer_bytes = s->arena_bytes, .bin_bytes = s->bin_bytes, .bins = s->bins_total};
    u.bins_free = fdri_bins_free(&fdri_rec.arena);
    u.bins_used = (uint32_t)fdr_load_relaxed(&s->virgin) - fdr_load_relaxed(&s->free_bins);
    u.meta_bytes = fdri_meta_bytes();
    u.locations_sure = s->locations_sure;
    u.locations = fdr_load_relaxed(&s->location_count);
    u.snapshots = fdr_load_relaxed(&s->snapshots_taken);
    const struct looker k = {t, fdri_ended_look(who, LOOKS)}; /* else what is being folded is left out */
    look_at_all(&u, &k, base);
    if (k.still) fdri_ended_unlock_of(who);
    uint64_t nowhere = fdr_load_relaxed(&s->lost_unattached);
    u.presented += nowhere;
    u.lost += nowhere;
    return u;
}

/* For a thread that is attached it is an operation like others: fdr_finalize waits for it, and what a longjmp left is
 * ended by the next one. Others hold nothing: where the recording ended meanwhile what they saw counts for nothing. */
FDR_RACY struct fdr_usage fdr_usage(void)
{
    const struct fdr_usage none = {0};
    uint32_t on = fdr_load_acquire(&fdr_switch_.on); /* A:on */
    if (!on) return none;
    struct fdri_thread *t = fdri_begin_attached();
    uint32_t who = t ? fdri_off_of(t, t->loc) : UINT32_MAX - on; /* no location's, and no other recording's */
    const uint8_t *base = t ? t->base : fdr_load_acquire(&fdri_rec.arena.base); /* A:on */
    if (!t && fdr_load_acquire(&fdr_switch_.on) != on) return none;             /* A:on - it is this recording's */
    struct fdr_usage u = sums(base, who, t);
    if (t) fdri_end(t);
    return t || fdr_load_acquire(&fdr_switch_.on) == on ? u : none; /* A:on */
}
