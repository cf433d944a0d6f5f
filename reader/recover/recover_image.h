/* SPDX-License-Identifier: MIT */
/* Recovery: a fresh, whole file from whatever is readable of a damaged one, or of a core file.
 *
 *   recover_file.c   the order of it         recover_bins.c   partitions and their bins
 *   recover_meta.c   all other chains        recover_rows.c   totals and epochs
 *   core_file_*.c    the arena out of a core file
 *
 * Neighbours: file/, events/ and account/ say what is believed. */
#ifndef FDRI_READER_RECOVER_RECOVER_IMAGE_H
#define FDRI_READER_RECOVER_RECOVER_IMAGE_H

#include <fdr/reader.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format/arena/arena.h"
#include "reader/file/file.h"

struct fdri_file_location;

struct fdri_recover_image {
    struct fdr_file *file;           /* what is read */
    uint8_t *bytes;                  /* what is written: arena_bytes, then the tail */
    uint64_t arena_bytes, bytes_all; /* arena_bytes: may grow until the superblock is finished */
    struct {
        uint64_t low, high;
    } room[2]; /* new meta blocks come from here, downwards from high */
    uint64_t meta_first;
    uint64_t grow_to;     /* where both are used up the arena grows, to here at most */
    uint64_t table_slots; /* of tables of totals, looked at so far */
    bool short_of_room;
};

static inline void *fdri_recover_image_at(const struct fdri_recover_image *m, uint64_t off) { return m->bytes + off; }
/* A zeroed meta block; 0: no room, and nothing is to be written. */
uint32_t fdri_recover_image_meta(struct fdri_recover_image *m, enum fdri_arena_meta_kind kind, uint64_t bytes,
                                 uint32_t location);

/* recover_bins.c: partitions of location l (its block at l_off of the image) with good bins only. */
void fdri_recover_parts(struct fdri_recover_image *m, struct fdri_file_location *l, struct fdri_arena_location *raw);
void fdri_recover_unlisted(struct fdri_recover_image *m);
/* The first row of a location in rows sorted by location, whose number lies at `at` in each. */
size_t fdri_recover_first_of(const void *rows, size_t count, size_t bytes, size_t at, uint32_t location);
/* recover_meta.c: definitions, notes, locations, levels, the superblock. */
void fdri_recover_definitions(struct fdri_recover_image *m);
void fdri_recover_notes(struct fdri_recover_image *m);
void fdri_recover_locations(struct fdri_recover_image *m);
/* recover_rows.c: rows of totals that are believed; epochs that are counted with others. */
void fdri_recover_totals(struct fdri_recover_image *m, const struct fdri_file_location *l,
                         struct fdri_arena_location *raw);
void fdri_recover_epochs(struct fdri_recover_image *m, const struct fdri_file_location *l,
                         struct fdri_arena_location *raw);
#endif
