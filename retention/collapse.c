/* SPDX-License-Identifier: MIT */
/* Removes bundles, and counts each removed one in the bundle that stays in its place. The order of steps, for a kill in
 * between:
 *
 *   1. lock the heir   2. the heir's counter and the identity of the bundle that goes, in one write   3. unlink
 *
 * Killed after 2, the bundle is there and counted. The next call finds its identity in the heir, and removes it first
 * of all and without counting. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd/open_high.h"
#include "base/system/syscall.h"
#include "retention/retention.h"

/* The file that was found still has this name. */
static bool is_there(int dir, const struct fdri_retention_bundle *b)
{
    struct stat st;
    return fdri_system_lstat(dir, b->name, &st) == 0 && st.st_dev == b->device && st.st_ino == b->inode;
}

/* Opens for writing; `fdr` takes the right to write from files that it has read. */
static int open_to_write(int dir, const char *name, int reading)
{
    struct stat st;
    int fd = fdri_fd_open(dir, name, O_RDWR | O_NOFOLLOW | O_NONBLOCK, 0);
    if (fd != -EACCES || fdri_system_fstat(reading, &st) || fchmod(reading, 0600)) return fd;
    fd = fdri_fd_open(dir, name, O_RDWR | O_NOFOLLOW | O_NONBLOCK, 0);
    fchmod(reading, st.st_mode & 0777);
    return fd;
}

/* The file's times stay, as its age is that of the death. */
static bool write_counter(int fd, const uint64_t pair[2])
{
    struct stat st;
    if (fdri_system_fstat(fd, &st) ||
        fdri_system_pwrite(fd, pair, 2 * sizeof *pair, offsetof(struct fdri_arena_superblock, alike)) !=
            2 * sizeof *pair)
        return false;
    futimens(fd, (struct timespec[2]){st.st_atim, st.st_mtim});
    return true;
}

/* Counts `gone` in the heir, unless that was done. With the heir locked. False: it must stay for now. */
static bool count_it(int dir, int reading, struct fdri_retention_bundle *heir, const struct fdri_retention_bundle *gone)
{
    struct fdri_arena_superblock s;
    if (fdri_system_pread(reading, &s, sizeof s, 0) != sizeof s || !is_there(dir, gone)) return false;
    if (s.alike_newest == gone->identity) return true;
    /* Another process has counted since the list was made. It may have been killed before its unlink. */
    if (s.alike_newest != heir->alike_newest) return false;
    uint64_t pair[2] = {s.alike + 1 + gone->alike, gone->identity};
    int fd = open_to_write(dir, heir->name, reading);
    bool done = fd >= 0 && write_counter(fd, pair);
    if (fd >= 0) fdri_system_close(fd);
    if (done) heir->alike_newest = gone->identity;
    return done;
}

static bool remove_counted(int dir, struct fdri_retention_bundle *heir, const struct fdri_retention_bundle *gone)
{
    struct fdri_arena_superblock s;
    struct fdri_retention_bundle now;
    int fd;
    if (!fdri_retention_read(dir, heir->name, &s, &now, &fd)) return false;
    bool locked = now.identity == heir->identity && flock(fd, LOCK_EX | LOCK_NB) == 0;
    bool done = locked && is_there(dir, heir) && count_it(dir, fd, heir, gone) &&
                fdri_system_unlinkat(dir, gone->name) == 0;
    if (locked) flock(fd, LOCK_UN); /* a forked child may have the descriptor, too */
    fdri_system_close(fd);
    return done;
}

static bool remove_it(int dir, struct fdri_retention_list *l, uint32_t i)
{
    if (l->fate[i].heir >= 0) return remove_counted(dir, &l->bundle[l->fate[i].heir], &l->bundle[i]);
    return is_there(dir, &l->bundle[i]) && fdri_system_unlinkat(dir, l->bundle[i].name) == 0;
}

/* The one that its heir has counted, and that a killed process did not remove. */
static bool is_counted(const struct fdri_retention_list *l, uint32_t i)
{
    int32_t heir = l->fate[i].heir;
    return heir >= 0 && l->bundle[heir].alike_newest == l->bundle[i].identity;
}

/* Those with an heir go before it does. */
enum turn { COUNTED, WITH_HEIR, ALONE, TURNS };
static enum turn turn_of(const struct fdri_retention_list *l, uint32_t i)
{
    return is_counted(l, i) ? COUNTED : l->fate[i].heir >= 0 ? WITH_HEIR : ALONE;
}

static void work(int dir, const struct fdri_retention_order *o, struct fdri_retention_list *l,
                 struct fdri_retention_result *r, enum turn turn)
{
    for (uint32_t i = 0; i < l->count && r->gone < o->removes; i++) {
        if (l->fate[i].fate == FDRI_POLICIES_STAYS || l->bundle[i].name[0] == 0 || turn != turn_of(l, i)) continue;
        if (!o->dry_run && !remove_it(dir, l, i)) {
            r->refused++;
            continue;
        }
        if (o->gone) o->gone(o->argument, l->bundle[i].name, &l->fate[i]);
        l->bundle[i].name[0] = 0;
        r->gone++;
    }
}

static void sum_up(const struct fdri_retention_list *l, struct fdri_retention_result *r)
{
    for (uint32_t i = 0; i < l->count; i++) {
        if (!l->bundle[i].name[0]) continue;
        r->stay++;
        r->bytes += l->fate[i].bytes;
        if (l->fate[i].fingerprint && l->fate[i].heir < 0 && r->known_count < FDRI_RETENTION_KNOWN)
            r->known[r->known_count++] = l->fate[i].fingerprint;
    }
}

void fdri_retention_tidy(int dir, const struct fdri_retention_order *o, struct fdri_retention_result *r)
{
    struct fdri_retention_list l;
    struct statfs v;
    *r = (struct fdri_retention_result){0};
    if (fdri_system_fstatfs(dir, &v) == 0)
        r->disk = (struct fdri_policies_disk){(uint64_t)v.f_blocks * (uint64_t)v.f_frsize,
                                              (uint64_t)v.f_bavail * (uint64_t)v.f_frsize};
    if (fdri_retention_find(dir, o->looks, &l)) {
        fdri_policies_retain(l.fate, l.count, o->rule, &r->disk, o->now_ns);
        /* A counted one goes even if the rule would let it stay by now: it is in the counter. */
        for (uint32_t i = 0; i < l.count; i++)
            if (!o->rule->off && is_counted(&l, i)) l.fate[i].fate = FDRI_POLICIES_ALIKE;
        for (int turn = 0; turn < TURNS; turn++) work(dir, o, &l, r, (enum turn)turn);
    }
    sum_up(&l, r);
    fdri_retention_free(&l);
}
