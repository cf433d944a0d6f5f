/* SPDX-License-Identifier: MIT */
/* sigaction for signals of faults, as fdr calls it. While fdr stays the kernel's handler (FDR_CRASH=first), its own
 * function sigaction shows the program's action; this is the one behind it. */
#ifndef FDRI_BASE_SYSTEM_SIGNAL_ACTION_H
#define FDRI_BASE_SYSTEM_SIGNAL_ACTION_H
#include <signal.h>

typedef int fdri_system_sigaction_function(int, const struct sigaction *, struct sigaction *);
extern fdri_system_sigaction_function *fdri_system_sigaction;
#endif
