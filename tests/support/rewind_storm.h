/* SPDX-License-Identifier: MIT */
/* Calls that are rewound again and again. They leave the smallest bins at every level. Tests include this file. */
#ifndef FDRI_TESTS_REWIND_STORM_H
#define FDRI_TESTS_REWIND_STORM_H

#include <fdr/fdr.h>
#include <stdbool.h>

#include "tests/support/random_numbers.h"

enum { STORM_REGIONS = 12, STORM_DEEP = 60 };

/* Makes random calls, with up to STORM_DEEP open at a time. Every few hundred events it rewinds to the last mark. Adds
 * to made[] how often it called each region, unless made is NULL. */
static inline void rewind_storm(uint64_t number, uint64_t now, uint32_t events, const fdr_region *region,
                                uint64_t *made)
{
    uint64_t seed = number * 7919 + 88172645463325252u;
    uint32_t open[STORM_DEEP], depth = 0;
    bool marked = false;
    for (uint32_t i = 0; i < events; i++) {
        now += rnd(&seed, 4) ? rnd(&seed, 100) : rnd(&seed, 10000);
        if (rnd(&seed, 200) == 0) {
            marked ? fdr_rewind() : fdr_rewind_mark();
            marked = !marked;
        } else if (depth < STORM_DEEP && (!depth || rnd(&seed, 100) < 51)) {
            open[depth] = (uint32_t)rnd(&seed, STORM_REGIONS);
            fdr_enter_at(region[open[depth]], now);
            if (made) __atomic_fetch_add(&made[open[depth]], 1, __ATOMIC_RELAXED);
            depth++;
        } else {
            fdr_leave_at(region[open[--depth]], now);
        }
    }
    while (depth) fdr_leave_at(region[open[--depth]], ++now);
}

#endif
