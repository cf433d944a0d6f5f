/* SPDX-License-Identifier: MIT */
/* What to give back of the samples of one location. */
#include "policies/policies.h"

uint32_t fdri_policies_sample_level(uint64_t before, uint64_t after)
{
    uint64_t differ = before ^ after;
    uint32_t level = differ ? 63u - (uint32_t)__builtin_clzll(differ) : 0;
    return level < FDRI_POLICIES_SAMPLE_LEVELS ? level : FDRI_POLICIES_SAMPLE_LEVELS - 1;
}

/* The lowest level that holds anything: what is left holds every second of what was there. */
static uint32_t thin_all(const struct fdri_policies_sample_view *level)
{
    for (uint32_t i = 0; i < FDRI_POLICIES_SAMPLE_LEVELS; i++)
        if (level[i].bytes) return i;
    return FDRI_POLICIES_SAMPLE_LEVELS;
}

/* The level that holds most, of equal ones the lowest: levels of equal size reach back twice as far each. */
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
