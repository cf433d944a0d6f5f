/* SPDX-License-Identifier: MIT */
/* One bin: is its header what it says, and does its payload decode to what its commit word promises? */
#include "reader/reader.h"

#include <string.h>

bool fdri_reader_bin_header(const struct fdr_file *f, uint64_t off, struct fdr_bin *h)
{
    if (off < f->sb.bins_off || off % FDR_BIN_MIN_BYTES) return false;
    const void *p = fdri_reader_at(f, off, sizeof *h);
    if (!p) return false;
    memcpy(h, p, sizeof *h);
    if (h->magic != FDR_BIN_MAGIC || h->check != fdr_check32((const uint8_t *)h + 8, 40)) return false;
    if (h->size_log2 < 9 || 1u << h->size_log2 > f->sb.bin_bytes) return false;
    if (off + (1u << h->size_log2) > f->sb.arena_bytes) return false;
    return h->class_ < FDR_CLASS_COUNT && h->band < FDR_BANDS && h->depth <= FDRI_READER_DEPTH_MAX &&
           (h->class_ != FDR_CLASS_REGION || h->depth > 0);
}

bool fdri_reader_bin_begin(const struct fdr_file *f, const struct fdri_reader_bin *b, struct fdr_decoder *d)
{
    struct fdr_bin h;
    memcpy(&h, f->bytes + b->off, sizeof h);
    uint64_t there = f->end - b->off, bytes = 1u << b->size_log2;
    if (there > bytes) there = bytes;
    if (FDR_COMMIT_RECORDS(h.commit) == 0) h.commit = FDR_COMMIT(0, 0, 0); /* nothing there to be wrong */
    return fdr_decode_begin(d, &h, f->bytes + b->off + FDR_BIN_HEADER, (uint32_t)(there - FDR_BIN_HEADER)) ||
           d->records == 0;
}

static bool decodes(const struct fdr_file *f, const struct fdri_reader_location *l, const struct fdri_reader_bin *b)
{
    struct fdr_decoder d;
    struct fdr_record r = {0};
    if (!fdri_reader_bin_begin(f, b, &d)) return false;
    if (d.records == 0) return true;
    int result;
    while ((result = fdr_decode_next(&d, &r)) > 0)
        continue;
    return result == 0 && r.leave <= l->clock.stored_max;
}

bool fdri_reader_bin_good(const struct fdr_file *f, const struct fdri_reader_location *l, struct fdri_reader_bin *b)
{
    uint8_t state = __atomic_load_n(&b->state, __ATOMIC_RELAXED);
    if (state == FDRI_READER_BIN_UNKNOWN) {
        state = decodes(f, l, b) ? FDRI_READER_BIN_GOOD : FDRI_READER_BIN_BAD;
        __atomic_store_n(&b->state, state, __ATOMIC_RELAXED);
    }
    return state == FDRI_READER_BIN_GOOD;
}
