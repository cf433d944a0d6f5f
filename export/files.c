/* SPDX-License-Identifier: MIT */
/* Names of snapshots, and how many may stay. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/say.h"
#include "export/export.h"

enum { REMEMBERED = 256 };

static struct { char path[FDRI_PATH_MAX]; uint64_t bytes; } ring[REMEMBERED]; /* newest at (written - 1) % REMEMBERED */
static uint64_t written, removed;   /* of this recording */
static uint64_t bytes_on_disk;
static uint32_t next_number = 1;

void fdri_files_reset(void) { written = removed = bytes_on_disk = 0; }

const char *fdri_files_last(void) { return written ? ring[(written - 1) % REMEMBERED].path : ""; }

static void remove_oldest(void)
{
    uint64_t i = removed++ % REMEMBERED;
    if (unlink(ring[i].path) && errno != ENOENT) fdri_say("%s: %s; it stays", ring[i].path, strerror(errno));
    bytes_on_disk -= ring[i].bytes;
}

/* About what a snapshot would take now. */
static uint64_t size_now(void)
{
    const struct fdr_superblock *s = (const void *)fdri_view.base;
    uint64_t virgin = fdr_load_relaxed(&s->virgin);
    return (uint64_t)(uint32_t)virgin * s->bin_bytes + fdri_view.bytes - (virgin >> 32) * FDR_META_ALIGN;
}

int fdri_files_admit(void)
{
    static unsigned said;
    uint64_t kept = written - removed;
    uint64_t guess = written ? ring[(written - 1) % REMEMBERED].bytes : size_now();
    bool many = kept >= fdri_view.keep || kept >= REMEMBERED, large = bytes_on_disk + guess > fdri_view.disk_bytes;
    if (!many && !large) return 0;
    if (fdri_view.keep_newest && kept) {
        while (written - removed >= fdri_view.keep || (written > removed && bytes_on_disk + guess > fdri_view.disk_bytes))
            remove_oldest();
        return 0;
    }
    if (fdri_once(&said))
        fdri_say("no more snapshots: %s (%llu kept, %llu bytes); FDR_KEEP=N,newest keeps the newest instead",
                 many ? "FDR_KEEP is reached" : "FDR_DISK is used up", (unsigned long long)kept, (unsigned long long)bytes_on_disk);
    return -EDQUOT;
}

static void make_path(char *to, size_t bytes, uint32_t number, const char *end)
{
    char host[64] = "host", rank[16] = "";
    gethostname(host, sizeof host - 1);
    if (fdri_view.rank >= 0) snprintf(rank, sizeof rank, ".r%d", fdri_view.rank);
    snprintf(to, bytes, "%s/%s.%s.%d%s.%u.%s", fdri_view.dir, fdri_view.name, host, (int)getpid(), rank, number, end);
}

int fdri_file_begin(struct fdri_new_file *f)
{
    make_path(f->temporary, sizeof f->temporary, next_number, "fdr.part");
    unlink(f->temporary); /* ours by its pid; left by a process that died while it wrote */
    f->fd = open(f->temporary, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (f->fd >= 0) return 0;
    int e = errno;
    fdri_say("FDR_DIR=%s: %s; no snapshot was written", fdri_view.dir, strerror(e));
    return -e;
}

void fdri_file_abandon(struct fdri_new_file *f)
{
    close(f->fd);
    unlink(f->temporary);
}

static void remember(const struct fdri_new_file *f)
{
    struct stat st = {0};
    uint64_t i = written % REMEMBERED;
    fstat(f->fd, &st);
    memcpy(ring[i].path, f->path, sizeof ring[i].path);
    ring[i].bytes = (uint64_t)st.st_blocks * 512;
    bytes_on_disk += ring[i].bytes;
    written++;
    close(f->fd);
}

/* As renameat2(RENAME_NOREPLACE), also on file systems that do not know it. */
static int rename_new(const char *from, const char *to)
{
    if (renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE) == 0) return 0;
    if (errno != EINVAL && errno != ENOSYS) return -errno;
    if (link(from, to)) return -errno;
    unlink(from);
    return 0;
}

int fdri_file_commit(struct fdri_new_file *f)
{
    int e = -EEXIST;
    for (int tries = 0; tries < 10000 && e == -EEXIST; tries++) {
        make_path(f->path, sizeof f->path, next_number++, "fdr");
        e = rename_new(f->temporary, f->path);
    }
    if (!e) {
        remember(f);
        return 0;
    }
    fdri_say("%s: %s; no snapshot was written", f->path, strerror(-e));
    fdri_file_abandon(f);
    return e;
}
