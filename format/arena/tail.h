/* SPDX-License-Identifier: MIT */
/* The tail of a snapshot: each location's accounts after its bins were copied. */
#ifndef FDRI_FORMAT_ARENA_TAIL_H
#define FDRI_FORMAT_ARENA_TAIL_H

#include <assert.h>
#include <stdint.h>

#include "format/arena/meta_block.h"

/* ---- tail of a snapshot: each location's accounts after its bins were copied ---- */
#define FDRI_ARENA_TAIL_MAGIC 0x4c494154u /* "TAIL" */
struct fdri_arena_tail {
    uint32_t magic;
    uint32_t count; /* entries that follow */
    uint64_t reserved;
};
struct fdri_arena_tail_entry {
    uint32_t location;
    uint32_t under_way; /* 1: the owner was in the middle of an operation before all of it, or at the end */
    uint64_t presented; /* all classes and depths, after */
    uint64_t cut_tick;  /* full ticks: newest event when the open stack was copied */
    uint64_t completed; /* events of all classes and depths that were over before anything was copied */
    uint64_t end_tick;  /* full ticks: newest event after; equal to cut_tick when the location did not move */
};
static_assert(sizeof(struct fdri_arena_tail_entry) == 40, "tail entry");
/* 5,734: more than the threads that 64 MiB are sure to have room for. Others have none (FORMAT.md, 14.1). */
#define FDRI_ARENA_TAIL_ENTRIES                                                                                        \
    ((FDRI_ARENA_TAIL_MAX_BYTES - FDRI_ARENA_TAIL_CHECKS - sizeof(struct fdri_arena_tail)) /                           \
     sizeof(struct fdri_arena_tail_entry))

#endif
