/* SPDX-License-Identifier: MIT */
/* Processes that run: finding their arena, and copying it from another process without their help.
 *
 *   find_process.c     finds the arena of a process         live_process.c     takes a copy and reads it as a file
 *   external_copy.c    order of copying, meta, bins         external_stacks.c  locations, open calls, tail
 *   external_notes.c   notes, each whole                    external_epochs.c  epochs with their rows
 *   external_checks.c  checks of the finished file     live_threads.c     threads as the kernel shows them
 *   tidy_bundles.c     crash bundles beyond the rule of running processes
 *
 * Neighbours: file/ reads the copy. The order of copying is that of export/snapshot/. */
#ifndef FDRI_READER_LIVE_EXTERNAL_COPY_H
#define FDRI_READER_LIVE_EXTERNAL_COPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format/arena/arena.h"
#include "format/arena/checks.h"
#include "reader/live/find_process.h"

enum { BATCH = 256 * 1024, STACK_MAX = FDRI_ARENA_LEVELS_MAX };

struct kept_stack {
    uint64_t location_off; /* 0: not read */
    uint32_t level_blocks; /* when the copy began; later: the blocks that the copy has */
    uint32_t rows_table;   /* offset of its table of totals when the copy began */
    /* its newest block of further meta when the copy began; later: the newest that the copy has */
    uint32_t slabs;
    uint64_t filtered;    /* when the copy began; only if its thread had rewound by then */
    uint64_t presented;   /* when the copy began, if its thread had ended by then; else UINT64_MAX */
    uint32_t fold_from;   /* when the copy began */
    uint32_t parts_first; /* the list of partitions when its new blocks were copied */
    uint32_t trusted_levels, levels_off[FDRI_ARENA_LEVEL_BLOCKS_MAX];
    size_t first; /* index of its frames in kept_frames */
};

struct copy {
    const struct fdri_live_process *process;
    int fd, error;
    enum fdri_live_external_mode mode;
    struct fdri_arena_superblock super;
    uint64_t bytes, virgin, dropped;
    uint64_t reads_left;     /* number of reads left */
    uint8_t *first, *second; /* batches */
    struct {
        struct fdri_arena_tail head;
        struct fdri_arena_tail_entry entry[FDRI_ARENA_TAIL_ENTRIES];
    } tail;
    uint64_t location_off[FDRI_ARENA_TAIL_ENTRIES];
    struct fdri_arena_level *frames, *frames_again; /* frames of the stack being read */
    struct kept_stack *stacks;
    struct fdri_arena_level *kept_frames;
    size_t kept_count, kept_room;
    struct fdri_arena_chunk chunks[FDRI_ARENA_CHUNKS_MOST];
    struct fdri_arena_chunk_list chunk_list;
};

/* Reads `count` bytes at `off` into `to`. False after an error, outside of the arena, and when no reads are left: there
 * a broken chain ends. */
bool fdri_live_external_get(struct copy *c, uint64_t off, void *to, size_t count);
void fdri_live_external_put(struct copy *c, uint64_t off, const void *from, size_t count);
#define GET_FIELD(c, off, type, field, to) fdri_live_external_get(c, (off) + offsetof(type, field), to, sizeof *(to))

/* True if the block read at `off` is one of this kind and of this location. The memory of an ended thread may serve
 * others by now, as bins too. An unchecked block would overwrite good bytes of the copy. */
static inline bool fdri_live_external_is(uint64_t off, const struct fdri_arena_meta_head *h, uint32_t kind,
                                         uint32_t location)
{
    return off % FDRI_ARENA_META_ALIGN == 0 && off >= FDRI_ARENA_SUPERBLOCK_BYTES &&
           h->magic == FDRI_ARENA_META_MAGIC && h->kind == kind && h->location == location;
}

static inline uint32_t fdri_live_external_tail_bytes(const struct copy *c)
{
    return (uint32_t)(sizeof c->tail.head + c->tail.head.count * sizeof c->tail.entry[0]);
}

/* ---- external_stacks.c ---- */
void fdri_live_external_note_bounds(struct copy *c);
void fdri_live_external_read_stacks(struct copy *c);
void fdri_live_external_write_stacks(struct copy *c);
void fdri_live_external_finish_locations(struct copy *c);

/* ---- external_notes.c ---- */
void fdri_live_external_copy_notes(struct copy *c);

/* ---- external_epochs.c ---- */
void fdri_live_external_copy_epochs(struct copy *c, const struct fdri_arena_location *l);

/* ---- external_checks.c ---- */
void fdri_live_external_put_checks(struct copy *c, struct fdri_arena_spare *spare);

#endif
