/* SPDX-License-Identifier: MIT */
/* The record codec: how one call, or one point, becomes bits in a bin and back. Files: encode.c; decode.c, one record
 * at a time; decode_calls.c, calls in chunks; sample_codec.h with sample_*.c, the codec of samples. Neighbours:
 * recorder/ and bins/ encode, reader/ decodes; below: format/arena/.
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
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include "format/arena/arena.h"
#include "format/codec/sample_codec.h"

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
#define FDRI_CODEC_HASH_SEED       0x243F6A8885A308D3u
#define FDRI_CODEC_HASH_MUL        0x9E3779B97F4A7C15u

/* Prediction state of one open bin. The encoder's lies in a meta block, the decoder's in the reader's memory. */
struct fdri_codec_table {
    uint64_t slot[FDRI_CODEC_CONTEXTS_MAX]; /* two candidates; the newer one in the low 32 bits */
};
struct fdri_codec_point_table {
    struct fdri_codec_table t;
    uint64_t value[FDRI_CODEC_VALUE_SLOTS][FDRI_CODEC_FIELDS_MAX];
};
/* Size of the encoder's table of points: a slot for each context of the bin, then the newest values, `fields` of them
 * for each of FDRI_CODEC_VALUE_SLOTS ids. */
static inline uint32_t fdri_codec_point_table_bytes(uint32_t contexts, uint32_t fields)
{
    return (contexts + FDRI_CODEC_VALUE_SLOTS * fields) * 8;
}
static inline uint32_t fdri_codec_point_table_fields(uint32_t bytes, uint32_t contexts)
{
    uint32_t fields = (bytes / 8 - contexts) / FDRI_CODEC_VALUE_SLOTS;
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
/* Number of bits of v < 2^63, without a branch for 0. */
static inline uint32_t fdri_codec_bitlen(uint64_t v) { return 63u ^ (uint32_t)__builtin_clzll(v << 1 | 1); }
/* 0 for a duration of 0, else one more than the bits of duration - 1. A length has six bits; duration <= 2^62. */
static inline uint32_t fdri_codec_duration_length(uint64_t duration)
{
    return duration ? fdri_codec_bitlen(duration - 1) + 1 : 0;
}
static inline uint64_t fdri_codec_zigzag(uint64_t v) { return v << 1 ^ (0 - (v >> 63)); }
static inline uint64_t fdri_codec_unzigzag(uint64_t v) { return v >> 1 ^ (0 - (v & 1)); }
static inline uint64_t fdri_codec_mask(uint32_t bits) { return bits >= 64 ? ~0ull : (1ull << bits) - 1; }
static inline uint32_t fdri_codec_check24(uint64_t hash) { return (uint32_t)(hash >> 40); }

/* The place of a call among the events of its tick. */
struct fdri_codec_tie {
    bool in_tick;     /* calls of length 0: the enclosing call was entered in this tick, too */
    bool said;        /* the record states the call's ordinal */
    uint32_t parent;  /* with in_tick: ordinal of the enclosing call among those of its depth of this tick */
    uint32_t ordinal; /* with said: ordinal of the call among the calls of its depth entered in the same tick */
};

/* The place of a point among the events of its tick. */
#define FDRI_CODEC_LINKS_MAX  64u         /* maximum number of links, */
#define FDRI_CODEC_LINKS_BITS 1536u       /* and of their bits */
#define FDRI_CODEC_LINKS_CUT  0x7fffffffu /* stands for a link: further ones are missing */
struct fdri_codec_standing {
    bool tied;                           /* not the first event of its tick on this location */
    bool cut;                            /* further links are missing */
    uint8_t links;                       /* enclosing calls that were entered in this tick */
    uint32_t sibling;                    /* ordinals given one level deeper in this tick before the point */
    uint32_t point;                      /* points of the location in this tick before this one */
    uint32_t link[FDRI_CODEC_LINKS_MAX]; /* their ordinals, innermost first */
};

/* ======================================== encoder ======================================== */

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
    bool taken = p->open_off && !p->limit && (!p->aside_tick || p->aside_tick != p->total);
    return p->total + (taken ? FDRI_ARENA_COMMIT_RECORDS(p->progress) : 0);
}

/* One step of the running check. */
static inline uint64_t fdri_codec_hash_step(uint64_t hash, uint64_t v) { return (hash ^ v) * FDRI_CODEC_HASH_MUL; }
static inline uint64_t fdri_codec_hashed(uint32_t id, uint64_t gap, uint64_t duration)
{
    return (gap << 32 | gap >> 32) ^ duration ^ (uint64_t)id << 44;
}
static inline uint64_t fdri_codec_hash_record(uint64_t hash, uint32_t id, uint64_t gap, uint64_t duration)
{
    return fdri_codec_hash_step(hash, fdri_codec_hashed(id, gap, duration));
}
static inline uint64_t fdri_codec_hash_parent(uint64_t hash, const struct fdri_codec_tie *tie)
{
    return fdri_codec_hash_step(hash, tie->in_tick | (uint64_t)tie->parent << 1);
}
static inline uint64_t fdri_codec_hash_standing(uint64_t hash, const struct fdri_codec_standing *place)
{
    for (uint32_t i = 0; i < place->links; i++) hash = fdri_codec_hash_step(hash, 1 | (uint64_t)place->link[i] << 1);
    if (place->cut) hash = fdri_codec_hash_step(hash, 1 | (uint64_t)FDRI_CODEC_LINKS_CUT << 1);
    return fdri_codec_hash_step(hash, place->tied | (uint64_t)place->sibling << 1 | (uint64_t)place->point << 33);
}

static inline uint64_t fdri_codec_hash_ordinal(uint64_t hash, uint32_t ordinal)
{
    return fdri_codec_hash_step(hash, (uint64_t)ordinal << 32 | 1);
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

/* The encoding of a call that fits a candidate. */
struct fdri_codec_foreseen {
    uint64_t chunk;
    uint32_t bits, entry;
};

/* True if the call fits this candidate; fills *f. The record begins with `start`, of `bits` bits. */
static inline __attribute__((always_inline)) bool fdri_codec_fits(uint32_t entry, uint64_t start, uint32_t bits,
                                                                  uint64_t gap, uint64_t duration,
                                                                  struct fdri_codec_foreseen *f)
{
    uint32_t for_gap = fdri_codec_entry_gap(entry), for_duration = fdri_codec_entry_bits(entry);
    if (__builtin_expect((gap >> for_gap | (duration - 1) >> for_duration) != 0, 0)) return false;
    f->chunk = (gap | (duration - 1) << for_gap) << bits | start;
    f->bits = bits + for_gap + for_duration;
    f->entry = entry;
    return true;
}

/* True if the call fits one of the two candidates, as most do; fills *f. Always false for duration 0. `slot`: selected
 * by the partition's context; `progress`: of the partition. */
static inline __attribute__((always_inline)) bool fdri_codec_foresee(uint64_t slot, uint64_t progress, uint32_t id,
                                                                     uint64_t gap, uint64_t duration,
                                                                     struct fdri_codec_foreseen *f)
{
    const uint32_t first = (uint32_t)slot, second = (uint32_t)(slot >> 32),
                   key = FDRI_CODEC_ENTRY_EMPTY | FDRI_CODEC_ENTRY_ZERO;
    if (__builtin_expect(FDRI_ARENA_COMMIT_RECORDS(progress) % FDRI_CODEC_SPELL_EVERY == 0, 0)) return false;
    if (((first ^ id) & key) == 0) return fdri_codec_fits(first, 0, 1, gap, duration, f);
    return __builtin_expect(((second ^ id) & key) == 0, 1) && fdri_codec_fits(second, 1, 2, gap, duration, f);
}

/* Appends the call of *f. Returns the commit word. */
static inline __attribute__((always_inline)) uint64_t
fdri_codec_put_foreseen(struct fdri_arena_part *p, uint8_t *payload, uint32_t id, const struct fdri_codec_foreseen *f)
{
    uint64_t progress = p->progress, hash = p->hash = fdri_codec_hash_step(p->hash, f->chunk);
    uint8_t *at = payload + (FDRI_ARENA_COMMIT_BITS(progress) >> 3);
    uint64_t word = *at | f->chunk << (progress & 7);
    memcpy(at, &word, 8);
    p->newest = f->entry;
    p->context = fdri_codec_context(p->context, id, p->context_mask);
    p->progress = progress += f->bits + FDRI_CODEC_ONE_RECORD;
    return progress | (hash & ~fdri_codec_mask(40));
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

/* The number of fields of a point of this class and id; UINT32_MAX: the record contains the number (user events). */
static inline uint32_t fdri_codec_point_fields(uint32_t class_, uint32_t id)
{
    switch (class_) {
    case FDRI_ARENA_CLASS_MESSAGE: return 4; /* peer, zigzag tag, comm, bytes; id 1 send, 2 recv */
    case FDRI_ARENA_CLASS_COLLECTIVE:
        return id & 1 ? 4 : 0; /* id = operation << 1 | end; comm, zigzag root, sent, received */
    case FDRI_ARENA_CLASS_METRIC:
    case FDRI_ARENA_CLASS_MARKER: return 1;
    default: return UINT32_MAX;
    }
}

/* ======================================== decoder ======================================== */

struct fdri_codec_record {
    uint64_t enter; /* stored ticks; points: their time */
    uint64_t leave; /* = enter for points */
    uint32_t id;
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
    uint32_t bit, done, context, newest;
    uint64_t last, hash;
    uint64_t zero_tick;
    uint32_t zero_count;
    bool bad;
    struct fdri_codec_point_table table; /* calls only use .t */
    /* For a bin of samples; the caller provides it before fdri_codec_decode_begin. It is six times as large as all the
     * rest, and a reader has a decoder for each partition. NULL: a bin of samples counts as bad. */
    struct fdri_codec_sample_decoder *sample;
    struct fdri_codec_standing place; /* of the newest point */
    uint64_t fields[FDRI_CODEC_FIELDS_MAX];
    uint32_t field_count;
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
