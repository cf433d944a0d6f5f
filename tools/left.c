/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "tools/left.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/common.h"
#include "tools/live.h"

static void look(struct left *l)
{
    char message[256];
    struct fdr_file *file = NULL;
    fdr_file_open(l->path, &file, message, sizeof message);
    l->readable = file != NULL;
    if (!file) return;
    l->pid = fdr_file_info(file)->pid;
    l->bare = fdr_file_info(file)->reason[0] == '\0';
    l->live = written_by(l->path, fdr_file_info(file)) != 0;
    fdr_file_close(file);
}

static bool add(struct left_list *list, const char *path, const struct stat *st)
{
    struct left **wider = realloc(list->entry, (list->count + 1) * sizeof *wider);
    if (wider) list->entry = wider;
    struct left *l = wider ? calloc(1, sizeof *l) : NULL;
    if (!l) return false;
    snprintf(l->path, sizeof l->path, "%s", path);
    l->stat = *st;
    look(l);
    list->entry[list->count++] = l;
    return true;
}

static int find(const char *directory, struct left_list *list, int depth)
{
    char path[4096];
    struct stat st;
    DIR *d = opendir(directory);
    if (!d && errno == ENOENT) return DONE;
    if (!d) {
        complain("%s: %s", directory, strerror(errno));
        return COULD_NOT;
    }
    int status = DONE;
    for (struct dirent *e; (e = readdir(d));) {
        if (snprintf(path, sizeof path, "%s/%s", directory, e->d_name) >= (int)sizeof path || lstat(path, &st))
            continue;
        if (S_ISREG(st.st_mode) && ends_in(e->d_name, ".fdr")) add(list, path, &st);
        else if (S_ISDIR(st.st_mode) && depth == 0 && strncmp(e->d_name, "run-", 4) == 0)
            status = worse(status, find(path, list, 1));
    }
    closedir(d);
    return status;
}

static int by_age(const void *x, const void *y)
{
    const struct left *a = *(struct left *const *)x, *b = *(struct left *const *)y;
    if (a->stat.st_mtime != b->stat.st_mtime) return a->stat.st_mtime < b->stat.st_mtime ? -1 : 1;
    return strcmp(a->path, b->path);
}

int left_find(const char *directory, struct left_list *list)
{
    int status = find(directory, list, 0);
    if (list->count) qsort(list->entry, list->count, sizeof *list->entry, by_age);
    return status;
}

void left_free(struct left_list *list)
{
    for (size_t i = 0; i < list->count; i++) free(list->entry[i]);
    free(list->entry);
    *list = (struct left_list){0};
}

const char *left_name(const struct left *l) { return strrchr(l->path, '/') + 1; }

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
            if (memcmp(block + i, zero, bytes) != 0 && pwrite(to, block + i, bytes, at + i) != (ssize_t)bytes)
                return errno ? -errno : -EIO;
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
        e = link(part, to) ? -errno : 0; /* never over another one */
        if (e == -EPERM || e == -EOPNOTSUPP) e = renameat2(AT_FDCWD, part, AT_FDCWD, to, RENAME_NOREPLACE) ? -errno : 0;
    }
    unlink(part);
    return e;
}

int left_copy(const struct left *l, const char *directory, char *to, size_t to_bytes)
{
    char part[4352];
    snprintf(part, sizeof part, "%s/.%s.%d.part", directory, left_name(l), (int)getpid());
    int from = open(l->path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
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
    return e ? e : give_name(part, directory, left_name(l), to, to_bytes);
}
