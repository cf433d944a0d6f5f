/* SPDX-License-Identifier: MIT */
/* The memory of the arena: a named file in a RAM-backed directory, or anonymous memory. Either is allocated in full at
 * the start. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/bits.h"
#include "base/fd/kept_open.h"
#include "base/fd/open_high.h"
#include "base/system/cgroup.h"
#include "base/system/topology.h"
#include "base/text/message.h"
#include "bins/bins.h"
#include "bins/pressure/bins_pressure.h"
#include "bins/slabs.h"
#include "export/view.h"
#include "format/arena/arena.h"
#include "recorder/ended/ended.h"
#include "recorder/memory/memory.h"
#include "recorder/recording.h"
#include "recorder/share_state.h"
#include "recorder/thread/thread.h"

uint64_t fdri_memory_limit(void)
{
    uint64_t limit = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
    return fdri_bits_min(limit, fdri_system_cgroup_memory_limit(""));
}

static uint64_t local_ranks(void)
{
    static const char *const names[] = {"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", "SLURM_NTASKS_PER_NODE"};
    for (size_t i = 0; i < 3; i++) {
        const char *v = secure_getenv(names[i]);
        if (v && atoi(v) > 0) return (uint64_t)atoi(v);
    }
    return 1;
}

/* Default size of the buffer: the least of 64 MiB, 2 % of the memory limit, and half of the live directory's free
 * space. The last two are divided by the MPI ranks of this machine. Whole MiB, at least 4. */
static uint64_t default_bytes(const struct fdri_life_settings *s)
{
    uint64_t bytes = fdri_bits_min(64u << 20, fdri_memory_limit() / 50 / local_ranks());
    struct statfs f;
    char above[256]; /* its parent, in case it does not exist yet */
    snprintf(above, sizeof above, "%s", s->live_dir);
    char *slash = strrchr(above, '/');
    if (slash) slash[slash == above] = 0;
    if (s->arena == FDRI_LIFE_MAPPED && (statfs(s->live_dir, &f) == 0 || statfs(above, &f) == 0))
        bytes = fdri_bits_min(bytes, (uint64_t)f.f_bavail * (uint64_t)f.f_bsize / 2 / local_ranks());
    return fdri_bits_max(bytes & ~0xfffffull, 4u << 20);
}

static bool ram_backed(int fd)
{
    struct statfs f;
    return fstatfs(fd, &f) == 0 && (f.f_type == TMPFS_MAGIC || f.f_type == RAMFS_MAGIC || f.f_type == HUGETLBFS_MAGIC);
}

/* Descriptor of the live directory, made if need be; -errno with *why. Another user could plant or read files, so it
 * must be no symbolic link, belong to our uid, and be writable for nobody else. */
static int open_live_dir(const struct fdri_life_settings *s, const char **why)
{
    struct stat st;
    bool made = mkdir(s->live_dir, 0700) == 0;
    if (!made && errno != EEXIST) {
        *why = strerror(errno);
        return -errno;
    }
    int fd = fdri_fd_open(AT_FDCWD, s->live_dir, O_PATH | O_DIRECTORY | O_NOFOLLOW, 0);
    if (fd < 0 || fstat(fd, &st)) {
        *why = strerror(fd < 0 ? -fd : errno);
        if (fd >= 0) close(fd);
        return -EACCES;
    }
    *why = st.st_uid != geteuid()              ? "belongs to another user"
           : (st.st_mode & 022)                ? "other users may write to it"
           : !ram_backed(fd) && !s->live_force ? "is not RAM-backed (FDR_LIVE_FORCE=1 uses it all the same)"
                                               : NULL;
    if (!*why) return fd;
    close(fd);
    if (made) rmdir(s->live_dir); /* leave nothing behind */
    return -EACCES;
}

/* ---- NUMA: each stripe of the arena is allocated on its node at the start and stays there ---- */

/* Calls `allocate` for every stripe of [0, bytes) while the stripe's node is the preferred one. Returns 0 or the first
 * error. */
static int by_stripe(const struct fdri_life_recorder *r, uint64_t bytes,
                     int (*allocate)(void *to, uint64_t off, uint64_t n), void *to)
{
    const struct fdri_system_topology *t = &r->topology;
    uint64_t stripe = fdri_bins_stripe_bytes(t, r->settings.bin_bytes);
    int e = 0;
    for (uint32_t node = 0; node < t->nodes && !e; node++) {
        static unsigned said;
        if (!t->prefer(t->id[node]) && fdri_text_once(&said))
            fdri_text_message("cannot request memory of NUMA node %u: %s; the kernel chooses the node", t->id[node],
                              strerror(errno));
        for (uint64_t off = node * stripe; off < bytes && !e; off += stripe * t->nodes)
            e = allocate(to, off, fdri_bits_min(stripe, bytes - off));
    }
    t->prefer(UINT32_MAX);
    return e;
}

static int allocate_in_file(void *fd, uint64_t off, uint64_t n)
{
    return posix_fallocate(*(int *)fd, (off_t)off, (off_t)n);
}

static int touch_pages(void *memory, uint64_t off, uint64_t n)
{
    volatile uint8_t *p = (uint8_t *)memory + off;
    for (uint64_t i = 0; i < n; i += 4096) p[i] = 0;
    return 0;
}

static int allocate_file(const struct fdri_life_recorder *r, int fd, uint64_t bytes)
{
    int e = r->topology.nodes > 1 ? by_stripe(r, bytes, allocate_in_file, &fd) : 0;
    return e ? e : posix_fallocate(fd, 0, (off_t)bytes);
}

static void *map_anonymous(const struct fdri_life_recorder *r, uint64_t bytes)
{
    void *m = fdri_memory_pages_map(bytes, -1);
    if (m == MAP_FAILED) return m;
    if (r->topology.nodes > 1) {
        madvise(m, bytes, MADV_NOHUGEPAGE); /* a huge page lies on one node */
        by_stripe(r, bytes, touch_pages, m);
    } else {
        fdri_memory_pages_large(m, bytes, -1);
        touch_pages(m, 0, bytes);
    }
    return m;
}

/* ---- the live file ---- */

/* Names the live file NAME.HOST.PID[.rRANK].N.live.fdr with the lowest free N. Containers and a program that executes
 * itself repeat pids, and an existing file is the evidence of an earlier death. `take` makes the name: it returns 0
 * or more on success, -EEXIST if the name is taken. */
static int name_live(struct fdri_life_recorder *r, int dir, int (*take)(int dir, const char *name, int fd), int fd)
{
    char host[64] = "host", rank[16] = "", name[208];
    int e = -EEXIST;
    if (r->rank >= 0) snprintf(rank, sizeof rank, ".r%d", r->rank);
    gethostname(host, sizeof host - 1);
    for (int n = 0; n < 10000 && e == -EEXIST; n++) {
        snprintf(name, sizeof name, "%s.%s.%d%s.%d.live.fdr", r->settings.name, host, r->identity.pid, rank, n);
        e = take(dir, name, fd);
    }
    if (e >= 0) snprintf(r->live_path, sizeof r->live_path, "%s/%s", r->settings.live_dir, name);
    return e;
}

static int take_new(int dir, const char *name, int unused)
{
    (void)unused;
    return fdri_fd_open(dir, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
}

static int take_link(int dir, const char *name, int fd)
{
    char self[48];
    snprintf(self, sizeof self, "/proc/self/fd/%d", fd);
    return linkat(AT_FDCWD, self, dir, name, AT_SYMLINK_FOLLOW) ? -errno : 0;
}

/* Opens the live file, without allocating it. It has no name until a reader finds all it needs in it, if the file
 * system has O_TMPFILE. Returns the descriptor or -errno. */
static int open_live(struct fdri_life_recorder *r, int dir, uint64_t bytes)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < bytes) return -EFBIG; /* else SIGXFSZ */
    int fd = fdri_fd_open(dir, ".", O_TMPFILE | O_RDWR, 0600);
    return fd < 0 ? name_live(r, dir, take_new, -1) : fd;
}

static int take_none(int dir, const char *name, int unused)
{
    struct stat st;
    (void)unused;
    return fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 ? -EEXIST : 0;
}

void fdri_memory_arena_choose_name(struct fdri_life_recorder *r)
{
    if (r->kept_live_file.fd < 0 || r->live_path[0]) return;
    r->nameless = name_live(r, r->kept_live_dir.fd, take_none, -1) >= 0;
}

/* export/ has a copy of the path that was chosen, so the file gets exactly that name. */
void fdri_memory_arena_publish(struct fdri_life_recorder *r)
{
    if (r->kept_live_file.fd < 0 || (r->live_path[0] && !r->nameless)) return;
    int e = r->nameless ? take_link(r->kept_live_dir.fd, strrchr(r->live_path, '/') + 1, r->kept_live_file.fd)
                        : name_live(r, r->kept_live_dir.fd, take_link, r->kept_live_file.fd);
    r->nameless = r->nameless && e < 0;
    if (e < 0)
        fdri_text_message("FDR_LIVE_DIR=%s: %s; the live file has no name, so a SIGKILL loses the recording",
                          r->settings.live_dir, strerror(-e));
}

/* Maps and allocates the live file. On failure returns MAP_FAILED with errno, and closes and removes the file. A full
 * file system must be an error now and not a SIGBUS after 300 hours. */
static void *map_file(struct fdri_life_recorder *r, int fd, uint64_t bytes)
{
    /* hugetlbfs refuses to truncate to a part of a page, but grows the file when its last byte is allocated */
    int e = ftruncate(fd, (off_t)bytes) ? posix_fallocate(fd, (off_t)bytes - 1, 1) : 0;
    void *m = e ? MAP_FAILED : fdri_memory_pages_map(bytes, fd);
    if (m != MAP_FAILED && r->topology.nodes <= 1) fdri_memory_pages_large(m, bytes, fd);
    if (!e) e = m == MAP_FAILED ? errno : allocate_file(r, fd, bytes);
    if (!e) {
        touch_pages(m, 0, bytes);
        return m;
    }
    if (m != MAP_FAILED) fdri_memory_pages_unmap();
    if (r->live_path[0]) unlink(r->live_path);
    close(fd);
    errno = e;
    return MAP_FAILED;
}

/* Releases the descriptors; mappings stay. */
static void close_descriptors(struct fdri_life_recorder *r)
{
    fdri_fd_release(&r->kept_live_file);
    fdri_fd_release(&r->kept_live_dir);
    fdri_fd_release(&r->kept_dir);
    r->live_path[0] = 0;
}

/* The arena as a live file; NULL after a message. */
static void *map_live(struct fdri_life_recorder *r, uint64_t bytes)
{
    const char *why = NULL;
    int dir = open_live_dir(&r->settings, &why), fd = -1;
    void *m = MAP_FAILED;
    if (dir >= 0) {
        r->kept_live_dir = fdri_fd_keep(dir);
        fd = open_live(r, r->kept_live_dir.fd, bytes);
        if (fd < 0) why = strerror(-fd);
    }
    if (fd >= 0 && (m = map_file(r, fd, bytes)) == MAP_FAILED) why = strerror(errno);
    if (m == MAP_FAILED) {
        fdri_text_message("FDR_LIVE_DIR=%s: %s; recording into anonymous memory, which a SIGKILL loses",
                          r->settings.live_dir, why ? why : "unusable");
        close_descriptors(r);
        return NULL;
    }
    r->kept_live_file = fdri_fd_keep(fd);
    return m;
}

static void keep_in_place(const struct fdri_life_recorder *r, void *memory, uint64_t bytes)
{
    static unsigned said;
    if (r->topology.nodes > 1 && !r->topology.stay(memory, bytes) && fdri_text_once(&said))
        fdri_text_message("cannot keep the arena on its NUMA nodes: %s; the kernel may move it", strerror(errno));
}

int fdri_memory_arena_make(struct fdri_life_recorder *r)
{
    const uint64_t most = 3ull << 30;
    uint64_t bytes = r->settings.buffer_bytes ? r->settings.buffer_bytes : default_bytes(&r->settings);
    uint64_t least = 65536 + 16ull * r->settings.bin_bytes;
    if (bytes > most || bytes < least) {
        uint64_t used = bytes > most ? most : least;
        char text[24] = "3G";
        if (used == least) snprintf(text, sizeof text, "%" PRIu64 "K", least >> 10);
        fdri_text_message("FDR_BUFFER=%s: outside %" PRIu64 "K .. 3G for bins of %u bytes; using %s",
                          r->settings.buffer_text, least >> 10, r->settings.bin_bytes, text);
        bytes = used;
    }
    bytes &= ~4095ull;
    r->kept_live_file = r->kept_live_dir = r->kept_dir = FDRI_FD_KEPT_NONE;
    r->live_path[0] = 0;
    r->nameless = false;
    fdri_system_topology_read(&r->topology);
    void *m = r->settings.arena == FDRI_LIFE_MAPPED ? map_live(r, bytes) : NULL;
    if (!m) {
        m = map_anonymous(r, bytes);
        if (m == MAP_FAILED) {
            int e = errno;
            fdri_text_message("FDR_BUFFER=%s: %" PRIu64 " bytes: %s; nothing is recorded", r->settings.buffer_text,
                              bytes, strerror(e));
            return -e;
        }
        r->settings.arena = FDRI_LIFE_ANONYMOUS;
    }
    int e = fdri_bins_format(&r->arena, m, bytes, r->settings.bin_bytes);
    if (e) {
        fdri_memory_pages_unmap();
        return e;
    }
    fdri_bins_divide(&r->arena, &r->topology);
    fdri_arena_strew(&r->arena);
    keep_in_place(r, m, bytes);
    r->meta_in_bins = 0;
    r->shares = (struct fdri_shares){0};
    r->sample_share = r->sample_bins = 0;
    r->slabs = (struct fdri_bins_slabs){.reserve = r->arena.meta_reserve / 16 * 13};
    r->arena.slot_bytes = r->slabs.reserve;
    /* An idle location holds its block, two bins for its accounts and one for its calls. Three sixteenths and 96 KiB
     * remain for the active ones. With bins below 4 KiB the first accounts lie beside the block. */
    uint64_t each = sizeof(struct fdri_arena_location) + 3 * fdri_bits_max(r->arena.super->bin_bytes, 4096);
    uint64_t block = r->arena.super->bin_bytes < 4096 ? 4096 : sizeof(struct fdri_arena_location);
    uint64_t room = bytes / 16 * 13 - fdri_bits_min(bytes / 16 * 13, 98304);
    r->arena.super->locations_sure = (uint32_t)fdri_bits_min(r->slabs.reserve / block, fdri_bits_max(room / each, 1));
    if (fdri_ended_fold_start())
        for (int i = 0; i < 2; i++) r->shares.spare[i] = fdri_thread_location_new();
    uint32_t bins = r->arena.super->bins_total;
    r->bin_reserve = (uint32_t)fdri_bits_max(fdri_bits_min(bins / 32, 64), fdri_bits_min(bins / 8, 4));
    return 0;
}

/* Removes the live file's name. empty: no thread is in the middle of a record. */
static void remove_live(const struct fdri_life_recorder *r, bool empty)
{
    if (!r->live_path[0] || r->nameless) return;
    int e = fdri_crash_live_remove(empty);
    bool over = fdri_atomic_load_relaxed(&r->arena.super->over) != 0;
    if (e)
        fdri_text_message("%s: cannot remove the live file: %s; it stays %s", r->live_path, strerror(-e),
                          over ? "and is marked as over" : "because it has a second name");
}

void fdri_memory_arena_abandon(struct fdri_life_recorder *r, bool unlink_live)
{
    if (unlink_live) remove_live(r, false);
    close_descriptors(r);
}

/* The memory stays mapped, filled with zeros: a late thread that once saw the switch on finds no open call and no
 * region in it. */
void fdri_memory_arena_drop(struct fdri_life_recorder *r, bool unlink_live)
{
    if (!r->arena.base) return;
    if (unlink_live) remove_live(r, true);
    fdri_memory_pages_empty();
    close_descriptors(r);
}
