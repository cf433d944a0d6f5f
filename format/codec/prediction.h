/* SPDX-License-Identifier: MIT */
/* Prediction: tables of candidates for the next record of a bin, alike for encoder and decoder. */
#ifndef FDRI_FORMAT_CODEC_PREDICTION_H
#define FDRI_FORMAT_CODEC_PREDICTION_H

#include <stdbool.h>
#include <stdint.h>

#include "format/codec/record_codec.h"

/* Prediction state of one open bin. The encoder's lies in a meta block, the decoder's in the reader's memory. */
struct fdri_codec_table {
    uint64_t slot[FDRI_CODEC_CONTEXTS_MAX]; /* two candidates; the newer one in the low 32 bits */
};
struct fdri_codec_point_table {
    struct fdri_codec_table t;
    uint64_t value[FDRI_CODEC_VALUE_SLOTS][FDRI_CODEC_FIELDS_MAX];
    uint64_t number[FDRI_CODEC_CONTEXTS_MAX]; /* ordinals.h */
};
/* Size of the encoder's table of points. It has a slot for each context of the bin, and as many entries for numbers, in
 * classes that have any. Then follow the newest values, `fields` of them for each of FDRI_CODEC_VALUE_SLOTS ids. */
static inline uint32_t fdri_codec_point_table_bytes(uint32_t class_, uint32_t contexts, uint32_t fields)
{
    return ((fdri_codec_numbers_in(class_) ? 2 : 1) * contexts + FDRI_CODEC_VALUE_SLOTS * fields) * 8;
}
static inline uint32_t fdri_codec_point_table_fields(uint32_t class_, uint32_t bytes, uint32_t contexts)
{
    uint32_t before = (fdri_codec_numbers_in(class_) ? 2 : 1) * contexts;
    uint32_t fields = (bytes / 8 - before) / FDRI_CODEC_VALUE_SLOTS;
    return fields < FDRI_CODEC_FIELDS_MAX ? fields : FDRI_CODEC_FIELDS_MAX;
}

static inline uint32_t fdri_codec_contexts(uint32_t bin_bytes)
{
    uint32_t n = bin_bytes >> 6;
    return n > FDRI_CODEC_CONTEXTS_MAX ? FDRI_CODEC_CONTEXTS_MAX : n; /* 512 B bins: 8 */
}

/* A candidate: region, bits for the gap, and bits for duration - 1, or a flag for duration 0. `duration_length` is of
 * fdri_codec_duration_length. */
#define FDRI_CODEC_ENTRY_ZERO  (1u << 20) /* the duration is 0 and has no bits */
#define FDRI_CODEC_WIDTH_MAX   27u        /* maximum bits for one number: both fit into one chunk */
#define FDRI_CODEC_SPELL_EVERY 64u        /* records */
static inline uint32_t fdri_codec_entry(uint32_t id, uint32_t gap_length, uint32_t duration_length)
{
    return id | (uint32_t)(duration_length == 0) << 20 | gap_length << 21 |
           (duration_length - (duration_length != 0)) << 26;
}
static inline uint32_t fdri_codec_entry_id(uint32_t entry) { return entry & FDRI_CODEC_ENTRY_EMPTY; }
static inline uint32_t fdri_codec_entry_gap(uint32_t entry) { return entry >> 21 & 31; }
static inline uint32_t fdri_codec_entry_bits(uint32_t entry) { return entry >> 26; } /* of the duration */
static inline uint32_t fdri_codec_entry_duration(uint32_t entry) { return (entry >> 26) + 1 - (entry >> 20 & 1); }
/* One bit closer to the needed length, so that an outlier does not spoil the prediction. */
static inline uint32_t fdri_codec_width_nearer(uint32_t width, uint32_t length)
{
    uint32_t next = width + (length > width) - (length < width);
    return next < FDRI_CODEC_WIDTH_MAX ? next : FDRI_CODEC_WIDTH_MAX;
}
/* The new candidate after a record that was spelled out. `seen`: the old one; `known`: it was of this region. */
static inline uint32_t fdri_codec_entry_after(uint32_t seen, bool known, uint32_t id, uint32_t gap_length,
                                              uint32_t duration_length)
{
    uint32_t before = fdri_codec_entry_duration(seen), most = FDRI_CODEC_WIDTH_MAX + 1;
    uint32_t gap = known ? fdri_codec_width_nearer(fdri_codec_entry_gap(seen), gap_length) : gap_length;
    uint32_t duration = duration_length;
    if (known && before && duration) duration = 1 + fdri_codec_width_nearer(before - 1, duration - 1);
    return fdri_codec_entry(id, gap < FDRI_CODEC_WIDTH_MAX ? gap : FDRI_CODEC_WIDTH_MAX,
                            duration < most ? duration : most);
}
static inline uint32_t fdri_codec_context(uint32_t context, uint32_t id, uint32_t mask)
{
    return (context << 3 ^ id) & mask;
}

#endif
