/* SPDX-License-Identifier: MIT */
/* The checks of a file copied from outside, computed over the bytes of the file, as in
 * export/snapshot/snapshot_checks.c. */
#include "base/bits.h"
#include "format/arena/arena.h"
#include "format/arena/checks.h"
#include "reader/live/external_copy.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

static uint32_t check_file(struct copy *c, uint64_t off, uint64_t count)
{
    uint64_t h = fdri_arena_check32_begin((uint32_t)count);
    while (count && !c->error) {
        ssize_t n = pread(c->fd, c->first, fdri_bits_min(count, BATCH), (off_t)off);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) {
            c->error = n ? -errno : -EIO;
            break;
        }
        h = fdri_arena_check32_add(h, c->first, (uint32_t)n);
        off += (uint64_t)n;
        count -= (uint64_t)n;
    }
    return fdri_arena_check32_end(h);
}

void fdri_live_external_put_checks(struct copy *c, struct fdri_arena_spare *spare)
{
    struct fdri_arena_chunk_list *l = &c->chunk_list; /* it already has the pieces of bins */
    uint32_t tail_bytes = fdri_live_external_tail_bytes(c);
    uint32_t room = (FDRI_ARENA_TAIL_MAX_BYTES - tail_bytes - 8) / (uint32_t)sizeof(struct fdri_arena_chunk);
    fdri_arena_chunks_add(l, fdri_bits_max((c->virgin >> 32) * FDRI_ARENA_META_ALIGN, FDRI_ARENA_SUPERBLOCK_BYTES),
                          c->bytes);
    while (l->count > room) fdri_arena_chunks_coarsen(l);
    spare->tail_check = check_file(c, c->bytes, tail_bytes);
    for (uint32_t i = 0; i < l->count && !c->error; i++)
        l->chunk[i].check = check_file(c, l->chunk[i].off, fdri_arena_chunk_bytes(l->chunk[i].off, l->log2, c->bytes));
    spare->tail_bytes = tail_bytes;
    spare->chunk_log2 = l->log2;
    spare->chunk_count = l->count;
    spare->chunks_off = fdri_bits_align_up(c->bytes + tail_bytes, 8);
    spare->chunks_check = fdri_arena_check32(l->chunk, l->count * (uint32_t)sizeof l->chunk[0]);
    fdri_live_external_put(c, spare->chunks_off, l->chunk, l->count * sizeof l->chunk[0]);
}
