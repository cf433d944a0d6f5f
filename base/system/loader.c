/* SPDX-License-Identifier: MIT */
/* Finds out after a fork whether the C library's lock of its modules is free. */
#define _GNU_SOURCE
#include "base/system/loader.h"

#include <pthread.h>
#include <sys/prctl.h>

#include "base/atomic.h"
#include "base/clock.h"
#include "base/system/helper_threads.h"
#include "base/system/syscall.h"
#include "base/system/signal_mask.h"

enum { WORKS, UNKNOWN, NEVER };
enum { A_SECOND = 1000000000, A_MOMENT = 100000 };
static unsigned state;    /* atomic */
static unsigned answered; /* atomic: the helper thread came back; orders nothing else */
static int known_pid;     /* atomic: the process to which `state` applies */

/* A handler of fork() cannot notice the fork: it may have happened before any recording was asked for. */
__attribute__((constructor)) static void look_for_fork(void)
{
    int pid = fdri_system_getpid(), known = fdri_atomic_swap_relaxed(&known_pid, pid);
    if (!known || known == pid) return;
    fdri_atomic_store_relaxed(&answered, 0);
    fdri_atomic_store_release(&state, UNKNOWN); /* R:loader - pairs with A:loader */
}

static int stop_at_first(struct dl_phdr_info *info, size_t size, void *unused)
{
    (void)info, (void)size, (void)unused;
    return 1;
}

static void *try(void *unused)
{
    prctl(PR_SET_NAME, FDRI_SYSTEM_THREAD_LOADER);
    dl_iterate_phdr(stop_at_first, NULL);
    fdri_atomic_store_relaxed(&answered, 1);
    return unused;
}

/* True if the helper thread comes back within 1 s. A thread that waits for ever stays until the process ends. */
static bool helper_returns(void)
{
    pthread_attr_t detached;
    pthread_t thread;
    sigset_t old;
    pthread_attr_init(&detached);
    pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
    fdri_system_signals_block(&old); /* the new thread inherits the mask, so it takes no signal of the program */
    int e = pthread_create(&thread, &detached, try, NULL);
    fdri_system_signals_restore(&old);
    pthread_attr_destroy(&detached);
    if (e) return false;
    uint64_t until = fdri_clock_ns(CLOCK_MONOTONIC) + A_SECOND;
    /* no cancellation point: base/system/signal_mask.h */
    while (!fdri_atomic_load_relaxed(&answered) && fdri_clock_ns(CLOCK_MONOTONIC) < until) fdri_system_sleep(A_MOMENT);
    return fdri_atomic_load_relaxed(&answered);
}

bool fdri_system_loader_works(void)
{
    look_for_fork();
    if (fdri_atomic_load_acquire(&state) == UNKNOWN) /* A:loader */
        fdri_atomic_store_relaxed(&state, helper_returns() ? WORKS : NEVER);
    return fdri_atomic_load_relaxed(&state) == WORKS;
}

int fdri_system_each_module(int (*each)(struct dl_phdr_info *, size_t, void *), void *argument)
{
    return fdri_system_loader_works() ? dl_iterate_phdr(each, argument) : 0;
}
