/* SPDX-License-Identifier: MIT */
/* SIGKILL at every store: a thread of a child runs one instruction at a time; whenever its arena has changed, what a
 * kill at this very moment would leave is looked at. Included by tests. */
#ifndef FDRI_TESTS_KILLED_H
#define FDRI_TESTS_KILLED_H

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/ptrace.h>

#include "tests/support/deaths.h"

struct killed_run {
    uint64_t instructions, changes;
    bool traced; /* false: no ptrace here */
};

/* Thread `tid` of a child asked to be traced and stopped itself. It goes on until it ends, or until it stops in another
 * way than by a step; `look` gets what the file in directory `live` is after each change. */
static inline struct killed_run killed_at_every_store(pid_t tid, const char *live,
                                                      void (*look)(const uint8_t *bytes, size_t count))
{
    struct killed_run run = {0};
    struct stat st;
    int status, fd;
    if (waitpid(tid, &status, __WALL) != tid || !WIFSTOPPED(status)) return run;
    if ((fd = open(death_file(live), O_RDONLY)) < 0 || fstat(fd, &st)) return run;
    size_t bytes = (size_t)st.st_size;
    const uint8_t *now = mmap(NULL, bytes, PROT_READ, MAP_SHARED, fd, 0);
    uint8_t *copy = aligned_alloc(64, bytes);
    close(fd);
    if (now == MAP_FAILED || !copy) return run;
    run.traced = true;
    memcpy(copy, now, bytes);
    while (ptrace(PTRACE_SINGLESTEP, tid, NULL, NULL) == 0 && waitpid(tid, &status, __WALL) == tid &&
           WIFSTOPPED(status)) {
        run.instructions++;
        if (WSTOPSIG(status) != SIGTRAP) break;
        if (!memcmp(copy, now, bytes)) continue;
        run.changes++;
        memcpy(copy, now, bytes);
        look(copy, bytes);
    }
    munmap((void *)(uintptr_t)now, bytes);
    free(copy);
    return run;
}
#endif
