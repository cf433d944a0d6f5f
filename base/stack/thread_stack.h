/* SPDX-License-Identifier: MIT */
/* The calling thread's own stack: the one it was started on, not an alternate one, a coroutine's or a part of a split
 * one. */
#ifndef FDR_BASE_STACK_THREAD_STACK_H
#define FDR_BASE_STACK_THREAD_STACK_H
#include <stdbool.h>
#include <stdint.h>

/* Every frame of that stack lies below. first_thread: of the process. */
uint64_t fdr_own_stack_end(bool first_thread);
/* How far below it frames can lie; 0: nobody knows. Makes system calls (for all threads but the first /proc/self/maps
 * is read); async-signal-safe; wants 1 KiB of stack. */
uint64_t fdr_own_stack_bytes(bool first_thread);

/* Does a call push its return address, so that it lies behind the frame of who is called? */
#if defined(__x86_64__)
#define FDR_RETURN_ABOVE_FRAME 1
#else
#define FDR_RETURN_ABOVE_FRAME 0
#endif

/* Asks the kernel. Is `frame` on the thread's alternate signal stack, while the thread runs elsewhere? */
bool fdr_alternate_was_left(uint64_t frame);
bool fdr_alternate_is_used(void); /* a handler runs on it now */
/* Is this the return address of a signal handler that the kernel called? Only where the machine's code for that is
 * known. */
bool fdr_returns_to_kernel(uint64_t code);
#endif
