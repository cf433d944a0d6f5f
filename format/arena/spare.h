/* SPDX-License-Identifier: MIT */
/* The spare, a second copy of the superblock, and the checks of a snapshot's meta blocks. They detect flipped bits. */
#ifndef FDRI_FORMAT_ARENA_SPARE_H
#define FDRI_FORMAT_ARENA_SPARE_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "format/arena/meta_block.h"
#include "format/arena/superblock.h"

/* The spare lies in the superblock's page and copies the fields that a reader needs for everything else. A running
 * recording writes it once, at its start; of such a spare a reader believes only the fields that never change
 * (FORMAT.md, 3.1). A snapshot has its own spare, written last. It has checks of the header, of the tail, and of each
 * chunk of the file that contains meta blocks. */
#define FDRI_ARENA_SPARE_MAGIC 0x52415053u /* "SPAR" */
#define FDRI_ARENA_SPARE_OFF   (FDRI_ARENA_SUPERBLOCK_BYTES - 512u)
#define FDRI_ARENA_SPARE_COPY  400u /* the superblock up to `host` */
struct fdri_arena_spare {
    uint32_t magic;
    uint32_t check;        /* fdri_arena_check32 of this struct with check = 0 */
    uint32_t header_check; /* snapshots: of the bytes before the spare */
    uint32_t tail_check;   /* snapshots: of the tail */
    uint32_t tail_bytes;
    uint32_t chunk_log2;   /* snapshots: bytes of a chunk */
    uint32_t chunk_count;  /* 0 in a running recording */
    uint32_t chunks_check; /* of the array of struct fdri_arena_chunk */
    uint64_t chunks_off;   /* of that array, in the file */
    uint8_t copy[FDRI_ARENA_SPARE_COPY];
};
static_assert(sizeof(struct fdri_arena_spare) <= 512 &&
                  offsetof(struct fdri_arena_superblock, host) == FDRI_ARENA_SPARE_COPY,
              "spare");
static_assert(sizeof(struct fdri_arena_superblock) <= FDRI_ARENA_SPARE_OFF, "the superblock ends before its spare");
/* Chunks are aligned, in order, and do not overlap; the last one ends with the arena. */
struct fdri_arena_chunk {
    uint32_t off;
    uint32_t check; /* fdri_arena_check32 of its bytes */
};

#endif
