/* SPDX-License-Identifier: MIT */
/* Bounds of functions and sizes of frames, from the tables for exceptions (.eh_frame). They cover every function of a
 * usual program. */
#ifndef FDRI_BASE_STACK_FRAME_SIZE_H
#define FDRI_BASE_STACK_FRAME_SIZE_H
#include <stdint.h>

/* The beginning of the function, or of its contiguous part, that contains the address `code`; 0: unknown.
 * Async-signal-safe. The module must stay loaded. */
uint64_t fdri_stack_function_begin(uint64_t code);
/* For a call that returns to `code`: bytes from the stack pointer after the return to the end of the frame. The frame's
 * return address is included. 0: unknown, or the distance changes while the function runs. As above. */
uint64_t fdri_stack_frame_bytes(uint64_t code);
#endif
