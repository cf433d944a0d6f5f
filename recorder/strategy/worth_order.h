/* SPDX-License-Identifier: MIT */
/* The partitions of a location in order of worth, what goes first in front. The table lies in blocks, each small enough
 * for a bin: where meta has no other memory left it grows all the same. */
#ifndef FDRI_RECORDER_STRATEGY_WORTH_ORDER_H
#define FDRI_RECORDER_STRATEGY_WORTH_ORDER_H

#include <stdint.h>

#include "format/arena/arena.h"
#include "recorder/strategy/reduce.h"
#include "recorder/thread/thread_state.h"

struct fdri_thread;

struct fdri_strategy_rank {
    uint64_t end;  /* its oldest bin ends then or later */
    uint64_t list; /* exactly then, while this is where the list begins */
    uint32_t part;
    uint8_t step; /* enum fdri_policies_step that takes it */
    uint8_t kind; /* class << 4 | band: what is compared stands here, not all over the arena */
    uint16_t depth;
};

/* Where somebody is in the table: places near by are found from there. */
struct fdri_strategy_cursor {
    uint32_t block, first, room; /* the block, 0: none yet; the index of its first place; how many it has */
};
#define FDRI_STRATEGY_CURSOR_START                                                                                     \
    {                                                                                                                  \
        0, 0, 0                                                                                                        \
    }

/* i < t->order_count */
struct fdri_strategy_rank *fdri_strategy_order_at(struct fdri_thread *t, struct fdri_strategy_cursor *c, uint32_t i);
/* Puts it where it belongs. Without memory for it it is left out: t->order_lacks, and the next call of
 * fdri_strategy_order_complete tries again. */
void fdri_strategy_order_put(struct fdri_thread *t, struct fdri_arena_part *p);
void fdri_strategy_order_complete(struct fdri_thread *t);
/* Classes nobody ranked go by what they hold, and that changes. So many steps at a time: while t->order_sorted it is
 * not through, and goes on with the next call. */
void fdri_strategy_order_sort(struct fdri_thread *t);
void fdri_strategy_order_drop_pinned(struct fdri_thread *t); /* what was set aside is in it no more */
/* An operation that changed it was left in the middle. */
void fdri_strategy_order_mend(struct fdri_thread *t);

#endif
