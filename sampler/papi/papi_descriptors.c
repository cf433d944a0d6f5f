/* SPDX-License-Identifier: MIT */
/* libfdr-papi: the descriptors that PAPI has open for a set. A program that closes all descriptors closes these, too,
 * and its next files get their numbers. PAPI would then read counts from a pipe of the program, and finally close it.
 *
 * PAPI does not tell these descriptors. They are among the perf events that were opened while the set was made. Two
 * properties exclude other events of that time. libfdr's are close-on-exec, and a group leader of another thread
 * accepts no member of this thread. */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "sampler/papi/papi.h"

static uint64_t number_of(int fd)
{
    uint64_t number = 0;
    return ioctl(fd, PERF_EVENT_IOC_ID, &number) ? 0 : number;
}

/* Opens an event of the calling thread that counts nothing, in the group of `leader` (-1: alone). */
static int open_none(int leader)
{
    struct perf_event_attr a = {.size = sizeof a,
                                .type = PERF_TYPE_SOFTWARE,
                                .config = PERF_COUNT_SW_DUMMY,
                                .disabled = leader < 0,
                                .exclude_kernel = 1,
                                .exclude_hv = 1};
    return (int)syscall(SYS_perf_event_open, &a, 0, -1, leader, PERF_FLAG_FD_CLOEXEC);
}

uint64_t fdri_papi_now(void)
{
    int fd = open_none(-1);
    uint64_t number = fd < 0 ? 0 : number_of(fd);
    if (fd >= 0) close(fd);
    return number;
}

static bool leads_here(int fd)
{
    int member = open_none(fd);
    if (member >= 0) close(member);
    return member >= 0;
}

int fdri_papi_hold(uint64_t since, struct fdri_papi_held *held, int count, int most)
{
    DIR *folder = since ? opendir("/proc/self/fd") : NULL;
    if (!folder) return count;
    for (struct dirent *e; count < most && (e = readdir(folder));) {
        int fd = atoi(e->d_name), flags = e->d_name[0] == '.' ? -1 : fcntl(fd, F_GETFD);
        uint64_t number = flags < 0 || flags & FD_CLOEXEC ? 0 : number_of(fd);
        if (number > since) held[count++] = (struct fdri_papi_held){fd, leads_here(fd), number};
    }
    closedir(folder);
    return count;
}

bool fdri_papi_lost(const struct fdri_papi_held *held, int count, bool reading)
{
    for (int i = 0; i < count; i++)
        if ((held[i].leads || !reading) && number_of(held[i].fd) != held[i].number) return true;
    return false;
}
