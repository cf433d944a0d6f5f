/* SPDX-License-Identifier: MIT */
/* Room that running processes of a user were promised for a bundle. Each has it in the superblock of its live file; a
 * lock of the live directory makes looking and promising one step. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/fd/open_high.h"
#include "base/system/syscall.h"
#include "retention/retention.h"

enum { TRIES = 20, PAUSE_NS = 2000000 };

bool fdri_retention_lock(int dir)
{
    for (int i = 0; i < TRIES; i++) {
        if (flock(dir, LOCK_EX | LOCK_NB) == 0) return true;
        if (errno != EWOULDBLOCK && errno != EINTR) return false;
        fdri_system_sleep(PAUSE_NS);
    }
    return false;
}

void fdri_retention_unlock(int dir) { flock(dir, LOCK_UN); }

/* A left file holds no promise. Its number may be that of another process by now: then the promise counts until that
 * one ends, which errs on the safe side. */
static bool runs(uint32_t pid) { return kill((pid_t)pid, 0) == 0 || errno != ESRCH; }

uint64_t fdri_retention_promised(int live_dir, uint64_t device)
{
    struct fdri_arena_superblock s;
    struct fdri_retention_bundle b;
    uint64_t sum = 0;
    int own = fdri_fd_open(live_dir, ".", O_RDONLY | O_DIRECTORY, 0);
    DIR *d = own >= 0 ? fdopendir(own) : NULL;
    if (!d && own >= 0) fdri_system_close(own);
    for (struct dirent *e; d && (e = readdir(d));) {
        const char *end = strstr(e->d_name, ".live.fdr");
        if (!end || end[9] || !fdri_retention_read(live_dir, e->d_name, &s, &b, NULL)) continue;
        if (s.bundle_device == device && s.pid != (uint32_t)getpid() && runs(s.pid)) sum += s.bundle_bytes;
    }
    if (d) closedir(d);
    return sum;
}
