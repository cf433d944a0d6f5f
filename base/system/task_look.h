/* SPDX-License-Identifier: MIT */
/* The state of a thread of this process, as /proc shows it to another thread. The thread itself notices nothing: it
 * gets no signal, and no call of it ends early. */
#ifndef FDRI_BASE_SYSTEM_TASK_LOOK_H
#define FDRI_BASE_SYSTEM_TASK_LOOK_H
#include <stdbool.h>
#include <stdint.h>

enum fdri_system_task_kind {
    FDRI_SYSTEM_TASK_GONE,    /* there is no such thread */
    FDRI_SYSTEM_TASK_UNREAD,  /* /proc cannot be read: a filter, no free descriptor */
    FDRI_SYSTEM_TASK_RUNS,    /* or waits for a processor */
    FDRI_SYSTEM_TASK_WAITS,   /* blocked in the kernel */
    FDRI_SYSTEM_TASK_STOPPED, /* by a signal or a debugger */
    FDRI_SYSTEM_TASK_KINDS
};
struct fdri_system_task {
    enum fdri_system_task_kind kind;
    bool placed; /* the next fields are known */
    long call;   /* number of the system call; -1: it waits outside of calls, for a page */
    uint64_t argument[6];
    uint64_t sp, pc;
    char where[40]; /* the kernel's function, where that alone is known; "" */
};
struct fdri_system_task fdri_system_task_look(uint32_t tid);
/* Parses the text of /proc/PID/syscall. False: it is no such text. */
bool fdri_system_task_parse(const char *text, struct fdri_system_task *to);
/* As people read it: "blocked in poll", "runs, place unknown". */
void fdri_system_task_describe(const struct fdri_system_task *t, char *text, uint32_t bytes);
#endif
