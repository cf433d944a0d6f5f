/* SPDX-License-Identifier: MIT */
/* Threads come and go: attaching on the first event, the brackets of an operation, and locations.
 *
 *   attach.c           attach, detach, threads without room     thread_location.c  makes the location of a thread
 *   thread_state.h     the fields that a thread works on        search_pause.h     its searches for memory
 *   arena_place.h      offsets, pointers, levels                row_cursor.h       its places in tables of rows
 *   thread_clock.h     the clock of its location                clock_step.c       a clock that steps back
 *   grace_period.h     sections of threads that read a table    grace_period.c     frees a table that no thread reads
 *   thread_names.c     names, read anew from the kernel
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
#include "recorder/recording.h"
#include "recorder/thread/thread_state.h"

/* Begins an operation of the calling thread. Returns this thread's state, or its lane's if an operation of the thread
 * is under way. NULL: nothing is being recorded, or there is no room; the event is then counted in the superblock. On
 * success the location is marked busy until fdri_thread_end. The first event decides whether the location counts in ns
 * (an `_at` event) or in ticks of the clock. */
enum fdri_thread_domain { FDRI_THREAD_LIVE, FDRI_THREAD_NS, FDRI_THREAD_NO_EVENT };
struct fdri_thread *fdri_thread_begin(enum fdri_thread_domain domain);
/* For an operation without an event. Never attaches: NULL if this thread is not attached. */
struct fdri_thread *fdri_thread_begin_attached(void);
/* Mends this thread's accounts if a handler left one of its operations by longjmp. here: an address in the frame of the
 * function that the program called. */
void fdri_thread_settle_own(uint64_t here);
static inline void fdri_thread_end(struct fdri_thread *t)
{
    /* R:busy - pairs with A:busy in start.c: finalize sees the record whole */
    fdri_atomic_store_release(&t->loc->busy, 0);
}
bool fdri_thread_attached(void); /* attaches this thread if necessary */
/* Pauses and phases nest. An end without a begin has no effect. */
static inline void fdri_thread_nest(uint32_t *open, bool begin)
{
    if (begin) ++*open;
    else if (*open) --*open;
}
/* The name, pauses and phases of a thread that has no room yet. */
struct fdri_thread_wishes {
    uint32_t recording;      /* the recording that they are for */
    uint32_t pauses, phases; /* as in struct fdri_thread */
    char name[32];           /* "": not set */
};
/* The name, pauses and phases of a thread that found no room; they take effect when it finds some. NULL: the thread has
 * room, has not tried yet, or nothing is being recorded. */
struct fdri_thread_wishes *fdri_thread_wishes(void);
/* Number of calls now inside fdri_thread_hold_recording: threads, streams of samples, triggers, notes, sums. */
uint32_t fdri_thread_holders(void);
/* False: recording `number` has ended. True: it cannot end until fdri_thread_release_recording. No longjmp may leave
 * the stretch in between. */
bool fdri_thread_hold_recording(uint32_t number);
/* In a forked child: the holders were threads of the parent, so none is left. */
void fdri_thread_holders_fork(void);
void fdri_thread_release_recording(void);
/* Called once, with the first recording of the process and before any thread attaches. The key must be one of the
 * process's first 32: for these glibc allocates nothing, and the attaching code may run in a signal handler. */
void fdri_thread_attach_once(void);
void fdri_thread_detach(void *unused);
/* Counts a thread that found no room, at most once. itself: the thread counts itself; else the sampler does, which may
 * call this any number of times. Async-signal-safe. */
void fdri_thread_count_no_room(uint32_t tid, bool itself);
void fdri_thread_no_room_reset(void); /* before a recording begins */
/* The tick of an event whose time the caller gave in ns, in the location's unit. Never below the location's newest
 * tick. */
uint64_t fdri_thread_tick_at(struct fdri_thread *t, uint64_t time_ns);
static inline uint64_t fdri_thread_clamp(struct fdri_arena_location *l, uint64_t tick)
{
    if (FDRI_UNLIKELY(tick < l->last_tick)) {
        l->clamped++;
        return l->last_tick;
    }
    return tick;
}

/* Does l belong to the process's first thread, or to its lane? */
static inline bool fdri_thread_is_first(const struct fdri_arena_location *l)
{
    return (int)l->tid == fdri_life_recording.pid;
}
/* An empty location block, free, pinned and on the chain of locations. NULL: no room. */
struct fdri_arena_location *fdri_thread_location_new(void);
/* Makes t's location in block l, or in any block if l is NULL: level 0, the first levels, the rows of totals, no id. No
 * reader sees it before fdri_thread_location_publish. False: no room; then nothing is left behind. parent: id of the
 * location that a lane belongs to, else UINT32_MAX. */
bool fdri_thread_location_make(struct fdri_thread *t, struct fdri_arena_location *l, uint32_t parent, const char *name);
void fdri_thread_location_number(struct fdri_thread *t); /* gives the location its id */
void fdri_thread_location_publish(struct fdri_thread *t, uint32_t flags);
/* Gives back a location that holds nothing but its meta blocks. */
void fdri_thread_location_drop(struct fdri_thread *t);
/* ns: the location counts in ns; else in ticks of the recording's clock. */
void fdri_thread_set_clock(struct fdri_thread *t, bool ns);
void fdri_thread_link_location(struct fdri_arena_location *l, uint32_t off); /* from now on readers find it */
bool fdri_thread_grow_levels(struct fdri_thread *t);    /* one more block of levels; false: no room */
void fdri_thread_stop_recording(struct fdri_thread *t); /* its next event attaches it again */
void fdri_thread_update_soft(struct fdri_thread *t);    /* recomputes when enter and leave take the slow path */
void fdri_thread_update_pause(struct fdri_thread *t);   /* recomputes the pause, then the same */

/* Stores a name as whole words: other threads compare them. */
void fdri_thread_set_name(struct fdri_arena_location *l, const char *name);
/* The program names the thread of location l, which is the calling thread's. The kernel's name is not used any more. */
void fdri_thread_give_name(struct fdri_arena_location *l, const char *name);
void fdri_thread_read_own_name(struct fdri_arena_location *l); /* l: of the calling thread */
void fdri_thread_look_at_names(void); /* of all live threads, while the recording cannot end. It reads files */
uint64_t fdri_thread_poll_names(uint64_t now_ns); /* the same now and then; returns the time of its next call */

/* Do the calling thread's destructors run, or have they run? */
bool fdri_thread_is_ending(void);

#endif
