/* SPDX-License-Identifier: MIT */
/* Meta blocks: each block that is no bin begins with a head, by which a scan finds it. Also the constants of sizes. */
#ifndef FDRI_FORMAT_ARENA_META_BLOCK_H
#define FDRI_FORMAT_ARENA_META_BLOCK_H

#include <assert.h>
#include <stdint.h>

#define FDRI_ARENA_MAGIC            "FDRAREN1"
#define FDRI_ARENA_FORMAT_VERSION   2u /* a reader knows all from 1 on */
#define FDRI_ARENA_SUPERBLOCK_BYTES 4096u
#define FDRI_ARENA_META_ALIGN       64u /* each meta block starts at a multiple of this */
#define FDRI_ARENA_BIN_MIN_BYTES    512u
#define FDRI_ARENA_BIN_MAX_BYTES    65536u
#define FDRI_ARENA_TAIL_MAX_BYTES   262144u
#define FDRI_ARENA_TAIL_CHECKS      32768u /* of these, at least so many for checks */

/* Kinds of meta blocks. A reader ignores kinds that it does not know. */
#define FDRI_ARENA_META_MAGIC 0x4d524446u /* "FDRM" */
enum fdri_arena_meta_kind {
    FDRI_ARENA_META_DEFS = 1,       /* definitions, a chain */
    FDRI_ARENA_META_LOCATION,       /* struct fdri_arena_location */
    FDRI_ARENA_META_LEVELS,         /* levels of one location */
    FDRI_ARENA_META_PART,           /* struct fdri_arena_part */
    FDRI_ARENA_META_ROWS,           /* slab of totals rows and histograms of one location */
    FDRI_ARENA_META_ROWTABLE,       /* hash table region -> row of one location */
    FDRI_ARENA_META_TABLE,          /* prediction table of an encoder: readers ignore it */
    FDRI_ARENA_META_REDUCTIONS,     /* struct fdri_arena_reductions_block of one location */
    FDRI_ARENA_META_POINTS,         /* struct fdri_arena_level_points */
    FDRI_ARENA_META_FROZEN,         /* struct fdri_arena_frozen of a location that stopped storing */
    FDRI_ARENA_META_SLAB,           /* struct fdri_arena_slab: holds further meta blocks */
    FDRI_ARENA_META_FREE,           /* returned, may be used again */
    FDRI_ARENA_META_NOTES = 32,     /* struct fdri_arena_notes_block */
    FDRI_ARENA_META_SAMPLES = 48,   /* struct fdri_arena_samples */
    FDRI_ARENA_META_EPOCHS = 56,    /* struct fdri_arena_epochs of one location */
    FDRI_ARENA_META_EPOCHROWS = 57, /* struct fdri_arena_epoch_rows: totals of one epoch */
    FDRI_ARENA_META_EPOCHBASE = 58, /* struct fdri_arena_epoch_base: totals at the newest cut, a chain */
    FDRI_ARENA_META_ORDER = 59,     /* partitions in order of worth: readers ignore it */
    FDRI_ARENA_META_FOLD = 64,      /* struct fdri_arena_fold: the undo list of the accounts */
    FDRI_ARENA_META_NODES = 72,     /* struct fdri_arena_nodes_block: free bins by NUMA node */
    FDRI_ARENA_META_STREWN = 73,    /* a word for each bin: readers ignore it */
    FDRI_ARENA_META_GOVERNOR = 80,  /* struct fdri_arena_governor */
    FDRI_ARENA_META_TALLIES = 81    /* struct fdri_arena_tallies */
};
struct fdri_arena_meta_head {
    uint32_t magic;
    uint16_t kind;
    uint16_t units_log2; /* unused, 0 */
    uint32_t bytes;      /* whole block, head included, a multiple of FDRI_ARENA_META_ALIGN */
    uint32_t location;   /* location id, or UINT32_MAX */
};
static_assert(sizeof(struct fdri_arena_meta_head) == 16, "meta head");
/* A block that holds further blocks: memory of a location's meta blocks. */
struct fdri_arena_slab {
    struct fdri_arena_meta_head head; /* FDRI_ARENA_META_SLAB; FDRI_ARENA_META_FREE while unused */
    uint32_t next;                    /* atomic: off of the location's next slab, 0: none */
    uint32_t in_bins;                 /* 1: a piece of a bin */
    uint8_t pad[40];
};
static_assert(sizeof(struct fdri_arena_slab) == FDRI_ARENA_META_ALIGN, "slab");

#endif
