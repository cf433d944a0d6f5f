/* SPDX-License-Identifier: MIT */
/* The hook that gcc places at the first instruction of a function (-mfentry). */
#ifndef FDRI_BASE_STACK_ENTRY_HOOK_H
#define FDRI_BASE_STACK_ENTRY_HOOK_H
#include <stdint.h>

/* The beginning of the function whose first instruction, or first after endbr64, is a call that returns to `site`.
 * Reads the code before it. Async-signal-safe. */
uint64_t fdri_stack_hooked_function(uint64_t site);
#endif
