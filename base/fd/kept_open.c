/* SPDX-License-Identifier: MIT */
#include "base/fd/kept_open.h"

#include "base/fd/open_high.h"

static bool is_path(int fd) { return fcntl(fd, F_GETFL) & O_PATH; }

struct fdri_held fdri_hold(int fd)
{
    int up = fdri_high(fd);
    struct stat st;
    if (up < 0) return FDRI_HOLDS_NONE;
    if (fstat(up, &st) == 0) return (struct fdri_held){up, st.st_dev, st.st_ino, is_path(up)};
    close(up);
    return FDRI_HOLDS_NONE;
}

void fdri_let_go(struct fdri_held *held)
{
    if (fdri_is_held(held->fd, held) && is_path(held->fd) == held->path) close(held->fd);
    *held = FDRI_HOLDS_NONE;
}
