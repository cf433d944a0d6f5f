/* SPDX-License-Identifier: MIT */
/* A point on its way into the recording: point.c presents it; message_point.c makes those of messages and
 * collectives. */
#ifndef FDRI_RECORDER_RECORD_POINT_H
#define FDRI_RECORDER_RECORD_POINT_H

#include <stdbool.h>
#include <stdint.h>

#include "format/arena/arena.h"
#include "format/codec/record_codec.h"

struct fdri_record_point {
    uint32_t class_, id;
    uint32_t count;
    bool store_count, reading;
    uint64_t before, number; /* of a reading */
    uint64_t began;          /* of the end of an operation: when it began, in full ticks; 0: not known */
    enum fdri_codec_number numbered;
    uint64_t ordinal; /* or token, of a message or collective */
    uint64_t field[FDRI_CODEC_FIELDS_MAX];
};

/* Presents one event: counts it, stores it, adds it to the totals. type, value: what is added to the row of its id.
 * Returns its time in full ticks; 0: it is not recorded. */
uint64_t fdri_record_present(const struct fdri_record_point *e, enum fdri_arena_value_type type, uint64_t value,
                             bool live, uint64_t time_ns);

#endif
