/* SPDX-License-Identifier: MIT */
/* What jumps and exceptions leave behind on the shadow stack.
 *
 *   abandoned_calls.c  calls whose frames a longjmp left    excluded_calls.c   open calls that rules exclude
 *   unfinished_call.c  an enter or leave that a handler left in the middle
 *
 * Neighbours: record/ asks; totals/ is brought up to date. */
#ifndef FDRI_RECORDER_JUMPS_JUMPS_H
#define FDRI_RECORDER_JUMPS_JUMPS_H

#include <stdbool.h>
#include <stdint.h>

struct fdri_record_function;
struct fdri_thread;

uint64_t fdri_jumps_frame_upper(const struct fdri_record_function *f); /* looks for it on the stack */
/* Is f, not untold, called by the newest call, or part of it? False: look closer. Cheap. */
bool fdri_jumps_is_below(struct fdri_thread *t, const struct fdri_record_function *f);
/* The outermost open call that cannot be there any more when f, not untold, is entered; 0: all may be. Where some are
 * above f it makes system calls. */
uint32_t fdri_jumps_first_abandoned(struct fdri_thread *t, const struct fdri_record_function *f);
/* Is this place on the thread's own stack? May ask the system the first time. */
bool fdri_jumps_is_own_frame(uint64_t frame);

enum { FDRI_JUMPS_NOT_EXCLUDED = UINT32_MAX };
/* A call that a rule keeps out begins, directly inside of the top call. f: NULL where it came by the region's id. */
void fdri_jumps_excluded_add(struct fdri_thread *t, uint32_t region, const struct fdri_record_function *f);
/* The newest of this region that is open is inside of the call of which depth? FDRI_JUMPS_NOT_EXCLUDED: there is none.
 * Drops those that a jump has left, as far as one can tell. */
uint32_t fdri_jumps_excluded_find(struct fdri_thread *t, uint32_t region);
/* It ends, and those that began in it; the call found is the top one. */
void fdri_jumps_excluded_leave(struct fdri_thread *t, uint32_t region);
/* The calls from this depth on end. */
void fdri_jumps_excluded_close(struct fdri_thread *t, uint32_t from);

/* True: the top call has ended, and is in the totals. It is still on the stack. */
bool fdri_jumps_finish_leave(struct fdri_thread *t);
/* The call that was about to be entered comes into the totals, if it was presented. The stack is whole again. */
void fdri_jumps_finish_enter(struct fdri_thread *t);

#endif
