/* SPDX-License-Identifier: MIT */
/* The open calls of a thread, read from outside while it runs, for looks that disturb nobody. As in a snapshot, each
 * level is read twice. A level that is equal both times was the open call of its depth when `depth` was read in
 * between. Each enter raises `presented` of its level. So no torn stack is shown: levels that changed are left out, and
 * the reader learns that there may be more. */
#include "base/atomic.h"
#include "base/bits.h"
#include "base/racy.h"
#include "format/arena/arena.h"
#include "recorder/record/sample_stream.h"
#include "recorder/recording.h"
#include "sampler/samples/samples_view.h"

#include <fdr/fdr.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum {
    OTHER = FDRI_ARENA_LOCATION_LANE | FDRI_ARENA_LOCATION_FREE | FDRI_ARENA_LOCATION_SAMPLES |
            FDRI_ARENA_LOCATION_ENDED
};

static struct fdri_arena_location *location_at(const struct fdr_sampled *d, uint32_t off)
{
    return (void *)(d->t.base + off);
}

FDRI_RACY static bool is_of(const struct fdri_arena_location *l, uint32_t tid)
{
    uint32_t flags = fdri_atomic_load_acquire(&l->flags); /* A:location - kind and tid were stored before LIVE */
    return flags & FDRI_ARENA_LOCATION_LIVE && !(flags & (uint32_t)OTHER) && l->tid == tid;
}

/* A thread gets its location with its first event. So the chain is searched again only if it has grown. */
FDRI_RACY static uint32_t search(struct fdr_sampled *d)
{
    const struct fdri_arena_superblock *s = fdri_life_recording.arena.super;
    uint32_t count = fdri_atomic_load_relaxed(&s->location_count);
    if (d->searched == count) return 0;
    d->searched = count;
    uint32_t off = fdri_atomic_load_acquire(&s->location_first); /* A:location */
    while (off && !is_of(location_at(d, off), d->tid)) off = location_at(d, off)->next;
    return off;
}

/* The location that the stream's thread records into; NULL: none, or the thread has ended. */
FDRI_RACY static const struct fdri_arena_location *watched(struct fdr_sampled *d)
{
    if (d->watched_off && !is_of(location_at(d, d->watched_off), d->tid)) d->watched_off = d->searched = 0;
    if (!d->watched_off) d->watched_off = search(d);
    return d->watched_off ? location_at(d, d->watched_off) : NULL;
}

FDRI_RACY bool fdri_record_watch(struct fdr_sampled *d)
{
    const struct fdri_arena_location *l = watched(d);
    if (!l) return false;
    if (d->t.loc->parent == UINT32_MAX && !d->several) d->t.loc->parent = l->id;
    return l->pause;
}

/* NULL: the location is another thread's by now, and its words are anything. */
FDRI_RACY static const struct fdri_arena_level *level_of(const struct fdr_sampled *d,
                                                         const struct fdri_arena_location *l, uint32_t depth)
{
    uint32_t block = fdri_arena_level_block(depth), off = l->levels_off[block];
    uint64_t end = off + (uint64_t)fdri_arena_levels_bytes(fdri_arena_levels_of(block));
    if (!off || end > fdri_life_recording.arena.super->arena_bytes) return NULL;
    return &((const struct fdri_arena_levels_block *)(const void *)(d->t.base + off))
                ->level[fdri_arena_level_entry(depth)];
}

struct call {
    uint64_t presented; /* at this depth, this call included */
    uint64_t region;
};
FDRI_RACY static bool read_call(const struct fdr_sampled *d, const struct fdri_arena_location *l, uint32_t depth,
                                struct call *to)
{
    const struct fdri_arena_level *v = level_of(d, l, depth);
    if (v) *to = (struct call){fdri_atomic_load_relaxed(&v->presented), v->region};
    return v != NULL;
}

FDRI_RACY static uint32_t read_calls(const struct fdr_sampled *d, const struct fdri_arena_location *l, uint32_t depth,
                                     struct call *to)
{
    uint32_t n = 0;
    while (n < depth && read_call(d, l, n + 1, &to[n])) n++;
    return n;
}

/* Counts each call that the thread makes inside of the innermost open one. */
FDRI_RACY static uint64_t made_below(const struct fdr_sampled *d, const struct fdri_arena_location *l, uint32_t depth)
{
    bool there = depth < fdri_arena_levels_in(l->level_blocks) && depth < FDRI_ARENA_LEVELS_MAX;
    const struct fdri_arena_level *v = there ? level_of(d, l, depth + 1) : NULL;
    return v ? fdri_atomic_load_relaxed(&v->presented) : 0;
}

FDRI_RACY static void read_stack(const struct fdr_sampled *d, const struct fdri_arena_location *l,
                                 struct fdri_samples_open_calls *to)
{
    struct call first[FDRI_SAMPLES_OPEN_MOST], again[FDRI_SAMPLES_OPEN_MOST];
    to->tick = fdri_atomic_load_relaxed(&l->last_tick);
    uint32_t depth = fdri_atomic_load_acquire(&l->depth); /* A:frame - pairs with R:frame */
    if (depth > fdri_arena_levels_in(l->level_blocks) || depth > FDRI_ARENA_LEVELS_MAX) depth = 0;
    uint32_t most = (uint32_t)fdri_bits_min(depth, FDRI_SAMPLES_OPEN_MOST), n = read_calls(d, l, most, first);
    fdri_atomic_fence_acquire();                     /* A:frame - the first reading is over before the second begins */
    to->depth = fdri_atomic_load_acquire(&l->depth); /* A:frame */
    to->made = made_below(d, l, depth);
    n = (uint32_t)fdri_bits_min(fdri_bits_min(n, to->depth), read_calls(d, l, n, again));
    fdri_atomic_fence_acquire(); /* A:frame */
    while (to->count < n && !memcmp(&first[to->count], &again[to->count], sizeof *first)) {
        to->region[to->count] = (fdr_region)first[to->count].region;
        to->count++;
    }
    bool still = fdri_atomic_load_relaxed(&l->depth) == depth && fdri_atomic_load_relaxed(&l->last_tick) == to->tick;
    to->whole = still && to->depth == depth && to->count == most;
    to->cut = most < depth || fdri_atomic_load_relaxed(&l->overflow);
}

FDRI_RACY void fdri_record_open_calls(struct fdr_sampled *d, struct fdri_samples_open_calls *to)
{
    const struct fdri_arena_location *l = watched(d);
    to->known = to->whole = to->cut = false;
    to->depth = to->count = 0;
    to->tick = to->made = 0;
    if (!l) return;
    uint32_t id = l->id;
    read_stack(d, l, to);
    to->known = is_of(l, d->tid) && l->id == id;
    if (!to->known) to->count = 0;
}
