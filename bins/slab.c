/* SPDX-License-Identifier: MIT */
/* Slabs: what a location's meta blocks lie in. All slabs of a location are on one chain, so that its memory can be
 * given back as a whole when it is folded; slabs given back wait on a stack per size. The stacks lie outside the arena:
 * a reader has no use for them. */
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/atomic.h"
#include "base/bits.h"
#include "bins/bins.h"
#include "bins/slabs.h"
#include "format/arena/arena.h"

#define HALF(hi, lo) ((uint64_t)(hi) << 32 | (uint32_t)(lo))
#define HI(w)        ((uint32_t)((w) >> 32))
#define LO(w)        ((uint32_t)(w))

/* Large ones, which are rare, come in powers of two. */
uint32_t fdri_slab_bytes(uint32_t bytes)
{
    return bytes <= FDRI_SLAB_EXACT ? (uint32_t)fdr_align_up(bytes, FDR_META_ALIGN) : 1u << fdr_log2_ceil(bytes);
}

static uint64_t *stack_of(struct fdri_slabs *s, uint32_t bytes)
{
    return bytes <= FDRI_SLAB_EXACT ? &s->exact[bytes / FDR_META_ALIGN] : &s->power[fdr_log2_floor(bytes)];
}

/* Where what waits on a stack names the next one. */
typedef uint32_t *next_of(const struct fdri_arena *a, uint32_t off);
static uint32_t *next_slab(const struct fdri_arena *a, uint32_t off)
{
    return &((struct fdr_slab *)fdri_at(a, off))->next;
}
static uint32_t *next_slot(const struct fdri_arena *a, uint32_t off)
{
    return &((struct fdr_location *)fdri_at(a, off))->ended_next;
}

/* Memory of one size stays of that size, and a location one, so a `next` that is read after another popped it is
 * garbage at worst: the tag in the word's high half makes the swap fail. */
static uint32_t pop(const struct fdri_arena *a, uint64_t *stack, next_of *next)
{
    uint64_t head = fdr_load_acquire(stack); /* A:slab - pairs with R:slab: the slab is zero but for its head */
    for (int i = 0; i < FDRI_TRIES && LO(head); i++) {
        uint32_t below = fdr_load_relaxed(next(a, LO(head)));
        if (fdr_cas_acq_rel_u64(stack, &head, HALF(HI(head) + 1, below))) return LO(head); /* A:slab */
    }
    return 0;
}

static void push(const struct fdri_arena *a, uint64_t *stack, uint32_t off, next_of *next)
{
    uint64_t head = fdr_load_relaxed(stack);
    do {
        fdr_store_relaxed(next(a, off), LO(head));
    } while (!fdr_cas_acq_rel_u64(stack, &head, HALF(HI(head) + 1, off))); /* R:slab */
}

static uint32_t take_free(const struct fdri_arena *a, struct fdri_slabs *s, uint32_t bytes)
{
    uint32_t off = pop(a, stack_of(s, bytes), next_slab);
    if (off) fdr_sub_relaxed(&s->free_bytes, (uint64_t)bytes);
    return off;
}

static bool has_room(const struct fdri_arena *a, uint64_t need)
{
    uint64_t word = fdr_load_relaxed(&a->super->virgin);
    uint64_t low = a->super->bins_off + (uint64_t)LO(word) * a->super->bin_bytes,
             high = (uint64_t)HI(word) * FDR_META_ALIGN;
    return low + need <= high && fdri_meta_used(a) + need <= a->meta_limit;
}

/* When bins have taken all that is beside the reserve, which lasts from then on. */
bool fdri_meta_spares(const struct fdri_arena *a, struct fdri_slabs *s, enum fdri_other whose, uint64_t bytes)
{
    uint64_t *spared = &s->spared[whose];
    if (has_room(a, bytes + s->reserve)) return true;
    bool may = fdr_add_relaxed(spared, bytes) + bytes <= a->meta_reserve / FDRI_SPARED_SHARE && has_room(a, bytes);
    if (!may) fdr_sub_relaxed(spared, bytes);
    return may;
}

uint32_t fdri_slab_take(struct fdri_arena *a, struct fdri_slabs *s, uint32_t bytes, uint64_t leave)
{
    uint32_t off = take_free(a, s, bytes);
    if (off) return off;
    return has_room(a, bytes + leave) ? fdri_meta_take(a, FDR_META_SLAB, bytes, UINT32_MAX) : 0;
}

uint32_t fdri_slab_take_larger(struct fdri_arena *a, struct fdri_slabs *s, uint32_t bytes)
{
    uint32_t off = 0, most = (uint32_t)fdr_min(2ull * bytes, FDRI_SLAB_EXACT);
    for (uint32_t size = bytes + FDR_META_ALIGN; size <= most && !off; size += FDR_META_ALIGN)
        if (LO(fdr_load_relaxed(stack_of(s, size)))) off = take_free(a, s, size);
    return off;
}

void fdri_slab_give(struct fdri_arena *a, struct fdri_slabs *s, uint32_t off)
{
    struct fdr_slab *slab = fdri_at(a, off);
    uint32_t bytes = slab->head.bytes;
    memset(slab + 1, 0, bytes - sizeof *slab);
    slab->head.kind = FDR_META_FREE;
    fdr_add_relaxed(&s->free_bytes, (uint64_t)bytes);
    push(a, stack_of(s, bytes), off, next_slab);
}

/* Locations are never anything else: whoever comes late to one finds a location. They wait on a stack of their own, and
 * stay on the chain of locations meanwhile. */
uint32_t fdri_slot_take(struct fdri_arena *a, struct fdri_slabs *s) { return pop(a, &s->slots, next_slot); }
void fdri_slot_give(struct fdri_arena *a, struct fdri_slabs *s, uint32_t off) { push(a, &s->slots, off, next_slot); }
