/* SPDX-License-Identifier: MIT */
/* The program's own handlers of the signals that end a process. fdr's handler calls them first.
 *
 *   program_handlers.c   calls them, and finds out whether the process goes on (fatal path)
 *   program_actions.c    FDR_CRASH=first: the program's action of each fault, while the kernel has fdr's (fatal path)
 *   signal_functions.c   FDR_CRASH=first: sigaction, signal and the mask functions, as the program calls them */
#ifndef FDRI_EXPORT_CRASH_PROGRAM_HANDLERS_H
#define FDRI_EXPORT_CRASH_PROGRAM_HANDLERS_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/system/signal_action.h"
#include "export/crash/crash_path.h"

/* ---- program_handlers.c ---- */
bool fdri_crash_program_has_handler(const struct fdri_crash_signal *s);
/* Calls the handler that fdr found when it installed its own. */
void fdri_crash_program_call(const struct fdri_crash_signal *s, siginfo_t *info, void *context);
/* Does the same, and returns true if that handler dealt with the signal and the process goes on. */
bool fdri_crash_program_handled(struct fdri_crash_signal *s, siginfo_t *info, void *context);
/* With FDR_CRASH=first: calls the handler that the program has installed by now, with the errno that the signal
 * interrupted. NOT_MINE: this is not for the program's handler. */
enum fdri_crash_outcome { FDRI_CRASH_NOT_MINE, FDRI_CRASH_GOES_ON, FDRI_CRASH_DIES };
enum fdri_crash_outcome fdri_crash_first_signal(struct fdri_crash_signal *s, siginfo_t *info, void *context, int error);
/* A signal arrived: forgets a handler of the program that this thread left by longjmp. here: a stack address of fdr's
 * handler. */
void fdri_crash_program_left(uint64_t here, const void *context);
/* If the signal interrupted a handler of the program, stores the signal that the handler got. */
bool fdri_crash_program_runs(const void *context, struct fdri_arena_crash_cause *cause);
/* True if the program's handler may have raised the signal again, so that it waits until fdr's handler returns. */
bool fdri_crash_program_raised_again(const struct fdri_crash_signal *s);

/* ---- program_actions.c ---- */
typedef int fdri_crash_mask_function(int, const sigset_t *, sigset_t *);
bool fdri_crash_first(void); /* fdr stays the kernel's handler of faults */
bool fdri_crash_is_fault(int number);
bool fdri_crash_is_ours(const struct sigaction *action);
/* Turn it on and off; with the handlers locked, or in a child. `next`: sigaction behind fdr's function of that name. */
void fdri_crash_first_begin(fdri_system_sigaction_function *next);
void fdri_crash_first_end(void);
/* The kernel has an action of the program: stores it and puts fdr's handler in its place. An ignored signal stays
 * ignored. With the handlers locked. */
void fdri_crash_first_adopt(struct fdri_crash_signal *s);
/* The program's action. Async-signal-safe, without a lock. */
struct sigaction fdri_crash_first_action(const struct fdri_crash_signal *s);
/* The same for a signal that is being delivered; a handler with SA_RESETHAND is the program's no more. */
struct sigaction fdri_crash_first_take(const struct fdri_crash_signal *s);
/* Faults that the program's running handler holds back. The kernel does not block them, so that a fault in the handler
 * leaves a bundle; a signal that was sent waits. */
uint64_t fdri_crash_held_back(const void *context);
/* The handler of `action` begins: `*before` is for fdri_crash_held_restore when it has returned. */
void fdri_crash_hold_back(int number, const struct sigaction *action, const void *context, uint64_t *before);
void fdri_crash_held_restore(uint64_t before);
/* sigprocmask or pthread_sigmask of a thread in such a handler; `real` is the C library's. */
bool fdri_crash_holds_back(void);
int fdri_crash_first_mask(int how, const sigset_t *set, sigset_t *old, fdri_crash_mask_function *real);

/* ---- signal_functions.c ---- */
/* sigaction behind fdr's function of that name. NULL: the program's calls do not reach fdr's; says why. */
fdri_system_sigaction_function *fdri_crash_first_possible(void);

/* ---- crash_handler.c ---- */
bool fdri_crash_dies_here(uint32_t tid); /* this thread writes the bundle, or wrote it */
struct fdri_arena_superblock *fdri_crash_superblock(void);
struct fdri_arena_crash_cause fdri_crash_cause_of(int number, const siginfo_t *info, uint32_t flags);
void fdri_crash_store_cause(const struct fdri_arena_crash_cause *c); /* in the superblock */

/* ---- crash_start.c ---- */
void fdri_crash_handlers_lock(sigset_t *old);
void fdri_crash_handlers_unlock(const sigset_t *old);
void fdri_crash_handlers_note(void); /* stores which signals have fdr's handler now; with the handlers locked */

#endif
