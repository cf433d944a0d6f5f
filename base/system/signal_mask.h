/* SPDX-License-Identifier: MIT */
/* Blocking signals around code of fdr, except those that an instruction can raise: these, blocked, would kill the
 * process without calling a handler.
 *
 * The functions use the kernel's mask. The C library keeps its cancellation signal out of every set, and a thread with
 * PTHREAD_CANCEL_ASYNCHRONOUS would die while it holds a lock of fdr. With the kernel's mask it is cancelled when the
 * mask is restored. Code in between must contain no cancellation point: there the C library would wait for ever for the
 * blocked signal. */
#ifndef FDRI_BASE_SYSTEM_SIGNAL_MASK_H
#define FDRI_BASE_SYSTEM_SIGNAL_MASK_H
#include <signal.h>
#include <stdbool.h>
#include <string.h>

#include "base/system/syscall.h"

#define FDRI_SYSTEM_SIGNAL_BIT(s) (1ull << ((s)-1))

/* All signals except faults and except 32 and 33, which the C library uses. Set without the C library's functions,
 * which a program may replace. */
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

/* Blocks those of these signals that have a handler other than `ours`. Then no code of the program runs in between, and
 * signals without a handler still end the process. Does not block cancellation. *old is for fdri_system_signals_restore
 * only. */
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

/* Blocks all these signals, and cancellation (glibc's signal 32). *old is for fdri_system_signals_restore only. */
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
    /* ThreadSanitizer delays signals and calls their handlers in the next function that it wraps. That must be this
     * one, not one under a lock. */
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
