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
 * Progress: bin_take, bin_give and meta_take are lock-free with at most FDRI_TRIES tries, then they fail. */
#ifndef FDR_BINS_BINS_H
#define FDR_BINS_BINS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/atomic.h"
#include "base/bits.h"
#include "base/system/topology.h"
#include "format/arena/arena.h"

enum { FDRI_TRIES = 256, FDRI_CLAIMERS = 256 };

struct fdri_arena {
    uint8_t *base;
    struct fdr_superblock *super;
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
    uint64_t inside[FDRI_CLAIMERS];
    uint32_t nodes; /* 1, or how many entries `node` has */
    uint32_t stripe_log2;
    struct fdr_node *node;
    const struct fdr_topology *topology;
};

static inline void *fdri_at(const struct fdri_arena *a, uint32_t off) { return a->base + off; }
static inline struct fdr_bin *fdri_bin(const struct fdri_arena *a, uint32_t off)
{
    return (struct fdr_bin *)(void *)(a->base + off);
}

/* A link of what was popped meanwhile may say anything: may it be followed all the same, to be believed by who wins a
 * swap? */
static inline bool fdri_may_be_bin(const struct fdri_arena *a, uint32_t off)
{
    return off >= a->bins_off && off < a->super->arena_bytes && off % FDR_BIN_MIN_BYTES == 0;
}

/* Lays out an empty arena in zeroed memory. Returns 0, or -ENOSPC when `bytes` does not hold two bins. */
int fdri_arena_format(struct fdri_arena *a, void *memory, uint64_t bytes, uint32_t bin_bytes);

/* ---- NUMA: memory lies on the nodes by turns, in stripes; no bin crosses a border ---- */
/* Bytes of a stripe: pages and bins are whole in it. */
uint32_t fdri_stripe_bytes(const struct fdr_topology *topology, uint32_t bin_bytes);
/* Divides an empty arena among the nodes of `topology`, which must outlive it. One node: nothing happens. No room for
 * the stacks: the arena stays undivided. */
void fdri_arena_divide(struct fdri_arena *a, const struct fdr_topology *topology);
/* Index of the node that the caller runs on; with several, the location's numa_node is set. No system call. */
uint32_t fdri_node_here(const struct fdri_arena *a, struct fdr_location *l);
static inline uint32_t fdri_node_of(const struct fdri_arena *a, uint32_t off)
{
    return a->nodes > 1 ? (off >> a->stripe_log2) % a->nodes : 0;
}

/* A whole bin of node `node`, else of another one, else 0: there is none. Its generation stays even until
 * fdri_part_open. */
uint32_t fdri_bin_take(struct fdri_arena *a, uint32_t node);
/* The held whole bin `off`, or in exchange for it a free one of node `node`: a thread that moved gets its memory after
 * it. */
uint32_t fdri_bin_nearer(struct fdri_arena *a, uint32_t off, uint32_t node);
void fdri_bin_give(struct fdri_arena *a, uint32_t off);
uint32_t fdri_bins_free(const struct fdri_arena *a);  /* on the free stack and untouched; a hint */
uint32_t fdri_bins_reach(const struct fdri_arena *a); /* all that were handed out or can be */

/* A zeroed meta block of `bytes` (rounded up to 64) or 0. */
uint32_t fdri_meta_take(struct fdri_arena *a, enum fdr_meta_kind kind, uint32_t bytes, uint32_t location);
uint64_t fdri_meta_used(const struct fdri_arena *a);

/* ---- slabs: memory of a location's meta blocks; and locations, which are used again as locations only ---- */
enum { FDRI_SLAB_EXACT = 8192 };
struct fdri_slabs {                                       /* atomic words, {tag:32, off:32} */
    uint64_t exact[FDRI_SLAB_EXACT / FDR_META_ALIGN + 1]; /* by bytes / 64 */
    uint64_t power[32];                                   /* larger ones, by log2 */
    uint64_t slots;                                       /* locations */
    uint64_t free_bytes;
    uint64_t reserve; /* bytes at the meta end that slabs leave to locations, what those begin with, and definitions */
    uint64_t spared[2]; /* atomic: bytes that others got when nothing was left beside it, by enum fdri_other */
};
enum fdri_other { FDRI_NOTES, FDRI_STREAMS };
enum { FDRI_SPARED_SHARE = 16 }; /* of what bins never take: the share of each of them in it. Locations leave three */
/* Are there `bytes` at the meta end for one of those: beside the reserve, or of that share, when there is nothing
 * beside it? These count as taken. */
bool fdri_meta_spares(const struct fdri_arena *a, struct fdri_slabs *s, enum fdri_other whose, uint64_t bytes);
uint32_t fdri_slab_bytes(uint32_t bytes); /* what a slab for that many bytes takes */
/* A slab of `bytes` from fdri_slab_bytes, zero but for its head; 0: none. From the meta end only, where `leave` bytes
 * must be left: what is reserved there is for a location that begins. Lock-free, FDRI_TRIES tries. */
uint32_t fdri_slab_take(struct fdri_arena *a, struct fdri_slabs *s, uint32_t bytes, uint64_t leave);
/* A free one of up to twice as many bytes; its head says how many. */
uint32_t fdri_slab_take_larger(struct fdri_arena *a, struct fdri_slabs *s, uint32_t bytes);
void fdri_slab_give(struct fdri_arena *a, struct fdri_slabs *s, uint32_t off);
/* A location that was given back; 0: none. Nothing in it changes but ended_next. */
uint32_t fdri_slot_take(struct fdri_arena *a, struct fdri_slabs *s);
void fdri_slot_give(struct fdri_arena *a, struct fdri_slabs *s, uint32_t off);

/* ---- pieces: power-of-two parts of a bin, private to one location ---- */
uint32_t fdri_piece_take(struct fdri_arena *a, struct fdr_location *l, uint32_t size_log2);
/* The same from the free pieces the location has: no whole bin is taken for it. */
uint32_t fdri_piece_own(struct fdri_arena *a, struct fdr_location *l, uint32_t size_log2);
/* Keeps the lower `want` of a held piece; the rest becomes free pieces of the location. */
void fdri_piece_split(struct fdri_arena *a, struct fdr_location *l, uint32_t off, uint32_t have, uint32_t want);
/* Any free piece this location has, the largest not above size_log2 first, none below least_log2 (>= 9); 0 when it has
 * none. */
uint32_t fdri_piece_any(struct fdri_arena *a, struct fdr_location *l, uint32_t size_log2, uint32_t least_log2,
                        uint32_t *got_log2);
/* The other half of the piece of twice its size. */
static inline struct fdr_bin *fdri_piece_buddy(const struct fdri_arena *a, uint32_t off, uint32_t size_log2)
{
    uint32_t first = (uint32_t)a->bins_off;
    return fdri_bin(a, first + ((off - first) ^ 1u << size_log2));
}
void fdri_piece_give(struct fdri_arena *a, struct fdr_location *l, uint32_t off, uint32_t size_log2);
/* The same for a piece that its owner does not know of: any thread, lock-free. Its header still says how large it
 * is. */
void fdri_piece_return(struct fdri_arena *a, struct fdr_location *l, uint32_t off);
void fdri_piece_collect(struct fdri_arena *a, struct fdr_location *l); /* what was returned; owner only */
/* How much waits in pieces that were returned, 512 bytes each; in those large enough to change hands; of these, in bins
 * that are strewn already. */
struct fdri_returned {
    uint32_t units, fit, strewn;
};
/* A whole bin out of what was returned, which is the caller's then, or 0: then *left says what is there. Any thread,
 * lock-free; between claim_enter and claim_leave. */
uint32_t fdri_piece_whole(struct fdri_arena *a, struct fdr_location *l, struct fdri_returned *left);
/* A piece of 1 << size_log2 bytes or more out of what was returned, which another location has from now on; 0: there is
 * none. Its bin is strewn: it was already, or `strew` says that it may be. Any thread, lock-free; between claim_enter
 * and claim_leave. */
uint32_t fdri_piece_adopt(struct fdri_arena *a, struct fdr_location *l, uint32_t size_log2, bool strew,
                          uint32_t *got_log2);
/* The location ends: of what is left of its pieces, those of strewn bins are given back. */
void fdri_piece_leave(struct fdri_arena *a, struct fdr_location *l);

/* ---- strewn.c: bins whose pieces belong to several locations ---- */
void fdri_arena_strew(struct fdri_arena *a); /* makes room for the words; without, no bin is ever strewn */
bool fdri_may_strew(const struct fdri_arena *a, uint32_t size_log2); /* can pieces of that size change hands? */
uint32_t fdri_strewn_least(const struct fdri_arena *a,
                           uint32_t size_log2);             /* the least that can, for who wants so much */
bool fdri_strewn(const struct fdri_arena *a, uint32_t off); /* is the bin that `off` is in? */
bool fdri_strew(struct fdri_arena *a, uint32_t off);        /* it is from now on; true: it was not */
/* Gives back a piece of a strewn bin for good. Any thread, wait-free; with the last one the bin is free. */
void fdri_strewn_give(struct fdri_arena *a, uint32_t off, uint32_t size_log2);
/* A piece of 1 << size_log2 bytes or more, an eighth at least, out of what was given back of bins others still have
 * pieces of; 0: none was found. Any thread, wait-free. */
uint32_t fdri_strewn_take(struct fdri_arena *a, uint32_t size_log2, uint32_t *got_log2);
void fdri_strewn_whole(struct fdri_arena *a, uint32_t off); /* the same for all of it at once */
uint32_t fdri_strewn_count(const struct fdri_arena *a);     /* for the walker */
uint64_t fdri_strewn_left(const struct fdri_arena *a);      /* bytes of them that were not given back for good */

/* ---- partitions (owner's thread only) ---- */
/* Puts the bin at `off` behind the newest of partition p and makes it the open one. */
void fdri_part_open(struct fdri_arena *a, struct fdr_location *l, struct fdr_part *p, uint32_t off, uint32_t size_log2,
                    uint32_t base_ordinal, uint32_t record_bits_max);
/* Closes the open bin: no record goes there any more. */
void fdri_part_seal(struct fdri_arena *a, struct fdr_part *p);

/* The same after an operation that was given up in the middle: the newest bin is the last one linked, whatever open_off
 * says. The location is pinned. */
void fdri_part_mend(struct fdri_arena *a, struct fdr_part *p);

/* What a step gave back. from_tick 0: from the beginning of the partition on. */
struct fdri_given {
    uint64_t events, bytes, from_tick, to_tick;
};

/* Takes the oldest sealed bin off the list. Returns its off and size, or 0 when only the open bin is left.
 * The caller now holds the bin, its generation is even. */
uint32_t fdri_part_pop(struct fdri_arena *a, struct fdr_part *p, uint32_t *size_log2, struct fdri_given *given);
/* The same, if that bin ends at or before `tick`. */
uint32_t fdri_part_pop_older(struct fdri_arena *a, struct fdr_part *p, uint64_t tick, uint32_t *size_log2,
                             struct fdri_given *given);
/* Bin `off` is no longer listed and the caller's: what it held, which ended at `end`, is added to *given. */
uint32_t fdri_part_popped(struct fdri_arena *a, struct fdr_part *p, uint32_t off, uint64_t end, uint32_t *size_log2,
                          struct fdri_given *given);
/* Does the oldest bin end at or before `tick`, and is it sealed? */
bool fdri_part_older(const struct fdri_arena *a, const struct fdr_part *p, uint64_t tick);
bool fdri_part_has_sealed(const struct fdr_part *p);
/* Newest leave in the oldest bin; UINT64_MAX when there is no bin. */
uint64_t fdri_part_oldest_end(const struct fdri_arena *a, const struct fdr_part *p);

/* ---- runs: bins that a partition gives at once (owner's thread only) ---- */
struct fdri_run_bin {
    uint64_t base_tick, first_index;
    uint32_t off, generation, size_log2, pad;
};
struct fdri_run {
    const struct fdr_part *part;
    uint64_t list, tick; /* its list_head when looking began; bins that end later do not go */
    uint32_t room;       /* bins at most */
    uint32_t ahead;      /* the one to look at next, or 0 */
    uint32_t seen, gone; /* entries of `bin`; of these, popped */
    bool late;           /* the last one seen ended after `tick`: at the base_tick that stands behind it in `bin` */
    struct fdri_run_bin bin[]; /* room + 1: all but the last one seen may go */
};
/* Looks at the oldest bins of p that end at or before `tick` from here on: what it knows of them already it keeps. */
void fdri_run_begin(const struct fdri_arena *a, const struct fdr_part *p, uint64_t tick, struct fdri_run *r);
/* Looks at one bin more and asks the cache for the header behind it; false: that was all. */
bool fdri_run_look(const struct fdri_arena *a, struct fdri_run *r);
void fdri_run_forget(struct fdri_run *r);
/* May there be more to pop? */
static inline bool fdri_run_more(const struct fdri_run *r) { return r->ahead || r->seen - r->gone > 1; }
uint64_t fdri_run_list(const struct fdri_run *r); /* list_head behind those popped; something must have been seen */
/* When the oldest bin that is left behind those popped ends; 0: that is not known. */
static inline uint64_t fdri_run_left_end(const struct fdri_run *r)
{
    return r->seen + r->late > r->gone + 1 ? r->bin[r->gone + 1].base_tick : 0;
}
/* Takes bins that were seen off the list of p, the oldest first: at most `most` whole ones, or small ones of a quarter
 * of that in all if they may go, too. Returns how many, which the caller holds and finds in r->bin; or 0: there are
 * none, or a claimer was faster. */
uint32_t fdri_run_pop(struct fdri_arena *a, struct fdr_part *p, uint32_t most, bool small, struct fdri_run *r,
                      struct fdri_given *given);
/* Those popped hold nothing any more, which each of them must say before it is used for anything else. */
void fdri_run_empty(const struct fdri_arena *a, const struct fdri_run *r);

/* ---- claims: another thread than the owner's takes the oldest bin ----
 * claims.c knows which claimers are inside; pinned, nobody enters. */
#define FDRI_PINNED 0x80000000u
/* `who` takes bins of l. Returns its place, or 0: go elsewhere (l is pinned). One place at a time for each `who`. */
uint32_t fdri_claim_enter(struct fdri_arena *a, const struct fdr_location *who, struct fdr_location *l);
void fdri_claim_leave(struct fdri_arena *a, uint32_t place);
/* The same by who may be late: with the word that stood there when it entered. By now the place may be another's, of
 * another recording. */
uint64_t fdri_claim_word(const struct fdri_arena *a, uint32_t place);
void fdri_claim_leave_as(struct fdri_arena *a, uint32_t place, uint64_t word);
/* By the owner of `who`, which is inside nowhere: what it left in the middle is over. */
void fdri_claim_abandoned(struct fdri_arena *a, const struct fdr_location *who);
/* Keeps claimers out; true when none is inside any more. It looks for a bounded time, then unpin all the same. */
bool fdri_claim_pin(struct fdri_arena *a, struct fdr_location *l);
void fdri_claim_unpin(struct fdr_location *l);
/* Takes the oldest bin unless it is the newest, or another was faster: then 0. One try. The caller holds the bin. */
uint32_t fdri_part_claim(struct fdri_arena *a, struct fdr_part *p, uint32_t *size_log2, struct fdri_given *given);

/* ---- asleep.c: the newest bin, too, where the owner sleeps ---- */
/* Did somebody take the owner for asleep, and has it not gone the slow way since? */
bool fdri_asleep(const struct fdr_location *l);
/* It is taken for asleep from now on. */
bool fdri_fall_asleep(struct fdr_location *l);
/* Is one bin, whole or a piece, all that p holds? A hint. */
bool fdri_part_newest_only(const struct fdri_arena *a, const struct fdr_part *p);
/* Takes it, if the owner is taken for asleep and is not in the middle of a record. One try, with a system call; where
 * the kernel does not know that one, never. Between claim_enter and claim_leave, as fdri_part_claim. */
uint32_t fdri_part_claim_newest(struct fdri_arena *a, struct fdr_location *l, struct fdr_part *p, uint32_t *size_log2,
                                struct fdri_given *given);
/* The owner, busy, before it looks at its partitions other than to write into one that is not full: it is awake, and
 * what was taken is accounted for. Each bin that is taken just now makes it look once more. */
void fdri_awake(struct fdri_arena *a, struct fdr_location *l);
static inline void fdri_stay_awake(struct fdri_arena *a, struct fdr_location *l)
{
    if (__builtin_expect((fdr_load_relaxed(&l->asleep) & 3) != 0, 0)) fdri_awake(a, l);
}

/* NULL, or what is wrong. For tests and debug builds; the arena must be quiet. */
const char *fdri_bins_check(const struct fdri_arena *a, char *text, size_t text_bytes);

#endif
