/* SPDX-License-Identifier: MIT */
/* The shadow stack: push and pop of open calls, for call.c and call_slow.c. */
#ifndef FDRI_RECORDER_RECORD_SHADOW_STACK_H
#define FDRI_RECORDER_RECORD_SHADOW_STACK_H
#include <assert.h>
#include <fdr/fdr.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/atomic.h"
#include "base/bits.h"
#include "format/arena/arena.h"
#include "recorder/record/record.h"
#include "recorder/thread/arena_place.h"
#include "recorder/thread/thread_state.h"

/* An address in the calling function's frame. */
#define FDRI_RECORD_HERE()                                                                                             \
    __extension__({                                                                                                    \
        char here_;                                                                                                    \
        char *p_ = &here_;                                                                                             \
        __asm__ volatile("" : "+r"(p_));                                                                               \
        (uint64_t)(uintptr_t) p_;                                                                                      \
    })

static_assert(offsetof(struct fdri_arena_level, flags) == offsetof(struct fdri_arena_level, region) + 4 &&
                  offsetof(struct fdri_arena_level, reserved) == offsetof(struct fdri_arena_level, row_off) + 4,
              "written as one word each");

/* Pushes a call. Enter stores the level before the depth: a handler or a kill in between finds no half-written call.
 * The hot helpers take their values as arguments: a thread-local field would be loaded again after every store. */
static inline __attribute__((always_inline)) void fdri_record_push(struct fdri_thread *t, struct fdri_arena_location *l,
                                                                   struct fdri_arena_level *v, uint32_t depth,
                                                                   uint32_t row_off, fdr_region region, uint32_t flags,
                                                                   uint64_t tick)
{
    uint64_t both = region | (uint64_t)flags << 32, row = row_off; /* reserved stays 0 */
    v->enter_tick = tick;
    memcpy(&v->region, &both, sizeof both);
    memcpy(&v->row_off, &row, sizeof row);
    v->child_ticks = 0;
    fdri_atomic_signal_fence();
    fdri_atomic_bump_relaxed(&v->presented, 1);
    fdri_atomic_store_release(&l->depth, depth + 1); /* R:frame - pairs with A:frame in export/: the frame is whole */
    t->top = v;
}

/* Stores the code address and the place on the stack of the call that is pushed next. f: NULL if it was entered by its
 * region's id. */
static inline __attribute__((always_inline)) void fdri_record_level_place(struct fdri_arena_level *v,
                                                                          const struct fdri_record_function *f)
{
    v->address = f ? f->address : 0;
    if (!f) return;
    v->frame = f->frame;
    v->caller = (uint32_t)f->caller;
    v->site = (uint32_t)f->site;
}

static inline __attribute__((always_inline)) void fdri_record_pop(struct fdri_thread *t, struct fdri_arena_location *l,
                                                                  struct fdri_arena_level *parent)
{
    t->top = parent;
    fdri_atomic_bump_release(&l->depth, -1u); /* R:frame */
}

static inline __attribute__((always_inline)) struct fdri_arena_level *
fdri_record_parent_of(struct fdri_thread *t, struct fdri_arena_level *v, uint32_t depth)
{
    return FDRI_LIKELY((depth - 1) % FDRI_ARENA_LEVELS_STEP) ? v - 1 : fdri_thread_level(t, depth - 1);
}

/* call_slow.c: closes all open calls, which have no leave of their own, at `tick` or at the newest event if that is
 * later. */
void fdri_record_close_all(struct fdri_thread *t, uint64_t tick);
/* call_slow.c: closes the top call, which has a time, at `tick`: totals, then storage, then the stack. */
void fdri_record_close_top(struct fdri_thread *t, struct fdri_arena_location *l, struct fdri_arena_level *v,
                           uint32_t depth, uint64_t tick);
/* The same for any open call: with or without a time, under a rule or not. */
void fdri_record_close_flagged(struct fdri_thread *t, uint64_t tick);
/* Pushes a call that is only counted, as presented and filtered: no clock is read, and nothing will be stored. flags:
 * those beside UNTIMED. */
void fdri_record_push_untimed(struct fdri_thread *t, struct fdri_arena_level *v, struct fdri_arena_row *row,
                              fdr_region region, uint32_t flags);

#endif
