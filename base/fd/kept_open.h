/* SPDX-License-Identifier: MIT */
/* Files and directories that stay open as long as a recording lasts. The program may close their descriptors and open
 * other files under the same numbers (base/fd/descriptor.h), so each is recognised by device and inode. These functions
 * use only system calls that every filter of docs/CRASH.md allows; therefore no ioctl. */
#ifndef FDRI_BASE_FD_KEPT_OPEN_H
#define FDRI_BASE_FD_KEPT_OPEN_H
#include <stdbool.h>
#include <stdint.h>

#include "base/system/syscall.h"

struct fdri_fd_kept {
    int fd; /* -1: none */
    uint64_t dev, ino;
    bool path; /* opened with O_PATH; a descriptor of the same file without it is the program's */
};
#define FDRI_FD_KEPT_NONE ((struct fdri_fd_kept){-1, 0, 0, false})
/* Keeps fd open under a number of 100 or more if possible, because some programs count on small numbers. If that or
 * fstat fails, fd is closed and the result is FDRI_FD_KEPT_NONE. */
struct fdri_fd_kept fdri_fd_keep(int fd);
void fdri_fd_release(struct fdri_fd_kept *held); /* closes the descriptor if it still is the kept file */
/* True if fd is the kept file. Async-signal-safe, like the next one. */
static inline bool fdri_fd_is_kept(int fd, const struct fdri_fd_kept *held)
{
    struct stat st;
    return fd >= 0 && fdri_system_fstat(fd, &st) == 0 && st.st_dev == held->dev && st.st_ino == held->ino;
}
/* How to reach the file `path` in the kept directory, even if the program has changed its root or user since. The
 * result is the directory's descriptor, and *name the last part of the path. If the program has closed the descriptor,
 * or the directory was removed, another directory may have its name. Then the result is AT_FDCWD, and *name the whole
 * path. */
static inline int fdri_fd_kept_at(const struct fdri_fd_kept *directory, const char *path, const char **name)
{
    struct stat st;
    int fd = directory->fd;
    *name = path;
    if (fd < 0 || fdri_system_fstat(fd, &st) || st.st_dev != directory->dev || st.st_ino != directory->ino ||
        !st.st_nlink)
        return AT_FDCWD;
    for (const char *p = path; *p; p++)
        if (*p == '/') *name = p + 1;
    return fd;
}
#endif
