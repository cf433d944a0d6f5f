/* SPDX-License-Identifier: MIT */
/* The dumper thread takes the snapshots that a signal, a trigger or the watchdog requests, and does periodic checks. It
 * starts with the recording if FDR_SIGNAL, a trigger, the watchdog or fdr's other threads need it, else with the first
 * trigger. */
#define _GNU_SOURCE
#include <errno.h>
#include <fdr/fdr.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/bits.h"
#include "base/clock.h"
#include "base/fd/open_high.h"
#include "base/system/chained_handler.h"
#include "base/system/helper_threads.h"
#include "base/system/signal_mask.h"
#include "base/text/message.h"
#include "export/crash/bundle_room.h"
#include "export/crash/crash_path.h"
#include "export/snapshot/snapshot.h"
#include "export/trigger/job_asks.h"
#include "export/trigger/trigger.h"
#include "export/view.h"
#include "format/arena/arena.h"

static sem_t asked;                                      /* posted by handlers and recording threads */
static uint32_t signalled;                               /* atomic: signals not served yet */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards the start of the thread */
static pthread_t dumper;
static uint64_t served_ns; /* dumper: when it last served a signal */
static bool have_dumper, stopping;
static bool may_run; /* a recording exists; guarded by lock */
static struct fdri_system_previous previous;
static int installed; /* signal number, 0 = none */

static void on_signal(int number, siginfo_t *info, void *context)
{
    int saved = errno;
    bool again = fdri_system_previous_gives_back(number, __builtin_return_address(0));
    if (!again) {
        fdri_atomic_add_relaxed(&signalled, 1u);
        fdri_trigger_dumper_wake();
    }
    fdri_system_previous_pass(&previous, again, number, info, context);
    errno = saved;
}

void fdri_trigger_dumper_wake(void) { sem_post(&asked); /* async-signal-safe; the dumper does the work */ }

/* Signals that arrived since the last look get one snapshot. */
static void serve_signals(void)
{
    uint32_t n = fdri_atomic_load_relaxed(&signalled);
    if (!n) return;
    fdri_atomic_sub_relaxed(&signalled, n);
    uint64_t now = fdri_clock_ns(CLOCK_MONOTONIC);
    if (served_ns && now - served_ns < fdri_snapshot_view.holdoff_ns) return;
    served_ns = now;
    struct fdri_snapshot_why why = fdri_snapshot_because(FDRI_ARENA_REASON_SIGNAL, "signal");
    struct fdri_snapshot_quota quota = fdri_snapshot_whole_quota();
    fdri_snapshot_take(&why, &quota, true);
}

/* Waits until the semaphore is posted, or until `until_ns` (CLOCK_MONOTONIC). Returns the time by which it woke too
 * late. worked_ns: when the work before the wait began; the process may have been stopped during that work, too. */
static uint64_t wait_until(uint64_t until_ns, uint64_t worked_ns)
{
    if (until_ns == UINT64_MAX) {
        while (sem_wait(&asked) && errno == EINTR) {}
    } else {
        struct timespec t = {(time_t)(until_ns / 1000000000u), (long)(until_ns % 1000000000u)};
        while (sem_clockwait(&asked, CLOCK_MONOTONIC, &t) && errno == EINTR) {}
    }
    while (sem_trywait(&asked) == 0) {}
    uint64_t now = fdri_clock_ns(CLOCK_MONOTONIC), due = fdri_bits_max(worked_ns, until_ns);
    return now > due ? now - due : 0;
}

static void *dump_loop(void *unused)
{
    (void)unused;
    uint64_t now = fdri_clock_ns(CLOCK_MONOTONIC);
    for (uint64_t until = 0;;) {
        fdri_trigger_watchdog_late(wait_until(until, now));
        bool last = fdri_atomic_load_acquire(&stopping); /* A:stop */
        if (last) {
            serve_signals();                /* a signal from before the end still gets its snapshot */
            fdri_trigger_serve(UINT64_MAX); /* an open window ends with the recording */
            fdri_trigger_job_look(0, true);
            return NULL;
        }
        serve_signals();
        now = fdri_clock_ns(CLOCK_MONOTONIC);
        until = fdri_trigger_serve(now);
        until = fdri_bits_min(until, fdri_trigger_watchdog_look(now));
        until = fdri_bits_min(until, fdri_crash_room_look(now));
        until = fdri_bits_min(until, fdri_trigger_job_look(now, false));
        if (fdri_snapshot_view.poll) until = fdri_bits_min(until, fdri_snapshot_view.poll(now));
    }
}

bool fdri_trigger_dumper_stops(void) { return fdri_atomic_load_acquire(&stopping); /* A:stop */ }

/* Does nothing without a recording: fdri_trigger_start starts the thread for a recording that is just beginning, and an
 * ending one needs none. */
int fdri_trigger_dumper_start(void)
{
    sigset_t old;
    int e = 0;
    fdri_system_signals_block(&old); /* the dumper must not take the application's signals */
    pthread_mutex_lock(&lock);
    if (may_run && !have_dumper) {
        stopping = false;
        signalled = 0;
        served_ns = 0;
        sem_init(&asked, 0, 0);
        e = pthread_create(&dumper, NULL, dump_loop, NULL);
        if (!e) fdri_fd_name_thread(dumper, FDRI_SYSTEM_THREAD_DUMPER);
        have_dumper = !e;
    }
    pthread_mutex_unlock(&lock);
    fdri_system_signals_restore(&old);
    return -e;
}

/* Permits or forbids starting the thread; returns whether it exists. */
static bool set_may_run(bool now)
{
    sigset_t old;
    fdri_system_signals_block(&old);
    pthread_mutex_lock(&lock);
    may_run = now;
    bool there = have_dumper;
    pthread_mutex_unlock(&lock);
    fdri_system_signals_restore(&old);
    return there;
}

static void install(void)
{
    struct sigaction now, ours;
    installed = 0;
    if (!fdri_snapshot_view.signal) return;
    bool there = sigaction(fdri_snapshot_view.signal, NULL, &now) == 0;
    if (there && !(now.sa_flags & SA_SIGINFO) && now.sa_handler == SIG_IGN) return; /* ignored stays ignored */
    memset(&ours, 0, sizeof ours);
    ours.sa_sigaction = on_signal;
    ours.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK;
    if (there && fdri_system_previous_install(&previous, fdri_snapshot_view.signal, &ours))
        installed = fdri_snapshot_view.signal;
    else
        fdri_text_message("FDR_SIGNAL: cannot install a handler of signal %d: %s; the signal takes no snapshots",
                          fdri_snapshot_view.signal, strerror(errno));
}

static void uninstall(void)
{
    if (installed) fdri_system_previous_restore(&previous, installed, on_signal);
    installed = 0;
}

int fdri_trigger_start(const struct fdri_export_view *view)
{
    fdri_snapshot_take_begin(view);
    fdri_trigger_watchdog_start();
    fdri_trigger_job_start();
    set_may_run(true); /* first: from here on, arming a trigger starts the thread */
    if (!fdri_snapshot_view.signal && !fdri_snapshot_view.watchdog_ns && !fdri_snapshot_view.needs_dumper &&
        !fdri_trigger_any())
        return 0;
    int e = fdri_trigger_dumper_start();
    install(); /* even without a thread: a request for a snapshot must not end the program */
    return e;
}

/* Leaves the signal handler installed: it ignores a late request, while the previous action might end the process. */
void fdri_trigger_stop(bool take)
{
    if (!take) fdri_snapshot_take_end();
    if (set_may_run(false)) {
        fdri_atomic_store_release(&stopping, true); /* R:stop */
        fdri_trigger_dumper_wake();
        pthread_join(dumper, NULL);
        have_dumper = false;
    }
    fdri_snapshot_take_end();
}

void fdri_trigger_leave(void) { uninstall(); }

bool fdri_trigger_handles(const struct sigaction *action)
{
    if (!(action->sa_flags & SA_SIGINFO)) return false;
    /* passes the signal on to a handler of the program */
    if (action->sa_sigaction == on_signal) return !fdri_system_previous_any(&previous);
    return action->sa_sigaction == fdri_crash_on_signal;
}

void fdri_trigger_dumper_fork(int phase)
{
    fdri_snapshot_take_fork(phase);
    fdri_trigger_fork(phase);
    if (phase == 2) { /* the child has no dumper; the signal gets its previous action */
        uninstall();
        have_dumper = may_run = false;
    }
    if (phase == 2 || phase == 3) pthread_mutex_init(&lock, NULL);
}
