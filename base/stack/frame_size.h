/* SPDX-License-Identifier: MIT */
/* Which function is this code? As the tables for exceptions say, which every function of a usual program is in. */
#ifndef FDRI_BASE_STACK_FRAME_SIZE_H
#define FDRI_BASE_STACK_FRAME_SIZE_H
#include <stdint.h>

/* Where the function begins that `code` is in, or the part of it that lies in one piece; 0: nobody knows.
 * Async-signal-safe; the module must stay. */
uint64_t fdri_stack_function_begin(uint64_t code);
/* Behind a call that returns to `code`: how far above the stack pointer the frame ends, with the return address. 0:
 * nobody knows, or that changes while the function runs. As above. */
uint64_t fdri_stack_frame_bytes(uint64_t code);
#endif
