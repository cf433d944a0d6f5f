/* SPDX-License-Identifier: MIT */
/* Names of system calls in which threads wait. Some processors lack the older ones. */
#define _GNU_SOURCE
#include "base/system/call_names.h"

#include <stddef.h>
#include <sys/syscall.h>

static const struct {
    long number;
    const char *name;
} calls[] = {
    {SYS_futex, "futex"},
    {SYS_nanosleep, "nanosleep"},
    {SYS_clock_nanosleep, "clock_nanosleep"},
    {SYS_ppoll, "ppoll"},
    {SYS_pselect6, "pselect"},
    {SYS_epoll_pwait, "epoll_pwait"},
    {SYS_read, "read"},
    {SYS_write, "write"},
    {SYS_readv, "readv"},
    {SYS_writev, "writev"},
    {SYS_pread64, "pread"},
    {SYS_pwrite64, "pwrite"},
    {SYS_recvfrom, "recvfrom"},
    {SYS_recvmsg, "recvmsg"},
    {SYS_recvmmsg, "recvmmsg"},
    {SYS_sendto, "sendto"},
    {SYS_sendmsg, "sendmsg"},
    {SYS_accept, "accept"},
    {SYS_accept4, "accept4"},
    {SYS_connect, "connect"},
    {SYS_wait4, "wait4"},
    {SYS_waitid, "waitid"},
    {SYS_rt_sigsuspend, "sigsuspend"},
    {SYS_rt_sigtimedwait, "sigtimedwait"},
    {SYS_restart_syscall, "a restarted call"},
    {SYS_fsync, "fsync"},
    {SYS_fdatasync, "fdatasync"},
    {SYS_sync_file_range, "sync_file_range"},
    {SYS_openat, "openat"},
    {SYS_close, "close"},
    {SYS_flock, "flock"},
    {SYS_fcntl, "fcntl"},
    {SYS_ioctl, "ioctl"},
    {SYS_semop, "semop"},
    {SYS_semtimedop, "semtimedop"},
    {SYS_msgrcv, "msgrcv"},
    {SYS_msgsnd, "msgsnd"},
    {SYS_mq_timedreceive, "mq_timedreceive"},
    {SYS_mq_timedsend, "mq_timedsend"},
    {SYS_io_getevents, "io_getevents"},
    {SYS_io_uring_enter, "io_uring_enter"},
    {SYS_splice, "splice"},
    {SYS_sendfile, "sendfile"},
    {SYS_mmap, "mmap"},
    {SYS_munmap, "munmap"},
    {SYS_madvise, "madvise"},
    {SYS_msync, "msync"},
    {SYS_unlinkat, "unlinkat"},
#ifdef SYS_poll
    {SYS_poll, "poll"},
    {SYS_select, "select"},
    {SYS_epoll_wait, "epoll_wait"},
    {SYS_pause, "pause"},
    {SYS_open, "open"},
#endif
};

const char *fdri_system_call_name(long number)
{
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        if (calls[i].number == number) return calls[i].name;
    return NULL;
}
