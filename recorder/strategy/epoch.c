/* SPDX-License-Identifier: MIT */
/* The epochs of a location under strategy `telescope`: cut when they have consumed their part of the memory, merged
 * two by two as they age. A cut is a tick; bins belong to the epoch in which they ended. */
#include <fdr/reader.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/atomic.h"
#include "base/bits.h"
#include "format/arena/arena.h"
#include "policies/policies.h"
#include "recorder/life/recording.h"
#include "recorder/memory/memory.h"
#include "recorder/pressure/recorder_pressure.h"
#include "recorder/record/record.h"
#include "recorder/shares/shares.h"
#include "recorder/strategy/reduce.h"
#include "recorder/strategy/strategy.h"
#include "recorder/thread/thread_state.h"

enum { UNITS_LEAST = 8, BINS_LEAST = 4, BINS_LEAST_CROWDED = 12 };

uint64_t fdri_epoch_total(const struct fdri_thread *t)
{
    const struct fdr_superblock *s = fdri_rec.arena.super;
    uint64_t units = fdri_share_held(t->loc) * (uint64_t)(s->bin_bytes >> 9);
    return fdr_max(units - fdr_min(units, t->aside_units), s->bins_total / 16 * (uint64_t)(s->bin_bytes >> 9));
}

uint32_t fdri_epoch_tiers(const struct fdr_epochs *e) { return e->count ? e->epoch[0].tier + 1 : 1; }

uint32_t fdri_epoch_of(const struct fdr_epochs *e, uint64_t tick)
{
    uint32_t i = e->count - 1;
    while (i && e->epoch[i].from_tick >= tick) i--;
    return i;
}

void fdri_epoch_begin_change(struct fdr_epochs *e)
{
    fdr_store_release(&e->version, e->version + 1); /* R:epochs - pairs with A:epochs in export/ */
    fdr_fence_release(); /* R:epochs - who copies a byte of what follows finds the odd version */
}

void fdri_epoch_end_change(struct fdr_epochs *e)
{
    fdr_signal_fence();
    fdr_store_release(&e->version, e->version + 1); /* R:epochs */
}

static struct fdr_epochs *start(struct fdri_thread *t)
{
    struct fdr_location *l = t->loc;
    uint32_t off = fdri_meta(t, FDR_META_EPOCHS, sizeof(struct fdr_epochs));
    if (!off) return NULL;
    struct fdr_epochs *e = fdri_off(t, off);
    e->epoch[0].from_tick = l->start_tick;
    e->epoch[0].number = l->epoch;
    e->epoch[0].births = 1;
    e->count = 1;
    fdri_epoch_rows_start(t, e);
    fdr_signal_fence();
    l->epochs_off = off;
    fdri_telescope_recount(t);
    return e;
}

static void merge(struct fdri_thread *t, struct fdr_epochs *e, uint32_t i)
{
    struct fdr_epoch *a = &e->epoch[i], *b = a + 1;
    fdri_epoch_begin_change(e);
    fdri_epoch_rows_merge(t, e, i);
    a->units += b->units;
    a->births += b->births;
    a->tier = (uint32_t)fdr_min(fdr_max(a->tier, b->tier) + 1, FDRI_TIERS - 1);
    memmove(b, b + 1, (e->count - i - 2) * sizeof *b);
    e->count--;
    fdri_epoch_end_change(e);
}

/* One at a time: a carry through all tiers takes as many bins opened as there are tiers. */
static void merge_one(struct fdri_thread *t, struct fdr_epochs *e)
{
    uint32_t tier[FDR_EPOCHS_MAX], closed = e->count - 1;
    for (uint32_t i = 0; i < closed; i++) tier[i] = e->epoch[i].tier;
    uint32_t i = fdri_policy_merge(tier, closed, FDR_EPOCHS_MAX - 1);
    e->merging = i < closed;
    if (e->merging) merge(t, e, i);
}

static bool cut(struct fdri_thread *t, struct fdr_epochs *e)
{
    struct fdr_location *l = t->loc;
    uint64_t tick = l->last_tick >> t->shift;
    struct fdr_epoch *last = &e->epoch[e->count - 1];
    if (e->count == FDR_EPOCHS_MAX || tick <= last->from_tick) return false;
    fdri_epoch_begin_change(e);
    fdri_epoch_rows_cut(t, e, e->count - 1);
    last[1] = (struct fdr_epoch){.from_tick = tick, .number = l->epoch + 1, .births = 1};
    e->count++;
    e->opened = 0;
    fdri_epoch_end_change(e);
    l->epoch++;
    return true;
}

/* Where each of many threads has a few bins the table of epochs would be a good part of that. */
static uint32_t least(void) { return fdri_crowded() ? BINS_LEAST_CROWDED : BINS_LEAST; }

/* All rows there are get their base at once when epochs begin: they do so before there are too many for one step. */
void fdri_epochs_early(struct fdri_thread *t)
{
    bool own = !(t->loc->flags & FDR_LOCATION_ENDED) && !t->loc->samples_off;
    if (fdri_rec.set.strategy == FDR_STRATEGY_TELESCOPE && own && !fdri_epochs(t) && !fdri_crowded()) start(t);
}

bool fdri_epoch_opened(struct fdri_thread *t, uint32_t units)
{
    struct fdr_location *l = t->loc;
    struct fdr_epochs *e = fdri_epochs(t);
    if (!e && (fdr_load_relaxed(&l->bins_held) < least() || l->epoch_bins % BINS_LEAST || !(e = start(t))))
        return false;
    e->opened += units;
    uint64_t most = fdri_policy_epoch(&fdri_rec.set.tiers, fdri_epoch_tiers(e), fdri_epoch_total(t));
    return e->merging || e->walking || e->opened >= fdr_max(most, UNITS_LEAST);
}

bool fdri_epoch_step(struct fdri_thread *t)
{
    struct fdr_epochs *e = fdri_epochs(t);
    if (e->walking) {
        fdri_epoch_walk(t);
        return false;
    }
    uint64_t since = fdri_tick_now();
    bool cuts = !e->merging && cut(t, e);
    if (e->merging || e->count == FDR_EPOCHS_MAX) merge_one(t, e);
    e->merging |= cuts;
    fdri_reduction_took(t, since);
    return cuts;
}

/* Left in the middle of a change they begin anew in their blocks, with one epoch of all that is in the totals. This may
 * be left in its turn; the version is odd until it is done. */
void fdri_epochs_abandoned(struct fdri_thread *t)
{
    struct fdr_epochs *e = fdri_epochs(t);
    if (!e || !(e->version & 1)) return;
    fdri_epoch_rows_anew(t, e);
    e->epoch[0] = (struct fdr_epoch){.from_tick = t->loc->start_tick, .number = t->loc->epoch, .births = 1};
    e->count = 1;
    e->opened = e->merging = 0;
    fdri_epoch_end_change(e);
    if (!t->setting_aside) fdri_telescope_recount(t); /* else behind that */
}
