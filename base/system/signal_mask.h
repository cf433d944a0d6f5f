/* SPDX-License-Identifier: MIT */
/* All signals but those an instruction of this thread can raise: blocked, these would kill without a handler. And the
 * mask of a thread as the kernel has it: the C library keeps the signal by which it cancels threads out of every set,
 * and a thread that is to be cancelled at any moment (PTHREAD_CANCEL_ASYNCHRONOUS) would die with a lock of ours. It is
 * cancelled when the mask is put back. So nothing in between may be a cancellation point: the C library would wait in
 * it, for ever, for the signal that is blocked. */
#ifndef FDRI_BASE_SYSTEM_SIGNAL_MASK_H
#define FDRI_BASE_SYSTEM_SIGNAL_MASK_H
#include <signal.h>
#include <stdbool.h>
#include <string.h>

#include "base/system/syscall.h"

#define FDRI_SYSTEM_SIGNAL_BIT(s) (1ull << ((s)-1))

/* Without 32 and 33, which are the C library's. Not by its functions: a program may have some of its own. */
static inline void fdri_system_signals_but_faults(sigset_t *set)
{
    const uint64_t faults = FDRI_SYSTEM_SIGNAL_BIT(SIGSEGV) | FDRI_SYSTEM_SIGNAL_BIT(SIGBUS) |
                            FDRI_SYSTEM_SIGNAL_BIT(SIGFPE) | FDRI_SYSTEM_SIGNAL_BIT(SIGILL) |
                            FDRI_SYSTEM_SIGNAL_BIT(SIGTRAP) | FDRI_SYSTEM_SIGNAL_BIT(SIGSYS) |
                            FDRI_SYSTEM_SIGNAL_BIT(SIGABRT);
    const uint64_t but = ~(faults | FDRI_SYSTEM_SIGNAL_BIT(32) | FDRI_SYSTEM_SIGNAL_BIT(33));
    *set = (sigset_t){0};
    memcpy(set, &but, sizeof but);
}

/* Blocks those of them that have a handler, but one of `ours`: nothing of the program runs in between, and what ends
 * the process still does. Cancellation is another matter. *old is for fdri_system_signals_restore only. */
static inline void fdri_system_signals_block_handled(sigset_t *old, bool (*ours)(const struct sigaction *))
{
    uint64_t mask = 0, was = 0;
    sigset_t may;
    fdri_system_signals_but_faults(&may);
    for (int s = 1; s <= 64; s++) {
        struct sigaction a;
        if (sigismember(&may, s) != 1 || sigaction(s, NULL, &a)) continue;
        bool handled = a.sa_flags & SA_SIGINFO || (a.sa_handler != SIG_DFL && a.sa_handler != SIG_IGN);
        if (handled && !ours(&a)) mask |= FDRI_SYSTEM_SIGNAL_BIT(s);
    }
    fdri_system_mask(SIG_BLOCK, &mask, &was);
    memcpy(old, &was, sizeof was);
}

/* Blocks these, and cancellation (glibc's signal 32). *old is for fdri_system_signals_restore only. */
static inline void fdri_system_signals_block(sigset_t *old)
{
    sigset_t all;
    uint64_t mask, was = 0;
    fdri_system_signals_but_faults(&all);
    memcpy(&mask, &all, sizeof mask);
    mask |= FDRI_SYSTEM_SIGNAL_BIT(32);
    fdri_system_mask(SIG_SETMASK, &mask, &was);
    memcpy(old, &was, sizeof was);
#ifdef __SANITIZE_THREAD__
    /* It holds signals back, and calls their handlers in the next function that it wraps: here, not under a lock. */
    pthread_sigmask(SIG_BLOCK, NULL, NULL);
#endif
}
static inline void fdri_system_signals_restore(const sigset_t *old)
{
    uint64_t mask;
    memcpy(&mask, old, sizeof mask);
    fdri_system_mask(SIG_SETMASK, &mask, NULL);
}
#endif
