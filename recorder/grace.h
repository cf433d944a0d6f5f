/* SPDX-License-Identifier: MIT */
/* Sections in which a thread reads what others replace as a whole: liburcu's. What was replaced is freed by fdri_after_grace,
 * when every section that may have seen it is over.
 *
 * ThreadSanitizer cannot follow liburcu: its barriers are none that it knows, and inlined it would be reported itself. So that
 * build calls the library, and is told what a grace period orders. */
#ifndef FDR_RECORDER_GRACE_H
#define FDR_RECORDER_GRACE_H

#include "base/racy.h"

#if !defined(__SANITIZE_THREAD__) && !defined(FDR_TSAN_)
#define URCU_INLINE_SMALL_FUNCTIONS
#define _LGPL_SOURCE /* liburcu's small read-side functions inline; its licence allows that to MIT code */
#endif
#include <urcu/urcu-memb.h>

extern uint32_t fdri_grace_word; /* no value; stands for all sections */

/* The thread is attached: liburcu knows it. Nests, also in handlers. */
static inline void fdri_read_begin(void) { urcu_memb_read_lock(); }
static inline void fdri_read_end(void)
{
    fdr_hand_over(&fdri_grace_word);
    urcu_memb_read_unlock();
}
#endif
