/* SPDX-License-Identifier: MIT */
/* Values of the kernel on each thread, from /proc/self/task/TID: stat, schedstat and status. They need no privilege,
 * and count from the thread's start. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd/open_high.h"
#include "base/system/syscall.h"
#include "sampler/counters/counter.h"

static const struct fdr_counter stat_counters[] = {
    {"page-faults", "", FDR_METRIC_COUNTER, FDR_U64},   {"minor-faults", "", FDR_METRIC_COUNTER, FDR_U64},
    {"major-faults", "", FDR_METRIC_COUNTER, FDR_U64},  {"user-time", "ns", FDR_METRIC_COUNTER, FDR_U64},
    {"system-time", "ns", FDR_METRIC_COUNTER, FDR_U64},
};
static const struct fdr_counter sched_counters[] = {
    {"cpu-time", "ns", FDR_METRIC_COUNTER, FDR_U64},
    {"run-delay", "ns", FDR_METRIC_COUNTER, FDR_U64},
    {"timeslices", "", FDR_METRIC_COUNTER, FDR_U64},
};
static const struct fdr_counter status_counters[] = {
    {"context-switches", "", FDR_METRIC_COUNTER, FDR_U64},
    {"voluntary", "", FDR_METRIC_COUNTER, FDR_U64},
    {"involuntary", "", FDR_METRIC_COUNTER, FDR_U64},
};
enum {
    STAT = sizeof stat_counters / sizeof *stat_counters,
    SCHED = sizeof sched_counters / sizeof *sched_counters,
    STATUS = sizeof status_counters / sizeof *status_counters
};

int fdri_counters_proc_open(int tid, const char *name)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/self/task/%d/%s", tid ? tid : (int)syscall(SYS_gettid), name);
    return fdri_fd_open(AT_FDCWD, path, O_RDONLY, 0);
}

int fdri_counters_proc_read(int fd, char *text, size_t bytes)
{
    long n = fdri_system_pread(fd, text, bytes - 1, 0);
    if (n < 0) return (int)n;
    text[n] = 0;
    return n ? (int)n : -ESRCH; /* the thread has ended */
}

int fdri_counters_paranoid(void)
{
    char text[16] = "";
    int fd = open("/proc/sys/kernel/perf_event_paranoid", O_RDONLY | O_CLOEXEC);
    if (fd < 0) return -100;
    ssize_t n = read(fd, text, sizeof text - 1);
    close(fd);
    return n > 0 ? atoi(text) : -100;
}

static uint32_t one_descriptor(uint32_t wanted) { return wanted ? 1 : 0; }

static int open_file(struct fdr_counter_handle *h, const char *name)
{
    int fd = fdri_counters_proc_open(h->tid, name);
    if (fd < 0) return fd;
    h->fd[0] = fd;
    return 0;
}

static void close_file(struct fdr_counter_handle *h)
{
    if (h->fd[0] >= 0) fdri_system_close(h->fd[0]);
    h->fd[0] = -1;
}

/* ---- stat ---- */

static uint64_t ns_of_ticks(uint64_t ticks)
{
    static long per_second;
    if (!per_second) per_second = sysconf(_SC_CLK_TCK);
    return ticks * (1000000000u / (uint64_t)(per_second > 0 ? per_second : 100));
}

/* Field 2, the name, may contain any character, so the parser begins behind its last parenthesis, at field 3. */
static bool parse_stat(const char *text, uint64_t *value)
{
    const char *p = strrchr(text, ')');
    unsigned long long minor, major, user, system;
    if (!p ||
        sscanf(p + 1, " %*c %*d %*d %*d %*d %*d %*u %llu %*u %llu %*u %llu %llu", &minor, &major, &user, &system) != 4)
        return false;
    value[0] = minor + major;
    value[1] = minor;
    value[2] = major;
    value[3] = ns_of_ticks(user);
    value[4] = ns_of_ticks(system);
    return true;
}

static int open_stat(struct fdr_counter_handle *h) { return open_file(h, "stat"); }
static int read_stat(struct fdr_counter_handle *h, uint64_t *value)
{
    char text[1024];
    int n = fdri_counters_proc_read(h->fd[0], text, sizeof text);
    if (n < 0) return n;
    return parse_stat(text, value) ? 0 : -EIO;
}

/* ---- schedstat ---- */

static int open_sched(struct fdr_counter_handle *h) { return open_file(h, "schedstat"); }
static int read_sched(struct fdr_counter_handle *h, uint64_t *value)
{
    char text[128], *end;
    int n = fdri_counters_proc_read(h->fd[0], text, sizeof text);
    if (n < 0) return n;
    value[0] = strtoull(text, &end, 10);
    value[1] = strtoull(end, &end, 10);
    value[2] = strtoull(end, NULL, 10);
    return 0;
}

/* ---- status ---- */

static bool parse_status(const char *text, uint64_t *value)
{
    const char *v = strstr(text, "\nvoluntary_ctxt_switches:"), *i = strstr(text, "\nnonvoluntary_ctxt_switches:");
    if (!v || !i) return false;
    value[1] = strtoull(strchr(v, ':') + 1, NULL, 10);
    value[2] = strtoull(strchr(i, ':') + 1, NULL, 10);
    value[0] = value[1] + value[2];
    return true;
}

static int open_status(struct fdr_counter_handle *h) { return open_file(h, "status"); }
static int read_status(struct fdr_counter_handle *h, uint64_t *value)
{
    char text[4096];
    int n = fdri_counters_proc_read(h->fd[0], text, sizeof text);
    if (n < 0) return n;
    return parse_status(text, value) ? 0 : -EIO;
}

/* ---- does it count? ---- */

static int probe_file(const struct fdr_counter_source *source, const char *file, uint64_t *value, char *why,
                      size_t bytes)
{
    struct fdr_counter_handle h = {.source = source, .wanted = (1u << source->count) - 1, .fd = {-1}};
    int e = source->open(&h);
    if (!e) {
        e = source->read(&h, value);
        source->close(&h);
    }
    if (e) snprintf(why, bytes, "/proc/self/task/TID/%s: %s", file, strerror(-e));
    return e;
}

static int probe_stat(uint32_t which, char *why, size_t bytes)
{
    uint64_t value[FDR_SOURCE_COUNTERS] = {0};
    (void)which; /* any of these may rightly be 0 */
    return probe_file(&fdri_counters_source_task, "stat", value, why, bytes);
}

static int probe_status(uint32_t which, char *why, size_t bytes)
{
    uint64_t value[FDR_SOURCE_COUNTERS] = {0};
    struct timespec a_moment = {0, 50000};
    nanosleep(&a_moment, NULL); /* causes at least one voluntary switch */
    int e = probe_file(&fdri_counters_source_switches, "status", value, why, bytes);
    if (e || value[1] || which == 2) return e;
    snprintf(why, bytes, "/proc/self/task/TID/status: a thread that slept has no voluntary switch");
    return -ENODATA;
}

static int probe_sched(uint32_t which, char *why, size_t bytes)
{
    uint64_t value[FDR_SOURCE_COUNTERS] = {0}, until = fdri_clock_ns(CLOCK_MONOTONIC) + 20000;
    struct timespec a_moment = {0, 50000};
    while (fdri_clock_ns(CLOCK_MONOTONIC) < until) {}
    nanosleep(&a_moment, NULL); /* the kernel updates the values when it switches the thread off */
    int e = probe_file(&fdri_counters_source_sched, "schedstat", value, why, bytes);
    if (e || value[0] || which == 1) return e;
    snprintf(why, bytes, "/proc/self/task/TID/schedstat stays 0 (kernel without CONFIG_SCHED_INFO)");
    return -ENODATA;
}

const struct fdr_counter_source fdri_counters_source_task = {
    .size = sizeof(struct fdr_counter_source),
    .name = "task",
    .scope = FDR_COUNTER_THREAD,
    .counter = stat_counters,
    .count = STAT,
    .probe = probe_stat,
    .descriptors = one_descriptor,
    .open = open_stat,
    .read = read_stat,
    .close = close_file,
};
const struct fdr_counter_source fdri_counters_source_sched = {
    .size = sizeof(struct fdr_counter_source),
    .name = "sched",
    .scope = FDR_COUNTER_THREAD,
    .counter = sched_counters,
    .count = SCHED,
    .probe = probe_sched,
    .descriptors = one_descriptor,
    .open = open_sched,
    .read = read_sched,
    .close = close_file,
};
const struct fdr_counter_source fdri_counters_source_switches = {
    .size = sizeof(struct fdr_counter_source),
    .name = "switches",
    .scope = FDR_COUNTER_THREAD,
    .counter = status_counters,
    .count = STATUS,
    .probe = probe_status,
    .descriptors = one_descriptor,
    .open = open_status,
    .read = read_status,
    .close = close_file,
};
