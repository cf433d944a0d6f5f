/* SPDX-License-Identifier: MIT */
/* Numbers (ordinals) of messages and collectives: how the id of a record says that there is one, and the prediction of
 * the next one. A message is numbered within its envelope: kind, peer, tag and communicator; a collective within its
 * communicator. Each bin has a small table: which number comes next in which envelope. A number that was foreseen takes
 * no bits. Encoder and decoder keep equal tables, so a wrong guess costs bits and nothing else. */
#ifndef FDRI_FORMAT_CODEC_ORDINALS_H
#define FDRI_FORMAT_CODEC_ORDINALS_H

#include <stdbool.h>
#include <stdint.h>

#include "format/arena/arena.h"

enum fdri_codec_number {
    FDRI_CODEC_NUMBER_NONE,
    FDRI_CODEC_NUMBER_NEXT,     /* the foreseen number */
    FDRI_CODEC_NUMBER_STATED,   /* the record states it */
    FDRI_CODEC_NUMBER_OPEN,     /* a token instead: a later record says the number */
    FDRI_CODEC_NUMBER_AMBIGUOUS /* stated; others of its envelope were under way, so it may be theirs */
};
/* Kinds of messages: the low two bits of their ids. */
enum { FDRI_CODEC_SEND = 1, FDRI_CODEC_RECV = 2, FDRI_CODEC_RESOLVE = 3 };
#define FDRI_CODEC_OPERATION_END (1u << 17) /* operations of collectives lie below */

/* The place of the kind of number in an id. */
static inline uint32_t fdri_codec_number_shift(uint32_t class_)
{
    return class_ == FDRI_ARENA_CLASS_MESSAGE ? 2 : class_ == FDRI_ARENA_CLASS_COLLECTIVE ? 18 : 31;
}
static inline enum fdri_codec_number fdri_codec_number_of(uint32_t class_, uint32_t id)
{
    return (enum fdri_codec_number)(id >> fdri_codec_number_shift(class_));
}
/* The id without it. */
static inline uint32_t fdri_codec_id_plain(uint32_t class_, uint32_t id)
{
    return id & ((1u << fdri_codec_number_shift(class_)) - 1);
}
static inline bool fdri_codec_numbers_in(uint32_t class_)
{
    return class_ == FDRI_ARENA_CLASS_MESSAGE || class_ == FDRI_ARENA_CLASS_COLLECTIVE;
}

/* A set has four entries, most recently used first: 16 bits of the envelope's hash << 48 | the next number. */
enum { FDRI_CODEC_NUMBER_WAYS = 4 };
#define FDRI_CODEC_NUMBER_LOW (((uint64_t)1 << 48) - 1)

static inline uint64_t fdri_codec_envelope(uint32_t class_, uint32_t plain_id, const uint64_t *fields)
{
    bool message = class_ == FDRI_ARENA_CLASS_MESSAGE;
    uint64_t h = message ? plain_id : plain_id & 1;
    for (uint32_t i = 0; i < (message ? 3u : 1u); i++) h = ((h ^ fields[i]) * 0x9E3779B97F4A7C15u) ^ h >> 32;
    return h * 0x9E3779B97F4A7C15u;
}

/* The envelope's entry, at the front of its set. A new envelope begins with the number 0, in place of the one that was
 * not used for longest. entries: a power of two, at least FDRI_CODEC_NUMBER_WAYS. */
static inline uint64_t *fdri_codec_number_entry(uint64_t *table, uint32_t entries, uint64_t envelope)
{
    uint64_t *set = table + (envelope >> 40 & (entries / FDRI_CODEC_NUMBER_WAYS - 1)) * FDRI_CODEC_NUMBER_WAYS;
    uint64_t tag = envelope & ~FDRI_CODEC_NUMBER_LOW, found = tag;
    uint32_t way = 0;
    while (way < FDRI_CODEC_NUMBER_WAYS - 1 && (set[way] & ~FDRI_CODEC_NUMBER_LOW) != tag) way++;
    if ((set[way] & ~FDRI_CODEC_NUMBER_LOW) == tag) found = set[way];
    for (; way; way--) set[way] = set[way - 1];
    set[0] = found;
    return set;
}
static inline uint64_t fdri_codec_number_foreseen(const uint64_t *entry) { return *entry & FDRI_CODEC_NUMBER_LOW; }
static inline void fdri_codec_number_take(uint64_t *entry, uint64_t number)
{
    *entry = (*entry & ~FDRI_CODEC_NUMBER_LOW) | ((number + 1) & FDRI_CODEC_NUMBER_LOW);
}

#endif
