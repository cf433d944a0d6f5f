/* SPDX-License-Identifier: MIT */
/* Begin and end of a recording.
 *
 *   start.c               init, finalize, fork          settings.c          text to settings
 *   misspelt_settings.c   names close to a setting's    settings.h          the functions of these two
 *   restored.c            restored from a checkpoint?   usage.c             fdr_usage()
 *   last_thread.c         are only fdr's threads left?
 *
 * Neighbours: memory/ makes the arena; names/, watch/, export/ and sampler/ are started and stopped from here. */
#ifndef FDRI_RECORDER_LIFE_LIFE_H
#define FDRI_RECORDER_LIFE_LIFE_H

#include <stdbool.h>
#include <stdint.h>

#include "recorder/recording.h"

struct fdri_life_identity fdri_life_identity_now(void);
bool fdri_life_identity_differs(const struct fdri_life_identity *now); /* is it another process than at the begin? */
void fdri_life_check_restored(void);               /* if so, begins a new recording. Not in the dumper thread */
uint64_t fdri_life_poll_restored(uint64_t now_ns); /* for the dumper thread; returns the time of the next call */
void fdri_life_suspect_restored(void);             /* asks for a check soon. Async-signal-safe */

/* Ends the program by exit(0) if only threads of fdr's own are left. For the dumper thread; returns the time of the
 * next call. */
uint64_t fdri_life_poll_last_thread(uint64_t now_ns);
void fdri_life_suspect_last_thread(void); /* the first thread ends: asks for checks soon */

void fdri_life_begin_anew(void);           /* in a restored process: a new recording; the old one's file stays */
void fdri_life_watch_exit(bool attaching); /* FDR_CRASH=exit: registers for the status of exit() */

#endif
