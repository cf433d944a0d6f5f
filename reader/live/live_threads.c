/* SPDX-License-Identifier: MIT */
/* The threads of a running process as the kernel shows them: state, wait, stack, and the holder of a mutex. Nothing is
 * attached to and nothing stops: /proc has the place of a thread that waits, and its stack does not change meanwhile. A
 * thread that went on between two readings shows a stack that does not unwind. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fdr/reader.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/system/procfs.h"
#include "base/system/task_state.h"
#include "policies/idle.h"
#include "reader/bundle/crash_bundle.h"
#include "reader/file/file.h"

enum { STACK_BYTES = 32 << 10, MAPS_BYTES = 1 << 20, FRAMES_LOOK = 8 };

struct look {
    struct fdr_file *file;
    uint32_t pid;
    int memory; /* /proc/PID/mem; -1: not permitted */
    int error;  /* of the first thing that could not be seen */
    uint64_t stack[STACK_BYTES / 8];
};

/* ---- which wait a stack shows ---- */

static bool is_libc(const char *module)
{
    const char *slash = strrchr(module, '/'), *name = slash ? slash + 1 : module;
    return !strncmp(name, "libc.", 5) || !strncmp(name, "libc-", 5) || !strncmp(name, "libpthread", 10);
}

static enum fdri_system_wait wait_by_name(const char *function)
{
    static const struct {
        const char *name;
        enum fdri_system_wait wait;
    } calls[] = {{"epoll_wait", FDRI_SYSTEM_WAIT_EVENTS},   {"epoll_pwait", FDRI_SYSTEM_WAIT_EVENTS},
                 {"accept", FDRI_SYSTEM_WAIT_EVENTS},       {"accept4", FDRI_SYSTEM_WAIT_EVENTS},
                 {"poll", FDRI_SYSTEM_WAIT_INPUT},          {"ppoll", FDRI_SYSTEM_WAIT_INPUT},
                 {"select", FDRI_SYSTEM_WAIT_INPUT},        {"pselect", FDRI_SYSTEM_WAIT_INPUT},
                 {"read", FDRI_SYSTEM_WAIT_INPUT},          {"recv", FDRI_SYSTEM_WAIT_INPUT},
                 {"recvfrom", FDRI_SYSTEM_WAIT_INPUT},      {"recvmsg", FDRI_SYSTEM_WAIT_INPUT},
                 {"sigwait", FDRI_SYSTEM_WAIT_SIGNAL},      {"sigwaitinfo", FDRI_SYSTEM_WAIT_SIGNAL},
                 {"sigtimedwait", FDRI_SYSTEM_WAIT_SIGNAL}, {"pause", FDRI_SYSTEM_WAIT_SIGNAL},
                 {"sigsuspend", FDRI_SYSTEM_WAIT_SIGNAL},   {"wait4", FDRI_SYSTEM_WAIT_CHILD},
                 {"waitpid", FDRI_SYSTEM_WAIT_CHILD},       {"waitid", FDRI_SYSTEM_WAIT_CHILD},
                 {"nanosleep", FDRI_SYSTEM_WAIT_TIME},      {"clock_nanosleep", FDRI_SYSTEM_WAIT_TIME}};
    const char *plain = function + strspn(function, "_");
    if (!strncmp(plain, "GI_", 3)) plain += 3 + strspn(plain + 3, "_");
    if (!strncmp(plain, "libc_", 5)) plain += 5;
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++)
        if (!strcmp(plain, calls[i].name)) return calls[i].wait;
    return fdri_system_wait_in(function);
}

static size_t stack_of(const struct fdr_file *f, uint32_t tid)
{
    const struct fdr_crash_thread_info *t;
    for (size_t i = 0, n = fdr_crash_threads(f, &t); i < n; i++)
        if (t[i].tid == tid && t[i].answered) return i;
    return SIZE_MAX;
}

/* By the innermost function of the C library that waits. */
static enum fdri_system_wait wait_by_stack(struct fdr_file *f, uint32_t tid, bool *mutex)
{
    const struct fdr_crash_frame *r;
    size_t stack = stack_of(f, tid), n = stack == SIZE_MAX ? 0 : fdr_crash_frames(f, stack, &r);
    for (size_t i = 0; i < n && i < FRAMES_LOOK; i++) {
        if (r[i].guessed || !is_libc(r[i].module)) break;
        enum fdri_system_wait w = wait_by_name(r[i].function);
        *mutex = strstr(r[i].function, "_mutex_") != NULL;
        if (w != FDRI_SYSTEM_WAIT_UNKNOWN) return w;
    }
    return FDRI_SYSTEM_WAIT_UNKNOWN;
}

/* ---- looking at one thread ---- */

static void add_stack(struct look *l, uint32_t tid, const char *name, const struct fdri_system_call *c)
{
    ssize_t n = l->memory < 0 ? -1 : pread(l->memory, l->stack, sizeof l->stack, (off_t)c->sp);
    if (n >= 8) fdri_bundle_add_live(l->file, tid, name, c, l->stack, (uint32_t)n / 8, n == (ssize_t)sizeof l->stack);
}

static bool is_frozen(uint32_t pid, uint32_t tid)
{
    char text[64];
    fdri_system_task_read(pid, tid, "wchan", text, sizeof text);
    return strstr(text, "freezer") || strstr(text, "refrigerator");
}

static void look_at(struct look *l, uint32_t tid)
{
    struct fdr_file *f = l->file;
    char text[1024], name[32];
    struct fdri_system_call c;
    if (!fdri_file_grow(&f->task, f->task_count, &f->task_room, sizeof *f->task)) return;
    struct fdr_task_info t = {.tid = tid, .waits_for = ""};
    if (!fdri_system_task_read(l->pid, tid, "stat", text, sizeof text)) return; /* it has ended */
    t.state = fdri_system_task_letter(text);
    char status[4096];
    fdri_system_task_read(l->pid, tid, "status", status, sizeof status);
    t.waits = fdri_system_task_waits(status);
    t.frozen = is_frozen(l->pid, tid);
    fdri_system_task_read(l->pid, tid, "comm", name, sizeof name);
    name[strcspn(name, "\n")] = 0;
    char *kept = fdri_file_alloc(f, sizeof name);
    t.name = kept ? strcpy(kept, name) : "";
    if (!fdri_system_call_read(l->pid, tid, &c) && !l->error) l->error = errno;
    if (c.state == FDRI_SYSTEM_CALL_BLOCKS) add_stack(l, tid, name, &c);
    enum fdri_system_wait wait = fdri_system_wait_of(l->pid, &c);
    bool mutex = false;
    if (fdri_system_is_futex(&c)) {
        enum fdri_system_wait by_stack = wait_by_stack(f, tid, &mutex);
        wait = fdri_system_wait_by_both(l->pid, &c, by_stack, mutex, &t.lock_owner);
    }
    t.waits_for = fdri_system_wait_name(wait);
    f->task[f->task_count++] = t;
}

static void look_at_all(struct look *l)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%u/task", l->pid);
    DIR *d = fdri_system_open_folder(path);
    if (!d) l->error = errno;
    for (struct dirent *e; d && (e = readdir(d));) {
        uint32_t tid = (uint32_t)strtoul(e->d_name, NULL, 10); /* 0 for . and .. */
        if (tid) look_at(l, tid);
    }
    if (d) closedir(d);
}

/* The memory map names libraries that were loaded after the newest event. */
static void add_maps(struct look *l)
{
    char path[64], *text = fdri_file_malloc(MAPS_BYTES);
    size_t used = 0;
    snprintf(path, sizeof path, "/proc/%u/maps", l->pid);
    int fd = text ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    for (ssize_t n; fd >= 0 && used < MAPS_BYTES - 1 && (n = read(fd, text + used, MAPS_BYTES - 1 - used)) > 0;)
        used += (size_t)n;
    if (fd >= 0) close(fd);
    if (text) text[used] = 0;
    if (used) fdri_bundle_add_text(l->file, "maps", text);
    free(text);
}

int fdr_process_look(struct fdr_file *file, uint32_t pid, char *message, size_t message_bytes)
{
    char path[64];
    struct look *l = fdri_file_calloc(1, sizeof *l);
    if (message_bytes) message[0] = 0;
    if (!l) return -ENOMEM;
    *l = (struct look){.file = file, .pid = pid};
    snprintf(path, sizeof path, "/proc/%u/mem", pid);
    l->memory = open(path, O_RDONLY | O_CLOEXEC);
    if (l->memory < 0) l->error = errno;
    if (!file->task_count && !file->bundle) add_maps(l), look_at_all(l);
    int e = l->error;
    if (l->memory >= 0) close(l->memory);
    free(l);
    if (e)
        snprintf(message, message_bytes,
                 "process %u: %s: native stacks, waits and holders of mutexes cannot be seen (that needs root, "
                 "CAP_SYS_PTRACE, or the same user and kernel.yama.ptrace_scope=0)",
                 pid, strerror(e));
    return -e;
}

size_t fdr_tasks(const struct fdr_file *file, const struct fdr_task_info **rows)
{
    *rows = file->task;
    return file->task_count;
}

/* ---- idle? ---- */

static enum fdri_system_wait wait_named(const char *name)
{
    for (int i = FDRI_SYSTEM_WAIT_LOCK; i < FDRI_SYSTEM_WAIT_COUNT; i++)
        if (!strcmp(fdri_system_wait_name((enum fdri_system_wait)i), name)) return (enum fdri_system_wait)i;
    return FDRI_SYSTEM_WAIT_UNKNOWN;
}

static const struct fdr_task_info *task_of(const struct fdr_file *f, uint32_t tid)
{
    for (size_t i = 0; i < f->task_count; i++)
        if (f->task[i].tid == tid) return &f->task[i];
    return NULL;
}

/* Calls that the thread ended: of one region, and of all. */
static void count_calls(const struct fdr_file *f, const struct fdr_location_info *l, struct fdri_policies_waiter *w)
{
    const struct fdr_total *t;
    uint32_t innermost = l->open[l->open_count - 1].region;
    for (size_t i = 0, n = fdr_totals(f, &t); i < n; i++) {
        if (t[i].location != l->id || t[i].class_ != FDR_IN_REGION) continue;
        w->calls += t[i].calls + t[i].untimed;
        if (t[i].id == innermost) w->passed += t[i].calls + t[i].untimed;
    }
    w->came_back = l->open_count == 1 ? w->calls : 0;
}

static const char *name_of(const struct fdr_file *f, const struct fdr_location_info *l)
{
    return fdr_definition(f, FDR_REGION_DEFINITION, l->open[l->open_count - 1].region)->name;
}

int fdr_location_idle(struct fdr_file *file, size_t index)
{
    const struct fdr_location_info *l = fdr_location_info(file, index);
    bool mutex;
    if (!l || !l->open_count || !l->tid) return -1;
    const struct fdr_task_info *t = task_of(file, l->tid);
    struct fdri_policies_waiter w = {.blocked = FDRI_POLICIES_OFTEN}; /* a file does not have that number */
    if (t && (t->state == 'R' || t->state == 'D')) return 0;
    if (t) w.blocked = t->waits;
    w.excluded = fdri_policies_meaning_of(name_of(file, l)) == FDRI_POLICIES_MEANS_OTHERS;
    w.wait = t ? wait_named(t->waits_for) : wait_by_stack(file, l->tid, &mutex);
    count_calls(file, l, &w);
    w.has_begin = l->start_ns != 0;
    w.waits_from_ns = l->moved_ns > l->start_ns ? l->moved_ns - l->start_ns : 0;
    enum fdri_policies_answer a = fdri_policies_is_idle(&w);
    return a == FDRI_POLICIES_YES ? 1 : a == FDRI_POLICIES_NO ? 0 : -1;
}
