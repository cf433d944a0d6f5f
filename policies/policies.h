/* SPDX-License-Identifier: MIT */
/* Decisions about what to give back next: pure functions from a view of the stored events to a decision and its reason.
 * They have no state, no atomics, and call no other room.
 *
 *   chain.c           the escalation chain        age_tiers.c      epochs and tiers of strategy `telescope`
 *   sample_levels.c   levels of samples           overhead.c       regions to mute (FDR_OVERHEAD)
 *   looks.c           looks at threads            idle.c           threads that wait for work
 *   durations.c       iterations of unusual duration            bundle_fates.c   crash bundles that stay
 *
 * Neighbours: recorder/ builds the views and carries the decisions out.
 *
 * The escalation chain (Wagner 2015, 3.4, with duration as a stored dimension): each step of the chain applies to some
 * partitions. The earliest step that applies to any partition names the one to give back first.
 *   duration  region calls, shortest band first, within a band the deepest; never the longest band
 *   depth     region calls, deepest first, within a depth the shortest band; never depth 1
 *   class     event classes, least important first (user's order, else largest first), deepest first
 *   epoch     the oldest events
 * The kept calls stay closed upward: (depth, band) is given back only after every deeper depth in every shorter or
 * equal band. So no call loses its parent to a reduction. */
#ifndef FDRI_POLICIES_POLICIES_H
#define FDRI_POLICIES_POLICIES_H

#include <stdbool.h>
#include <stdint.h>

enum { FDRI_POLICIES_STEPS = 4, FDRI_POLICIES_CLASSES = 9, FDRI_POLICIES_LONGEST_BAND = 3 };
enum fdri_policies_step {
    FDRI_POLICIES_BY_DURATION = 1,
    FDRI_POLICIES_BY_DEPTH,
    FDRI_POLICIES_BY_CLASS,
    FDRI_POLICIES_BY_EPOCH
};

enum fdri_policies_reason {
    FDRI_POLICIES_REASON_SHORTEST = 1,    /* shorter band than any other */
    FDRI_POLICIES_REASON_DEEPEST,         /* deepest of its band */
    FDRI_POLICIES_REASON_LEAST_IMPORTANT, /* the user ordered classes so */
    FDRI_POLICIES_REASON_LARGEST_CLASS,   /* no order given, holds most */
    FDRI_POLICIES_REASON_OLDEST           /* no other step applies */
};

struct fdri_policies_chain {
    /* enum fdri_policies_step in order; 0 ends the list; FDRI_POLICIES_BY_EPOCH is implied at the end */
    uint8_t step[FDRI_POLICIES_STEPS];
    uint8_t class_rank[FDRI_POLICIES_CLASSES]; /* 1 = least important ...; 0 = not ordered by the user */
};

/* One partition as the policies see it. */
struct fdri_policies_part_view {
    uint32_t depth;
    uint8_t class_; /* 0 = region */
    uint8_t band;
    uint64_t class_bytes; /* bytes of all partitions of its class on this location */
    uint64_t oldest;      /* tick where its oldest bin begins */
};

struct fdri_policies_verdict {
    enum fdri_policies_step step;
    enum fdri_policies_reason reason;
};

/* The step of the chain that applies to this partition. *index: its place in the chain; lower is earlier. */
struct fdri_policies_verdict fdri_policies_step(const struct fdri_policies_chain *chain,
                                                const struct fdri_policies_part_view *part, uint32_t *index);

/* true: `a` is to be given back before `b`. A strict weak order. *why: the deciding reason. */
bool fdri_policies_precedes(const struct fdri_policies_chain *chain, const struct fdri_policies_part_view *a,
                            const struct fdri_policies_part_view *b, enum fdri_policies_reason *why);

/* true: a partition's gate closes when its last bin is given back. Not for step `epoch`, which only forgets the oldest
 * events. */
bool fdri_policies_closes_gate(enum fdri_policies_step step);

/* Strategy `last`: true: the current epoch has its share of the bins, so a new one should begin. */
bool fdri_policies_begins_epoch(uint32_t bins_in_epoch, uint32_t bins_held, uint32_t epochs_wanted);

/* ---- age_tiers.c: strategy `telescope` ----
 * Time is divided into epochs, each as long as it takes to fill its part of the memory. A tier has at most
 * FDRI_POLICIES_EPOCHS_A_TIER epochs; if one more comes, its two oldest merge into one of the next tier. So n epochs
 * become O(log n), and the epochs of each tier are twice as long as those of the tier before. Each tier has a share of
 * the memory. The tier furthest above its share gives, and the escalation chain names the partition there. */
enum { FDRI_POLICIES_TIERS = 32, FDRI_POLICIES_EPOCHS_A_TIER = 2, FDRI_POLICIES_SHARES = 16 };

struct fdri_policies_tier_shares {
    uint32_t count; /* 0: all equal */
    /* relative weights, newest tier first; the last one holds for all older tiers */
    uint16_t share[FDRI_POLICIES_SHARES];
};

/* The part of `total` that tier `tier` of `tiers` may hold, in the unit of `total`. The sum over all tiers is at most
 * `total`. */
uint64_t fdri_policies_tier_share(const struct fdri_policies_tier_shares *s, uint32_t tier, uint32_t tiers,
                                  uint64_t total);

/* The part of `total` that an epoch of the newest tier fills before the next one begins. A third of the tier's share,
 * because the tier may have two complete epochs beside the current one. */
uint64_t fdri_policies_epoch_bytes(const struct fdri_policies_tier_shares *s, uint32_t tiers, uint64_t total);

/* The tier furthest above its share. It looks at all tiers but the newest that hold anything and whose bit in `without`
 * is clear. 0: there is none. *over: the amount above its share. */
uint32_t fdri_policies_tier_to_give(const struct fdri_policies_tier_shares *s, const uint64_t *held, uint32_t tiers,
                                    uint64_t total, uint32_t without, uint64_t *over);

/* Which epochs to merge next. `tier` has the tiers of `count` complete epochs, oldest first, never rising. Returns the
 * index of the older of the two, or `count`: none. Two epochs merge if their tier has one too many. After some 10^9
 * epochs each tier may be full; then the two oldest of all merge if there are `most` epochs. */
uint32_t fdri_policies_merge(const uint32_t *tier, uint32_t count, uint32_t most);

/* ---- sample_levels.c: levels of samples of one location; the levels from k on hold one sample for each 2^k periods
 * ---- */
enum { FDRI_POLICIES_SAMPLE_LEVELS = 40 };
/* The level of the sample that ends period `after`, if the sample before it ended period `before`: the highest bit in
 * which the two differ. For samples one period apart this is the number of trailing zeros of `after`. */
uint32_t fdri_policies_sample_level(uint64_t before, uint64_t after);

struct fdri_policies_sample_view {
    uint32_t bytes; /* bytes in its bins */
    bool sealed;    /* its oldest bin takes no more records */
};
/* The level to give back next; FDRI_POLICIES_SAMPLE_LEVELS: none. With recent_in_full only its oldest bin goes.
 * Without, the whole level goes and takes no more samples; the remaining ones are spread evenly over the run. */
uint32_t fdri_policies_sample_victim(const struct fdri_policies_sample_view *level, bool recent_in_full);

#endif
