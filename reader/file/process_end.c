/* SPDX-License-Identifier: MIT */
/* Adds to a file how its process ended, for a caller that saw the end. */
#include <errno.h>
#include <fcntl.h>
#include <fdr/reader.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "format/arena/arena.h"
#include "format/arena/checks.h"

static bool is_recording(const uint8_t *page)
{
    uint32_t version;
    memcpy(&version, page + offsetof(struct fdri_arena_superblock, format_version), sizeof version);
    return memcmp(page, FDRI_ARENA_MAGIC, 8) == 0 && version == FDRI_ARENA_FORMAT_VERSION;
}

int fdr_file_add_end(const char *path, int wait_status, uint32_t oom_kills, uint64_t realtime_ns)
{
    _Alignas(8) uint8_t page[FDRI_ARENA_SUPERBLOCK_BYTES];
    struct fdri_arena_superblock *s = (void *)page;
    struct fdri_arena_spare spare;
    int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0) return -errno;
    int e = pread(fd, page, sizeof page, 0) == (ssize_t)sizeof page && is_recording(page) ? 0 : -EINVAL;
    if (!e) {
        s->end_known = 1;
        s->end_status = wait_status;
        s->end_oom_kills = oom_kills;
        s->end_realtime_ns = realtime_ns;
        memcpy(&spare, page + FDRI_ARENA_SPARE_OFF, sizeof spare);
        /* then it has checks, and they must cover the change */
        if (spare.magic == FDRI_ARENA_SPARE_MAGIC && spare.chunk_count) fdri_arena_spare_finish(page, &spare);
        ssize_t n = pwrite(fd, page, sizeof page, 0);
        if (n != (ssize_t)sizeof page) e = n < 0 ? -errno : -EIO;
    }
    close(fd);
    return e;
}
