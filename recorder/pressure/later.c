/* SPDX-License-Identifier: MIT */
/* Work that a call which opens a bin comes to and that can wait: a step of the epochs, and bins for those to come when
 * the last one that was ready has gone. Calls behind, one each, do it, so that none does all at once. They are such
 * whose record is spelled out, of which there is one in 64 at least. Where none comes by before it is needed, who needs
 * it does it. */
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
