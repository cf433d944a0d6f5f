/* SPDX-License-Identifier: MIT */
/* Recordings of running processes: takes a copy and reads it like any file. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <fdr/reader.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "reader/file/file.h"
#include "reader/file/whole_file.h"
#include "reader/live/find_process.h"

static int copy_of(uint32_t pid, int fd, const char *reason, enum fdri_live_external_mode mode, char *message,
                   size_t message_bytes)
{
    struct fdri_live_process p;
    if (!fdri_live_process_find(pid, &p, message, message_bytes)) return -ESRCH;
    int e = fdri_live_external_copy(&p, fd, reason, mode);
    fdri_live_process_close(&p);
    if (e)
        snprintf(message, message_bytes, "process %u: %s", pid,
                 e == -ESRCH || e == -ESTALE ? "ended, or ended its recording, while it was copied" : strerror(-e));
    return e;
}

enum fdr_verdict fdr_process_open(uint32_t pid, bool events, struct fdr_file **out, char *message, size_t message_bytes)
{
    char none[1];
    *out = NULL;
    if (!message || !message_bytes) message = none, message_bytes = sizeof none;
    int fd = memfd_create("fdr-copy", MFD_CLOEXEC);
    if (fd < 0) {
        snprintf(message, message_bytes, "no memory for a copy: %s", strerror(errno));
        return FDR_UNREADABLE;
    }
    enum fdr_verdict verdict = FDR_UNREADABLE;
    if (!copy_of(pid, fd, "live", events ? FDRI_LIVE_EXTERNAL_LOOK : FDRI_LIVE_EXTERNAL_HEADERS, message,
                 message_bytes))
        verdict = fdri_file_open_fd(fd, !events, out, message, message_bytes);
    close(fd);
    return verdict;
}

int fdr_process_snapshot(uint32_t pid, const char *path, const char *reason, char *message, size_t message_bytes)
{
    char none[1];
    struct fdri_file_whole n;
    if (!message || !message_bytes) message = none, message_bytes = sizeof none;
    message[0] = 0;
    int e = fdri_file_whole_begin(&n, path);
    if (!e) {
        e = copy_of(pid, n.fd, reason && *reason ? reason : "outside", FDRI_LIVE_EXTERNAL_FILE, message, message_bytes);
        /* not the process's fault: the message names the path */
        if (e == -ENOSPC || e == -EDQUOT || e == -EFBIG) message[0] = 0;
        e = fdri_file_whole_end(&n, path, e, false);
    }
    if (e && !message[0]) snprintf(message, message_bytes, "%s: %s", path, strerror(-e));
    return e;
}
