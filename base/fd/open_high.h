/* SPDX-License-Identifier: MIT */
/* File descriptors of fdr in another program's process: opened above 2, counted, known again by device and inode.
 * Neighbours: recorder/, sampler/ and export/ open files through this room; below: base/system/.
 *
 * Descriptors 0, 1 and 2 are the program's also where it has closed them, as daemons do: parts of it go on to write
 * messages there, which would lie in our files. So whatever we open has another number from its first moment on: those
 * of the three that are closed are taken meanwhile by descriptors that can be neither read nor written, so that the
 * program's calls fail as they would have. */
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
/* What is opened in between has a number of 3 or more. Any thread; not for long: others of ours wait. */
void fdri_fd_fill_low(struct fdri_fd_placeholders *low);
void fdri_fd_clear_low(struct fdri_fd_placeholders *low);
/* As fdri_names_define_fork. Waits for a tenth of a second at most. */
void fdri_fd_low_fork(int phase);
/* A descriptor of 3 or more, close-on-exec, or -errno. What it makes is new: O_CREAT comes with O_EXCL. */
int fdri_fd_open(int dir, const char *path, int flags, int mode);
/* The same in a process that is dying, where nobody waits for anybody: async-signal-safe, by calls that docs/CRASH.md
 * lists. */
int fdri_fd_open_in_crash(int dir, const char *path, int flags, int mode);
/* As perf_event_open of a thread on any processor does: -1 with errno. */
int fdri_fd_perf_open(struct perf_event_attr *event, int tid, int group);
/* pthread_setname_np of another thread writes to a file. */
void fdri_fd_name_thread(pthread_t thread, const char *name);
/* fd, or, out of the way of programs that count on small numbers, another one for the same: 100 or more where the limit
 * allows, 3 or more else. -1 where there is none, and fd is closed. */
int fdri_fd_move_high(int fd);
#endif
