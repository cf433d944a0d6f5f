/* SPDX-License-Identifier: MIT */
/* Values of the kernel on the whole process: memory, getrusage, I/O. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd/open_high.h"
#include "base/system/syscall.h"
#include "sampler/counters/counter.h"

static const struct fdr_counter process_counters[] = {{"rss", "bytes", FDR_METRIC_GAUGE, FDR_U64},
                                                      {"virtual", "bytes", FDR_METRIC_GAUGE, FDR_U64},
                                                      {"threads", "", FDR_METRIC_GAUGE, FDR_U64}};
static const struct fdr_counter rusage_counters[] = {
    {"user-time", "ns", FDR_METRIC_COUNTER, FDR_U64},        {"system-time", "ns", FDR_METRIC_COUNTER, FDR_U64},
    {"minor-faults", "", FDR_METRIC_COUNTER, FDR_U64},       {"major-faults", "", FDR_METRIC_COUNTER, FDR_U64},
    {"voluntary-switches", "", FDR_METRIC_COUNTER, FDR_U64}, {"involuntary-switches", "", FDR_METRIC_COUNTER, FDR_U64},
    {"max-rss", "bytes", FDR_METRIC_GAUGE, FDR_U64}};
static const char *const io_names[] = {"rchar", "wchar", "syscr", "syscw", "read_bytes", "write_bytes"};
static const struct fdr_counter io_counters[] = {
    {"read", "bytes", FDR_METRIC_COUNTER, FDR_U64},      {"written", "bytes", FDR_METRIC_COUNTER, FDR_U64},
    {"read-calls", "", FDR_METRIC_COUNTER, FDR_U64},     {"write-calls", "", FDR_METRIC_COUNTER, FDR_U64},
    {"disk-read", "bytes", FDR_METRIC_COUNTER, FDR_U64}, {"disk-written", "bytes", FDR_METRIC_COUNTER, FDR_U64}};
enum {
    PROCESS = sizeof process_counters / sizeof *process_counters,
    RUSAGE = sizeof rusage_counters / sizeof *rusage_counters,
    IO = sizeof io_counters / sizeof *io_counters
};

static uint32_t one_descriptor(uint32_t wanted) { return wanted ? 1 : 0; }

static int open_path(struct fdr_counter_handle *h, const char *path)
{
    int fd = fdri_fd_open(AT_FDCWD, path, O_RDONLY, 0);
    if (fd < 0) return fd;
    h->fd[0] = fd;
    return 0;
}

static void close_path(struct fdr_counter_handle *h)
{
    if (h->fd[0] >= 0) fdri_system_close(h->fd[0]);
    h->fd[0] = -1;
}

/* ---- memory, threads ---- */

/* /proc/self is the first thread of the process. After its pthread_exit it has no memory, and statm says 0, so the
 * calling thread's statm serves. */
static int open_process(struct fdr_counter_handle *h)
{
    int e = open_path(h, "/proc/thread-self/statm");
    return e ? open_path(h, "/proc/self/statm") : 0;
}
static int read_process(struct fdr_counter_handle *h, uint64_t *value)
{
    char text[128], *end;
    struct stat s;
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    int n = fdri_counters_proc_read(h->fd[0], text, sizeof text);
    if (n < 0) return n;
    value[1] = strtoull(text, &end, 10) * page;
    value[0] = strtoull(end, NULL, 10) * page;
    value[2] = stat("/proc/self/task", &s) == 0 && s.st_nlink > 2 ? s.st_nlink - 2 : 0; /* ., .., and one each */
    return 0;
}

static int probe_process(uint32_t which, char *why, size_t bytes)
{
    uint64_t value[FDR_SOURCE_COUNTERS] = {0};
    struct fdr_counter_handle h = {.fd = {-1}};
    int e = open_process(&h);
    if (!e) {
        e = read_process(&h, value);
        close_path(&h);
    }
    if (!e && !value[which]) e = -ENODATA;
    if (e) snprintf(why, bytes, "/proc/self/%s: %s", which == 2 ? "task" : "statm", strerror(-e));
    return e;
}

/* ---- getrusage ---- */

static uint64_t ns(struct timeval t) { return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_usec * 1000; }

static int read_rusage(struct fdr_counter_handle *h, uint64_t *value)
{
    struct rusage r;
    (void)h;
    if (getrusage(RUSAGE_SELF, &r)) return -errno;
    value[0] = ns(r.ru_utime);
    value[1] = ns(r.ru_stime);
    value[2] = (uint64_t)r.ru_minflt;
    value[3] = (uint64_t)r.ru_majflt;
    value[4] = (uint64_t)r.ru_nvcsw;
    value[5] = (uint64_t)r.ru_nivcsw;
    value[6] = (uint64_t)r.ru_maxrss * 1024;
    return 0;
}

static int probe_rusage(uint32_t which, char *why, size_t bytes)
{
    uint64_t value[FDR_SOURCE_COUNTERS] = {0};
    (void)which;
    int e = read_rusage(NULL, value);
    if (e) snprintf(why, bytes, "getrusage: %s", strerror(-e));
    return e;
}

/* ---- I/O ---- */

static int open_io(struct fdr_counter_handle *h) { return open_path(h, "/proc/self/io"); }
static int read_io(struct fdr_counter_handle *h, uint64_t *value)
{
    char text[512];
    int n = fdri_counters_proc_read(h->fd[0], text, sizeof text);
    if (n < 0) return n;
    for (uint32_t i = 0; i < IO; i++) {
        const char *p = text;
        size_t length = strlen(io_names[i]);
        while (p && (strncmp(p, io_names[i], length) || p[length] != ':'))
            p = strchr(p, '\n') ? strchr(p, '\n') + 1 : NULL;
        value[i] = p ? strtoull(p + length + 1, NULL, 10) : 0;
    }
    return 0;
}

static int probe_io(uint32_t which, char *why, size_t bytes)
{
    uint64_t value[FDR_SOURCE_COUNTERS] = {0};
    struct fdr_counter_handle h = {.fd = {-1}};
    int e = open_io(&h);
    if (!e) {
        e = read_io(&h, value);
        if (!e) e = read_io(&h, value); /* the first read counts in the second */
        close_path(&h);
    }
    if (!e && which == 2 && !value[2]) e = -ENODATA;
    if (e) snprintf(why, bytes, "/proc/self/io: %s", strerror(-e));
    return e;
}

const struct fdr_counter_source fdri_counters_source_process = {
    .size = sizeof(struct fdr_counter_source),
    .name = "process",
    .counter = process_counters,
    .count = PROCESS,
    .probe = probe_process,
    .descriptors = one_descriptor,
    .open = open_process,
    .read = read_process,
    .close = close_path,
};
const struct fdr_counter_source fdri_counters_source_rusage = {
    .size = sizeof(struct fdr_counter_source),
    .name = "rusage",
    .counter = rusage_counters,
    .count = RUSAGE,
    .probe = probe_rusage,
    .read = read_rusage,
};
const struct fdr_counter_source fdri_counters_source_io = {
    .size = sizeof(struct fdr_counter_source),
    .name = "io",
    .counter = io_counters,
    .count = IO,
    .probe = probe_io,
    .descriptors = one_descriptor,
    .open = open_io,
    .read = read_io,
    .close = close_path,
};
