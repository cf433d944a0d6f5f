/* SPDX-License-Identifier: MIT */
/* The checks of a file copied from outside, as export/snapshot/snapshot_checks.c makes them: of what stands in the file. */
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
    uint64_t h = fdr_check32_begin((uint32_t)count);
    while (count && !c->error) {
        ssize_t n = pread(c->fd, c->first, fdr_min(count, BATCH), (off_t)off);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) {
            c->error = n ? -errno : -EIO;
            break;
        }
        h = fdr_check32_add(h, c->first, (uint32_t)n);
        off += (uint64_t)n;
        count -= (uint64_t)n;
    }
    return fdr_check32_end(h);
}

void fdri_outside_put_checks(struct copy *c, struct fdr_spare *spare)
{
    struct fdr_chunk_list *l = &c->chunk_list; /* pieces of bins are in it */
    uint32_t tail_bytes = fdri_outside_tail_bytes(c);
    uint32_t room = (FDR_TAIL_MAX_BYTES - tail_bytes - 8) / (uint32_t)sizeof(struct fdr_chunk);
    fdr_chunks_add(l, fdr_max((c->virgin >> 32) * FDR_META_ALIGN, FDR_SUPERBLOCK_BYTES), c->bytes);
    while (l->count > room) fdr_chunks_coarsen(l);
    spare->tail_check = check_file(c, c->bytes, tail_bytes);
    for (uint32_t i = 0; i < l->count && !c->error; i++)
        l->chunk[i].check = check_file(c, l->chunk[i].off, fdr_chunk_bytes(l->chunk[i].off, l->log2, c->bytes));
    spare->tail_bytes = tail_bytes;
    spare->chunk_log2 = l->log2;
    spare->chunk_count = l->count;
    spare->chunks_off = fdr_align_up(c->bytes + tail_bytes, 8);
    spare->chunks_check = fdr_check32(l->chunk, l->count * (uint32_t)sizeof l->chunk[0]);
    fdri_outside_put(c, spare->chunks_off, l->chunk, l->count * sizeof l->chunk[0]);
}
