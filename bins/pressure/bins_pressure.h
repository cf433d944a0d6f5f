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
/* Gives back a piece that another thread took: pushes it to the returned pieces of l. Its header has its size. Any
 * thread, lock-free. */
void fdri_piece_return(struct fdri_bins_arena *a, struct fdri_arena_location *l, uint32_t off);
void fdri_piece_collect(struct fdri_bins_arena *a, struct fdri_arena_location *l); /* pops them all; owner only */
/* Takes a whole bin out of the returned pieces. 0: there is none, and *left describes the pieces. Any thread,
 * lock-free; inside a claim (fdri_bins_claim_enter). */
uint32_t fdri_piece_whole(struct fdri_bins_arena *a, struct fdri_arena_location *l, struct fdri_bins_returned *left);
/* Takes a piece of 1 << size_log2 bytes or more out of the returned ones, for another location; 0: there is none. The
 * bin of the piece is strewn already, or becomes so if `strew` allows it. Any thread, lock-free; inside a claim. */
uint32_t fdri_piece_adopt(struct fdri_bins_arena *a, struct fdri_arena_location *l, uint32_t size_log2, bool strew,
                          uint32_t *got_log2);

void fdri_arena_strew(struct fdri_bins_arena *a); /* makes room for the bins' words; without it none is ever strewn */
bool fdri_may_strew(const struct fdri_bins_arena *a, uint32_t size_log2); /* may pieces of that size change hands? */
/* the least size that may change hands and is not below size_log2 */
uint32_t fdri_strewn_least(const struct fdri_bins_arena *a, uint32_t size_log2);
bool fdri_strewn(const struct fdri_bins_arena *a, uint32_t off); /* is the bin strewn in which `off` lies? */
bool fdri_strew(struct fdri_bins_arena *a, uint32_t off);        /* makes it so; true: it was not */
/* Gives back a piece of a strewn bin for good. Any thread, wait-free; with the last one the bin is free. */
void fdri_strewn_give(struct fdri_bins_arena *a, uint32_t off, uint32_t size_log2);
/* Takes a piece of 1 << size_log2 bytes or more, an eighth at least, that was given back for good, of a bin with other
 * pieces in use. 0: none was found. Any thread, wait-free. */
uint32_t fdri_strewn_take(struct fdri_bins_arena *a, uint32_t size_log2, uint32_t *got_log2);
void fdri_strewn_whole(struct fdri_bins_arena *a, uint32_t off); /* gives back a strewn bin as a whole */
uint32_t fdri_strewn_count(const struct fdri_bins_arena *a);     /* for fdri_bins_check */
uint64_t fdri_strewn_left(const struct fdri_bins_arena *a);      /* bytes of strewn bins in use */

/* True: a claimer took the owner for asleep, and the owner has not taken the slow path since. */
bool fdri_asleep(const struct fdri_arena_location *l);
/* Takes the owner for asleep. True: it counts as asleep now. */
bool fdri_fall_asleep(struct fdri_arena_location *l);
/* True: p holds one bin only, whole or a piece. A hint. */
bool fdri_part_newest_only(const struct fdri_bins_arena *a, const struct fdri_arena_part *p);
/* Takes the newest bin of p, if the owner counts as asleep and is not in the middle of a record. One try, with a system
 * call; fails if the kernel does not have that call. Inside a claim, as fdri_bins_part_claim. */
uint32_t fdri_part_claim_newest(struct fdri_bins_arena *a, struct fdri_arena_location *l, struct fdri_arena_part *p,
                                uint32_t *size_log2, struct fdri_bins_given *given);
/* Marks the owner awake and accounts for the bins taken from it. The owner calls this, busy, before it touches its
 * partitions, except to write into one that is not full. Each bin taken meanwhile makes it look once more. */
void fdri_awake(struct fdri_bins_arena *a, struct fdri_arena_location *l);
static inline void fdri_stay_awake(struct fdri_bins_arena *a, struct fdri_arena_location *l)
{
    if (__builtin_expect((fdri_atomic_load_relaxed(&l->asleep) & 3) != 0, 0)) fdri_awake(a, l);
}

#endif
