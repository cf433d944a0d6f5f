/* SPDX-License-Identifier: MIT */
/* All signals but those an instruction of this thread can raise: blocked, these would kill without a handler. */
#ifndef FDR_BASE_SIGNALS_H
#define FDR_BASE_SIGNALS_H
#include <signal.h>

static inline void fdr_signals_but_faults(sigset_t *set)
{
    sigfillset(set);
    sigdelset(set, SIGSEGV);
    sigdelset(set, SIGBUS);
    sigdelset(set, SIGFPE);
    sigdelset(set, SIGILL);
    sigdelset(set, SIGTRAP);
    sigdelset(set, SIGSYS);
    sigdelset(set, SIGABRT);
}
#endif
