/* SPDX-License-Identifier: MIT */
/* The log of reductions of a location: each step that gave memory back, and its reason. */
#ifndef FDRI_FORMAT_ARENA_LEDGER_LINE_H
#define FDRI_FORMAT_ARENA_LEDGER_LINE_H

#include <assert.h>
#include <stdint.h>

#include "format/arena/meta_block.h"

#define FDRI_ARENA_REDUCTION_LINES 48
/* At this count of lines it goes back to FDRI_ARENA_REDUCTION_LINES: all lines exist, and the next one is the same. */
#define FDRI_ARENA_REDUCTION_COUNT_END (UINT32_MAX / FDRI_ARENA_REDUCTION_LINES * FDRI_ARENA_REDUCTION_LINES)
/* One line. Consecutive steps of one kind on one partition share a line. */
struct fdri_arena_reduction {
    uint64_t tick;   /* of the first step */
    uint64_t events; /* given back, as the bytes are */
    uint64_t bytes;
    uint64_t from_tick, to_tick; /* the time that the returned bins covered */
    uint32_t steps;
    uint8_t step; /* enum fdri_arena_step */
    uint8_t class_;
    uint8_t band;
    uint8_t reason;       /* enum fdri_policies_reason of policies/ */
    uint32_t depth;       /* claim: id of the location that lost the bins */
    uint32_t gate_closed; /* 1: the partition is empty, and its gate closed */
};
static_assert(sizeof(struct fdri_arena_reduction) == 56, "reduction line");
struct fdri_arena_reductions_block {
    struct fdri_arena_meta_head head;
    uint8_t pad[48];
    struct fdri_arena_reduction line[FDRI_ARENA_REDUCTION_LINES];
};

enum fdri_arena_step {
    FDRI_ARENA_STEP_DURATION = 1,
    FDRI_ARENA_STEP_DEPTH,
    FDRI_ARENA_STEP_CLASS,
    FDRI_ARENA_STEP_EPOCH,
    FDRI_ARENA_STEP_STOP,
    FDRI_ARENA_STEP_CLAIM,
    FDRI_ARENA_STEP_THIN = 8
};

#endif
