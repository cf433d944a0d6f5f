/* SPDX-License-Identifier: MIT */
/* Tallies: counters of the process in the arena, by key.
 *
 *   tally_area.c   the tables of the recording: the first is made at its begin, a larger one when keys need it
 *   tally_calls.c  the public functions of fdr/tally.h
 *
 * Neighbours: format/tallies/ works on a table; bins/ gives the memory; watch/ counts triggers here. */
#ifndef FDRI_RECORDER_TALLY_TALLY_H
#define FDRI_RECORDER_TALLY_TALLY_H

#include <stdint.h>

#include "format/arena/tally_block.h"

/* Makes the first table, before the recording begins. Without memory for it no key has room. */
void fdri_tally_start(void);
/* The row of this key in the present recording; NULL: no room, now and later. Lock-free, async-signal-safe. The caller
 * keeps the recording from ending. */
struct fdri_arena_tally *fdri_tally_row(uint32_t kind, const void *key);

#endif
