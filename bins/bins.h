/* SPDX-License-Identifier: MIT */
/* The memory of one arena: bins and meta blocks, and the partitions built of bins.
 *
 *   arena = superblock + bins [0,lo) handed out upwards + untouched + meta [hi,end) handed out downwards
 *
 *   bins.h, alloc.c            whole bins and meta blocks        slabs.h, slab.c       memory of locations, used again
 *   pieces.h, partition.c      parts of bins                     claims.h, claims.c    taking bins of other locations
 *   partition.h, partition.c   lists of bins                     invariants.c          the walkers
 *   bin_run.h, bin_run.c       bins given back together          pressure/             special cases of scarce memory
 *
 * Neighbours: recorder/ asks for memory and gives it back; format/ has the layout; base/ has the atomics.
 *
 * Invariants (fdri_bins_check verifies them):
 * - lo * bin_bytes + bins_off <= hi * 64; lo only rises and hi only falls.
 * - bins [0,lo) = bins on the free stacks + bins held by locations (in lists, in pieces, or given back ahead) + strewn.
 * - The seq of the bins of a partition rises by 1 from head to newest; first_index(next) = first_index + records.
 * - The generation of a bin is odd exactly while the bin is in a partition's list. It becomes even when the bin leaves
 *   the list. It becomes odd again, with a number never used before, when the next header is complete.
 *
 * What may run at the same time (names without fdri_bins_):
 *                 bin_take  bin_give  meta_take  part_*(same part)
 *   bin_take         -         -         -          -
 *   bin_give         -         -         -          -
 *   meta_take        -         -         -          -
 *   part_*           -         -         -          X      (X: only the owner's thread)
 *   part_claim       -         -         -          -      (between claim_enter and claim_leave of its location)
 *
 * Progress: bin_take and meta_take are lock-free and fail after FDRI_BINS_TRIES tries. bin_give is lock-free and tries
 * until it succeeds. */
#ifndef FDRI_BINS_BINS_H
#define FDRI_BINS_BINS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/atomic.h"
#include "base/system/topology.h"
#include "format/arena/arena.h"

enum { FDRI_BINS_TRIES = 256, FDRI_BINS_CLAIMERS = 256 };
struct fdri_bins_arena {
    uint8_t *base;
    struct fdri_arena_superblock *super;
    /* bins_off of the superblock; this copy stays right if the arena's memory is damaged */
    uint64_t bins_off;
    uint32_t bin_log2;
    uint64_t meta_reserve; /* bytes at the end of the arena that bins never take */
    uint64_t meta_limit;   /* most bytes of all meta blocks */
    /* bytes between bins and meta that bins leave to locations */
    uint64_t slot_bytes;
    uint32_t split_bins; /* atomic: bins split into pieces; they cannot be claimed */
    /* atomic: one word for each bin, strewn.c; NULL: no bin is ever strewn */
    uint16_t *strewn;
    uint32_t strewn_bins; /* atomic */
    /* atomic: eighths of strewn bins that were given back for good and not taken again */
    uint32_t given_eighths;
    uint32_t strewn_cursor; /* atomic: index of the word to look at next */
    /* atomic: not 0: the kernel has no barrier for other threads, asleep.c */
    uint32_t no_barrier;
    /* atomic, claims.c: (offset of the claimer's location) << 32 | offset of the location whose bins it takes; 0:
     * unused */
    uint64_t claimers[FDRI_BINS_CLAIMERS];
    uint32_t nodes; /* 1, or the number of entries of `node` */
    uint32_t stripe_log2;
    struct fdri_arena_node *node;
    const struct fdri_system_topology *topology;
    const char *broken; /* atomic: text of the first condition that did not hold; NULL: all hold */
};
/* A condition that must hold, checked in every build where it costs nothing measurable. If it fails, the work goes on;
 * the next snapshot reports it (recorder/memory/self_check.c). [record] */
#define FDRI_BINS_HOLDS(a, condition)                                                                                  \
    do {                                                                                                               \
        if (__builtin_expect(!(condition), 0)) fdri_bins_broken(a, #condition);                                        \
    } while (0)
static inline void fdri_bins_broken(struct fdri_bins_arena *a, const char *condition)
{
    if (!fdri_atomic_load_relaxed(&a->broken)) fdri_atomic_store_relaxed(&a->broken, condition);
}
static inline void *fdri_bins_at(const struct fdri_bins_arena *a, uint32_t off) { return a->base + off; }
static inline struct fdri_arena_bin *fdri_bins_bin(const struct fdri_bins_arena *a, uint32_t off)
{
    return (struct fdri_arena_bin *)(void *)(a->base + off);
}
/* The link of a bin popped by another thread may have any value. true: `off` may be read as a bin; a later
 * compare-and-swap must prove what was read. */
static inline bool fdri_bins_may_be_bin(const struct fdri_bins_arena *a, uint32_t off)
{
    return off >= a->bins_off && off < a->super->arena_bytes && off % FDRI_ARENA_BIN_MIN_BYTES == 0;
}
/* Lays out an empty arena in zeroed memory. Returns 0, or -ENOSPC if `bytes` has no room for two bins, or exceeds 4
 * GiB. */
int fdri_bins_format(struct fdri_bins_arena *a, void *memory, uint64_t bytes, uint32_t bin_bytes);

/* ---- NUMA: memory lies on the nodes by turns, in stripes; no bin crosses the border of a stripe ---- */
/* Bytes of a stripe. A stripe holds whole pages and whole bins. */
uint32_t fdri_bins_stripe_bytes(const struct fdri_system_topology *topology, uint32_t bin_bytes);
/* Divides an empty arena among the nodes of `topology`, which must outlive it. With one node, or without room for the
 * stacks, the arena stays undivided. */
void fdri_bins_divide(struct fdri_bins_arena *a, const struct fdri_system_topology *topology);
/* Index of the node on which the caller runs. With several nodes it also sets the location's numa_node. No system
 * call. */
uint32_t fdri_bins_node_here(const struct fdri_bins_arena *a, struct fdri_arena_location *l);
static inline uint32_t fdri_bins_node_of(const struct fdri_bins_arena *a, uint32_t off)
{
    return a->nodes > 1 ? (off >> a->stripe_log2) % a->nodes : 0;
}
/* Takes a whole free bin, of node `node` if possible. 0: there is none. Its generation stays even until
 * fdri_bins_part_open. */
uint32_t fdri_bins_take(struct fdri_bins_arena *a, uint32_t node);
/* Exchanges the held whole bin `off` for a free one of node `node`, for a thread that moved there. Returns the bin that
 * the caller holds now: `off` if it lies there already, or if there is none. */
uint32_t fdri_bins_exchange_nearer(struct fdri_bins_arena *a, uint32_t off, uint32_t node);
void fdri_bins_give(struct fdri_bins_arena *a, uint32_t off);
/* bins on the free stacks and in untouched memory; a hint */
uint32_t fdri_bins_free_count(const struct fdri_bins_arena *a);
uint32_t fdri_bins_reachable(const struct fdri_bins_arena *a); /* bins that were handed out or can be */
/* A zeroed meta block of `bytes`, rounded up to 64, with its head filled in; 0: no room. */
uint32_t fdri_bins_meta_take(struct fdri_bins_arena *a, enum fdri_arena_meta_kind kind, uint32_t bytes,
                             uint32_t location);
uint64_t fdri_bins_meta_used(const struct fdri_bins_arena *a);

/* Verify the invariants. Return NULL, or the first violation as a text in `text`. Bounded, also in a damaged arena.
 * Of the whole arena; no other thread may use it. For tests. */
const char *fdri_bins_check(const struct fdri_bins_arena *a, char *text, size_t text_bytes);
/* Of one location, by its owner, outside of changes to its lists; no claimer may be inside. Linear in its bins. */
const char *fdri_bins_check_location(const struct fdri_bins_arena *a, const struct fdri_arena_location *l, char *text,
                                     size_t text_bytes);
/* Of the whole arena while other threads use it: what holds at every moment. Linear in the partitions. The caller keeps
 * locations from being folded. */
const char *fdri_bins_check_running(const struct fdri_bins_arena *a, char *text, size_t text_bytes);

#endif
