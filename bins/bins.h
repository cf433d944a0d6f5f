/* SPDX-License-Identifier: MIT */
/* The hierarchical memory buffer: bins and meta blocks of one arena, and the partitions built of them.
 *
 *   arena = superblock + bins [0,lo) handed out upwards + untouched + meta [hi,end) handed out downwards
 *
 * Invariants (fdri_bins_check walks them):
 *   lo * bin_bytes + bins_off <= hi * 64,  both ends move only towards each other
 *   bins [0,lo) = bins on the free stack + bins held by locations (in lists, in pieces, or given back ahead) + strewn
 *   bins a partition's list is contiguous in seq from head to newest; first_index(next) = first_index + records
 *   generation of a bin is odd exactly while it is in a partition's list: it becomes even when the bin leaves the list,
 *   and odd, by a number never seen before, when its header stands
 *
 * Who may call what at the same time:
 *                 bin_take  bin_give  meta_take  part_*(same part)
 *   bin_take         -         -         -          -
 *   bin_give         -         -         -          -
 *   meta_take        -         -         -          -
 *   part_*           -         -         -          X      (X: only the owner's thread)
 *   part_claim       -         -         -          -      (between claim_enter and claim_leave of its location)
 *
 * Progress: bin_take, bin_give and meta_take are lock-free with at most FDRI_BINS_TRIES tries, then they fail. */
#ifndef FDRI_BINS_BINS_H
#define FDRI_BINS_BINS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/system/topology.h"
#include "format/arena/arena.h"

enum { FDRI_BINS_TRIES = 256, FDRI_BINS_CLAIMERS = 256 };
struct fdri_bins_arena {
    uint8_t *base;
    struct fdri_arena_superblock *super;
    uint64_t bins_off; /* of the superblock: here they stay what they are, whatever becomes of the arena's memory */
    uint32_t bin_log2;
    uint64_t meta_reserve;  /* bytes at the end that bins never take */
    uint64_t meta_limit;    /* most bytes meta may take */
    uint64_t slot_bytes;    /* between the two: room for locations that is left to them */
    uint32_t pinned;        /* atomic: bins in pieces: nobody can claim them */
    uint16_t *strewn;       /* atomic: a word for each bin, strewn.c; NULL: none ever is */
    uint32_t strewn_bins;   /* atomic */
    uint32_t given_eighths; /* atomic: of strewn bins, given back for good and not taken again */
    uint32_t strewn_at;     /* atomic: the word to look at next */
    uint32_t no_barrier;    /* atomic: the kernel has none that passes through other threads, asleep.c */
    /* atomic, claims.c: off of a claimer's location << 32 | off of the one whose bins it takes; 0: nobody */
    uint64_t inside[FDRI_BINS_CLAIMERS];
    uint32_t nodes; /* 1, or how many entries `node` has */
    uint32_t stripe_log2;
    struct fdri_arena_node *node;
    const struct fdri_system_topology *topology;
};
static inline void *fdri_bins_at(const struct fdri_bins_arena *a, uint32_t off) { return a->base + off; }
static inline struct fdri_arena_bin *fdri_bins_bin(const struct fdri_bins_arena *a, uint32_t off)
{
    return (struct fdri_arena_bin *)(void *)(a->base + off);
}
/* A link of what was popped meanwhile may say anything: may it be followed all the same, to be believed by who wins a
 * swap? */
static inline bool fdri_bins_may_be_bin(const struct fdri_bins_arena *a, uint32_t off)
{
    return off >= a->bins_off && off < a->super->arena_bytes && off % FDRI_ARENA_BIN_MIN_BYTES == 0;
}
/* Lays out an empty arena in zeroed memory. Returns 0, or -ENOSPC when `bytes` does not hold two bins. */
int fdri_bins_format(struct fdri_bins_arena *a, void *memory, uint64_t bytes, uint32_t bin_bytes);

/* ---- NUMA: memory lies on the nodes by turns, in stripes; no bin crosses a border ---- */
/* Bytes of a stripe: pages and bins are whole in it. */
uint32_t fdri_bins_stripe_bytes(const struct fdri_system_topology *topology, uint32_t bin_bytes);
/* Divides an empty arena among the nodes of `topology`, which must outlive it. One node: nothing happens. No room for
 * the stacks: the arena stays undivided. */
void fdri_bins_divide(struct fdri_bins_arena *a, const struct fdri_system_topology *topology);
/* Index of the node that the caller runs on; with several, the location's numa_node is set. No system call. */
uint32_t fdri_bins_node_here(const struct fdri_bins_arena *a, struct fdri_arena_location *l);
static inline uint32_t fdri_bins_node_of(const struct fdri_bins_arena *a, uint32_t off)
{
    return a->nodes > 1 ? (off >> a->stripe_log2) % a->nodes : 0;
}
/* A whole bin of node `node`, else of another one, else 0: there is none. Its generation stays even until
 * fdri_bins_part_open. */
uint32_t fdri_bins_take(struct fdri_bins_arena *a, uint32_t node);
/* The held whole bin `off`, or in exchange for it a free one of node `node`: a thread that moved gets its memory after
 * it. */
uint32_t fdri_bins_exchange_nearer(struct fdri_bins_arena *a, uint32_t off, uint32_t node);
void fdri_bins_give(struct fdri_bins_arena *a, uint32_t off);
uint32_t fdri_bins_free_count(const struct fdri_bins_arena *a); /* on the free stack and untouched; a hint */
uint32_t fdri_bins_reachable(const struct fdri_bins_arena *a);  /* all that were handed out or can be */
/* A zeroed meta block of `bytes` (rounded up to 64) or 0. */
uint32_t fdri_bins_meta_take(struct fdri_bins_arena *a, enum fdri_arena_meta_kind kind, uint32_t bytes,
                             uint32_t location);
uint64_t fdri_bins_meta_used(const struct fdri_bins_arena *a);

/* NULL, or what is wrong. For tests and debug builds; the arena must be quiet. */
const char *fdri_bins_check(const struct fdri_bins_arena *a, char *text, size_t text_bytes);

#endif
