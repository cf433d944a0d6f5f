/* SPDX-License-Identifier: MIT */
/* Where the arena lives: a named file in a RAM-backed directory, really allocated, or anonymous memory. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "recorder/recorder.h"

static uint64_t read_number(const char *path)
{
    char text[32] = "";
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return UINT64_MAX;
    ssize_t n = read(fd, text, sizeof text - 1);
    close(fd);
    char *end;
    unsigned long long v = strtoull(text, &end, 10);
    return n > 0 && end != text ? v : UINT64_MAX; /* "max" is no number: no limit */
}

static uint64_t memory_limit(void)
{
    uint64_t limit = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
    limit = fdr_min(limit, read_number("/sys/fs/cgroup/memory.max"));
    return fdr_min(limit, read_number("/sys/fs/cgroup/memory/memory.limit_in_bytes"));
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

/* The least of 64 MiB, 2 % of the memory limit divided by the ranks here, half the live directory's room; >= 4 MiB. */
static uint64_t default_bytes(const struct fdri_settings *s)
{
    uint64_t bytes = fdr_min(64u << 20, memory_limit() / 50 / local_ranks());
    struct statfs f;
    if (s->arena == FDRI_MAPPED && statfs(s->live_dir, &f) == 0)
        bytes = fdr_min(bytes, (uint64_t)f.f_bavail * (uint64_t)f.f_bsize / 2 / local_ranks());
    return fdr_max(bytes & ~0xfffffull, 4u << 20);
}

static bool ram_backed(int fd)
{
    struct statfs f;
    return fstatfs(fd, &f) == 0 && (f.f_type == TMPFS_MAGIC || f.f_type == RAMFS_MAGIC || f.f_type == HUGETLBFS_MAGIC);
}

/* The live directory, made if need be; -errno with *why. Only ours is used: no links, our own uid, nobody else's write. */
static int open_live_dir(const struct fdri_settings *s, const char **why)
{
    struct stat st;
    if (mkdir(s->live_dir, 0700) && errno != EEXIST) {
        *why = strerror(errno);
        return -errno;
    }
    int fd = open(s->live_dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st)) {
        *why = strerror(errno);
        if (fd >= 0) close(fd);
        return -EACCES;
    }
    *why = st.st_uid != getuid() ? "belongs to another user" : (st.st_mode & 022) ? "others may write there"
         : !ram_backed(fd) && !s->live_force ? "is not RAM-backed (FDR_LIVE_FORCE=1 uses it all the same)" : NULL;
    if (!*why) return fd;
    close(fd);
    return -EACCES;
}

static int create_live(struct fdri_recorder *r, int dir, uint64_t bytes)
{
    char host[64] = "host", name[192];
    gethostname(host, sizeof host - 1);
    for (int n = 0; n < 10000; n++) { /* containers and self-exec repeat pids; what is there is evidence */
        snprintf(name, sizeof name, "%s.%s.%d.%d.live.fdr", r->set.name, host, (int)getpid(), n);
        int fd = openat(dir, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (fd < 0 && errno == EEXIST) continue;
        if (fd < 0) return -errno;
        int e = posix_fallocate(fd, 0, (off_t)bytes); /* a full file system is an error now, not SIGBUS at hour 300 */
        if (e) {
            unlinkat(dir, name, 0);
            close(fd);
            return -e;
        }
        int high = fcntl(fd, F_DUPFD_CLOEXEC, 100); /* out of the way of programs that count on small numbers */
        if (high >= 0) {
            close(fd);
            fd = high;
        }
        snprintf(r->live_path, sizeof r->live_path, "%s/%s", r->set.live_dir, name);
        return fd;
    }
    return -EEXIST;
}

static void *map_live(struct fdri_recorder *r, uint64_t bytes)
{
    const char *why = NULL;
    int dir = open_live_dir(&r->set, &why), fd = -1;
    void *m = MAP_FAILED;
    if (dir >= 0) {
        fd = create_live(r, dir, bytes);
        if (fd < 0) why = strerror(-fd);
        close(dir);
    }
    if (fd >= 0) {
        m = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
        if (m == MAP_FAILED) {
            why = strerror(errno);
            unlink(r->live_path);
            close(fd);
        }
    }
    if (m == MAP_FAILED) {
        fdri_say("FDR_LIVE_DIR=%s: %s; recording into anonymous memory, which a SIGKILL takes along", r->set.live_dir,
                 why ? why : "unusable");
        r->live_path[0] = 0;
        return NULL;
    }
    r->live_fd = fd;
    return m;
}

int fdri_arena_make(struct fdri_recorder *r)
{
    const uint64_t most = 3ull << 30;
    uint64_t bytes = r->set.buffer_bytes ? r->set.buffer_bytes : default_bytes(&r->set);
    uint64_t least = 65536 + 16ull * r->set.bin_bytes;
    if (bytes > most || bytes < least) {
        uint64_t used = bytes > most ? most : least;
        fdri_say("FDR_BUFFER=%" PRIu64 ": outside %" PRIu64 " .. 3G for bins of %u bytes; using %" PRIu64, bytes, least,
                 r->set.bin_bytes, used);
        bytes = used;
    }
    bytes &= ~4095ull;
    r->live_fd = -1;
    r->live_path[0] = 0;
    void *m = r->set.arena == FDRI_MAPPED ? map_live(r, bytes) : NULL;
    if (!m) {
        m = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
        if (m == MAP_FAILED) {
            int e = errno;
            fdri_say("FDR_BUFFER=%" PRIu64 ": %s; nothing is recorded", bytes, strerror(e));
            return -e;
        }
        r->set.arena = FDRI_ANONYMOUS;
    }
    int e = fdri_arena_format(&r->arena, m, bytes, r->set.bin_bytes);
    if (e) {
        munmap(m, bytes);
        return e;
    }
    r->meta_in_bins = 0;
    r->bin_reserve = (uint32_t)fdr_min(r->arena.super->bins_total / 32, 64);
    return 0;
}

/* Threads may be in the middle of a record: their memory stays mapped, only what is behind it goes. */
void fdri_arena_drop(struct fdri_recorder *r, bool unlink_live)
{
    if (!r->arena.base) return;
    uint64_t bytes = r->arena.super->arena_bytes;
    void *m = mmap(r->arena.base, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    (void)m; /* failing leaves the old memory in place, which is as good */
    if (r->live_fd >= 0) close(r->live_fd);
    if (unlink_live && r->live_path[0]) unlink(r->live_path);
    r->live_fd = -1;
    r->live_path[0] = 0;
}
