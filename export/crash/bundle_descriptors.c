/* SPDX-License-Identifier: MIT */
/* Descriptors for a crash, opened at start: an unnamed file in FDR_DIR, which leaves nothing behind if unused, and
 * spare ones. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fd/kept_open.h"
#include "base/fd/open_high.h"
#include "export/crash/crash_path.h"
#include "export/snapshot/snapshot.h"

static void make_stem(void)
{
    char host[64] = "host", rank[16] = "";
    gethostname(host, sizeof host - 1);
    if (fdri_snapshot_view.rank >= 0) snprintf(rank, sizeof rank, ".r%d", fdri_snapshot_view.rank);
    snprintf(fdri_crash.stem, sizeof fdri_crash.stem, "%s.%s.%d%s.", fdri_snapshot_view.name, host,
             fdri_snapshot_view.pid, rank);
}

void fdri_crash_bundle_open(void)
{
    make_stem();
    fdri_crash.file = fdri_fd_keep(fdri_fd_open(AT_FDCWD, fdri_snapshot_view.dir, O_TMPFILE | O_RDWR, 0600));
    for (int i = 0; i < FDRI_CRASH_SPARE; i++)
        fdri_crash.spare[i] = fdri_fd_keep(
            fcntl(fdri_snapshot_view.kept_dir.fd, F_DUPFD_CLOEXEC, fdri_snapshot_view.kept_dir.fd));
    snprintf(fdri_crash.live_dir, sizeof fdri_crash.live_dir, "%s", fdri_snapshot_view.live_path);
    char *slash = strrchr(fdri_crash.live_dir, '/');
    if (slash) slash[1] = 0;
}

void fdri_crash_bundle_close(void)
{
    fdri_fd_release(&fdri_crash.file);
    for (int i = 0; i < FDRI_CRASH_SPARE; i++) fdri_fd_release(&fdri_crash.spare[i]);
}
