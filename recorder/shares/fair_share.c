/* SPDX-License-Identifier: MIT */
/* Fair shares: who holds more than others, and may be taken from.
 *
 * Max-min fairness: what is free goes to whoever asks. When nothing is, a location that holds less takes, one bin at a
 * time, from one that holds more than a fair share (bins / live locations) and clearly more than itself. So busy
 * locations meet at one level, and whoever holds less than a fair share keeps all of it. How it takes: claim_bin.c.
 *
 * Locations of samples are bounded by a share of their own and give nothing. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/atomic.h"
#include "base/bits.h"
#include "base/racy.h"
#include "bins/bins.h"
#include "format/arena/arena.h"
#include "recorder/ended/ended.h"
#include "recorder/life/recording.h"
#include "recorder/shares/choose.h"
#include "recorder/shares/shares.h"
#include "recorder/thread/thread_state.h"

enum { FEW_BINS = 64, LITTLE_UNITS = 4 /* of 512 bytes */ };

/* Of two that adopt pieces of one bin the second may subtract its own before the first has added the whole, or was left
 * by longjmp before: then what it has beside others is less than nothing. */
static uint32_t units_of(const struct fdr_location *l)
{
    int32_t units = (int32_t)fdr_load_relaxed(&l->strewn_units);
    return (fdr_load_relaxed(&l->bins_held) << (fdri_rec.arena.bin_log2 - 9)) + (units > 0 ? (uint32_t)units : 0);
}

uint32_t fdri_share_held(const struct fdr_location *l) { return units_of(l) >> (fdri_rec.arena.bin_log2 - 9); }

/* 512 bytes each: what is shared, its history. Nobody can give accounts, nor are they what anybody wants to keep: in
 * little memory they are most of what deep threads have. */
uint32_t fdri_share_units(const struct fdr_location *l)
{
    uint32_t units = units_of(l);
    return units - (uint32_t)fdr_min(units, fdr_load_relaxed(&l->meta_units));
}
uint32_t fdri_share_history(const struct fdr_location *l)
{
    return fdri_share_units(l) >> (fdri_rec.arena.bin_log2 - 9);
}

/* Bins for history: all that are in use, without what is kept for newcomers. */
static uint32_t shared_bins(void)
{
    uint64_t bins = (uint32_t)fdr_load_relaxed(&fdri_rec.arena.super->virgin);
    uint64_t meta = fdr_load_relaxed(&fdri_rec.meta_in_bins) >> fdri_rec.arena.bin_log2;
    return (uint32_t)(bins - fdr_min(bins, meta + fdri_rec.bin_reserve));
}

uint32_t fdri_fair_share(void)
{
    uint32_t live = fdr_load_relaxed(&fdri_rec.shares.live);
    return (uint32_t)fdr_load_relaxed(&fdri_rec.arena.super->virgin) / (live ? live : 1);
}

/* The same once all memory is in use. */
uint32_t fdri_full_share(void)
{
    uint32_t live = fdr_load_relaxed(&fdri_rec.shares.live);
    return fdri_bins_reach(&fdri_rec.arena) / (live ? live : 1);
}

bool fdri_crowded(void)
{
    return fdr_load_relaxed(&fdri_rec.shares.live) > FDRI_MANY_THREADS && fdri_full_share() < FEW_BINS;
}

/* What is kept for newcomers is for who has nothing but accounts, too, however large these are. */
bool fdri_poor(const struct fdri_thread *t)
{
    return fdri_share_held(t->loc) < 4 || (fdri_crowded() && !fdri_share_history(t->loc));
}

/* How much everybody keeps: a fair share. Of anybody's one bin less than all have if there are as many threads as the
 * buffer is sure of: that one is not in the share yet. */
uint32_t fdri_share_kept(enum fdri_whose whose)
{
    const struct fdr_superblock *s = fdri_rec.arena.super;
    uint32_t fair = shared_bins() / (uint32_t)fdr_max(fdr_load_relaxed(&fdri_rec.shares.live), 1u);
    uint32_t all = s->bins_total / fdr_max(s->locations_sure, 1u);
    return whose == FDRI_ANYBODYS ? (uint32_t)fdr_min(fair, all - (all > 1)) : fair;
}

/* Its thread ended, and its accounts are its own still. */
bool fdri_share_ended(const struct fdr_location *l)
{
    return !(fdr_load_relaxed(&l->flags) & (FDR_LOCATION_LIVE | FDR_LOCATION_FREE | FDR_LOCATION_ENDED));
}

/* It holds much less than a fair share. */
bool fdri_share_due(const struct fdri_thread *t)
{
    return fdri_share_history(t->loc) < fdri_share_kept(FDRI_RICHER) / 2;
}

bool fdri_share_nothing(const struct fdri_thread *t) { return fdri_crowded() && fdri_poor(t); }

/* Does `v` hold so much that t may take of it? The margin keeps equals from taking turns. Who has next to nothing among
 * very many takes of any that has clearly more: with large accounts nobody may hold more than is kept. */
static bool gives(const struct fdr_location *v, const struct fdri_thread *t, enum fdri_whose whose)
{
    uint32_t h = whose == FDRI_RICHER ? fdri_share_history(v) : fdri_share_held(v), mine = fdri_share_history(t->loc);
    if (whose == FDRI_ENDED) return fdri_share_ended(v) && fdri_share_history(v) > fdri_ended_keeps(v);
    if (whose == FDRI_ANYBODYS && fdri_share_ended(v) && h <= fdri_ended_keeps(v)) return false;
    if (h > fdri_share_kept(whose) && h > mine + mine / 8 + 2) return true;
    return whose == FDRI_ANYBODYS && fdri_share_nothing(t) &&
           fdri_share_units(v) > fdri_share_units(t->loc) + LITTLE_UNITS;
}

bool fdri_share_rich(const struct fdri_thread *t)
{
    return !fdri_poor(t) &&
           fdri_share_history(t->loc) * (uint64_t)fdr_load_relaxed(&fdri_rec.shares.live) > shared_bins();
}

/* Remembers who holds much: a hint for those who need. */
void fdri_share_note(const struct fdri_thread *t)
{
    uint32_t off = fdr_load_acquire(&fdri_rec.shares.richest), mine = fdri_off_of(t, t->loc); /* A:hint */
    if (off == mine) return;
    bool more = !off || fdri_share_history(t->loc) > fdri_share_history(fdri_at(&fdri_rec.arena, off));
    /* R:hint - as R:location for who comes to it by the hint */
    if (more) fdr_store_release(&fdri_rec.shares.richest, mine);
}

/* The richest of those it is remembered of and of the next few on the chain; the cursor goes on from call to call. One
 * that gave nothing the last time, though it holds most, is asked where nobody else gives, if it is among these. */
struct fdr_location *fdri_share_rich_one(struct fdri_thread *t, enum fdri_whose whose)
{
    struct fdri_arena *a = &fdri_rec.arena;
    uint32_t off = fdr_load_acquire(&fdri_rec.shares.cursor);       /* A:hint */
    uint32_t best_off = fdr_load_acquire(&fdri_rec.shares.richest); /* A:hint */
    uint32_t over = t->passed_over;
    struct fdr_location *best = best_off && best_off != over ? fdri_at(a, best_off) : NULL, *again = NULL;
    if (best == t->loc) best = NULL;
    t->passed_over = 0;
    if (best && gives(best, t, whose)) return best;
    for (int i = 0; i < FDRI_SHARE_LOOK; i++) {
        if (!off) off = fdr_load_acquire(&a->super->location_first); /* A:location */
        struct fdr_location *l = fdri_at(a, off);
        bool passed_over = off == over;
        off = l->next;
        if (passed_over && !l->samples_off) again = l;
        else if (l != t->loc && !l->samples_off && (!best || fdri_share_units(l) > fdri_share_units(best))) best = l;
    }
    if (!best || !gives(best, t, whose)) best = again;
    fdr_store_release(&fdri_rec.shares.cursor, off); /* R:hint */
    if (!best || !gives(best, t, whose)) return NULL;
    fdr_store_release(&fdri_rec.shares.richest, fdri_off_of(t, best)); /* R:hint */
    return best;
}

FDR_RACY static uint32_t ended_turn(const struct fdr_location *l) { return l->ended_turn; }

/* Of the next few on the chain the one that ended first. */
struct fdr_location *fdri_share_ended_one(struct fdri_thread *t)
{
    struct fdri_arena *a = &fdri_rec.arena;
    uint32_t off = fdr_load_acquire(&fdri_rec.shares.cursor); /* A:hint */
    struct fdr_location *best = NULL;
    for (int i = 0; i < FDRI_SHARE_LOOK; i++) {
        if (!off) off = fdr_load_acquire(&a->super->location_first); /* A:location */
        struct fdr_location *l = fdri_at(a, off);
        off = l->next;
        if (l->samples_off || !gives(l, t, FDRI_ENDED)) continue;
        if (!best || (int32_t)(ended_turn(l) - ended_turn(best)) < 0) best = l;
    }
    fdr_store_release(&fdri_rec.shares.cursor, off); /* R:hint */
    return best;
}

/* No other thread is there, and none has ended that left anything. Who is only coming, samples, and the accounts of
 * those that ended do not count among them: they are beside one. */
bool fdri_share_alone(const struct fdri_thread *t)
{
    uint32_t flags = fdr_load_relaxed(&t->loc->flags);
    bool counts = flags & FDR_LOCATION_LIVE && !(flags & FDR_LOCATION_SAMPLES);
    return counts && fdr_load_relaxed(&fdri_rec.shares.live) <= 1 && !fdr_load_relaxed(&fdri_rec.shares.ended_last);
}
