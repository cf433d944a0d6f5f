/* SPDX-License-Identifier: MIT */
/* Decides whether a thread that stands is idle. */
#include "policies/idle.h"

bool fdri_policies_waits_from_begin(const struct fdri_policies_waiter *w)
{
    return w->has_begin && w->calls <= FDRI_POLICIES_FIRST_CALLS && w->waits_from_ns <= FDRI_POLICIES_FIRST_TIME_NS;
}

static bool often_waited(const struct fdri_policies_waiter *w)
{
    if (w->seen_waiting >= FDRI_POLICIES_OFTEN) return true;
    if (w->blocked < FDRI_POLICIES_OFTEN) return false; /* it passed without waiting */
    return w->passed >= FDRI_POLICIES_OFTEN || w->came_back >= FDRI_POLICIES_OFTEN;
}

enum fdri_policies_answer fdri_policies_is_idle(const struct fdri_policies_waiter *w)
{
    if (w->excluded) return FDRI_POLICIES_NO;
    switch (w->wait) {
    /* locks are held by threads, which shall give them back */
    case FDRI_SYSTEM_WAIT_NONE:
    case FDRI_SYSTEM_WAIT_LOCK:
    case FDRI_SYSTEM_WAIT_OTHER: return FDRI_POLICIES_NO;
    /* these wait for whatever comes next, or end by themselves. The joined thread is judged itself. */
    case FDRI_SYSTEM_WAIT_SLEEP:
    case FDRI_SYSTEM_WAIT_JOIN:
    case FDRI_SYSTEM_WAIT_EVENTS:
    case FDRI_SYSTEM_WAIT_SIGNAL: return FDRI_POLICIES_YES;
    /* these may wait for one answer, which may never come */
    case FDRI_SYSTEM_WAIT_CONDITION:
    case FDRI_SYSTEM_WAIT_INPUT:
    case FDRI_SYSTEM_WAIT_CHILD:
    case FDRI_SYSTEM_WAIT_TIME:
        return often_waited(w) || fdri_policies_waits_from_begin(w) ? FDRI_POLICIES_YES : FDRI_POLICIES_UNKNOWN;
    default: return FDRI_POLICIES_UNKNOWN;
    }
}
