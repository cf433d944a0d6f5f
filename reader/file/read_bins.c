/* SPDX-License-Identifier: MIT */
/* Reads one bin: is its header valid, and does its payload decode to all that its commit word covers? */
#include "base/atomic.h"
#include "format/arena/arena.h"
#include "format/codec/decode.h"
#include "format/codec/sample_codec.h"
#include "reader/file/file.h"

#include <fdr/reader.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

bool fdri_file_bin_header(const struct fdr_file *f, uint64_t off, struct fdri_arena_bin *h)
{
    if (off < f->sb.bins_off || off % FDRI_ARENA_BIN_MIN_BYTES) return false;
    const void *p = fdri_file_at(f, off, sizeof *h);
    if (!p) return false;
    memcpy(h, p, sizeof *h);
    if (h->magic != FDRI_ARENA_BIN_MAGIC || h->check != fdri_arena_check32((const uint8_t *)h + 8, 40)) return false;
    if (h->size_log2 < 9 || 1u << h->size_log2 > f->sb.bin_bytes) return false;
    if (off + (1u << h->size_log2) > f->sb.arena_bytes) return false;
    return h->class_ < FDRI_ARENA_CLASS_COUNT && h->band < FDRI_ARENA_BANDS && h->depth <= FDRI_FILE_DEPTH_MAX &&
           (h->class_ != FDRI_ARENA_CLASS_REGION || h->depth > 0);
}

bool fdri_file_bin_begin(const struct fdr_file *f, const struct fdri_file_bin *b, struct fdri_codec_decoder *d)
{
    struct fdri_arena_bin h;
    memcpy(&h, f->bytes + b->off, sizeof h);
    uint64_t there = f->end - b->off, bytes = 1u << b->size_log2;
    if (there > bytes) there = bytes;
    return fdri_codec_decode_begin(d, &h, f->bytes + b->off + FDRI_ARENA_BIN_HEADER,
                                   (uint32_t)(there - FDRI_ARENA_BIN_HEADER));
}

enum { CHUNK = 64 }; /* records decoded at a time */

/* Counts the records whose leave is below the mark. */
static uint64_t count_below(const struct fdri_codec_record *r, uint32_t n, uint64_t mark)
{
    uint64_t count = 0;
    if (n == 0 || r[0].leave >= mark) return 0; /* leaves rise */
    while (count < n && r[count].leave < mark) count++;
    return count;
}

static bool all_calls(struct fdri_codec_decoder *d, uint64_t mark, uint64_t *gone, uint64_t *newest, bool slowly)
{
    struct fdri_codec_record r[CHUNK];
    int n;
    *gone = *newest = 0;
    while ((n = fdri_codec_decode_calls(d, r, CHUNK, slowly)) > 0) {
        *gone += count_below(r, (uint32_t)n, mark);
        *newest = r[n - 1].leave;
    }
    return n == 0;
}

static bool all_points(struct fdri_codec_decoder *d, uint64_t mark, uint64_t *gone, uint64_t *newest)
{
    struct fdri_codec_record r = {0};
    int result;
    while ((result = fdri_codec_decode_next(d, &r)) > 0) {
        *gone += r.leave < mark;
        *newest = r.leave;
    }
    return result == 0;
}

static enum fdri_file_bin_state read_calls(const struct fdr_file *f, const struct fdri_file_bin *b, uint64_t mark,
                                           uint64_t *gone, uint64_t *newest)
{
    struct fdri_codec_decoder d;
    d.sample = NULL;
    if (!fdri_file_bin_begin(f, b, &d)) return FDRI_FILE_BIN_BAD;
    if (all_calls(&d, mark, gone, newest, false)) return FDRI_FILE_BIN_GOOD;
    fdri_file_bin_begin(f, b, &d);
    return all_calls(&d, mark, gone, newest, true) ? FDRI_FILE_BIN_SLOW : FDRI_FILE_BIN_BAD;
}

static enum fdri_file_bin_state read_points(const struct fdr_file *f, const struct fdri_file_bin *b, uint64_t mark,
                                            uint64_t *gone, uint64_t *newest)
{
    struct fdri_codec_sample_decoder sample;
    struct fdri_codec_decoder d;
    d.sample = &sample;
    if (!fdri_file_bin_begin(f, b, &d)) return FDRI_FILE_BIN_BAD;
    return all_points(&d, mark, gone, newest) ? FDRI_FILE_BIN_GOOD : FDRI_FILE_BIN_BAD;
}

bool fdri_file_bin_read(const struct fdr_file *f, const struct fdri_file_location *l, struct fdri_file_bin *b,
                        uint64_t mark, uint64_t *gone, uint64_t *newest)
{
    const struct fdri_arena_bin *h = (const void *)(f->bytes + b->off);
    *gone = *newest = 0;
    if (fdri_atomic_load_relaxed(&b->state) == FDRI_FILE_BIN_BAD) return false;
    uint8_t state = (uint8_t)(h->class_ == FDRI_ARENA_CLASS_REGION ? read_calls : read_points)(f, b, mark, gone,
                                                                                               newest);
    if (*newest > l->clock.stored_max) state = FDRI_FILE_BIN_BAD;
    fdri_atomic_store_relaxed(&b->state, state);
    return state != FDRI_FILE_BIN_BAD;
}

uint64_t fdri_file_bin_up_to(const struct fdr_file *f, const struct fdri_file_bin *b, uint64_t cut, uint64_t *newest)
{
    struct fdri_codec_sample_decoder sample;
    struct fdri_codec_decoder d;
    struct fdri_codec_record r = {0};
    uint64_t count = 0;
    d.sample = &sample;
    *newest = 0;
    if (!fdri_file_bin_begin(f, b, &d)) return 0;
    for (; fdri_codec_decode_next(&d, &r) > 0 && r.enter <= cut; count++) *newest = r.leave;
    return count;
}

bool fdri_file_bin_good(const struct fdr_file *f, const struct fdri_file_location *l, struct fdri_file_bin *b)
{
    uint64_t gone, newest;
    uint8_t state = fdri_atomic_load_relaxed(&b->state);
    if (state == FDRI_FILE_BIN_UNKNOWN) return fdri_file_bin_read(f, l, b, 0, &gone, &newest);
    return state != FDRI_FILE_BIN_BAD;
}

bool fdri_file_bins_missing(const struct fdri_file_part *p)
{
    for (uint32_t b = 0; b < p->bin_count; b++)
        if (p->bin[b].gap || fdri_atomic_load_relaxed(&p->bin[b].state) == FDRI_FILE_BIN_BAD) return true;
    return false;
}

/* Counts the records of a payload whose header is damaged, and the ticks from its beginning to its newest leave. The
 * commit word checks both, whatever else is damaged. */
static bool count_payload(const struct fdr_file *f, uint64_t off, const struct fdri_arena_bin *h, uint64_t *records,
                          uint64_t *span)
{
    const struct fdri_file_bin b = {.off = (uint32_t)off, .size_log2 = h->size_log2};
    uint64_t there = f->end - b.off, bytes = 1ull << b.size_log2;
    struct fdri_codec_decoder d;
    d.sample = NULL;
    struct fdri_codec_record r = {0};
    int n;
    if (there > bytes) there = bytes;
    if (!fdri_codec_decode_begin(&d, h, f->bytes + off + FDRI_ARENA_BIN_HEADER,
                                 (uint32_t)(there - FDRI_ARENA_BIN_HEADER)))
        return false;
    while ((n = fdri_codec_decode_next(&d, &r)) > 0) *span = r.leave;
    *records = d.records;
    return n == 0 && d.records > 0;
}

bool fdri_file_bin_headless(const struct fdr_file *f, uint64_t off, uint32_t class_, uint32_t depth, uint64_t *records,
                            uint64_t *span)
{
    const struct fdri_arena_bin *there = off < f->sb.bins_off || off % FDRI_ARENA_BIN_MIN_BYTES
                                             ? NULL
                                             : fdri_file_at(f, off, FDRI_ARENA_BIN_MIN_BYTES);
    if (!there || class_ == FDRI_ARENA_CLASS_SAMPLE) return false;
    struct fdri_arena_bin h = {.commit = there->commit, .class_ = (uint8_t)class_, .depth = (uint16_t)depth};
    for (h.size_log2 = 9; 1u << h.size_log2 <= f->sb.bin_bytes; h.size_log2++) {
        if ((off - f->sb.bins_off) & ((1u << h.size_log2) - 1)) break;
        if (count_payload(f, off, &h, records, span)) return true;
    }
    return false;
}
