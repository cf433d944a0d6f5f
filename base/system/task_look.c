/* SPDX-License-Identifier: MIT */
/* Reads the state of a thread from /proc/self/task/TID. The file `syscall` says all in one read, but a process that is
 * not dumpable (setuid, prctl) may not open its own. Then `stat` and `wchan` say part of it. */
#define _GNU_SOURCE
#include "base/system/task_look.h"

#include <errno.h>
#include <linux/futex.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>

#include "base/system/call_names.h"
#include "base/system/procfs.h"
#include "base/system/task_state.h"

bool fdri_system_task_parse(const char *text, struct fdri_system_task *to)
{
    struct fdri_system_call c;
    fdri_system_call_parse(text, &c);
    *to = (struct fdri_system_task){.kind = FDRI_SYSTEM_TASK_RUNS, .call = -1};
    if (c.state != FDRI_SYSTEM_CALL_BLOCKS) return c.state == FDRI_SYSTEM_CALL_RUNS;
    to->kind = FDRI_SYSTEM_TASK_WAITS;
    to->placed = true;
    to->call = (long)c.number;
    to->sp = c.sp;
    to->pc = c.pc;
    if (to->call >= 0) memcpy(to->argument, c.argument, sizeof to->argument);
    return true;
}

static bool no_thread(int e) { return e == ENOENT || e == ESRCH; }

static enum fdri_system_task_kind kind_of(char state)
{
    if (state == 'R') return FDRI_SYSTEM_TASK_RUNS;
    if (state == 'T' || state == 't') return FDRI_SYSTEM_TASK_STOPPED;
    if (state == 'Z' || state == 'X' || state == 'x') return FDRI_SYSTEM_TASK_GONE;
    return FDRI_SYSTEM_TASK_WAITS;
}

static void look_at_channel(uint32_t tid, struct fdri_system_task *to)
{
    char text[sizeof to->where];
    if (fdri_system_read_task(tid, "wchan", text, sizeof text) && strcmp(text, "0"))
        memcpy(to->where, text, sizeof text);
}

struct fdri_system_task fdri_system_task_look(uint32_t tid)
{
    struct fdri_system_task t;
    char text[512];
    if (fdri_system_read_task(tid, "syscall", text, sizeof text) && fdri_system_task_parse(text, &t)) return t;
    t = (struct fdri_system_task){.kind = FDRI_SYSTEM_TASK_UNREAD, .call = -1};
    if (!fdri_system_read_task(tid, "stat", text, sizeof text)) {
        if (no_thread(errno)) t.kind = FDRI_SYSTEM_TASK_GONE;
        return t;
    }
    char letter = fdri_system_task_letter(text);
    if (letter == '?') return t;
    t.kind = kind_of(letter);
    if (t.kind == FDRI_SYSTEM_TASK_WAITS) look_at_channel(tid, &t);
    return t;
}

/* ---- as text ---- */

static const char *futex_name(uint64_t operation)
{
    switch (operation & FUTEX_CMD_MASK) {
    case FUTEX_WAIT:
    case FUTEX_WAIT_BITSET: return "futex_wait";
    case FUTEX_LOCK_PI: return "futex_lock_pi";
    default: return "futex";
    }
}

static void describe_wait(const struct fdri_system_task *t, char *text, uint32_t bytes)
{
    const char *name = t->call == SYS_futex ? futex_name(t->argument[1]) : fdri_system_call_name(t->call);
    if (!t->placed) snprintf(text, bytes, t->where[0] ? "blocked in %s" : "blocked, place unknown", t->where);
    else if (t->call == -1) snprintf(text, bytes, "blocked outside of system calls");
    else if (name) snprintf(text, bytes, "blocked in %s", name);
    else snprintf(text, bytes, "blocked in system call %ld", t->call);
}

void fdri_system_task_describe(const struct fdri_system_task *t, char *text, uint32_t bytes)
{
    static const char *const kinds[FDRI_SYSTEM_TASK_KINDS] = {
        [FDRI_SYSTEM_TASK_GONE] = "ended",
        [FDRI_SYSTEM_TASK_UNREAD] = "state unknown",
        [FDRI_SYSTEM_TASK_RUNS] = "runs, place unknown",
        [FDRI_SYSTEM_TASK_STOPPED] = "stopped, place unknown",
    };
    if (t->kind == FDRI_SYSTEM_TASK_WAITS) describe_wait(t, text, bytes);
    else snprintf(text, bytes, "%s", kinds[t->kind]);
}
