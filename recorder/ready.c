/* SPDX-License-Identifier: MIT */
/* Bins that a reduction gave back for who asks next: a step takes a run of them off a list at once, chooses once and is
 * written down once, and most full bins are replaced without one.
 *
 * They are the location's own and empty, as many as a 64th of what it holds at most: what is kept loses half of
 * that on average. Its owner alone takes from them, so there is nothing to agree upon; when its thread ends they go to all.
 *
 * A header that nobody has read for long costs as much as all else about a bin, and a list is read one after the other. So with each
 * bin taken the next run is looked at by one bin more: when it goes, its headers are at hand. */
#include "recorder/reduce.h"

enum { SHARE = 64, RUN_MOST = 32 };

uint32_t fdri_ready_most(const struct fdri_thread *t)
{
    return (uint32_t)fdr_min(fdr_load_relaxed(&t->loc->bins_held) / SHARE, RUN_MOST);
}

uint32_t fdri_ready_run(const struct fdri_thread *t, const struct fdr_part *asking)
{
    return asking && !t->ready ? fdri_ready_most(t) : 0;
}

/* `off` leads to a chain by `next`: the first is for who asks, the others wait. */
void fdri_ready_keep(struct fdri_thread *t, const struct fdr_part *p, uint32_t off, uint32_t count)
{
    t->ahead = p ? (uint32_t)fdr_load_relaxed(&p->list_head) : 0;
    if (t->ahead) __builtin_prefetch(fdri_bin(&fdri_rec.arena, t->ahead), 1, 3);
    fdr_add_relaxed(&fdri_rec.shares.turn, count - 1ull);
    t->ready = fdr_load_relaxed(&fdri_bin(&fdri_rec.arena, off)->next);
}

uint32_t fdri_ready_take(struct fdri_thread *t, uint32_t size_log2)
{
    struct fdri_arena *a = &fdri_rec.arena;
    uint32_t off = t->ready;
    if (!off) return 0;
    t->ready = fdr_load_relaxed(&fdri_bin(a, off)->next);
    fdr_signal_fence(); /* left here by longjmp it is lost, and not taken twice */
    if (t->ready) __builtin_prefetch(fdri_bin(a, t->ready), 1, 3); /* nobody has looked there for long */
    t->ahead = fdri_part_ahead(a, t->ahead);
    if (a->nodes > 1) off = fdri_bin_nearer(a, off, fdri_node_here(a, t->loc));
    fdri_piece_split(a, t->loc, off, a->bin_log2, size_log2);
    return off;
}

void fdri_ready_release(struct fdri_thread *t)
{
    for (uint32_t off; (off = fdri_ready_take(t, fdri_rec.arena.bin_log2));)
        fdri_piece_give(&fdri_rec.arena, t->loc, off, fdri_rec.arena.bin_log2);
}
