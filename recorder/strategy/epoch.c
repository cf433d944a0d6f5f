/* SPDX-License-Identifier: MIT */
/* The epochs of a location under strategy `telescope`. A new epoch begins when the newest has consumed its part of the
 * memory; epochs merge in pairs as they age. An epoch boundary is a tick; a bin belongs to the epoch in which it
 * ended. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/atomic.h"
#include "base/bits.h"
#include "format/arena/arena.h"
#include "policies/policies.h"
#include "recorder/memory/memory.h"
#include "recorder/pressure/recorder_pressure.h"
#include "recorder/recording.h"
#include "recorder/shares/shares.h"
#include "recorder/strategy/reduce.h"
#include "recorder/thread/arena_place.h"
#include "recorder/thread/thread_clock.h"
#include "recorder/thread/thread_state.h"

enum { UNITS_LEAST = 8, BINS_LEAST = 4, BINS_LEAST_CROWDED = 12 };

uint64_t fdri_strategy_epoch_total(const struct fdri_thread *t)
{
    const struct fdri_arena_superblock *s = fdri_life_recording.arena.super;
    uint64_t units = fdri_shares_bins_of(t->loc) * (uint64_t)(s->bin_bytes >> 9);
    return fdri_bits_max(units - fdri_bits_min(units, t->pinned_units),
                         s->bins_total / 16 * (uint64_t)(s->bin_bytes >> 9));
}

uint32_t fdri_strategy_epoch_tiers(const struct fdri_arena_epochs *e) { return e->count ? e->epoch[0].tier + 1 : 1; }

uint32_t fdri_strategy_epoch_of(const struct fdri_arena_epochs *e, uint64_t tick)
{
    uint32_t i = e->count - 1;
    while (i && e->epoch[i].from_tick >= tick) i--;
    return i;
}

void fdri_strategy_epoch_begin_change(struct fdri_arena_epochs *e)
{
    /* R:epochs - pairs with A:epochs in export/: an odd version; else: a table that names the rows of another epoch */
    fdri_atomic_store_release(&e->version, e->version + 1);
    fdri_atomic_fence_release(); /* R:epochs - a copier that sees any of the following stores finds the odd version */
}

void fdri_strategy_epoch_end_change(struct fdri_arena_epochs *e)
{
    fdri_atomic_signal_fence();
    fdri_atomic_store_release(&e->version, e->version + 1); /* R:epochs */
}

static struct fdri_arena_epochs *new_table(struct fdri_thread *t)
{
    struct fdri_arena_location *l = t->loc;
    uint32_t off = fdri_memory_meta(t, FDRI_ARENA_META_EPOCHS, sizeof(struct fdri_arena_epochs));
    if (!off) return NULL;
    struct fdri_arena_epochs *e = fdri_thread_at(t, off);
    e->epoch[0].from_tick = l->start_tick;
    e->epoch[0].number = l->epoch;
    e->epoch[0].merged_epochs = 1;
    e->count = 1;
    fdri_strategy_epoch_rows_start(t, e);
    fdri_atomic_signal_fence();
    l->epochs_off = off;
    fdri_strategy_telescope_recount(t);
    return e;
}

static void merge_pair(struct fdri_thread *t, struct fdri_arena_epochs *e, uint32_t i)
{
    struct fdri_arena_epoch *a = &e->epoch[i], *b = a + 1;
    fdri_strategy_epoch_begin_change(e);
    fdri_strategy_epoch_rows_merge(t, e, i);
    a->units += b->units;
    a->merged_epochs += b->merged_epochs;
    a->tier = (uint32_t)fdri_bits_min(fdri_bits_max(a->tier, b->tier) + 1, FDRI_POLICIES_TIERS - 1);
    memmove(b, b + 1, (e->count - i - 2) * sizeof *b);
    e->count--;
    fdri_strategy_epoch_end_change(e);
}

/* Merges one pair of epochs. A carry through all tiers takes one opened bin per tier. */
static void merge_one(struct fdri_thread *t, struct fdri_arena_epochs *e)
{
    uint32_t tier[FDRI_ARENA_EPOCHS_MAX], closed = e->count - 1;
    for (uint32_t i = 0; i < closed; i++) tier[i] = e->epoch[i].tier;
    uint32_t i = fdri_policies_merge(tier, closed, FDRI_ARENA_EPOCHS_MAX - 1);
    e->merge_pending = i < closed;
    if (e->merge_pending) merge_pair(t, e, i);
}

static bool begin_epoch(struct fdri_thread *t, struct fdri_arena_epochs *e)
{
    struct fdri_arena_location *l = t->loc;
    uint64_t tick = l->last_tick >> t->shift;
    struct fdri_arena_epoch *last = &e->epoch[e->count - 1];
    if (e->count == FDRI_ARENA_EPOCHS_MAX || tick <= last->from_tick) return false;
    fdri_strategy_epoch_begin_change(e);
    fdri_epoch_rows_cut(t, e, e->count - 1);
    last[1] = (struct fdri_arena_epoch){.from_tick = tick, .number = l->epoch + 1, .merged_epochs = 1};
    e->count++;
    e->opened_units = 0;
    fdri_strategy_epoch_end_change(e);
    l->epoch++;
    return true;
}

/* In a crowded buffer a location begins epochs later: their table would be a good part of its few bins. */
static uint32_t min_bins(void) { return fdri_shares_crowded() ? BINS_LEAST_CROWDED : BINS_LEAST; }

/* All existing totals rows get their base when epochs begin. So epochs begin before there are too many rows for one
 * step. */
void fdri_strategy_epochs_begin_early(struct fdri_thread *t)
{
    bool own = !(t->loc->flags & FDRI_ARENA_LOCATION_ENDED) && !t->loc->samples_off;
    if (own && !fdri_strategy_epochs(t) && !fdri_shares_crowded()) new_table(t);
}

bool fdri_strategy_epoch_opened(struct fdri_thread *t, uint32_t units)
{
    struct fdri_arena_location *l = t->loc;
    struct fdri_arena_epochs *e = fdri_strategy_epochs(t);
    if (!e &&
        (fdri_atomic_load_relaxed(&l->bins_held) < min_bins() || l->epoch_bins % BINS_LEAST || !(e = new_table(t))))
        return false;
    e->opened_units += units;
    uint64_t most = fdri_policies_epoch_bytes(&fdri_life_recording.settings.tiers, fdri_strategy_epoch_tiers(e),
                                              fdri_strategy_epoch_total(t));
    return e->merge_pending || e->totals_pending || e->opened_units >= fdri_bits_max(most, UNITS_LEAST);
}

bool fdri_strategy_epoch_step(struct fdri_thread *t)
{
    struct fdri_arena_epochs *e = fdri_strategy_epochs(t);
    if (e->totals_pending) {
        fdri_epoch_walk(t);
        return false;
    }
    uint64_t since = fdri_thread_tick_now();
    bool cuts = !e->merge_pending && begin_epoch(t, e);
    if (e->merge_pending || e->count == FDRI_ARENA_EPOCHS_MAX) merge_one(t, e);
    e->merge_pending |= cuts;
    fdri_strategy_reduction_took(t, since);
    return cuts;
}

/* After a change was broken off, the epochs begin anew in their blocks, with one epoch for all totals so far. This may
 * be broken off, too: the version stays odd until it is complete. */
void fdri_strategy_epochs_mend(struct fdri_thread *t)
{
    struct fdri_arena_epochs *e = fdri_strategy_epochs(t);
    if (!e || !(e->version & 1)) return;
    fdri_strategy_epoch_rows_anew(t, e);
    e->epoch[0] = (struct fdri_arena_epoch){
        .from_tick = t->loc->start_tick, .number = t->loc->epoch, .merged_epochs = 1};
    e->count = 1;
    e->opened_units = e->merge_pending = 0;
    fdri_strategy_epoch_end_change(e);
    if (!t->pinning) fdri_strategy_telescope_recount(t); /* pinning recounts afterwards */
}
