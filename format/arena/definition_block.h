/* SPDX-License-Identifier: MIT */
/* Definitions: names of regions, metrics, markers, events and modules. Records are only appended. A block is a head,
 * u32 used, u32 next, and records of multiples of 8 bytes. */
#ifndef FDRI_FORMAT_ARENA_DEFINITION_BLOCK_H
#define FDRI_FORMAT_ARENA_DEFINITION_BLOCK_H

#include <assert.h>
#include <stdint.h>

#include "format/arena/meta_block.h"

enum fdri_arena_def_kind {
    FDRI_ARENA_DEF_REGION = 1, /* id, line, name, file */
    FDRI_ARENA_DEF_METRIC,     /* value_type, unit in `file` */
    FDRI_ARENA_DEF_MARKER,
    FDRI_ARENA_DEF_COMM,       /* payload: u32 world ranks */
    FDRI_ARENA_DEF_EVENT,      /* user event: fields */
    FDRI_ARENA_DEF_MODULE,     /* name = path, file = build id in hex, value = load address, value2 = size;
                          payload: first seen at this tick, if it replaced another module */
    FDRI_ARENA_DEF_COLLECTIVE, /* collective operation names */
    FDRI_ARENA_DEF_FILE,       /* of io: name */
    FDRI_ARENA_DEF_RENAMED     /* a later name: name, file, line of the definition with kind value2 and id value */
};
#define FDRI_ARENA_DEF_KINDS (FDRI_ARENA_DEF_RENAMED + 1)
struct fdri_arena_defs_block {
    struct fdri_arena_meta_head head;
    uint32_t used; /* atomic, release: bytes of complete records behind this struct */
    uint32_t next; /* off of the next block */
    uint64_t reserved;
};
static_assert(sizeof(struct fdri_arena_defs_block) == 32, "defs block");
/* A record. Name, NUL, file, NUL, (aligned to 8) `payload_bytes` of payload and padding to 8 follow. */
struct fdri_arena_def {
    uint32_t bytes; /* whole record, a multiple of 8 */
    uint16_t kind;
    uint16_t flags; /* FDR_REGION_* */
    uint32_t id;
    uint32_t line;
    uint64_t value;      /* region: code address or 0; module: load bias; metric: enum fdri_arena_value_type */
    uint64_t value2;     /* region: id of its module definition, 0 = unknown; module: size in memory */
    uint16_t name_bytes; /* without NUL */
    uint16_t file_bytes;
    uint32_t payload_bytes;
    uint32_t check; /* fdri_arena_check32 over the record with this field 0 */
    uint32_t reserved;
};
static_assert(sizeof(struct fdri_arena_def) == 48, "definition");
/* Payload of a user event's definition: one for each field. See docs/FORMAT.md. */
enum fdri_arena_value_type { FDRI_ARENA_VALUE_U64 = 0, FDRI_ARENA_VALUE_I64 = 1, FDRI_ARENA_VALUE_F64 = 2 };
struct fdri_arena_def_field {
    uint16_t type; /* enum fdri_arena_value_type */
    uint16_t name_bytes;
    char name[28]; /* NUL-terminated, at most 27 bytes */
};
static_assert(sizeof(struct fdri_arena_def_field) == 32, "field definition");

#endif
