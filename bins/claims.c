/* SPDX-License-Identifier: MIT */
/* Notes which thread takes bins of which location at the moment, so that an owner can keep claimers out.
 *
 * Each claimer inside has a word here that names its location and the other one. A longjmp from a handler, or a
 * cancelled thread, may leave such a word behind. Its owner finds and clears it when it comes back or ends. A counter
 * would not do: it cannot show whether the broken-off claimer had counted itself. */
#include <stdbool.h>
#include <stdint.h>

#include "base/atomic.h"
#include "bins/bins.h"
#include "bins/claims.h"
#include "format/arena/arena.h"

enum { PLACES = 16, LOOKS = 16 };

static uint64_t word_of(const struct fdri_bins_arena *a, const struct fdri_arena_location *claimer,
                        const struct fdri_arena_location *l)
{
    return (uint64_t)((const uint8_t *)claimer - a->base) << 32 | (uint32_t)((const uint8_t *)l - a->base);
}

/* Different claimers start their search at different places. */
static uint32_t place_of(uint64_t word) { return (uint32_t)(word >> 38) * 2654435761u >> 16; }

uint32_t fdri_bins_claim_enter(struct fdri_bins_arena *a, const struct fdri_arena_location *claimer,
                               struct fdri_arena_location *l)
{
    uint64_t word = word_of(a, claimer, l);
    for (uint32_t i = 0, at = place_of(word); i < PLACES; i++) {
        uint64_t *inside = &a->claimers[(at + i) % FDRI_BINS_CLAIMERS], none = 0;
        if (fdri_atomic_load_relaxed(inside) || !fdri_atomic_cas_acq_rel_u64(inside, &none, word)) continue; /* L:pin */
        /* L:pin - pairs with L:pin in claim_pin: both change this word, so a later pin sees `claimers`; else: a claimer
         * in a pinned location */
        if (!(fdri_atomic_add_acq_rel(&l->claim, 0u) & FDRI_BINS_PINNED)) return (at + i) % FDRI_BINS_CLAIMERS + 1;
        fdri_atomic_store_release(inside, 0ull); /* R:inside */
        return 0;
    }
    return 0;
}

void fdri_bins_claim_leave(struct fdri_bins_arena *a, uint32_t place)
{
    /* R:inside - pairs with A:inside: the pinning thread sees all that this claimer stored */
    fdri_atomic_store_release(&a->claimers[place - 1], 0ull);
}

uint64_t fdri_bins_claim_word(const struct fdri_bins_arena *a, uint32_t place)
{
    return fdri_atomic_load_relaxed(&a->claimers[place - 1]);
}

void fdri_bins_claim_leave_as(struct fdri_bins_arena *a, uint32_t place, uint64_t word)
{
    fdri_atomic_cas_acq_rel_u64(&a->claimers[place - 1], &word, 0); /* R:inside */
}

void fdri_bins_claim_abandoned(struct fdri_bins_arena *a, const struct fdri_arena_location *claimer)
{
    uint32_t off = (uint32_t)((const uint8_t *)claimer - a->base);
    for (uint32_t i = 0; i < FDRI_BINS_CLAIMERS; i++)
        if (fdri_atomic_load_relaxed(&a->claimers[i]) >> 32 == off) fdri_bins_claim_leave(a, i + 1);
}

static bool is_inside(const struct fdri_bins_arena *a, const struct fdri_arena_location *l)
{
    uint32_t off = (uint32_t)((const uint8_t *)l - a->base);
    for (uint32_t i = 0; i < FDRI_BINS_CLAIMERS; i++)
        if ((uint32_t)fdri_atomic_load_acquire(&a->claimers[i]) == off) return true; /* A:inside */
    return false;
}

bool fdri_bins_claim_pin(struct fdri_bins_arena *a, struct fdri_arena_location *l)
{
    fdri_atomic_or_acq_rel(&l->claim, FDRI_BINS_PINNED); /* L:pin - no claimer enters from here on */
    for (int i = 0; i < LOOKS; i++)
        if (!is_inside(a, l)) return true;
    return false;
}

void fdri_bins_claim_unpin(struct fdri_arena_location *l)
{
    fdri_atomic_and_acq_rel(&l->claim, ~FDRI_BINS_PINNED); /* L:pin */
}
