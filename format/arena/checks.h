/* SPDX-License-Identifier: MIT */
/* The spare of the superblock, and the list of chunks of a snapshot that have a check: who writes a file, and who reads
 * one, use the same functions. FORMAT.md, 3.1 and 16. */
#ifndef FDR_FORMAT_ARENA_CHECKS_H
#define FDR_FORMAT_ARENA_CHECKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "format/arena/arena.h"

enum { FDR_CHUNK_LOG2_LEAST = 6, FDR_CHUNKS_MOST = 4096 };

/* ---- the spare ---- */

static inline uint32_t fdr_spare_check(const struct fdr_spare *s)
{
    struct fdr_spare copy = *s;
    copy.check = 0;
    return fdr_check32(&copy, sizeof copy);
}

/* The spare of a recording that begins: `header` is its first page. */
static inline void fdr_spare_begin(void *header)
{
    struct fdr_spare s = {.magic = FDR_SPARE_MAGIC};
    memcpy(s.copy, header, sizeof s.copy);
    s.check = fdr_spare_check(&s);
    memcpy((uint8_t *)header + FDR_SPARE_OFF, &s, sizeof s);
}

/* The spare of a finished file; its fields on tail and chunks are set, its header is complete. */
static inline void fdr_spare_finish(void *header, struct fdr_spare *s)
{
    s->magic = FDR_SPARE_MAGIC;
    memcpy(s->copy, header, sizeof s->copy);
    s->header_check = fdr_check32(header, FDR_SPARE_OFF);
    s->check = fdr_spare_check(s);
    memcpy((uint8_t *)header + FDR_SPARE_OFF, s, sizeof *s);
}

/* What of the superblock never changes while a recording runs. */
static const struct {
    uint16_t from, to;
} fdr_spare_fixed[] = {
    {0, offsetof(struct fdr_superblock, virgin)},
    {offsetof(struct fdr_superblock, clock_kind), offsetof(struct fdr_superblock, clock_last)},
    {offsetof(struct fdr_superblock, created_realtime_ns), offsetof(struct fdr_superblock, lost_locations)},
    {offsetof(struct fdr_superblock, strategy), offsetof(struct fdr_superblock, reason_kind)}};
enum { FDR_SPARE_FIXED = sizeof fdr_spare_fixed / sizeof fdr_spare_fixed[0] };

/* ---- chunks ---- */

struct fdr_chunk_list {
    struct fdr_chunk *chunk;
    uint32_t log2, count, most; /* most >= 2 */
};

/* Twice as large chunks. */
static inline void fdr_chunks_coarsen(struct fdr_chunk_list *l)
{
    uint32_t kept = 0, mask = (2u << l->log2++) - 1;
    for (uint32_t i = 0; i < l->count; i++) {
        uint32_t off = l->chunk[i].off & ~mask;
        if (!kept || l->chunk[kept - 1].off != off) l->chunk[kept++].off = off;
    }
    l->count = kept;
}

/* [off, end) holds meta blocks; stretches come in order. */
static inline void fdr_chunks_add(struct fdr_chunk_list *l, uint64_t off, uint64_t end)
{
    while (off < end) {
        uint64_t bytes = 1ull << l->log2, at = off & ~(bytes - 1);
        if (!l->count || at > l->chunk[l->count - 1].off) {
            if (l->count == l->most) {
                fdr_chunks_coarsen(l);
                continue;
            }
            l->chunk[l->count++].off = (uint32_t)at;
        }
        off = at + bytes;
    }
}
/* How many bytes chunk i covers in an arena of this size. */
static inline uint32_t fdr_chunk_bytes(uint32_t off, uint32_t log2, uint64_t arena_bytes)
{
    uint64_t bytes = 1ull << log2;
    return (uint32_t)(off + bytes <= arena_bytes ? bytes : arena_bytes - off);
}

#endif
