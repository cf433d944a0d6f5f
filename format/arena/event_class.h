/* SPDX-License-Identifier: MIT */
/* Classes of events and bands of duration: with depth, the dimensions of the store. */
#ifndef FDRI_FORMAT_ARENA_EVENT_CLASS_H
#define FDRI_FORMAT_ARENA_EVENT_CLASS_H

#include <stdint.h>

enum fdri_arena_class {
    FDRI_ARENA_CLASS_REGION = 0,
    FDRI_ARENA_CLASS_MESSAGE,
    FDRI_ARENA_CLASS_COLLECTIVE,
    FDRI_ARENA_CLASS_METRIC,
    FDRI_ARENA_CLASS_MARKER,
    FDRI_ARENA_CLASS_SAMPLE,
    FDRI_ARENA_CLASS_IO,
    FDRI_ARENA_CLASS_TASK,
    FDRI_ARENA_CLASS_USER,
    FDRI_ARENA_CLASS_COUNT
};
#define FDRI_ARENA_BANDS 4
/* The shortest duration of calls of band i + 1, in ns. FORMAT.md, 2.2. */
static inline uint64_t fdri_arena_band_edge_ns(uint32_t i)
{
    static const uint64_t ns[FDRI_ARENA_BANDS - 1] = {256, 4096, 262144};
    return ns[i];
}

#endif
