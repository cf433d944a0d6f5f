/* SPDX-License-Identifier: MIT */
/* The lock-free allocators: whole bins, from a stack of free bins per NUMA node or from untouched memory, and meta
 * blocks. alloc.pml is the model of this file. */
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/atomic.h"
#include "base/bits.h"
#include "base/racy.h"
#include "base/system/topology.h"
#include "bins/bins.h"
#include "format/arena/arena.h"

#define HALF(hi, lo) ((uint64_t)(hi) << 32 | (uint32_t)(lo))
#define HI(w)        ((uint32_t)((w) >> 32))
#define LO(w)        ((uint32_t)(w))

int fdri_bins_format(struct fdri_bins_arena *a, void *memory, uint64_t bytes, uint32_t bin_bytes)
{
    struct fdri_arena_superblock *s = memory;
    uint64_t bins_off = fdri_bits_align_up(FDRI_ARENA_SUPERBLOCK_BYTES, bin_bytes);
    bytes &= ~(uint64_t)(FDRI_ARENA_META_ALIGN - 1);
    if (bytes > UINT32_MAX || bytes < bins_off + 2 * (uint64_t)bin_bytes + 8192) return -ENOSPC;
    memcpy(s->magic, FDRI_ARENA_MAGIC, 8);
    s->format_version = FDRI_ARENA_FORMAT_VERSION;
    s->header_bytes = FDRI_ARENA_SUPERBLOCK_BYTES;
    s->arena_bytes = bytes;
    s->bins_off = bins_off;
    s->bin_bytes = bin_bytes;
    s->bins_total = (uint32_t)((bytes - bins_off) / bin_bytes);
    s->virgin = HALF(bytes / FDRI_ARENA_META_ALIGN, 0);
    a->base = memory;
    a->super = s;
    a->bins_off = bins_off;
    a->bin_log2 = fdri_bits_log2_floor(bin_bytes);
    a->meta_reserve = bytes / 16;
    a->meta_limit = bytes / 2;
    a->slot_bytes = 0;
    a->nodes = 1;
    a->stripe_log2 = 31;
    a->node = NULL;
    a->topology = NULL;
    a->strewn = NULL;
    a->strewn_bins = a->given_eighths = a->strewn_cursor = 0;
    a->split_bins = a->no_barrier = 0;
    memset(a->claimers, 0, sizeof a->claimers);
    return 0;
}

uint32_t fdri_bins_stripe_bytes(const struct fdri_system_topology *topology, uint32_t bin_bytes)
{
    return (uint32_t)fdri_bits_max(topology->page_bytes, bin_bytes);
}

void fdri_bins_divide(struct fdri_bins_arena *a, const struct fdri_system_topology *topology)
{
    uint32_t count = (uint32_t)fdri_bits_min(topology->nodes, FDRI_SYSTEM_NODES_MAX);
    if (count < 2) return;
    uint32_t bytes = (uint32_t)(sizeof(struct fdri_arena_nodes_block) + count * sizeof(struct fdri_arena_node));
    uint32_t off = fdri_bins_meta_take(a, FDRI_ARENA_META_NODES, bytes, UINT32_MAX);
    if (!off) return;
    struct fdri_arena_nodes_block *b = fdri_bins_at(a, off);
    b->count = count;
    b->stripe_bytes = fdri_bins_stripe_bytes(topology, a->super->bin_bytes);
    for (uint32_t i = 0; i < count; i++) b->node[i].id = topology->id[i];
    a->super->nodes_off = off;
    a->super->node_count = count;
    a->node = b->node;
    a->topology = topology;
    a->stripe_log2 = fdri_bits_log2_floor(b->stripe_bytes);
    a->nodes = count;
}

uint32_t fdri_bins_node_here(const struct fdri_bins_arena *a, struct fdri_arena_location *l)
{
    if (a->nodes < 2) return 0;
    uint32_t node = fdri_system_topology_here(a->topology);
    l->numa_node = a->node[node].id;
    return node;
}

static uint32_t bin_off(const struct fdri_bins_arena *a, uint32_t index)
{
    return (uint32_t)(a->bins_off + ((uint64_t)index << a->bin_log2));
}

static uint32_t bin_index(const struct fdri_bins_arena *a, uint32_t off)
{
    return (uint32_t)((off - a->bins_off) >> a->bin_log2);
}

static uint64_t *free_stack(const struct fdri_bins_arena *a, uint32_t node)
{
    return a->nodes > 1 ? &a->node[node].free_stack : &a->super->free_stack;
}

/* The word is {tag:32, index + 1:32}. The tag rises with every push and pop. So a head that was popped and pushed again
 * in between does not pass for the old one (ABA). The exception is 2^32 operations during one try. */
static uint32_t stack_pop(struct fdri_bins_arena *a, uint32_t node)
{
    struct fdri_arena_superblock *s = a->super;
    uint64_t *stack = free_stack(a, node);
    /* A:pop - pairs with R:push: the bin's `next` is seen; else: a broken stack */
    uint64_t head = fdri_atomic_load_acquire(stack);
    for (int i = 0; i < FDRI_BINS_TRIES; i++) {
        if (!LO(head)) return 0;
        uint32_t off = bin_off(a, LO(head) - 1);
        /* A:pop - garbage if another thread popped the bin: then the swap fails */
        uint32_t next = fdri_racy_peek_acquire(&fdri_bins_bin(a, off)->next);
        if (fdri_atomic_cas_acq_rel_u64(stack, &head, HALF(HI(head) + 1, next))) { /* A:pop */
            fdri_atomic_sub_relaxed(&s->free_bins, 1u);
            if (a->nodes > 1) fdri_atomic_sub_relaxed(&a->node[node].free_bins, 1u);
            return off;
        }
    }
    return 0;
}

static uint32_t virgin_bin(struct fdri_bins_arena *a)
{
    struct fdri_arena_superblock *s = a->super;
    uint64_t word = fdri_atomic_load_relaxed(&s->virgin);
    for (int i = 0; i < FDRI_BINS_TRIES; i++) {
        uint64_t end = bin_off(a, LO(word)) + (1ull << a->bin_log2);
        if (end + a->slot_bytes > (uint64_t)HI(word) * FDRI_ARENA_META_ALIGN || end > s->arena_bytes - a->meta_reserve)
            return 0;
        /* L:virgin - both ends are in one word, so they cannot cross; the memory is zero and needs no order */
        if (fdri_atomic_cas_acq_rel_u64(&s->virgin, &word, HALF(HI(word), LO(word) + 1))) return bin_off(a, LO(word));
    }
    return 0;
}

/* Untouched memory is taken in order. Bins of other nodes go to those nodes' stacks: at most one stripe of each node
 * while no other thread takes bins. */
static uint32_t virgin_bin_of(struct fdri_bins_arena *a, uint32_t node)
{
    for (int i = 0;; i++) {
        uint32_t off = virgin_bin(a);
        if (!off || fdri_bins_node_of(a, off) == node || i == FDRI_BINS_TRIES) return off;
        fdri_bins_give(a, off);
    }
}

uint32_t fdri_bins_take(struct fdri_bins_arena *a, uint32_t node)
{
    uint32_t off = stack_pop(a, node);
    if (!off) off = virgin_bin_of(a, node);
    for (uint32_t i = 1; !off && i < a->nodes; i++) off = stack_pop(a, (node + i) % a->nodes);
    return off;
}

uint32_t fdri_bins_exchange_nearer(struct fdri_bins_arena *a, uint32_t off, uint32_t node)
{
    if (fdri_bins_node_of(a, off) == node) return off;
    uint32_t near = stack_pop(a, node);
    if (!near) near = virgin_bin_of(a, node);
    if (!near) return off;
    fdri_bins_give(a, off);
    return near;
}

void fdri_bins_give(struct fdri_bins_arena *a, uint32_t off)
{
    struct fdri_arena_superblock *s = a->super;
    struct fdri_arena_bin *b = fdri_bins_bin(a, off);
    /* G:give - even: in no list */
    fdri_atomic_store_release(&b->generation, (fdri_atomic_load_relaxed(&b->generation) | 1u) + 1);
    uint32_t node = fdri_bins_node_of(a, off);
    uint64_t *stack = free_stack(a, node);
    fdri_atomic_add_relaxed(&s->free_bins, 1u);
    if (a->nodes > 1) fdri_atomic_add_relaxed(&a->node[node].free_bins, 1u);
    uint64_t head = fdri_atomic_load_relaxed(stack);
    /* A push that gave up would leak the bin, so it tries until it succeeds: each failure is another thread's
     * success. */
    do {
        fdri_atomic_store_relaxed(&b->next, LO(head));
    } while (!fdri_atomic_cas_acq_rel_u64(stack, &head, HALF(HI(head) + 1, bin_index(a, off) + 1))); /* R:push */
}

static uint32_t untouched_bins(const struct fdri_bins_arena *a, uint64_t word)
{
    const struct fdri_arena_superblock *s = a->super;
    uint64_t top = fdri_bits_min((uint64_t)HI(word) * FDRI_ARENA_META_ALIGN - a->slot_bytes,
                                 s->arena_bytes - a->meta_reserve);
    uint64_t low = bin_off(a, LO(word));
    return top > low ? (uint32_t)((top - low) >> a->bin_log2) : 0;
}

uint32_t fdri_bins_free_count(const struct fdri_bins_arena *a)
{
    return fdri_atomic_load_relaxed(&a->super->free_bins) +
           untouched_bins(a, fdri_atomic_load_relaxed(&a->super->virgin));
}

uint32_t fdri_bins_reachable(const struct fdri_bins_arena *a)
{
    uint64_t word = fdri_atomic_load_relaxed(&a->super->virgin);
    return LO(word) + untouched_bins(a, word);
}

uint32_t fdri_bins_meta_take(struct fdri_bins_arena *a, enum fdri_arena_meta_kind kind, uint32_t bytes,
                             uint32_t location)
{
    struct fdri_arena_superblock *s = a->super;
    uint32_t units = (bytes + FDRI_ARENA_META_ALIGN - 1) / FDRI_ARENA_META_ALIGN;
    uint64_t word = fdri_atomic_load_relaxed(&s->virgin);
    for (int i = 0; i < FDRI_BINS_TRIES; i++) {
        uint64_t start = ((uint64_t)HI(word) - units) * FDRI_ARENA_META_ALIGN;
        if (units > HI(word) || start < bin_off(a, LO(word)) || s->arena_bytes - start > a->meta_limit) return 0;
        if (!fdri_atomic_cas_acq_rel_u64(&s->virgin, &word, HALF(HI(word) - units, LO(word)))) continue; /* L:virgin */
        struct fdri_arena_meta_head *h = fdri_bins_at(a, (uint32_t)start);
        h->bytes = units * FDRI_ARENA_META_ALIGN;
        h->location = location;
        h->kind = (uint16_t)kind;
        h->magic = FDRI_ARENA_META_MAGIC;
        return (uint32_t)start;
    }
    return 0;
}

uint64_t fdri_bins_meta_used(const struct fdri_bins_arena *a)
{
    return a->super->arena_bytes - (uint64_t)HI(fdri_atomic_load_relaxed(&a->super->virgin)) * FDRI_ARENA_META_ALIGN;
}
