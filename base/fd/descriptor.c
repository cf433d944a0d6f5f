/* SPDX-License-Identifier: MIT */
#include "base/fd/descriptor.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "base/atomic.h"

static uint32_t held;

bool fdri_descriptors_take(uint32_t count)
{
    struct rlimit limit;
    uint64_t most = getrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur / 4 : 0;
    if (fdr_add_relaxed(&held, count) + (uint64_t)count <= most) return true;
    fdr_sub_relaxed(&held, count);
    return false;
}

void fdri_descriptors_give(uint32_t count) { fdr_sub_relaxed(&held, count); }

uint64_t fdri_descriptor_event(int fd)
{
    int saved = errno;
    uint64_t id = 0;
    if (ioctl(fd, PERF_EVENT_IOC_ID, &id)) id = 0;
    errno = saved;
    return id;
}

struct fdri_mark fdri_descriptor_mark(int fd)
{
    int saved = errno;
    struct fdri_mark m = {0, 0, 0};
    struct stat st;
    if (fstat(fd, &st) == 0)
        m = (struct fdri_mark){(uint64_t)st.st_dev, (uint64_t)st.st_ino,
                               S_ISSOCK(st.st_mode) ? 0 : fdri_descriptor_event(fd)};
    errno = saved;
    return m;
}

bool fdri_descriptor_is(int fd, const struct fdri_mark *mark)
{
    if (mark->event) return fdri_descriptor_event(fd) == mark->event;
    int saved = errno;
    struct stat st;
    bool is = fstat(fd, &st) == 0 && (uint64_t)st.st_dev == mark->device && (uint64_t)st.st_ino == mark->file;
    errno = saved;
    return is;
}

uint32_t fdri_descriptors_held(void) { return fdr_load_relaxed(&held); }
