/* SPDX-License-Identifier: MIT */
/* Finds the arena of a process through /proc. A mapped arena is read through its file, which needs only the right to
 * open it. An anonymous one is read with process_vm_readv. */
#define _GNU_SOURCE
#include "base/system/procfs.h"
#include "format/arena/arena.h"
#include "reader/live/find_process.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <unistd.h>

struct mapping {
    uint64_t from, to, inode;
    dev_t device;
    char path[4096]; /* "": none */
};

int fdri_live_process_read(const struct fdri_live_process *p, uint64_t off, void *to, size_t count)
{
    uint8_t *at = to;
    while (count) {
        struct iovec here = {at, count}, there = {(void *)(uintptr_t)(p->address + off), count};
        ssize_t n = p->fd >= 0 ? pread(p->fd, at, count, (off_t)off)
                               : process_vm_readv((pid_t)p->task, &here, 1, &there, 1, 0);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return n ? -errno : -EIO; /* the file was truncated under its process */
        at += n;
        off += (uint64_t)n;
        count -= (size_t)n;
    }
    return 0;
}

void fdri_live_process_close(struct fdri_live_process *p)
{
    if (p->fd >= 0) close(p->fd);
    p->fd = -1;
}

/* ---- is it the recording of this process? ---- */

static bool read_text(uint32_t pid, const char *name, char *text, size_t bytes)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%u/%s", pid, name);
    return fdri_system_read_text(path, text, bytes) > 0;
}

/* The pid in the process's own namespace: the last of "NSpid:", which has one for each namespace. */
static uint32_t own_pid(uint32_t pid)
{
    char text[4096], *line, *end;
    uint32_t own = pid;
    if (!read_text(pid, "status", text, sizeof text) || !(line = strstr(text, "\nNSpid:"))) return pid;
    for (char *p = line + 7; *p && *p != '\n'; p = end) {
        unsigned long v = strtoul(p, &end, 10);
        if (end == p) break;
        own = (uint32_t)v;
    }
    return own;
}

static uint64_t start_time(uint32_t pid)
{
    char text[1024];
    if (!read_text(pid, "stat", text, sizeof text)) return 0;
    return fdri_system_stat_start_time(text);
}

/* False for a forked child that still maps its parent's arena, and for a pid that was reused. */
static bool arena_is_its_own(const struct fdri_live_process *p)
{
    const struct fdri_arena_superblock *s = &p->super;
    return s->pid == own_pid(p->pid) && (!s->process_start_time || s->process_start_time == start_time(p->pid));
}

/* True for an arena that can be read to its end. One spread over NUMA nodes is several mappings in a row. */
static bool usable(const struct fdri_live_process *p)
{
    const struct fdri_arena_superblock *s = &p->super;
    uint64_t last;
    return memcmp(s->magic, FDRI_ARENA_MAGIC, sizeof s->magic) == 0 && s->arena_bytes <= UINT32_MAX &&
           s->arena_bytes >= 65536 &&
           fdri_live_process_read(p, s->arena_bytes - sizeof last, &last, sizeof last) == 0 &&
           s->arena_bytes >= s->bins_off && s->bins_off >= FDRI_ARENA_SUPERBLOCK_BYTES &&
           s->bin_bytes >= FDRI_ARENA_BIN_MIN_BYTES && s->bin_bytes <= FDRI_ARENA_BIN_MAX_BYTES &&
           (s->bin_bytes & (s->bin_bytes - 1)) == 0;
}

/* ---- its mappings ---- */

static bool is_file(int fd, const struct mapping *m)
{
    struct stat st;
    return fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_ino == m->inode &&
           (st.st_dev == m->device || (uint64_t)st.st_size >= m->to - m->from);
}

static int open_checked(const char *path, const struct mapping *m)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd >= 0 && is_file(fd, m)) return fd;
    if (fd >= 0) close(fd);
    return -1;
}

/* Opens the file by one of three names: as the process sees it, a descriptor of the process, or the mapping itself.
 * Only root may open the last one. */
static int open_mapped(uint32_t pid, const struct mapping *m)
{
    char path[4352];
    snprintf(path, sizeof path, "/proc/%u/root%s", pid, m->path);
    int fd = open_checked(path, m);
    if (fd < 0) fd = open_checked(m->path, m);
    snprintf(path, sizeof path, "/proc/%u/map_files/%llx-%llx", pid, (unsigned long long)m->from,
             (unsigned long long)m->to);
    if (fd < 0) fd = open_checked(path, m);
    snprintf(path, sizeof path, "/proc/%u/fd", pid);
    DIR *all = fd < 0 ? opendir(path) : NULL;
    for (struct dirent *e; all && fd < 0 && (e = readdir(all));) {
        snprintf(path, sizeof path, "/proc/%u/fd/%s", pid, e->d_name);
        if (e->d_name[0] != '.') fd = open_checked(path, m);
    }
    if (all) closedir(all);
    return fd;
}

/* True for a mapping that is readable and writable, begins at offset 0 and is large enough for an arena. */
static bool candidate(const char *line, struct mapping *m)
{
    unsigned long long from, to, offset, inode;
    unsigned device_major, device_minor;
    char perms[8];
    int path = 0;
    if (sscanf(line, "%llx-%llx %7s %llx %x:%x %llu %n", &from, &to, perms, &offset, &device_major, &device_minor,
               &inode, &path) < 7)
        return false;
    if (perms[0] != 'r' || perms[1] != 'w' || offset || to - from < 65536) return false;
    if (path == 0 || (inode && perms[3] != 's')) return false; /* a program's data segment */
    *m = (struct mapping){.from = from, .to = to, .inode = inode, .device = makedev(device_major, device_minor)};
    size_t n = strcspn(line + path, "\n");
    snprintf(m->path, sizeof m->path, "%.*s", (int)n, line + path);
    return true;
}

/* 1: found; 0: this mapping is no arena; else -errno. */
static int examine_mapping(const struct mapping *m, struct fdri_live_process *p)
{
    p->address = m->from;
    p->fd = m->inode ? open_mapped(p->task, m) : -1;
    int e = fdri_live_process_read(p, 0, &p->super, sizeof p->super);
    if (!e && usable(p)) return 1;
    fdri_live_process_close(p);
    return e == -EPERM || e == -EACCES ? e : 0;
}

/* A thread of the process that has not ended. The kernel shows neither memory nor files of an ended one, not even of
 * the first thread while others go on. */
static uint32_t living_task(uint32_t pid)
{
    char path[64], text[2];
    uint32_t found = 0;
    if (read_text(pid, "maps", text, sizeof text)) return pid;
    snprintf(path, sizeof path, "/proc/%u/task", pid);
    DIR *tasks = opendir(path);
    for (struct dirent *e; tasks && !found && (e = readdir(tasks));) {
        uint32_t task = (uint32_t)strtoul(e->d_name, NULL, 10);
        if (task && read_text(task, "maps", text, sizeof text)) found = task;
    }
    if (tasks) closedir(tasks);
    return found ? found : pid;
}

static bool fail(char *message, size_t message_bytes, uint32_t pid, const char *what)
{
    snprintf(message, message_bytes, "process %u: %s", pid, what);
    return false;
}

/* True if the process is in another time namespace. Its start time then looks different, so arena_is_its_own()
 * fails. */
static bool other_time_namespace(uint32_t pid)
{
    char path[64];
    struct stat ours, its;
    snprintf(path, sizeof path, "/proc/%u/ns/time", pid);
    return stat("/proc/self/ns/time", &ours) == 0 && stat(path, &its) == 0 && ours.st_ino != its.st_ino;
}

bool fdri_live_process_find(uint32_t pid, struct fdri_live_process *p, char *message, size_t message_bytes)
{
    char path[64], *line = NULL;
    size_t room = 0;
    struct mapping m;
    int found = 0, refused = 0;
    bool others = false;
    *p = (struct fdri_live_process){.pid = pid, .task = living_task(pid), .fd = -1};
    snprintf(path, sizeof path, "/proc/%u/maps", p->task);
    FILE *maps = fopen(path, "re");
    if (!maps) return fail(message, message_bytes, pid, errno == ENOENT ? "there is no such process" : strerror(errno));
    errno = 0;
    while (found != 1 && getline(&line, &room, maps) > 0) {
        if (!candidate(line, &m)) continue;
        found = examine_mapping(&m, p);
        refused = found < 0 ? found : refused;
        if (found != 1 || arena_is_its_own(p)) continue;
        fdri_live_process_close(p);
        others = true;
        found = 0;
    }
    int e = ferror(maps) ? errno : 0;
    free(line);
    fclose(maps);
    if (found == 1 && p->super.format_version != FDRI_ARENA_FORMAT_VERSION) {
        fdri_live_process_close(p);
        snprintf(message, message_bytes, "process %u: format version %u, but this reader knows version %u only", pid,
                 p->super.format_version, FDRI_ARENA_FORMAT_VERSION);
        return false;
    }
    if (found == 1) return true;
    return fail(message, message_bytes, pid,
                others && other_time_namespace(p->task)
                    ? "it has the clocks of another time namespace; enter it with nsenter -T -t PID"
                : others       ? "maps the recording of another process, it records nothing itself"
                : refused || e ? strerror(e ? e : -refused)
                               : "records nothing now");
}
