/* SPDX-License-Identifier: MIT */
/* The spare of the superblock, and the list of chunks of a snapshot that have a check: who writes a file, and who reads
 * one, use the same functions. FORMAT.md, 3.1 and 16. */
#ifndef FDRI_FORMAT_ARENA_CHECKS_H
#define FDRI_FORMAT_ARENA_CHECKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "format/arena/arena.h"

enum { FDRI_ARENA_CHUNK_LOG2_LEAST = 6, FDRI_ARENA_CHUNKS_MOST = 4096 };

/* ---- the spare ---- */

static inline uint32_t fdri_arena_spare_check(const struct fdri_arena_spare *s)
{
    struct fdri_arena_spare copy = *s;
    copy.check = 0;
    return fdri_arena_check32(&copy, sizeof copy);
}

/* The spare of a recording that begins: `header` is its first page. */
static inline void fdri_arena_spare_begin(void *header)
{
    struct fdri_arena_spare s = {.magic = FDRI_ARENA_SPARE_MAGIC};
    memcpy(s.copy, header, sizeof s.copy);
    s.check = fdri_arena_spare_check(&s);
    memcpy((uint8_t *)header + FDRI_ARENA_SPARE_OFF, &s, sizeof s);
}

/* The spare of a finished file; its fields on tail and chunks are set, its header is complete. */
static inline void fdri_arena_spare_finish(void *header, struct fdri_arena_spare *s)
{
    s->magic = FDRI_ARENA_SPARE_MAGIC;
    memcpy(s->copy, header, sizeof s->copy);
    s->header_check = fdri_arena_check32(header, FDRI_ARENA_SPARE_OFF);
    s->check = fdri_arena_spare_check(s);
    memcpy((uint8_t *)header + FDRI_ARENA_SPARE_OFF, s, sizeof *s);
}

/* What of the superblock never changes while a recording runs. */
static const struct {
    uint16_t from, to;
} fdri_arena_spare_fixed[] = {
    {0, offsetof(struct fdri_arena_superblock, virgin)},
    {offsetof(struct fdri_arena_superblock, clock_kind), offsetof(struct fdri_arena_superblock, clock_last)},
    {offsetof(struct fdri_arena_superblock, created_realtime_ns),
     offsetof(struct fdri_arena_superblock, lost_locations)},
    {offsetof(struct fdri_arena_superblock, strategy), offsetof(struct fdri_arena_superblock, reason_kind)}};
enum { FDRI_ARENA_SPARE_FIXED = sizeof fdri_arena_spare_fixed / sizeof fdri_arena_spare_fixed[0] };

/* ---- chunks ---- */

struct fdri_arena_chunk_list {
    struct fdri_arena_chunk *chunk;
    uint32_t log2, count, most; /* most >= 2 */
};

/* Twice as large chunks. */
static inline void fdri_arena_chunks_coarsen(struct fdri_arena_chunk_list *l)
{
    uint32_t kept = 0, mask = (2u << l->log2++) - 1;
    for (uint32_t i = 0; i < l->count; i++) {
        uint32_t off = l->chunk[i].off & ~mask;
        if (!kept || l->chunk[kept - 1].off != off) l->chunk[kept++].off = off;
    }
    l->count = kept;
}

/* [off, end) holds meta blocks; stretches come in order. */
static inline void fdri_arena_chunks_add(struct fdri_arena_chunk_list *l, uint64_t off, uint64_t end)
{
    while (off < end) {
        uint64_t bytes = 1ull << l->log2, at = off & ~(bytes - 1);
        if (!l->count || at > l->chunk[l->count - 1].off) {
            if (l->count == l->most) {
                fdri_arena_chunks_coarsen(l);
                continue;
            }
            l->chunk[l->count++].off = (uint32_t)at;
        }
        off = at + bytes;
    }
}
/* How many bytes chunk i covers in an arena of this size. */
static inline uint32_t fdri_arena_chunk_bytes(uint32_t off, uint32_t log2, uint64_t arena_bytes)
{
    uint64_t bytes = 1ull << log2;
    return (uint32_t)(off + bytes <= arena_bytes ? bytes : arena_bytes - off);
}

#endif
