/* SPDX-License-Identifier: MIT */
/* The governor's accounts (FDR_OVERHEAD): what recording costs, which regions are muted, and each change of that. */
#ifndef FDRI_FORMAT_ARENA_GOVERNOR_BLOCK_H
#define FDRI_FORMAT_ARENA_GOVERNOR_BLOCK_H

#include <assert.h>
#include <stdint.h>

#include "format/arena/meta_block.h"

/* A region that was muted at some time. Its place does not change. */
struct fdri_arena_muted_region {
    uint32_t region;
    uint32_t muted;     /* atomic: 1 now, 0 let back */
    uint32_t changes;   /* how often it was muted */
    uint32_t share_ppm; /* what recording it would cost, at the newest change: millionths of the program's time */
    uint64_t tick;      /* full ticks: of the newest change */
};
static_assert(sizeof(struct fdri_arena_muted_region) == 24, "muted region");
/* One change. */
struct fdri_arena_governor_change {
    uint64_t tick; /* full ticks */
    uint32_t region;
    uint32_t muted;          /* 1: muted; 0: let back */
    uint32_t share_ppm;      /* what recording this region would cost */
    uint32_t all_shares_ppm; /* what recording cost just before, whatever was muted then */
};
static_assert(sizeof(struct fdri_arena_governor_change) == 24, "change");
/* The head, then `regions_room` of struct fdri_arena_muted_region, then `changes_room` of struct
 * fdri_arena_governor_change. Only fdr's own thread writes it. Entries are complete before their count rises. */
struct fdri_arena_governor {
    struct fdri_arena_meta_head head;
    uint32_t target_ppm;    /* FDR_OVERHEAD */
    uint32_t period;        /* of so many calls of a muted region one has a time, on average */
    uint32_t call_ns_1024;  /* calibrated: what a recorded call costs more than a muted one, 1/1024 ns */
    uint32_t muted_ns_1024; /* calibrated: what a muted call costs */
    uint64_t cpu_ns;        /* processor time of the program since the governor began, at its newest look */
    uint64_t recorded;      /* recorded calls by then */
    uint64_t muted_calls;   /* calls without a time by then */
    uint64_t look_tick;     /* full ticks: its newest look, and the shares of the interval before it: */
    uint32_t share_ppm;     /* recording what is not muted */
    uint32_t muting_ppm;    /* muted calls */
    uint32_t muted_now;     /* regions */
    uint32_t no_room;       /* 1: a region should have been muted, but no place was left here */
    uint32_t regions_room;
    uint32_t regions_used; /* atomic */
    uint32_t changes_room;
    uint32_t changes; /* atomic: all changes; number n is at [n % changes_room] */
    uint8_t pad[32];
};
static_assert(sizeof(struct fdri_arena_governor) == 128, "governor");
static inline uint32_t fdri_arena_governor_bytes(uint32_t regions, uint32_t changes)
{
    return (uint32_t)(sizeof(struct fdri_arena_governor) + regions * sizeof(struct fdri_arena_muted_region) +
                      changes * sizeof(struct fdri_arena_governor_change));
}

#endif
