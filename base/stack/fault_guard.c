/* SPDX-License-Identifier: MIT */
#include "base/stack/fault_guard.h"

#include <stddef.h>

_Thread_local sigjmp_buf *fdri_guard;
void (*fdri_guard_handler)(int, siginfo_t *, void *);
