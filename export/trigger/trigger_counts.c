/* SPDX-License-Identifier: MIT */
/* Counts of matches, in the recording as a note "trigger NAME". */
#include <fdr/fdr.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/atomic.h"
#include "base/text/message.h"
#include "base/text/number.h"
#include "export/trigger/trigger.h"

void fdri_trigger_counts_reset(struct fdri_trigger_counts *c)
{
    fdri_atomic_store_relaxed(&c->dropped, (uint64_t)0);
    c->snapshots = 0;
    c->in_holdoff = c->warned = false;
}

void fdri_trigger_counts_dropped(struct fdri_trigger_counts *c) { fdri_atomic_add_relaxed(&c->dropped, 1u); }

void fdri_trigger_counts_store(struct fdri_trigger_counts *c, const char *name, uint64_t seen, uint64_t holdoff_ns)
{
    char key[40], value[104], time[40];
    uint64_t dropped = fdri_atomic_load_relaxed(&c->dropped);
    fdri_text_print_number(time, sizeof time, 0, (double)holdoff_ns / 1e6);
    snprintf(key, sizeof key, "trigger %.31s", name);
    snprintf(value, sizeof value,
             "seen %" PRIu64 ", dropped in the hold-off of %.12s ms %" PRIu64 ", snapshots %" PRIu64, seen, time,
             dropped, c->snapshots);
    fdr_note(key, value);
    if (!dropped || !holdoff_ns || c->warned) return; /* without one, the limit of snapshots has dropped them */
    c->warned = true;
    fdri_text_message("trigger '%s': saw its condition again within the hold-off of %.12s ms, and took no snapshot of "
                      "that; 'holdoff TIME' in its line changes this",
                      name, time);
}
