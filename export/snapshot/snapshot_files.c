/* SPDX-License-Identifier: MIT */
/* Names of snapshots, and the number that may stay: FDR_KEEP, FDR_DISK and the limits of triggers. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/bits.h"
#include "base/clock.h"
#include "base/fd/kept_open.h"
#include "base/fd/open_high.h"
#include "base/system/signal_mask.h"
#include "base/system/syscall.h"
#include "base/text/message.h"
#include "export/crash/crash_path.h"
#include "export/snapshot/snapshot.h"
#include "export/view.h"
#include "format/arena/arena.h"

enum { REMEMBERED = FDRI_EXPORT_KEEP_MAX + 1 }; /* as many as may stay, and the new one */

static struct snapshot_file {
    char path[FDRI_SNAPSHOT_PATH_MAX];
    uint64_t bytes, owner;
    bool removed;
} known[REMEMBERED]; /* the oldest first */
static uint32_t known_count;
static uint64_t written; /* of this recording */
static uint64_t bytes_on_disk;
static uint32_t next_number = 1;

/* ---- failures: each errno is reported once in a recording, repetitions are counted ---- */

static uint64_t said_errors[4]; /* a bit for each errno */
static struct {
    uint64_t owner;
    uint8_t said; /* a bit for each reason */
} refusals[FDRI_EXPORT_TRIGGERS + 1];
static uint64_t unsaid;

bool fdri_snapshot_files_failed(int e)
{
    uint32_t i = (uint32_t)-e % 256;
    bool first = !(said_errors[i / 64] >> i % 64 & 1);
    said_errors[i / 64] |= 1ull << i % 64;
    unsaid += !first;
    return first;
}

uint64_t fdri_snapshot_files_unsaid(void)
{
    uint64_t n = unsaid;
    unsaid = 0;
    return n;
}

void fdri_snapshot_files_reset(void)
{
    written = bytes_on_disk = unsaid = 0;
    known_count = 0;
    memset(said_errors, 0, sizeof said_errors);
    memset(refusals, 0, sizeof refusals);
}

const char *fdri_snapshot_files_last(void) { return known_count ? known[known_count - 1].path : ""; }

/* The remembered snapshots of one owner; owner 0: of all. */
struct remembered {
    uint32_t count;
    uint64_t bytes;
    struct snapshot_file *oldest; /* NULL none */
};
static struct remembered remembered_of(uint64_t owner)
{
    struct remembered a = {0};
    for (uint32_t i = 0; i < known_count; i++) {
        struct snapshot_file *k = &known[i];
        if (k->removed || (owner && k->owner != owner)) continue;
        if (!a.count++) a.oldest = k;
        a.bytes += k->bytes;
    }
    return a;
}

static int at_dir(const char *path, const char **name)
{
    return fdri_fd_kept_at(&fdri_snapshot_view.kept_dir, path, name);
}

static void remove_snapshot(struct snapshot_file *k)
{
    const char *name;
    int at = at_dir(k->path, &name);
    if (unlinkat(at, name, 0) && errno != ENOENT) fdri_text_message("%s: %s; it stays", k->path, strerror(errno));
    k->removed = true;
    bytes_on_disk -= k->bytes;
}

/* Forgets snapshots that were moved away or removed by others, so they use no quota. True: there were some. */
static bool forget_moved(void)
{
    bool any = false;
    for (uint32_t i = 0; i < known_count; i++) {
        struct snapshot_file *k = &known[i];
        struct stat s;
        const char *name;
        int at = k->removed ? -1 : at_dir(k->path, &name);
        if (k->removed || !fstatat(at, name, &s, AT_SYMLINK_NOFOLLOW) || errno != ENOENT) continue;
        any = k->removed = true;
        bytes_on_disk -= k->bytes;
    }
    return any;
}

/* The approximate size of a snapshot taken now. */
static uint64_t size_now(void)
{
    const struct fdri_arena_superblock *s = (const void *)fdri_snapshot_view.base;
    uint64_t virgin = fdri_atomic_load_relaxed(&s->virgin);
    return (uint64_t)(uint32_t)virgin * s->bin_bytes + fdri_snapshot_view.bytes -
           (virgin >> 32) * FDRI_ARENA_META_ALIGN;
}

/* The limit that forbids another snapshot. */
enum obstacle { NONE, TRIGGER_KEEP, KEEP, TOO_SMALL, USED_UP };
static const char *const obstacle_text[] = {
    [TRIGGER_KEEP] = "it keeps as many as its limit allows",
    [KEEP] = "FDR_KEEP is reached",
    [TOO_SMALL] = "FDR_DISK is less than the size of one snapshot",
    [USED_UP] = "FDR_DISK is used up",
};

/* Checks the limits of one trigger, or with owner 0 of the process. `leaving`: snapshots that can be removed now, or
 * will be when the new one exists. */
static enum obstacle limit_reached(const struct fdri_snapshot_quota *q, uint64_t guess,
                                   const struct remembered *leaving)
{
    uint64_t most = fdri_bits_min((uint64_t)q->keep, (uint64_t)REMEMBERED) + leaving->count;
    if (!q->keep_newest && remembered_of(q->owner).count >= most) return q->owner ? TRIGGER_KEEP : KEEP;
    if (guess > fdri_snapshot_view.disk_bytes) return TOO_SMALL;
    return bytes_on_disk - leaving->bytes + guess > fdri_snapshot_view.disk_bytes ? USED_UP : NONE;
}

/* Reports each reason once for a trigger and recording; the message "no more" covers the next ones. */
static int report_refusal(const struct fdri_snapshot_quota *q, enum obstacle why)
{
    uint64_t place = q->owner % (FDRI_EXPORT_TRIGGERS + 1);
    if (refusals[place].owner != q->owner) refusals[place].said = 0;
    refusals[place].owner = q->owner;
    bool first = !(refusals[place].said >> why & 1);
    refusals[place].said |= (uint8_t)(1u << why);
    if (first)
        fdri_text_message("no more snapshots%s%s: %s (%llu written, %llu bytes kept; FDR_DISK is %llu)%s",
                          q->owner ? " of trigger " : "", q->owner ? q->name : "", obstacle_text[why],
                          (unsigned long long)written, (unsigned long long)bytes_on_disk,
                          (unsigned long long)fdri_snapshot_view.disk_bytes,
                          q->keep_newest || why == TOO_SMALL ? ""
                          : q->owner                         ? "; 'keep N,newest' keeps the newest instead"
                                                             : "; FDR_KEEP=N,newest keeps the newest instead");
    return -EDQUOT;
}

/* The limit that forbids another snapshot, and in *whose the quota that sets it. */
static enum obstacle obstacle_to(const struct fdri_snapshot_quota *quota, const struct fdri_snapshot_quota *whole,
                                 uint64_t guess, const struct fdri_snapshot_quota **whose)
{
    struct remembered mine = quota->keep_newest ? remembered_of(quota->owner) : (struct remembered){0}, any = mine;
    enum obstacle why = limit_reached(quota, guess, &mine);
    *whose = why ? quota : whole;
    if (why) return why;
    any.count = mine.count >= quota->keep ? mine.count + 1 - quota->keep : 0;
    if (whole->keep_newest) any = remembered_of(0);
    return limit_reached(whole, guess, &any);
}

/* Removes old snapshots now only for their bytes, and only if that is enough. Those beyond the number to keep go when
 * the new one exists, because writing it may fail. */
int fdri_snapshot_files_admit(const struct fdri_snapshot_quota *quota)
{
    uint64_t guess = fdri_bits_max(known_count ? known[known_count - 1].bytes : 0, size_now());
    const struct fdri_snapshot_quota whole = fdri_snapshot_whole_quota(), *whose;
    enum obstacle why = obstacle_to(quota, &whole, guess, &whose);
    if (why && forget_moved()) why = obstacle_to(quota, &whole, guess, &whose);
    if (why) return report_refusal(whose, why);
    uint64_t owner = quota->keep_newest ? quota->owner : 0;
    for (struct remembered a; (a = remembered_of(owner)).oldest;) {
        if (a.count < REMEMBERED && bytes_on_disk + guess <= fdri_snapshot_view.disk_bytes) break;
        remove_snapshot(a.oldest);
    }
    return 0;
}

/* Free bytes in the snapshot directory. */
static uint64_t free_disk_bytes(void)
{
    struct statvfs s;
    const struct fdri_fd_kept *dir = &fdri_snapshot_view.kept_dir;
    int e = fdri_fd_is_kept(dir->fd, dir) ? fstatvfs(dir->fd, &s) : statvfs(fdri_snapshot_view.dir, &s);
    return e ? 0 : (uint64_t)s.f_bavail * s.f_frsize;
}

/* The oldest snapshot, if the next one would push it out; never the only one. NULL: none. */
static struct snapshot_file *oldest_to_remove(uint64_t owner, uint32_t keep)
{
    struct remembered a = remembered_of(owner);
    return a.count >= keep && a.count > 1 ? a.oldest : NULL;
}

/* If the second try fails as well, one old snapshot was removed in vain; after that none is due any more. Free bytes of
 * the disk count only for ENOSPC: after EDQUOT the rest of the quota is unknown. */
bool fdri_snapshot_files_make_room(const struct fdri_snapshot_quota *quota, int e)
{
    struct fdri_snapshot_quota whole = fdri_snapshot_whole_quota();
    if (!quota || (e != -ENOSPC && e != -EDQUOT)) return false;
    struct snapshot_file *oldest = quota->keep_newest ? oldest_to_remove(quota->owner, quota->keep) : NULL;
    if (!oldest && whole.keep_newest) oldest = oldest_to_remove(0, whole.keep);
    if (!oldest || oldest->bytes + (e == -ENOSPC ? free_disk_bytes() : 0) < size_now()) return false;
    remove_snapshot(oldest);
    return true;
}

void fdri_snapshot_files_trim(const struct fdri_snapshot_quota *quota)
{
    struct fdri_snapshot_quota whole = fdri_snapshot_whole_quota();
    for (struct remembered a; quota->keep_newest && (a = remembered_of(quota->owner)).count > quota->keep;)
        remove_snapshot(a.oldest);
    for (struct remembered a; whole.keep_newest && (a = remembered_of(0)).count > whole.keep;)
        remove_snapshot(a.oldest);
}

static void make_path(char *to, size_t bytes, uint32_t number, const char *end)
{
    char host[64] = "host", rank[16] = "";
    gethostname(host, sizeof host - 1);
    if (fdri_snapshot_view.rank >= 0) snprintf(rank, sizeof rank, ".r%d", fdri_snapshot_view.rank);
    snprintf(to, bytes, "%s/%s.%s.%d%s.%u.%s", fdri_snapshot_view.dir, fdri_snapshot_view.name, host,
             fdri_snapshot_view.pid, rank, number, end);
}

struct fdri_snapshot_unfinished fdri_snapshot_unfinished;

/* In a child the unfinished file is the parent's. A child that dies must not remove it. If a signal handler forked, the
 * child may return into the writing of the file. It must not write there, so its descriptor then leads to /dev/null,
 * opened read-only. */
void fdri_snapshot_files_fork(bool goes_back)
{
    int fd = fdri_snapshot_unfinished.fd;
    if (!fdri_atomic_load_relaxed(&fdri_snapshot_unfinished.path_set)) return;
    fdri_atomic_store_relaxed(&fdri_snapshot_unfinished.path_set, 0u);
    if (fd < 0) return;
    close(fd);
    int nothing = goes_back ? open("/dev/null", O_RDONLY | O_CLOEXEC) : -1;
    if (nothing < 0 || nothing == fd) return;
    fcntl(nothing, F_DUPFD_CLOEXEC, fd); /* the child has one thread, so no other can have taken the number */
    close(nothing);
}

void fdri_snapshot_files_drop(void)
{
    const char *name;
    if (!fdri_atomic_load_relaxed(&fdri_snapshot_unfinished.path_set)) return;
    int at = at_dir(fdri_snapshot_unfinished.path, &name);
    unlinkat(at, name, 0);
    if (fdri_snapshot_unfinished.fd >= 0) close(fdri_snapshot_unfinished.fd);
    fdri_atomic_store_relaxed(&fdri_snapshot_unfinished.path_set, 0u);
}

bool fdri_snapshot_file_is_ours(const struct fdri_snapshot_new_file *f) { return f->pid == fdri_export_pid(); }

/* Blocks signals: a handler that forks or exits finds the file together with its descriptor, or no file. */
static int open_new(struct fdri_snapshot_new_file *f)
{
    const char *name;
    sigset_t old;
    int at = at_dir(f->temporary, &name);
    fdri_system_signals_block(&old);
    int fd = fdri_fd_open(at, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
    f->fd = fdri_snapshot_unfinished.fd = fdri_fd_move_high(fd);
    fdri_system_signals_restore(&old);
    return fd < 0 ? fd : 0;
}

int fdri_snapshot_file_begin(struct fdri_snapshot_new_file *f)
{
    /* a unique name: a process in another container may have the same number and write here, too */
    char end[40];
    snprintf(end, sizeof end, "fdr.%" PRIu64 ".part", fdri_clock_ns(CLOCK_REALTIME));
    make_path(f->temporary, sizeof f->temporary, next_number, end);
    memcpy(fdri_snapshot_unfinished.path, f->temporary, sizeof f->temporary);
    fdri_snapshot_unfinished.fd = -1;
    f->pid = fdri_export_pid();
    /* R:unfinished - pairs with A:unfinished; before the file is created, because this thread may die right behind
     * that */
    fdri_atomic_store_release(&fdri_snapshot_unfinished.path_set, 1u);
    int e = open_new(f);
    if (!e && fdri_crash_dies()) { /* the dying thread may have looked for the file before it existed */
        fdri_snapshot_file_abandon(f);
        return -ECANCELED;
    }
    if (!e) return 0;
    fdri_atomic_store_relaxed(&fdri_snapshot_unfinished.path_set, 0u);
    if (fdri_snapshot_files_failed(e))
        fdri_text_message("FDR_DIR=%s: %s; no snapshot was written", fdri_snapshot_view.dir, strerror(-e));
    return e;
}

void fdri_snapshot_file_abandon(struct fdri_snapshot_new_file *f)
{
    const char *name;
    int at = at_dir(f->temporary, &name);
    fdri_snapshot_unfinished.fd = -1;
    close(f->fd);
    if (!fdri_snapshot_file_is_ours(f)) return;
    unlinkat(at, name, 0);
    fdri_atomic_store_relaxed(&fdri_snapshot_unfinished.path_set, 0u);
}

/* A place at the end: reuses places of removed snapshots, or else that of the oldest. */
static struct snapshot_file *new_place(void)
{
    uint32_t count = 0;
    for (uint32_t i = 0; known_count == REMEMBERED && i < REMEMBERED; i++)
        if (!known[i].removed) known[count++] = known[i];
    if (count == REMEMBERED) memmove(known, known + 1, sizeof known[0] * --count);
    if (known_count == REMEMBERED) known_count = count;
    return &known[known_count++];
}

static void remember(const struct fdri_snapshot_new_file *f, uint64_t owner)
{
    struct stat st = {0};
    struct snapshot_file *k = new_place();
    fstat(f->fd, &st);
    *k = (struct snapshot_file){.bytes = (uint64_t)st.st_blocks * 512, .owner = owner};
    memcpy(k->path, f->path, sizeof k->path);
    bytes_on_disk += k->bytes;
    written++;
    close(f->fd);
}

int fdri_snapshot_file_commit(struct fdri_snapshot_new_file *f, uint64_t owner)
{
    int e = fdri_snapshot_file_is_ours(f) ? -EEXIST : -ECANCELED;
    const char *part, *name;
    for (int tries = 0; tries < 10000 && e == -EEXIST; tries++) {
        make_path(f->path, sizeof f->path, next_number++, "fdr");
        int from = at_dir(f->temporary, &part), to = at_dir(f->path, &name);
        e = fdri_system_rename_new(from, part, to, name);
    }
    if (!e) {
        fdri_atomic_store_relaxed(&fdri_snapshot_unfinished.path_set, 0u);
        remember(f, owner);
        return 0;
    }
    if (fdri_snapshot_file_is_ours(f) && fdri_snapshot_files_failed(e))
        fdri_text_message("%s: %s; no snapshot was written", f->path, strerror(-e));
    fdri_snapshot_file_abandon(f);
    return e;
}
