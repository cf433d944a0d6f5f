/* SPDX-License-Identifier: MIT */
/* Code of others' that may fault in a signal handler of ours, and may be left half done: a stack whose owner was about
 * to change it can lead glibc's unwinder anywhere. While a thread's guard is set, our handler of fatal signals goes
 * back to where it was set. */
#ifndef FDRI_BASE_STACK_FAULT_GUARD_H
#define FDRI_BASE_STACK_FAULT_GUARD_H
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>

/* sigsetjmp(.., 0): handlers run with the mask that they interrupted */
extern _Thread_local sigjmp_buf *fdri_stack_guard;
/* Ours; NULL: none was ever installed. */
extern void (*fdri_stack_guard_handler)(int, siginfo_t *, void *);

/* Is it the one that a fault calls now? Async-signal-safe. */
static inline bool fdri_stack_guard_works(void)
{
    struct sigaction now;
    return fdri_stack_guard_handler && sigaction(SIGSEGV, NULL, &now) == 0 && (now.sa_flags & SA_SIGINFO) &&
           now.sa_sigaction == fdri_stack_guard_handler;
}
#endif
