/* SPDX-License-Identifier: MIT */
/* Files and directories that are held open for as long as a recording lasts. Their numbers are the program's, which may
 * close them and open others under these (base/fd/descriptor.h): each is known by its device and inode. Made, looked at
 * and given back by calls that every filter of docs/CRASH.md lets pass, so by no ioctl. */
#ifndef FDRI_BASE_FD_KEPT_OPEN_H
#define FDRI_BASE_FD_KEPT_OPEN_H
#include <stdbool.h>
#include <stdint.h>

#include "base/system/syscall.h"

struct fdri_fd_kept {
    int fd; /* -1: none */
    uint64_t dev, ino;
    bool path; /* O_PATH: one of the program's that is open to be read is another one */
};
#define FDRI_FD_KEPT_NONE ((struct fdri_fd_kept){-1, 0, 0, false})
/* fd, out of the way of programs that count on small numbers, or -1. Closed where it cannot be told apart. */
struct fdri_fd_kept fdri_fd_keep(int fd);
void fdri_fd_release(struct fdri_fd_kept *held); /* closes it, if it is there still */
/* Is fd what was held? Async-signal-safe, as the next two. */
static inline bool fdri_fd_is_kept(int fd, const struct fdri_fd_kept *held)
{
    struct stat st;
    return fd >= 0 && fdri_system_fstat(fd, &st) == 0 && st.st_dev == held->dev && st.st_ino == held->ino;
}
/* Where the file `path` of the directory that is held is reached, whatever the program's root is by now, and whoever it
 * is: by the descriptor returned and *name. AT_FDCWD and the whole path where the program closed the descriptor, or the
 * directory is removed: another one may have its name. */
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
