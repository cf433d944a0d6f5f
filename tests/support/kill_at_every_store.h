/* SPDX-License-Identifier: MIT */
/* Shows the effect of SIGKILL at every store, for P7. A thread of a child runs one instruction at a time. After each
 * change of its arena the test inspects the file that a kill at this moment would leave. */
#ifndef FDRI_TESTS_KILLED_H
#define FDRI_TESTS_KILLED_H

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/ptrace.h>

#include "tests/support/deaths.h"

struct killed_run {
    uint64_t instructions, changes;
    bool traced; /* false: ptrace does not work here */
};

/* Steps thread `tid` of a child until it ends, or stops for another reason than a step. The thread must have asked to
 * be traced, and stopped itself. `look` gets the live file in directory `live` after each change. */
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
