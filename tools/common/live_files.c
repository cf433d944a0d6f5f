/* SPDX-License-Identifier: MIT */
/* Finds the processes that map, hold open or write a file, through /proc. */
#include "tools/common/live_files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

const char *live_directory(void)
{
    static char path[64];
    const char *given = getenv("FDR_LIVE_DIR");
    if (given && given[0]) return given;
    snprintf(path, sizeof path, "/dev/shm/fdr-%u", (unsigned)geteuid());
    return path;
}

/* True if this task has the file. *seen: there was something to look at. */
typedef bool task_holds(const char *task, const struct stat *file, bool *seen);

/* True if a task of the process has the file. If the first thread has ended, only the others show the process's
 * mappings and descriptors. */
static bool process_holds(task_holds *holds, const char *pid, const struct stat *file)
{
    char path[64];
    bool seen = false, found = holds(pid, file, &seen);
    if (seen) return found;
    snprintf(path, sizeof path, "/proc/%s/task", pid);
    DIR *tasks = opendir(path);
    for (struct dirent *e; tasks && !seen && (e = readdir(tasks));)
        if (e->d_name[0] != '.') found = holds(e->d_name, file, &seen);
    if (tasks) closedir(tasks);
    return found;
}

/* A line of maps is "start-end perms offset major:minor inode path". */
static bool maps_hold(const char *task, const struct stat *file, bool *seen)
{
    char path[280], *line = NULL;
    size_t room = 0;
    unsigned device_major, device_minor;
    unsigned long inode;
    bool found = false;
    snprintf(path, sizeof path, "/proc/%s/maps", task);
    FILE *maps = fopen(path, "re");
    while (maps && !found && getline(&line, &room, maps) > 0) {
        *seen = true;
        found = sscanf(line, "%*s %*s %*s %x:%x %lu", &device_major, &device_minor, &inode) == 3 &&
                inode == file->st_ino && device_major == major(file->st_dev) && device_minor == minor(file->st_dev);
    }
    free(line);
    if (maps) fclose(maps);
    return found;
}

/* This process's number in /proc, which may belong to another pid namespace. The reader maps the files that it reads
 * and must not count as their writer. */
static uint32_t this_process(void)
{
    char name[16] = "";
    return readlink("/proc/self", name, sizeof name - 1) > 0 ? (uint32_t)strtoul(name, NULL, 10) : 0;
}

uint32_t mapped_by(const struct stat *file, uint32_t pid)
{
    char name[16];
    struct dirent *entry;
    uint32_t found = 0, own = this_process();
    snprintf(name, sizeof name, "%u", pid);
    if (pid && pid != own && process_holds(maps_hold, name, file)) return pid;
    /* The pid may be of another container, or a forked child may still map the recording. */
    DIR *proc = opendir("/proc");
    while (proc && !found && (entry = readdir(proc))) {
        uint32_t other = (uint32_t)strtoul(entry->d_name, NULL, 10);
        if (other && other != own && process_holds(maps_hold, entry->d_name, file)) found = other;
    }
    if (proc) closedir(proc);
    return found;
}

static bool has_open(const char *task, const struct stat *file, bool *seen)
{
    char path[280];
    struct stat st;
    bool found = false;
    snprintf(path, sizeof path, "/proc/%s/fd", task);
    DIR *d = opendir(path);
    for (struct dirent *e; d && !found && (e = readdir(d)); *seen |= e->d_name[0] != '.')
        found = fstatat(dirfd(d), e->d_name, &st, 0) == 0 && st.st_ino == file->st_ino && st.st_dev == file->st_dev;
    if (d) closedir(d);
    return found;
}

uint32_t opened_by(const struct stat *file)
{
    uint32_t found = 0;
    DIR *proc = opendir("/proc");
    for (struct dirent *e; proc && !found && (e = readdir(proc));)
        if (e->d_name[0] >= '1' && e->d_name[0] <= '9' && process_holds(has_open, e->d_name, file))
            found = (uint32_t)strtoul(e->d_name, NULL, 10);
    if (proc) closedir(proc);
    return found;
}

bool may_be_live(const struct fdr_file_info *info) { return !info->reason[0] && strcmp(info->state, "recording") == 0; }

/* The start of a process in clock ticks since boot, or 0: field 22, 20 words behind the name, which may contain
 * anything. */
static uint64_t began_after_boot(uint32_t pid)
{
    char path[64], text[1024];
    snprintf(path, sizeof path, "/proc/%u/stat", pid);
    FILE *stat = fopen(path, "re");
    size_t n = stat ? fread(text, 1, sizeof text - 1, stat) : 0;
    if (stat) fclose(stat);
    text[n] = 0;
    const char *p = strrchr(text, ')');
    for (int i = 0; p && i < 20; i++) p = strchr(p + 1, ' ');
    return p ? strtoull(p + 1, NULL, 10) : 0;
}

/* The same in ns since 1970, or 0. */
static uint64_t start_realtime(uint32_t pid)
{
    struct timespec boot, real;
    uint64_t ticks = began_after_boot(pid);
    clock_gettime(CLOCK_BOOTTIME, &boot);
    clock_gettime(CLOCK_REALTIME, &real);
    uint64_t since_boot = ticks * (1000000000u / (uint64_t)sysconf(_SC_CLK_TCK));
    uint64_t up = (uint64_t)boot.tv_sec * 1000000000u + (uint64_t)boot.tv_nsec;
    uint64_t now = (uint64_t)real.tv_sec * 1000000000u + (uint64_t)real.tv_nsec;
    return ticks && since_boot <= up ? now - (up - since_boot) : 0;
}

/* The errno of reading the mappings of a process; 0: permitted. */
static int maps_refused(uint32_t pid)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%u/maps", pid);
    FILE *maps = fopen(path, "re");
    int e = maps ? 0 : errno;
    if (maps) fclose(maps);
    return e;
}

/* kill() would take 0 and negative numbers for groups of processes. */
static bool process_exists(uint32_t pid)
{
    return pid && pid <= INT32_MAX && (kill((pid_t)pid, 0) == 0 || errno == EPERM);
}

/* With hidepid=2, /proc shows nothing of a process that this user may not inspect. If a process with this pid exists,
 * it counts as the writer: the pid may be reused, but then only a superfluous file stays. */
uint32_t hidden_writer(const struct fdr_file_info *info)
{
    enum { SAME_BEGINNING = 2000000000 }; /* a reused pid began later; the tolerance is for clocks that were set */
    struct utsname own;
    if (!may_be_live(info) || uname(&own) || strcmp(own.nodename, info->host) != 0) return 0;
    int e = maps_refused(info->pid);
    if (e == ENOENT) return process_exists(info->pid) ? info->pid : 0;
    if (e != EACCES && e != EPERM) return 0;
    uint64_t start = start_realtime(info->pid);
    return start && start <= info->created_realtime_ns + SAME_BEGINNING ? info->pid : 0;
}

uint32_t written_by(const char *path, const struct fdr_file_info *info)
{
    struct stat st;
    if (!may_be_live(info) || stat(path, &st) != 0) return 0;
    uint32_t pid = mapped_by(&st, info->pid);
    return pid ? pid : hidden_writer(info);
}

bool ends_in(const char *name, const char *end)
{
    size_t a = strlen(name), b = strlen(end);
    return a > b && strcmp(name + a - b, end) == 0;
}

bool is_unread(const struct stat *file) { return (file->st_mode & 07777) == 0600; }

void mark_read(const char *path)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0) return;
    if (ends_in(path, ".fdr") && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && is_unread(&st)) (void)!fchmod(fd, 0400);
    close(fd);
}
