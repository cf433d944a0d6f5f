/* SPDX-License-Identifier: MIT */
/* The free bins of each NUMA node. The stripe of `stripe_bytes` at offset k * stripe_bytes lies on node[k %
 * node_count]. */
#ifndef FDRI_FORMAT_ARENA_NUMA_BLOCK_H
#define FDRI_FORMAT_ARENA_NUMA_BLOCK_H

#include <assert.h>
#include <stdint.h>

#include "format/arena/meta_block.h"

struct fdri_arena_node {
    uint64_t free_stack; /* atomic, as in the superblock: returned bins of this node; informative */
    uint32_t free_bins;  /* atomic: their number; informative */
    uint32_t id;         /* the kernel's number of the node */
    uint8_t pad[48];     /* so that nodes do not share cache lines */
};
static_assert(sizeof(struct fdri_arena_node) == 64, "node");
struct fdri_arena_nodes_block {
    struct fdri_arena_meta_head head;
    uint32_t count;
    uint32_t stripe_bytes;
    uint8_t pad[40];
    struct fdri_arena_node node[];
};
static_assert(sizeof(struct fdri_arena_nodes_block) == 64, "nodes block");

#endif
