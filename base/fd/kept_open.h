/* SPDX-License-Identifier: MIT */
/* Files and directories that are held open for as long as a recording lasts. Their numbers are the program's, which may
 * close them and open others under these (base/fd/descriptor.h): each is known by its device and inode. Made, looked at
 * and given back by calls that every filter of docs/CRASH.md lets pass, so by no ioctl. */
#ifndef FDR_BASE_FD_KEPT_OPEN_H
#define FDR_BASE_FD_KEPT_OPEN_H
#include <stdbool.h>
#include <stdint.h>

#include "base/system/syscall.h"

struct fdri_held {
    int fd; /* -1: none */
    uint64_t dev, ino;
    bool path; /* O_PATH: one of the program's that is open to be read is another one */
};
#define FDRI_HOLDS_NONE ((struct fdri_held){-1, 0, 0, false})
/* fd, out of the way of programs that count on small numbers, or -1. Closed where it cannot be told apart. */
struct fdri_held fdri_hold(int fd);
void fdri_let_go(struct fdri_held *held); /* closes it, if it is there still */
/* Is fd what was held? Async-signal-safe, as the next two. */
static inline bool fdri_is_held(int fd, const struct fdri_held *held)
{
    struct stat st;
    return fd >= 0 && fdr_raw_fstat(fd, &st) == 0 && st.st_dev == held->dev && st.st_ino == held->ino;
}
/* Where the file `path` of the directory that is held is reached, whatever the program's root is by now, and whoever it
 * is: by the descriptor returned and *name. AT_FDCWD and the whole path where the program closed the descriptor, or the
 * directory is removed: another one may have its name. */
static inline int fdri_held_at(const struct fdri_held *directory, const char *path, const char **name)
{
    struct stat st;
    int fd = directory->fd;
    *name = path;
    if (fd < 0 || fdr_raw_fstat(fd, &st) || st.st_dev != directory->dev || st.st_ino != directory->ino || !st.st_nlink)
        return AT_FDCWD;
    for (const char *p = path; *p; p++)
        if (*p == '/') *name = p + 1;
    return fd;
}
#endif
