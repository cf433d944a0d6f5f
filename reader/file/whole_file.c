/* SPDX-License-Identifier: MIT */
/* Writes a file under a temporary name and renames it to its final name when it is whole. */
#include "base/clock.h"
#include "base/system/syscall.h"
#include "reader/file/whole_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { NUMBER_BYTES = 32, NAME_BYTES = 255 };

int fdri_file_whole_begin(struct fdri_file_whole *n, const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    size_t keep = strlen(name) + NUMBER_BYTES < NAME_BYTES ? strlen(path)
                                                           : (size_t)(name - path) + NAME_BYTES - NUMBER_BYTES;
    size_t bytes = keep + NUMBER_BYTES;
    /* O_EXCL and the time in the name: no other writer and no existing file has this name */
    unsigned long long unique = fdri_clock_ns(CLOCK_REALTIME);
    n->fd = -1;
    n->part = malloc(bytes);
    if (!n->part) return -ENOMEM;
    snprintf(n->part, bytes, "%.*s.%llu.part", (int)keep, path, unique);
    n->fd = open(n->part, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (n->fd >= 0) return 0;
    int e = errno;
    free(n->part);
    n->part = NULL;
    return -e;
}

int fdri_file_whole_end(struct fdri_file_whole *n, const char *path, int error, bool replace)
{
    int e = error;
    if (close(n->fd) && !e) e = -errno;
    if (!e && replace && rename(n->part, path)) e = -errno;
    if (!e && !replace) e = fdri_system_rename_new(AT_FDCWD, n->part, AT_FDCWD, path);
    if (e) unlink(n->part);
    free(n->part);
    n->part = NULL;
    return e;
}
