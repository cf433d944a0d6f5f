/* SPDX-License-Identifier: MIT */
/* Decides which crash bundles stay. */
#include "policies/bundle_fates.h"

uint64_t fdri_policies_limit_bytes(const struct fdri_policies_limit *limit, uint64_t of)
{
    return limit->share < 0 ? limit->bytes : (uint64_t)((double)of * limit->share);
}

static bool are_alike(const struct fdri_policies_bundle *a, const struct fdri_policies_bundle *b)
{
    return a->fingerprint && a->fingerprint == b->fingerprint;
}

static void age(struct fdri_policies_bundle *b, uint32_t count, uint64_t age_ns, uint64_t now_ns)
{
    for (uint32_t i = 0; i < count; i++) {
        b[i].fate = age_ns && now_ns > b[i].death_ns && now_ns - b[i].death_ns > age_ns ? FDRI_POLICIES_OLD
                                                                                        : FDRI_POLICIES_STAYS;
        b[i].heir = FDRI_POLICIES_NO_HEIR;
    }
}

/* Of the fingerprint of `first`, which stays. Older ones are too old; the first counts them. */
static void collapse(struct fdri_policies_bundle *b, uint32_t count, uint32_t first)
{
    uint32_t newest = first, longest = first; /* longest: of those between the first and the newest */
    for (uint32_t i = first + 1; i < count; i++)
        if (are_alike(&b[i], &b[first]) && b[i].fate != FDRI_POLICIES_OLD) newest = i;
    for (uint32_t i = first + 1; i < newest; i++)
        if (are_alike(&b[i], &b[first]) && b[i].fate != FDRI_POLICIES_OLD &&
            (longest == first || b[i].run_ns > b[longest].run_ns))
            longest = i;
    for (uint32_t i = 0; i < count; i++) {
        if (i == first || !are_alike(&b[i], &b[first])) continue;
        b[i].heir = (int32_t)first;
        if (b[i].fate == FDRI_POLICIES_STAYS && i != newest && i != longest) b[i].fate = FDRI_POLICIES_ALIKE;
    }
}

static bool is_first(const struct fdri_policies_bundle *b, uint32_t i)
{
    return b[i].heir == FDRI_POLICIES_NO_HEIR && b[i].fate == FDRI_POLICIES_STAYS;
}

/* The oldest bundle that has another one of its fingerprint; else, if `firsts`, the oldest but the newest of all;
 * `count`: none. */
static uint32_t next_to_go(const struct fdri_policies_bundle *b, uint32_t count, bool firsts)
{
    uint32_t oldest = count, stay = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (b[i].fate != FDRI_POLICIES_STAYS) continue;
        if (!is_first(b, i)) return i;
        if (oldest == count) oldest = i;
        stay++;
    }
    return firsts && stay > 1 ? oldest : count;
}

static uint64_t bytes_that_stay(const struct fdri_policies_bundle *b, uint32_t count)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < count; i++) sum += b[i].fate == FDRI_POLICIES_STAYS ? b[i].bytes : 0;
    return sum;
}

static uint64_t all_bytes(const struct fdri_policies_bundle *b, uint32_t count)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < count; i++) sum += b[i].bytes;
    return sum;
}

void fdri_policies_retain(struct fdri_policies_bundle *b, uint32_t count, const struct fdri_policies_retention *rule,
                          const struct fdri_policies_disk *disk, uint64_t now_ns)
{
    age(b, count, rule->off ? 0 : rule->age_ns, now_ns);
    if (rule->off) return;
    for (uint32_t i = 0; i < count; i++)
        if (is_first(b, i) && b[i].fingerprint) collapse(b, count, i);
    uint64_t most = fdri_policies_limit_bytes(&rule->most, disk->bytes);
    uint64_t least = fdri_policies_limit_bytes(&rule->unused, disk->bytes);
    uint64_t stay = bytes_that_stay(b, count), all = all_bytes(b, count);
    for (;;) {
        bool over = stay > most, scarce = disk->unused + (all - stay) < least;
        uint32_t i = over || scarce ? next_to_go(b, count, over) : count;
        if (i == count) return;
        b[i].fate = FDRI_POLICIES_TOO_MUCH;
        stay -= b[i].bytes;
    }
}

bool fdri_policies_may_promise(const struct fdri_policies_retention *rule, const struct fdri_policies_disk *disk,
                               uint64_t bundles, uint64_t promised, uint64_t mine)
{
    if (rule->off) return true;
    uint64_t least = fdri_policies_limit_bytes(&rule->unused, disk->bytes);
    return bundles + promised + mine <= fdri_policies_limit_bytes(&rule->most, disk->bytes) && disk->unused >= least &&
           disk->unused - least >= promised + mine;
}
