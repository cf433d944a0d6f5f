/* SPDX-License-Identifier: MIT */
/* Iterations of unusual duration, for the rule `iterations differing` (docs/FILTER.md). */
#ifndef FDRI_POLICIES_DURATIONS_H
#define FDRI_POLICIES_DURATIONS_H

#include <stdbool.h>
#include <stdint.h>

enum { FDRI_POLICIES_DURATION_BUCKETS = 96 }; /* two for each power of two, in ns */
struct fdri_policies_durations {
    uint64_t seen; /* the sum of the buckets */
    uint32_t bucket[FDRI_POLICIES_DURATION_BUCKETS];
};
/* Is this duration unusual among those before it? It must last more than twice as long as the median, or less than half
 * as long, and be rare. The buckets are coarse: from three times, or a third, on it is sure to count as such. */
bool fdri_policies_odd_duration(const struct fdri_policies_durations *d, uint64_t ns);
void fdri_policies_add_duration(struct fdri_policies_durations *d, uint64_t ns);

#endif
