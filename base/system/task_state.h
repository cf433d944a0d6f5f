/* SPDX-License-Identifier: MIT */
/* How the kernel shows a thread: its state, and the system call in which it waits. For threads of this process, and of
 * others where the kernel permits it. */
#ifndef FDRI_BASE_SYSTEM_TASK_STATE_H
#define FDRI_BASE_SYSTEM_TASK_STATE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Reads /proc/PID/task/TID/FILE as text; pid 0: of this process. Returns the length, 0 and "" on failure (errno). */
size_t fdri_system_task_read(uint32_t pid, uint32_t tid, const char *file, char *text, size_t bytes);

/* The letter in the text of `stat`: R, S, D, T, ...; '?': the text is no such file. */
char fdri_system_task_letter(const char *stat);

/* How often the thread gave up its processor to wait, by the text of `status`. */
uint64_t fdri_system_task_waits(const char *status);

/* The call in which a thread waits. */
struct fdri_system_call {
    enum { FDRI_SYSTEM_CALL_UNKNOWN, FDRI_SYSTEM_CALL_RUNS, FDRI_SYSTEM_CALL_BLOCKS } state;
    int64_t number; /* if it blocks; -1: in no system call, as in a page fault */
    uint64_t argument[6], sp, pc;
};
void fdri_system_call_parse(const char *text, struct fdri_system_call *c); /* of the text of `syscall` */
/* Of a thread. False: the kernel does not say (errno). A call that went on after a stop of the thread counts as itself.
 * Its number is SYS_restart_syscall only where the kernel does not say which it is. */
bool fdri_system_call_read(uint32_t pid, uint32_t tid, struct fdri_system_call *c);

/* Reasons for which a thread waits. */
enum fdri_system_wait {
    FDRI_SYSTEM_WAIT_UNKNOWN,
    FDRI_SYSTEM_WAIT_NONE, /* it runs, or is ready to */
    FDRI_SYSTEM_WAIT_LOCK,
    FDRI_SYSTEM_WAIT_CONDITION, /* a condition variable, a semaphore, or the like */
    FDRI_SYSTEM_WAIT_JOIN,      /* the end of another thread */
    FDRI_SYSTEM_WAIT_EVENTS,    /* epoll, accept, poll of several descriptors */
    FDRI_SYSTEM_WAIT_SIGNAL,
    FDRI_SYSTEM_WAIT_INPUT, /* read, recv, select, poll of one descriptor */
    FDRI_SYSTEM_WAIT_CHILD, /* a child process */
    FDRI_SYSTEM_WAIT_TIME,  /* a short sleep, as in a loop that looks for something; a time in an unknown call */
    FDRI_SYSTEM_WAIT_SLEEP, /* one of at least 0.1 s */
    FDRI_SYSTEM_WAIT_OTHER, /* any other system call */
    FDRI_SYSTEM_WAIT_COUNT
};
/* "lock", "condition", ... */
const char *fdri_system_wait_name(enum fdri_system_wait wait);

/* The wait of a blocking call of a thread of process `pid` (0: this one). For a futex, by its arguments alone: mostly
 * the answer is UNKNOWN, and the functions on the stack decide. */
enum fdri_system_wait fdri_system_wait_of(uint32_t pid, const struct fdri_system_call *c);
/* True if the call waits for a futex, whose address is argument[0]. */
bool fdri_system_is_futex(const struct fdri_system_call *c);
/* The wait of a C library's function that waits for a futex, by the function's name; UNKNOWN: another function. */
enum fdri_system_wait fdri_system_wait_in(const char *function);
/* The wait of a futex by both: `by_stack` is that of the innermost such function on the stack, and `mutex` says that it
 * takes one. *owner: the thread that holds the mutex, as glibc notes it there; 0: not known. */
enum fdri_system_wait fdri_system_wait_by_both(uint32_t pid, const struct fdri_system_call *c,
                                               enum fdri_system_wait by_stack, bool mutex, uint32_t *owner);

#endif
