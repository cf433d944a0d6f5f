/* SPDX-License-Identifier: MIT */
/* The tail of a snapshot: the state of each location after its bins were copied. */
#ifndef FDRI_FORMAT_ARENA_TAIL_H
#define FDRI_FORMAT_ARENA_TAIL_H

#include <assert.h>
#include <stdint.h>

#include "format/arena/meta_block.h"

#define FDRI_ARENA_TAIL_MAGIC 0x4c494154u /* "TAIL" */
struct fdri_arena_tail {
    uint32_t magic;
    uint32_t count; /* entries that follow */
    uint64_t reserved;
};
struct fdri_arena_tail_entry {
    uint32_t location;
    uint32_t under_way; /* 1: the owner was in an operation before the copy, or after it */
    uint64_t presented; /* events of all classes and depths, after the copy */
    uint64_t cut_tick;  /* full ticks: newest event when the open stack was copied */
    uint64_t completed; /* completed events of all classes and depths, before the copy */
    uint64_t end_tick;  /* full ticks: newest event after the copy; equal to cut_tick if the location was quiet */
};
static_assert(sizeof(struct fdri_arena_tail_entry) == 40, "tail entry");
/* 5,734: more than the threads that can always record in 64 MiB. Further locations have no entry (FORMAT.md, 14.1). */
#define FDRI_ARENA_TAIL_ENTRIES                                                                                        \
    ((FDRI_ARENA_TAIL_MAX_BYTES - FDRI_ARENA_TAIL_CHECKS - sizeof(struct fdri_arena_tail)) /                           \
     sizeof(struct fdri_arena_tail_entry))

#endif
