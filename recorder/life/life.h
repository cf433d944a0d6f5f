/* SPDX-License-Identifier: MIT */
/* Begin and end of a recording.
 *
 *   start.c               init, finalize, fork          settings.c          text to settings
 *   misspelt_settings.c   names that are nearly one     usage.c             sums for the caller
 *   restored.c            restored from a checkpoint?   last_thread.c       only threads of fdr's own are left
 *   grace_period.c        until no thread reads what was replaced
 *
 * Neighbours: memory/ makes the arena; export/ and sampler/ are started from here. */
#ifndef FDRI_RECORDER_LIFE_LIFE_H
#define FDRI_RECORDER_LIFE_LIFE_H

#include <stdbool.h>
#include <stdint.h>

#include "recorder/life/recording.h"

/* Calls what(with) in a thread of its own when no thread reads any more what was read before. */
void fdri_life_after_grace(void (*what)(void *), void *with);

struct fdri_life_identity fdri_life_identity_now(void);
bool fdri_life_identity_differs(const struct fdri_life_identity *now); /* from the life the recording began in */
void fdri_life_check_restored(void);               /* begins a new recording where it does. Not in the dumper thread */
uint64_t fdri_life_poll_restored(uint64_t now_ns); /* the same in the dumper thread; when to be called again */
void fdri_life_suspect_restored(void);             /* it should be looked at soon. Async-signal-safe */

/* Are threads of fdr's own the only ones left? Then the program is over. In the dumper thread; when to be called
 * again. */
uint64_t fdri_life_poll_last_thread(uint64_t now_ns);
void fdri_life_suspect_last_thread(void); /* the first thread leaves: look soon */

void fdri_life_begin_anew(void); /* a new recording, where the process was restored; the old one's file stays */
void fdri_life_watch_exit(bool attaching);   /* FDR_CRASH=exit: what exit() is given */
uint64_t fdri_life_ns_to_ticks(uint64_t ns); /* a duration */

#endif
