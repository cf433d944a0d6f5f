/* SPDX-License-Identifier: MIT */
/* Triggers on recorded data: which events, calls and values fire a trigger.
 *
 *   watch.c         adding and removing triggers         watch_parse.c  a line of text to a trigger
 *   watch_seen.c    checks by recording threads          watch_poll.c   checks by the dumper thread
 *   watch_mpi.c     threads that stay in a call of MPI   watch_table.h  the table from region to triggers
 *
 * Neighbours: record/ calls the checks; names/ reports definitions; life/ starts and stops this; export/trigger/ takes
 * the snapshot. docs/TRIGGERS.md has the syntax. */
#ifndef FDRI_RECORDER_WATCH_WATCH_H
#define FDRI_RECORDER_WATCH_WATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "format/arena/arena.h"

struct fdri_thread;

/* Atomic: the least threshold of all triggers on ended calls; a leave compares with it. UINT64_MAX: there is none. */
extern uint64_t fdri_watch_ticks __attribute__((visibility("hidden"))),
    fdri_watch_ns __attribute__((visibility("hidden")));
extern uint32_t fdri_watch_classes __attribute__((visibility("hidden"))); /* atomic: bit per watched class of points */
/* Called by the owner of t for a call or point that passes these words. */
void fdri_watch_call(struct fdri_thread *t, uint32_t region, uint64_t duration, uint64_t tick);
void fdri_watch_point(struct fdri_thread *t, uint32_t key, uint32_t type, uint64_t value, const uint64_t *field,
                      uint32_t fields, uint64_t tick);
/* Each new definition; under the lock of the definitions. payload: of a user event, its fields. */
void fdri_watch_define(enum fdri_arena_def_kind kind, uint32_t id, const char *name, const void *payload,
                       uint32_t bytes);
bool fdri_watch_names(uint32_t key);     /* does a trigger name it, without wildcards? For fdr's own thread */
bool fdri_watch_regions(void);           /* is there a trigger on regions? */
void fdri_watch_start(const char *text); /* removes all triggers, then adds those of FDR_TRIGGERS */
void fdri_watch_stop(void);
/* Calls back for each trigger with a pattern that nothing has matched so far. */
void fdri_watch_unmatched(void (*each)(const char *where, const char *pattern));
void fdri_watch_fork(int phase);           /* phases: names.h */
uint64_t fdri_watch_poll(uint64_t now_ns); /* for the dumper thread; returns the time of the next call */

#endif
