/* SPDX-License-Identifier: MIT */
/* Detects a process that was restored from a checkpoint. It has a copy of the original's memory and the same live file,
 * and the original may still run. Nothing reports the restore, so fdr compares process id, start time and boot id. The
 * dumper thread does so every 5 s, at once when the clock stepped back, and before a snapshot. After a restore the old
 * recording is left as it is and a new one begins. */
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
#include "recorder/recording.h"

static const uint64_t often_ns = 5000000000u;
static uint64_t next_ns;   /* of the dumper thread */
static uint32_t suspected; /* atomic: check at the next poll */

/* The process id, also if a seccomp filter refuses getpid. */
static int number(void)
{
    char text[1024];
    int pid = fdri_export_pid();
    if (pid > 0) return pid;
    fdri_system_read_text("/proc/self/stat", text, sizeof text);
    return atoi(text);
}

static uint64_t start_time(void)
{
    char text[1024];
    fdri_system_read_text("/proc/self/stat", text, sizeof text);
    return fdri_system_stat_start_time(text);
}

static uint64_t boot(void)
{
    char text[64];
    size_t n = fdri_system_read_text("/proc/sys/kernel/random/boot_id", text, sizeof text);
    uint64_t h = n ? 14695981039346656037u : 0;
    for (size_t i = 0; i < n; i++) h = (h ^ (unsigned char)text[i]) * 1099511628211u;
    return h;
}

struct fdri_life_identity fdri_life_identity_now(void)
{
    return (struct fdri_life_identity){number(), boot(), start_time()};
}

static bool differs_if_known(uint64_t a, uint64_t b) { return a && b && a != b; }

/* A vfork child, which shares our memory, has another pid, too, but counts as the same process. */
bool fdri_life_identity_differs(const struct fdri_life_identity *now)
{
    const struct fdri_life_identity *then = &fdri_life_recording.identity;
    if (now->pid != then->pid && getppid() == then->pid) return false;
    return now->pid != then->pid || differs_if_known(now->boot, then->boot) ||
           differs_if_known(now->start_time, then->start_time);
}

void fdri_life_check_restored(void)
{
    struct fdri_life_identity now = fdri_life_identity_now();
    if (fdri_life_identity_differs(&now)) fdri_life_begin_anew();
}

/* In a thread of its own: ending the recording waits for the dumper thread. */
static void *begin_anew(void *unused)
{
    pthread_setname_np(pthread_self(), FDRI_SYSTEM_THREAD_RESTART);
    fdri_life_begin_anew();
    return unused;
}

uint64_t fdri_life_poll_restored(uint64_t now_ns)
{
    pthread_t helper;
    if (fdri_atomic_load_relaxed(&suspected)) fdri_atomic_store_relaxed(&suspected, 0u);
    else if (now_ns < next_ns && next_ns - now_ns <= often_ns) return next_ns;
    fdri_crash_check_handlers(); /* did the program replace fdr's handlers of fatal signals? */
    struct fdri_life_identity now = fdri_life_identity_now();
    if (fdri_life_identity_differs(&now) && !pthread_create(&helper, NULL, begin_anew, NULL)) pthread_detach(helper);
    next_ns = now_ns + often_ns;
    return next_ns;
}

void fdri_life_suspect_restored(void)
{
    fdri_atomic_store_relaxed(&suspected, 1u);
    fdri_trigger_dumper_wake();
}
