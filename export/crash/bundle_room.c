/* SPDX-License-Identifier: MIT */
/* A healthy process collapses bundles of its user, and is promised room for one of its own. It does so at its start,
 * and now and then in the dumper thread. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/clock.h"
#include "base/fd/open_high.h"
#include "base/system/loader.h"
#include "base/system/syscall.h"
#include "export/crash/bundle_room.h"
#include "export/crash/crash_path.h"
#include "export/snapshot/snapshot.h"
#include "export/view.h"

struct fdri_crash_room fdri_crash_room;
static uint64_t next_ns; /* of the next look; of the start, then of the dumper */

enum { BUNDLE_EXTRA = 1 << 20 }; /* a bundle is at most so much larger than the buffer */
/* At the start a few files only: the program waits. Each start removes more than its own death can add. */
enum { START_LOOKS = 4096, START_REMOVES = 8, LOOKS = 1 << 20, REMOVES = 4096 };
#define SOON_NS        1000000000u
#define REFUSED_NS     10000000000u
#define OFTEN_NS       600000000000u
#define BEYOND_LEAST_S 10 /* so long after it was made, its bundle is complete or there will be none */

static struct fdri_arena_superblock *superblock(void) { return (void *)fdri_snapshot_view.base; }

static int open_directory(const struct fdri_fd_kept *kept, const char *path)
{
    if (fdri_fd_is_kept(kept->fd, kept)) return fdri_fd_open(kept->fd, ".", O_RDONLY | O_DIRECTORY, 0);
    return path[0] ? fdri_fd_open(AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0) : -1;
}

static uint64_t device_of(int fd)
{
    struct stat st;
    return fd >= 0 && fdri_system_fstat(fd, &st) == 0 ? st.st_dev : 0;
}

static bool is_same(int one, int other)
{
    struct stat a, b;
    return fdri_system_fstat(one, &a) == 0 && fdri_system_fstat(other, &b) == 0 && a.st_dev == b.st_dev &&
           a.st_ino == b.st_ino;
}

/* No bundle beyond the limits is left, or it was removed. */
static void forget_beyond(int dir, uint64_t now_ns)
{
    struct stat st;
    if (fdri_system_lstat(dir, FDRI_RETENTION_BEYOND, &st) == 0 &&
        now_ns / 1000000000u > (uint64_t)st.st_mtim.tv_sec + BEYOND_LEAST_S)
        fdri_system_unlinkat(dir, FDRI_RETENTION_BEYOND);
}

static void learn(const struct fdri_retention_result *r)
{
    for (uint32_t i = 0; i < r->known_count; i++) fdri_atomic_store_relaxed(&fdri_crash_room.known[i], r->known[i]);
    fdri_atomic_store_relaxed(&fdri_crash_room.known_count, r->known_count);
}

/* Both directories are open; live -1: none. Promises are read before bundles: a dying process has its bundle before its
 * live file goes, so it is seen at least once. */
static bool decide(int dir, int live, const struct fdri_retention_order *o)
{
    const struct fdri_policies_retention *rule = &fdri_snapshot_view.retention;
    uint64_t mine = fdri_snapshot_view.bytes + BUNDLE_EXTRA, device = device_of(dir);
    struct fdri_retention_result here, there = {0};
    bool locked = live < 0 || fdri_retention_lock(live);
    uint64_t promised = live >= 0 ? fdri_retention_promised(live, device) : 0;
    fdri_retention_tidy(dir, o, &here);
    if (live >= 0 && !is_same(live, dir)) fdri_retention_tidy(live, o, &there);
    uint64_t bundles = here.bytes + (device_of(live) == device ? there.bytes : 0);
    learn(&here);
    if (bundles <= fdri_policies_limit_bytes(&rule->most, here.disk.bytes))
        forget_beyond(live >= 0 ? live : dir, o->now_ns);
    bool room = locked && fdri_policies_may_promise(rule, &here.disk, bundles, promised, mine);
    fdri_atomic_store_relaxed(&superblock()->bundle_device, device);
    fdri_atomic_store_relaxed(&superblock()->bundle_bytes, room ? mine : 0);
    if (locked && live >= 0) fdri_retention_unlock(live);
    return room;
}

static bool look(uint32_t looks, uint32_t removes)
{
    struct fdri_retention_order o = {.rule = &fdri_snapshot_view.retention,
                                     .now_ns = fdri_clock_ns(CLOCK_REALTIME),
                                     .looks = looks,
                                     .removes = removes};
    int dir = open_directory(&fdri_snapshot_view.kept_dir, fdri_snapshot_view.dir);
    int live = open_directory(&fdri_snapshot_view.kept_live_dir, "");
    bool room = dir < 0 || decide(dir, live, &o);
    if (dir >= 0) fdri_system_close(dir);
    if (live >= 0) fdri_system_close(live);
    fdri_atomic_store_relaxed(&fdri_crash_room.promised, room);
    return room;
}

uint64_t fdri_crash_room_look(uint64_t now_ns)
{
    if (fdri_snapshot_view.crash == FDRI_EXPORT_CRASH_OFF || fdri_snapshot_view.retention.off) return UINT64_MAX;
    uint64_t next = fdri_atomic_load_acquire(&next_ns); /* A:room */
    if (!next) return now_ns + SOON_NS;                 /* the start has not looked yet */
    if (now_ns < next) return next;
    next = now_ns + (look(LOOKS, REMOVES) ? OFTEN_NS : REFUSED_NS);
    fdri_atomic_store_relaxed(&next_ns, next);
    return next;
}

/* ---- of the program ---- */

static uint64_t hash_text(uint64_t hash, const void *bytes, size_t count)
{
    const uint8_t *p = bytes;
    for (size_t i = 0; i < count; i++) hash = (hash ^ p[i]) * 0x100000001b3u;
    return hash;
}

static int first_object(struct dl_phdr_info *info, size_t bytes, void *unused)
{
    (void)bytes, (void)unused;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        if (p->p_type != PT_LOAD || !(p->p_flags & PF_X)) continue;
        fdri_crash_room.program_from = info->dlpi_addr + p->p_vaddr;
        fdri_crash_room.program_to = fdri_crash_room.program_from + p->p_memsz;
        break;
    }
    return 1;
}

static void look_at_program(void)
{
    const struct fdri_arena_superblock *s = superblock();
    uint64_t hash = 0xcbf29ce484222325u;
    if (s->build_id_bytes && s->build_id_bytes <= sizeof s->build_id)
        hash = hash_text(hash, s->build_id, s->build_id_bytes);
    else hash = hash_text(hash, s->exe, strnlen(s->exe, sizeof s->exe));
    fdri_crash_room.build = hash_text(hash, &fdri_snapshot_view.rank, sizeof fdri_snapshot_view.rank);
    fdri_system_each_module(first_object, NULL);
}

void fdri_crash_room_start(void)
{
    look_at_program();
    fdri_atomic_store_relaxed(&fdri_crash_room.known_count, 0u);
    fdri_atomic_store_relaxed(&fdri_crash_room.promised, 1u);
    if (!fdri_snapshot_view.retention.off) look(START_LOOKS, START_REMOVES);
    /* R:room - the dumper looks from here on, and first of all finishes a large directory */
    fdri_atomic_store_release(&next_ns, fdri_clock_ns(CLOCK_MONOTONIC) + SOON_NS);
}
