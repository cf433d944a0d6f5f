/* SPDX-License-Identifier: MIT */
/* Decides which samples of a location to give back. */
#include "policies/policies.h"

uint32_t fdri_policies_sample_level(uint64_t before, uint64_t after)
{
    uint64_t differ = before ^ after;
    uint32_t level = differ ? 63u - (uint32_t)__builtin_clzll(differ) : 0;
    return level < FDRI_POLICIES_SAMPLE_LEVELS ? level : FDRI_POLICIES_SAMPLE_LEVELS - 1;
}

/* The lowest level that holds samples: without it every second sample remains. */
static uint32_t thin_all(const struct fdri_policies_sample_view *level)
{
    for (uint32_t i = 0; i < FDRI_POLICIES_SAMPLE_LEVELS; i++)
        if (level[i].bytes) return i;
    return FDRI_POLICIES_SAMPLE_LEVELS;
}

/* The level with most bytes, the lowest of equal ones. If all levels are of equal size, each reaches back twice as far
 * as the one below. */
static uint32_t thin_old(const struct fdri_policies_sample_view *level)
{
    uint32_t best = FDRI_POLICIES_SAMPLE_LEVELS;
    for (uint32_t i = 0; i < FDRI_POLICIES_SAMPLE_LEVELS; i++) {
        if (!level[i].sealed) continue;
        if (best == FDRI_POLICIES_SAMPLE_LEVELS || level[i].bytes > level[best].bytes) best = i;
    }
    return best;
}

uint32_t fdri_policies_sample_victim(const struct fdri_policies_sample_view *level, bool recent_in_full)
{
    return recent_in_full ? thin_old(level) : thin_all(level);
}
