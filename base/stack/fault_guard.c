/* SPDX-License-Identifier: MIT */
/* The variables of the guard. */
#include "base/stack/fault_guard.h"

#include <stddef.h>

_Thread_local sigjmp_buf *fdri_stack_guard;
void (*fdri_stack_guard_handler)(int, siginfo_t *, void *);
