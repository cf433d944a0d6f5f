/* SPDX-License-Identifier: MIT */
/* FDR_CHECK: the recorder checks itself. After each give-back the thread walks the lists of its own location. At each
 * snapshot the lists of all locations are looked at while other threads use them. The first failure costs one line on
 * standard error, and a note "fdr.check" in the next snapshot. Nothing else changes.
 *
 * Conditions that cost nothing (FDRI_BINS_HOLDS) are checked in any case, and reported in the same way. */
#include <fdr/fdr.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/atomic.h"
#include "base/text/message.h"
#include "bins/bins.h"
#include "bins/claims.h"
#include "recorder/memory/memory.h"
#include "recorder/recording.h"
#include "recorder/thread/thread_state.h"

static unsigned found;   /* something failed in this recording */
static uint32_t written; /* atomic: `failure` is complete, and no note has it yet */
static char failure[200];

void fdri_memory_check_reset(void)
{
    fdri_atomic_store_relaxed(&found, 0u);
    fdri_atomic_store_relaxed(&written, 0u);
}

/* The first one is kept. */
static void report(const char *when, const char *what)
{
    if (!fdri_text_once(&found)) return;
    snprintf(failure, sizeof failure, "%s: %s", when, what);
    fdri_text_message("FDR_CHECK: %s; recording goes on, and may show too little or stop (please report this)",
                      failure);
    fdri_atomic_store_release(&written, 1u); /* R:failure - the text is complete */
}

void fdri_memory_check_own(struct fdri_thread *t)
{
    struct fdri_bins_arena *a = &fdri_life_recording.arena;
    char text[160];
    /* claims of other threads change heads and counts of lists */
    const char *wrong = fdri_bins_claim_pin(a, t->loc) ? fdri_bins_check_location(a, t->loc, text, sizeof text) : NULL;
    if (!t->pinning) fdri_bins_claim_unpin(t->loc);
    if (wrong) report("after events were given back", wrong);
}

void fdri_memory_check_snapshot(bool held)
{
    struct fdri_bins_arena *a = &fdri_life_recording.arena;
    uint32_t yes = 1;
    char text[160];
    const char *wrong = fdri_atomic_load_relaxed(&a->broken);
    if (!wrong && held && fdri_life_recording.settings.check) wrong = fdri_bins_check_running(a, text, sizeof text);
    if (wrong) report("at a snapshot", wrong);
    /* A:failure - pairs with R:failure */
    if (fdri_atomic_cas_acq_rel_u32(&written, &yes, 0u)) fdr_note("fdr.check", failure);
}
