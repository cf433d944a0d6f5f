/* SPDX-License-Identifier: MIT */
/* Is a thread that has stood for long idle, or does it hang? Idle: it waits for work. Pure, as all of policies.h. */
#ifndef FDRI_POLICIES_IDLE_H
#define FDRI_POLICIES_IDLE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/system/task_state.h"

enum fdri_policies_answer { FDRI_POLICIES_UNKNOWN, FDRI_POLICIES_NO, FDRI_POLICIES_YES };

/* A thread that stands, as its watcher knows it. A field that is not known is 0. */
struct fdri_policies_waiter {
    enum fdri_system_wait wait;
    bool excluded; /* its innermost region is MPI, a lock or a barrier by name: it waits for others, not for work */
    uint32_t seen_waiting;  /* looks that found a thread waiting in this place, with events in between */
    uint64_t passed;        /* calls of the innermost open region that this thread has ended */
    uint64_t came_back;     /* calls that ended within the thread's outermost call, if no other one is open */
    uint64_t blocked;       /* how often the thread has given up its processor to wait */
    uint64_t calls;         /* that the thread has made since it began, */
    uint64_t waits_from_ns; /* and how long after that it began to wait */
    bool has_begin;         /* the last two are known */
};
enum {
    FDRI_POLICIES_OFTEN = 3,
    FDRI_POLICIES_FIRST_CALLS = 256,         /* a thread that waits before it has made more */
    FDRI_POLICIES_FIRST_TIME_NS = 1000000000 /* and that soon, waits for its first work */
};

/* True if the thread went to this place when it began: so that is where it waits for work. */
bool fdri_policies_waits_from_begin(const struct fdri_policies_waiter *w);

/* UNKNOWN: it waits for something that may be work, in a place where it has not often waited. */
enum fdri_policies_answer fdri_policies_is_idle(const struct fdri_policies_waiter *w);

/* The meaning of a region's name. None; or its thread waits, and may use processor time; or it waits for other threads
 * or ranks, as in locks, barriers and MPI. */
enum fdri_policies_meaning { FDRI_POLICIES_MEANS_NOTHING, FDRI_POLICIES_MEANS_WAITING, FDRI_POLICIES_MEANS_OTHERS };
enum fdri_policies_meaning fdri_policies_meaning_of(const char *name);

#endif
