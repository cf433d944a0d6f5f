/* SPDX-License-Identifier: MIT */
/* Opening files above descriptor 2, with placeholders for the closed ones of 0, 1 and 2. */
#define _GNU_SOURCE
#include "base/fd/open_high.h"

#include <linux/perf_event.h>

#include "base/atomic.h"
#include "base/system/syscall.h"

/* ---- the lock: placeholders of another thread would look like the program's files, and vanish a moment later ---- */

static uint64_t holder; /* process << 32 | thread; 0: free */

static uint64_t caller_id(void)
{
    return (uint64_t)(uint32_t)fdri_system_getpid() << 32 | (uint32_t)fdri_system_gettid();
}

/* Takes the lock. False: this thread has it already, and runs a signal handler now. If the holder keeps it for 0.1 s,
 * it has ended there or hangs in a file system, and this thread takes the lock over. In a forked child a holder of the
 * parent process does not count. */
static bool enter(void)
{
    enum { TRIES = 1000, NAP_NS = 100000 };
    uint64_t me = caller_id(), now = fdri_atomic_load_relaxed(&holder);
    for (int i = 0; now != me && i < TRIES; i++) {
        if (now >> 32 != me >> 32 && fdri_atomic_cas_acq_rel_u64(&holder, &now, me)) return true; /* L:low */
        if (now && now >> 32 == me >> 32) fdri_system_sleep(NAP_NS);
        now = fdri_atomic_load_relaxed(&holder);
    }
    return now != me && fdri_atomic_cas_acq_rel_u64(&holder, &now, me); /* L:low */
}

static void leave(void)
{
    uint64_t me = caller_id();
    fdri_atomic_cas_acq_rel_u64(&holder, &me, 0); /* L:low - fails if a waiting thread took it over */
}

/* ---- placeholders ---- */

static void open_placeholders(struct fdri_fd_placeholders *low)
{
    struct stat st;
    *low = (struct fdri_fd_placeholders){.entered = false};
    for (int i = 0; i < FDRI_FD_LOW_COUNT; i++) {
        int fd = fdri_system_openat(AT_FDCWD, "/", O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
        if (fd < 0) return;
        if (fd >= FDRI_FD_LOW_COUNT || fdri_system_fstat(fd, &st)) {
            fdri_system_close(fd);
            return;
        }
        low->ours[fd] = true;
        low->dev[fd] = st.st_dev;
        low->ino[fd] = st.st_ino;
    }
}

/* Closes the placeholders, but not a file that the program has put there by dup2. */
static void close_placeholders(const struct fdri_fd_placeholders *low)
{
    struct stat st;
    for (int i = 0; i < FDRI_FD_LOW_COUNT; i++)
        if (low->ours[i] && fdri_system_fstat(i, &st) == 0 && st.st_dev == low->dev[i] && st.st_ino == low->ino[i])
            fdri_system_close(i);
}

/* The usual case: the program has all three open. */
static bool all_open(void)
{
    for (int i = 0; i < FDRI_FD_LOW_COUNT; i++)
        if (fcntl(i, F_GETFD) < 0) return false;
    return true;
}

/* If the program has all three open, no thread waits for another, except during a fork. The program may close one of
 * them right after the test, or a placeholder may go. So the opening functions check the number that they get. */
void fdri_fd_fill_low(struct fdri_fd_placeholders *low)
{
    int saved = errno;
    *low = (struct fdri_fd_placeholders){.entered = false};
    if (fdri_atomic_load_relaxed(&holder) || !all_open()) {
        bool entered = enter();
        if (!all_open()) open_placeholders(low);
        low->entered = entered;
    }
    errno = saved;
}

void fdri_fd_clear_low(struct fdri_fd_placeholders *low)
{
    int saved = errno;
    close_placeholders(low);
    if (low->entered) leave();
    errno = saved;
}

/* A forked child would inherit the placeholders of other threads. So fdr takes the lock during a fork. */
static bool forking; /* written under all locks of fdr, which the forking thread holds */

void fdri_fd_low_fork(int phase)
{
    if (phase == 0) forking = enter();
    else if (phase == 1 && forking) leave();
    else if (phase == 2 && forking) fdri_atomic_store_relaxed(&holder, 0ull);
    else if (phase == 3) fdri_atomic_store_relaxed(&holder, 0ull);
}

/* ---- opening ---- */

int fdri_fd_move_high(int fd)
{
    enum { HIGH = 100 };
    if (fd < 0 || fd >= HIGH) return fd;
    int up = fcntl(fd, F_DUPFD_CLOEXEC, HIGH);
    if (up < 0 && fd >= FDRI_FD_LOW_COUNT) return fd;
    if (up < 0) up = fcntl(fd, F_DUPFD_CLOEXEC, FDRI_FD_LOW_COUNT);
    fdri_system_close(fd);
    return up;
}

/* Corrects a low number: no placeholder was available, or the program closed one of the three meanwhile. */
static int move_if_low(int fd) { return fd < 0 || fd >= FDRI_FD_LOW_COUNT ? fd : fdri_fd_move_high(fd); }

static int open_once(int dir, const char *path, int flags, int mode)
{
    struct fdri_fd_placeholders low;
    fdri_fd_fill_low(&low);
    int fd = fdri_system_openat(dir, path, flags | O_CLOEXEC, mode);
    fdri_fd_clear_low(&low);
    return fd;
}

/* Another part of the process, such as the C library, may have held one of the three for a moment. A file created under
 * such a number may contain foreign bytes, so it is removed and created again. */
int fdri_fd_open(int dir, const char *path, int flags, int mode)
{
    enum { TRIES = 100 };
    int fd = open_once(dir, path, flags, mode);
    for (int i = 0; fd >= 0 && fd < FDRI_FD_LOW_COUNT && i < TRIES; i++) {
        if (flags & O_CREAT) fdri_system_unlinkat(dir, path);
        fdri_system_close(fd);
        fd = open_once(dir, path, flags, mode);
    }
    return fd < 0 ? fd : (fd = move_if_low(fd)) < 0 ? -EMFILE : fd;
}

int fdri_fd_open_in_crash(int dir, const char *path, int flags, int mode)
{
    struct fdri_fd_placeholders low;
    open_placeholders(&low);
    int fd = fdri_system_openat(dir, path, flags | O_CLOEXEC, mode);
    close_placeholders(&low);
    return fd;
}

int fdri_fd_perf_open(struct perf_event_attr *event, int tid, int group)
{
    struct fdri_fd_placeholders low;
    fdri_fd_fill_low(&low);
    int fd = (int)syscall(SYS_perf_event_open, event, tid, -1, group, PERF_FLAG_FD_CLOEXEC);
    fdri_fd_clear_low(&low);
    return move_if_low(fd);
}

void fdri_fd_name_thread(pthread_t thread, const char *name)
{
    struct fdri_fd_placeholders low;
    fdri_fd_fill_low(&low);
    pthread_setname_np(thread, name);
    fdri_fd_clear_low(&low);
}
