/* SPDX-License-Identifier: MIT */
/* A guard for foreign code that may fault inside of a signal handler of fdr and may be left unfinished. A thread may be
 * interrupted while it changes its stack; then glibc's unwinder can follow it anywhere. While the guard of a thread is
 * set, fdr's handler of fatal signals jumps back to the place where it was set. */
#ifndef FDRI_BASE_STACK_FAULT_GUARD_H
#define FDRI_BASE_STACK_FAULT_GUARD_H
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>

#include "base/system/signal_action.h"

/* set by sigsetjmp(.., 0): the handlers run with the signal mask that they interrupted */
extern _Thread_local sigjmp_buf *fdri_stack_guard;
/* fdr's handler of fatal signals; NULL: none was ever installed. */
extern void (*fdri_stack_guard_handler)(int, siginfo_t *, void *);

/* True if a fault would call that handler now. Async-signal-safe. */
static inline bool fdri_stack_guard_works(void)
{
    struct sigaction now;
    return fdri_stack_guard_handler && fdri_system_sigaction(SIGSEGV, NULL, &now) == 0 && (now.sa_flags & SA_SIGINFO) &&
           now.sa_sigaction == fdri_stack_guard_handler;
}
#endif
