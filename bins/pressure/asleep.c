/* SPDX-License-Identifier: MIT */
/* The newest bin of a partition, whole or a piece, taken while its owner sleeps. The owner may write to this bin, so
 * nobody takes it from a thread that runs. But of thousands of waiting threads each would hold one for each of its
 * partitions, for good.
 *
 * The owner's fast path knows nothing of this. It marks the location busy, finds its partition full or not, and writes.
 * So a claimer closes the bin (`limit` is 0), has every thread pass a barrier, and looks whether the owner is busy. If
 * not, every record that the owner begins from then on finds the partition full. It goes the slow way, which begins
 * with fdri_awake.
 *
 * location.asleep, {tag:32, what:32}, says how far this is. The tag rises with each sleep and each bin taken, so a
 * claimer that was held up in between has lost.
 *   AWAKE          nothing is taken
 *   ASLEEP         the owner has not gone the slow way since
 *   TAKEN | off    the only bin of the partition at `off` is the taker's. All that is left to do is one
 *                  compare-and-swap of the list's head, which the owner does as well if it finds this: so it never
 *                  waits
 *
 * A partition whose bin was taken has an empty list and a newest bin that is not in it. Until the owner is awake,
 * `total` is without that bin's records, which `progress` counts. It adds them in a way that a reader can tell at every
 * moment (FORMAT.md, 7.2). bins/pressure/asleep.pml is the model. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/atomic.h"
#include "base/racy.h"
#include "base/system/syscall.h"
#include "bins/bins.h"
#include "bins/partition.h"
#include "bins/pressure/bins_pressure.h"
#include "format/arena/arena.h"
#include "format/codec/encode.h"

enum { AWAKE = 0, ASLEEP = 1, TAKEN = 2, STATE = 3 };

static uint64_t word(uint64_t now, uint32_t what) { return now >> 32 << 32 | what; }
static uint64_t next_word(uint64_t now, uint32_t what) { return ((now >> 32) + 1) << 32 | what; }

bool fdri_asleep(const struct fdri_arena_location *l)
{
    return (fdri_atomic_load_acquire(&l->asleep) & STATE) == ASLEEP; /* L:asleep */
}

bool fdri_fall_asleep(struct fdri_arena_location *l)
{
    uint64_t now = fdri_atomic_load_acquire(&l->asleep); /* L:asleep */
    if ((now & STATE) != AWAKE) return (now & STATE) == ASLEEP;
    return fdri_atomic_cas_acq_rel_u64(&l->asleep, &now, next_word(now, ASLEEP)); /* L:asleep */
}

FDRI_RACY bool fdri_part_newest_only(const struct fdri_bins_arena *a, const struct fdri_arena_part *p)
{
    uint32_t off = (uint32_t)fdri_atomic_load_acquire(&p->list_head); /* A:claim */
    return off && off == p->open_off && !fdri_atomic_load_relaxed(&fdri_bins_bin(a, off)->next) &&
           !(p->flags & FDRI_ARENA_PART_PINNED) &&
           FDRI_ARENA_COMMIT_BITS(p->progress); /* without a record it would not be full */
}

/* A function of its own: ThreadSanitizer sees nothing of what a racy one acquires. */
static __attribute__((noinline)) bool is_out(const struct fdri_arena_location *l)
{
    /* A:busy - what it wrote last is there, also that it has ended */
    uint64_t busy = fdri_atomic_load_acquire(&l->busy);
    return !busy && fdri_atomic_load_relaxed(&l->flags) & FDRI_ARENA_LOCATION_LIVE;
}

/* True: each record that the owner begins from now on finds p full and looks at `asleep`. The owner may have been in
 * the middle of opening a bin that another thread closed since. So the bin has to be the same one. */
FDRI_RACY static bool closed(struct fdri_bins_arena *a, const struct fdri_arena_location *l, struct fdri_arena_part *p)
{
    int saved = errno;
    uint64_t head = fdri_atomic_load_acquire(&p->list_head); /* A:claim */
    uint32_t seq = p->open_seq;
    fdri_atomic_store_relaxed(&p->limit, 0u);
    bool passed = fdri_system_barrier();
    errno = saved;
    if (!passed) fdri_atomic_store_relaxed(&a->no_barrier, 1u); /* so no other bin is closed for nothing */
    if (!passed || !is_out(l)) return false;
    bool same = fdri_atomic_load_acquire(&p->list_head) == head && p->open_seq == seq; /* A:claim */
    return same && !p->limit && fdri_part_newest_only(a, p);
}

/* The list with nothing but bin `head` becomes empty. */
static void end_list(struct fdri_arena_part *p, uint64_t head)
{
    fdri_atomic_cas_acq_rel_u64(&p->list_head, &head, ((head >> 32) + 1) << 32); /* L:claim */
}

FDRI_RACY uint32_t fdri_part_claim_newest(struct fdri_bins_arena *a, struct fdri_arena_location *l,
                                          struct fdri_arena_part *p, uint32_t *size_log2, struct fdri_bins_given *given)
{
    uint64_t now = fdri_atomic_load_acquire(&l->asleep); /* L:asleep */
    if ((now & STATE) != ASLEEP || fdri_atomic_load_relaxed(&a->no_barrier)) return 0;
    if (!fdri_part_newest_only(a, p) || !closed(a, l, p)) return 0;
    uint64_t head = fdri_atomic_load_acquire(&p->list_head), end = p->last_tick; /* A:claim */
    uint64_t taken = word(now, (uint32_t)((uint8_t *)p - a->base) | TAKEN);
    /* L:asleep - nobody was awake or took anything, so all of what was read holds */
    if (!fdri_atomic_cas_acq_rel_u64(&l->asleep, &now, taken)) return 0;
    end_list(p, head);
    /* L:asleep - or the owner did all that */
    fdri_atomic_cas_acq_rel_u64(&l->asleep, &taken, next_word(taken, ASLEEP));
    return fdri_bins_part_popped(a, p, (uint32_t)head, end, size_log2, given);
}

/* The records of a bin that was taken come to `total`, in one store: what that becomes stands in pin_tick before.
 * Left by longjmp at any place in here, it is done once more, and they come to it once. */
static void account(struct fdri_arena_part *p)
{
    if (p->flags & FDRI_ARENA_PART_PINNED) return;
    if (!p->open_off) p->pin_tick = 0; /* where it was left behind everything else */
    if (!p->open_off || (uint32_t)fdri_atomic_load_acquire(&p->list_head)) return; /* A:claim */
    p->floor_tick = p->last_tick;
    p->pin_tick = fdri_codec_part_given(p);
    fdri_atomic_signal_fence();
    p->total = p->pin_tick;
    fdri_atomic_signal_fence();
    fdri_codec_encode_close(p);
    p->open_off = 0;
    fdri_atomic_signal_fence();
    p->pin_tick = 0;
}

void fdri_awake(struct fdri_bins_arena *a, struct fdri_arena_location *l)
{
    uint64_t now = fdri_atomic_load_acquire(&l->asleep); /* L:asleep */
    do {
        struct fdri_arena_part *p = (now & STATE) == TAKEN ? fdri_bins_at(a, (uint32_t)now & ~(uint32_t)STATE) : NULL;
        uint64_t head = p ? fdri_atomic_load_acquire(&p->list_head) : 0; /* A:claim */
        if ((uint32_t)head) end_list(p, head);
    } while (!fdri_atomic_cas_acq_rel_u64(&l->asleep, &now, next_word(now, AWAKE))); /* L:asleep */
    for (uint32_t off = l->parts_first; off; off = ((struct fdri_arena_part *)fdri_bins_at(a, off))->next)
        account(fdri_bins_at(a, off));
}
