/* SPDX-License-Identifier: MIT */
/* The way of a call: enter and leave, points, samples, rewind.
 *
 *   call.c             enter and leave                    call_slow.c        their rare cases
 *   call_fast.h        their inline parts                 try_call.c         the same without vector registers
 *   ruled_calls.c      calls that a rule leaves out
 *   rule_table.c       regions with rules, by thread      adopt_mutes.c      regions become muted, or not any more
 *   shadow_stack.h     push and pop of open calls         point.c            events without duration
 *   rewind.c           removes a stretch's events         iterations.c       keeps or rewinds iterations
 *   counter_reading.c  readings of counters, thinned
 *   sample.c           samples, thinned by powers of two  sample_stream.c    streams of samples begin and end
 *   open_calls.c       open calls of another thread       message_point.c    messages and collectives; point.h
 *
 * Neighbours: thread/ brackets the operation, totals/ counts, memory/ finds room for the record. */
#ifndef FDRI_RECORDER_RECORD_RECORD_H
#define FDRI_RECORDER_RECORD_RECORD_H

#include <fdr/fdr.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/bits.h"
#include "format/arena/arena.h"
#include "recorder/thread/thread_state.h"

struct fdri_names_rule;

/* An entered function, as the compiler's hook reports it. */
struct fdri_record_function {
    uint64_t address, frame, caller, site; /* as in struct fdri_arena_level; caller: its complement */
    /* Distance of the frame's upper end below the end of the stack; never less than the true one. */
    uint64_t upper;
};
#define FDRI_RECORD_FRAME_UNKNOWN UINT64_MAX /* frame: not reported, nor are caller and site */
/* f: NULL if the region was entered by its id. True: a call was opened that has a time, so it is not only counted. */
bool fdri_record_enter(struct fdri_thread *t, fdr_region region, const struct fdri_record_function *f, bool live,
                       uint64_t time_ns);
void fdri_record_leave(struct fdri_thread *t, fdr_region region, uint64_t address, bool live, uint64_t time_ns);
/* Ends the open call that was hooked at its first instruction and has this frame, now; if there is one. */
void fdri_record_leave_frame(struct fdri_thread *t, uint64_t frame);

/* Makes the thread's tables agree with the regions that are muted now. In an operation of t. */
void fdri_record_adopt_mutes(struct fdri_thread *t);

/* The accounts and partitions of points at this depth, made if missing. NULL: no room. */
struct fdri_arena_level_points *fdri_record_points_of(struct fdri_thread *t, uint32_t depth);

/* The depth at which a reading is stored; its level is made if missing. 0: the reading is stored as any other event. */
uint32_t fdri_record_reading_depth(struct fdri_thread *t, uint64_t before, uint64_t number);
/* Does this partition hold readings? These are thinned from the lowest level up. */
static inline bool fdri_record_is_reading(const struct fdri_arena_location *l, uint32_t class_, uint32_t depth)
{
    return class_ == FDRI_ARENA_CLASS_USER && depth && l->flags & FDRI_ARENA_LOCATION_READINGS;
}

/* The call of level v, at this depth and with FDRI_ARENA_LEVEL_MARKED, has ended at `tick`. */
void fdri_record_rewind_ended(struct fdri_thread *t, const struct fdri_arena_level *v, uint32_t depth, uint64_t tick);
/* To be called after a longjmp left an operation of t. */
void fdri_record_rewind_left(struct fdri_thread *t);
void fdri_record_rewind_release(struct fdri_thread *t);
/* The mark of an iteration is one of its own. Calls open now must still be open at the rewind. False: no room. */
bool fdri_record_mark_iteration(struct fdri_thread *t);
bool fdri_record_rewind_iteration(struct fdri_thread *t); /* false: the mark is void */
void fdri_record_unmark_iteration(struct fdri_thread *t);

/* A region with this rule is about to be entered. Returns the flags of its level: FDRI_ARENA_LEVEL_ITERATION, or 0 if
 * the call is no iteration. */
uint32_t fdri_record_iteration_begins(struct fdri_thread *t, fdr_region region, const struct fdri_names_rule *rule);
/* The top call, of level v and with that flag, ends after `duration` ticks. True: it must not be stored; all that was
 * stored inside of it is rewound. */
bool fdri_record_iteration_removed(struct fdri_thread *t, const struct fdri_arena_level *v, uint32_t depth,
                                   uint64_t duration);
void fdri_record_iteration_left(struct fdri_thread *t); /* as fdri_record_rewind_left */
/* Counts `forgotten` records that a rewind removed from p. */
void fdri_record_rewind_account(struct fdri_thread *t, const struct fdri_arena_part *p, uint64_t forgotten);
/* Marks the open calls that began in the newest tick, so that their records store their ordinals. For use after a
 * rewind: calls that these ordinals count may be gone. */
void fdri_record_number_open(struct fdri_thread *t);

/* Bins of the samples' share that samples do not hold yet; other locations may not take them. */
uint32_t fdri_record_sample_bins_due(void);

#endif
