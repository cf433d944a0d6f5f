/* SPDX-License-Identifier: MIT */
/* Strategy `first`: when memory is full nothing more is stored; what was open then is remembered. */
#include "base/bits.h"
#include "recorder/reduce.h"

/* Events that are stored may say of it as which of its tick it began. */
static uint32_t frozen_flags(const struct fdri_thread *t, const struct fdr_level *v)
{
    uint64_t ordinal = v->zero_tick == v->enter_tick >> t->shift ? v->zero_count : 0;
    if (v->flags & FDR_LEVEL_UNTIMED) return FDR_LEVEL_UNTIMED;
    if (!(v->flags & FDR_LEVEL_ORDINAL)) return 0;
    return FDR_LEVEL_ORDINAL | (uint32_t)fdr_min(ordinal, FDR_FROZEN_ORDINAL_MAX) << FDR_FROZEN_ORDINAL;
}

static void freeze(struct fdri_thread *t, uint64_t tick)
{
    struct fdr_location *l = t->loc;
    uint32_t n = l->depth, count = 0;
    uint32_t off = fdri_meta_calm(t, FDR_META_FROZEN, (uint32_t)sizeof(struct fdr_frozen) + n * 16);
    struct fdr_frozen *f = off ? fdri_off(t, off) : NULL;
    for (uint32_t d = 1; d <= n; d++) {
        struct fdr_level *v = fdri_level(t, d);
        bool counted = v->flags &
                       FDR_LEVEL_UNTIMED; /* in no account but `filtered`; its place says how deep the others are */
        if (!counted) v->flags |= FDR_LEVEL_SETTLED;
        if (!f) {
            if (!counted) fdr_bump_relaxed(&v->reduced_gate, 1);
            continue;
        }
        f->frame[count].enter_tick = v->enter_tick;
        f->frame[count].flags = frozen_flags(t, v);
        f->frame[count++].region = v->region;
    }
    if (!f) return;
    f->tick = tick;
    f->count = count;
    fdr_signal_fence();
    l->frozen_off = off;
}

void fdri_stop(struct fdri_thread *t, uint64_t tick)
{
    struct fdr_location *l = t->loc;
    if (l->flags & FDR_LOCATION_STOPPED) return;
    struct fdri_given none = {0, 0, tick >> t->shift, tick >> t->shift};
    fdri_reduction_note(t, FDR_STEP_STOP, FDRI_REASON_OLDEST, NULL, &none, true);
    freeze(t, tick);
    fdr_store_relaxed(&l->flags, l->flags | FDR_LOCATION_STOPPED);
    l->class_closed = UINT32_MAX;
    for (uint32_t d = 0; d <= fdr_levels_in(l->level_blocks); d++) {
        struct fdr_level *v = fdri_level(t, d);
        for (int b = 0; b < FDR_BANDS; b++) v->part[b] = FDRI_GATE_CLOSED;
        if (!v->points_off) continue;
        struct fdr_level_points *points = fdri_off(t, v->points_off);
        for (int c = 0; c < FDR_CLASS_COUNT; c++) points->by_class[c].part = FDRI_GATE_CLOSED;
    }
    fdri_set_soft(t);
}
