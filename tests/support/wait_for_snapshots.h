/* SPDX-License-Identifier: MIT */
/* Waits for snapshots that the recorder or a command writes into the test's directory, counts them, and finds the
 * newest. */
#ifndef FDRI_TESTS_SNAPSHOTS_SEEN_H
#define FDRI_TESTS_SNAPSHOTS_SEEN_H
#include <dirent.h>
#include <errno.h>
#include <fdr/fdr.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tests/support/observed_process.h"

static char directory[256];

static inline void sleep_ms(unsigned ms)
{
    struct timespec t = {ms / 1000, (long)(ms % 1000) * 1000000};
    while (nanosleep(&t, &t) && errno == EINTR) {}
}

/* Counts the snapshots in the directory whose reason is a trigger, and returns the newest one's path. */
static inline unsigned snapshots(char *newest, size_t bytes)
{
    unsigned n = 0, highest = 0, number;
    DIR *d = opendir(directory);
    for (struct dirent *e; d && (e = readdir(d));) {
        const char *end = strstr(e->d_name, ".fdr");
        if (!end || strcmp(end, ".fdr") || strstr(e->d_name, ".live.")) continue;
        n++;
        while (end > e->d_name && end[-1] != '.') end--;
        number = (unsigned)strtoul(end, NULL, 10);
        if (number < highest) continue;
        highest = number;
        if (newest) snprintf(newest, bytes, "%s/%s", directory, e->d_name);
    }
    if (d) closedir(d);
    return n;
}

static inline void forget_snapshots(void)
{
    char path[600];
    while (snapshots(path, sizeof path)) unlink(path);
}

/* Waits up to a minute, because the machine may be busy. */
static inline bool comes(unsigned count)
{
    for (int i = 0; i < 6000; i++) {
        if (snapshots(NULL, 0) >= count) return true;
        sleep_ms(10);
    }
    return false;
}

/* Setup and teardown of a group of such tests. */
static inline int snapshots_enter(void **state)
{
    (void)state;
    test_directory(directory, sizeof directory);
    return 0;
}
/* Starts a recording into the directory, without signal handlers. A name, buffer or signal in `c` is used instead of
 * the default here. */
static inline void snapshots_start(struct fdr_config c)
{
    c.size = sizeof c;
    c.ignore_environment = 1;
    c.live_dir = c.dir = directory;
    if (!c.signal) c.signal = "none";
    c.crash = "0";
    if (!c.name) c.name = "t";
    if (!c.buffer) c.buffer = "4M";
    fdr_finalize();     /* of the test before */
    forget_snapshots(); /* snapshots that came after that test's last look */
    assert_int_equal(fdr_init(&c), 0);
}
static inline int snapshots_leave(void **state)
{
    (void)state;
    fdr_finalize();
    remove_directory(directory);
    return 0;
}
#endif
