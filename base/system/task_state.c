/* SPDX-License-Identifier: MIT */
/* Threads as /proc shows them. */
#define _GNU_SOURCE
#include "base/system/task_state.h"

#include <inttypes.h>
#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#include "base/system/procfs.h"

size_t fdri_system_task_read(uint32_t pid, uint32_t tid, const char *file, char *text, size_t bytes)
{
    char path[96];
    if (!pid) return fdri_system_read_task(tid, file, text, bytes);
    snprintf(path, sizeof path, "/proc/%u/task/%u/%s", pid, tid, file);
    return fdri_system_read_text(path, text, bytes);
}

char fdri_system_task_letter(const char *stat)
{
    const char *p = strrchr(stat, ')'); /* the name before it may contain any character */
    return p && p[1] && p[2] ? p[2] : '?';
}

uint64_t fdri_system_task_waits(const char *status)
{
    static const char label[] = "\nvoluntary_ctxt_switches:";
    const char *line = strstr(status, label);
    return line ? strtoull(line + sizeof label - 1, NULL, 10) : 0;
}

/* "running"; or the call's number, six arguments, sp and pc; or -1, sp and pc. */
void fdri_system_call_parse(const char *text, struct fdri_system_call *c)
{
    uint64_t *a = c->argument;
    memset(c, 0, sizeof *c);
    if (!strncmp(text, "running", 7)) {
        c->state = FDRI_SYSTEM_CALL_RUNS;
        return;
    }
    int n = sscanf(text,
                   "%" SCNd64 " %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64
                   " %" SCNx64,
                   &c->number, &a[0], &a[1], &a[2], &a[3], &a[4], &a[5], &c->sp, &c->pc);
    if (n == 3 && c->number == -1) c->sp = a[0], c->pc = a[1];
    else if (n != 9 || c->number < 0) return;
    c->state = FDRI_SYSTEM_CALL_BLOCKS;
}

/* A stop, a debugger or a suspended machine interrupts calls with a time limit. They go on under another number, with
 * the same arguments. The function of the kernel in which the thread waits tells which call it is. */
static long restarted_call(uint32_t pid, uint32_t tid)
{
    static const struct {
        const char *part;
        long number;
    } calls[] = {{"nanosleep", SYS_clock_nanosleep}, {"poll", SYS_ppoll}, {"futex", SYS_futex}};
    char text[64];
    fdri_system_task_read(pid, tid, "wchan", text, sizeof text);
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++)
        if (strstr(text, calls[i].part)) return calls[i].number;
    return SYS_restart_syscall;
}

bool fdri_system_call_read(uint32_t pid, uint32_t tid, struct fdri_system_call *c)
{
    char text[512];
    *c = (struct fdri_system_call){.state = FDRI_SYSTEM_CALL_UNKNOWN};
    if (!fdri_system_task_read(pid, tid, "syscall", text, sizeof text)) return false;
    fdri_system_call_parse(text, c);
    if (c->state == FDRI_SYSTEM_CALL_BLOCKS && c->number == SYS_restart_syscall) c->number = restarted_call(pid, tid);
    return true;
}

const char *fdri_system_wait_name(enum fdri_system_wait wait)
{
    static const char *const names[] = {"",       "",      "lock",  "condition", "join",  "events",
                                        "signal", "input", "child", "time",      "sleep", "call"};
    _Static_assert(sizeof names / sizeof names[0] == FDRI_SYSTEM_WAIT_COUNT, "a name for each");
    return names[wait];
}

bool fdri_system_is_futex(const struct fdri_system_call *c)
{
    return c->state == FDRI_SYSTEM_CALL_BLOCKS && c->number == SYS_futex;
}

enum { LOCK_PI2 = 13 }; /* FUTEX_LOCK_PI2, which older headers lack */

static bool is_thread(uint32_t pid, uint32_t tid)
{
    char text[16];
    return fdri_system_task_read(pid, tid, "comm", text, sizeof text) > 0;
}

/* A lock is free when its word is 0, so no thread waits for a lock while it is 0. glibc's locks wait while the word is
 * 2. pthread_join waits without FUTEX_PRIVATE_FLAG, because the kernel ends that wait; the word is the thread's
 * number. */
static enum fdri_system_wait futex_wait(uint32_t pid, const struct fdri_system_call *c)
{
    uint32_t operation = (uint32_t)c->argument[1], value = (uint32_t)c->argument[2];
    bool shared = !(operation & FUTEX_PRIVATE_FLAG);
    switch (operation & FUTEX_CMD_MASK) {
    case FUTEX_LOCK_PI:
    case LOCK_PI2: return FDRI_SYSTEM_WAIT_LOCK;
    case FUTEX_WAIT_REQUEUE_PI: return FDRI_SYSTEM_WAIT_CONDITION;
    case FUTEX_WAIT: return value == 2 ? FDRI_SYSTEM_WAIT_LOCK : FDRI_SYSTEM_WAIT_UNKNOWN;
    case FUTEX_WAIT_BITSET:
        if (shared && value > 2 && is_thread(pid, value)) return FDRI_SYSTEM_WAIT_JOIN;
        return value ? FDRI_SYSTEM_WAIT_UNKNOWN : FDRI_SYSTEM_WAIT_CONDITION;
    default: return FDRI_SYSTEM_WAIT_UNKNOWN;
    }
}

static const struct {
    long number;
    enum fdri_system_wait wait;
} calls[] = {
#ifdef SYS_epoll_wait /* aarch64 has only the newer ones */
    {SYS_epoll_wait, FDRI_SYSTEM_WAIT_EVENTS},
    {SYS_select, FDRI_SYSTEM_WAIT_INPUT},
    {SYS_pause, FDRI_SYSTEM_WAIT_SIGNAL},
#endif
#ifdef SYS_epoll_pwait2
    {SYS_epoll_pwait2, FDRI_SYSTEM_WAIT_EVENTS},
#endif
    {SYS_epoll_pwait, FDRI_SYSTEM_WAIT_EVENTS},
    {SYS_io_getevents, FDRI_SYSTEM_WAIT_EVENTS},
    {SYS_accept, FDRI_SYSTEM_WAIT_EVENTS},
    {SYS_accept4, FDRI_SYSTEM_WAIT_EVENTS},
    {SYS_pselect6, FDRI_SYSTEM_WAIT_INPUT},
    {SYS_read, FDRI_SYSTEM_WAIT_INPUT},
    {SYS_readv, FDRI_SYSTEM_WAIT_INPUT},
    {SYS_recvfrom, FDRI_SYSTEM_WAIT_INPUT},
    {SYS_recvmsg, FDRI_SYSTEM_WAIT_INPUT},
    {SYS_recvmmsg, FDRI_SYSTEM_WAIT_INPUT},
    {SYS_msgrcv, FDRI_SYSTEM_WAIT_INPUT},
    {SYS_mq_timedreceive, FDRI_SYSTEM_WAIT_INPUT},
    {SYS_rt_sigtimedwait, FDRI_SYSTEM_WAIT_SIGNAL},
    {SYS_rt_sigsuspend, FDRI_SYSTEM_WAIT_SIGNAL},
    {SYS_wait4, FDRI_SYSTEM_WAIT_CHILD},
    {SYS_waitid, FDRI_SYSTEM_WAIT_CHILD},
    {SYS_nanosleep, FDRI_SYSTEM_WAIT_TIME},
    {SYS_clock_nanosleep, FDRI_SYSTEM_WAIT_TIME},
    {SYS_restart_syscall, FDRI_SYSTEM_WAIT_TIME},
};

/* Did the program ask for a sleep of 0.1 s or more? False also for a sleep until a moment. */
static bool sleeps_long(uint32_t pid, const struct fdri_system_call *c)
{
    bool clock = c->number == SYS_clock_nanosleep;
    int64_t time[2] = {0, 0};                                                  /* seconds, nanoseconds */
    if (clock ? c->argument[1] & 1 : c->number != SYS_nanosleep) return false; /* 1: TIMER_ABSTIME */
    return fdri_system_read_memory(pid, c->argument[clock ? 2 : 0], time, sizeof time) &&
           (time[0] > 0 || time[1] >= 100000000);
}

static bool is_poll(long number)
{
#ifdef SYS_poll
    if (number == SYS_poll) return true;
#endif
    return number == SYS_ppoll;
}

enum fdri_system_wait fdri_system_wait_of(uint32_t pid, const struct fdri_system_call *c)
{
    if (c->state == FDRI_SYSTEM_CALL_RUNS) return FDRI_SYSTEM_WAIT_NONE;
    if (c->state == FDRI_SYSTEM_CALL_UNKNOWN) return FDRI_SYSTEM_WAIT_UNKNOWN;
    if (c->number == SYS_futex) return futex_wait(pid, c);
    if (is_poll(c->number)) return c->argument[1] > 1 ? FDRI_SYSTEM_WAIT_EVENTS : FDRI_SYSTEM_WAIT_INPUT;
    if (sleeps_long(pid, c)) return FDRI_SYSTEM_WAIT_SLEEP;
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++)
        if (calls[i].number == c->number) return calls[i].wait;
    return FDRI_SYSTEM_WAIT_OTHER;
}

enum fdri_system_wait fdri_system_wait_in(const char *function)
{
    static const struct {
        const char *part;
        enum fdri_system_wait wait;
    } parts[] = {{"_cond_", FDRI_SYSTEM_WAIT_CONDITION},  {"cnd_", FDRI_SYSTEM_WAIT_CONDITION},
                 {"sem_", FDRI_SYSTEM_WAIT_CONDITION},    {"_mutex_", FDRI_SYSTEM_WAIT_LOCK},
                 {"mtx_", FDRI_SYSTEM_WAIT_LOCK},         {"lll_lock", FDRI_SYSTEM_WAIT_LOCK},
                 {"_rwlock_", FDRI_SYSTEM_WAIT_LOCK},     {"_spin_", FDRI_SYSTEM_WAIT_LOCK},
                 {"_barrier_", FDRI_SYSTEM_WAIT_LOCK},    {"pthread_once", FDRI_SYSTEM_WAIT_LOCK},
                 {"pthread_join", FDRI_SYSTEM_WAIT_JOIN}, {"pthread_clockjoin", FDRI_SYSTEM_WAIT_JOIN}};
    while (*function == '_') function++;
    bool library = !strncmp(function, "pthread_", 8) || !strncmp(function, "new_sem_", 8) ||
                   !strncmp(function, "cnd_", 4) || !strncmp(function, "mtx_", 4) || !strncmp(function, "sem_", 4) ||
                   !strncmp(function, "lll_lock", 8);
    for (size_t i = 0; library && i < sizeof parts / sizeof parts[0]; i++)
        if (strstr(function, parts[i].part)) return parts[i].wait;
    return FDRI_SYSTEM_WAIT_UNKNOWN;
}

/* The thread that holds the pthread_mutex_t for which this call waits; 0: not known. */
static uint32_t mutex_owner(uint32_t pid, const struct fdri_system_call *c)
{
    uint32_t lock[3]; /* the word, the count, the owner */
    if (!fdri_system_is_futex(c) || !fdri_system_read_memory(pid, c->argument[0], lock, sizeof lock) || !lock[0])
        return 0;
    uint32_t operation = (uint32_t)c->argument[1] & FUTEX_CMD_MASK;
    uint32_t owner = operation == FUTEX_LOCK_PI || operation == LOCK_PI2 ? lock[0] & FUTEX_TID_MASK : lock[2];
    return owner && is_thread(pid, owner) ? owner : 0;
}

enum fdri_system_wait fdri_system_wait_by_both(uint32_t pid, const struct fdri_system_call *c,
                                               enum fdri_system_wait by_stack, bool mutex, uint32_t *owner)
{
    enum fdri_system_wait wait = fdri_system_wait_of(pid, c);
    /* LOCK stays: a condition's function takes its mutex again at the end */
    bool open = wait == FDRI_SYSTEM_WAIT_UNKNOWN || wait == FDRI_SYSTEM_WAIT_CONDITION;
    if (open && by_stack != FDRI_SYSTEM_WAIT_UNKNOWN) wait = by_stack;
    /* a word of 2 with a thread's number beside it is a mutex, whichever function waits for it */
    *owner = mutex || (uint32_t)c->argument[2] == 2 ? mutex_owner(pid, c) : 0;
    return *owner ? FDRI_SYSTEM_WAIT_LOCK : wait;
}
