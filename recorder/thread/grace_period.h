/* SPDX-License-Identifier: MIT */
/* Read-side sections (RCU, by liburcu): inside of one a thread reads tables that other threads replace as a whole.
 * fdri_thread_after_grace frees an old table after the last section that may have seen it.
 *
 * The flavour is "bulletproof", urcu-bp: it keeps its list of threads in memory of its own. A signal handler may record
 * so late in its thread's life that no destructor will take the thread off the list. With other flavours the entry
 * would vanish with the thread's stack or thread-local variables.
 *
 * liburcu's functions are called, not inlined: this is off the fast path. Entries of its list are misaligned for their
 * type in liburcu 0.13, which UBSan reports where they are inlined. ThreadSanitizer does not know its barriers, so
 * fdri_thread_grace_word states what a grace period orders. */
#ifndef FDRI_RECORDER_THREAD_GRACE_PERIOD_H
#define FDRI_RECORDER_THREAD_GRACE_PERIOD_H

#include <stdbool.h>

#include "base/bits.h"
#include "base/racy.h"

#include <urcu/urcu-bp.h>

extern bool fdri_thread_forked;         /* this is a forked child: no thread may wait for a grace period */
extern uint32_t fdri_thread_grace_word; /* has no value; stands for all sections */

/* How many sections this thread is in, and its stack address at the outermost one. */
struct fdri_thread_reading {
    uint32_t count;
    uint64_t frame;
};
extern __thread struct fdri_thread_reading fdri_thread_reading __attribute__((visibility("hidden")));

/* Ends the sections that a handler left by longjmp; otherwise no grace period would ever end. here: the present stack
 * address. */
void fdri_thread_read_abandoned(uint64_t here);

/* Calls function(argument) in a thread of its own, once every section open now has ended. In a forked child, or without
 * memory for the thread, it is never called. */
void fdri_thread_after_grace(void (*function)(void *), void *argument);

/* Begins a section. The thread must be attached, so that liburcu knows it. Sections nest in signal handlers only: if
 * the stack shows that an open one has no frame any more, it was left by longjmp. In a forked child both functions do
 * nothing. No table is freed there, and liburcu's locks may be held by threads that only the parent has. */
static inline void fdri_thread_read_begin(void)
{
    uint64_t here = (uint64_t)(uintptr_t)__builtin_frame_address(0);
    if (FDRI_UNLIKELY(fdri_atomic_load_relaxed(&fdri_thread_forked))) return;
    if (FDRI_UNLIKELY(fdri_thread_reading.count)) fdri_thread_read_abandoned(here);
    if (!fdri_thread_reading.count) fdri_thread_reading.frame = here;
    fdri_thread_reading.count++;
    fdri_atomic_signal_fence(); /* a longjmp from here leaves one too many counted, unknown to liburcu */
    urcu_bp_read_lock();
}
static inline void fdri_thread_read_end(void)
{
    fdri_racy_hand_over(&fdri_thread_grace_word);
    if (FDRI_UNLIKELY(fdri_atomic_load_relaxed(&fdri_thread_forked))) return;
    urcu_bp_read_unlock();
    fdri_atomic_signal_fence(); /* the same here */
    fdri_thread_reading.count--;
}
#endif
