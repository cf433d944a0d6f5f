/* SPDX-License-Identifier: MIT */
/* Recovery: a fresh, whole file from whatever is readable of a damaged one, or of a core file.
 *
 *   recover_file.c   runs the steps in order      recover_bins.c   partitions and their bins
 *   recover_meta.c   all other chains             recover_rows.c   totals and epochs
 *   core_file_*.c    the arena of a core file     recover_tallies.c  counters of the process
 *
 * Neighbours: file/, events/ and account/ decide which parts are believable. */
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
    struct fdr_file *file;           /* the damaged file */
    uint8_t *bytes;                  /* the new file: arena_bytes, then the tail */
    uint64_t arena_bytes, bytes_all; /* arena_bytes may grow until the superblock is finished */
    struct {
        uint64_t low, high;
    } room[2]; /* free memory for new meta blocks, used downwards from high */
    uint64_t meta_first;
    uint64_t grow_to;     /* if both are used up, the arena grows, at most to this size */
    uint64_t table_slots; /* slots of totals tables read so far */
    bool short_of_room;
};

static inline void *fdri_recover_image_at(const struct fdri_recover_image *m, uint64_t off) { return m->bytes + off; }
/* Makes a zeroed meta block. Returns its offset; 0: no room, so nothing may be written there. */
uint32_t fdri_recover_image_meta(struct fdri_recover_image *m, enum fdri_arena_meta_kind kind, uint64_t bytes,
                                 uint32_t location);

/* recover_bins.c: rebuilds the partitions of location l, with the records of good bins only. `raw` is its block in
 * the image. */
void fdri_recover_parts(struct fdri_recover_image *m, struct fdri_file_location *l, struct fdri_arena_location *raw);
/* Erases the headers of bins that no list holds. */
void fdri_recover_unlisted(struct fdri_recover_image *m);
/* Index of the location's first row, in rows of `bytes` sorted by location. `at`: offset of the location's id in a
 * row. */
size_t fdri_recover_first_of(const void *rows, size_t count, size_t bytes, size_t at, uint32_t location);
/* recover_meta.c: definitions, notes, locations, levels, the superblock. */
void fdri_recover_definitions(struct fdri_recover_image *m);
void fdri_recover_notes(struct fdri_recover_image *m);
void fdri_recover_locations(struct fdri_recover_image *m);
/* recover_rows.c: keeps the believable rows of totals, and the epochs that are counted from them. */
void fdri_recover_totals(struct fdri_recover_image *m, const struct fdri_file_location *l,
                         struct fdri_arena_location *raw);
void fdri_recover_epochs(struct fdri_recover_image *m, const struct fdri_file_location *l,
                         struct fdri_arena_location *raw);
/* recover_tallies.c: leaves damaged tallies out. */
void fdri_recover_tallies(struct fdri_recover_image *m);
#endif
