/* SPDX-License-Identifier: MIT */
/* Two bands of duration become one where a location holds little for many partitions: each has an open bin, half empty on
 * average, and a table, and with few bins each that is most of what memory loses. Strategy `telescope` only.
 *
 * From then on all calls of band 1 go where those of band 2 go, at every depth. So closure holds as it is: who calls ends
 * later, and is stored in band 2 or a longer one, too. What band 1 holds ages as before and is not added to. */
#include "recorder/recorder.h"

enum { JOINED = 1 };
enum { LEAST_EACH = 16384 }; /* bytes that are held for each partition, its share of the accounts included */

/* Only when memory is full: how much there is to hold is not known before. */
static bool many_parts(const struct fdri_thread *t)
{
    const struct fdr_location *l = t->loc;
    if (l->flags & FDR_LOCATION_JOINED || fdri_rec.set.strategy != FDR_STRATEGY_TELESCOPE || !l->epochs_off)
        return false;
    uint64_t held = (uint64_t)fdr_load_relaxed(&l->bins_held) * fdri_rec.arena.super->bin_bytes;
    return held < (uint64_t)t->order_count * LEAST_EACH && !fdri_may_take(t);
}

static void end_part(struct fdri_thread *t, uint32_t *slot)
{
    struct fdr_part *p = *slot > FDRI_GATE_CLOSED ? fdri_off(t, *slot) : NULL;
    if (!p) return;
    fdri_part_seal(&fdri_rec.arena, p);
    fdri_telescope_sealed(t, p);
    *slot = 0; /* whoever comes asks where to store */
    fdr_signal_fence();
    if (p->table_off) fdri_meta_give(t, p->table_off - (uint32_t)sizeof(struct fdr_meta_head));
    p->table_off = 0;
}

void fdri_join_look(struct fdri_thread *t)
{
    struct fdr_location *l = t->loc;
    if (FDR_LIKELY(!many_parts(t))) return;
    for (uint32_t depth = 1; depth <= l->level_blocks * FDR_LEVELS_PER_BLOCK; depth++)
        end_part(t, &fdri_level(t, depth)->part[JOINED]);
    t->victim = NULL;
    fdr_signal_fence(); /* left before this is set it is done once more, and nobody has used it */
    fdr_store_relaxed(&l->flags, l->flags | FDR_LOCATION_JOINED);
}

uint32_t *fdri_joined_slot(struct fdri_thread *t, uint32_t depth, uint32_t class_, uint32_t *band)
{
    if (class_ != FDR_CLASS_REGION || *band != JOINED || !(t->loc->flags & FDR_LOCATION_JOINED)) return NULL;
    return &fdri_level(t, depth)->part[++*band];
}

void fdri_leave_slots(struct fdri_thread *t, const struct fdr_part *p)
{
    uint32_t off = fdri_off_of(t, p), *slot = fdri_slot_of(t, p);
    if (p->class_ == FDR_CLASS_REGION && p->band == JOINED + 1 && slot[-1] == off) slot[-1] = 0;
    *slot = 0;
}
