/* SPDX-License-Identifier: MIT */
/* The table of a location's partitions in order of worth: the first to give back stands first. It consists of blocks,
 * each small enough for a bin, so it can grow although meta blocks have no other memory left. */
#ifndef FDRI_RECORDER_STRATEGY_WORTH_ORDER_H
#define FDRI_RECORDER_STRATEGY_WORTH_ORDER_H

#include <stdint.h>

#include "format/arena/arena.h"
#include "recorder/strategy/reduce.h"
#include "recorder/thread/thread_state.h"

struct fdri_thread;

struct fdri_strategy_rank {
    uint64_t end;  /* lower bound of the tick at which its oldest bin ends */
    uint64_t list; /* the bound is exact while list_head has this value */
    uint32_t part;
    uint8_t step; /* the enum fdri_policies_step that applies to it */
    /* class << 4 | band. Comparisons need only this entry, and no partition all over the arena. */
    uint8_t kind;
    uint16_t depth;
};

/* A position in the table, from which near places are found quickly. */
struct fdri_strategy_cursor {
    uint32_t block, first, room; /* the block (0: none yet), the index of its first place, the number of its places */
};
#define FDRI_STRATEGY_CURSOR_START                                                                                     \
    {                                                                                                                  \
        0, 0, 0                                                                                                        \
    }

/* The entry at index i < t->order_count. */
struct fdri_strategy_rank *fdri_strategy_order_at(struct fdri_thread *t, struct fdri_strategy_cursor *c, uint32_t i);
/* Inserts p at its place. Without memory p is left out and t->order_incomplete set; the next
 * fdri_strategy_order_complete tries again. */
void fdri_strategy_order_put(struct fdri_thread *t, struct fdri_arena_part *p);
void fdri_strategy_order_complete(struct fdri_thread *t);
/* Sorts the table: classes without a rank go by their bytes, which change. One call does a bounded number of steps.
 * While t->order_sorted is not 0, the next call continues. */
void fdri_strategy_order_sort(struct fdri_thread *t);
void fdri_strategy_order_drop_pinned(struct fdri_thread *t); /* removes pinned partitions */
/* Repairs the table after an operation was broken off. */
void fdri_strategy_order_mend(struct fdri_thread *t);

#endif
