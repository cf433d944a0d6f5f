/* SPDX-License-Identifier: MIT */
/* The list of observed threads, from /proc/self/task, also of threads that never call fdr. No allocation. The list is
 * read only if the number of threads changed, and every 64th scan. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/system/helper_threads.h"
#include "base/fd/open_high.h"
#include "base/text/message.h"
#include "sampler/counters/monitor.h"

enum { LOOK_EVERY = 64 }; /* scans: equal numbers of threads may have begun and ended */

static struct fdri_counters_observed threads[MONITOR_THREADS];
static uint32_t places; /* including free ones */
static uint32_t series;
static uint32_t scans;
static nlink_t links;

uint32_t fdri_counters_threads_observed(void)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < places; i++) n += threads[i].tid > 0;
    return n;
}

/* True for fdr's own threads, and for a thread that has ended. */
static bool not_to_watch(int tid)
{
    char name[24] = "";
    int fd = fdri_counters_proc_open(tid, "comm");
    if (fd < 0) return true; /* ended */
    ssize_t n = read(fd, name, sizeof name - 1);
    close(fd);
    if (n > 0) name[n - 1] = 0; /* the newline */
    return n <= 0 || (tid != getpid() && fdri_system_is_helper(name));
}

static struct fdri_counters_observed *place_of(int tid, struct fdri_counters_observed **free_place)
{
    for (uint32_t i = 0; i < places; i++) {
        if (threads[i].tid == tid) return &threads[i];
        if (threads[i].tid < 0 && !*free_place) *free_place = &threads[i];
    }
    return NULL;
}

static void say_left_out(int tid, int error)
{
    static unsigned said;
    if (!fdri_text_once(&said)) return;
    if (error == -EMFILE)
        fdri_text_message(
            "FDR_COUNTERS: thread %d and perhaps more are not counted: a quarter of RLIMIT_NOFILE is in use", tid);
    else if (error == -ENOSPC)
        fdri_text_message("FDR_COUNTERS: thread %d and more are not counted: the limit is %d threads", tid,
                          MONITOR_THREADS);
    else fdri_text_message("FDR_COUNTERS: thread %d is not counted: %s", tid, strerror(-error));
}

static void note_thread(struct fdri_counters_panel *p, int tid)
{
    struct fdri_counters_observed *o, *free_place = NULL;
    if ((o = place_of(tid, &free_place))) {
        o->seen = true;
        return;
    }
    if (not_to_watch(tid)) return;
    if (!free_place && places == MONITOR_THREADS) {
        say_left_out(tid, -ENOSPC);
        return;
    }
    if (!free_place) free_place = &threads[places++];
    int e = fdri_counters_observe_begin(free_place, p, tid, series + 1);
    if (!e) series++;
    else if (e != -ESRCH && e != -ENOENT && e != -ENODEV) say_left_out(tid, e); /* these: it is ending */
}

struct entry { /* of getdents64 */
    uint64_t inode, next;
    uint16_t bytes;
    uint8_t type;
    char name[];
};

static void scan_threads(struct fdri_counters_panel *p)
{
    _Alignas(8) char list[4096];
    int fd = fdri_fd_open(AT_FDCWD, "/proc/self/task", O_RDONLY | O_DIRECTORY, 0);
    if (fd < 0) {
        static unsigned said;
        if (fdri_text_once(&said))
            fdri_text_message("FDR_COUNTERS: /proc/self/task: %s; no thread is counted", strerror(-fd));
        return;
    }
    for (uint32_t i = 0; i < places; i++) threads[i].seen = false;
    for (;;) {
        long n = syscall(SYS_getdents64, fd, list, sizeof list);
        if (n <= 0) break;
        for (long at = 0; at < n;) {
            const struct entry *e = (const void *)(list + at);
            int tid = atoi(e->name); /* 0 for . and .. */
            if (tid > 0) note_thread(p, tid);
            at += e->bytes;
        }
    }
    close(fd);
    for (uint32_t i = 0; i < places; i++) {
        if (threads[i].tid < 0 || threads[i].seen) continue;
        fdri_counters_observe(&threads[i], p, true); /* descriptors outlive their thread and have its final counts */
        fdri_counters_observe_end(&threads[i], p);
    }
}

void fdri_counters_threads_scan(struct fdri_counters_panel *p, bool force)
{
    struct stat s;
    if (!p->count) return;
    bool changed = stat("/proc/self/task", &s) != 0 || s.st_nlink != links;
    if (!changed && !force && scans++ % LOOK_EVERY) return;
    links = changed ? s.st_nlink : links;
    scan_threads(p);
}

void fdri_counters_threads_read(const struct fdri_counters_panel *p, bool last)
{
    for (uint32_t i = 0; i < places; i++)
        if (threads[i].tid > 0 && !fdri_counters_observe(&threads[i], p, last)) {
            links = 0; /* ended: the next scan ends the observation */
            /* or begins a new series, if the thread is still there */
            if (threads[i].lost) fdri_counters_observe_end(&threads[i], p);
        }
}

void fdri_counters_threads_end(const struct fdri_counters_panel *p)
{
    for (uint32_t i = 0; i < places; i++)
        if (threads[i].tid > 0) fdri_counters_observe_end(&threads[i], p);
    places = scans = 0;
    links = 0;
}
