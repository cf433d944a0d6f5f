/* SPDX-License-Identifier: MIT */
/* Until fdr stays first, sigaction itself: a sanitizer, or another library, may stand in front of it. */
#define _GNU_SOURCE
#include "base/system/signal_action.h"

fdri_system_sigaction_function *fdri_system_sigaction = sigaction;
