/* SPDX-License-Identifier: MIT */
/* The record codec: how one call, or one point, becomes bits in a bin and back.
 *
 *   encode.h          appends records: encode.c          prediction.h     candidates for the next record
 *   foreseen_call.h   nearly all calls, on one path      running_check.h  the hash over the records of a bin
 *   decode.h          records of a bin: decode.c, one    bit_length.h     lengths and signs of numbers
 *                     at a time; decode_calls.c, chunks  sample_codec.h   the codec of samples, with sample_*.c
 *
 * Neighbours: recorder/ and bins/ encode, reader/ decodes; below: format/arena/.
 *
 * A bin's payload is a string of bits, filled from the low bit of each byte upwards. Prediction tables start empty with
 * each bin, so a bin is decoded from its own bytes alone.
 *
 * A call record has a region, a gap since the newest leave of this partition, and a duration. The records before it
 * select one of `contexts` table slots. A slot has two candidates (region, bits for the gap, bits for the duration). If
 * the first candidate has the record's region and both numbers fit, the record is a zero and the two numbers in so many
 * bits. This is nearly all of the work of encoding calls. Every other record is spelled out, and moves the candidate's
 * numbers of bits by one towards the needed ones. Every 64th record is spelled out, too; otherwise these numbers would
 * never shrink.
 *
 * Sources of ideas: Wagner 2015, 3.3 (delta time, leading zeros dropped, ids and lengths in the token); ParLoT, Taheri
 * et al. 2018, 3.2 (an FCM predictor of the next region from those before it, here reset with each bin).
 *
 * Codes, low bit first (docs/FORMAT.md, 9):
 *   record's start                      0: fits the first candidate   10: fits the second   110: spelled out, id of the
 *                                       first   1110: of the second   1111 + 5 bits length + low bits: the id itself
 *   length against a predicted one, L:  0: L   10: L - 1   110: L + 1   111 + 6 bits: the length itself
 *   gamma of n >= 1:                    k zeros, a one, k bits; k = bitlen(n) - 1
 *   before a call, rarely:              9 ones and its ordinal + 1 as a gamma: the longest id has length 20
 *   value against the newest one:       0: equal   1 + 6 bits (length of the zigzag difference - 1) + low bits
 *
 * The running check covers the bits of a record that fits a candidate, and the numbers of any other record.
 *
 * Invariant after every commit: bits, records and the 24-bit running check in fdri_arena_bin.commit describe a prefix
 * of complete records. */
#ifndef FDRI_FORMAT_CODEC_RECORD_CODEC_H
#define FDRI_FORMAT_CODEC_RECORD_CODEC_H

#include <stdbool.h>
#include <stdint.h>

#include "format/arena/arena.h"
#include "format/codec/ordinals.h"

#define FDRI_CODEC_ID_BITS        20
#define FDRI_CODEC_ID_MAX         ((1u << FDRI_CODEC_ID_BITS) - 2u)
#define FDRI_CODEC_ENTRY_EMPTY    ((1u << FDRI_CODEC_ID_BITS) - 1u) /* id of an empty slot, lengths 0 */
#define FDRI_CODEC_INITIAL_LENGTH 4u /* predicted for gap and duration of a bin's first record */
#define FDRI_CODEC_CONTEXTS_MAX   64u
#define FDRI_CODEC_FIELDS_MAX     16u
#define FDRI_CODEC_VALUE_SLOTS    8u    /* the newest field values are stored for each id % 8 */
#define FDRI_CODEC_CHUNK_MAX      56u   /* maximum bits of one put */
#define FDRI_CODEC_CALL_BITS_MAX  320u  /* maximum of a call record */
#define FDRI_CODEC_POINT_BITS_MAX 2960u /* maximum of a point record */
#define FDRI_CODEC_ORDINAL_MARK                                                                                        \
    0x1ffu /* 9 bits before a call record, longer than any id's length; the ordinal follows as a gamma */
#define FDRI_CODEC_ORDINAL_COUNTED UINT32_MAX /* the record does not state its ordinal */

/* The place of a call among the events of its tick. */
struct fdri_codec_tie {
    bool parent_in_tick; /* calls of length 0: the enclosing call was entered in this tick, too */
    bool has_ordinal;    /* the record states the call's ordinal */
    uint32_t parent;     /* with in_tick: ordinal of the enclosing call among those of its depth of this tick */
    uint32_t ordinal;    /* with said: ordinal of the call among the calls of its depth entered in the same tick */
};

/* The place of a point among the events of its tick. */
#define FDRI_CODEC_LINKS_MAX  64u         /* maximum number of links, */
#define FDRI_CODEC_LINKS_BITS 1536u       /* and of their bits */
#define FDRI_CODEC_LINKS_CUT  0x7fffffffu /* stands for a link: further ones are missing */
struct fdri_codec_standing {
    bool not_first_in_tick;              /* not the first event of its tick on this location */
    bool cut;                            /* further links are missing */
    uint8_t links;                       /* enclosing calls that were entered in this tick */
    uint32_t sibling;                    /* ordinals given one level deeper in this tick before the point */
    uint32_t point;                      /* points of the location in this tick before this one */
    uint32_t link[FDRI_CODEC_LINKS_MAX]; /* their ordinals, innermost first */
};

#endif
