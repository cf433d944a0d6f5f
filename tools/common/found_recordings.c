/* SPDX-License-Identifier: MIT */
/* Finds recordings in directories, separates live ones from left ones, copies and removes them. */
#define _GNU_SOURCE
#include "tools/common/found_recordings.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tools/common/verbs.h"
#include "tools/common/live_files.h"

static bool same_file(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino && S_ISREG(b->st_mode);
}

/* Opens the file that was found, never another one that took its name since; else -1 and errno. */
static int open_found(const struct found_recording *l)
{
    struct stat now;
    int fd = openat(l->dir, recording_name(l), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0 || (fstat(fd, &now) == 0 && same_file(&l->stat, &now))) return fd;
    close(fd);
    errno = ESTALE;
    return -1;
}

/* Finds the mapping process before it opens the file: opening may map it, and the writer may end meanwhile. A live file
 * counts as live even if it cannot be read. */
static void examine_file(struct found_recording *l)
{
    char message[256], path[64];
    struct fdr_file *file = NULL;
    bool named_live = ends_in(recording_name(l), ".live.fdr");
    l->writer = named_live ? mapped_by(&l->stat, 0) : 0;
    int fd = open_found(l);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (fd >= 0) fdr_file_open(path, &file, message, sizeof message);
    if (fd >= 0) close(fd);
    l->readable = file != NULL;
    if (file && !named_live) l->writer = written_by(l->path, fdr_file_info(file));
    else if (file && !l->writer) l->writer = hidden_writer(fdr_file_info(file));
    if (file) l->pid = fdr_file_info(file)->pid;
    l->live = l->writer != 0;
    l->unneeded = named_live && file && !l->live && fdr_file_info(file)->over;
    if (file) fdr_file_close(file);
}

/* True for the temporary name of a snapshot, a bundle or a copy: "....fdr.NUMBER.part", "....crash.NUMBER.part",
 * "....fdr.part". */
static bool is_part(const char *name)
{
    return ends_in(name, ".part") && (strstr(name, ".fdr.") || strstr(name, ".crash."));
}

static bool add(struct found_list *list, int dir, const char *path, const struct stat *st)
{
    struct found_recording **wider = realloc(list->entry, (list->count + 1) * sizeof *wider);
    if (wider) list->entry = wider;
    struct found_recording *l = wider ? calloc(1, sizeof *l) : NULL;
    if (!l) return false;
    snprintf(l->path, sizeof l->path, "%s", path);
    l->dir = dir;
    l->stat = *st;
    l->temporary = is_part(recording_name(l));
    if (l->temporary) l->live = (l->writer = opened_by(st)) != 0;
    else examine_file(l);
    list->entry[list->count++] = l;
    return true;
}

static bool has_owner(const struct stat *st, long owner)
{
    return owner == RECORDINGS_ANY_OWNER || st->st_uid == (uid_t)owner;
}

/* Opens a directory and keeps it open as long as the list. -1 and errno if there is none, or none of this owner. */
static int open_directory(struct found_list *list, int at, const char *name, long owner)
{
    struct stat st;
    int flags = owner == RECORDINGS_ANY_OWNER && at == AT_FDCWD ? 0 : O_NOFOLLOW;
    int *wider = realloc(list->dir, (list->dirs + 1) * sizeof *wider);
    if (!wider) return -1;
    list->dir = wider;
    int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | flags);
    if (fd < 0) return -1;
    list->dir[list->dirs++] = fd;
    if (fstat(fd, &st) == 0 && has_owner(&st, owner)) return fd;
    errno = EPERM;
    return -1;
}

static int add_if_recording(int at, const char *name, const char *directory, long owner, struct found_list *list)
{
    char path[4096];
    struct stat st;
    int dir = open_directory(list, at, name, owner), status = DONE;
    DIR *d = dir >= 0 ? fdopendir(openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)) : NULL;
    if (!d && errno == ENOENT && (!list->named || at != AT_FDCWD)) return DONE;
    if (!d) {
        complain("%s: %s", directory, strerror(errno));
        return COULD_NOT;
    }
    for (struct dirent *e; (e = readdir(d));) {
        if (snprintf(path, sizeof path, "%s/%s", directory, e->d_name) >= (int)sizeof path ||
            fstatat(dir, e->d_name, &st, AT_SYMLINK_NOFOLLOW) || !has_owner(&st, owner))
            continue;
        if (S_ISREG(st.st_mode) && (ends_in(e->d_name, ".fdr") || (list->temporaries && is_part(e->d_name))))
            add(list, dir, path, &st);
        else if (S_ISDIR(st.st_mode) && at == AT_FDCWD && strncmp(e->d_name, "run-", 4) == 0)
            status = worse(status, add_if_recording(dir, e->d_name, path, owner, list));
    }
    closedir(d);
    return status;
}

static int by_age(const void *x, const void *y)
{
    const struct found_recording *a = *(struct found_recording *const *)x, *b = *(struct found_recording *const *)y;
    if (a->stat.st_mtime != b->stat.st_mtime) return a->stat.st_mtime < b->stat.st_mtime ? -1 : 1;
    return strcmp(a->path, b->path);
}

int recordings_find(const char *directory, long owner, struct found_list *list)
{
    int status = add_if_recording(AT_FDCWD, directory, directory, owner, list);
    if (list->count) qsort(list->entry, list->count, sizeof *list->entry, by_age);
    return status;
}

static void remove_if_empty(int dir)
{
    DIR *d = fdopendir(openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    for (struct dirent *e; d && (e = readdir(d));) {
        long pid = strncmp(e->d_name, "run-", 4) ? 0 : strtol(e->d_name + 4, NULL, 10);
        if (pid > 0 && pid <= INT_MAX && kill((pid_t)pid, 0) && errno == ESRCH) unlinkat(dir, e->d_name, AT_REMOVEDIR);
    }
    if (d) closedir(d);
}

void recordings_remove_empty_folders(const struct found_list *list)
{
    for (size_t i = 0; i < list->dirs; i++) remove_if_empty(list->dir[i]);
}

void recordings_free(struct found_list *list)
{
    for (size_t i = 0; i < list->count; i++) free(list->entry[i]);
    free(list->entry);
    for (size_t i = 0; i < list->dirs; i++) close(list->dir[i]);
    free(list->dir);
    *list = (struct found_list){0};
}

const char *recording_name(const struct found_recording *l) { return strrchr(l->path, '/') + 1; }

bool recording_vanished(const struct found_recording *l)
{
    struct stat now;
    return fstatat(l->dir, recording_name(l), &now, AT_SYMLINK_NOFOLLOW) ? errno == ENOENT : !same_file(&l->stat, &now);
}

int recording_remove(const struct found_recording *l)
{
    struct stat now;
    if (fstatat(l->dir, recording_name(l), &now, AT_SYMLINK_NOFOLLOW)) return -errno;
    if (!same_file(&l->stat, &now)) return -ESTALE;
    return unlinkat(l->dir, recording_name(l), 0) ? -errno : 0;
}

/* ---- copies ---- */

static int copy_bytes(int from, int to)
{
    static char block[1 << 18];
    static const char zero[4096];
    off_t at = 0;
    for (;;) {
        ssize_t n = pread(from, block, sizeof block, at);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return -errno;
        if (n == 0) break;
        for (ssize_t i = 0; i < n; i += 4096) {
            size_t bytes = n - i < 4096 ? (size_t)(n - i) : 4096;
            ssize_t put = memcmp(block + i, zero, bytes) != 0 ? pwrite(to, block + i, bytes, at + i) : (ssize_t)bytes;
            /* a short write means that the disk is full */
            if (put != (ssize_t)bytes) return put < 0 ? -errno : -ENOSPC;
        }
        at += n;
    }
    return ftruncate(to, at) || fsync(to) ? -errno : 0;
}

static int give_name(const char *part, const char *directory, const char *name, char *to, size_t to_bytes)
{
    int stem = (int)(strlen(name) - strlen(".fdr"));
    int e = -EEXIST;
    for (unsigned n = 1; n < 10000 && e == -EEXIST; n++) {
        if (n == 1) snprintf(to, to_bytes, "%s/%s", directory, name);
        else snprintf(to, to_bytes, "%s/%.*s.%u.fdr", directory, stem, name, n);
        e = link(part, to) ? -errno : 0; /* never overwrites another file */
        if (e == -EPERM || e == -EOPNOTSUPP) e = renameat2(AT_FDCWD, part, AT_FDCWD, to, RENAME_NOREPLACE) ? -errno : 0;
    }
    unlink(part);
    return e;
}

int recording_copy(const struct found_recording *l, const char *directory, char *to, size_t to_bytes)
{
    char part[4352];
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now); /* a unique name: other writers, dead or alive, may have left theirs */
    snprintf(part, sizeof part, "%s/.%s.%lld%09ld.part", directory, recording_name(l), (long long)now.tv_sec,
             now.tv_nsec);
    int from = open_found(l);
    if (from < 0) return -errno;
    int fd = open(part, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    int e = fd < 0 ? -errno : copy_bytes(from, fd);
    if (fd >= 0) {
        if (l->stat.st_uid != getuid()) (void)!fchown(fd, l->stat.st_uid, l->stat.st_gid);
        fchmod(fd, l->stat.st_mode & 0777);
        close(fd);
    }
    close(from);
    if (e && fd >= 0) unlink(part);
    return e ? e : give_name(part, directory, recording_name(l), to, to_bytes);
}
