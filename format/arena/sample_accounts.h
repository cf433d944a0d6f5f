/* SPDX-License-Identifier: MIT */
/* Accounts of a stream of samples, by level of thinning. */
#ifndef FDRI_FORMAT_ARENA_SAMPLE_ACCOUNTS_H
#define FDRI_FORMAT_ARENA_SAMPLE_ACCOUNTS_H

#include <assert.h>
#include <stdint.h>

#include "format/arena/meta_block.h"

/* A location of samples observes one thread from outside of the thread's stream. Its partitions are of class sample,
 * and their depth is the sample's level: the highest bit that differs between its number and the one before. So the
 * levels from k on have one sample for each 2^k periods. */
#define FDRI_ARENA_SAMPLE_LEVELS 40
enum fdri_arena_sample_clock { FDRI_ARENA_SAMPLE_CPU = 0, FDRI_ARENA_SAMPLE_WALL = 1, FDRI_ARENA_SAMPLE_EVENTS = 2 };
struct fdri_arena_samples {
    struct fdri_arena_meta_head head;
    uint64_t number;       /* of the newest sample presented: number of periods that passed */
    uint64_t period;       /* ns of `clock`, or events */
    uint32_t clock;        /* enum fdri_arena_sample_clock */
    uint32_t lowest_level; /* levels below this are not stored any more */
    uint64_t without_path; /* samples without a complete stack walk */
    struct {
        uint64_t presented, filtered, reduced_gate, lost;
        uint32_t part; /* off of the partition, 0 = none */
        uint32_t reserved;
    } level[FDRI_ARENA_SAMPLE_LEVELS];
    uint64_t left_out; /* looks from outside that were due and not taken */
};
static_assert(sizeof(struct fdri_arena_samples) == 56 + 40 * FDRI_ARENA_SAMPLE_LEVELS, "samples");

#endif
