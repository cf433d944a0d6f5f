/* SPDX-License-Identifier: MIT */
/* The file that a fatal signal leaves: the mapped arena renamed to *.crash.fdr, or a copy of it in FDR_DIR. Each
 * descriptor is checked to be fdr's own before use. Fatal path: see crash_path.h. */
#define _GNU_SOURCE
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "base/atomic.h"
#include "base/bits.h"
#include "base/clock.h"
#include "base/fd/kept_open.h"
#include "base/fd/open_high.h"
#include "base/system/syscall.h"
#include "export/crash/bundle_room.h"
#include "export/crash/crash_path.h"
#include "export/snapshot/snapshot.h"
#include "export/view.h"
#include "format/arena/arena.h"

enum { CHUNK = 1 << 20 };

char *fdri_crash_append(char *to, const char *end, const char *text)
{
    while (to + 1 < end && *text) *to++ = *text++;
    *to = 0;
    return to;
}

char *fdri_crash_decimal(char *to, uint64_t value)
{
    char digits[20];
    int n = 0;
    do digits[n++] = (char)('0' + value % 10);
    while (value /= 10);
    while (n) *to++ = digits[--n];
    *to = 0;
    return to;
}

/* ---- descriptors that are still fdr's ---- */

/* The descriptor, or the path opened again if the application closed it; -1: neither. */
static int regain(const struct fdri_fd_kept *held, int at, const char *path, int flags)
{
    if (held->fd < 0) return -1;
    if (fdri_fd_is_kept(held->fd, held)) return held->fd;
    int fd = fdri_fd_open_in_crash(at, path, flags, 0);
    return fdri_fd_is_kept(fd, held) ? fd : -1;
}

/* The live file's name, and the directory it is relative to. */
static int live_at(const char **name)
{
    return fdri_fd_kept_at(&fdri_snapshot_view.kept_live_dir, fdri_snapshot_view.live_path, name);
}

/* A program that ran out of descriptors may die of that, and reading /proc needs some. */
void fdri_crash_bundle_spend(void)
{
    for (int i = 0; i < FDRI_CRASH_SPARE; i++) {
        struct fdri_fd_kept *spare = &fdri_crash.spare[i];
        if (fdri_fd_is_kept(spare->fd, spare)) fdri_system_close(spare->fd);
        spare->fd = -1;
    }
}

/* The used parts of the arena: [0, low) and from `high` on. */
struct ends {
    uint64_t low, high;
};
static struct ends used_ends(void)
{
    const struct fdri_arena_superblock *s = (const void *)fdri_snapshot_view.base;
    uint64_t virgin = fdri_atomic_load_relaxed(&s->virgin); /* once: other threads may go on */
    uint64_t low = fdri_bits_min(s->bins_off + (uint64_t)(uint32_t)virgin * s->bin_bytes, fdri_snapshot_view.bytes);
    return (struct ends){
        low, fdri_bits_max(fdri_bits_min((virgin >> 32) * FDRI_ARENA_META_ALIGN, fdri_snapshot_view.bytes), low)};
}

/* True if the arena is in no file and its used parts exceed FDR_DISK: then only a part may be written. */
static bool too_much(void)
{
    struct ends u = used_ends();
    return fdri_snapshot_view.kept_live_file.fd < 0 &&
           u.low + fdri_snapshot_view.bytes - u.high + fdri_crash_section.used > fdri_snapshot_view.disk_bytes;
}

/* The offset at which writing must end: writing beyond RLIMIT_FSIZE raises SIGXFSZ. */
static uint64_t may_end(void)
{
    struct {
        uint64_t now, most;
    } limit;
    uint64_t end = syscall(SYS_prlimit64, 0, RLIMIT_FSIZE, NULL, &limit) == 0 ? limit.now : UINT64_MAX;
    return too_much() ? fdri_bits_min(end, fdri_snapshot_view.disk_bytes) : end;
}

static bool may_write(uint64_t bytes) { return bytes <= may_end(); }

/* ---- bytes ---- */

int fdri_crash_bundle_put(int fd, const void *from, uint64_t count, uint64_t off)
{
    const uint8_t *p = from;
    uint64_t end = may_end();
    while (count) {
        if (off >= end) return -EFBIG;
        if (fdri_clock_ns(CLOCK_MONOTONIC) > fdri_crash_death.deadline_ns) return -ETIME;
        long n = fdri_system_pwrite(fd, p, fdri_bits_min(fdri_bits_min(count, CHUNK), end - off), off);
        if (n == -EINTR) continue;
        if (n <= 0) return n ? (int)n : -EIO;
        p += n;
        off += (uint64_t)n;
        count -= (uint64_t)n;
    }
    return 0;
}

static int put_section(int fd)
{
    return fdri_crash_bundle_put(fd, fdri_crash_section.bytes, fdri_crash_section.used, fdri_snapshot_view.bytes);
}

/* Sets section_off in the arena. A file with section_off and no section lost its section. Without section_off the
 * process was killed before this. */
static void promise_section(void)
{
    struct fdri_arena_superblock *s = (void *)fdri_snapshot_view.base;
    fdri_atomic_store_relaxed(&s->section_off, fdri_snapshot_view.bytes);
    fdri_atomic_signal_fence(); /* before any byte of the section is written */
}

/* Writes the section, the used parts of the arena, and section_off. The unused middle stays a hole. */
static int put_arena(int fd)
{
    struct ends u = used_ends();
    uint64_t changes = fdri_crash_epochs_changes();
    int e = put_section(fd);
    if (!e) e = fdri_crash_bundle_put(fd, fdri_snapshot_view.base + u.high, fdri_snapshot_view.bytes - u.high, u.high);
    if (!e) e = fdri_crash_bundle_put(fd, fdri_snapshot_view.base, u.low, 0);
    /* set section_off in the copy only: if the process is killed before, the mapped file remains and has no section */
    if (!e)
        e = fdri_crash_bundle_put(fd, &fdri_snapshot_view.bytes, 8,
                                  offsetof(struct fdri_arena_superblock, section_off));
    return e ? e : fdri_crash_epochs_put(fd, changes);
}

/* ---- names ---- */

/* Gives the file the name STEM.N.crash.fdr in directory `to_dir`/`to_path`, for the lowest free N: by a hard link or by
 * renaming. */
static int name_it(int from_dir, const char *from, int to_dir, const char *to_path, bool link)
{
    char path[512 + FDRI_CRASH_STEM_MAX + 48];
    int e = -EEXIST;
    for (uint32_t n = 1; n < 10000 && e == -EEXIST; n++) {
        char *p = fdri_crash_append(path, path + sizeof path, to_path);
        p = fdri_crash_append(p, path + 512 + FDRI_CRASH_STEM_MAX, fdri_crash.stem);
        fdri_crash_append(fdri_crash_decimal(p, n), path + sizeof path, ".crash.fdr");
        e = link ? fdri_system_linkat(from_dir, from, to_dir, path, AT_SYMLINK_FOLLOW)
                 : fdri_system_rename_new(from_dir, from, to_dir, path);
    }
    return e;
}

/* 100 ms for a last small write, from now: the deadline may have passed long ago. */
static void more_time(void)
{
    fdri_crash_death.deadline_ns = fdri_bits_max(fdri_clock_ns(CLOCK_MONOTONIC), fdri_crash_death.deadline_ns) +
                                   100000000;
}

/* ---- a copy ---- */

/* Writes the arena into fd. Without a mapped file a part is better than nothing; the superblock says that it is one. */
static int fill(int fd)
{
    int e = put_arena(fd);
    if ((e != -ETIME && e != -ENOSPC && e != -EDQUOT && e != -EFBIG) || fdri_snapshot_view.kept_live_file.fd >= 0)
        return e;
    uint32_t cut = e == -ETIME ? FDRI_ARENA_TRUNCATED_DEADLINE : FDRI_ARENA_TRUNCATED_DISK;
    more_time();
    /* the arena's end did not fit, its beginning may */
    if (e == -EFBIG) fdri_crash_bundle_put(fd, fdri_snapshot_view.base, fdri_snapshot_view.bytes, 0);
    e = fdri_crash_bundle_put(fd, fdri_snapshot_view.base, FDRI_ARENA_SUPERBLOCK_BYTES, 0);
    more_time();
    return e ? e
             : fdri_crash_bundle_put(fd, (const uint8_t *)&cut, sizeof cut,
                                     offsetof(struct fdri_arena_superblock, cut));
}

/* Fills the unnamed file opened at start, so no incomplete file is ever visible. */
static int copy_unnamed(int dir)
{
    char self[48];
    struct stat st;
    int fd = fdri_crash.file.fd;
    if (!fdri_fd_is_kept(fd, &fdri_crash.file) || fdri_system_fstat(fd, &st) || st.st_nlink || st.st_size)
        return -EBADF;
    fdri_crash_decimal(fdri_crash_append(self, self + sizeof self, "/proc/self/fd/"), (uint64_t)fd);
    if (fdri_system_fstatat(AT_FDCWD, self, &st, 0) || st.st_dev != fdri_crash.file.dev ||
        st.st_ino != fdri_crash.file.ino)
        return -ENOENT; /* another root directory without /proc: linkat has no name for the file */
    int e = fill(fd);
    return e ? e : name_it(AT_FDCWD, self, dir, "", true);
}

static int copy_named(int dir)
{
    char temporary[FDRI_CRASH_STEM_MAX + 40], *end = temporary + sizeof temporary;
    char *p = fdri_crash_append(fdri_crash_append(temporary, temporary + FDRI_CRASH_STEM_MAX, fdri_crash.stem), end,
                                "crash.");
    /* a unique name: a process in another container may have the same number */
    fdri_crash_append(fdri_crash_decimal(p, fdri_clock_ns(CLOCK_REALTIME)), end, ".part");
    int fd = fdri_fd_open_in_crash(dir, temporary, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
    if (fd < 0) return fd;
    int e = fill(fd);
    fdri_system_close(fd);
    if (!e) e = name_it(dir, temporary, dir, "", false);
    if (e) fdri_system_unlinkat(dir, temporary);
    return e;
}

static int copy(int dir)
{
    bool fits = fdri_snapshot_view.bytes <= fdri_snapshot_view.disk_bytes &&
                may_write(fdri_snapshot_view.bytes + fdri_crash_section.used);
    if (dir < 0 || (fdri_snapshot_view.kept_live_file.fd >= 0 && !fits)) return -EFBIG;
    int e = copy_unnamed(dir);
    return e == 0 || e == -ETIME || e == -ENOSPC || e == -EDQUOT ? e : copy_named(dir);
}

/* ---- the mapped file ---- */

/* Appends the section to the mapped file and renames it: into FDR_DIR on the same file system, else in its own
 * directory. */
static void finish_live(int live, int dir)
{
    promise_section();
    if (may_write(fdri_snapshot_view.bytes + fdri_crash_section.used)) put_section(live);
    const char *name;
    int at = live_at(&name);
    if (dir >= 0 && name_it(at, name, dir, "", false) == 0) return;
    name_it(at, name, at, at == AT_FDCWD ? fdri_crash.live_dir : "", false);
}

/* 1: the live file still has its name; 0: it has not; -errno: the lookup failed, a filter may forbid it. */
static int look_for_live(struct stat *st)
{
    const char *name;
    int at = live_at(&name), e = fdri_system_lstat(at, name, st); /* lstat, because a filter may refuse openat */
    if (e) return e == -ENOENT ? 0 : e;
    return st->st_dev == fdri_snapshot_view.kept_live_file.dev && st->st_ino == fdri_snapshot_view.kept_live_file.ino;
}

/* The number of the live file's names, from its descriptor; -1: the program closed the descriptor. */
static long links_of_live(void)
{
    struct stat st;
    const struct fdri_fd_kept *live = &fdri_snapshot_view.kept_live_file;
    return fdri_fd_is_kept(live->fd, live) && fdri_system_fstat(live->fd, &st) == 0 ? (long)st.st_nlink : -1;
}

static bool live_is_there(void)
{
    struct stat st;
    int there = fdri_snapshot_view.kept_live_file.fd >= 0 ? look_for_live(&st) : 0;
    return there >= 0 ? there : links_of_live() > 0;
}

/* Gives the memory back; an empty recording with its cause and settings remains. Begins at 64 KiB, not at the second
 * page, because other machines have larger pages. */
static void empty_live(void)
{
    enum { PAGE_AT_MOST = 65536 };
    fdri_arena_superblock_forget((void *)fdri_snapshot_view.base);
    fdri_atomic_signal_fence(); /* killed before the next call, it is an empty recording all the same */
    syscall(SYS_madvise, fdri_snapshot_view.base + PAGE_AT_MOST, fdri_snapshot_view.bytes - PAGE_AT_MOST, MADV_REMOVE);
}

/* Returns 0 also if the file has no name any more; -ENOENT if that cannot be found out. */
static int unlink_live(int there)
{
    const char *name;
    int at = live_at(&name);
    if (there) return fdri_system_unlinkat(at, name);
    return at != AT_FDCWD || links_of_live() == 0 ? 0 : -ENOENT;
}

int fdri_crash_live_remove(bool empty)
{
    struct fdri_arena_superblock *s = (void *)fdri_snapshot_view.base;
    struct stat st;
    if (!fdri_snapshot_view.live_path[0]) return 0;
    /* first: if the process is killed in between, the file is marked as over */
    fdri_atomic_store_relaxed(&s->over, 1u);
    fdri_atomic_signal_fence();
    int there = look_for_live(&st);
    long names = there > 0 ? (long)st.st_nlink : links_of_live();
    int e = unlink_live(there);
    bool kept = names > (there || e ? 1 : 0); /* the file has another name, given by the user */
    fdri_atomic_store_relaxed(&s->over_error, kept ? 0u : (uint32_t)-e);
    /* then it is a recording, and tools that clean up must not remove it */
    if (kept) fdri_atomic_store_relaxed(&s->over, 0u);
    else if (e && e != -ENOENT && empty) empty_live();
    return e;
}

/* If there is room: see bundle_room.h. */
static bool copied(int dir)
{
    const struct fdri_fd_kept *live = &fdri_snapshot_view.kept_live_dir;
    int shared = fdri_fd_is_kept(live->fd, live) ? live->fd : dir;
    if (!fdri_crash_fingerprint_may_copy(shared)) return false;
    if (copy(dir) == 0) return true;
    fdri_crash_fingerprint_not_copied(shared);
    return false;
}

static bool copy_beside_live(int dir)
{
    struct stat st;
    return dir >= 0 && fdri_system_fstat(dir, &st) == 0 && st.st_dev == fdri_snapshot_view.kept_live_file.dev;
}

/* Removes the file of a snapshot under way. It will not be finished; the bundle contains all of it. */
static void drop_unfinished(void)
{
    const char *name;
    /* A:unfinished */
    if (!fdri_crash_death.cause[0].signal || !fdri_atomic_load_acquire(&fdri_snapshot_unfinished.path_set)) return;
    int at = fdri_fd_kept_at(&fdri_snapshot_view.kept_dir, fdri_snapshot_unfinished.path, &name);
    fdri_system_unlinkat(at, name);
}

void fdri_crash_bundle_write(void)
{
    bool wanted = fdri_crash_death.signal->fault || fdri_snapshot_view.crash >= FDRI_EXPORT_CRASH_ALL;
    const char *name;
    int at = live_at(&name),
        live = live_is_there() ? regain(&fdri_snapshot_view.kept_live_file, at, name, O_RDWR | O_NOFOLLOW) : -1;
    int dir = regain(&fdri_snapshot_view.kept_dir, AT_FDCWD, fdri_snapshot_view.dir, O_PATH | O_DIRECTORY);
    drop_unfinished(); /* first: it may use the space that the bundle needs */
    if (live >= 0 && (!wanted || copy_beside_live(dir))) {
        finish_live(live, wanted ? dir : -1);
    } else if (wanted && copied(dir)) {
        /* false for an exit: the process goes on to its end */
        fdri_crash_live_remove(fdri_crash_death.cause[0].signal != 0);
        /* a core file need not contain it again */
        syscall(SYS_madvise, fdri_snapshot_view.base, fdri_snapshot_view.bytes, MADV_DONTDUMP);
    } else if (live >= 0) {
        more_time(); /* the section is small and goes to memory */
        finish_live(live, -1);
    } else {
        promise_section(); /* neither a file nor a copy could be written */
    }
    drop_unfinished(); /* a snapshot that began meanwhile */
}
