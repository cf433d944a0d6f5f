/* SPDX-License-Identifier: MIT */
/* Definitions: names of regions, metrics, markers, events and modules. Append-only. */
#ifndef FDR_FORMAT_ARENA_DEFINITION_BLOCK_H
#define FDR_FORMAT_ARENA_DEFINITION_BLOCK_H

#include <assert.h>
#include <stdint.h>

#include "format/arena/meta_block.h"

/* ---- definitions: append-only; block = head, u32 used, u32 next, then records of 8-byte multiples ---- */
enum fdr_def_kind {
    FDR_DEF_REGION = 1, /* id, line, name, file */
    FDR_DEF_METRIC,     /* value_type, unit in `file` */
    FDR_DEF_MARKER,
    FDR_DEF_COMM,      /* payload: u32 world ranks */
    FDR_DEF_EVENT,     /* user event: fields */
    FDR_DEF_MODULE,    /* name = path, file = build id in hex, value = load address, value2 = size;
                          payload: tick it was first seen there, where another one was before */
    FDR_DEF_COLLECTIVE /* collective operation names */
};
struct fdr_defs_block {
    struct fdr_meta_head head;
    uint32_t used; /* atomic, release: bytes of complete records that follow this struct */
    uint32_t next; /* off of the next block */
    uint64_t reserved;
};
static_assert(sizeof(struct fdr_defs_block) == 32, "defs block");
/* Followed by name, NUL, file, NUL, then (8-aligned) `payload_bytes` of payload, then padding to 8. */
struct fdr_def {
    uint32_t bytes; /* whole record, a multiple of 8 */
    uint16_t kind;
    uint16_t flags; /* FDR_REGION_* */
    uint32_t id;
    uint32_t line;
    uint64_t value;      /* region: code address or 0; module: load bias; metric: enum fdr_value_type */
    uint64_t value2;     /* region: id of its module definition, 0 = unknown; module: size in memory */
    uint16_t name_bytes; /* without NUL */
    uint16_t file_bytes;
    uint32_t payload_bytes;
    uint32_t check; /* fdr_check32 over the record with this field 0 */
    uint32_t reserved;
};
static_assert(sizeof(struct fdr_def) == 48, "definition");
/* Payload of a user event's definition: one of these per field. See docs/FORMAT.md. */
enum fdr_value_type { FDR_VALUE_U64 = 0, FDR_VALUE_I64 = 1, FDR_VALUE_F64 = 2 };
struct fdr_def_field {
    uint16_t type; /* enum fdr_value_type */
    uint16_t name_bytes;
    char name[28]; /* NUL-terminated, cut at 27 */
};
static_assert(sizeof(struct fdr_def_field) == 32, "field definition");

#endif
