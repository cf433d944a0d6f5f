/* SPDX-License-Identifier: MIT */
/* Reads the arena out of a core file. The arena begins at the start of a page of a segment. On several NUMA nodes it
 * has several segments in a row. */
#include <errno.h>
#include <fcntl.h>
#include <fdr/reader.h>
#include <gelf.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bits.h"
#include "format/arena/arena.h"
#include "reader/file/whole_file.h"

struct segment {
    uint64_t address, off, bytes;
};
struct core {
    int fd;
    uint64_t bytes;
    struct segment *segment;
    size_t count;
    bool cut; /* the header names more than the file has: `ulimit -c`, or a full disk */
};

static bool read_at(int fd, uint64_t off, void *to, size_t count)
{
    return pread(fd, to, count, (off_t)off) == (ssize_t)count;
}

static int write_at(int fd, const void *from, size_t count, uint64_t off)
{
    ssize_t n = pwrite(fd, from, count, (off_t)off);
    return n == (ssize_t)count ? 0 : n < 0 ? -errno : -ENOSPC; /* a short write leaves no errno: there was no room */
}

static int by_address(const void *x, const void *y)
{
    const struct segment *a = x, *b = y;
    return a->address < b->address ? -1 : a->address > b->address;
}

/* A core may be cut short, or hostile. So no segment reaches beyond the file, and all of them together are no longer
 * than it. This bounds the copy. */
static void add_segment(struct core *c, const GElf_Phdr *p, uint64_t *left)
{
    if (p->p_type != PT_LOAD) return;
    if (p->p_filesz && (p->p_offset >= c->bytes || p->p_filesz > c->bytes - p->p_offset)) c->cut = true;
    if (p->p_offset >= c->bytes) return;
    uint64_t bytes = fdri_bits_min(fdri_bits_min(p->p_filesz, c->bytes - p->p_offset), *left);
    if (!bytes || bytes > UINT64_MAX - p->p_vaddr) return;
    *left -= bytes;
    c->segment[c->count++] = (struct segment){p->p_vaddr, p->p_offset, bytes};
}

static bool find_segments(struct core *c)
{
    size_t headers = 0;
    uint64_t left = c->bytes;
    GElf_Phdr p;
    elf_version(EV_CURRENT);
    Elf *elf = elf_begin(c->fd, ELF_C_READ, NULL);
    bool good = elf && elf_kind(elf) == ELF_K_ELF && elf_getphdrnum(elf, &headers) == 0;
    c->segment = good ? calloc(headers + 1, sizeof *c->segment) : NULL;
    for (size_t i = 0; c->segment && i < headers; i++)
        if (gelf_getphdr(elf, (int)i, &p)) add_segment(c, &p, &left);
    elf_end(elf);
    if (c->count) qsort(c->segment, c->count, sizeof *c->segment, by_address);
    return c->segment != NULL;
}

static const struct segment *segment_of(const struct core *c, uint64_t address)
{
    size_t low = 0, high = c->count; /* the last segment that begins at or before the address is below `high` */
    while (low < high) {
        size_t i = low + (high - low) / 2;
        if (c->segment[i].address <= address) low = i + 1;
        else high = i;
    }
    const struct segment *s = low ? &c->segment[low - 1] : NULL;
    return s && address - s->address < s->bytes ? s : NULL;
}

static bool is_arena(int fd, uint64_t off, struct fdri_arena_superblock *s)
{
    return read_at(fd, off, s, sizeof *s) && memcmp(s->magic, FDRI_ARENA_MAGIC, sizeof s->magic) == 0 &&
           s->format_version == FDRI_ARENA_FORMAT_VERSION && s->header_bytes == FDRI_ARENA_SUPERBLOCK_BYTES &&
           s->arena_bytes >= 65536 && s->arena_bytes <= UINT32_MAX && s->bins_off < s->arena_bytes;
}

/* The address of the arena; 0: there is none. */
static uint64_t find_arena(const struct core *c, struct fdri_arena_superblock *s)
{
    char magic[8];
    for (size_t i = 0; i < c->count; i++)
        for (uint64_t at = 0, bytes = c->segment[i].bytes; at < bytes && bytes - at >= FDRI_ARENA_SUPERBLOCK_BYTES;
             at += 4096)
            if (read_at(c->fd, c->segment[i].off + at, magic, sizeof magic) &&
                memcmp(magic, FDRI_ARENA_MAGIC, 8) == 0 && is_arena(c->fd, c->segment[i].off + at, s))
                return c->segment[i].address + at;
    return 0;
}

/* Copies the arena; bytes that the core lacks stay zero. *lacks counts them. */
static int copy_arena(const struct core *c, uint64_t address, uint64_t bytes, int out, uint64_t *lacks)
{
    static const uint64_t most = 1 << 20;
    uint8_t *block = malloc(most);
    int e = block ? 0 : -ENOMEM;
    for (uint64_t at = 0; at < bytes && !e;) {
        const struct segment *s = segment_of(c, address + at);
        uint64_t n = s ? s->bytes - (address + at - s->address) : 4096;
        if (n > bytes - at) n = bytes - at;
        if (n > most) n = most;
        if (s && !read_at(c->fd, s->off + (address + at - s->address), block, n)) e = -EIO;
        else if (s) e = write_at(out, block, n, at);
        else *lacks += n;
        at += n;
    }
    free(block);
    return e ? e : ftruncate(out, (off_t)bytes) ? -errno : 0;
}

static int extract(struct core *c, const char *core, const char *out, char *message, size_t message_bytes)
{
    struct fdri_arena_superblock s;
    struct fdri_file_whole n;
    uint64_t lacks = 0;
    uint64_t address = find_segments(c) ? find_arena(c, &s) : 0;
    if (!address) {
        snprintf(message, message_bytes, "%s: %s", core,
                 !c->segment ? "not a core file"
                 : c->cut    ? "the core is cut off, and the rest of it holds no arena"
                             : "no arena in it; a mapped one is in its live file, not in the core");
        return -ENOENT;
    }
    int e = fdri_file_whole_begin(&n, out);
    if (!e) e = fdri_file_whole_end(&n, out, copy_arena(c, address, s.arena_bytes, n.fd, &lacks), false);
    if (e) snprintf(message, message_bytes, "%s: %s", out, strerror(-e));
    else if (lacks)
        snprintf(message, message_bytes, "%" PRIu64 " of the %" PRIu64 " bytes of the arena are not in the core%s",
                 lacks, s.arena_bytes, c->cut ? ", which is cut off" : "");
    return e;
}

int fdr_core_extract(const char *core, const char *out, char *message, size_t message_bytes)
{
    char none[1];
    if (!message || !message_bytes) message = none, message_bytes = sizeof none;
    message[0] = 0;
    struct core c = {.fd = open(core, O_RDONLY | O_CLOEXEC)};
    struct stat st;
    if (c.fd < 0 || fstat(c.fd, &st)) {
        snprintf(message, message_bytes, "%s: %s", core, strerror(errno));
        if (c.fd >= 0) close(c.fd);
        return -EIO;
    }
    c.bytes = (uint64_t)st.st_size;
    int e = extract(&c, core, out, message, message_bytes);
    free(c.segment);
    close(c.fd);
    return e;
}
