/* SPDX-License-Identifier: MIT */
/* Ends a program of which only fdr's threads are left. If a program's first thread calls pthread_exit, the C library
 * calls exit(0) when the last thread ends. fdr's own threads would prevent that for ever. So the dumper thread checks
 * every 5 s whether the first thread has ended, and if so, whether other threads than fdr's are left. If none are, it
 * has exit(0) called. */
#define _GNU_SOURCE
#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/system/helper_threads.h"
#include "base/system/procfs.h"
#include "export/view.h"
#include "recorder/life/life.h"
#include "recorder/recording.h"
#include "sampler/samples/samples_view.h"

static const uint64_t often_ns = 5000000000u, soon_ns = 50000000;
static uint64_t next_ns;  /* of the dumper thread */
static uint32_t suspects; /* atomic: checks to be made every 50 ms */

enum { SOON_LOOKS = 100 }; /* the first thread may take 5 s from its report to its end */

/* Has the first thread ended? The kernel shows its state as the state of the process: Z. */
static bool first_left(void)
{
    char text[512];
    fdri_system_read_text("/proc/self/stat", text, sizeof text);
    const char *name_end = strrchr(text, ')');
    return name_end && name_end[1] == ' ' && name_end[2] == 'Z';
}

static bool is_ours(const char *tid)
{
    char path[300], name[20];
    snprintf(path, sizeof path, "/proc/self/task/%s/comm", tid);
    size_t n = fdri_system_read_text(path, name, sizeof name);
    if (n && name[n - 1] == '\n') name[n - 1] = 0;
    return fdri_system_is_helper(name);
}

/* How many threads fdr has now. The program may use the same names for its own threads, so names alone do not count. */
static uint32_t most_ours(void)
{
    return 1u + fdri_samples_sampler_wanted() + (fdri_life_recording.settings.counters.sampled[0] != 0);
}

static bool only_ours_left(void)
{
    bool only = true;
    uint32_t ours = 0, most = most_ours();
    DIR *tasks = fdri_system_open_folder("/proc/self/task");
    if (!tasks) return false;
    for (struct dirent *e; only && (e = readdir(tasks));) {
        int tid = atoi(e->d_name); /* 0 for . and .. */
        if (tid && tid != fdri_life_recording.pid) only = is_ours(e->d_name) && ++ours <= most;
    }
    closedir(tasks);
    return only;
}

/* In a thread of its own: exit ends the recording, and that waits for the dumper thread. */
static void *end_program(void *unused)
{
    sigset_t none;
    (void)unused;
    sigemptyset(&none);
    pthread_sigmask(SIG_SETMASK, &none, NULL);
    exit(0);
}

uint64_t fdri_life_poll_last_thread(uint64_t now_ns)
{
    static bool over;
    pthread_t last;
    uint32_t soon = fdri_atomic_load_relaxed(&suspects);
    if (over) return UINT64_MAX;
    if (!soon && now_ns < next_ns && next_ns - now_ns <= often_ns) return next_ns;
    if (soon) fdri_atomic_sub_relaxed(&suspects, 1u);
    bool left = first_left();
    over = left && only_ours_left() && !pthread_create(&last, NULL, end_program, NULL);
    if (over) pthread_detach(last);
    next_ns = over ? UINT64_MAX : now_ns + (soon || left ? soon_ns : often_ns);
    return next_ns;
}

void fdri_life_suspect_last_thread(void)
{
    fdri_atomic_store_relaxed(&suspects, (uint32_t)SOON_LOOKS);
    fdri_trigger_dumper_wake();
}
