/* SPDX-License-Identifier: MIT */
/* The encoder: appends a call or a point to the open bin of a partition. */
#ifndef FDRI_FORMAT_CODEC_ENCODE_H
#define FDRI_FORMAT_CODEC_ENCODE_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "format/arena/arena.h"
#include "format/codec/bit_length.h"
#include "format/codec/record_codec.h"

struct fdri_codec_table;

/* Restarts the encoder of partition p on a new, empty bin. */
void fdri_codec_encode_begin(struct fdri_arena_part *p, struct fdri_codec_table *table, uint8_t *payload,
                             uint32_t bin_bytes, uint32_t record_bits_max);

/* True: the open bin may have no room for a record of maximum length, was closed, or does not exist. */
static inline bool fdri_codec_encode_full(const struct fdri_arena_part *p)
{
    return FDRI_ARENA_COMMIT_BITS(p->progress) > p->limit;
}
static inline void fdri_codec_encode_close(struct fdri_arena_part *p)
{
    p->progress = 1;
    p->limit = 0;
}

/* Records given back from a partition whose list is empty. Another thread may have taken its newest bin while the owner
 * slept. Then the records of that bin are not in `total` yet, or are being added. */
static inline uint64_t fdri_codec_part_given(const struct fdri_arena_part *p)
{
    bool taken = p->open_off && !p->limit && (!p->pin_tick || p->pin_tick != p->total);
    return p->total + (taken ? FDRI_ARENA_COMMIT_RECORDS(p->progress) : 0);
}

#define FDRI_CODEC_ONE_RECORD FDRI_ARENA_COMMIT(0, 1, 0)

/* Appends `bits` <= FDRI_CODEC_CHUNK_MAX bits, adds them and `records` to the progress, and returns it. The bits behind
 * the newest one in its byte are 0, because each put writes 8 bytes and the bin began with a 0. */
static inline uint64_t fdri_codec_put_bits(struct fdri_arena_part *p, uint8_t *payload, uint64_t value, uint32_t bits,
                                           uint64_t records)
{
    uint64_t progress = p->progress;
    uint8_t *at = payload + (FDRI_ARENA_COMMIT_BITS(progress) >> 3);
    uint64_t word = *at | value << (progress & 7);
    memcpy(at, &word, 8);
    return p->progress = progress + bits + records;
}

/* The commit word for all encoded records. The caller stores it in fdri_arena_bin.commit (release). */
static inline uint64_t fdri_codec_commit_word(const struct fdri_arena_part *p)
{
    return p->progress | (p->hash & ~fdri_codec_mask(40));
}

/* True if this call fits into a full bin. Full means that a record of maximum length may not fit, but nearly all are a
 * sixth of that. Without this test an eighth of a bin of 512 bytes would stay empty. `tied`: the record may state its
 * place in its tick. */
static inline bool fdri_codec_tail_holds(const struct fdri_arena_part *p, uint32_t id, uint64_t gap, uint64_t duration,
                                         bool tied)
{
    /* the larger of a spelled-out record and one that fits its candidate; an ordinal and a parent */
    uint32_t bits = 27 + fdri_codec_bitlen(id) + fdri_codec_bitlen(gap) + fdri_codec_bitlen(duration);
    bits = (bits < FDRI_CODEC_CHUNK_MAX ? FDRI_CODEC_CHUNK_MAX : bits) + (tied ? 9 + 64 + 2 + 64 : 0);
    return p->limit && FDRI_ARENA_COMMIT_BITS(p->progress) + bits <= p->limit + FDRI_CODEC_CALL_BITS_MAX;
}

/* Appends one call. Precondition: not full, or fdri_codec_tail_holds; id <= FDRI_CODEC_ID_MAX, gap < 2^63, duration <=
 * 2^62. */
void fdri_codec_encode_call(struct fdri_arena_part *p, struct fdri_codec_table *table, uint8_t *payload, uint32_t id,
                            uint64_t gap, uint64_t duration, const struct fdri_codec_tie *tie);
/* The same for a call of duration > 0 that states no ordinal and fits no candidate. Returns the commit word. */
uint64_t fdri_codec_encode_longer(struct fdri_arena_part *p, struct fdri_codec_table *table, uint8_t *payload,
                                  uint32_t id, uint64_t gap, uint64_t duration);

/* Maximum bits of a record of such a point. */
static inline uint32_t fdri_codec_point_bits(const struct fdri_codec_standing *at, uint32_t fields)
{
    /* id 28, gap's length 9, gap 62; tied, end of links, number of fields; each field 7 + 63 */
    uint32_t bits = 107 + 70 * fields;
    for (uint32_t i = 0; i < at->links; i++) bits += 2 * fdri_codec_bitlen(at->link[i] + 1ull);
    if (at->cut) bits += 64;
    return bits + 2 * fdri_codec_bitlen(at->sibling + 1ull) + 2 * fdri_codec_bitlen(at->point + 1ull);
}

/* Appends one point. Precondition: fdri_codec_point_bits fit below the limit; count <= table_fields <=
 * FDRI_CODEC_FIELDS_MAX. table_fields is the room in the table, and does not change within a bin. The record contains
 * `count` only with store_count (user events). */
void fdri_codec_encode_point(struct fdri_arena_part *p, struct fdri_codec_table *table, uint32_t table_fields,
                             uint8_t *payload, uint32_t id, uint64_t gap, const struct fdri_codec_standing *place,
                             const uint64_t *fields, uint32_t count, bool store_count);
/* The same for a message or collective with a number; `kind` as in ordinals.h, but for NEXT. Of an open one `number` is
 * the token. One more field of room. */
void fdri_codec_encode_numbered(struct fdri_arena_part *p, struct fdri_codec_table *table, uint32_t table_fields,
                                uint8_t *payload, uint32_t plain_id, uint64_t gap,
                                const struct fdri_codec_standing *place, const uint64_t *fields, uint32_t count,
                                enum fdri_codec_number kind, uint64_t number);

#endif
