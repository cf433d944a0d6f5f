/* SPDX-License-Identifier: MIT */
/* Which calls of MPI threads are in, by the tallies of kind CALL, in a recording that others write meanwhile. Their
 * words: FORMAT.md, 13.4. */
#ifndef FDRI_FORMAT_TALLIES_MPI_CALLS_H
#define FDRI_FORMAT_TALLIES_MPI_CALLS_H

#include <stdbool.h>
#include <stdint.h>

#include "format/arena/tally_block.h"

struct fdri_tallies_mpi_call {
    uint32_t tid, region; /* region 0: it has none */
    uint64_t since_ns;    /* CLOCK_MONOTONIC, exact to some milliseconds */
    bool waits;           /* for others, as far as is known; false: a call that does not block */
};
struct fdri_tallies_cursor {
    const uint8_t *base; /* of the arena */
    const struct fdri_arena_tallies *table;
    uint32_t at;
};
struct fdri_tallies_cursor fdri_tallies_first(const uint8_t *base);
/* The next thread that is in a call. False: there is none. Words of two calls are left out. */
bool fdri_tallies_next_call(struct fdri_tallies_cursor *c, struct fdri_tallies_mpi_call *call);

#endif
