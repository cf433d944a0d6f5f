/* SPDX-License-Identifier: MIT */
/* Sections in which a thread reads what others replace as a whole: liburcu's. What was replaced is freed by
 * fdri_life_after_grace, when every section that may have seen it is over.
 *
 * Of its flavours the one that keeps its list of threads in memory of its own ("bulletproof"): a signal handler may
 * record when its thread is so near its end that nothing runs any more that could take it off the list, and goes with
 * its stack and its thread-local variables.
 *
 * Its functions are called, not inlined: they are off the fast path; entries of that list lie at other addresses than
 * their type promises (liburcu 0.13: undefined, as UBSan says of inlined ones); and ThreadSanitizer cannot follow
 * barriers that it does not know, so it is told what a grace period orders. */
#ifndef FDRI_RECORDER_LIFE_GRACE_PERIOD_H
#define FDRI_RECORDER_LIFE_GRACE_PERIOD_H

#include <stdbool.h>

#include "base/bits.h"
#include "base/racy.h"

#include <urcu/urcu-bp.h>

extern bool fdri_life_forked;         /* this is a child: nobody may wait for a grace period */
extern uint32_t fdri_life_grace_word; /* no value; stands for all sections */

/* Of the sections this thread is in, how many, and where its stack stood at the first of them. */
struct fdri_thread_reading {
    uint32_t count;
    uint64_t frame;
};
extern __thread struct fdri_thread_reading fdri_thread_reading __attribute__((visibility("hidden")));

/* Ends those that a handler left by longjmp: else no grace period would ever be over. here: where the stack stands. */
void fdri_thread_read_abandoned(uint64_t here);

/* The thread is attached: liburcu knows it. Nests in handlers, and in nothing else: a section that begins where one of
 * the same thread stands open shows that this was left. In a forked child nothing that was replaced is freed, so there
 * is nothing to guard; liburcu's locks may be held there by threads that it has not. */
static inline void fdri_life_read_begin(void)
{
    uint64_t here = (uint64_t)(uintptr_t)__builtin_frame_address(0);
    if (FDRI_UNLIKELY(fdri_life_forked)) return;
    if (FDRI_UNLIKELY(fdri_thread_reading.count)) fdri_thread_read_abandoned(here);
    if (!fdri_thread_reading.count) fdri_thread_reading.frame = here;
    fdri_thread_reading.count++;
    fdri_atomic_signal_fence(); /* left here it counts one too many, which liburcu does not know */
    urcu_bp_read_lock();
}
static inline void fdri_life_read_end(void)
{
    fdri_racy_hand_over(&fdri_life_grace_word);
    if (FDRI_UNLIKELY(fdri_life_forked)) return;
    urcu_bp_read_unlock();
    fdri_atomic_signal_fence(); /* here as well */
    fdri_thread_reading.count--;
}
#endif
