/* SPDX-License-Identifier: MIT */
/* The strategies as a table of functions: how a location gives memory back when the buffer is full. Other rooms ask
 * this table, and never which strategy is on. recorder/strategy/ has one file for each row. All functions: owner's
 * thread only, unless they say otherwise. */
#ifndef FDRI_RECORDER_STRATEGY_TABLE_H
#define FDRI_RECORDER_STRATEGY_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format/arena/arena.h"

struct fdri_policies_chain;
struct fdri_thread;

/* How samples and counter readings, which are numbered, give way. */
enum fdri_strategy_samples {
    FDRI_STRATEGY_SAMPLES_STAY,
    FDRI_STRATEGY_SAMPLES_BY_AGE,      /* the oldest go */
    FDRI_STRATEGY_SAMPLES_BY_LEVEL,    /* the oldest of the lowest level go */
    FDRI_STRATEGY_SAMPLES_CLOSE_LEVELS /* the lowest level goes as a whole, and none of it comes again */
};

/* One strategy. A function that is NULL has nothing to do. */
struct fdri_strategy {
    /* As fdri_strategy_reduce. asking: the partition that needs a bin; NULL: a meta block needs a piece. NULL: nothing
     * is ever given back. */
    uint32_t (*room)(struct fdri_thread *t, struct fdri_arena_part *asking, uint32_t size_log2, uint32_t *got);
    void (*full)(struct fdri_thread *t);                    /* an event found no bin, although its gate is open */
    bool (*levels)(struct fdri_thread *t, uint32_t levels); /* the shadow stack grows to so many; false: it may not */
    /* The order in which other threads take a location's partitions; any thread. NULL: none may. */
    const struct fdri_policies_chain *(*claimable)(void);

    void (*made)(struct fdri_thread *t, struct fdri_arena_part *p);   /* partition p was made */
    void (*opened)(struct fdri_thread *t, struct fdri_arena_part *p); /* a bin was appended to p */
    void (*sealed)(struct fdri_thread *t, struct fdri_arena_part *p); /* the newest bin of p takes no more records */
    /* The oldest bin of p was popped; its last record left at `end`. newest: it was the newest bin, too. */
    void (*given)(struct fdri_thread *t, struct fdri_arena_part *p, bool newest, uint64_t end, uint32_t size_log2);
    /* A rewind is about to remove the bins of p from `off` on, or to make one of them the newest. */
    void (*rewinds)(struct fdri_thread *t, struct fdri_arena_part *p, uint32_t off);
    void (*rewound)(struct fdri_thread *t); /* lists may have gone back to an older state */
    void (*pinned)(struct fdri_thread *t);  /* partitions were pinned (FDR_PIN) */
    void (*step)(struct fdri_thread *t);    /* the work that `opened` deferred */

    void (*many_rows)(struct fdri_thread *t);                  /* there are many totals rows */
    bool (*row_fits)(struct fdri_thread *t, uint32_t key);     /* before a row is made; false: it may not be */
    void (*row_made)(struct fdri_thread *t, uint32_t row_off); /* a totals row was made */

    void (*mend)(struct fdri_thread *t);        /* an operation was broken off: partitions are right again */
    void (*mend_totals)(struct fdri_thread *t); /* ... and so are the accounts */

    enum fdri_strategy_samples samples;
    bool always_gives;    /* as long as the location holds closed bins: no gate closes, no time is cut off */
    bool steps_alternate; /* between partitions, so steps of one partition share a line of the log */
    bool tiers;           /* locations have age tiers, each with its share */
};

/* The strategy that is on; any thread, while a recording runs. */
const struct fdri_strategy *fdri_strategy_now(void);
static inline bool fdri_strategy_gives(void) { return fdri_strategy_now()->room != NULL; }

/* Gives something back and returns a bin or piece for partition p, of at most 1 << size_log2 bytes. 0: nothing to give,
 * or p's own gate was closed. */
uint32_t fdri_strategy_reduce(struct fdri_thread *t, struct fdri_arena_part *p, uint32_t size_log2, uint32_t *got_log2);
/* The functions of the strategy that is on. */
void fdri_strategy_full(struct fdri_thread *t);
bool fdri_strategy_levels(struct fdri_thread *t, uint32_t levels);
void fdri_strategy_made(struct fdri_thread *t, struct fdri_arena_part *p);
void fdri_strategy_opened(struct fdri_thread *t, struct fdri_arena_part *p);
void fdri_strategy_sealed(struct fdri_thread *t, struct fdri_arena_part *p);
void fdri_strategy_given(struct fdri_thread *t, struct fdri_arena_part *p, bool newest, uint64_t end,
                         uint32_t size_log2);
void fdri_strategy_rewinds(struct fdri_thread *t, struct fdri_arena_part *p, uint32_t off);
void fdri_strategy_rewound(struct fdri_thread *t);
void fdri_strategy_pinned(struct fdri_thread *t);
void fdri_strategy_step(struct fdri_thread *t);
void fdri_strategy_many_rows(struct fdri_thread *t);
bool fdri_strategy_row_fits(struct fdri_thread *t, uint32_t key);
void fdri_strategy_row_made(struct fdri_thread *t, uint32_t row_off);
void fdri_strategy_mend(struct fdri_thread *t);
void fdri_strategy_mend_totals(struct fdri_thread *t);

#endif
