/* SPDX-License-Identifier: MIT */
/* One bin: is its header what it says, and does its payload decode to what its commit word promises? */
#include "base/atomic.h"
#include "format/arena/arena.h"
#include "format/codec/record_codec.h"
#include "format/codec/sample_codec.h"
#include "reader/events/events.h"
#include "reader/file/file.h"

#include <fdr/reader.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
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
    return fdr_decode_begin(d, &h, f->bytes + b->off + FDR_BIN_HEADER, (uint32_t)(there - FDR_BIN_HEADER));
}

/* Counts those of the `n` records that are below the mark. */
static uint64_t below(const struct fdr_record *r, uint32_t n, uint64_t mark)
{
    uint64_t count = 0;
    if (n == 0 || r[0].leave >= mark) return 0; /* they rise */
    while (count < n && r[count].leave < mark) count++;
    return count;
}

static bool all_calls(struct fdr_decoder *d, uint64_t mark, uint64_t *gone, uint64_t *newest, bool slowly)
{
    struct fdr_record r[FDRI_READER_CHUNK];
    int n;
    *gone = *newest = 0;
    while ((n = fdr_decode_calls(d, r, FDRI_READER_CHUNK, slowly)) > 0) {
        *gone += below(r, (uint32_t)n, mark);
        *newest = r[n - 1].leave;
    }
    return n == 0;
}

static bool all_points(struct fdr_decoder *d, uint64_t mark, uint64_t *gone, uint64_t *newest)
{
    struct fdr_record r = {0};
    int result;
    while ((result = fdr_decode_next(d, &r)) > 0) {
        *gone += r.leave < mark;
        *newest = r.leave;
    }
    return result == 0;
}

static enum fdri_reader_bin_state read_calls(const struct fdr_file *f, const struct fdri_reader_bin *b, uint64_t mark,
                                             uint64_t *gone, uint64_t *newest)
{
    struct fdr_decoder d;
    d.sample = NULL;
    if (!fdri_reader_bin_begin(f, b, &d)) return FDRI_READER_BIN_BAD;
    if (all_calls(&d, mark, gone, newest, false)) return FDRI_READER_BIN_GOOD;
    fdri_reader_bin_begin(f, b, &d);
    return all_calls(&d, mark, gone, newest, true) ? FDRI_READER_BIN_SLOW : FDRI_READER_BIN_BAD;
}

static enum fdri_reader_bin_state read_points(const struct fdr_file *f, const struct fdri_reader_bin *b, uint64_t mark,
                                              uint64_t *gone, uint64_t *newest)
{
    struct fdr_sample_decoder sample;
    struct fdr_decoder d;
    d.sample = &sample;
    if (!fdri_reader_bin_begin(f, b, &d)) return FDRI_READER_BIN_BAD;
    return all_points(&d, mark, gone, newest) ? FDRI_READER_BIN_GOOD : FDRI_READER_BIN_BAD;
}

bool fdri_reader_bin_read(const struct fdr_file *f, const struct fdri_reader_location *l, struct fdri_reader_bin *b,
                          uint64_t mark, uint64_t *gone, uint64_t *newest)
{
    const struct fdr_bin *h = (const void *)(f->bytes + b->off);
    *gone = *newest = 0;
    if (fdr_load_relaxed(&b->state) == FDRI_READER_BIN_BAD) return false;
    uint8_t state = (uint8_t)(h->class_ == FDR_CLASS_REGION ? read_calls : read_points)(f, b, mark, gone, newest);
    if (*newest > l->clock.stored_max) state = FDRI_READER_BIN_BAD;
    fdr_store_relaxed(&b->state, state);
    return state != FDRI_READER_BIN_BAD;
}

uint64_t fdri_reader_bin_up_to(const struct fdr_file *f, const struct fdri_reader_bin *b, uint64_t cut,
                               uint64_t *newest)
{
    struct fdr_sample_decoder sample;
    struct fdr_decoder d;
    struct fdr_record r = {0};
    uint64_t count = 0;
    d.sample = &sample;
    *newest = 0;
    if (!fdri_reader_bin_begin(f, b, &d)) return 0;
    for (; fdr_decode_next(&d, &r) > 0 && r.enter <= cut; count++) *newest = r.leave;
    return count;
}

bool fdri_reader_bin_good(const struct fdr_file *f, const struct fdri_reader_location *l, struct fdri_reader_bin *b)
{
    uint64_t gone, newest;
    uint8_t state = fdr_load_relaxed(&b->state);
    if (state == FDRI_READER_BIN_UNKNOWN) return fdri_reader_bin_read(f, l, b, 0, &gone, &newest);
    return state != FDRI_READER_BIN_BAD;
}

bool fdri_reader_bins_missing(const struct fdri_reader_part *p)
{
    for (uint32_t b = 0; b < p->bin_count; b++)
        if (p->bin[b].gap || fdr_load_relaxed(&p->bin[b].state) == FDRI_READER_BIN_BAD) return true;
    return false;
}

/* How many records a payload holds whose header is not to be believed, and the time from its beginning to its newest
 * leave: the commit word checks both, whatever else was damaged. */
static bool count_payload(const struct fdr_file *f, uint64_t off, const struct fdr_bin *h, uint64_t *records,
                          uint64_t *span)
{
    const struct fdri_reader_bin b = {.off = (uint32_t)off, .size_log2 = h->size_log2};
    uint64_t there = f->end - b.off, bytes = 1ull << b.size_log2;
    struct fdr_decoder d;
    d.sample = NULL;
    struct fdr_record r = {0};
    int n;
    if (there > bytes) there = bytes;
    if (!fdr_decode_begin(&d, h, f->bytes + off + FDR_BIN_HEADER, (uint32_t)(there - FDR_BIN_HEADER))) return false;
    while ((n = fdr_decode_next(&d, &r)) > 0) *span = r.leave;
    *records = d.records;
    return n == 0 && d.records > 0;
}

bool fdri_reader_bin_headless(const struct fdr_file *f, uint64_t off, uint32_t class_, uint32_t depth,
                              uint64_t *records, uint64_t *span)
{
    const struct fdr_bin *there = off < f->sb.bins_off || off % FDR_BIN_MIN_BYTES
                                      ? NULL
                                      : fdri_reader_at(f, off, FDR_BIN_MIN_BYTES);
    if (!there || class_ == FDR_CLASS_SAMPLE) return false;
    struct fdr_bin h = {.commit = there->commit, .class_ = (uint8_t)class_, .depth = (uint16_t)depth};
    for (h.size_log2 = 9; 1u << h.size_log2 <= f->sb.bin_bytes; h.size_log2++) {
        if ((off - f->sb.bins_off) & ((1u << h.size_log2) - 1)) break;
        if (count_payload(f, off, &h, records, span)) return true;
    }
    return false;
}
