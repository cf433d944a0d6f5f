/* SPDX-License-Identifier: MIT */
/* Making and checking the spare of the superblock and the list of a snapshot's chunks, for writers and readers alike.
 * FORMAT.md, 3.1 and 16. */
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

/* Writes the spare at the start of a recording. `header` is the first page of the arena. */
static inline void fdri_arena_spare_begin(void *header)
{
    struct fdri_arena_spare s = {.magic = FDRI_ARENA_SPARE_MAGIC};
    memcpy(s.copy, header, sizeof s.copy);
    s.check = fdri_arena_spare_check(&s);
    memcpy((uint8_t *)header + FDRI_ARENA_SPARE_OFF, &s, sizeof s);
}

/* Writes the spare of a finished file. The header must be complete, and the fields of *s on tail and chunks set. */
static inline void fdri_arena_spare_finish(void *header, struct fdri_arena_spare *s)
{
    s->magic = FDRI_ARENA_SPARE_MAGIC;
    memcpy(s->copy, header, sizeof s->copy);
    s->header_check = fdri_arena_check32(header, FDRI_ARENA_SPARE_OFF);
    s->check = fdri_arena_spare_check(s);
    memcpy((uint8_t *)header + FDRI_ARENA_SPARE_OFF, s, sizeof *s);
}

/* The parts of the superblock that never change while a recording runs: bytes [from, to). */
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

/* Doubles the size of the chunks, and merges those that become one. */
static inline void fdri_arena_chunks_coarsen(struct fdri_arena_chunk_list *l)
{
    uint32_t kept = 0, mask = (2u << l->log2++) - 1;
    for (uint32_t i = 0; i < l->count; i++) {
        uint32_t off = l->chunk[i].off & ~mask;
        if (!kept || l->chunk[kept - 1].off != off) l->chunk[kept++].off = off;
    }
    l->count = kept;
}

/* Adds the chunks that cover [off, end), which holds meta blocks. Calls must come in ascending order. If the list is
 * full, all chunks become larger. */
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
/* Bytes that the chunk at `off` covers; the arena's last chunk may be shorter. */
static inline uint32_t fdri_arena_chunk_bytes(uint32_t off, uint32_t log2, uint64_t arena_bytes)
{
    uint64_t bytes = 1ull << log2;
    return (uint32_t)(off + bytes <= arena_bytes ? bytes : arena_bytes - off);
}

#endif
