/* SPDX-License-Identifier: MIT */
/* Past searches of a thread for memory: they decide whether the next one is made. */
#ifndef FDRI_RECORDER_THREAD_SEARCH_HISTORY_H
#define FDRI_RECORDER_THREAD_SEARCH_HISTORY_H

#include <stdint.h>

#include "bins/pieces.h"

/* The returned pieces of a location, as a thread last saw them when no whole bin was among them. */
enum { FDRI_THREAD_RETURNED_SEEN = 4 };
struct fdri_thread_returned_seen {
    uint32_t location_id; /* the location's id */
    uint32_t first_piece; /* the first of its pieces then; 0: look again */
    struct fdri_bins_returned remaining;
    /* No piece of 1 << failed_log2 bytes could be had; 0: not tried. */
    uint32_t missing_log2;
};

/* The results of past searches for memory: memory.h. */
struct fdri_thread_search {
    uint32_t failures; /* failed searches in a row, up to now */
    /* This many of the next requests do not search. */
    uint32_t requests_to_skip;
    int32_t credit;    /* in records */
    uint64_t skip_end; /* the latest end of a pause; ticks of the location */
};

#endif
