/* SPDX-License-Identifier: MIT */
/* Finds all bin headers, in order of offset. Lists mark their bins; the others are unlisted. */
#include "format/arena/arena.h"
#include "reader/file/file.h"

#include <fdr/reader.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

/* Runs the following block for every bin in use, `h` its header. It steps over the bytes that the bin covers. */
#define EACH_BIN(f, off, h)                                                                                            \
    for (uint64_t off = (f)->sb.bins_off, step_; off < (f)->bins_end && off < (f)->end; off += step_)                  \
        if ((step_ = FDRI_ARENA_BIN_MIN_BYTES), !fdri_file_bin_header(f, off, &h) || !(h.generation & 1)) {            \
        } else if ((step_ = 1u << h.size_log2), 1)

uint32_t fdri_file_scan_bin_bytes(const struct fdr_file *f)
{
    uint32_t most = 9;
    for (uint64_t off = f->sb.bins_off; off < f->end; off += FDRI_ARENA_BIN_MIN_BYTES) {
        const struct fdri_arena_bin *h = fdri_file_at(f, off, sizeof *h);
        if (!h || h->magic != FDRI_ARENA_BIN_MAGIC || h->check != fdri_arena_check32((const uint8_t *)h + 8, 40))
            continue;
        if (h->size_log2 > most && h->size_log2 <= 16) most = h->size_log2;
    }
    return 1u << most;
}

void fdri_file_scan(struct fdr_file *f)
{
    struct fdri_arena_bin h;
    EACH_BIN(f, off, h)
    {
        if (!fdri_file_grow(&f->found, f->found_count, &f->found_room, sizeof *f->found)) return;
        f->found[f->found_count++] = (struct fdri_file_found){(uint32_t)off, h.location, h.seq,   h.depth,
                                                              h.class_,      h.band,     h.flags, false};
    }
}

bool fdri_file_mark_listed(struct fdr_file *f, uint64_t off)
{
    size_t low = 0, high = f->found_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (f->found[middle].off < off) low = middle + 1;
        else high = middle;
    }
    if (low == f->found_count || f->found[low].off != off) return true;
    bool first = !f->found[low].listed;
    f->found[low].listed = true;
    return first;
}

static int by_identity(const void *x, const void *y)
{
    const struct fdri_file_found *a = *(struct fdri_file_found *const *)x, *b = *(struct fdri_file_found *const *)y;
    if (a->location != b->location) return a->location < b->location ? -1 : 1;
    if (a->class_ != b->class_) return a->class_ < b->class_ ? -1 : 1;
    if (a->depth != b->depth) return a->depth < b->depth ? -1 : 1;
    if (a->band != b->band) return a->band < b->band ? -1 : 1;
    if (a->seq != b->seq) return a->seq < b->seq ? -1 : 1;
    return a->off < b->off ? -1 : a->off > b->off;
}

struct fdri_file_found **fdri_file_by_identity(struct fdr_file *f)
{
    if (f->by_identity) return f->by_identity;
    f->by_identity = fdri_file_malloc((f->found_count + 1) * sizeof *f->by_identity);
    if (!f->by_identity) return NULL;
    for (size_t i = 0; i < f->found_count; i++) f->by_identity[i] = &f->found[i];
    f->by_identity[f->found_count] = NULL;
    qsort(f->by_identity, f->found_count, sizeof *f->by_identity, by_identity);
    return f->by_identity;
}
