/* SPDX-License-Identifier: MIT */
/* Meta blocks: every block that is no bin begins with a head by which a scan finds it. And the sizes that all else
 * is made of. */
#ifndef FDR_FORMAT_ARENA_META_BLOCK_H
#define FDR_FORMAT_ARENA_META_BLOCK_H

#include <assert.h>
#include <stdint.h>

#define FDR_ARENA_MAGIC      "FDRAREN1"
#define FDR_FORMAT_VERSION   1u
#define FDR_SUPERBLOCK_BYTES 4096u
#define FDR_META_ALIGN       64u /* every meta block starts at a multiple of this */
#define FDR_BIN_MIN_BYTES    512u
#define FDR_BIN_MAX_BYTES    65536u
#define FDR_TAIL_MAX_BYTES   262144u
#define FDR_TAIL_CHECKS      32768u /* of these for checks, at least */

/* ---- kinds of meta blocks; each starts with struct fdr_meta_head, so a scan finds them ---- */
#define FDR_META_MAGIC 0x4d524446u /* "FDRM" */
enum fdr_meta_kind {
    FDR_META_DEFS = 1,       /* definitions, a chain */
    FDR_META_LOCATION,       /* struct fdr_location */
    FDR_META_LEVELS,         /* levels of one location */
    FDR_META_PART,           /* struct fdr_part */
    FDR_META_ROWS,           /* slab of totals rows and histograms of one location */
    FDR_META_ROWTABLE,       /* hash table region -> row of one location */
    FDR_META_TABLE,          /* an encoder's prediction table: not needed to read */
    FDR_META_REDUCTIONS,     /* struct fdr_reductions_block of one location */
    FDR_META_POINTS,         /* struct fdr_level_points */
    FDR_META_FROZEN,         /* struct fdr_frozen of a location that stopped storing */
    FDR_META_SLAB,           /* a piece of a bin that holds further meta blocks behind its first 64 bytes */
    FDR_META_FREE,           /* given back, may be used again */
    FDR_META_NOTES = 32,     /* struct fdr_notes_block */
    FDR_META_SAMPLES = 48,   /* struct fdr_samples of a location of samples */
    FDR_META_EPOCHS = 56,    /* struct fdr_epochs of one location */
    FDR_META_EPOCHROWS = 57, /* struct fdr_epoch_rows: totals of one epoch */
    FDR_META_EPOCHBASE = 58, /* struct fdr_epoch_base: the totals as they stood at the newest cut, a chain */
    FDR_META_ORDER = 59,     /* partitions in order of their worth: not needed to read */
    FDR_META_FOLD = 64,      /* struct fdr_fold: a change under way in the accounts */
    FDR_META_NODES = 72,     /* struct fdr_nodes_block: free bins by NUMA node */
    FDR_META_STREWN = 73     /* a word for each bin: not needed to read */
};
struct fdr_meta_head {
    uint32_t magic;
    uint16_t kind;
    uint16_t units_log2; /* unused, 0 */
    uint32_t bytes;      /* whole block, head included, a multiple of FDR_META_ALIGN */
    uint32_t location;   /* location id, or UINT32_MAX */
};
static_assert(sizeof(struct fdr_meta_head) == 16, "meta head");
/* A block that holds further ones: memory of a location's meta blocks. */
struct fdr_slab {
    struct fdr_meta_head head; /* FDR_META_SLAB; FDR_META_FREE while nobody's */
    uint32_t next;             /* atomic: off of the location's next one, 0: none */
    uint32_t in_bins;          /* 1: a piece of a bin */
    uint8_t pad[40];
};
static_assert(sizeof(struct fdr_slab) == FDR_META_ALIGN, "slab");

#endif
