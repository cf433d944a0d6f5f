/* SPDX-License-Identifier: MIT */
/* The shadow stack: what call.c and call_slow.c do with it. */
#ifndef FDR_RECORDER_RECORD_SHADOW_STACK_H
#define FDR_RECORDER_RECORD_SHADOW_STACK_H
#include <assert.h>
#include <fdr/fdr.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/atomic.h"
#include "base/bits.h"
#include "format/arena/arena.h"
#include "recorder/record/record.h"
#include "recorder/thread/thread_state.h"

/* An address in the caller's frame. */
#define FDRI_HERE()                                                                                                    \
    __extension__({                                                                                                    \
        char here_;                                                                                                    \
        char *p_ = &here_;                                                                                             \
        __asm__ volatile("" : "+r"(p_));                                                                               \
        (uint64_t)(uintptr_t) p_;                                                                                      \
    })

static_assert(offsetof(struct fdr_level, flags) == offsetof(struct fdr_level, region) + 4 &&
                  offsetof(struct fdr_level, skipped) == offsetof(struct fdr_level, row_off) + 4,
              "written as one word each");

/* The hot helpers take what they need as arguments: a thread-local field would be read again after every store. */
static inline __attribute__((always_inline)) void fdri_push(struct fdri_thread *t, struct fdr_location *l,
                                                            struct fdr_level *v, uint32_t depth, uint32_t row_off,
                                                            fdr_region region, uint32_t flags, uint64_t tick)
{
    uint64_t both = region | (uint64_t)flags << 32, row = row_off; /* and none skipped */
    v->enter_tick = tick;
    memcpy(&v->region, &both, sizeof both);
    memcpy(&v->row_off, &row, sizeof row);
    v->child_ticks = 0;
    fdr_signal_fence();
    fdr_bump_relaxed(&v->presented, 1);
    fdr_store_release(&l->depth, depth + 1); /* R:frame - pairs with A:frame in export/: the frame is whole */
    t->top = v;
}

/* What the call about to be pushed is known by. f: NULL where it came by the region's id. */
static inline __attribute__((always_inline)) void fdri_level_place(struct fdr_level *v, const struct fdri_function *f)
{
    v->address = f ? f->address : 0;
    if (!f) return;
    v->frame = f->frame;
    v->caller = (uint32_t)f->caller;
    v->site = (uint32_t)f->site;
}

static inline __attribute__((always_inline)) void fdri_pop(struct fdri_thread *t, struct fdr_location *l,
                                                           struct fdr_level *parent)
{
    t->top = parent;
    fdr_bump_release(&l->depth, -1u); /* R:frame */
}

static inline __attribute__((always_inline)) struct fdr_level *fdri_parent_of(struct fdri_thread *t,
                                                                              struct fdr_level *v, uint32_t depth)
{
    return FDR_LIKELY((depth - 1) % FDR_LEVELS_STEP) ? v - 1 : fdri_level(t, depth - 1);
}

/* call_slow.c: closes all calls that are open, without a leave of their own, at `tick` or the newest event. */
void fdri_close_open(struct fdri_thread *t, uint64_t tick);
/* call_slow.c: closes the top call, a timed one, at `tick`: totals, then storage, then the stack. */
void fdri_close_top(struct fdri_thread *t, struct fdr_location *l, struct fdr_level *v, uint32_t depth, uint64_t tick);
#endif
