/* SPDX-License-Identifier: MIT */
/* Triggers, as recorder/ sees them: a source reports a match, and the dumper thread does the rest. export/trigger/ has
 * the functions; view.h includes this header. */
#ifndef FDRI_EXPORT_TRIGGER_MATCHES_H
#define FDRI_EXPORT_TRIGGER_MATCHES_H

#include <stdbool.h>
#include <stdint.h>

#include "format/arena/arena.h"

enum { FDRI_EXPORT_TRIGGERS = 64 };
#define FDRI_EXPORT_NO_KEY   UINT32_MAX
#define FDRI_EXPORT_NO_FIELD 255u
struct fdri_export_trigger {
    char name[64], condition[192]; /* condition: as text */
    uint64_t window_ns, holdoff_ns;
    uint32_t keep;
    bool keep_newest;
    bool job;                       /* all ranks of the job take a snapshot */
    struct fdri_arena_tally *tally; /* where its matches are counted; NULL: no room */
};
enum fdri_export_unit {
    FDRI_EXPORT_UNIT_NONE,
    FDRI_EXPORT_UNIT_NS,
    FDRI_EXPORT_UNIT_COUNT,
    FDRI_EXPORT_UNIT_BYTES,
    FDRI_EXPORT_UNIT_PER_SECOND
};
struct fdri_export_seen {
    uint64_t tick; /* full ticks of the recording's clock */
    uint64_t value;
    uint32_t type; /* enum fdri_arena_value_type */
    enum fdri_export_unit unit;
    uint32_t location; /* UINT32_MAX: none */
    uint32_t key;      /* region, metric or user event of the match, as in totals; FDRI_EXPORT_NO_KEY: none */
    uint32_t field;    /* field of that user event; FDRI_EXPORT_NO_FIELD: none */
};
void fdri_trigger_arm(uint32_t slot, const struct fdri_export_trigger *trigger);
void fdri_trigger_disarm(uint32_t slot);
void fdri_trigger_forget(uint32_t slot);
/* Reports a match. Async-signal-safe and wait-free, except that the first match in a hold-off wakes the dumper. */
void fdri_trigger_seen(uint32_t slot, const struct fdri_export_seen *seen);
uint64_t fdri_trigger_count(uint32_t slot); /* number of matches reported */
void fdri_trigger_dumper_wake(void);        /* async-signal-safe */
int fdri_trigger_dumper_start(void);        /* starts the thread if it does not run. 0 or -errno */
bool fdri_trigger_dumper_stops(void);       /* true while a thread waits for the dumper's end */

#endif
