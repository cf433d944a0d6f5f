/* SPDX-License-Identifier: MIT */
/* Decisions about what to give back next: pure functions from a view of what is stored to a decision and its reason.
 * No state, no atomics, no calls downwards; the recorder builds the views and carries decisions out.
 *
 * The escalation chain (Wagner 2015, 3.4, with duration as a stored dimension): a step of the chain applies to
 * some partitions; the partition that the earliest applicable step names is given back first.
 *   duration  region calls, shortest band first, within a band the deepest; never the longest band
 *   depth     region calls, deepest first, within a depth the shortest band; never depth 1
 *   class     event classes, least important first (user's order, else largest first), deepest first
 *   epoch     whatever is oldest
 * What is kept stays closed upward: (depth, band) is taken only after every deeper depth in every shorter or equal
 * band, so no call loses its parent to a reduction. */
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
    FDRI_POLICIES_REASON_OLDEST           /* nothing else is left to give */
};

struct fdri_policies_chain {
    /* enum fdri_policies_step in order; 0 ends it; FDRI_POLICIES_BY_EPOCH is implied at the end */
    uint8_t step[FDRI_POLICIES_STEPS];
    uint8_t class_rank[FDRI_POLICIES_CLASSES]; /* 1 = least important ...; 0 = not ordered by the user */
};

/* One partition as the policies see it. */
struct fdri_policies_part_view {
    uint32_t depth;
    uint8_t class_; /* 0 = region */
    uint8_t band;
    uint64_t class_bytes; /* all its class holds in this location */
    uint64_t oldest;      /* tick where its oldest bin begins */
};

struct fdri_policies_verdict {
    enum fdri_policies_step step;
    enum fdri_policies_reason reason;
};

/* The step of the chain that would take this partition, and its index (lower = earlier). */
struct fdri_policies_verdict fdri_policies_step(const struct fdri_policies_chain *chain,
                                                const struct fdri_policies_part_view *part, uint32_t *index);

/* Is `a` to be given back before `b`? A strict weak order; *why names the deciding reason. */
bool fdri_policies_precedes(const struct fdri_policies_chain *chain, const struct fdri_policies_part_view *a,
                            const struct fdri_policies_part_view *b, enum fdri_policies_reason *why);

/* Does the partition's storage gate close when its last bin goes? Not where the step only forgets the oldest. */
bool fdri_policies_closes_gate(enum fdri_policies_step step);

/* Strategy `last`: has the current epoch had its share of the bins and should a new one begin? */
bool fdri_policies_begins_epoch(uint32_t bins_in_epoch, uint32_t bins_held, uint32_t epochs_wanted);

/* ---- age_tiers.c: strategy `telescope` ----
 * Time is cut into epochs as long as the memory they consume. Of each age tier there are at most
 * FDRI_POLICIES_EPOCHS_A_TIER; of one more the two oldest become one of the next tier. So after n epochs there are
 * O(log n), each tier twice as long as the one before. Every tier has its share of the memory; the one furthest above
 * its share gives, and there the partition that the escalation chain names. */
enum { FDRI_POLICIES_TIERS = 32, FDRI_POLICIES_EPOCHS_A_TIER = 2, FDRI_POLICIES_SHARES = 16 };

struct fdri_policies_tier_shares {
    uint32_t count;                       /* 0: all equal */
    uint16_t share[FDRI_POLICIES_SHARES]; /* relative, newest tier first; the last one holds for all older ones */
};

/* What tier `tier` of `tiers` may hold of `total`. The sum over all tiers is at most `total`. */
uint64_t fdri_policies_tier_share(const struct fdri_policies_tier_shares *s, uint32_t tier, uint32_t tiers,
                                  uint64_t total);

/* How much an epoch of the newest tier consumes: with the one under way there may be three. */
uint64_t fdri_policies_epoch_bytes(const struct fdri_policies_tier_shares *s, uint32_t tiers, uint64_t total);

/* The tier furthest above its share, of those (but the newest) that hold anything and whose bit in `without` is not
 * set; 0: there is none. *over: how much it holds beyond its share. */
uint32_t fdri_policies_tier_to_give(const struct fdri_policies_tier_shares *s, const uint64_t *held, uint32_t tiers,
                                    uint64_t total, uint32_t without, uint64_t *over);

/* Tiers of `count` epochs that are over, oldest first, never rising; `most` is how many of them there may be. Index of
 * the older of the two to merge next, or `count`: one more of a tier than it may have, or, behind some 10^9 epochs,
 * when each tier has what it may have and there are `most`, the two oldest of all. */
uint32_t fdri_policies_merge(const uint32_t *tier, uint32_t count, uint32_t most);

/* ---- samples: levels of one location; level k and above hold one sample for each 2^k periods ---- */
enum { FDRI_POLICIES_SAMPLE_LEVELS = 40 };
/* Of the sample that ends period `after` when the one before ended `before`: the highest bit in which the two differ.
 * For samples one period apart this is the number of trailing zeros of `after`. */
uint32_t fdri_policies_sample_level(uint64_t before, uint64_t after);

struct fdri_policies_sample_view {
    uint32_t bytes; /* held */
    bool sealed;    /* its oldest bin is complete */
};
/* The level to give back next, FDRI_POLICIES_SAMPLE_LEVELS: none. Where the recent past is to stay in full, its oldest
 * bin goes; otherwise all of it, and it is not stored any more: what stays is spread evenly over the whole run. */
uint32_t fdri_policies_sample_victim(const struct fdri_policies_sample_view *level, bool recent_in_full);

#endif
