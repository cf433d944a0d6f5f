/* SPDX-License-Identifier: MIT */
/* When a snapshot is taken by itself, and fdr's own thread that takes it.
 *
 *   dumper.c         the thread, and the signal       trigger.c        a source has seen something: serve it
 *   watchdog.c       threads that stand still         thread_stacks.c  stacks of all threads for the section
 *   trigger_names.c  names for its messages
 *
 * Neighbours: recorder/watch/ sees; snapshot/ copies. */
#ifndef FDRI_EXPORT_TRIGGER_TRIGGER_H
#define FDRI_EXPORT_TRIGGER_TRIGGER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

uint64_t fdri_trigger_serve(uint64_t now_ns);
bool fdri_trigger_any(void);
void fdri_trigger_fork(int phase); /* as fdri_trigger_dumper_fork */
uint64_t fdri_trigger_watchdog_look(uint64_t now_ns);
/* The dumper overslept by that. From a quarter of the watchdog's time on, at most 100 ms, the process stood still:
 * nobody stood in that time. */
void fdri_trigger_watchdog_late(uint64_t ns);
void fdri_trigger_watchdog_start(void);

/* The name of what has this key (as in totals); false: it has none, and an address or "" is given. */
bool fdri_trigger_name_of(uint32_t key, char *name, size_t bytes);
/* ".FIELD" behind the name of a user event. */
void fdri_trigger_add_field_name(uint32_t key, uint32_t field, char *name, size_t bytes);

enum { FDRI_TRIGGER_STACKS = 256 };
struct fdri_trigger_tids {
    uint32_t count, tid[FDRI_TRIGGER_STACKS];
};
/* Stacks of all other threads as a section of at most `room` bytes, of FDRI_TRIGGER_STACKS at most: those of `first`
 * before others. Its length, 0: none. Takes up to 0.2 s, up to 2 s where a thread waits for a processor. Not for
 * threads that record; one at a time. */
uint32_t fdri_trigger_stacks_take(uint8_t *bytes, uint32_t room, const struct fdri_trigger_tids *first);

#endif
