/* SPDX-License-Identifier: MIT */
#include "base/racy.h"
#include "recorder/recorder.h"

enum { LOOKS = 10000 };

FDR_RACY static void add_part(struct fdr_usage *u, const struct fdri_arena *a, const struct fdr_part *p)
{
    struct fdr_part copy;
    fdr_copy_racy(&copy, p, sizeof copy);
    uint32_t oldest = (uint32_t)copy.list_head, open = copy.open_off;
    uint64_t first = oldest ? fdri_bin(a, oldest)->first_index : fdr_part_given(&copy), ever = first;
    if (oldest) ever = copy.total;
    if (oldest && open)
        ever = fdri_bin(a, open)->first_index + FDR_COMMIT_RECORDS(fdr_load_relaxed(&fdri_bin(a, open)->commit));
    u->stored += ever - first;
    u->reduced += first;
    u->bytes_stored += (uint64_t)p->bytes << 9;
}

FDR_RACY static void add_level(struct fdr_usage *u, const struct fdri_arena *a, const struct fdr_level *v)
{
    u->presented += fdr_load_relaxed(&v->presented);
    u->filtered += fdr_load_relaxed(&v->filtered);
    u->reduced += fdr_load_relaxed(&v->reduced_gate);
    u->lost += fdr_load_relaxed(&v->lost);
    if (!v->points_off) return;
    const struct fdr_level_points *points = fdri_at(a, v->points_off);
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

FDR_RACY static void add_location(struct fdr_usage *u, const struct fdri_arena *a, const struct fdr_location *l)
{
    add_level(u, a, fdri_at(a, l->level0_off));
    for (uint32_t i = 0; i < l->level_blocks; i++) {
        const struct fdr_levels_block *b = fdri_at(a, l->levels_off[i]);
        for (uint32_t k = 0; k < fdr_levels_of(i); k++) add_level(u, a, &b->level[k]);
    }
    for (uint32_t off = fdr_load_acquire(&l->parts_first); off;) { /* A:part */
        const struct fdr_part *p = fdri_at(a, off);
        add_part(u, a, p);
        off = p->next;
    }
    u->presented += l->presented_overflow;
    u->lost += l->lost_overflow;
    u->reductions += l->reduction_steps;
    u->reduction_ns += ns_of(fdr_load_relaxed(&l->reduction_ticks));
    u->reduction_worst_ns = fdr_max(u->reduction_worst_ns, ns_of(fdr_load_relaxed(&l->reduction_worst)));
}

FDR_RACY struct fdr_usage fdr_usage(void)
{
    struct fdr_usage u = {0};
    const struct fdri_arena *a = &fdri_rec.arena;
    if (!fdr_load_relaxed(&fdr_switch_.on)) return u;
    const struct fdr_superblock *s = a->super;
    u.buffer_bytes = s->arena_bytes;
    u.bin_bytes = s->bin_bytes;
    u.bins = s->bins_total;
    u.bins_free = fdri_bins_free(a);
    u.bins_used = (uint32_t)fdr_load_relaxed(&s->virgin) - fdr_load_relaxed(&s->free_bins);
    u.meta_bytes = fdri_meta_bytes();
    u.locations_sure = s->locations_sure;
    u.locations = fdr_load_relaxed(&s->location_count);
    u.snapshots = fdr_load_relaxed(&s->snapshots_taken);
    bool still = fdri_ended_lock(UINT32_MAX, LOOKS);                  /* else what is being folded is left out */
    for (uint32_t off = fdr_load_acquire(&s->location_first); off;) { /* A:location */
        const struct fdr_location *l = fdri_at(a, off);
        uint32_t flags = fdr_load_acquire(&l->flags); /* A:location */
        if (!(flags & FDR_LOCATION_FREE) && (still || !(flags & FDR_LOCATION_FOLDING))) add_location(&u, a, l);
        off = l->next;
    }
    if (still) fdri_ended_unlock();
    uint64_t nowhere = fdr_load_relaxed(&s->lost_unattached);
    u.presented += nowhere;
    u.lost += nowhere;
    return u;
}
