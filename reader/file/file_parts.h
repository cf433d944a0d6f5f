/* SPDX-License-Identifier: MIT */
/* Parts of the model of a file (file_model.h): bins that the scan found, bad stretches, meta blocks, definitions. */
#ifndef FDRI_READER_FILE_FILE_PARTS_H
#define FDRI_READER_FILE_FILE_PARTS_H

#include <fdr/reader.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format/arena/arena.h"

struct fdri_file_found { /* a valid bin header that the scan found */
    uint32_t off, location, seq;
    uint16_t depth;
    uint8_t class_, band, flags;
    bool listed;
};
struct fdri_file_bad { /* a stretch of meta blocks whose check is wrong or unusable */
    uint64_t off, end;
};
struct fdri_file_meta {
    uint64_t off;
    uint32_t location;
    uint16_t kind;
};
struct fdri_file_definition {
    struct fdr_definition d;
    uint32_t module; /* for a region known by address: id of its module; 0: unknown */
    uint64_t bytes;  /* for a module: its size in memory */
    uint64_t from;   /* for a module: full tick of its load; 0: no module was there before */
    union {          /* by kind */
        struct fdr_metric_info metric;
        struct fdr_event_info event;
        struct fdr_comm_info comm;
    };
};
struct fdri_file_definitions {
    struct fdri_file_definition *row; /* sorted by id */
    size_t count, room;
    uint32_t id_max;
};
#define FDRI_FILE_KINDS FDRI_ARENA_DEF_KINDS
struct fdri_file_defs {
    uint64_t off;
    uint32_t used;
}; /* a block of definitions */

#endif
