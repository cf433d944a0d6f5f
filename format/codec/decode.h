/* SPDX-License-Identifier: MIT */
/* The decoder: the records of a bin, from its bytes and its commit word alone. */
#ifndef FDRI_FORMAT_CODEC_DECODE_H
#define FDRI_FORMAT_CODEC_DECODE_H

#include <stdbool.h>
#include <stdint.h>

#include "format/arena/arena.h"
#include "format/codec/prediction.h"
#include "format/codec/record_codec.h"

struct fdri_codec_sample_decoder;

struct fdri_codec_record {
    uint64_t enter; /* stored ticks; points: their time */
    uint64_t leave; /* = enter for points */
    uint32_t id;    /* of messages and collectives without what says that there is a number */
    /* of the call among those of its depth in its tick; FDRI_CODEC_ORDINAL_COUNTED: not stated, as for most longer
     * calls */
    uint32_t ordinal;
    struct fdri_codec_tie tie; /* of calls of length 0 */
};

struct fdri_codec_decoder {
    const uint8_t *payload;
    uint32_t bits, records; /* by the commit word */
    uint32_t check;
    uint32_t depth, class_, contexts;
    /* state */
    uint32_t bit, decoded_records, context, newest;
    uint64_t last, hash;
    uint64_t zero_tick;
    uint32_t zero_count;
    bool damaged;
    struct fdri_codec_point_table table; /* calls only use .t */
    /* For a bin of samples; the caller provides it before fdri_codec_decode_begin. It is six times as large as all the
     * rest, and a reader has a decoder for each partition. NULL: a bin of samples counts as bad. */
    struct fdri_codec_sample_decoder *sample;
    struct fdri_codec_standing place; /* of the newest point */
    uint64_t fields[FDRI_CODEC_FIELDS_MAX];
    uint32_t field_count;
    enum fdri_codec_number numbered; /* of the newest point; never NEXT */
    uint64_t number;                 /* of an open one its token */
};

/* Prepares to decode the bin with header `h` and payload_bytes of payload. False: the commit word promises more than
 * the payload. Reads 8 bytes at a time, but never beyond payload_bytes. */
bool fdri_codec_decode_begin(struct fdri_codec_decoder *d, const struct fdri_arena_bin *h, const uint8_t *payload,
                             uint32_t payload_bytes);

/* Decodes the next record. Returns 1; 0 at the end, after all records and with the right check; -1 if the bin
 * contradicts its commit word. Then no record of the bin may be believed. Times are monotonic: enter >= the last
 * leave. */
int fdri_codec_decode_next(struct fdri_codec_decoder *d, struct fdri_codec_record *r);

/* Decodes up to `most` calls into out[]. Returns their number, 0 at the end, -1 as above. It gives the same records as
 * fdri_codec_decode_next, several times as fast. With `slowly` it does not use the fast way; only the slow way decides
 * that a bin is damaged. */
int fdri_codec_decode_calls(struct fdri_codec_decoder *d, struct fdri_codec_record *out, uint32_t most, bool slowly);

#endif
