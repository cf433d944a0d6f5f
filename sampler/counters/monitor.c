/* SPDX-License-Identifier: MIT */
/* The monitor thread. At each interval it reads the counters of all threads and of the process. It records them through
 * the public interface on its own location. The program's threads do no work for it.
 *
 * If rounds take more than a quarter of the interval, because of many threads or slow sources, the interval doubles. So
 * counting never takes over the machine. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

#include "base/clock.h"
#include "base/system/helper_threads.h"
#include "base/system/syscall.h"
#include "base/text/message.h"
#include "base/system/signal_mask.h"
#include "sampler/counters/counter_view.h"
#include "sampler/counters/monitor.h"

static const uint64_t longest_interval_ns = 1000000000;
enum { SLOW_ROUNDS = 16 }; /* the interval doubles after so many slow rounds in a row */

static struct fdri_counters_plan plan;
static struct fdri_counters_panel of_threads, of_process;
static struct fdri_counters_observed process;
static pthread_t thread;
static bool running;
static sem_t stop, prepared;

/* Reports the counters that do not work once, and in the recording. */
void fdri_counters_missing(const char *variable, const char *list, const char *missing)
{
    char text[1000];
    if (!*missing) return;
    fdri_text_message("%s=%s: left out, cannot be counted here: %s", variable, list, missing);
    snprintf(text, sizeof text, "fdr.counters.missing: %s", missing);
    fdr_marker_define(text);
}

static void prepare(void)
{
    enum { MOST = 4 * MONITOR_COUNTERS };
    static struct fdri_counters_choice all[MOST], threads[MOST], whole[MOST];
    char missing[900];
    size_t n = fdri_counters_choose(plan.sampled, false, all, MOST, missing, sizeof missing);
    size_t of[2] = {0, 0};
    for (size_t i = 0; i < n; i++) {
        bool of_thread = all[i].source->scope == FDR_COUNTER_THREAD;
        (of_thread ? threads : whole)[of[of_thread]++] = all[i];
    }
    of_threads = of_process = (struct fdri_counters_panel){0};
    fdri_counters_panel_add(&of_threads, threads, of[1], missing, sizeof missing);
    fdri_counters_panel_add(&of_process, whole, of[0], missing, sizeof missing);
    fdri_counters_missing("FDR_COUNTERS", plan.sampled, missing);
    process.tid = -1;
    if (of_process.count && fdri_counters_observe_begin(&process, &of_process, 0, 0)) process.tid = -1;
}

static void round_of_readings(bool last)
{
    fdri_counters_threads_scan(&of_threads, last);
    fdri_counters_threads_read(&of_threads, last);
    if (process.tid == 0 && !fdri_counters_observe(&process, &of_process, last) && process.lost)
        fdri_counters_observe_again(&process, &of_process);
}

static uint64_t longer_interval(uint64_t interval_ns)
{
    uint64_t next = interval_ns * 2 < longest_interval_ns ? interval_ns * 2 : longest_interval_ns;
    static unsigned said;
    if (next > interval_ns && fdri_text_once(&said))
        fdri_text_message(
            "FDR_COUNTER_INTERVAL: reading %u threads takes more than a quarter of %llu us; reading half as often",
            fdri_counters_threads_observed(), (unsigned long long)interval_ns / 1000);
    return next;
}

static void *monitor(void *unused)
{
    (void)unused;
    prctl(PR_SET_NAME, FDRI_SYSTEM_THREAD_MONITOR);
    prctl(PR_SET_TIMERSLACK, 1000ul);
    prepare();
    sem_post(&prepared);
    uint64_t interval = plan.interval_ns, due = fdri_clock_ns(CLOCK_MONOTONIC), slow = 0;
    while (of_threads.count || process.tid == 0) {
        uint64_t began = fdri_clock_ns(CLOCK_MONOTONIC);
        round_of_readings(false);
        uint64_t now = fdri_clock_ns(CLOCK_MONOTONIC);
        slow = now - began > interval / 4 ? slow + 1 : 0;
        if (slow == SLOW_ROUNDS) interval = longer_interval(interval), slow = 0;
        due += interval;
        if (due < now) due = now + interval; /* late: missed rounds are not made up for */
        struct timespec t = {(time_t)(due / 1000000000u), (long)(due % 1000000000u)};
        int e;
        while ((e = sem_clockwait(&stop, CLOCK_MONOTONIC, &t)) && errno == EINTR) {}
        if (!e) break;
    }
    if (of_threads.count || process.tid == 0) round_of_readings(true);
    fdri_counters_threads_end(&of_threads);
    if (process.tid == 0) fdri_counters_observe_end(&process, &of_process);
    return NULL;
}

static int start_thread(void)
{
    sigset_t old;
    sem_init(&stop, 0, 0);
    sem_init(&prepared, 0, 0);
    fdri_system_signals_block(&old); /* the new thread inherits the mask, so it takes no signal of the program */
    int e = pthread_create(&thread, NULL, monitor, NULL);
    /* Waits until the thread has tried the counters. This opens, reads and closes files, which must not happen beside a
     * program that begins by closing all descriptors. */
    /* no cancellation point: base/system/signal_mask.h */
    while (!e && sem_trywait(&prepared)) fdri_system_sleep(100000);
    fdri_system_signals_restore(&old);
    return e;
}

void fdri_counters_start(const struct fdri_counters_plan *given)
{
    plan = *given;
    fdri_counters_edges_start(plan.edges, plan.papi);
    if (!plan.sampled[0]) return;
    int e = start_thread();
    running = !e;
    if (e)
        fdri_text_message("FDR_COUNTERS: cannot start the thread that reads counters: %s; no counter is read",
                          strerror(e));
}

void fdri_counters_stop(void)
{
    if (running) {
        sem_post(&stop);
        pthread_join(thread, NULL);
        running = false;
    }
    fdri_counters_edges_stop();
}

/* The child has no monitor thread; inherited descriptors count threads of the parent. */
void fdri_counters_fork(int phase)
{
    fdri_counters_edges_fork(phase);
    if (phase != 2 || !running) return;
    fdri_counters_threads_end(&of_threads);
    if (process.tid == 0) fdri_counters_observe_end(&process, &of_process);
    running = false;
}
