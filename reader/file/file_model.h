/* SPDX-License-Identifier: MIT */
/* The reader's model of a file. The reader checks every offset against the size of the file before use. Offsets have
 * 64 bits, so a sum of two fields cannot wrap. */
#ifndef FDRI_READER_FILE_FILE_MODEL_H
#define FDRI_READER_FILE_FILE_MODEL_H

#include <fdr/reader.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format/arena/arena.h"
#include "reader/file/file_parts.h"
#include "reader/file/location_model.h"
#include "reader/file/tick_to_ns.h"

struct fdri_bundle;
struct fdri_job;

struct fdr_file {
    const uint8_t *bytes;
    uint64_t size;
    void *owned; /* memory to unmap or free; NULL: none */
    bool mapped;
    struct fdri_arena_superblock sb; /* after repairs */
    struct fdri_arena_spare spare;   /* all zero if it is damaged */
    struct fdri_file_bad *bad;       /* sorted by offset, disjoint */
    size_t bad_count, bad_room;
    uint64_t end;         /* bytes of the arena in this file */
    uint64_t bins_end;    /* no bin lies at or above */
    uint64_t meta_first;  /* no meta block lies below */
    bool cut_off;         /* the end of the file is missing */
    bool has_tail;        /* it is a snapshot */
    bool tail_bad;        /* the tail is damaged; the reader ignores it */
    bool has_crash;       /* it is a bundle: a crash section lies behind the arena */
    bool without_section; /* it is a bundle without a crash section */
    uint64_t section_end; /* in the file; 0: there is no section, or its end is unknown */
    bool sound;           /* no damage found so far */
    bool headers_only;    /* a look at a running process: bins have no payload */
    uint32_t refused;     /* reader_memory.c: failed allocations before this file was opened */

    struct fdri_file_found *found;
    size_t found_count, found_room;
    struct fdri_file_found **by_identity; /* made when a list turns out broken */
    struct fdri_file_meta *meta;
    size_t meta_count, meta_room;
    bool meta_scanned;

    struct fdri_file_location *location; /* sorted by id */
    size_t location_count, location_room;
    bool locations_lost; /* the chain was broken or incomplete: bins may belong to locations without a block */
    struct fdri_file_clock clock;

    struct fdri_file_definitions definitions[FDRI_FILE_KINDS];
    struct fdri_file_defs *defs;
    size_t defs_count, defs_room;
    uint64_t defs_bytes;
    uint64_t defs_failed_bytes;            /* bytes checked for definitions without success */
    struct fdri_file_definition **unknown; /* hash table of placeholders for unknown ids */
    size_t unknown_count, unknown_slots;
    void **kept_memory; /* strings and arrays of definitions, freed with the file */
    size_t kept_count, kept_room;

    struct fdr_file_info info;
    char strategy[16];
    char build_id[80];

    char **damage;
    size_t damage_count, damage_room;

    struct fdri_bundle *bundle; /* NULL: no crash section */
    struct fdr_task_info *task; /* of a process that was looked at */
    size_t task_count, task_room;
    struct fdr_note_info *note;
    size_t note_count, note_room;

    pthread_mutex_t lock; /* protects everything that is computed on first use */
    bool verified, has_ledger, has_totals, has_reductions, has_epochs, has_streams;
    struct fdr_epoch_info *epoch;
    size_t epoch_count, epoch_room;
    struct fdr_epoch_total *epoch_total;
    size_t epoch_total_count, epoch_total_room;
    struct fdr_ledger_row *ledger;
    size_t ledger_count, ledger_room;
    struct fdr_total *total;
    size_t total_count, total_room;
    struct fdr_traffic_total *traffic;
    size_t traffic_count, traffic_room;
    uint64_t total_slots;     /* slots of totals tables that were read so far */
    uint64_t total_row_reads; /* reads of rows in blocks whose table is damaged, so far */
    struct fdr_sample_stream *stream;
    size_t stream_count, stream_room;
    struct fdri_symbol_places *places;
    struct fdr_reduction_info *reduction;
    size_t reduction_count, reduction_room;
    bool has_governor; /* looked for */
    struct fdr_governor *governor;
    uint32_t format;             /* version of the file; sb is in terms of the present one */
    struct fdr_section *section; /* in the order of the directory */
    size_t section_count, section_room;
    bool has_tallies;
    struct fdr_tally_row *tally; /* sorted by kind and key */
    size_t tally_count, tally_room;
    struct fdr_tally_room tallies;
    struct fdri_job *job; /* reader/job: several files as one; it has no bytes. NULL: one file */
};
/* `count` bytes at `off` of the file, or NULL if they do not all lie in it. */
static inline const void *fdri_file_at(const struct fdr_file *f, uint64_t off, uint64_t count)
{
    return off <= f->end && count <= f->end - off ? f->bytes + off : NULL;
}
/* Makes room for one more element: grows *array, which has *room elements of `size` bytes. Returns false without
 * memory. */
bool fdri_file_grow(void *array, size_t count, size_t *room, size_t size);

/* Detects a cycle in a damaged chain, by Brent's algorithm. Call fdri_file_goes_round for each offset in turn,
 * starting with a zeroed state. It returns true within a few rounds of the cycle. */
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
