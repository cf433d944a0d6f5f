/* SPDX-License-Identifier: MIT */
/* The calling thread's own stack: the one it was started on, not an alternate one, a coroutine's or a part of a split
 * one. */
#ifndef FDRI_BASE_STACK_THREAD_STACK_H
#define FDRI_BASE_STACK_THREAD_STACK_H
#include <stdbool.h>
#include <stdint.h>

/* Every frame of that stack lies below. first_thread: of the process. */
uint64_t fdri_stack_own_end(bool first_thread);
/* How far below it frames can lie; 0: nobody knows. Makes system calls (for all threads but the first /proc/self/maps
 * is read); async-signal-safe; wants 1 KiB of stack. */
uint64_t fdri_stack_own_bytes(bool first_thread);

/* Does a call push its return address, so that it lies behind the frame of who is called? */
#if defined(__x86_64__)
#define FDRI_STACK_RETURN_ABOVE_FRAME 1
#else
#define FDRI_STACK_RETURN_ABOVE_FRAME 0
#endif

/* Asks the kernel. Is `frame` on the thread's alternate signal stack, while the thread runs elsewhere? */
bool fdri_stack_alternate_was_left(uint64_t frame);
bool fdri_stack_alternate_in_use(void); /* a handler runs on it now */
/* Is this the return address of a signal handler that the kernel called? Only where the machine's code for that is
 * known. */
bool fdri_stack_returns_to_kernel(uint64_t code);
#endif
