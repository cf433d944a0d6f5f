/* SPDX-License-Identifier: MIT */
/* A cursor over the records of one partition, in order. */
#ifndef FDRI_READER_EVENTS_CURSOR_H
#define FDRI_READER_EVENTS_CURSOR_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#include "format/codec/decode.h"
#include "reader/file/file.h"

#define FDRI_EVENTS_CHUNK 64u
struct fdri_events_cursor {
    const struct fdri_codec_record *at, *end; /* decoded records that are not consumed; at == end: none */
    struct fdr_file *file;
    struct fdri_file_location *location;
    struct fdri_file_part *part;
    uint64_t min_leave, max_enter;
    uint64_t gap_from, gap_to; /* newest stretch of ticks in which records are missing; empty if from > to */
    uint64_t newest;           /* leave of the newest record returned */
    uint32_t next_bin;
    bool decoding, gapped, slow_decoding;
    uint32_t chunk;
    /* If memory allows, a bin that was never decoded is decoded once, as a whole. Otherwise it is decoded twice: to
     * its end as a check, then a chunk at a time. */
    bool may_keep_whole;
    struct fdri_codec_record *whole;
    uint32_t whole_room;
    struct fdri_codec_decoder decoder;
    struct fdri_codec_record record[FDRI_EVENTS_CHUNK];
};
static_assert(sizeof(struct fdri_events_cursor) <= 5632, "there is one for each partition of each location");
/* With chunk 1, decoder.fields are those of *at after each fill. */
void fdri_events_cursor_init(struct fdri_events_cursor *c, struct fdr_file *f, struct fdri_file_location *l,
                             struct fdri_file_part *p, uint64_t min_leave, uint32_t chunk);
/* Decodes the next records. Returns false, with at == end, if there are none. */
bool fdri_events_cursor_fill(struct fdri_events_cursor *c);
void fdri_events_cursor_done(struct fdri_events_cursor *c);

#endif
