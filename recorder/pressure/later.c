/* SPDX-License-Identifier: MIT */
/* Work that a call meets when it opens a bin, and that can wait: a step of the epochs, and a bin for later calls when
 * the last bin ready is used. Later calls do one piece of work each, so that no call does all of it. These are calls
 * whose record is spelled out, at least one in 64. If none comes in time, the call that needs the result does the
 * work. */
#include <fdr/fdr.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/atomic.h"
#include "recorder/memory/memory.h"
#include "recorder/pressure/recorder_pressure.h"
#include "recorder/strategy/strategy.h"
#include "recorder/thread/thread.h"
#include "recorder/thread/thread_state.h"

bool fdri_leave_for_later(struct fdri_thread *t, uint32_t what)
{
    if (!t->fast_clock || t->deferred & what) return false;
    t->deferred |= (uint8_t)what;
    return true;
}

void fdri_do_later(void)
{
    if (fdri_record_self.recording != fdri_atomic_load_relaxed(&fdr_switch_.on)) return;
    struct fdri_thread *t = fdri_thread_begin(FDRI_THREAD_NO_EVENT);
    if (!t) return;
    uint32_t what = t->deferred & -(uint32_t)t->deferred;
    t->deferred &= (uint8_t)~what; /* first: after a longjmp from here on, the need arises again by itself */
    if (what == FDRI_LATER_EPOCH) fdri_strategy_telescope_epoch(t);
    else if (what) fdri_memory_prepare_bin(t);
    fdri_thread_end(t);
}
