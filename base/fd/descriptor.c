/* SPDX-License-Identifier: MIT */
/* The budget of descriptors, and the identities of open files. All functions keep errno. Descriptors are looked at by
 * system calls of our own, as they are closed. Else ThreadSanitizer would take a number that another thread has got
 * since for the same file. */
#include "base/fd/descriptor.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/system/syscall.h"

static uint32_t held;

bool fdri_fd_budget_take(uint32_t count)
{
    struct rlimit limit;
    uint64_t most = getrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur / 4 : 0;
    if (fdri_atomic_add_relaxed(&held, count) + (uint64_t)count <= most) return true;
    fdri_atomic_sub_relaxed(&held, count);
    return false;
}

void fdri_fd_budget_give(uint32_t count) { fdri_atomic_sub_relaxed(&held, count); }

uint64_t fdri_fd_perf_id(int fd)
{
    int saved = errno;
    uint64_t id = 0;
    if (syscall(SYS_ioctl, fd, PERF_EVENT_IOC_ID, &id)) id = 0;
    errno = saved;
    return id;
}

struct fdri_fd_identity fdri_fd_identify(int fd)
{
    int saved = errno;
    struct fdri_fd_identity m = {0, 0, 0};
    struct stat st;
    if (fdri_system_fstat(fd, &st) == 0)
        m = (struct fdri_fd_identity){(uint64_t)st.st_dev, (uint64_t)st.st_ino,
                                      S_ISSOCK(st.st_mode) ? 0 : fdri_fd_perf_id(fd)};
    errno = saved;
    return m;
}

bool fdri_fd_is(int fd, const struct fdri_fd_identity *mark)
{
    if (mark->event) return fdri_fd_perf_id(fd) == mark->event;
    int saved = errno;
    struct stat st;
    bool is = fdri_system_fstat(fd, &st) == 0 && (uint64_t)st.st_dev == mark->device &&
              (uint64_t)st.st_ino == mark->file;
    errno = saved;
    return is;
}

uint32_t fdri_fd_budget_used(void) { return fdri_atomic_load_relaxed(&held); }
