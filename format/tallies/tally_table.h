/* SPDX-License-Identifier: MIT */
/* Tables of tallies: finding or making the row of a key, and reading a row that others may be writing. mpi_calls.h: the
 * rows that say which calls of MPI threads are in.
 *
 * Pure functions on the layout of format/arena/tally_block.h; recorder/tally/ takes the memory, reader/account/ shows
 * the rows. No function waits, allocates or calls the system: find-or-make takes at most `probes` places, with at most
 * five compare-and-swaps each.
 *
 * Why no key is ever wrong or twice: a place is filled word by word, each by a compare-and-swap from 0. A writer that
 * finds a word set goes on only if the word is its own. So the writer of the last word has found all words before it
 * equal to its own. A thread that stops half-way holds up nobody: another one with the same key completes it. Two
 * threads with one key visit the same places in the same order, and a place that differs once differs for ever. */
#ifndef FDRI_FORMAT_TALLIES_TALLY_TABLE_H
#define FDRI_FORMAT_TALLIES_TALLY_TABLE_H

#include <stddef.h>
#include <stdint.h>

#include "format/arena/tally_block.h"

struct fdri_tallies_key {
    uint64_t word[FDRI_ARENA_TALLY_WORDS];
};
/* kind: 1 to FDRI_ARENA_TALLY_KIND_MOST. key: FDRI_ARENA_TALLY_KEY_BYTES bytes. */
struct fdri_tallies_key fdri_tallies_key(uint32_t kind, const void *key);
/* The key of a trigger with this name. */
void fdri_tallies_name_key(const char *name, uint8_t key[FDRI_ARENA_TALLY_KEY_BYTES]);

/* The row of the key, made if it is not there; NULL: others fill its `probes` places, for ever. */
struct fdri_arena_tally *fdri_tallies_row(struct fdri_arena_tallies *t, const struct fdri_tallies_key *key,
                                          uint32_t probes);

/* A place, as a reader finds it: empty; with a key that was being written; with a key; with bytes of no writer. */
enum fdri_tallies_state { FDRI_TALLIES_EMPTY, FDRI_TALLIES_HALF, FDRI_TALLIES_WHOLE, FDRI_TALLIES_DAMAGED };
/* If whole, sets *kind and key. */
enum fdri_tallies_state fdri_tallies_read(const struct fdri_arena_tally *row, uint32_t *kind,
                                          uint8_t key[FDRI_ARENA_TALLY_KEY_BYTES]);

#endif
