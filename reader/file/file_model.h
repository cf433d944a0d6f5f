/* SPDX-License-Identifier: MIT */
/* A file as the reader holds it. Every offset is checked against the size of the file before it is used; offsets are
 * 64 bits wide, so that sums of two fields cannot wrap. */
#ifndef FDRI_READER_FILE_FILE_MODEL_H
#define FDRI_READER_FILE_FILE_MODEL_H

#include <fdr/reader.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format/arena/arena.h"
#include "reader/file/location_model.h"
#include "reader/file/tick_to_ns.h"

struct fdri_bundle;

/* ---- locations ---- */
struct fdri_file_found { /* a valid bin header somewhere */
    uint32_t off, location, seq;
    uint16_t depth;
    uint8_t class_, band, flags;
    bool listed;
};
struct fdri_file_bad { /* a stretch of meta blocks whose check is wrong, or that has none to believe */
    uint64_t off, end;
};
struct fdri_file_meta {
    uint64_t off;
    uint32_t location;
    uint16_t kind;
};
struct fdri_file_definition {
    struct fdr_definition d;
    uint32_t module; /* region known by address: id of its module, 0: unknown */
    uint64_t bytes;  /* module: size in memory */
    uint64_t from;   /* module: full tick since when it is there, 0: nobody was there before */
};
struct fdri_file_definitions {
    struct fdri_file_definition *row; /* sorted by id */
    size_t count, room;
    uint32_t id_max;
};
#define FDRI_FILE_KINDS 8
struct fdri_file_defs {
    uint64_t off;
    uint32_t used;
}; /* a block of definitions */
struct fdr_file {
    const uint8_t *bytes;
    uint64_t size;
    void *owned; /* to unmap or free */
    bool mapped;
    struct fdri_arena_superblock sb; /* as repaired */
    struct fdri_arena_spare spare;   /* zero: damaged */
    struct fdri_file_bad *bad;       /* in order */
    size_t bad_count, bad_room;
    uint64_t end;         /* arena bytes that are there */
    uint64_t bins_end;    /* no bin beyond */
    uint64_t meta_first;  /* no meta block before */
    bool cut_off;         /* its end is not there */
    bool has_tail;        /* a snapshot */
    bool tail_bad;        /* and what it says is not believed */
    bool has_crash;       /* a bundle: a crash section lies behind the arena */
    bool without_section; /* a bundle that has none */
    uint64_t section_end; /* in the file; 0: there is none, or nobody can find it */
    bool sound;           /* nothing found damaged so far */
    bool headers_only;    /* a look at a running process: bins have no payload */
    uint32_t refused;     /* reader_memory.c: how often memory had been refused when this was opened */

    struct fdri_file_found *found;
    size_t found_count, found_room;
    struct fdri_file_found **by_identity; /* made when a list is broken */
    struct fdri_file_meta *meta;
    size_t meta_count, meta_room;
    bool meta_scanned;

    struct fdri_file_location *location; /* sorted by id */
    size_t location_count, location_room;
    bool locations_lost; /* the chain was broken, or lacks some: bins may belong to locations nobody describes */
    struct fdri_file_clock clock;

    struct fdri_file_definitions definitions[FDRI_FILE_KINDS];
    struct fdri_file_defs *defs;
    size_t defs_count, defs_room;
    uint64_t defs_bytes;
    uint64_t defs_vain;              /* bytes checked for definitions where there are none */
    struct fdr_definition **unknown; /* hash table of made-up ones */
    size_t unknown_count, unknown_slots;
    void **kept_memory; /* strings and arrays of definitions */
    size_t kept_count, kept_room;

    struct fdr_file_info info;
    char strategy[16];
    char build_id[80];

    char **damage;
    size_t damage_count, damage_room;

    struct fdri_bundle *bundle; /* NULL: no crash section */
    struct fdr_note_info *note;
    size_t note_count, note_room;

    pthread_mutex_t lock; /* what is computed on first use */
    bool has_epochs;
    struct fdr_epoch_info *epoch;
    size_t epoch_count, epoch_room;
    struct fdr_epoch_total *epoch_total;
    size_t epoch_total_count, epoch_total_room;
    bool verified, has_ledger, has_totals, has_reductions;
    struct fdr_ledger_row *ledger;
    size_t ledger_count, ledger_room;
    struct fdr_total *total;
    size_t total_count, total_room;
    uint64_t total_slots; /* looked at so far */
    uint64_t total_looks; /* at rows in blocks whose table is damaged */
    struct fdr_sample_stream *stream;
    size_t stream_count, stream_room;
    bool has_streams;
    struct fdri_symbol_places *places;
    struct fdr_reduction_info *reduction;
    size_t reduction_count, reduction_room;
};
/* `count` bytes at `off` of the file, or NULL when they are not all there. */
static inline const void *fdri_file_at(const struct fdr_file *f, uint64_t off, uint64_t count)
{
    return off <= f->end && count <= f->end - off ? f->bytes + off : NULL;
}
/* Room for one more element: grows *array (of *room elements of `size` bytes). false: no memory. */
bool fdri_file_grow(void *array, size_t count, size_t *room, size_t size);

/* Of a chain that is damaged: does it come to where it was? Asked of each place in turn, from {0} on; the answer comes
 * within a few rounds (Brent). */
struct fdri_file_chain {
    uint64_t mark, steps, until;
};
static inline bool fdri_file_goes_round(struct fdri_file_chain *c, uint64_t off)
{
    if (c->until && off == c->mark) return true;
    if (c->steps++ < c->until) return false;
    c->mark = off;
    c->until = c->until * 2 + 1;
    c->steps = 0;
    return false;
}

#endif
