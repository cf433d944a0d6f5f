/* SPDX-License-Identifier: MIT */
/* Strategy `first`: when memory is full nothing more is stored; what was open then is remembered, in blocks that came
 * with the levels: no room is sure by then. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/atomic.h"
#include "base/bits.h"
#include "bins/partition.h"
#include "format/arena/arena.h"
#include "policies/policies.h"
#include "recorder/memory/memory.h"
#include "recorder/strategy/reduce.h"
#include "recorder/strategy/strategy.h"
#include "recorder/thread/thread.h"
#include "recorder/thread/thread_state.h"

/* Events that are stored may say of it as which of its tick it began. */
static uint32_t frozen_flags(const struct fdri_thread *t, const struct fdr_level *v)
{
    uint64_t ordinal = v->zero_tick == v->enter_tick >> t->shift ? v->zero_count : 0;
    if (v->flags & FDR_LEVEL_UNTIMED) return FDR_LEVEL_UNTIMED;
    if (!(v->flags & FDR_LEVEL_ORDINAL)) return 0;
    return FDR_LEVEL_ORDINAL | (uint32_t)fdr_min(ordinal, FDR_FROZEN_ORDINAL_MAX) << FDR_FROZEN_ORDINAL;
}

bool fdri_frozen_ahead(struct fdri_thread *t, uint32_t levels)
{
    uint32_t room = 0, *link = &t->frozen_off;
    while (*link) {
        struct fdr_frozen *f = fdri_off(t, *link);
        room += fdr_frozen_room(f);
        link = &f->next;
    }
    if (room >= levels) return true;
    uint32_t off = fdri_meta(t, FDR_META_FROZEN, fdr_frozen_bytes(levels - room));
    if (off) *link = off;
    return off != 0;
}

bool fdri_was_frozen(const struct fdri_thread *t, uint32_t depth)
{
    uint32_t off = depth ? t->loc->frozen_off : 0;
    for (const struct fdr_frozen *f; off; off = f->next) {
        f = fdri_off(t, off);
        if (depth <= f->count) return !(f->frame[depth - 1].flags & FDR_LEVEL_UNTIMED);
        depth -= f->count;
    }
    return false;
}

static void freeze_level(struct fdri_thread *t, struct fdr_frozen *f, struct fdr_level *v)
{
    /* What is only counted is in no account but `filtered`; its place says how deep the others are. */
    if (!(v->flags & FDR_LEVEL_UNTIMED)) v->flags |= FDR_LEVEL_SETTLED;
    f->frame[f->count].enter_tick = v->enter_tick;
    f->frame[f->count].flags = frozen_flags(t, v);
    f->frame[f->count++].region = v->region;
}

/* There are no fewer frames than levels. A handler may have left this by longjmp half way, and another call come
 * here. */
static void freeze(struct fdri_thread *t, uint64_t tick)
{
    struct fdr_location *l = t->loc;
    uint32_t d = 1;
    for (uint32_t off = t->frozen_off; off;) {
        struct fdr_frozen *f = fdri_off(t, off);
        f->tick = tick;
        f->count = 0;
        for (uint32_t room = fdr_frozen_room(f); room && d <= l->depth; room--, d++)
            freeze_level(t, f, fdri_level(t, d));
        off = f->next;
    }
    fdr_signal_fence();
    l->frozen_off = t->frozen_off;
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
