/* SPDX-License-Identifier: MIT */
/* Verifies the invariants of bins.h: of a quiet arena, of one's own location, of an arena in use. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/atomic.h"
#include "base/racy.h"
#include "bins/bins.h"
#include "bins/pressure/bins_pressure.h"
#include "format/arena/arena.h"

static const char *say(char *text, size_t bytes, const char *what, uint64_t where)
{
    snprintf(text, bytes, "%s at offset %llu", what, (unsigned long long)where);
    return text;
}

static const char *check_part(const struct fdri_bins_arena *a, const struct fdri_arena_part *p, char *text,
                              size_t bytes)
{
    uint32_t off = (uint32_t)p->list_head, seq = (uint32_t)(p->list_head >> 32), bins = 0, units = 0;
    uint64_t index = 0, tick = 0;
    for (; off; off = fdri_bins_bin(a, off)->next, seq++, bins++) {
        const struct fdri_arena_bin *b = fdri_bins_bin(a, off);
        if (bins > a->super->bins_total * (a->super->bin_bytes / FDRI_ARENA_BIN_MIN_BYTES))
            return say(text, bytes, "list does not end", off);
        if (b->magic != FDRI_ARENA_BIN_MAGIC) return say(text, bytes, "listed bin without magic", off);
        if (!(b->generation & 1)) return say(text, bytes, "listed bin with even generation", off);
        if (b->seq != seq) return say(text, bytes, "sequence has a gap", off);
        if (bins && b->first_index != index) return say(text, bytes, "first_index does not continue", off);
        if (b->base_tick < tick) return say(text, bytes, "time steps back", off);
        index = b->first_index + FDRI_ARENA_COMMIT_RECORDS(b->commit);
        tick = b->base_tick;
        units += 1u << (b->size_log2 - 9);
    }
    if (bins != p->bins || units != p->bytes)
        return say(text, bytes, "bins or bytes of the partition miscounted", (const uint8_t *)p - a->base);
    return NULL;
}

const char *fdri_bins_check_location(const struct fdri_bins_arena *a, const struct fdri_arena_location *l, char *text,
                                     size_t bytes)
{
    uint64_t most = a->super->arena_bytes / sizeof(struct fdri_arena_part);
    for (uint32_t off = l->parts_first; off; off = ((const struct fdri_arena_part *)fdri_bins_at(a, off))->next) {
        if (off > a->super->arena_bytes - sizeof(struct fdri_arena_part) || !most--)
            return say(text, bytes, "chain of partitions leaves the arena or does not end", off);
        const char *wrong = check_part(a, fdri_bins_at(a, off), text, bytes);
        if (wrong) return wrong;
    }
    return NULL;
}

/* The oldest bin of a partition that other threads use: header and head agree, if the head stays where it is. */
FDRI_RACY static bool head_holds(const struct fdri_bins_arena *a, const struct fdri_arena_part *p)
{
    uint64_t head = fdri_atomic_load_acquire(&p->list_head); /* A:list */
    uint32_t off = (uint32_t)head;
    if (!off) return true;
    const volatile struct fdri_arena_bin *b = fdri_bins_bin(a, off);
    bool holds = fdri_bins_may_be_bin(a, off) && b->magic == FDRI_ARENA_BIN_MAGIC && b->seq == head >> 32;
    fdri_atomic_fence_acquire(); /* A:list */
    return holds || fdri_atomic_load_relaxed(&p->list_head) != head;
}

FDRI_RACY static const char *check_heads(const struct fdri_bins_arena *a, const struct fdri_arena_location *l,
                                         char *text, size_t bytes)
{
    const struct fdri_arena_superblock *s = a->super;
    uint64_t most = s->arena_bytes / sizeof(struct fdri_arena_part);
    for (uint32_t off = fdri_atomic_load_acquire(&l->parts_first); off;) { /* A:part */
        if (off > s->arena_bytes - sizeof(struct fdri_arena_part) || !most--)
            return say(text, bytes, "chain of partitions leaves the arena or does not end", off);
        const struct fdri_arena_part *p = fdri_bins_at(a, off);
        if (!head_holds(a, p)) return say(text, bytes, "the oldest bin of a partition is not its own", off);
        off = fdri_atomic_load_relaxed(&p->next);
    }
    return NULL;
}

const char *fdri_bins_check_running(const struct fdri_bins_arena *a, char *text, size_t bytes)
{
    const struct fdri_arena_superblock *s = a->super;
    uint64_t ends = fdri_atomic_load_relaxed(&s->virgin), steps = 0;
    uint32_t lo = (uint32_t)ends, hi = (uint32_t)(ends >> 32);
    if (s->bins_off + (uint64_t)lo * s->bin_bytes > (uint64_t)hi * FDRI_ARENA_META_ALIGN)
        return say(text, bytes, "bins and meta overlap", lo);
    for (uint32_t off = fdri_atomic_load_acquire(&s->location_first); off; steps++) { /* A:location */
        if (off > s->arena_bytes - sizeof(struct fdri_arena_location) ||
            steps > s->arena_bytes / sizeof(struct fdri_arena_location))
            return say(text, bytes, "chain of locations leaves the arena or does not end", off);
        const struct fdri_arena_location *l = fdri_bins_at(a, off);
        bool nobodys = fdri_atomic_load_acquire(&l->flags) & FDRI_ARENA_LOCATION_FREE; /* A:location */
        const char *wrong = nobodys ? NULL : check_heads(a, l, text, bytes);
        if (wrong) return wrong;
        off = fdri_atomic_load_relaxed(&l->next);
    }
    return NULL;
}

const char *fdri_bins_check(const struct fdri_bins_arena *a, char *text, size_t bytes)
{
    const struct fdri_arena_superblock *s = a->super;
    uint32_t lo = (uint32_t)s->virgin, hi = (uint32_t)(s->virgin >> 32), free_bins = 0, held = 0, steps = 0;
    uint64_t strewn = 0;
    if (s->bins_off + (uint64_t)lo * s->bin_bytes > (uint64_t)hi * FDRI_ARENA_META_ALIGN)
        return say(text, bytes, "bins and meta overlap", lo);
    for (uint32_t node = 0; node < a->nodes; node++) {
        uint32_t before = free_bins;
        for (uint32_t i = (uint32_t)(a->nodes > 1 ? a->node[node].free_stack : s->free_stack); i; free_bins++) {
            if (i > lo || free_bins > lo) return say(text, bytes, "free stack leaves the bins or does not end", i);
            uint32_t off = (uint32_t)(s->bins_off + (uint64_t)(i - 1) * s->bin_bytes);
            if (fdri_bins_bin(a, off)->generation & 1) return say(text, bytes, "free bin with odd generation", off);
            if (fdri_bins_node_of(a, off) != node) return say(text, bytes, "free bin on another node's stack", off);
            i = fdri_bins_bin(a, off)->next;
        }
        if (a->nodes > 1 && a->node[node].free_bins != free_bins - before)
            return say(text, bytes, "free bins of a node miscounted", node);
    }
    if (free_bins != s->free_bins) return say(text, bytes, "free bins miscounted", free_bins);
    for (uint32_t off = s->location_first; off; steps++) {
        if (steps > s->arena_bytes / sizeof(struct fdri_arena_location))
            return say(text, bytes, "chain of locations does not end", off);
        const struct fdri_arena_location *l = fdri_bins_at(a, off);
        bool nobodys = (l->flags & (FDRI_ARENA_LOCATION_FREE | FDRI_ARENA_LOCATION_ENDED)) == FDRI_ARENA_LOCATION_FREE;
        if (nobodys && l->bins_held) return say(text, bytes, "a free location holds bins", off);
        held += l->bins_held;
        strewn += (uint64_t)l->strewn_units << 9;
        const char *wrong = fdri_bins_check_location(a, l, text, bytes);
        if (wrong) return wrong;
        off = l->next;
    }
    if (held + fdri_strewn_count(a) + free_bins != lo)
        return say(text, bytes, "bins lost: held + strewn + free is not what was handed out", held);
    if (strewn > fdri_strewn_left(a)) return say(text, bytes, "more is held of strewn bins than there is", strewn);
    return NULL;
}
