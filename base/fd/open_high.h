/* SPDX-License-Identifier: MIT */
/* File descriptors of fdr in another program's process: opened above 2, counted, recognised by device and inode. Files:
 * open_high (this header), descriptor.h (budget, identity), kept_open.h (open for a whole recording). Neighbours:
 * recorder/, sampler/ and export/ open files through this room; below: base/system/.
 *
 * Descriptors 0, 1 and 2 belong to the program even if it has closed them, as daemons do. Parts of it still write
 * messages there, and would write them into fdr's files. So a file of fdr must never have such a number, not for a
 * moment. While fdr opens a file, placeholders occupy those of the three that are closed. A placeholder can be neither
 * read nor written, so the program's calls fail as they would have failed without fdr. */
#ifndef FDRI_BASE_FD_OPEN_HIGH_H
#define FDRI_BASE_FD_OPEN_HIGH_H
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct perf_event_attr;
enum { FDRI_FD_LOW_COUNT = 3 };
struct fdri_fd_placeholders {
    bool ours[FDRI_FD_LOW_COUNT], entered;
    uint64_t dev[FDRI_FD_LOW_COUNT], ino[FDRI_FD_LOW_COUNT];
};
/* Between these two calls a newly opened file gets a number of 3 or more. Any thread. The time between must be short:
 * other threads of fdr wait. */
void fdri_fd_fill_low(struct fdri_fd_placeholders *low);
void fdri_fd_clear_low(struct fdri_fd_placeholders *low);
/* Keeps placeholders out of forked children; phases as of fdri_names_define_fork. Waits at most 0.1 s. */
void fdri_fd_low_fork(int phase);
/* Returns a descriptor of 3 or more, close-on-exec, or -errno. O_CREAT requires O_EXCL, so a created file is new. */
int fdri_fd_open(int dir, const char *path, int flags, int mode);
/* The same in a dying process: async-signal-safe, waits for no other thread, and uses only the system calls that
 * docs/CRASH.md lists. */
int fdri_fd_open_in_crash(int dir, const char *path, int flags, int mode);
/* perf_event_open for a thread on any processor. -1 and errno on failure. */
int fdri_fd_perf_open(struct perf_event_attr *event, int tid, int group);
/* pthread_setname_np opens a file to name another thread, so it needs the placeholders, too. */
void fdri_fd_name_thread(pthread_t thread, const char *name);
/* Moves fd out of the small numbers on which some programs count: to 100 or more if the limit allows, otherwise to 3 or
 * more. Returns the new descriptor; -1 if there is none, and fd is closed in both cases. */
int fdri_fd_move_high(int fd);
#endif
