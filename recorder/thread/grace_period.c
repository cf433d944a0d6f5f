/* SPDX-License-Identifier: MIT */
/* Runs a function after a grace period, in a thread of its own: an application thread must never wait for one. */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/system/helper_threads.h"
#include "base/system/signal_mask.h"
#include "recorder/thread/grace_period.h"

uint32_t fdri_thread_grace_word;
bool fdri_thread_forked;

struct deferred_call {
    void (*function)(void *);
    void *argument;
};

static void *wait_and_do(void *argument)
{
    struct deferred_call later = *(struct deferred_call *)argument;
    free(argument);
    /* the thread names itself: its maker must not, as the detached thread may have ended */
    pthread_setname_np(pthread_self(), FDRI_SYSTEM_THREAD_RECLAIM);
    urcu_bp_synchronize_rcu();
    fdri_racy_take_over(&fdri_thread_grace_word);
    later.function(later.argument);
    return NULL;
}

void fdri_thread_after_grace(void (*function)(void *), void *argument)
{
    pthread_t helper;
    pthread_attr_t detached;
    sigset_t old;
    struct deferred_call *later = fdri_atomic_load_relaxed(&fdri_thread_forked) ? NULL : malloc(sizeof *later);
    if (!later) return; /* a forked child must not wait: liburcu's list names the parent's threads. The memory stays */
    *later = (struct deferred_call){function, argument};
    pthread_attr_init(&detached);
    pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
    fdri_system_signals_block(&old); /* the helper must not take the application's signals */
    if (pthread_create(&helper, &detached, wait_and_do, later)) free(later);
    fdri_system_signals_restore(&old);
    pthread_attr_destroy(&detached);
}
