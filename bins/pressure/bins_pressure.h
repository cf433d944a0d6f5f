/* SPDX-License-Identifier: MIT */
/* Special cases of scarce memory: pieces that come back, strewn bins, bins of idle owners. Simpler mechanisms shall
 * replace them; do not add users.
 *
 *   returned.c  pieces that another thread gives back       strewn.c  bins whose pieces belong to several locations
 *   asleep.c    taking the newest bin of an idle owner */
#ifndef FDRI_BINS_PRESSURE_BINS_PRESSURE_H
#define FDRI_BINS_PRESSURE_BINS_PRESSURE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/atomic.h"
#include "bins/bins.h"
#include "format/arena/arena.h"

struct fdri_bins_given;
struct fdri_bins_returned;

/* ---- pieces: power-of-two parts of a bin, private to one location ---- */
/* The same for a piece that its owner does not know of: any thread, lock-free. Its header still says how large it
 * is. */
void fdri_piece_return(struct fdri_bins_arena *a, struct fdri_arena_location *l, uint32_t off);
void fdri_piece_collect(struct fdri_bins_arena *a, struct fdri_arena_location *l); /* what was returned; owner only */
/* A whole bin out of what was returned, which is the caller's then, or 0: then *left says what is there. Any thread,
 * lock-free; between claim_enter and claim_leave. */
uint32_t fdri_piece_whole(struct fdri_bins_arena *a, struct fdri_arena_location *l, struct fdri_bins_returned *left);
/* A piece of 1 << size_log2 bytes or more out of what was returned, which another location has from now on; 0: there is
 * none. Its bin is strewn: it was already, or `strew` says that it may be. Any thread, lock-free; between claim_enter
 * and claim_leave. */
uint32_t fdri_piece_adopt(struct fdri_bins_arena *a, struct fdri_arena_location *l, uint32_t size_log2, bool strew,
                          uint32_t *got_log2);

void fdri_arena_strew(struct fdri_bins_arena *a); /* makes room for the words; without, no bin is ever strewn */
bool fdri_may_strew(const struct fdri_bins_arena *a, uint32_t size_log2); /* can pieces of that size change hands? */
/* the least that can, for who wants so much */
uint32_t fdri_strewn_least(const struct fdri_bins_arena *a, uint32_t size_log2);
bool fdri_strewn(const struct fdri_bins_arena *a, uint32_t off); /* is the bin that `off` is in? */
bool fdri_strew(struct fdri_bins_arena *a, uint32_t off);        /* it is from now on; true: it was not */
/* Gives back a piece of a strewn bin for good. Any thread, wait-free; with the last one the bin is free. */
void fdri_strewn_give(struct fdri_bins_arena *a, uint32_t off, uint32_t size_log2);
/* A piece of 1 << size_log2 bytes or more, an eighth at least, out of pieces that were given back. They are of bins of
 * which others still have pieces. 0: none was found. Any thread, wait-free. */
uint32_t fdri_strewn_take(struct fdri_bins_arena *a, uint32_t size_log2, uint32_t *got_log2);
void fdri_strewn_whole(struct fdri_bins_arena *a, uint32_t off); /* the same for all of it at once */
uint32_t fdri_strewn_count(const struct fdri_bins_arena *a);     /* for the walker */
uint64_t fdri_strewn_left(const struct fdri_bins_arena *a);      /* bytes of them that were not given back for good */

/* Did somebody take the owner for asleep, and has it not gone the slow way since? */
bool fdri_asleep(const struct fdri_arena_location *l);
/* It is taken for asleep from now on. */
bool fdri_fall_asleep(struct fdri_arena_location *l);
/* Is one bin, whole or a piece, all that p holds? A hint. */
bool fdri_part_newest_only(const struct fdri_bins_arena *a, const struct fdri_arena_part *p);
/* Takes it, if the owner is taken for asleep and is not in the middle of a record. One try, with a system call; where
 * the kernel does not know that one, never. Between claim_enter and claim_leave, as fdri_bins_part_claim. */
uint32_t fdri_part_claim_newest(struct fdri_bins_arena *a, struct fdri_arena_location *l, struct fdri_arena_part *p,
                                uint32_t *size_log2, struct fdri_bins_given *given);
/* For the busy owner, before it uses its partitions otherwise than to write into one that is not full. It is awake
 * then, and the taken bins are accounted for. Each bin that is taken just now makes it look once more. */
void fdri_awake(struct fdri_bins_arena *a, struct fdri_arena_location *l);
static inline void fdri_stay_awake(struct fdri_bins_arena *a, struct fdri_arena_location *l)
{
    if (__builtin_expect((fdri_atomic_load_relaxed(&l->asleep) & 3) != 0, 0)) fdri_awake(a, l);
}

#endif
