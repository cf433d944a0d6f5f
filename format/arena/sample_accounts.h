/* SPDX-License-Identifier: MIT */
/* Accounts of a stream of samples, by level of thinning. */
#ifndef FDRI_FORMAT_ARENA_SAMPLE_ACCOUNTS_H
#define FDRI_FORMAT_ARENA_SAMPLE_ACCOUNTS_H

#include <assert.h>
#include <stdint.h>

#include "format/arena/meta_block.h"

/* ---- location: one thread's stream ---- */
/* A location of samples: looks at one thread from outside its stream. Its partitions are of class sample, their depth
 * is the sample's level: the highest bit in which its number differs from the one before, so level k and above hold one
 * sample for each 2^k periods. */
#define FDRI_ARENA_SAMPLE_LEVELS 40
enum fdri_arena_sample_clock { FDRI_ARENA_SAMPLE_CPU = 0, FDRI_ARENA_SAMPLE_WALL = 1, FDRI_ARENA_SAMPLE_EVENTS = 2 };
struct fdri_arena_samples {
    struct fdri_arena_meta_head head;
    uint64_t number;   /* of the newest sample presented: periods that passed */
    uint64_t period;   /* ns of `clock`, or events */
    uint32_t clock;    /* enum fdri_arena_sample_clock */
    uint32_t low;      /* levels below this are no longer stored */
    uint64_t unpathed; /* samples whose stack could not be followed */
    struct {
        uint64_t presented, filtered, reduced_gate, lost;
        uint32_t part; /* off of the partition, 0 = none */
        uint32_t reserved;
    } level[FDRI_ARENA_SAMPLE_LEVELS];
};
static_assert(sizeof(struct fdri_arena_samples) == 48 + 40 * FDRI_ARENA_SAMPLE_LEVELS, "samples");

#endif
