/* SPDX-License-Identifier: MIT */
/* Calls that jumps and exceptions leave behind on the shadow stack.
 *
 *   abandoned_calls.c  open calls whose frames a longjmp left
 *   unfinished_call.c  an enter or leave that a handler left half-done by longjmp
 *
 * Neighbours: record/ and thread/ call this; totals/ gets the time of unfinished calls. */
#ifndef FDRI_RECORDER_JUMPS_JUMPS_H
#define FDRI_RECORDER_JUMPS_JUMPS_H

#include <stdbool.h>
#include <stdint.h>

struct fdri_record_function;
struct fdri_thread;

/* The `upper` of struct fdri_record_function: searches the stack for f's return address. */
uint64_t fdri_jumps_frame_upper(const struct fdri_record_function *f);
/* Cheap test: is f called by the newest open call, or compiled into it? False: fdri_jumps_first_abandoned must decide.
 * f has a frame. */
bool fdri_jumps_is_below(struct fdri_thread *t, const struct fdri_record_function *f);
/* The depth of the outermost open call that cannot be open any more when f is entered; 0: all can be. f has a frame. If
 * open calls lie above f's frame, this makes system calls. */
uint32_t fdri_jumps_first_abandoned(struct fdri_thread *t, const struct fdri_record_function *f);
/* Does this frame lie on the thread's own stack? The first call for a thread may make system calls. */
bool fdri_jumps_is_own_frame(uint64_t frame);

/* Completes a leave that was left half-done. True: the top call has ended and is in the totals; it is still on the
 * stack. */
bool fdri_jumps_finish_leave(struct fdri_thread *t);
/* Completes an enter that was left half-done: if the call was presented, it is added to the totals. The stack must be
 * consistent again. */
void fdri_jumps_finish_enter(struct fdri_thread *t);

#endif
