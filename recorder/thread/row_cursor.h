/* SPDX-License-Identifier: MIT */
/* Places of a thread in tables of rows: the next row to evict, and the next one that an ended epoch gets. And the sums
 * of messages that epochs need. Those lie in the arena: static thread-local storage is scarce. */
#ifndef FDRI_RECORDER_THREAD_ROW_CURSOR_H
#define FDRI_RECORDER_THREAD_ROW_CURSOR_H

#include <stdbool.h>
#include <stdint.h>

#include "format/arena/meta_block.h"

/* Where row_eviction.c looks for the next row to evict, and which regions it evicted. Offsets; 0: none. */
struct fdri_thread_eviction_hand {
    /* The next row: in this block of the epochs' base, or, without epochs, this slot of the table. */
    uint32_t block, index;
    uint32_t epochs; /* the epochs that `block` belongs to */
    /* The table of bits: one is set for each region whose calls went to the row [rest]. Regions with the same low bits
     * share a bit. */
    uint32_t evicted_off;
    uint32_t evicted_bits;
    /* The same for points: metrics, markers and others. No total contains their values. */
    uint64_t evicted_points;
    uint64_t evicted_few; /* the same for regions while memory held no table of bits */
};

/* The rows that an epoch has still to get after its end: epoch_walk.c. */
struct fdri_thread_walk {
    /* Place of the next row in the epochs' base; block 0: no row is left. */
    uint32_t block, row;
    /* End of the rows that existed when the epoch ended. */
    uint32_t last_block, last_row_end;
    uint32_t rows_per_step; /* rows taken in one step */
    /* Offset of the former values of rows that changed since. */
    uint32_t old_values_off;
    bool heap;
};

/* Messages and collectives of the location so far, and of these the ones before the newest end of an epoch. In each
 * triple: how many; bytes, of collectives those sent; of collectives bytes received. */
struct fdri_thread_traffic {
    struct fdri_arena_meta_head head;
    uint64_t all[3][3], cut[3][3];
    uint32_t row[2][3]; /* offsets of the rows used last; 0: none */
};

#endif
