/* SPDX-License-Identifier: MIT */
/* Begin and end of a recording.
 *
 *   start.c               init, finalize                settings.c          text to settings
 *   misspelt_settings.c   names close to a setting's    settings.h          the functions of these two
 *   restored.c            restored from a checkpoint?   usage.c             fdr_usage()
 *   fork.c                the lock; around fork()       forked.c            recordings of forked children
 *   last_thread.c         are only fdr's threads left?  heartbeat.c         the process lives; does it move?
 *
 * Neighbours: memory/ makes the arena; names/, watch/, export/ and sampler/ are started and stopped from here. */
#ifndef FDRI_RECORDER_LIFE_LIFE_H
#define FDRI_RECORDER_LIFE_LIFE_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/system/cancellation.h"
#include "recorder/recording.h"

struct fdri_life_identity fdri_life_identity_now(void);
bool fdri_life_identity_differs(const struct fdri_life_identity *now); /* is it another process than at the begin? */
void fdri_life_check_restored(void);               /* if so, begins a new recording. Not in the dumper thread */
uint64_t fdri_life_poll_restored(uint64_t now_ns); /* for the dumper thread; returns the time of the next call */
void fdri_life_suspect_restored(void);             /* asks for a check soon. Async-signal-safe */

/* Stores that the process lives, and for how long no thread of it had an event. For the dumper thread; returns the time
 * of the next call. */
uint64_t fdri_life_poll_heartbeat(uint64_t now_ns);

/* Ends the program by exit(0) if only threads of fdr's own are left. For the dumper thread; returns the time of the
 * next call. */
uint64_t fdri_life_poll_last_thread(uint64_t now_ns);
void fdri_life_suspect_last_thread(void); /* the first thread ends: asks for checks soon */

void fdri_life_begin_anew(void); /* in a restored process: a new recording; the old one's file stays */
/* ---- the lock of begin and end, and fork(): fork.c ---- */
/* Signals that the program handles wait while the lock is held. try and give: for handlers, they block nothing. holds:
 * this thread has the lock, or is taking or releasing it. */
struct fdri_life_held {
    sigset_t mask;
    struct fdri_system_cancel cancel;
};
struct fdri_life_held fdri_life_lock(void), fdri_life_lock_at_exit(void);
void fdri_life_unlock(const struct fdri_life_held *h);
bool fdri_life_holds_lock(void), fdri_life_try_lock(void);
void fdri_life_give_lock(void);
bool fdri_life_forked_bare(void); /* is this a child made by _Fork or clone, with a copy of the recording? No vfork */
void fdri_life_fork_notice(void); /* in such a child: does the work of the handlers of fork() */
void fdri_life_fork_wipe(void), fdri_life_fork_watch(void); /* once: the switch is off in children; those handlers */
void fdri_life_exit_forget(void);                           /* in a child: it does not end, even if the parent did */

/* ---- forked children: forked.c ---- */
void fdri_life_fork_prepare(
    void); /* these three under all locks of fdr: before the fork, in the parent, in the child */
void fdri_life_fork_parent(void);
void fdri_life_fork_child(bool recorded);
void fdri_life_fork_follow(void); /* in a child of fork(), without a lock */
/* The calling thread attaches: opens the calls again that it had open at the fork. here: an address in its stack. */
void fdri_life_inherit_calls(uint64_t here);
/* Begins a recording in a forked child, unless one runs or the family has no room. whole: with the whole buffer, and
 * its live file has no name until fdri_life_settle_forked. */
bool fdri_life_begin_forked(bool whole);
void fdri_life_settle_forked(bool keep);         /* gives the live file its name, or ends the recording */
uint64_t fdri_life_poll_forked(uint64_t now_ns); /* for the dumper thread; returns the time of the next call */
/* The limit of memory for forked children. begin: fdr_init begins a recording. room: takes memory for one of a forked
 * child, in bytes; 0: there is none. leave: this process needs none any more. */
void fdri_life_family_begin(void);
uint64_t fdri_life_family_room(bool whole);
void fdri_life_family_leave(void);
void fdri_life_fork_forget(void); /* fdr_finalize: this process shall not record by itself */

void fdri_life_watch_exit(bool attaching); /* FDR_CRASH=exit: registers for the status of exit() */

#endif
