/* SPDX-License-Identifier: MIT */
/* fdr_usage(): sums over all locations, read while other threads record. */
#include <fdr/fdr.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/atomic.h"
#include "base/bits.h"
#include "base/racy.h"
#include "base/system/signal_mask.h"
#include "bins/bins.h"
#include "bins/claims.h"
#include "format/arena/arena.h"
#include "format/codec/encode.h"
#include "recorder/ended/ended.h"
#include "recorder/memory/memory.h"
#include "recorder/recording.h"
#include "recorder/thread/arena_place.h"
#include "recorder/thread/thread.h"
#include "recorder/thread/thread_state.h"

enum { LOOKS = 10000 };

/* The recording may end while these functions read its memory. The memory stays as it is until they return
 * (fdri_thread_hold_recording, docs/ORDERING.md). */
static const void *at(const uint8_t *base, uint32_t off) { return base + off; }
static const struct fdri_arena_bin *bin(const uint8_t *base, uint32_t off) { return at(base, off); }

FDRI_RACY static void add_part(struct fdr_usage *u, const uint8_t *base, const struct fdri_arena_part *p)
{
    struct fdri_arena_part copy;
    fdri_racy_copy(&copy, p, sizeof copy);
    uint32_t oldest = (uint32_t)copy.list_head, open = copy.open_off;
    uint64_t first = oldest ? bin(base, oldest)->first_index : fdri_codec_part_given(&copy), ever = first;
    if (oldest) ever = copy.total;
    if (oldest && open) {
        uint64_t with_open = bin(base, open)->first_index +
                             FDRI_ARENA_COMMIT_RECORDS(fdri_atomic_load_relaxed(&bin(base, open)->commit));
        /* another seq: the bin belongs to another partition by now */
        bool its = fdri_atomic_load_relaxed(&bin(base, open)->seq) == copy.open_seq;
        fdri_atomic_fence_acquire(); /* G:check - if the bin was given back meanwhile, the word counts no records */
        if (fdri_atomic_load_relaxed(&bin(base, open)->generation) & 1 && its && with_open >= first) ever = with_open;
    }
    if (p->class_ != FDRI_ARENA_CLASS_SAMPLE) { /* samples are in no ledger of events */
        u->stored += ever - first;
        u->reduced += first;
    }
    u->bytes_stored += (uint64_t)p->bytes << 9;
}

FDRI_RACY static void add_level(struct fdr_usage *u, const uint8_t *base, const struct fdri_arena_level *v)
{
    u->presented += fdri_atomic_load_relaxed(&v->presented);
    u->filtered += fdri_atomic_load_relaxed(&v->filtered);
    u->reduced += fdri_atomic_load_relaxed(&v->reduced_gate);
    u->lost += fdri_atomic_load_relaxed(&v->lost);
    if (!v->points_off) return;
    const struct fdri_arena_level_points *points = at(base, v->points_off);
    for (int c = 0; c < FDRI_ARENA_CLASS_COUNT; c++) {
        u->presented += fdri_atomic_load_relaxed(&points->by_class[c].presented);
        u->filtered += fdri_atomic_load_relaxed(&points->by_class[c].filtered);
        u->reduced += fdri_atomic_load_relaxed(&points->by_class[c].reduced_gate);
        u->lost += fdri_atomic_load_relaxed(&points->by_class[c].lost);
    }
}

static uint64_t ns_of(uint64_t ticks)
{
    return fdri_life_recording.ticks ? (uint64_t)((unsigned __int128)ticks * fdri_life_recording.tick_to_ns >> 32)
                                     : ticks;
}

FDRI_RACY static void add_location(struct fdr_usage *u, const uint8_t *base, const struct fdri_arena_location *l)
{
    add_level(u, base, at(base, l->level0_off));
    for (uint32_t i = 0; i < l->level_blocks; i++) {
        const struct fdri_arena_levels_block *b = at(base, l->levels_off[i]);
        for (uint32_t k = 0; k < fdri_arena_levels_of(i); k++) add_level(u, base, &b->level[k]);
    }
    for (uint32_t off = fdri_atomic_load_acquire(&l->parts_first); off;) { /* A:part */
        const struct fdri_arena_part *p = at(base, off);
        add_part(u, base, p);
        off = p->next;
    }
    u->presented += l->presented_overflow;
    u->lost += l->lost_overflow;
    u->reductions += l->reduction_steps;
    u->reduction_ns += ns_of(fdri_atomic_load_relaxed(&l->reduction_ticks));
    u->reduction_worst_ns = fdri_bits_max(u->reduction_worst_ns, ns_of(fdri_atomic_load_relaxed(&l->reduction_worst)));
}

/* The calling thread, and whether it holds the lock of the ended threads' accounts. */
struct looker {
    const struct fdri_thread *t; /* NULL: not attached */
    bool still;                  /* it does: no location is folded now */
};

/* Enters another thread's location by a claim. Otherwise it could be folded at any moment, and its memory be reused.
 * Returns the place of the claim; 0: it cannot be entered now. */
enum { ENTERS = 8 };
static uint32_t enter(const struct looker *k, const uint8_t *base, struct fdri_arena_location *l)
{
    const struct fdri_arena_location *holder = k->t ? k->t->loc : (const void *)base;
    uint32_t place = 0;
    for (int i = 0; i < ENTERS && !place && !(fdri_atomic_load_relaxed(&l->claim) & FDRI_BINS_PINNED); i++)
        place = fdri_bins_claim_enter(&fdri_life_recording.arena, holder, l);
    return place;
}

static void add_pinned_location(struct fdr_usage *u, const struct looker *k, const uint8_t *base,
                                struct fdri_arena_location *l)
{
    bool own = k->t && (l == fdri_record_self.loc || l == fdri_record_lane.loc);
    uint32_t place = 0;
    if (fdri_atomic_load_acquire(&l->flags) & FDRI_ARENA_LOCATION_FREE) return; /* A:location */
    if (!k->still && !own && !(place = enter(k, base, l))) return;
    uint64_t word = place ? fdri_bins_claim_word(&fdri_life_recording.arena, place) : 0;
    bool there = !(fdri_atomic_load_acquire(&l->flags) & FDRI_ARENA_LOCATION_FREE); /* A:location - stays so here */
    if (there) add_location(u, base, l);
    if (place) fdri_bins_claim_leave_as(&fdri_life_recording.arena, place, word);
}

static void look_at_all(struct fdr_usage *u, const struct looker *k, const uint8_t *base)
{
    const struct fdri_arena_superblock *s = at(base, 0);
    for (uint32_t off = fdri_atomic_load_acquire(&s->location_first); off;) { /* A:location */
        struct fdri_arena_location *l = (struct fdri_arena_location *)(uintptr_t)at(base, off);
        add_pinned_location(u, k, base, l);
        off = l->next;
    }
}

FDRI_RACY static struct fdr_usage sums(const uint8_t *base, uint32_t holder, const struct fdri_thread *t)
{
    const struct fdri_arena_superblock *s = at(base, 0);
    struct fdr_usage u = {.buffer_bytes = s->arena_bytes, .bin_bytes = s->bin_bytes, .bins = s->bins_total};
    u.bins_free = fdri_bins_free_count(&fdri_life_recording.arena);
    u.bins_used = (uint32_t)fdri_atomic_load_relaxed(&s->virgin) - fdri_atomic_load_relaxed(&s->free_bins);
    u.meta_bytes = fdri_memory_meta_bytes();
    u.locations_sure = s->locations_sure;
    u.locations = fdri_atomic_load_relaxed(&s->location_count);
    u.snapshots = fdri_atomic_load_relaxed(&s->snapshots_taken);
    const struct looker k = {t, fdri_ended_try_hold(holder, LOOKS)}; /* not held: locations being folded are left out */
    look_at_all(&u, &k, base);
    if (k.still) fdri_ended_unlock_of(holder);
    uint64_t nowhere = fdri_atomic_load_relaxed(&s->lost_unattached);
    u.presented += nowhere;
    u.lost += nowhere;
    return u;
}

/* Holds the recording, so that it cannot end meanwhile and its words cannot become those of the next one. Signals are
 * blocked: a longjmp would leave the recording held. */
static struct fdr_usage of_unattached(uint32_t on)
{
    struct fdr_usage u = {0};
    sigset_t old;
    fdri_system_signals_block(&old);
    if (fdri_thread_hold_recording(on)) {
        /* without a location: an offset that none has, other than that of another recording */
        u = sums(fdri_life_recording.arena.base, UINT32_MAX - on, NULL);
        fdri_thread_release_recording();
    }
    fdri_system_signals_restore(&old); /* last: a pending handler runs now and may leave by longjmp */
    return u;
}

/* In an attached thread this is an operation like others: fdr_finalize waits for it, and the next operation mends what
 * a longjmp left. */
struct fdr_usage fdr_usage(void)
{
    uint32_t on = fdri_atomic_load_relaxed(&fdr_switch_.on);
    if (!on) return (struct fdr_usage){0};
    struct fdri_thread *t = fdri_thread_begin_attached();
    if (!t) return of_unattached(on);
    struct fdr_usage u = sums(t->base, fdri_thread_offset_of(t, t->loc), t);
    fdri_thread_end(t);
    return u;
}
