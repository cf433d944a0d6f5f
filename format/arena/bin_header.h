/* SPDX-License-Identifier: MIT */
/* The header of a bin, and its commit word. */
#ifndef FDRI_FORMAT_ARENA_BIN_HEADER_H
#define FDRI_FORMAT_ARENA_BIN_HEADER_H

#include <assert.h>
#include <stdint.h>

#define FDRI_ARENA_BIN_MAGIC 0x4e424446u /* "FDBN" */
#define FDRI_ARENA_BIN_NS    1u          /* times in ns, as FDRI_ARENA_LOCATION_NS says */
#define FDRI_ARENA_BIN_GAP   2u          /* records before this bin were lost; only recovery sets it */
struct fdri_arena_bin {
    uint32_t magic;
    uint32_t check; /* fdri_arena_check32 of bytes 8..47, which never change while the bin is in use */
    uint32_t location;
    uint32_t seq; /* number within the partition, from 1 */
    uint16_t depth;
    uint8_t class_;
    uint8_t band;
    uint8_t size_log2; /* of this bin; 9 .. log2(bin_bytes) */
    uint8_t flags;     /* FDRI_ARENA_BIN_NS, FDRI_ARENA_BIN_GAP */
    uint16_t reserved;
    uint32_t epoch;        /* the epoch in which the bin was opened */
    uint32_t base_ordinal; /* ordinals given at this depth in tick base_tick before this bin */
    uint64_t base_tick;    /* newest leave of the partition before this bin; the first gap counts from it */
    uint64_t first_index;  /* records stored in the partition before this bin */
    /* `check` does not cover the following fields */
    uint64_t commit;     /* atomic: bits:20 | records:20 | check:24 (low to high) of the complete records */
    uint32_t next;       /* off of the partition's next bin, 0 in the newest */
    uint32_t generation; /* atomic: rises when the memory changes hands; odd while a list may name it */
};
static_assert(sizeof(struct fdri_arena_bin) == 64, "bin header");
#define FDRI_ARENA_BIN_HEADER        64u
#define FDRI_ARENA_COMMIT_BITS(c)    ((uint32_t)((c)&0xfffffu))
#define FDRI_ARENA_COMMIT_RECORDS(c) ((uint32_t)((c) >> 20 & 0xfffffu))
#define FDRI_ARENA_COMMIT_CHECK(c)   ((uint32_t)((c) >> 40 & 0xffffffu))
#define FDRI_ARENA_COMMIT(bits, records, check)                                                                        \
    ((uint64_t)(bits) | (uint64_t)(records) << 20 | (uint64_t)((check)&0xffffffu) << 40)

#endif
