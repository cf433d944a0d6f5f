/* SPDX-License-Identifier: MIT */
/* Tallies: counters of the process, by key. They survive every reduction. A table of fixed size with open addressing;
 * format/tallies/ works on it. FORMAT.md, 13.4. */
#ifndef FDRI_FORMAT_ARENA_TALLY_BLOCK_H
#define FDRI_FORMAT_ARENA_TALLY_BLOCK_H

#include <assert.h>
#include <stdint.h>

#include "format/arena/meta_block.h"

/* A row is one cache line. Its key has 26 bytes: a kind from 1 on, and 24 bytes. Each of the five words is 0 until
 * somebody sets it, and never changes again. So whoever stops in between leaves a key that is seen as incomplete.
 *   key[0]      = kind << 48 | low 48 bits of the hash of kind and key
 *   key[1 .. 4] = 1 << 48    | six bytes of the key, little-endian */
#define FDRI_ARENA_TALLY_WORDS     5u
#define FDRI_ARENA_TALLY_COUNTERS  3u
#define FDRI_ARENA_TALLY_KEY_BYTES 24u
#define FDRI_ARENA_TALLY_KIND_MOST 0xffffu
struct fdri_arena_tally {
    uint64_t key[FDRI_ARENA_TALLY_WORDS];
    uint64_t counter[FDRI_ARENA_TALLY_COUNTERS]; /* atomic */
};
static_assert(sizeof(struct fdri_arena_tally) == 64, "tally");

/* A key is looked for in FIRST places of the first table, then in FURTHER places of the larger one. A place never
 * becomes free, so a key that finds no room never finds any. */
enum { FDRI_ARENA_TALLY_PROBES_FIRST = 4, FDRI_ARENA_TALLY_PROBES_FURTHER = 12 };
#define FDRI_ARENA_TALLIES_NEVER     1u /* as `larger`: there was no memory, and will be none */
#define FDRI_ARENA_TALLIES_LOG2_MOST 24u
struct fdri_arena_tallies {
    struct fdri_arena_meta_head head;
    uint32_t log2;    /* 1 << log2 rows follow */
    uint32_t larger;  /* atomic: off of the larger table; 0: not needed so far; FDRI_ARENA_TALLIES_NEVER */
    uint64_t refused; /* atomic: how often a key found no room */
    uint8_t pad[32];
    struct fdri_arena_tally row[];
};
static_assert(sizeof(struct fdri_arena_tallies) == 64, "tallies");
static inline uint32_t fdri_arena_tallies_bytes(uint32_t log2)
{
    return (uint32_t)(sizeof(struct fdri_arena_tallies) + (sizeof(struct fdri_arena_tally) << log2));
}

/* Kinds below 32768 belong to fdr. Counters of each: */
enum fdri_arena_tally_kind {
    FDRI_ARENA_TALLY_TRIGGER = 1, /* seen, dropped, snapshots. seen = dropped + snapshots + pending (0 or 1) */
    FDRI_ARENA_TALLY_MPI,         /* these come from adapters/mpi/; FORMAT.md, 13.4 */
    FDRI_ARENA_TALLY_SENT,
    FDRI_ARENA_TALLY_RECEIVED,
    FDRI_ARENA_TALLY_COLLECTIVES,
    FDRI_ARENA_TALLY_CALL,
    FDRI_ARENA_TALLY_WAIT,
    FDRI_ARENA_TALLY_COLLECTIVE_BYTES,
    /* The rule `iterations`, by its pattern. Iterations that ended: kept + removed; undecided ones are among the
     * kept. */
    FDRI_ARENA_TALLY_ITERATIONS = 16, /* kept, removed, undecided */
    FDRI_ARENA_TALLY_DIFFERING = 17   /* why kept: first of their class, odd durations; kept or removed: reduced */
};
/* The key of a trigger is its name, that of `iterations` its pattern: ended by NUL. If it has more than 23 bytes: its
 * first 19, 4 bytes of check32 of the whole name, and the byte 1. */
#define FDRI_ARENA_TALLY_NAME_SHORT 23u
#define FDRI_ARENA_TALLY_NAME_BEGIN 19u

#endif
