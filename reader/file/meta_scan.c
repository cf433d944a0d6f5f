/* SPDX-License-Identifier: MIT */
/* Finds meta blocks: through a known offset, or all of them by a scan. */
#include "format/arena/arena.h"
#include "reader/file/file.h"

#include <fdr/reader.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

static const struct fdri_arena_meta_head *head_at(const struct fdr_file *f, uint64_t off)
{
    if (off == 0 || off % FDRI_ARENA_META_ALIGN) return NULL;
    const struct fdri_arena_meta_head *h = fdri_file_at(f, off, sizeof *h);
    return h && h->magic == FDRI_ARENA_META_MAGIC ? h : NULL;
}

const struct fdri_arena_meta_head *fdri_file_meta_at(const struct fdr_file *f, uint64_t off, uint32_t kind,
                                                     uint32_t location, uint64_t bytes)
{
    const struct fdri_arena_meta_head *h = head_at(f, off);
    if (!h || off < f->sb.bins_off || !fdri_file_at(f, off, bytes)) return NULL;
    if (kind && h->kind != kind) return NULL;
    if (location != UINT32_MAX && h->location != location) return NULL;
    return h;
}

static int by_kind(const void *x, const void *y)
{
    const struct fdri_file_meta *a = x, *b = y;
    if (a->kind != b->kind) return a->kind < b->kind ? -1 : 1;
    if (a->location != b->location) return a->location < b->location ? -1 : 1;
    return a->off < b->off ? 1 : a->off > b->off ? -1 : 0; /* blocks are allocated downwards */
}

static bool note_if_meta(struct fdr_file *f, uint64_t off)
{
    const struct fdri_arena_meta_head *h = head_at(f, off);
    if (!h || h->kind == 0 || h->kind >= FDRI_ARENA_META_FREE) return true;
    if (!fdri_file_grow(&f->meta, f->meta_count, &f->meta_room, sizeof *f->meta)) return false;
    f->meta[f->meta_count++] = (struct fdri_file_meta){off, h->location, h->kind};
    return true;
}

static void scan(struct fdr_file *f)
{
    uint64_t first = f->meta_first & ~(uint64_t)(FDRI_ARENA_META_ALIGN - 1);
    bool room = true;
    f->meta_scanned = true;
    /* blocks that did not fit at the meta end lie in pieces of bins */
    for (uint64_t off = f->sb.bins_off; room && off < first && off < f->end; off += FDRI_ARENA_BIN_MIN_BYTES) {
        const struct fdri_arena_meta_head *h = head_at(f, off);
        uint64_t slab = h && h->kind == FDRI_ARENA_META_SLAB && h->bytes <= FDRI_ARENA_BIN_MAX_BYTES ? h->bytes : 0;
        room = note_if_meta(f, off);
        for (uint64_t in = 64; room && in < slab && off + in < f->end; in += FDRI_ARENA_META_ALIGN)
            room = note_if_meta(f, off + in);
    }
    for (uint64_t off = first; room && off < f->end; off += FDRI_ARENA_META_ALIGN) room = note_if_meta(f, off);
    if (f->meta_count) qsort(f->meta, f->meta_count, sizeof *f->meta, by_kind);
}

uint64_t fdri_file_meta_lowest(struct fdr_file *f)
{
    uint64_t lowest = f->end;
    if (!f->meta_scanned) scan(f);
    for (size_t i = 0; i < f->meta_count; i++)
        if (f->meta[i].off < lowest) lowest = f->meta[i].off;
    return lowest;
}

/* The first entry that does not sort before (kind, location). */
static size_t first_of(const struct fdr_file *f, uint32_t kind, uint64_t location)
{
    size_t low = 0, high = f->meta_count;
    while (low < high) {
        size_t i = low + (high - low) / 2;
        const struct fdri_file_meta *m = &f->meta[i];
        if (m->kind < kind || (m->kind == kind && m->location < location)) low = i + 1;
        else high = i;
    }
    return low;
}

const struct fdri_file_meta *fdri_file_meta_scan(struct fdr_file *f, uint32_t kind, uint32_t location, size_t *count)
{
    if (!f->meta_scanned) scan(f);
    size_t from = first_of(f, kind, location == UINT32_MAX ? 0 : location);
    size_t to = first_of(f, kind, location == UINT32_MAX ? (uint64_t)UINT32_MAX + 1 : (uint64_t)location + 1);
    *count = to - from;
    return f->meta ? f->meta + from : NULL;
}
