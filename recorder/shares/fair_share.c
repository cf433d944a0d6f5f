/* SPDX-License-Identifier: MIT */
/* Fair shares: which location holds more than others, and may be taken from.
 *
 * Max-min fairness: free bins go to any location that asks. If none is free, a location takes one bin at a time from a
 * richer one. The richer one holds more than a fair share (bins / live locations), and clearly more than the asking
 * one. So busy locations meet at one level, and a location below a fair share keeps all its bins. claim_bin.c takes the
 * bin.
 *
 * Locations of samples have a limit of their own and give nothing. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/atomic.h"
#include "base/bits.h"
#include "base/racy.h"
#include "bins/bins.h"
#include "format/arena/arena.h"
#include "recorder/ended/ended.h"
#include "recorder/recording.h"
#include "recorder/shares/choose.h"
#include "recorder/shares/shares.h"
#include "recorder/thread/arena_place.h"
#include "recorder/thread/thread_state.h"

enum { FEW_BINS = 64, LITTLE_UNITS = 4 /* of 512 bytes */ };

/* strewn_units may be negative for a moment, or after a longjmp. Two locations may adopt pieces of one bin: the second
 * may subtract its piece before the first has added the whole bin. */
static uint32_t units_of(const struct fdri_arena_location *l)
{
    int32_t units = (int32_t)fdri_atomic_load_relaxed(&l->strewn_units);
    return (fdri_atomic_load_relaxed(&l->bins_held) << (fdri_life_recording.arena.bin_log2 - 9)) +
           (units > 0 ? (uint32_t)units : 0);
}

uint32_t fdri_shares_bins_of(const struct fdri_arena_location *l)
{
    return units_of(l) >> (fdri_life_recording.arena.bin_log2 - 9);
}

/* Only stored events are shared. Accounts cannot be given back, and in a small arena they are most of what deep threads
 * hold. */
uint32_t fdri_shares_units(const struct fdri_arena_location *l)
{
    uint32_t units = units_of(l);
    return units - (uint32_t)fdri_bits_min(units, fdri_atomic_load_relaxed(&l->meta_units));
}
uint32_t fdri_shares_history(const struct fdri_arena_location *l)
{
    return fdri_shares_units(l) >> (fdri_life_recording.arena.bin_log2 - 9);
}

/* Bins for stored events: all in use, without those of accounts and the reserve for new threads. */
static uint32_t shared_bins(void)
{
    uint64_t bins = (uint32_t)fdri_atomic_load_relaxed(&fdri_life_recording.arena.super->virgin);
    uint64_t meta = fdri_atomic_load_relaxed(&fdri_life_recording.meta_in_bins) >> fdri_life_recording.arena.bin_log2;
    return (uint32_t)(bins - fdri_bits_min(bins, meta + fdri_life_recording.bin_reserve));
}

uint32_t fdri_shares_fair(void)
{
    uint32_t live = fdri_atomic_load_relaxed(&fdri_life_recording.shares.live);
    return (uint32_t)fdri_atomic_load_relaxed(&fdri_life_recording.arena.super->virgin) / (live ? live : 1);
}

uint32_t fdri_shares_fair_when_full(void)
{
    uint32_t live = fdri_atomic_load_relaxed(&fdri_life_recording.shares.live);
    return fdri_bins_reachable(&fdri_life_recording.arena) / (live ? live : 1);
}

bool fdri_shares_crowded(void)
{
    return fdri_atomic_load_relaxed(&fdri_life_recording.shares.live) > FDRI_SHARES_MANY_THREADS &&
           fdri_shares_fair_when_full() < FEW_BINS;
}

/* The reserve for new threads is also for locations that hold nothing but accounts, however large these are. */
bool fdri_shares_poor(const struct fdri_thread *t)
{
    return fdri_shares_bins_of(t->loc) < 4 || (fdri_shares_crowded() && !fdri_shares_history(t->loc));
}

/* RICHER and ENDED leave a fair share. ANY leaves at most one bin less than each of locations_sure threads would have,
 * because the asking location is not yet counted in the share. */
uint32_t fdri_shares_left_to_owner(enum fdri_shares_givers givers)
{
    const struct fdri_arena_superblock *s = fdri_life_recording.arena.super;
    uint32_t fair = shared_bins() /
                    (uint32_t)fdri_bits_max(fdri_atomic_load_relaxed(&fdri_life_recording.shares.live), 1u);
    uint32_t all = s->bins_total / fdri_bits_max(s->locations_sure, 1u);
    return givers == FDRI_SHARES_ANY ? (uint32_t)fdri_bits_min(fair, all - (all > 1)) : fair;
}

bool fdri_shares_ended(const struct fdri_arena_location *l)
{
    return !(fdri_atomic_load_relaxed(&l->flags) &
             (FDRI_ARENA_LOCATION_LIVE | FDRI_ARENA_LOCATION_FREE | FDRI_ARENA_LOCATION_ENDED));
}

bool fdri_shares_below_fair(const struct fdri_thread *t)
{
    return fdri_shares_history(t->loc) < fdri_shares_left_to_owner(FDRI_SHARES_RICHER) / 2;
}

bool fdri_shares_starving(const struct fdri_thread *t) { return fdri_shares_crowded() && fdri_shares_poor(t); }

/* true: v holds enough to give to t. The margin keeps equal locations from taking turns. A starving location takes from
 * any that has clearly more. If accounts are large, no location may hold more than the share that is left to it. */
static bool may_give_to(const struct fdri_arena_location *v, const struct fdri_thread *t,
                        enum fdri_shares_givers givers)
{
    uint32_t h = givers == FDRI_SHARES_RICHER ? fdri_shares_history(v) : fdri_shares_bins_of(v),
             mine = fdri_shares_history(t->loc);
    if (givers == FDRI_SHARES_ENDED)
        return fdri_shares_ended(v) && fdri_shares_history(v) > fdri_ended_bins_reserved(v);
    if (givers == FDRI_SHARES_ANY && fdri_shares_ended(v) && h <= fdri_ended_bins_reserved(v)) return false;
    if (h > fdri_shares_left_to_owner(givers) && h > mine + mine / 8 + 2) return true;
    return givers == FDRI_SHARES_ANY && fdri_shares_starving(t) &&
           fdri_shares_units(v) > fdri_shares_units(t->loc) + LITTLE_UNITS;
}

bool fdri_shares_rich(const struct fdri_thread *t)
{
    return !fdri_shares_poor(t) &&
           fdri_shares_history(t->loc) * (uint64_t)fdri_atomic_load_relaxed(&fdri_life_recording.shares.live) >
               shared_bins();
}

void fdri_shares_note_taken(const struct fdri_thread *t)
{
    uint32_t off = fdri_atomic_load_acquire(&fdri_life_recording.shares.richest_hint); /* A:hint */
    uint32_t mine = fdri_thread_offset_of(t, t->loc);
    if (off == mine) return;
    bool more = !off ||
                fdri_shares_history(t->loc) > fdri_shares_history(fdri_bins_at(&fdri_life_recording.arena, off));
    /* R:hint - pairs with A:hint: the location is complete, as with R:location; else: a chain that ends in zeros */
    if (more) fdri_atomic_store_release(&fdri_life_recording.shares.richest_hint, mine);
}

/* Examines the remembered location and the next few on the chain; the cursor continues from call to call. A location
 * that gave nothing the last time, though it holds most, is chosen only if no other gives and it is among these. */
struct fdri_arena_location *fdri_shares_richest(struct fdri_thread *t, enum fdri_shares_givers givers)
{
    struct fdri_bins_arena *a = &fdri_life_recording.arena;
    uint32_t off = fdri_atomic_load_acquire(&fdri_life_recording.shares.cursor);            /* A:hint */
    uint32_t best_off = fdri_atomic_load_acquire(&fdri_life_recording.shares.richest_hint); /* A:hint */
    uint32_t over = t->gave_nothing_off;
    struct fdri_arena_location *best = best_off && best_off != over ? fdri_bins_at(a, best_off) : NULL, *again = NULL;
    if (best == t->loc) best = NULL;
    t->gave_nothing_off = 0;
    if (best && may_give_to(best, t, givers)) return best;
    for (int i = 0; i < FDRI_SHARES_LOOK; i++) {
        if (!off) off = fdri_atomic_load_acquire(&a->super->location_first); /* A:location */
        struct fdri_arena_location *l = fdri_bins_at(a, off);
        bool passed_over = off == over;
        off = l->next;
        if (passed_over && !l->samples_off) again = l;
        else if (l != t->loc && !l->samples_off && (!best || fdri_shares_units(l) > fdri_shares_units(best))) best = l;
    }
    if (!best || !may_give_to(best, t, givers)) best = again;
    fdri_atomic_store_release(&fdri_life_recording.shares.cursor, off); /* R:hint */
    if (!best || !may_give_to(best, t, givers)) return NULL;
    fdri_atomic_store_release(&fdri_life_recording.shares.richest_hint, fdri_thread_offset_of(t, best)); /* R:hint */
    return best;
}

FDRI_RACY static uint32_t ended_turn(const struct fdri_arena_location *l) { return l->bins_filled_at_end; }

struct fdri_arena_location *fdri_shares_oldest_ended(struct fdri_thread *t)
{
    struct fdri_bins_arena *a = &fdri_life_recording.arena;
    uint32_t off = fdri_atomic_load_acquire(&fdri_life_recording.shares.cursor); /* A:hint */
    struct fdri_arena_location *best = NULL;
    for (int i = 0; i < FDRI_SHARES_LOOK; i++) {
        if (!off) off = fdri_atomic_load_acquire(&a->super->location_first); /* A:location */
        struct fdri_arena_location *l = fdri_bins_at(a, off);
        off = l->next;
        if (l->samples_off || !may_give_to(l, t, FDRI_SHARES_ENDED)) continue;
        if (!best || (int32_t)(ended_turn(l) - ended_turn(best)) < 0) best = l;
    }
    fdri_atomic_store_release(&fdri_life_recording.shares.cursor, off); /* R:hint */
    return best;
}

/* Attaching threads, locations of samples, and [ended] do not count as the only location: they exist beside one. */
bool fdri_shares_only_location(const struct fdri_thread *t)
{
    uint32_t flags = fdri_atomic_load_relaxed(&t->loc->flags);
    bool counts = flags & FDRI_ARENA_LOCATION_LIVE && !(flags & FDRI_ARENA_LOCATION_SAMPLES);
    return counts && fdri_atomic_load_relaxed(&fdri_life_recording.shares.live) <= 1 &&
           !fdri_atomic_load_relaxed(&fdri_life_recording.shares.ended_last);
}
