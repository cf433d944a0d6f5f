/* SPDX-License-Identifier: MIT */
/* Work that a call meets when it opens a bin, and that can wait. It is a step of the epochs, or new bins ready when the
 * last one has gone. Later calls do it, one piece each, so no call does all at once. They are calls whose record is
 * spelled out: at least one of 64. If none comes in time, the call that needs the work does it. */
#include <fdr/fdr.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/atomic.h"
#include "recorder/memory/memory.h"
#include "recorder/pressure/recorder_pressure.h"
#include "recorder/strategy_table.h"
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
    t->deferred &= (uint8_t)~what; /* first: left here by longjmp it comes up again by itself */
    if (what == FDRI_LATER_EPOCH) fdri_strategy_step(t);
    else if (what == FDRI_LATER_BIN) fdri_memory_prepare_bin(t);
    fdri_thread_end(t);
}
