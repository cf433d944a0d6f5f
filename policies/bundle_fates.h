/* SPDX-License-Identifier: MIT */
/* bundle_fates.c: which crash bundles of one directory stay. Bundles of one fingerprint (cause, place, build) are
 * alike: the first, the newest, and of the others the one of the longest run stay. Then limits of age and of space.
 * Door of the room: policies.h. */
#ifndef FDRI_POLICIES_BUNDLE_FATES_H
#define FDRI_POLICIES_BUNDLE_FATES_H

#include <stdbool.h>
#include <stdint.h>

struct fdri_policies_limit {
    double share; /* of the file system; below 0: `bytes` count */
    uint64_t bytes;
};
struct fdri_policies_retention {
    bool off;                          /* every bundle stays, and every death may leave one */
    struct fdri_policies_limit most;   /* FDR_CRASH_TOTAL: of all bundles */
    struct fdri_policies_limit unused; /* FDR_CRASH_FREE: of the file system */
    uint64_t age_ns;                   /* FDR_CRASH_AGE; 0: no limit */
};
struct fdri_policies_disk {
    uint64_t bytes, unused; /* of the file system */
};

enum fdri_policies_fate { FDRI_POLICIES_STAYS = 0, FDRI_POLICIES_ALIKE, FDRI_POLICIES_OLD, FDRI_POLICIES_TOO_MUCH };
enum { FDRI_POLICIES_NO_HEIR = -1 };
struct fdri_policies_bundle {
    uint64_t fingerprint; /* 0: not known, so it is like no other */
    uint64_t death_ns, run_ns, bytes;
    enum fdri_policies_fate fate; /* these two are the result */
    int32_t heir; /* index of the bundle that counts it when it goes: the first of its fingerprint that stays */
};

uint64_t fdri_policies_limit_bytes(const struct fdri_policies_limit *limit, uint64_t of);
/* Decides about bundles sorted by time of death. The limit of space removes the oldest; bundles with another one of
 * their fingerprint go first, and the newest of all stays. For want of unused space only the former go: others may have
 * filled the file system. */
void fdri_policies_retain(struct fdri_policies_bundle *b, uint32_t count, const struct fdri_policies_retention *rule,
                          const struct fdri_policies_disk *disk, uint64_t now_ns);
/* May a bundle of `mine` bytes be promised? `bundles`: bytes of those that are there; `promised`: to others. */
bool fdri_policies_may_promise(const struct fdri_policies_retention *rule, const struct fdri_policies_disk *disk,
                               uint64_t bundles, uint64_t promised, uint64_t mine);

#endif
