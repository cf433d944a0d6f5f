/* SPDX-License-Identifier: MIT */
/* Triggers on what is recorded: is it time to say so?
 *
 *   watch.c         the table, and adding and removing    watch_parse.c  a line of text to a source
 *   watch_seen.c    the checks of recording threads       watch_poll.c   looked for by the dumper thread
 *   watch_table.h   the table itself
 *
 * Neighbours: record/ calls the checks; export/trigger/ takes the snapshot. */
#ifndef FDRI_RECORDER_WATCH_WATCH_H
#define FDRI_RECORDER_WATCH_WATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "format/arena/arena.h"

struct fdri_thread;

/* Atomic: calls that took at least this long may be wanted by a trigger; UINT64_MAX: none is set. */
extern uint64_t fdri_watch_ticks __attribute__((visibility("hidden"))),
    fdri_watch_ns __attribute__((visibility("hidden")));
extern uint32_t fdri_watch_classes __attribute__((visibility("hidden"))); /* atomic: bit per class of points */
void fdri_watch_call(struct fdri_thread *t, uint32_t region, uint64_t duration, uint64_t tick);
void fdri_watch_point(struct fdri_thread *t, uint32_t key, uint32_t type, uint64_t value, const uint64_t *field,
                      uint32_t fields, uint64_t tick);
void fdri_watch_define(enum fdri_arena_def_kind kind, uint32_t id, const char *name, const void *payload,
                       uint32_t bytes);
bool fdri_watch_regions(void);           /* is there a trigger on regions? */
void fdri_watch_start(const char *text); /* FDR_TRIGGERS */
void fdri_watch_stop(void);
void fdri_watch_fork(int phase);           /* as fdri_names_define_fork */
uint64_t fdri_watch_poll(uint64_t now_ns); /* watch_poll.c: in the dumper thread */

#endif
