/* SPDX-License-Identifier: MIT */
/* Who holds what of the buffer: the words that fair shares are computed from. */
#ifndef FDRI_RECORDER_SHARES_SHARE_STATE_H
#define FDRI_RECORDER_SHARES_SHARE_STATE_H

#include <stdint.h>

#include "format/arena/arena.h"

/* ---- the recording ---- */
/* Who holds what, for fair_share.c. Atomic; reset with the arena. */
struct fdri_shares {
    uint32_t live;                  /* locations of threads that are there */
    uint32_t richest;               /* off of a location that holds much, or 0; a hint */
    uint32_t cursor;                /* off of the location to look at next, or 0 */
    uint32_t returned;              /* the same for one that may have pieces it does not collect */
    uint32_t lock;                  /* try-lock of everything about ended locations: the off of who works there; for
                                       one that is no location UINT32_MAX, or what usage.c takes */
    uint32_t still;                 /* snapshots that walk: accounts stay where they are */
    uint32_t ended_last;            /* the queue of locations that ended: the newest, or 0 */
    uint32_t ended_in, ended_first; /* its oldest: where that was put into an empty queue; under the lock */
    struct fdri_arena_location *spare[2]; /* for the accounts of ended ones, by unit of time */
    uint64_t turn;                        /* bins that were filled anew */
};

#endif
