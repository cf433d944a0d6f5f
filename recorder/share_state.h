/* SPDX-License-Identifier: MIT */
/* The words from which fair shares are computed, and the queue of ended locations. */
#ifndef FDRI_RECORDER_SHARE_STATE_H
#define FDRI_RECORDER_SHARE_STATE_H

#include <stdint.h>

#include "format/arena/arena.h"

/* Atomic; reset with the arena. Offsets are of locations; 0: none. */
struct fdri_shares {
    uint32_t live;         /* locations of live threads */
    uint32_t richest_hint; /* a location that holds many bins; a hint */
    uint32_t cursor;       /* the location to examine next */
    /* the location to examine next for returned pieces that its owner does not collect */
    uint32_t returned_cursor;
    /* try-lock of all work on ended locations: the holder's location, or for a holder without one UINT32_MAX or the
     * value of usage.c */
    uint32_t lock;
    uint32_t copying_snapshots; /* snapshots that copy; no accounts move meanwhile */
    uint32_t ended_last;        /* the newest location in the queue of ended ones */
    /* the oldest location in it. ended_first_new: set by the thread that appends to an empty queue; ended_first: under
     * the lock. */
    uint32_t ended_first_new, ended_first;
    struct fdri_arena_location *spare[2]; /* for the accounts of ended locations, by unit of time */
    uint64_t bins_refilled;               /* bins that were filled again */
};

#endif
