/* SPDX-License-Identifier: MIT */
/* Descriptors 0, 1 and 2 are the program's also where it has closed them, as daemons do: parts of it go on to write
 * messages there, which would lie in our files. So whatever we open has another number from its first moment on: those
 * of the three that are closed are taken meanwhile by descriptors that can be neither read nor written, so that the
 * program's calls fail as they would have. */
#ifndef FDR_BASE_FD_OPEN_HIGH_H
#define FDR_BASE_FD_OPEN_HIGH_H
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct perf_event_attr;
enum { FDRI_LOW = 3 };
struct fdri_low {
    bool ours[FDRI_LOW], entered;
    uint64_t dev[FDRI_LOW], ino[FDRI_LOW];
};
/* What is opened in between has a number of 3 or more. Any thread; not for long: others of ours wait. */
void fdri_low_fill(struct fdri_low *low);
void fdri_low_clear(struct fdri_low *low);
/* As fdri_define_fork. Waits for a tenth of a second at most. */
void fdri_low_fork(int phase);
/* A descriptor of 3 or more, close-on-exec, or -errno. What it makes is new: O_CREAT comes with O_EXCL. */
int fdri_open(int dir, const char *path, int flags, int mode);
/* The same in a process that is dying, where nobody waits for anybody: async-signal-safe, by calls that docs/CRASH.md
 * lists. */
int fdri_open_dying(int dir, const char *path, int flags, int mode);
/* As perf_event_open of a thread on any processor does: -1 with errno. */
int fdri_perf_open(struct perf_event_attr *event, int tid, int group);
/* pthread_setname_np of another thread writes to a file. */
void fdri_name_thread(pthread_t thread, const char *name);
/* fd, or, out of the way of programs that count on small numbers, another one for the same: 100 or more where the limit
 * allows, 3 or more else. -1 where there is none, and fd is closed. */
int fdri_high(int fd);
#endif
