/* SPDX-License-Identifier: MIT */
/* Sections in which a thread reads what others replace as a whole: liburcu's. What was replaced is freed by
 * fdri_after_grace, when every section that may have seen it is over.
 *
 * Of its flavours the one that keeps its list of threads in memory of its own ("bulletproof"): a signal handler may
 * record when its thread is so near its end that nothing runs any more that could take it off the list, and goes with
 * its stack and its thread-local variables.
 *
 * Its functions are called, not inlined: they are off the fast path; entries of that list lie at other addresses than
 * their type promises (liburcu 0.13: undefined, as UBSan says of inlined ones); and ThreadSanitizer cannot follow
 * barriers that it does not know, so it is told what a grace period orders. */
#ifndef FDR_RECORDER_GRACE_H
#define FDR_RECORDER_GRACE_H

#include <stdbool.h>

#include "base/bits.h"
#include "base/racy.h"

#include <urcu/urcu-bp.h>

extern bool fdri_forked;         /* this is a child: nobody may wait for a grace period */
extern uint32_t fdri_grace_word; /* no value; stands for all sections */

/* The thread is attached: liburcu knows it. Nests, also in handlers. In a forked child nothing that was replaced is
 * freed, so there is nothing to guard; liburcu's locks may be held there by threads that it has not. */
static inline void fdri_read_begin(void)
{
    if (FDR_LIKELY(!fdri_forked)) urcu_bp_read_lock();
}
static inline void fdri_read_end(void)
{
    fdr_hand_over(&fdri_grace_word);
    if (FDR_LIKELY(!fdri_forked)) urcu_bp_read_unlock();
}
#endif
