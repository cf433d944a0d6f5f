/* SPDX-License-Identifier: MIT */
/* System calls without the C library's thoughts about them: no cancellation points, no locks, the error in the
 * result (-errno). For code that runs in a process that is dying. */
#ifndef FDR_BASE_SYSTEM_SYSCALL_H
#define FDR_BASE_SYSTEM_SYSCALL_H
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static inline long fdr_raw_result(long n) { return n < 0 ? -errno : n; }
static inline int fdr_raw_openat(int dir, const char *path, int flags, int mode)
{
    return (int)fdr_raw_result(syscall(SYS_openat, dir, path, flags, mode));
}
static inline void fdr_raw_close(int fd) { syscall(SYS_close, fd); }
static inline long fdr_raw_read(int fd, void *to, uint64_t count)
{
    return fdr_raw_result(syscall(SYS_read, fd, to, count));
}
static inline long fdr_raw_pread(int fd, void *to, uint64_t count, uint64_t off)
{
    return fdr_raw_result(syscall(SYS_pread64, fd, to, count, off));
}
static inline long fdr_raw_pwrite(int fd, const void *from, uint64_t count, uint64_t off)
{
    return fdr_raw_result(syscall(SYS_pwrite64, fd, from, count, off));
}
static inline int fdr_raw_fstat(int fd, struct stat *st) { return (int)fdr_raw_result(syscall(SYS_fstat, fd, st)); }
/* Of the path itself, not of what a link names; or with the flag 0 of that. */
static inline int fdr_raw_fstatat(int dir, const char *path, struct stat *st, int flags)
{
    return (int)fdr_raw_result(syscall(SYS_newfstatat, dir, path, st, flags));
}
static inline int fdr_raw_lstat(int dir, const char *path, struct stat *st)
{
    return fdr_raw_fstatat(dir, path, st, AT_SYMLINK_NOFOLLOW);
}
static inline int fdr_raw_unlinkat(int dir, const char *path)
{
    return (int)fdr_raw_result(syscall(SYS_unlinkat, dir, path, 0));
}
static inline int fdr_raw_linkat(int from_dir, const char *from, int to_dir, const char *to, int flags)
{
    return (int)fdr_raw_result(syscall(SYS_linkat, from_dir, from, to_dir, to, flags));
}
/* Never onto an existing name. */
static inline int fdr_raw_rename_new(int from_dir, const char *from, int to_dir, const char *to)
{
    enum { NOREPLACE = 1 };
    int e = (int)fdr_raw_result(syscall(SYS_renameat2, from_dir, from, to_dir, to, NOREPLACE));
    if (e != -EINVAL && e != -ENOSYS) return e;
    e = fdr_raw_linkat(from_dir, from, to_dir, to, 0); /* file systems that do not know it */
    if (!e) fdr_raw_unlinkat(from_dir, from);          /* failing, it has two names: it is there all the same */
    return e;
}
static inline long fdr_raw_getdents(int fd, void *to, uint32_t count)
{
    return fdr_raw_result(syscall(SYS_getdents64, fd, to, count));
}
static inline int fdr_raw_getpid(void) { return (int)syscall(SYS_getpid); }
static inline int fdr_raw_gettid(void) { return (int)syscall(SYS_gettid); }
static inline void fdr_raw_tgkill(int pid, int tid, int sig) { syscall(SYS_tgkill, pid, tid, sig); }
/* There is no such thread any more. */
static inline bool fdr_raw_is_gone(int pid, int tid) { return syscall(SYS_tgkill, pid, tid, 0) && errno == ESRCH; }
/* The same signal once more, as it came. */
static inline long fdr_raw_queue(int pid, int tid, int sig, const siginfo_t *info)
{
    return fdr_raw_result(syscall(SYS_rt_tgsigqueueinfo, pid, tid, sig, info));
}
/* how: SIG_BLOCK, ... The kernel's set is 8 bytes. */
static inline void fdr_raw_mask(int how, const uint64_t *set, uint64_t *old)
{
    syscall(SYS_rt_sigprocmask, how, set, old, 8);
}
/* Signals that are blocked and wait, for this thread or the process. */
static inline uint64_t fdr_raw_pending(void)
{
    uint64_t set = 0;
    syscall(SYS_rt_sigpending, &set, 8);
    return set;
}
/* Every thread of the process passes a full barrier before this returns. False: the kernel does not know it, nothing
 * happens. */
static inline void fdr_raw_barrier_register(void) { syscall(SYS_membarrier, 16, 0, 0); }
static inline bool fdr_raw_barrier(void) { return syscall(SYS_membarrier, 8, 0, 0) == 0; }
static inline void fdr_raw_sleep(uint64_t ns)
{
    struct timespec t = {(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};
    syscall(SYS_nanosleep, &t, 0);
}
/* The i-th wait for who holds a lock that says nothing when it is free. A thread of real-time priority yields to none
 * of lower ones: later waits are asleep. */
static inline void fdr_raw_wait(int i)
{
    if (i < 16) syscall(SYS_sched_yield);
    else fdr_raw_sleep(50000);
}
#endif
