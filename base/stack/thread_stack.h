/* SPDX-License-Identifier: MIT */
/* The stack on which the calling thread was started: not an alternate signal stack, a coroutine's stack or a segment of
 * a split stack. */
#ifndef FDRI_BASE_STACK_THREAD_STACK_H
#define FDRI_BASE_STACK_THREAD_STACK_H
#include <stdbool.h>
#include <stdint.h>

/* An address above every frame of that stack. first_thread: the calling thread is the first of the process. */
uint64_t fdri_stack_own_end(bool first_thread);
/* How many bytes below fdri_stack_own_end frames can lie; 0: unknown. Makes system calls; for threads other than the
 * first it reads /proc/self/maps. Async-signal-safe; needs 1 KiB of stack. */
uint64_t fdri_stack_own_bytes(bool first_thread);

/* 1: a call pushes its return address, so the address lies above the frame of the called function. */
#if defined(__x86_64__)
#define FDRI_STACK_RETURN_ABOVE_FRAME 1
#else
#define FDRI_STACK_RETURN_ABOVE_FRAME 0
#endif

/* True if `frame` lies on the thread's alternate signal stack while the thread runs elsewhere. Makes a system call. */
bool fdri_stack_alternate_was_left(uint64_t frame);
bool fdri_stack_alternate_in_use(void); /* true while a handler runs on that stack; makes a system call */
/* True if `code` is the return address of a signal handler that the kernel called. False on machines whose code for
 * that return is not known here. */
bool fdri_stack_returns_to_kernel(uint64_t code);
#endif
