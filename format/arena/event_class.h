/* SPDX-License-Identifier: MIT */
/* Classes of events and bands of duration: two dimensions of the store. */
#ifndef FDR_FORMAT_ARENA_EVENT_CLASS_H
#define FDR_FORMAT_ARENA_EVENT_CLASS_H

#include <stdint.h>

/* ---- event classes ---- */
enum fdr_class {
    FDR_CLASS_REGION = 0,
    FDR_CLASS_MESSAGE,
    FDR_CLASS_COLLECTIVE,
    FDR_CLASS_METRIC,
    FDR_CLASS_MARKER,
    FDR_CLASS_SAMPLE,
    FDR_CLASS_IO,
    FDR_CLASS_TASK,
    FDR_CLASS_USER,
    FDR_CLASS_COUNT
};
#define FDR_BANDS 4
/* Calls of bands 1 to 3 take this many ns at least; i = band - 1. FORMAT.md, 2.2 */
static inline uint64_t fdr_band_edge_ns(uint32_t i)
{
    static const uint64_t ns[FDR_BANDS - 1] = {256, 4096, 262144};
    return ns[i];
}

#endif
