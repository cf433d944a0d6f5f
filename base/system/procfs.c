/* SPDX-License-Identifier: MIT */
/* Reading files of the kernel through descriptors above 2. */
#define _GNU_SOURCE
#include "base/system/procfs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd/open_high.h"

size_t fdri_system_read_text(const char *path, char *text, size_t bytes)
{
    int fd = fdri_fd_open(AT_FDCWD, path, O_RDONLY, 0);
    if (fd < 0) errno = -fd;
    ssize_t n = fd < 0 ? 0 : read(fd, text, bytes - 1);
    if (fd >= 0) close(fd);
    text[n > 0 ? n : 0] = 0;
    return n > 0 ? (size_t)n : 0;
}

size_t fdri_system_read_task(uint32_t tid, const char *file, char *text, size_t bytes)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/self/task/%u/%s", tid, file);
    return fdri_system_read_text(path, text, bytes);
}

bool fdri_system_read_memory(uint32_t pid, uint64_t address, void *to, size_t bytes)
{
    char path[48] = "/proc/thread-self/mem"; /* the first thread may have ended */
    if (pid) snprintf(path, sizeof path, "/proc/%u/mem", pid);
    int fd = fdri_fd_open(AT_FDCWD, path, O_RDONLY, 0);
    ssize_t n = fd < 0 ? -1 : pread(fd, to, bytes, (off_t)address);
    if (fd >= 0) close(fd);
    return n == (ssize_t)bytes;
}

DIR *fdri_system_open_folder(const char *path)
{
    int fd = fdri_fd_open(AT_FDCWD, path, O_RDONLY | O_DIRECTORY, 0);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    int e = fd < 0 ? -fd : errno;
    if (!d && fd >= 0) close(fd);
    if (!d) errno = e;
    return d;
}

uint64_t fdri_system_stat_start_time(const char *stat)
{
    const char *p = strrchr(stat, ')'); /* field 2 may contain any character; field 22 is 20 words behind it */
    for (int i = 0; p && i < 20; i++) p = strchr(p + 1, ' ');
    return p ? strtoull(p + 1, NULL, 10) : 0;
}
