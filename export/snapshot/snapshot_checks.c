/* SPDX-License-Identifier: MIT */
/* The checks of a snapshot's meta blocks. They cover the bytes of the finished file, so they are computed by reading it
 * back. Bins have their own checks. No allocation, no lock: it may run after a crash. */
#include "base/bits.h"
#include "export/snapshot/snapshot.h"
#include "format/arena/arena.h"
#include "format/arena/checks.h"

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

static struct fdri_arena_chunk chunks[FDRI_ARENA_CHUNKS_MOST]; /* one snapshot at a time */
static uint8_t block[65536];
static uint64_t block_off, block_bytes; /* the stretch of the file in `block` */

/* Returns the file's bytes from `off` on, at most *count. NULL: *count is -errno. Chunks are small and mostly adjacent,
 * so one read serves many. */
static const uint8_t *file_at(int fd, uint64_t off, int64_t *count)
{
    while (off < block_off || off >= block_off + block_bytes) {
        ssize_t n = pread(fd, block, sizeof block, (off_t)off);
        if (n < 0 && errno == EINTR) continue;
        block_off = off;
        block_bytes = n > 0 ? (uint64_t)n : 0;
        if (n > 0) break;
        *count = n ? -errno : -EIO;
        return NULL;
    }
    *count = (int64_t)fdri_bits_min((uint64_t)*count, block_off + block_bytes - off);
    return block + (off - block_off);
}

/* Stores in *check the value of fdri_arena_check32 over the file's bytes in [off, off + count). 0 or -errno. */
static int check_file(int fd, uint64_t off, uint64_t count, uint32_t *check)
{
    uint64_t h = fdri_arena_check32_begin((uint32_t)count);
    while (count) {
        int64_t n = (int64_t)count;
        const uint8_t *bytes = file_at(fd, off, &n);
        if (!bytes) return (int)n;
        h = fdri_arena_check32_add(h, bytes, (uint32_t)n);
        off += (uint64_t)n;
        count -= (uint64_t)n;
    }
    *check = fdri_arena_check32_end(h);
    return 0;
}

/* Adds the pieces of bins that are meta blocks now. That may be more than were copied; the check covers their places in
 * the file as they are. */
static void add_pieces(struct fdri_arena_chunk_list *l, uint64_t virgin)
{
    const struct fdri_arena_superblock *s = (const void *)fdri_snapshot_view.base;
    uint64_t off = s->bins_off, end = off + (uint64_t)(uint32_t)virgin * s->bin_bytes;
    for (uint32_t bytes; (off = fdri_snapshot_next_meta_piece(off, end, &bytes)) < end; off += bytes)
        fdri_arena_chunks_add(l, off, off + bytes);
}

int fdri_snapshot_put_checks(int fd, uint64_t virgin, uint32_t tail_bytes, struct fdri_arena_spare *spare)
{
    uint32_t room = (FDRI_ARENA_TAIL_MAX_BYTES - tail_bytes - 8) / sizeof(struct fdri_arena_chunk);
    struct fdri_arena_chunk_list l = {.chunk = chunks,
                                      .log2 = FDRI_ARENA_CHUNK_LOG2_LEAST,
                                      .most = (uint32_t)fdri_bits_min(room, FDRI_ARENA_CHUNKS_MOST)};
    block_bytes = 0;
    add_pieces(&l, virgin);
    fdri_arena_chunks_add(&l, (virgin >> 32) * FDRI_ARENA_META_ALIGN, fdri_snapshot_view.bytes);
    int e = check_file(fd, fdri_snapshot_view.bytes, tail_bytes, &spare->tail_check);
    for (uint32_t i = 0; i < l.count && !e; i++)
        e = check_file(fd, chunks[i].off, fdri_arena_chunk_bytes(chunks[i].off, l.log2, fdri_snapshot_view.bytes),
                       &chunks[i].check);
    if (e) return e;
    spare->tail_bytes = tail_bytes;
    spare->chunk_log2 = l.log2;
    spare->chunk_count = l.count;
    spare->chunks_off = fdri_bits_align_up(fdri_snapshot_view.bytes + tail_bytes, 8);
    spare->chunks_check = fdri_arena_check32(chunks, l.count * (uint32_t)sizeof chunks[0]);
    return fdri_snapshot_put(fd, chunks, l.count * sizeof chunks[0], spare->chunks_off);
}
