/* SPDX-License-Identifier: MIT */
/* What a crash will need open, opened while there is time: a file without a name in FDR_DIR, which leaves nothing
 * behind when it is not used. */
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
    if (fdri_view.rank >= 0) snprintf(rank, sizeof rank, ".r%d", fdri_view.rank);
    snprintf(fdri_crash.stem, sizeof fdri_crash.stem, "%s.%s.%d%s.", fdri_view.name, host, fdri_view.pid, rank);
}

void fdri_bundle_open(void)
{
    make_stem();
    fdri_crash.file = fdri_hold(fdri_open(AT_FDCWD, fdri_view.dir, O_TMPFILE | O_RDWR, 0600));
    for (int i = 0; i < FDRI_CRASH_SPARE; i++)
        fdri_crash.spare[i] = fdri_hold(fcntl(fdri_view.at_dir.fd, F_DUPFD_CLOEXEC, fdri_view.at_dir.fd));
    snprintf(fdri_crash.live_dir, sizeof fdri_crash.live_dir, "%s", fdri_view.live_path);
    char *slash = strrchr(fdri_crash.live_dir, '/');
    if (slash) slash[1] = 0;
}

void fdri_bundle_close(void)
{
    fdri_let_go(&fdri_crash.file);
    for (int i = 0; i < FDRI_CRASH_SPARE; i++) fdri_let_go(&fdri_crash.spare[i]);
}
