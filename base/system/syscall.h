/* SPDX-License-Identifier: MIT */
/* The kernel and the C library: system calls, signal masks, /proc, NUMA nodes, loaded modules. Files: syscall (this
 * header), signal_mask and cancellation (interruptions held off fdr), signal_action, chained_handler, helper_threads.
 * Of other threads: procfs, task_state, task_look, call_names. Of the machine: cgroup, loader, static_tls, topology.
 * Neighbours: used by every folder; below: atomic.h.
 *
 * This header has system calls without cancellation points and locks, for code that runs in a dying process. Their
 * result is -errno if they fail. */
#ifndef FDRI_BASE_SYSTEM_SYSCALL_H
#define FDRI_BASE_SYSTEM_SYSCALL_H
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

static inline long fdri_system_result(long n) { return n < 0 ? -errno : n; }
static inline int fdri_system_openat(int dir, const char *path, int flags, int mode)
{
    return (int)fdri_system_result(syscall(SYS_openat, dir, path, flags, mode));
}
static inline void fdri_system_close(int fd) { syscall(SYS_close, fd); }
static inline long fdri_system_read(int fd, void *to, uint64_t count)
{
    return fdri_system_result(syscall(SYS_read, fd, to, count));
}
static inline long fdri_system_pread(int fd, void *to, uint64_t count, uint64_t off)
{
    return fdri_system_result(syscall(SYS_pread64, fd, to, count, off));
}
static inline long fdri_system_pwrite(int fd, const void *from, uint64_t count, uint64_t off)
{
    return fdri_system_result(syscall(SYS_pwrite64, fd, from, count, off));
}
static inline int fdri_system_fstat(int fd, struct stat *st)
{
    return (int)fdri_system_result(syscall(SYS_fstat, fd, st));
}
static inline int fdri_system_fstatfs(int fd, struct statfs *s)
{
    return (int)fdri_system_result(syscall(SYS_fstatfs, fd, s));
}
/* Of the path itself if flags is AT_SYMLINK_NOFOLLOW; with 0, of the link's target. */
static inline int fdri_system_fstatat(int dir, const char *path, struct stat *st, int flags)
{
    return (int)fdri_system_result(syscall(SYS_newfstatat, dir, path, st, flags));
}
static inline int fdri_system_lstat(int dir, const char *path, struct stat *st)
{
    return fdri_system_fstatat(dir, path, st, AT_SYMLINK_NOFOLLOW);
}
static inline int fdri_system_unlinkat(int dir, const char *path)
{
    return (int)fdri_system_result(syscall(SYS_unlinkat, dir, path, 0));
}
static inline int fdri_system_linkat(int from_dir, const char *from, int to_dir, const char *to, int flags)
{
    return (int)fdri_system_result(syscall(SYS_linkat, from_dir, from, to_dir, to, flags));
}
/* Fails if the new name exists. */
static inline int fdri_system_rename_new(int from_dir, const char *from, int to_dir, const char *to)
{
    enum { NOREPLACE = 1 };
    int e = (int)fdri_system_result(syscall(SYS_renameat2, from_dir, from, to_dir, to, NOREPLACE));
    if (e != -EINVAL && e != -ENOSYS) return e;
    e = fdri_system_linkat(from_dir, from, to_dir, to, 0); /* the file system does not know renameat2 */
    if (!e) fdri_system_unlinkat(from_dir, from);          /* if this fails, the file keeps both names */
    return e;
}
static inline long fdri_system_getdents(int fd, void *to, uint32_t count)
{
    return fdri_system_result(syscall(SYS_getdents64, fd, to, count));
}
static inline int fdri_system_getpid(void) { return (int)syscall(SYS_getpid); }
static inline int fdri_system_gettid(void) { return (int)syscall(SYS_gettid); }
static inline void fdri_system_tgkill(int pid, int tid, int sig) { syscall(SYS_tgkill, pid, tid, sig); }
/* True if the thread does not exist any more. */
static inline bool fdri_system_thread_has_ended(int pid, int tid)
{
    return syscall(SYS_tgkill, pid, tid, 0) && errno == ESRCH;
}
/* Sends the same signal again, with its original information. */
static inline long fdri_system_queue(int pid, int tid, int sig, const siginfo_t *info)
{
    return fdri_system_result(syscall(SYS_rt_tgsigqueueinfo, pid, tid, sig, info));
}
/* how: SIG_BLOCK, ... The kernel's set has 8 bytes. */
static inline void fdri_system_mask(int how, const uint64_t *set, uint64_t *old)
{
    syscall(SYS_rt_sigprocmask, how, set, old, 8);
}
/* Blocked signals that wait for this thread or the process. */
static inline uint64_t fdri_system_pending(void)
{
    uint64_t set = 0;
    syscall(SYS_rt_sigpending, &set, 8);
    return set;
}
/* fdri_system_barrier: every running thread of the process passes a full barrier before it returns. False: the kernel
 * does not support membarrier, and nothing happened. The process must have registered before. */
static inline void fdri_system_barrier_register(void) { syscall(SYS_membarrier, 16, 0, 0); }
static inline bool fdri_system_barrier(void) { return syscall(SYS_membarrier, 8, 0, 0) == 0; }
static inline void fdri_system_sleep(uint64_t ns)
{
    struct timespec t = {(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};
    syscall(SYS_nanosleep, &t, 0);
}
/* The i-th wait for a lock whose release wakes no thread. From the 17th on it sleeps 50 us: sched_yield of a real-time
 * thread never runs a holder of lower priority. */
static inline void fdri_system_wait(int i)
{
    if (i < 16) syscall(SYS_sched_yield);
    else fdri_system_sleep(50000);
}
#endif
