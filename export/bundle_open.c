/* SPDX-License-Identifier: MIT */
/* What a crash will need open, opened while there is time: FDR_DIR, and in it a file without a name, which leaves
 * nothing behind when it is not used. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "export/crash.h"
#include "export/export.h"

static struct fdri_held hold(int fd)
{
    struct stat st;
    struct fdri_held none = {-1, 0, 0};
    if (fd < 0) return none;
    if (fstat(fd, &st)) {
        close(fd);
        return none;
    }
    return (struct fdri_held){fd, st.st_dev, st.st_ino};
}

/* Out of the way of programs that count on small numbers. */
static int high(int fd)
{
    int up = fd >= 0 ? fcntl(fd, F_DUPFD_CLOEXEC, 100) : -1;
    if (up < 0) return fd;
    close(fd);
    return up;
}

static void make_stem(void)
{
    char host[64] = "host", rank[16] = "";
    gethostname(host, sizeof host - 1);
    if (fdri_view.rank >= 0) snprintf(rank, sizeof rank, ".r%d", fdri_view.rank);
    snprintf(fdri_crash.stem, sizeof fdri_crash.stem, "%s.%s.%d%s.", fdri_view.name, host, fdri_view.pid, rank);
}

void fdri_bundle_open(void)
{
    make_stem();
    fdri_crash.live = hold(fdri_view.live_fd);
    fdri_crash.dir = hold(high(open(fdri_view.dir, O_PATH | O_DIRECTORY | O_CLOEXEC)));
    fdri_crash.file = hold(high(open(fdri_view.dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600)));
    for (int i = 0; i < FDRI_CRASH_SPARE; i++)
        fdri_crash.spare[i] = hold(fcntl(fdri_crash.dir.fd, F_DUPFD_CLOEXEC, fdri_crash.dir.fd));
    snprintf(fdri_crash.live_dir, sizeof fdri_crash.live_dir, "%s", fdri_view.live_path);
    char *slash = strrchr(fdri_crash.live_dir, '/');
    if (slash) slash[1] = 0;
}

void fdri_bundle_close(void)
{
    struct stat st;
    struct fdri_held *held[2 + FDRI_CRASH_SPARE] = {&fdri_crash.dir, &fdri_crash.file};
    for (int i = 0; i < FDRI_CRASH_SPARE; i++) held[2 + i] = &fdri_crash.spare[i];
    for (int i = 0; i < 2 + FDRI_CRASH_SPARE; i++) {
        int fd = held[i]->fd;
        if (fd >= 0 && fstat(fd, &st) == 0 && st.st_dev == held[i]->dev && st.st_ino == held[i]->ino) close(fd);
        held[i]->fd = -1;
    }
    fdri_crash.live.fd = -1;
}
