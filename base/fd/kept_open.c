/* SPDX-License-Identifier: MIT */
/* Keeping a descriptor, and closing it only if it still is the kept file. */
#include "base/fd/kept_open.h"

#include "base/fd/open_high.h"

static bool is_path(int fd) { return fcntl(fd, F_GETFL) & O_PATH; }

struct fdri_fd_kept fdri_fd_keep(int fd)
{
    int up = fdri_fd_move_high(fd);
    struct stat st;
    if (up < 0) return FDRI_FD_KEPT_NONE;
    if (fstat(up, &st) == 0) return (struct fdri_fd_kept){up, st.st_dev, st.st_ino, is_path(up)};
    close(up);
    return FDRI_FD_KEPT_NONE;
}

void fdri_fd_release(struct fdri_fd_kept *held)
{
    if (fdri_fd_is_kept(held->fd, held) && is_path(held->fd) == held->path) close(held->fd);
    *held = FDRI_FD_KEPT_NONE;
}
