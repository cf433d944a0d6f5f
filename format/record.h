/* SPDX-License-Identifier: MIT */
/* The record codec: how one call, or one event without duration, becomes bits in a bin and back.
 *
 * A bin's payload is a string of bits, filled from the low bit of each byte upwards. Each bin decodes from its
 * own bytes alone: prediction tables start empty with the bin.
 *
 * A call record says (region, gap since the newest leave of this partition, duration). The two records before it
 * select one of `contexts` table slots; a slot holds two candidates (region, bit length of gap, bit length of
 * duration). If the first candidate is right in all three, one bit says so and only the bits below each leading
 * one follow; npb-is needs 8 bits a call that way. Everything else is spelled out step by step.
 *
 * Ideas: delta time, leading zeros dropped, ids and lengths in the token: Wagner 2015, 3.3; predicting the next
 * region from those before it: the FCM predictor of ParLoT (Taheri et al. 2018, 3.2), here reset per bin.
 *
 * Running check: over what the records mean (ids, gaps, durations, ties, values), not over their bits. So it is worked
 * out beside the encoding instead of after it, and bits that decode to the same events are the same evidence.
 *
 * Invariant after every commit: bits, records and the 24-bit running check in fdr_bin.commit describe a prefix of
 * complete records.  */
#ifndef FDR_FORMAT_RECORD_H
#define FDR_FORMAT_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include "format/arena.h"

#define FDR_ID_BITS 20
#define FDR_ID_MAX ((1u << FDR_ID_BITS) - 2u)
#define FDR_ENTRY_EMPTY ((1u << FDR_ID_BITS) - 1u) /* id of an empty slot, lengths 0 */
#define FDR_CONTEXTS_MAX 64u
#define FDR_FIELDS_MAX 16u
#define FDR_VALUE_SLOTS 8u         /* newest field values are kept per id % 8 */
#define FDR_CHUNK_MAX 56u          /* bits of one put */
#define FDR_CALL_BITS_MAX 320u     /* no call record is longer */
#define FDR_POINT_BITS_MAX 1664u   /* no point record is longer */
#define FDR_HASH_SEED 0x243F6A8885A308D3u
#define FDR_HASH_MUL 0x9E3779B97F4A7C15u

/* Prediction state of one open bin. The encoder's lies in a meta block, the decoder's anywhere. */
struct fdr_table {
    uint64_t slot[FDR_CONTEXTS_MAX];                       /* two candidates: low 32 bits the newer */
};
struct fdr_point_table {
    struct fdr_table t;
    uint64_t value[FDR_VALUE_SLOTS][FDR_FIELDS_MAX];
};

static inline uint32_t fdr_contexts(uint32_t bin_bytes)
{
    uint32_t n = bin_bytes >> 6;
    return n > FDR_CONTEXTS_MAX ? FDR_CONTEXTS_MAX : n;    /* 512 B bins: 8 */
}
static inline uint32_t fdr_entry(uint32_t id, uint32_t len_gap, uint32_t len_duration)
{
    return id | len_gap << 20 | len_duration << 26;
}
static inline uint32_t fdr_context(uint32_t id1, uint32_t id2, uint32_t contexts)
{
    return ((id1 * 0x9E3779B1u) ^ (id2 * 0x85EBCA6Bu)) >> 13 & (contexts - 1);
}
/* v < 2^63; no branch for 0 */
static inline uint32_t fdr_bitlen(uint64_t v) { return 63u ^ (uint32_t)__builtin_clzll(v << 1 | 1); }
static inline uint64_t fdr_zigzag(uint64_t v) { return v << 1 ^ (uint64_t)((int64_t)v >> 63); }
static inline uint64_t fdr_unzigzag(uint64_t v) { return v >> 1 ^ (uint64_t)-(int64_t)(v & 1); }
static inline uint64_t fdr_mask(uint32_t bits) { return bits >= 64 ? ~0ull : (1ull << bits) - 1; }
static inline uint32_t fdr_check24(uint64_t hash) { return (uint32_t)(hash >> 40); }

/* Where a zero-length call or a point event stands among the events of its tick. */
struct fdr_tie {
    bool tied;          /* points: not the first event of its tick on this location */
    bool in_tick;       /* the enclosing call was entered in this same tick, too */
    uint32_t parent;    /* with in_tick: ordinal of that call among the calls of its depth entered in this tick */
    uint32_t sibling;   /* points: zero-length calls one level deeper stored in this tick before it */
    uint32_t point;     /* points: point events of the location in this tick before it */
};

/* ======================================== encoder ======================================== */

/* Restarts the encoder of partition p on a new, empty bin. */
void fdr_encode_begin(struct fdr_part *p, struct fdr_table *table, uint32_t bin_bytes, uint32_t record_bits_max);

/* One step of the running check. */
static inline uint64_t fdr_hash_step(uint64_t hash, uint64_t v) { return (hash ^ v) * FDR_HASH_MUL; }
static inline uint64_t fdr_hash_record(uint64_t hash, uint32_t id, uint64_t gap, uint64_t duration)
{
    return fdr_hash_step(hash, (gap << 32 | gap >> 32) ^ duration ^ (uint64_t)id << 44);
}
static inline uint64_t fdr_hash_parent(uint64_t hash, const struct fdr_tie *tie)
{
    return fdr_hash_step(hash, tie->in_tick | (uint64_t)tie->parent << 1);
}
static inline uint64_t fdr_hash_tie(uint64_t hash, const struct fdr_tie *tie)
{
    hash = fdr_hash_parent(hash, tie);
    return fdr_hash_step(hash, tie->tied | (uint64_t)tie->sibling << 1 | (uint64_t)tie->point << 33);
}

/* Appends `bits` <= FDR_CHUNK_MAX bits. */
static inline void fdr_put(struct fdr_part *p, uint8_t *payload, uint64_t value, uint32_t bits)
{
    uint32_t bit = (uint32_t)p->bit, end = bit + bits;
    uint64_t word = p->acc | value << (bit & 7);
    memcpy(payload + (bit >> 3), &word, 8);
    p->acc = word >> ((end & ~7u) - (bit & ~7u));
    p->bit = end;
}

/* What the newest put wrote becomes part of the bin. The caller stores the result in fdr_bin.commit (release). */
static inline uint64_t fdr_commit_word(struct fdr_part *p)
{
    return FDR_COMMIT(p->bit, ++p->records, fdr_check24(p->hash));
}

/* The head of a record: bits << 12 | value, by (second candidate, duration length, gap length), lengths as predicted - 1,
 * equal, + 1. Index: second << 4 | duration << 2 | gap. Made of the codes in docs/FORMAT.md; a test rebuilds it. */
extern const uint16_t fdr_head_code[32];

/* One call as foreseen: worked out before anything is written, so that the caller can still take the slow way. */
struct fdr_foreseen {
    uint64_t value, slot, hash;
    uint32_t bits, entry, context;
};

/* False: a region that is no candidate, a length far from the predicted one, a record over 56 bits, a zero length.
 * gap and duration < 2^63, id <= FDR_ID_MAX. */
static inline __attribute__((always_inline)) bool fdr_foresee_call(const struct fdr_part *p, const struct fdr_table *table,
                                                                   uint32_t id, uint64_t gap, uint64_t duration,
                                                                   struct fdr_foreseen *f)
{
    uint32_t context = p->context;
    uint64_t slot = table->slot[context];
    uint32_t ng = 63u ^ (uint32_t)__builtin_clzll(gap | 1), nd = 63u ^ (uint32_t)__builtin_clzll(duration | 1);
    uint32_t lg = ng + (gap != 0), ld = nd + 1, entry = fdr_entry(id, lg, ld);
    uint32_t first = (uint32_t)slot, second = (uint32_t)(slot >> 32);
    uint32_t one = ((first ^ id) & FDR_ENTRY_EMPTY) == 0, seen = one ? first : second;
    uint32_t g = lg + 1 - (seen >> 20 & 63), d = ld + 1 - (seen >> 26);
    if (((seen ^ id) & FDR_ENTRY_EMPTY) != 0 || (g | d) > 3 || ng + nd >= FDR_CHUNK_MAX - 9 || !duration) return false;
    uint32_t code = fdr_head_code[(one ^ 1) << 4 | d << 2 | g];
    if (!code) return false;
    uint32_t head_bits = code >> 12;
    uint64_t low = (gap & ~(~0ull << ng)) | (duration & ~(~0ull << nd)) << ng;
    f->value = (code & 0xfffu) | low << head_bits;
    f->bits = head_bits + ng + nd;
    f->entry = entry;
    f->slot = (one ? slot & 0xffffffff00000000u : slot << 32) | entry;
    f->context = context;
    f->hash = fdr_hash_record(p->hash, id, gap, duration);
    return true;
}

static inline __attribute__((always_inline)) void fdr_put_foreseen(struct fdr_part *p, struct fdr_table *table,
                                                                   uint8_t *payload, const struct fdr_foreseen *f)
{
    fdr_put(p, payload, f->value, f->bits);
    p->hash = f->hash;
    table->slot[f->context] = f->slot;
    p->context = fdr_context(f->entry & FDR_ENTRY_EMPTY, p->newest & FDR_ENTRY_EMPTY, p->context_mask + 1);
    p->newest = f->entry;
}

/* Appends one call. Precondition: p->bit <= p->limit, id <= FDR_ID_MAX, gap and duration < 2^63; tie may be NULL unless
 * duration == 0 at depth > 1. */
void fdr_encode_call(struct fdr_part *p, struct fdr_table *table, uint8_t *payload, uint32_t id, uint64_t gap,
                     uint64_t duration, const struct fdr_tie *tie);

/* Appends one event without duration. fields[count], count <= FDR_FIELDS_MAX. `count` is stored only when
 * store_count is set (user events). */
void fdr_encode_point(struct fdr_part *p, struct fdr_point_table *table, uint8_t *payload, uint32_t id, uint64_t gap,
                      const struct fdr_tie *tie, const uint64_t *fields, uint32_t count, bool store_count);

/* How many fields a point of this class and id carries; UINT32_MAX: the count is in the record (user events). */
static inline uint32_t fdr_point_fields(uint32_t class_, uint32_t id)
{
    switch (class_) {
    case FDR_CLASS_MESSAGE: return 4;              /* peer, zigzag tag, comm, bytes; id 1 send, 2 recv */
    case FDR_CLASS_COLLECTIVE: return id & 1 ? 4 : 0; /* id = operation << 1 | end; comm, zigzag root, sent, received */
    case FDR_CLASS_METRIC: case FDR_CLASS_MARKER: return 1;
    default: return UINT32_MAX;
    }
}

/* ======================================== decoder ======================================== */

struct fdr_record {
    uint64_t enter;        /* stored ticks; points: their time */
    uint64_t leave;        /* = enter for points */
    uint32_t id;
    uint32_t ordinal;      /* zero-length calls: how many of this depth were stored with this tick before it */
    struct fdr_tie tie;    /* zero-length calls and points */
};

struct fdr_decoder {
    const uint8_t *payload;
    uint32_t bits, records;       /* what commit promises */
    uint32_t check;
    uint32_t depth, class_, contexts;
    /* running */
    uint32_t bit, done, ctx1, ctx2, len_gap, len_duration;
    uint64_t last, hash;
    uint64_t zero_tick;
    uint32_t zero_count;
    bool bad;
    struct fdr_point_table table; /* calls use .t only */
    uint64_t fields[FDR_FIELDS_MAX];
    uint32_t field_count;
};

/* Prepares to decode the bin whose header is `h` and whose payload_bytes of payload follow. Returns false when
 * the commit word promises more than there is. Reads 8 bytes at a time but never beyond payload_bytes. */
bool fdr_decode_begin(struct fdr_decoder *d, const struct fdr_bin *h, const uint8_t *payload, uint32_t payload_bytes);

/* The next record: 1, 0 at the end (all records seen, check right), -1 when the bin is not what commit promised.
 * Nothing of a bin that ends in -1 is to be believed. Time stays monotonic: enter >= the last leave. */
int fdr_decode_next(struct fdr_decoder *d, struct fdr_record *r);

/* All call records of a bin at once into out[max]; max >= commit's records. 0 or -1 as above. */
int fdr_decode_calls(struct fdr_decoder *d, struct fdr_record *out, uint32_t max);

#endif
