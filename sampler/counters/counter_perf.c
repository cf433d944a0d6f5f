/* SPDX-License-Identifier: MIT */
/* Events of the kernel's perf subsystem, per thread, with one descriptor each. Software events form a group, read at
 * once. Hardware events are separate, so that the kernel can multiplex them; their counts are scaled by the time they
 * ran.
 *
 * If the kernel's side may not be counted (perf_event_paranoid 2 and more, no CAP_PERFMON), opening succeeds with
 * exclude_kernel. Then an event that happens only in the kernel stays 0 for ever, so such a counter does not work. */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd/open_high.h"
#include "base/system/syscall.h"
#include "sampler/counters/counter.h"

struct event {
    uint32_t type;
    uint64_t config;
    bool in_kernel; /* happens only in the kernel */
};

enum { PAGE_FAULTS, MINOR_FAULTS, MAJOR_FAULTS, CONTEXT_SWITCHES, MIGRATIONS, TASK_CLOCK };
static const struct event software[] = {
    [PAGE_FAULTS] = {PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS, false},
    [MINOR_FAULTS] = {PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS_MIN, false},
    [MAJOR_FAULTS] = {PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS_MAJ, false},
    [CONTEXT_SWITCHES] = {PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES, true},
    [MIGRATIONS] = {PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_MIGRATIONS, true},
    [TASK_CLOCK] = {PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK, false},
};
static const struct fdr_counter software_counters[] = {
    [PAGE_FAULTS] = {"page-faults", "", FDR_METRIC_COUNTER, FDR_U64},
    [MINOR_FAULTS] = {"minor-faults", "", FDR_METRIC_COUNTER, FDR_U64},
    [MAJOR_FAULTS] = {"major-faults", "", FDR_METRIC_COUNTER, FDR_U64},
    [CONTEXT_SWITCHES] = {"context-switches", "", FDR_METRIC_COUNTER, FDR_U64},
    [MIGRATIONS] = {"cpu-migrations", "", FDR_METRIC_COUNTER, FDR_U64},
    [TASK_CLOCK] = {"task-clock", "ns", FDR_METRIC_COUNTER, FDR_U64},
};

#define CACHE(cache, op, result)                                                                                       \
    ((uint64_t)PERF_COUNT_HW_CACHE_##cache | (uint64_t)PERF_COUNT_HW_CACHE_OP_##op << 8 |                              \
     (uint64_t)PERF_COUNT_HW_CACHE_RESULT_##result << 16)
static const struct event hardware[] = {
    {PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, false},
    {PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS, false},
    {PERF_TYPE_HARDWARE, PERF_COUNT_HW_REF_CPU_CYCLES, false},
    {PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_REFERENCES, false},
    {PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES, false},
    {PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_INSTRUCTIONS, false},
    {PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_MISSES, false},
    {PERF_TYPE_HARDWARE, PERF_COUNT_HW_STALLED_CYCLES_BACKEND, false},
    {PERF_TYPE_HW_CACHE, CACHE(L1D, READ, MISS), false},
    {PERF_TYPE_HW_CACHE, CACHE(DTLB, READ, MISS), false},
};
static const struct fdr_counter hardware_counters[] = {
    {"cycles", "", FDR_METRIC_COUNTER, FDR_U64},          {"instructions", "", FDR_METRIC_COUNTER, FDR_U64},
    {"ref-cycles", "", FDR_METRIC_COUNTER, FDR_U64},      {"cache-references", "", FDR_METRIC_COUNTER, FDR_U64},
    {"cache-misses", "", FDR_METRIC_COUNTER, FDR_U64},    {"branches", "", FDR_METRIC_COUNTER, FDR_U64},
    {"branch-misses", "", FDR_METRIC_COUNTER, FDR_U64},   {"stalled-cycles", "", FDR_METRIC_COUNTER, FDR_U64},
    {"l1d-read-misses", "", FDR_METRIC_COUNTER, FDR_U64}, {"dtlb-read-misses", "", FDR_METRIC_COUNTER, FDR_U64},
};
enum { SOFTWARE = sizeof software / sizeof *software, HARDWARE = sizeof hardware / sizeof *hardware };

/* Returns a descriptor or -errno. `off`: the event and its group do not count until they are enabled. */
static int perf_open(const struct event *e, int tid, int group, uint64_t format, bool off)
{
    struct perf_event_attr a;
    memset(&a, 0, sizeof a);
    a.size = sizeof a;
    a.type = e->type;
    a.config = e->config;
    a.exclude_hv = 1;
    a.disabled = off;
    a.read_format = format;
    int fd = fdri_fd_perf_open(&a, tid, group);
    if (fd < 0 && (errno == EACCES || errno == EPERM) && !e->in_kernel) {
        a.exclude_kernel = 1;
        fd = fdri_fd_perf_open(&a, tid, group);
    }
    return fd < 0 ? -errno : fd;
}

/* ---- reading ---- */

enum { GROUP = PERF_FORMAT_GROUP, TIMES = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING };

static uint32_t descriptors(uint32_t wanted) { return (uint32_t)__builtin_popcount(wanted); }

static void perf_close(struct fdr_counter_handle *h)
{
    for (uint32_t i = 0; i < FDR_SOURCE_COUNTERS; i++) {
        if (h->fd[i] >= 0) fdri_system_close(h->fd[i]);
        h->fd[i] = -1;
    }
}

/* Opens all events of h->wanted. A group is enabled as a whole: an event that joins a running group stays 0 until its
 * thread is scheduled again. */
static int open_all(struct fdr_counter_handle *h, const struct event *event, uint32_t count, uint64_t format)
{
    int leader = -1;
    bool together = (format & GROUP) != 0;
    for (uint32_t i = 0; i < count; i++) {
        if (!(h->wanted >> i & 1)) continue;
        int fd = perf_open(&event[i], h->tid, together ? leader : -1, format, together && leader < 0);
        if (fd < 0) {
            perf_close(h);
            return fd;
        }
        h->fd[i] = fd;
        if (leader < 0) leader = fd;
    }
    if (!together || leader < 0 || ioctl(leader, PERF_EVENT_IOC_ENABLE, 0) == 0) return 0;
    int error = -errno;
    perf_close(h);
    return error;
}

static int open_software(struct fdr_counter_handle *h) { return open_all(h, software, SOFTWARE, GROUP); }
static int open_hardware(struct fdr_counter_handle *h) { return open_all(h, hardware, HARDWARE, TIMES); }

/* The group returns its counts in the order of opening, which is that of the bits. */
static int read_software(struct fdr_counter_handle *h, uint64_t *value)
{
    uint64_t answer[1 + SOFTWARE];
    uint32_t first = (uint32_t)__builtin_ctz(h->wanted), n = 0;
    long got = fdri_system_read(h->fd[first], answer, sizeof answer);
    if (got < 0) return (int)got;
    if (got < (long)sizeof *answer || (uint64_t)got < 8 * (1 + answer[0])) return -EIO;
    for (uint32_t i = first; i < SOFTWARE; i++)
        if (h->wanted >> i & 1) value[i] = n < answer[0] ? answer[1 + n++] : 0;
    return 0;
}

/* The count that a multiplexed event would have reached if it had always run. The share of time varies, so the result
 * is kept from going back. */
static uint64_t scaled(const uint64_t answer[3], uint64_t before)
{
    uint64_t enabled = answer[1], running = answer[2], count = answer[0];
    if (!running) return before;
    if (running < enabled) count = (uint64_t)((unsigned __int128)count * enabled / running);
    return count > before ? count : before;
}

static int read_hardware(struct fdr_counter_handle *h, uint64_t *value)
{
    for (uint32_t i = 0; i < HARDWARE; i++) {
        uint64_t answer[3];
        if (!(h->wanted >> i & 1)) continue;
        if (fdri_counters_closed(h, i)) return -EBADF; /* each: the program may close some */
        long got = fdri_system_read(h->fd[i], answer, sizeof answer);
        if (got != sizeof answer) return got < 0 ? (int)got : -EIO;
        value[i] = h->state[i][0] = scaled(answer, h->state[i][0]);
    }
    return 0;
}

/* ---- does it count? ---- */

static void explain(char *why, size_t bytes, const struct event *e, const char *name, int error)
{
    int paranoid = fdri_counters_paranoid();
    const char *hint = "";
    if (error == -ENOENT || error == -EOPNOTSUPP || error == -ENODEV)
        hint = e->type == PERF_TYPE_SOFTWARE ? "; this kernel has no such event"
                                             : "; this machine shows no such hardware counter";
    if (error == -ENOSYS) hint = "; perf is not in this kernel, or filtered";
    if (paranoid == -100) paranoid = 0;
    if (error == -EACCES || error == -EPERM)
        snprintf(
            why, bytes,
            "perf_event_open(%s): %s; perf_event_paranoid is %d and CAP_PERFMON is missing, or the call is filtered",
            name, strerror(-error), paranoid);
    else snprintf(why, bytes, "perf_event_open(%s): %s%s", name, strerror(-error), hint);
}

/* Makes the counted event happen. */
static void provoke(uint32_t which)
{
    if (which == PAGE_FAULTS || which == MINOR_FAULTS) {
        size_t bytes = 4 * (size_t)sysconf(_SC_PAGESIZE);
        volatile char *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (p == MAP_FAILED) return;
        for (size_t i = 0; i < bytes; i += bytes / 4) p[i] = 1;
        munmap((void *)p, bytes);
    } else if (which == CONTEXT_SWITCHES) {
        struct timespec a_moment = {0, 50000};
        nanosleep(&a_moment, NULL);
    } else {
        uint64_t until = fdri_clock_ns(CLOCK_MONOTONIC) + 20000;
        while (fdri_clock_ns(CLOCK_MONOTONIC) < until) {}
    }
}

/* False: the event cannot be caused at will, so opening has to suffice. */
static bool provable(uint32_t which) { return which != MAJOR_FAULTS && which != MIGRATIONS; }

static int probe_software(uint32_t which, char *why, size_t bytes)
{
    uint64_t answer[2] = {0, 0};
    int fd = perf_open(&software[which], 0, -1, GROUP, false);
    if (fd < 0) {
        explain(why, bytes, &software[which], software_counters[which].name, fd);
        return fd;
    }
    provoke(which);
    ssize_t got = read(fd, answer, sizeof answer);
    close(fd);
    if (got == sizeof answer && (answer[1] || !provable(which))) return 0;
    snprintf(why, bytes, "perf_event_open(%s) succeeds, but the count stays 0", software_counters[which].name);
    return -ENODATA;
}

static int probe_hardware(uint32_t which, char *why, size_t bytes)
{
    uint64_t answer[3] = {0, 0, 0};
    int fd = perf_open(&hardware[which], 0, -1, TIMES, false);
    if (fd < 0) {
        explain(why, bytes, &hardware[which], hardware_counters[which].name, fd);
        return fd;
    }
    provoke(TASK_CLOCK);
    ssize_t got = read(fd, answer, sizeof answer);
    close(fd);
    if (got == sizeof answer && answer[2]) return 0;
    snprintf(why, bytes, "perf_event_open(%s) succeeds, but the counter never runs", hardware_counters[which].name);
    return -ENODATA;
}

const struct fdr_counter_source fdri_counters_source_perf = {
    .size = sizeof(struct fdr_counter_source),
    .name = "perf",
    .scope = FDR_COUNTER_THREAD,
    .counter = software_counters,
    .count = SOFTWARE,
    .probe = probe_software,
    .descriptors = descriptors,
    .open = open_software,
    .read = read_software,
    .close = perf_close,
};
const struct fdr_counter_source fdri_counters_source_hardware = {
    .size = sizeof(struct fdr_counter_source),
    .name = "hw",
    .scope = FDR_COUNTER_THREAD,
    .counter = hardware_counters,
    .count = HARDWARE,
    .probe = probe_hardware,
    .descriptors = descriptors,
    .open = open_hardware,
    .read = read_hardware,
    .close = perf_close,
};
