/* SPDX-License-Identifier: MIT */
/* Slabs: the memory of locations' meta blocks. The slabs of a location form one chain, so its memory can be given back
 * as a whole when its accounts are folded. Free slabs lie on one stack per size. The stacks are outside the arena,
 * because no reader needs them. */
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

/* Slabs above FDRI_BINS_SLAB_EXACT bytes are rare; they come in powers of two. */
uint32_t fdri_bins_slab_bytes(uint32_t bytes)
{
    return bytes <= FDRI_BINS_SLAB_EXACT ? (uint32_t)fdri_bits_align_up(bytes, FDRI_ARENA_META_ALIGN)
                                         : 1u << fdri_bits_log2_ceil(bytes);
}

static uint64_t *stack_of(struct fdri_bins_slabs *s, uint32_t bytes)
{
    return bytes <= FDRI_BINS_SLAB_EXACT ? &s->exact[bytes / FDRI_ARENA_META_ALIGN]
                                         : &s->power[fdri_bits_log2_floor(bytes)];
}

/* The word in which a free slab or slot names the next one on its stack. */
typedef uint32_t *next_of(const struct fdri_bins_arena *a, uint32_t off);
static uint32_t *next_slab(const struct fdri_bins_arena *a, uint32_t off)
{
    return &((struct fdri_arena_slab *)fdri_bins_at(a, off))->next;
}
static uint32_t *next_slot(const struct fdri_bins_arena *a, uint32_t off)
{
    return &((struct fdri_arena_location *)fdri_bins_at(a, off))->ended_next;
}

/* A slab keeps its size for ever, and a slot stays a location. A `next` may be read after another thread popped its
 * slab. It is garbage at worst, and the tag in the high half makes the swap fail. */
static uint32_t stack_pop(const struct fdri_bins_arena *a, uint64_t *stack, next_of *next)
{
    /* A:slab - pairs with R:slab: the slab is zero but for its head; else: old numbers in it */
    uint64_t head = fdri_atomic_load_acquire(stack);
    for (int i = 0; i < FDRI_BINS_TRIES && LO(head); i++) {
        uint32_t below = fdri_atomic_load_relaxed(next(a, LO(head)));
        if (fdri_atomic_cas_acq_rel_u64(stack, &head, HALF(HI(head) + 1, below))) return LO(head); /* A:slab */
    }
    return 0;
}

static void stack_push(const struct fdri_bins_arena *a, uint64_t *stack, uint32_t off, next_of *next)
{
    uint64_t head = fdri_atomic_load_relaxed(stack);
    do {
        fdri_atomic_store_relaxed(next(a, off), LO(head));
    } while (!fdri_atomic_cas_acq_rel_u64(stack, &head, HALF(HI(head) + 1, off))); /* R:slab */
}

static uint32_t take_free(const struct fdri_bins_arena *a, struct fdri_bins_slabs *s, uint32_t bytes)
{
    uint32_t off = stack_pop(a, stack_of(s, bytes), next_slab);
    if (off) fdri_atomic_sub_relaxed(&s->free_bytes, (uint64_t)bytes);
    return off;
}

static bool has_room(const struct fdri_bins_arena *a, uint64_t need)
{
    uint64_t word = fdri_atomic_load_relaxed(&a->super->virgin);
    uint64_t low = a->super->bins_off + (uint64_t)LO(word) * a->super->bin_bytes,
             high = (uint64_t)HI(word) * FDRI_ARENA_META_ALIGN;
    return low + need <= high && fdri_bins_meta_used(a) + need <= a->meta_limit;
}

/* Bins may have taken everything beside the reserve. From then on the reserve is all that is left, so each user is
 * limited to its share. */
bool fdri_bins_meta_spares(const struct fdri_bins_arena *a, struct fdri_bins_slabs *s, enum fdri_bins_spare_user user,
                           uint64_t bytes)
{
    uint64_t *spared = &s->reserve_used[user];
    if (has_room(a, bytes + s->reserve)) return true;
    bool may = fdri_atomic_add_relaxed(spared, bytes) + bytes <= a->meta_reserve / FDRI_BINS_SPARED_SHARE &&
               has_room(a, bytes);
    if (!may) fdri_atomic_sub_relaxed(spared, bytes);
    return may;
}

uint32_t fdri_bins_slab_take(struct fdri_bins_arena *a, struct fdri_bins_slabs *s, uint32_t bytes, uint64_t leave)
{
    uint32_t off = take_free(a, s, bytes);
    if (off) return off;
    return has_room(a, bytes + leave) ? fdri_bins_meta_take(a, FDRI_ARENA_META_SLAB, bytes, UINT32_MAX) : 0;
}

uint32_t fdri_bins_slab_take_larger(struct fdri_bins_arena *a, struct fdri_bins_slabs *s, uint32_t bytes)
{
    uint32_t off = 0, most = (uint32_t)fdri_bits_min(2ull * bytes, FDRI_BINS_SLAB_EXACT);
    for (uint32_t size = bytes + FDRI_ARENA_META_ALIGN; size <= most && !off; size += FDRI_ARENA_META_ALIGN)
        if (LO(fdri_atomic_load_relaxed(stack_of(s, size)))) off = take_free(a, s, size);
    return off;
}

void fdri_bins_slab_give(struct fdri_bins_arena *a, struct fdri_bins_slabs *s, uint32_t off)
{
    struct fdri_arena_slab *slab = fdri_bins_at(a, off);
    uint32_t bytes = slab->head.bytes;
    memset(slab + 1, 0, bytes - sizeof *slab);
    slab->head.kind = FDRI_ARENA_META_FREE;
    fdri_atomic_add_relaxed(&s->free_bytes, (uint64_t)bytes);
    stack_push(a, stack_of(s, bytes), off, next_slab);
}

/* A slot stays a location for ever, so a thread with an old offset still finds a location there. Free slots lie on a
 * stack of their own, and stay on the chain of locations. */
uint32_t fdri_bins_location_slot_take(struct fdri_bins_arena *a, struct fdri_bins_slabs *s)
{
    return stack_pop(a, &s->slots, next_slot);
}
void fdri_bins_location_slot_give(struct fdri_bins_arena *a, struct fdri_bins_slabs *s, uint32_t off)
{
    stack_push(a, &s->slots, off, next_slot);
}
