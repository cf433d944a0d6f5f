/* SPDX-License-Identifier: MIT */
/* Which iterations of a class last unusually long or short: a rule on the exact distribution of their durations. */
#include "policies/durations.h"

#include <stdbool.h>
#include <stdint.h>

/* Two buckets for each power of two: bucket 2k begins at 2^k, bucket 2k + 1 at 1.5 * 2^k. */
static uint32_t bucket_of(uint64_t ns)
{
    if (ns < 2) return 0;
    uint32_t log2 = 63u ^ (uint32_t)__builtin_clzll(ns), i = 2 * log2 + (uint32_t)(ns >> (log2 - 1) & 1);
    return i < FDRI_POLICIES_DURATION_BUCKETS ? i : FDRI_POLICIES_DURATION_BUCKETS - 1;
}

static uint64_t begin_of(uint32_t bucket) { return (uint64_t)(2 + bucket % 2) << (bucket / 2) >> 1; }

static uint32_t median_of(const struct fdri_policies_durations *d)
{
    uint32_t i = 0;
    for (uint64_t below = d->bucket[0]; 2 * below < d->seen && i < FDRI_POLICIES_DURATION_BUCKETS - 1;)
        below += d->bucket[++i];
    return i;
}

/* Rare: beside it at most 4 and a 128th of the class lasted as long, or as short. */
static bool is_rare(uint64_t others, uint64_t seen) { return others <= 4 + seen / 128; }

bool fdri_policies_odd_duration(const struct fdri_policies_durations *d, uint64_t ns)
{
    uint32_t own = bucket_of(ns), median = median_of(d);
    uint64_t others = 0;
    if (!d->seen) return false;
    if (ns / 2 >= begin_of(median + 1)) {
        for (uint32_t i = own; i < FDRI_POLICIES_DURATION_BUCKETS; i++) others += d->bucket[i];
        return is_rare(others, d->seen);
    }
    if (ns >= begin_of(median) / 2) return false;
    for (uint32_t i = 0; i <= own; i++) others += d->bucket[i];
    return is_rare(others, d->seen);
}

/* The distribution stays, with half the number. */
static void halve(struct fdri_policies_durations *d)
{
    d->seen = 0;
    for (uint32_t i = 0; i < FDRI_POLICIES_DURATION_BUCKETS; i++) d->seen += d->bucket[i] /= 2;
}

void fdri_policies_add_duration(struct fdri_policies_durations *d, uint64_t ns)
{
    uint32_t own = bucket_of(ns);
    if (d->bucket[own] == UINT32_MAX) halve(d);
    d->seen++;
    d->bucket[own]++;
}
