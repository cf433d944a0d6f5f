/* SPDX-License-Identifier: MIT */
/* A process that was restored from a checkpoint goes on in the memory of another one, which may be running still, and
 * in the same live file. Nobody tells it; it finds out by what is never the same twice: process id, start time, the
 * machine's boot. Looked at by the dumper thread every few seconds and at once when the clock stepped back, and before
 * a snapshot. Then the recording is left as it is and a new one begins. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/system/helper_threads.h"
#include "base/system/procfs.h"
#include "export/view.h"
#include "recorder/life/life.h"
#include "recorder/life/recording.h"
#include "recorder/record/record.h"

/* Every few seconds the dumper also writes down that the process is there, for whoever finds its recording. */
static const uint64_t often_ns = 5000000000u;
static uint64_t next_ns;   /* dumper */
static uint32_t suspected; /* atomic */

/* A filter may refuse getpid even before the first recording. */
static int number(void)
{
    char text[1024];
    int pid = fdri_pid();
    if (pid > 0) return pid;
    fdri_read_text("/proc/self/stat", text, sizeof text);
    return atoi(text);
}

static uint64_t start_time(void)
{
    char text[1024];
    fdri_read_text("/proc/self/stat", text, sizeof text);
    return fdri_stat_start(text);
}

static uint64_t boot(void)
{
    char text[64];
    size_t n = fdri_read_text("/proc/sys/kernel/random/boot_id", text, sizeof text);
    uint64_t h = n ? 14695981039346656037u : 0;
    for (size_t i = 0; i < n; i++) h = (h ^ (unsigned char)text[i]) * 1099511628211u;
    return h;
}

struct fdri_life fdri_life_now(void) { return (struct fdri_life){number(), boot(), start_time()}; }

static bool other(uint64_t a, uint64_t b) { return a && b && a != b; }

/* A child that shares our memory (vfork) has a number of its own, too; it is no other life. */
bool fdri_life_differs(const struct fdri_life *now)
{
    const struct fdri_life *then = &fdri_rec.life;
    if (now->pid != then->pid && getppid() == then->pid) return false;
    return now->pid != then->pid || other(now->boot, then->boot) || other(now->start_time, then->start_time);
}

void fdri_life_look(void)
{
    struct fdri_life now = fdri_life_now();
    if (fdri_life_differs(&now)) fdri_begin_anew();
}

/* The dumper cannot wait for its own end. */
static void *begin_anew(void *unused)
{
    pthread_setname_np(pthread_self(), FDR_RESTART);
    fdri_begin_anew();
    return unused;
}

uint64_t fdri_life_poll(uint64_t now_ns)
{
    pthread_t helper;
    if (fdr_load_relaxed(&suspected)) fdr_store_relaxed(&suspected, 0u);
    else if (now_ns < next_ns && next_ns - now_ns <= often_ns) return next_ns;
    fdr_store_relaxed(&fdri_rec.arena.super->alive_tick, fdri_tick_now());
    fdri_crash_look(); /* has somebody taken the handlers of fatal signals? */
    struct fdri_life now = fdri_life_now();
    if (fdri_life_differs(&now) && !pthread_create(&helper, NULL, begin_anew, NULL)) pthread_detach(helper);
    next_ns = now_ns + often_ns;
    return next_ns;
}

void fdri_life_suspect(void)
{
    fdr_store_relaxed(&suspected, 1u);
    fdri_dumper_wake();
}
