/* SPDX-License-Identifier: MIT */
#include "policies/policies.h"

enum { TIERS_EXPECTED = 8 }; /* a young run has few tiers; its epochs are sized as if there were this many */

static uint64_t weight(const struct fdri_policies_tier_shares *s, uint32_t tier)
{
    if (!s->count) return 1;
    return s->share[tier < s->count ? tier : s->count - 1];
}

uint64_t fdri_policies_tier_share(const struct fdri_policies_tier_shares *s, uint32_t tier, uint32_t tiers,
                                  uint64_t total)
{
    uint64_t sum = 0;
    for (uint32_t t = 0; t < tiers; t++) sum += weight(s, t);
    return sum ? total * weight(s, tier) / sum : 0;
}

uint64_t fdri_policies_epoch_bytes(const struct fdri_policies_tier_shares *s, uint32_t tiers, uint64_t total)
{
    return fdri_policies_tier_share(s, 0, tiers < TIERS_EXPECTED ? TIERS_EXPECTED : tiers, total) /
           (FDRI_POLICIES_EPOCHS_A_TIER + 1);
}

uint32_t fdri_policies_tier_to_give(const struct fdri_policies_tier_shares *s, const uint64_t *held, uint32_t tiers,
                                    uint64_t total, uint32_t without, uint64_t *over)
{
    uint32_t best = 0;
    for (uint32_t t = 1; t < tiers; t++) {
        if (!held[t] || without >> t & 1) continue;
        /* held / share, compared without a division: shares are proportional to weights */
        if (!best || held[t] * weight(s, best) > held[best] * weight(s, t)) best = t;
    }
    uint64_t share = best ? fdri_policies_tier_share(s, best, tiers, total) : 0;
    *over = best && held[best] > share ? held[best] - share : 0;
    return best;
}

uint32_t fdri_policies_merge(const uint32_t *tier, uint32_t count, uint32_t most)
{
    uint32_t same = 0;
    for (uint32_t i = count; i-- > 0;) { /* newest first: an epoch that has just ended causes the first merge */
        same = i + 1 < count && tier[i + 1] == tier[i] ? same + 1 : 1;
        if (same <= FDRI_POLICIES_EPOCHS_A_TIER || tier[i] + 1 >= FDRI_POLICIES_TIERS) continue;
        while (i > 0 && tier[i - 1] == tier[i]) i--; /* find the two oldest of the tier */
        return i;
    }
    return count >= most && count > 1 ? 0 : count;
}
