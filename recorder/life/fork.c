/* SPDX-License-Identifier: MIT */
/* The lock of begin and end, and what happens around fork(): all locks of fdr are taken, and a child leaves its
 * parent's recording. Which children then record by themselves: forked.c. */
#define _GNU_SOURCE
#include <fdr/fdr.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/fd/open_high.h"
#include "base/system/cancellation.h"
#include "base/system/signal_mask.h"
#include "base/system/syscall.h"
#include "export/view.h"
#include "recorder/life/life.h"
#include "recorder/memory/memory.h"
#include "recorder/names/names.h"
#include "recorder/recording.h"
#include "recorder/thread/thread.h"
#include "recorder/thread/thread_state.h"
#include "recorder/watch/watch.h"
#include "sampler/counters/counter_view.h"
#include "sampler/samples/samples_view.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static sigset_t fork_mask; /* under the lock */
/* This thread has the lock, or is taking or releasing it; the handlers of fork() do not set it. It is set before and
 * cleared after, so a handler that interrupts the holder finds it set. fdri_life_lock blocks the program's handlers,
 * fdr_ending does not. Handlers of faults and of FDR_SIGNAL always run; they may fork a debugger, which takes the lock,
 * or call exit(). */
static __thread bool at_lock;
static uint32_t in_fork; /* atomic: a thread is in fork(), between the atfork handlers, and holds all locks */
static bool wiped;       /* the switch is off in every child with memory of its own */

/* Is this a child made by _Fork or clone, with a copy of its parent's recording? A vfork child is none: it shares the
 * parent's memory, finds the switch on, and must leave the recording alone. */
bool fdri_life_forked_bare(void)
{
    return fdri_atomic_load_relaxed(&fdri_life_recording.running) &&
           fdri_atomic_load_relaxed(&fdri_life_recording.pid) != fdri_export_pid() &&
           !(wiped && fdri_atomic_load_relaxed(&fdr_switch_.on));
}

/* ---- the lock ---- */

bool fdri_life_holds_lock(void) { return fdri_atomic_load_relaxed(&at_lock); }

bool fdri_life_try_lock(void)
{
    fdri_atomic_store_relaxed(&at_lock, true);
    fdri_atomic_signal_fence();
    bool got = !pthread_mutex_trylock(&lock);
    fdri_atomic_signal_fence();
    if (!got) fdri_atomic_store_relaxed(&at_lock, false);
    return got;
}

/* pthread_mutex_lock would not do: at_lock must say whether this thread has the lock, and a handler could not know it
 * while the thread waits. A handler that forks during the sleep waits for the lock in fork_prepare. */
static void wait_for_lock(void)
{
    while (!fdri_life_try_lock()) fdri_system_sleep(1000000);
}

struct fdri_life_held fdri_life_lock(void)
{
    struct fdri_life_held h;
    fdri_system_signals_block_handled(&h.mask, fdri_trigger_handles);
    h.cancel = fdri_system_cancel_off();
    wait_for_lock();
    return h;
}

void fdri_life_give_lock(void)
{
    pthread_mutex_unlock(&lock);
    fdri_atomic_signal_fence();
    fdri_atomic_store_relaxed(&at_lock, false);
}

void fdri_life_unlock(const struct fdri_life_held *h)
{
    fdri_life_give_lock();
    fdri_system_cancel_defer(h->cancel);
    fdri_system_signals_restore(&h->mask); /* a pending handler runs now and may leave by longjmp */
    fdri_system_cancel_restore(h->cancel);
}

/* ---- fork ---- */

/* Takes every lock of the library. Signals stay blocked until fork_done: a handler could
 * define something and wait for its own thread. */
static void take_all(void)
{
    sigset_t old;
    fdri_system_signals_block(&old);
    pthread_mutex_lock(&lock);
    fork_mask = old;
    fdri_atomic_store_relaxed(&in_fork, 1u);
    fdri_counters_fork(0);
    fdri_samples_sampler_fork(0);
    fdri_trigger_dumper_fork(0);
    fdri_names_address_fork(0);
    fdri_names_modules_fork(0);
    fdri_names_define_fork(0);
    fdri_watch_fork(0);
    fdri_fd_low_fork(0);
}
static void fork_prepare(void)
{
    fdri_life_fork_notice();
    if (fdri_life_holds_lock()) return;
    take_all();
    fdri_life_fork_prepare();
}
static void release_all(int phase)
{
    fdri_crash_fork(phase);
    fdri_fd_low_fork(phase);
    fdri_watch_fork(phase);
    fdri_names_define_fork(phase);
    fdri_names_modules_fork(phase);
    fdri_names_address_fork(phase);
    fdri_trigger_dumper_fork(phase);
    fdri_counters_fork(phase);
    fdri_samples_sampler_fork(phase);
    pthread_mutex_unlock(&lock);
}
static void fork_done(int phase)
{
    sigset_t old = fork_mask;
    if (!fdri_atomic_swap_acq_rel(&in_fork, 0u)) return; /* L:fork: the end has released them instead */
    release_all(phase);
    fdri_system_signals_restore(&old);
}
/* After 1 s it releases the locks for a thread that is inside of fork(). The C library has removed the handlers that
 * would do that. */
struct fdri_life_held fdri_life_lock_at_exit(void)
{
    bool held = false;
    struct fdri_life_held h;
    fdri_system_signals_block_handled(&h.mask, fdri_trigger_handles);
    h.cancel = fdri_system_cancel_off();
    for (int i = 0; i < 1000 && !(held = fdri_life_try_lock()); i++) fdri_system_sleep(1000000);
    if (!held && fdri_atomic_swap_acq_rel(&in_fork, 0u)) release_all(1); /* L:fork */
    if (!held) wait_for_lock();
    return h;
}

static void fork_parent(void)
{
    if (fdri_life_holds_lock()) return;
    fdri_life_fork_parent();
    fork_done(1);
}

/* In a child: makes every lock anew, as it may be held by a thread that only the parent has, and takes all of them. */
static void make_locks_anew(void)
{
    pthread_mutex_init(&lock, NULL);
    fdri_atomic_store_relaxed(&at_lock, false);
    fdri_crash_fork(3);
    fdri_fd_low_fork(3);
    fdri_counters_fork(3);
    fdri_samples_sampler_fork(3);
    fdri_trigger_dumper_fork(3);
    fdri_names_address_fork(3);
    fdri_names_modules_fork(3);
    fdri_names_define_fork(3);
    fdri_watch_fork(3);
    take_all();
}

/* Did a handler interrupt a record of this location and call fork? Then the child returns into that record. */
static bool returns_into_record(const struct fdri_thread *t)
{
    return t->loc && t->recording == fdri_life_recording.number && fdri_atomic_load_relaxed(&t->loc->busy);
}

/* The child records nothing until it calls fdr_init, and never into its parent's arena. If it returns into a record, it
 * needs a private copy of the arena as it was. In an empty one that record would follow offsets to nothing. */
static void fork_child(void)
{
    bool inside =
        fdri_life_holds_lock(); /* in a handler that interrupted the holder of the lock: free nothing it uses */
    if (inside) make_locks_anew();
    fdri_atomic_store_relaxed(&fdr_switch_.on, 0u);
    fdri_thread_holders_fork();
    fdri_crash_fork(3);
    fdri_life_exit_forget();
    bool own = fdri_life_recording.kept_live_file.fd < 0 || fdri_crash_own_view();
    bool back = own && fdri_life_recording.running &&
                (inside || returns_into_record(&fdri_record_self) || returns_into_record(&fdri_record_lane) ||
                 fdri_snapshot_is_here());
    if (fdri_life_recording.running) fdri_names_define_save();
    fdri_life_fork_child(fdri_life_recording.running && !back);
    if (back) fdri_memory_arena_abandon(&fdri_life_recording, false);
    else if (fdri_life_recording.running || fdri_life_recording.abandoned)
        fdri_memory_arena_drop(&fdri_life_recording, false);
    fdri_life_recording.running = fdri_life_recording.abandoned = false;
    fork_done(2);
}

static void after_fork(void)
{
    fork_child();
    fdri_life_fork_follow();
}

/* In a child made by _Fork or clone, for which no atfork handlers ran: does their work. */
static void bare_child(void)
{
    make_locks_anew();
    fork_child();
}

void fdri_life_fork_notice(void)
{
    if (fdri_life_forked_bare()) bare_child();
}

/* So children made without atfork handlers (_Fork, clone) find the switch off. If the kernel refuses, the handlers of
 * fork() still turn it off. */
void fdri_life_fork_wipe(void)
{
    bool own = sysconf(_SC_PAGESIZE) <= (long)sizeof fdr_switch_; /* else neighbouring data would be wiped as well */
    wiped = own && madvise(&fdr_switch_, sizeof fdr_switch_, MADV_WIPEONFORK) == 0;
}

void fdri_life_fork_watch(void) { pthread_atfork(fork_prepare, fork_parent, after_fork); }
