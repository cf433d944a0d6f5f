/* SPDX-License-Identifier: MIT */
/* Threads come and go: attaching on the first event, the brackets of an operation, and locations.
 *
 *   attach.c           attaching, detaching, threads without room     thread_location.c  the location of a thread
 *   thread_state.h     what a thread works on
 *
 * The owner brackets each operation with location.busy. A signal handler that finds it set records into the thread's
 * lane, a location of its own. Inside a bracket stores are ordered so that a handler, or a reader after a kill, sees
 * either the old or the new state. Neighbours: record/ calls this first; memory/ gives the blocks. */
#ifndef FDRI_RECORDER_THREAD_THREAD_H
#define FDRI_RECORDER_THREAD_THREAD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/atomic.h"
#include "base/bits.h"
#include "format/arena/arena.h"
#include "recorder/life/recording.h"
#include "recorder/thread/thread_state.h"

/* The thread state an operation may use now: this thread's, its lane when one is under way, or NULL (counted). On
 * success the state's location is marked busy; end with fdri_thread_end. The first event decides whether the location
 * counts in ns (an `_at` event) or in the clock's ticks. */
enum fdri_thread_domain { FDRI_THREAD_LIVE, FDRI_THREAD_NS, FDRI_THREAD_NO_EVENT };
struct fdri_thread *fdri_thread_begin(enum fdri_thread_domain domain);
struct fdri_thread *fdri_thread_begin_attached(void); /* no event; NULL as well where this thread is not attached */
/* Mends this thread's accounts, where a handler left an operation of it in the middle. here: in the frame of the
 * function that the program called. */
void fdri_thread_settle_own(uint64_t here);
static inline void fdri_thread_end(struct fdri_thread *t)
{
    /* R:busy - pairs with A:busy in start.c: finalize sees the record whole */
    fdri_atomic_store_release(&t->loc->busy, 0);
}
bool fdri_thread_attached(void); /* attaches this thread if need be */
/* What this thread says of itself while there is no room for it: it holds when some is found. NULL: it has room, or
 * nothing records. */
struct fdri_thread_wishes *fdri_thread_wishes(void);
uint32_t fdri_thread_holders(void); /* threads, and streams of samples, that are coming or going, or fire a trigger */
/* False: recording `number` is over. True: it stays until fdri_thread_release_recording. Not to be left by longjmp. */
bool fdri_thread_hold_recording(uint32_t number);
void fdri_thread_holders_fork(void); /* in the child: who was coming or going is not there */
void fdri_thread_release_recording(void);
/* With the first recording of the process, before anybody attaches: an early key is one of the first 32, for which
 * glibc allocates nothing, so a handler may be what attaches a thread. */
void fdri_thread_attach_once(void);
void fdri_thread_detach(void *unused);
/* Counts a thread that found no room: itself, where it has not yet, or the sampler, which may come again and again.
 * Async-signal-safe. */
void fdri_thread_count_no_room(uint32_t tid, bool itself);
void fdri_thread_no_room_reset(void); /* before a recording begins */
/* The tick of an event: live clock or presented ns, in the location's unit, clamped to be monotonic. */
uint64_t fdri_thread_tick_at(struct fdri_thread *t, uint64_t time_ns);
static inline uint64_t fdri_thread_clamp(struct fdri_arena_location *l, uint64_t tick)
{
    if (FDRI_UNLIKELY(tick < l->last_tick)) {
        l->clamped++;
        return l->last_tick;
    }
    return tick;
}

/* Is it the first thread's of the process, or its lane? */
static inline bool fdri_thread_is_first(const struct fdri_arena_location *l)
{
    return (int)l->tid == fdri_life_recording.pid;
}
/* an empty block, free and pinned, on the chain; NULL: no room */
struct fdri_arena_location *fdri_thread_location_new(void);
/* A location with level 0 and what else it begins with, without an id and not shown yet; false: no room, nothing is
 * left behind. In block l, or where that is NULL in any. */
bool fdri_thread_location_make(struct fdri_thread *t, struct fdri_arena_location *l, uint32_t parent, const char *name);
void fdri_thread_location_number(struct fdri_thread *t); /* gives it its id */
void fdri_thread_location_publish(struct fdri_thread *t, uint32_t flags);
void fdri_thread_location_drop(struct fdri_thread *t); /* it holds nothing but its meta blocks; all is given back */
/* the location counts in ns, else in the recording's clock */
void fdri_thread_set_clock(struct fdri_thread *t, bool ns);
void fdri_thread_link_location(struct fdri_arena_location *l, uint32_t off); /* from now on everybody sees it */
bool fdri_thread_grow_levels(struct fdri_thread *t);  /* one more block of levels; false: no room */
void fdri_thread_update_soft(struct fdri_thread *t);  /* recomputes when enter and leave must go slow */
void fdri_thread_update_pause(struct fdri_thread *t); /* and first whether it is paused */

bool fdri_thread_is_ending(void); /* its destructors run, or have */

#endif
