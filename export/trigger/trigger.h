/* SPDX-License-Identifier: MIT */
/* When a snapshot is taken by itself, and fdr's own thread that takes it.
 *
 *   dumper.c         the thread, and the signal       trigger.c        serves the matches that sources report
 *   watchdog.c       threads without progress         thread_stacks.c  stacks of all threads for the section
 *   trigger_names.c  names for its messages           idle_threads.c   which threads wait for work
 *   job_asks.c, job_answers.c  snapshots of all ranks of a job
 *
 * Neighbours: recorder/watch/ finds the matches; snapshot/ copies the arena. */
#ifndef FDRI_EXPORT_TRIGGER_TRIGGER_H
#define FDRI_EXPORT_TRIGGER_TRIGGER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/system/task_state.h"
#include "format/arena/location.h"

uint64_t fdri_trigger_serve(uint64_t now_ns);
bool fdri_trigger_any(void);
void fdri_trigger_fork(int phase); /* phases as for fdri_trigger_dumper_fork */
uint64_t fdri_trigger_watchdog_look(uint64_t now_ns);
/* The dumper woke up `ns` too late. If that is at least a quarter of the watchdog's time (at most 100 ms), the whole
 * process was stopped. The watchdog then does not count that time. */
void fdri_trigger_watchdog_late(uint64_t ns);
void fdri_trigger_watchdog_start(void);

/* ---- idle_threads.c ---- */
void fdri_trigger_idle_start(void);
/* Call it at a look at which a thread has moved. */
void fdri_trigger_idle_learn(const struct fdri_arena_location *l);
struct fdri_trigger_wait {
    enum fdri_system_wait wait;
    uint32_t owner; /* of the mutex that it waits for; 0: not known */
};
/* True if the thread, which stands, waits for work or is ignored by FDR_WATCHDOG_IGNORE. excluded: by the name of its
 * region it does not. */
bool fdri_trigger_is_idle(const struct fdri_arena_location *l, bool excluded, struct fdri_trigger_wait *wait);

/* ---- trigger_names.c ---- */
/* The name of the region, metric or event with this key (as in totals). False: it has none; `name` is an address or
 * "". */
bool fdri_trigger_name_of(uint32_t key, char *name, size_t bytes);
/* For messages: "handle (server.c:87)", or "handle 0x5581c0de", as far as it is known. */
void fdri_trigger_describe(uint32_t key, char *text, size_t bytes);
/* Appends ".FIELD" to the name of a user event. */
void fdri_trigger_add_field_name(uint32_t key, uint32_t field, char *name, size_t bytes);

enum { FDRI_TRIGGER_STACKS = 256 };
struct fdri_trigger_tids {
    uint32_t count, tid[FDRI_TRIGGER_STACKS];
};
/* Writes the stacks of the other threads as a section of at most `room` bytes. At most FDRI_TRIGGER_STACKS threads,
 * those of `first` before others. Returns its length, 0: none. Takes up to 0.2 s, up to 2 s if a thread waits for a
 * processor. Not for recording threads; one call at a time. */
uint32_t fdri_trigger_stacks_take(uint8_t *bytes, uint32_t room, const struct fdri_trigger_tids *first);

#endif
