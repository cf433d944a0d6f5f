/* SPDX-License-Identifier: MIT */
/* The points of a location, merged from its partitions in order of time. */
#ifndef FDRI_READER_EVENTS_POINT_MERGE_H
#define FDRI_READER_EVENTS_POINT_MERGE_H

#include <fdr/reader.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format/codec/decode.h"
#include "format/codec/record_codec.h"
#include "reader/events/cursor.h"
#include "reader/file/file.h"

struct fdri_events_paths;

#define FDRI_EVENTS_PENDING 16u
struct fdri_events_point {
    struct fdri_codec_record record;
    struct fdri_codec_standing place;
    uint16_t depth;
    uint8_t class_;
    uint8_t field_count;
    uint8_t numbered; /* enum fdri_codec_number */
    uint64_t number;
    uint64_t field[FDRI_CODEC_FIELDS_MAX];
    const struct fdr_sample_path *path;
};

struct fdri_events_points {
    struct fdri_events_cursor **heap;
    size_t heap_count;
    struct fdri_events_cursor *memory;
    size_t memory_count;
    struct fdri_events_point pending[FDRI_EVENTS_PENDING]; /* points of one tick, in order */
    uint32_t first, count;
    uint64_t tick;                   /* tick of the pending points; UINT64_MAX: none */
    struct fdri_events_paths *paths; /* of a location of samples: one is pending, one was returned before */
    bool readings;                   /* user events of any depth are readings, so lie in no call */
};
/* Opens the selected points from min_tick on. Returns false without memory; close it in any case. */
bool fdri_events_points_open(struct fdri_events_points *q, struct fdr_file *f, struct fdri_file_location *l,
                             const struct fdr_select *s, uint64_t min_tick);
void fdri_events_points_next(struct fdri_events_points *q); /* drops the first pending point */
void fdri_events_points_close(struct fdri_events_points *q);

#endif
