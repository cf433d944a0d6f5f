/* SPDX-License-Identifier: MIT */
/* Energy of the machine's packages and memory, from the kernel's powercap files (RAPL). The values are of the whole
 * machine, not of the process. Since Linux 5.10 only root may read them. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd/open_high.h"
#include "base/system/syscall.h"
#include "sampler/counters/counter.h"

/* The zones: packages, and their parts. */
static const struct fdr_counter zones[] = {
    {"package-0", "uJ", FDR_METRIC_COUNTER, FDR_U64},   {"package-0-0", "uJ", FDR_METRIC_COUNTER, FDR_U64},
    {"package-0-1", "uJ", FDR_METRIC_COUNTER, FDR_U64}, {"package-0-2", "uJ", FDR_METRIC_COUNTER, FDR_U64},
    {"package-1", "uJ", FDR_METRIC_COUNTER, FDR_U64},   {"package-1-0", "uJ", FDR_METRIC_COUNTER, FDR_U64},
    {"package-1-1", "uJ", FDR_METRIC_COUNTER, FDR_U64}, {"package-1-2", "uJ", FDR_METRIC_COUNTER, FDR_U64},
    {"platform", "uJ", FDR_METRIC_COUNTER, FDR_U64},
};
static const char *const folders[] = {
    "intel-rapl:0",   "intel-rapl:0:0", "intel-rapl:0:1", "intel-rapl:0:2", "intel-rapl:1",
    "intel-rapl:1:0", "intel-rapl:1:1", "intel-rapl:1:2", "intel-rapl:2",
};
enum { ZONES = sizeof zones / sizeof *zones };

const char *fdri_counters_powercap_folder = "/sys/class/powercap";

static uint32_t descriptors(uint32_t wanted) { return (uint32_t)__builtin_popcount(wanted); }

static void path_of(char *path, size_t bytes, uint32_t zone, const char *file)
{
    snprintf(path, bytes, "%s/%s/%s", fdri_counters_powercap_folder, folders[zone], file);
}

static int open_zone(uint32_t zone, const char *file)
{
    char path[512];
    path_of(path, sizeof path, zone, file);
    return fdri_fd_open(AT_FDCWD, path, O_RDONLY, 0);
}

static int number(int fd, uint64_t *value)
{
    char text[32];
    int n = fdri_counters_proc_read(fd, text, sizeof text);
    if (n < 0) return n;
    *value = strtoull(text, NULL, 10);
    return 0;
}

static void close_zones(struct fdr_counter_handle *h)
{
    for (uint32_t i = 0; i < ZONES; i++) {
        if (h->fd[i] >= 0) fdri_system_close(h->fd[i]);
        h->fd[i] = -1;
    }
}

/* state[i]: the newest raw value, and the sum that wraps have added. */
static int open_zones(struct fdr_counter_handle *h)
{
    for (uint32_t i = 0; i < ZONES; i++) {
        if (!(h->wanted >> i & 1)) continue;
        int fd = open_zone(i, "energy_uj");
        if (fd < 0) {
            close_zones(h);
            return fd;
        }
        h->fd[i] = fd;
        h->state[i][0] = h->state[i][1] = 0;
    }
    return 0;
}

static int read_zones(struct fdr_counter_handle *h, uint64_t *value)
{
    for (uint32_t i = 0; i < ZONES; i++) {
        uint64_t raw;
        if (!(h->wanted >> i & 1)) continue;
        int e = number(h->fd[i], &raw);
        if (e) return e;
        if (raw < h->state[i][0]) { /* the counter wrapped */
            uint64_t range = 0;
            int fd = open_zone(i, "max_energy_range_uj");
            if (fd >= 0) {
                number(fd, &range);
                fdri_system_close(fd);
            }
            h->state[i][1] += range ? range : h->state[i][0];
        }
        h->state[i][0] = raw;
        value[i] = raw + h->state[i][1];
    }
    return 0;
}

static int probe_zone(uint32_t which, char *why, size_t bytes)
{
    uint64_t raw = 0;
    char path[512];
    int fd = open_zone(which, "energy_uj"), e = fd < 0 ? fd : number(fd, &raw);
    if (fd >= 0) close(fd);
    if (!e && !raw) e = -ENODATA;
    path_of(path, sizeof path, which, "energy_uj");
    if (e) snprintf(why, bytes, "%.120s: %s%s", path, strerror(-e), e == -EACCES ? "; only root may read it" : "");
    return e;
}

const struct fdr_counter_source fdri_counters_source_energy = {
    .size = sizeof(struct fdr_counter_source),
    .name = "energy",
    .counter = zones,
    .count = ZONES,
    .probe = probe_zone,
    .descriptors = descriptors,
    .open = open_zones,
    .read = read_zones,
    .close = close_zones,
};
