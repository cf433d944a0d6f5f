/* SPDX-License-Identifier: MIT */
/* Memory balance (Wagner 2015, eq. 4.1): how evenly the memory for events is used. The use of a bin is the share
 * that its records take. Headers, ends of bins and free pieces are unused. */
#include <fdr/reader.h>
#include <stdbool.h>
#include <stdint.h>

#include "format/arena/arena.h"
#include "reader/account/account.h"
#include "reader/file/file.h"

/* The size of the bin or meta block at `off`. *used: bytes of records in it. *events: it is no meta block. */
static uint32_t block_at(const struct fdr_file *f, uint64_t off, uint32_t room, uint64_t *used, bool *events)
{
    struct fdri_arena_bin h;
    *used = 0;
    *events = true;
    if (fdri_file_bin_header(f, off, &h) && 1u << h.size_log2 <= room) {
        *used = h.generation & 1 ? (FDRI_ARENA_COMMIT_BITS(h.commit) + 7) / 8 : 0;
        return 1u << h.size_log2;
    }
    const struct fdri_arena_meta_head *m = fdri_file_meta_at(f, off, 0, UINT32_MAX, 64);
    if (!m || m->bytes < FDRI_ARENA_BIN_MIN_BYTES || m->bytes > room || m->bytes & (m->bytes - 1))
        return FDRI_ARENA_BIN_MIN_BYTES;
    *events = false;
    return m->bytes;
}

void fdri_account_balance(struct fdr_file *f)
{
    uint64_t all = 0, sum = 0, used, end = f->sb.bins_off + (uint64_t)(uint32_t)f->sb.virgin * f->sb.bin_bytes;
    double most = 0;
    bool events;
    if (end > f->bins_end) end = f->bins_end;
    for (uint64_t off = f->sb.bins_off, size; off < end; off += size) {
        uint32_t room = f->sb.bin_bytes - (uint32_t)((off - f->sb.bins_off) % f->sb.bin_bytes);
        size = block_at(f, off, room, &used, &events);
        if (!events) continue;
        all += size;
        sum += used;
        if (used && (double)used / (double)size > most) most = (double)used / (double)size;
    }
    f->info.record_bytes = sum;
    f->info.memory_balance = sum ? (double)sum / (double)all / most : 0;
}
