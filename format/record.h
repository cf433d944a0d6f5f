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
 * Codes, low bit first (docs/FORMAT.md, 9):
 *   length against a predicted one, L:  0: L   10: L - 1   110: L + 1   111 + 6 bits: the length itself
 *   gamma of n >= 1:                    k zeros, a one, k bits; k = bitlen(n) - 1
 *   candidate:                          0: first   10: second   11 + 5 bits length + low bits: the id itself
 *   before a call, rarely:              8 ones and its ordinal + 1 as a gamma: the longest id has length 20
 *   value against the newest one:       0: equal   1 + 6 bits (length of the zigzag difference - 1) + low bits
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
#include "format/sample.h"

#define FDR_ID_BITS         20
#define FDR_ID_MAX          ((1u << FDR_ID_BITS) - 2u)
#define FDR_ENTRY_EMPTY     ((1u << FDR_ID_BITS) - 1u) /* id of an empty slot, lengths 0 */
#define FDR_INITIAL_LENGTH  4u                         /* of gap and duration, foretold for the first record of a bin */
#define FDR_CONTEXTS_MAX    64u
#define FDR_FIELDS_MAX      16u
#define FDR_VALUE_SLOTS     8u    /* newest field values are kept per id % 8 */
#define FDR_CHUNK_MAX       56u   /* bits of one put */
#define FDR_CALL_BITS_MAX   320u  /* no call record is longer */
#define FDR_POINT_BITS_MAX  2960u /* no point record is longer */
#define FDR_ORDINAL_MARK    0xffu /* 8 bits before a call record: no id is that long; its ordinal follows as a gamma */
#define FDR_ORDINAL_COUNTED UINT32_MAX /* the record does not say its ordinal */
#define FDR_HASH_SEED       0x243F6A8885A308D3u
#define FDR_HASH_MUL        0x9E3779B97F4A7C15u

/* Prediction state of one open bin. The encoder's lies in a meta block, the decoder's anywhere. */
struct fdr_table {
    uint64_t slot[FDR_CONTEXTS_MAX]; /* two candidates: low 32 bits the newer */
};
struct fdr_point_table {
    struct fdr_table t;
    uint64_t value[FDR_VALUE_SLOTS][FDR_FIELDS_MAX];
};

static inline uint32_t fdr_contexts(uint32_t bin_bytes)
{
    uint32_t n = bin_bytes >> 6;
    return n > FDR_CONTEXTS_MAX ? FDR_CONTEXTS_MAX : n; /* 512 B bins: 8 */
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
static inline uint64_t fdr_zigzag(uint64_t v) { return v << 1 ^ (0 - (v >> 63)); }
static inline uint64_t fdr_unzigzag(uint64_t v) { return v >> 1 ^ (0 - (v & 1)); }
static inline uint64_t fdr_mask(uint32_t bits) { return bits >= 64 ? ~0ull : (1ull << bits) - 1; }
static inline uint32_t fdr_check24(uint64_t hash) { return (uint32_t)(hash >> 40); }

/* Where a call stands among the events of its tick. */
struct fdr_tie {
    bool in_tick;     /* zero-length calls: the enclosing call was entered in this same tick, too */
    bool said;        /* the record says the call's ordinal */
    uint32_t parent;  /* with in_tick: ordinal of that call among the calls of its depth entered in this tick */
    uint32_t ordinal; /* with said: of the call itself among those of its depth in the tick it was entered in */
};

/* Where a point event stands among the events of its tick. */
#define FDR_LINKS_MAX  64u         /* links named at most, */
#define FDR_LINKS_BITS 1536u       /* in so many bits */
#define FDR_LINKS_CUT  0x7fffffffu /* stands for a link: there are more */
struct fdr_standing {
    bool tied;                    /* not the first event of its tick on this location */
    bool cut;                     /* there are more links than these */
    uint8_t links;                /* calls around it that were entered in this same tick */
    uint32_t sibling;             /* ordinals given one level deeper in this tick before it */
    uint32_t point;               /* point events of the location in this tick before it */
    uint32_t link[FDR_LINKS_MAX]; /* their ordinals, innermost first */
};

/* ======================================== encoder ======================================== */

/* Restarts the encoder of partition p on a new, empty bin. */
void fdr_encode_begin(struct fdr_part *p, struct fdr_table *table, uint8_t *payload, uint32_t bin_bytes,
                      uint32_t record_bits_max);

/* Has the open bin no room for one more record? Also when it was closed, or there is none. */
static inline bool fdr_encode_full(const struct fdr_part *p) { return FDR_COMMIT_BITS(p->progress) > p->limit; }
static inline void fdr_encode_close(struct fdr_part *p)
{
    p->progress = 1;
    p->limit = 0;
}

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
static inline uint64_t fdr_hash_standing(uint64_t hash, const struct fdr_standing *place)
{
    for (uint32_t i = 0; i < place->links; i++) hash = fdr_hash_step(hash, 1 | (uint64_t)place->link[i] << 1);
    if (place->cut) hash = fdr_hash_step(hash, 1 | (uint64_t)FDR_LINKS_CUT << 1);
    return fdr_hash_step(hash, place->tied | (uint64_t)place->sibling << 1 | (uint64_t)place->point << 33);
}

static inline uint64_t fdr_hash_ordinal(uint64_t hash, uint32_t ordinal)
{
    return fdr_hash_step(hash, (uint64_t)ordinal << 32 | 1);
}

#define FDR_ONE_RECORD FDR_COMMIT(0, 1, 0)

/* Appends `bits` <= FDR_CHUNK_MAX bits and adds them, and `records`, to the progress; returns that. What lies behind the newest bit
 * in its byte is 0: every put writes 8 bytes, and the bin began with a 0. */
static inline uint64_t fdr_put(struct fdr_part *p, uint8_t *payload, uint64_t value, uint32_t bits, uint64_t records)
{
    uint64_t progress = p->progress;
    uint8_t *at = payload + (FDR_COMMIT_BITS(progress) >> 3);
    uint64_t word = *at | value << (progress & 7);
    memcpy(at, &word, 8);
    return p->progress = progress + bits + records;
}

/* What was encoded becomes part of the bin: the caller stores the result in fdr_bin.commit (release). */
static inline uint64_t fdr_commit_word(const struct fdr_part *p) { return p->progress | (p->hash & ~fdr_mask(40)); }

/* The code of a length against the predicted one: bits << 24 | value. Where it is far from it the length itself stands
 * in the six highest bits. */
static inline uint32_t fdr_length_code(uint32_t length, uint32_t predicted)
{
    uint32_t i = length - predicted + 1;
    static const uint32_t near[3] = {2u << 24 | 1, 1u << 24, 3u << 24 | 3};
    return i > 2 ? 9u << 24 | 7u | length << 3 : near[i];
}

/* The head of a record whose region was foreseen: bits << 24 | value. Index: second candidate << 4 | duration << 2 | gap,
 * both as length - predicted + 1, or 3 for any other difference; then the length itself is still to be filled in, the gap's
 * behind the candidate's code and three bits, the duration's in the highest six bits. Made of the codes in
 * docs/FORMAT.md; test_record rebuilds it. */
extern const uint32_t fdr_head_code[32];

/* Calls that fdr_put_call takes: what it puts at once fits into one chunk. */
#define FDR_SHORT_BITS 18
static inline bool fdr_is_short_call(uint64_t gap, uint64_t duration)
{
    return ((duration - 1) | gap) >> FDR_SHORT_BITS == 0;
}

/* The head of a record whose region was not foreseen. Returns the bits. */
static inline uint32_t fdr_spell_head(uint32_t id, uint32_t lg, uint32_t ld, uint32_t newest, uint64_t *head)
{
    uint32_t n = fdr_bitlen(id), bits = 8 + n - (n != 0);
    *head = 7u | n << 3 | (id & ~(1u << n >> 1)) << 8;
    uint32_t g = fdr_length_code(lg, newest >> 20 & 63), d = fdr_length_code(ld, newest >> 26);
    *head |= (uint64_t)(g & 0xffffffu) << bits;
    bits += g >> 24;
    *head |= (uint64_t)(d & 0xffffffu) << bits;
    return bits + (d >> 24);
}

/* Appends one short call (fdr_is_short_call): the whole of the encoder for nearly all calls. Returns the commit word. */
static inline __attribute__((always_inline)) uint64_t fdr_put_call(struct fdr_part *p, struct fdr_table *table,
                                                                   uint8_t *payload, uint32_t id, uint64_t gap,
                                                                   uint64_t duration)
{
    uint64_t *slot = &table->slot[p->context];
    uint32_t first, second, newest = p->newest, bits;
    memcpy(&first, slot, 4); /* by halves, as they are written: a load of both would wait for two stores */
    memcpy(&second, (uint8_t *)slot + 4, 4);
    uint32_t ng = 63u ^ (uint32_t)__builtin_clzll(gap | 1), nd = 63u ^ (uint32_t)__builtin_clzll(duration);
    uint32_t lg = ng + (gap != 0), ld = nd + 1, entry = fdr_entry(id, lg, ld);
    uint64_t low = (gap & ~(1ull << ng)) | (duration & ~(1ull << nd)) << ng, head = 0;
    bool one = ((first ^ id) & FDR_ENTRY_EMPTY) == 0;
    uint32_t seen = one ? first : second;
    if (__builtin_expect(((seen ^ id) & FDR_ENTRY_EMPTY) != 0, 0)) {
        bits = fdr_spell_head(id, lg, ld, newest, &head);
        fdr_put(p, payload, head, bits, 0);
        head = bits = 0;
    } else {
        uint32_t g = lg + 1 - (seen >> 20 & 63), d = ld + 1 - (seen >> 26);
        uint32_t code = fdr_head_code[(one ^ 1) << 4 | (d < 3 ? d : 3) << 2 | (g < 3 ? g : 3)];
        bits = code >> 24;
        head = code & 0xffffffu;
        if (g > 2) head |= lg << (6 - one);
        if (d > 2) head |= (uint64_t)ld << (bits - 6);
    }
    uint32_t older = one ? second : first;
    memcpy(slot, &entry, 4);
    memcpy((uint8_t *)slot + 4, &older, 4);
    uint64_t hash = p->hash = fdr_hash_record(p->hash, id, gap, duration);
    p->context = fdr_context(id, newest & FDR_ENTRY_EMPTY, p->context_mask + 1);
    p->newest = entry;
    return fdr_put(p, payload, head | low << bits, bits + ng + nd, FDR_ONE_RECORD) | (hash & ~fdr_mask(40));
}

/* Is there room for this call in a bin that is full, which only means that the longest one does not fit any more? Nearly all
 * are a sixth of that: without this an eighth of a bin of 512 bytes would stay empty. `tied`: it may say where it stands in
 * its tick. */
static inline bool fdr_tail_holds(const struct fdr_part *p, uint32_t id, uint64_t gap, uint64_t duration, bool tied)
{
    /* the head with two lengths spelled out; an ordinal and a parent */
    uint32_t bits = 26 + fdr_bitlen(id) + fdr_bitlen(gap) + fdr_bitlen(duration) + (tied ? 8 + 64 + 2 + 64 : 0);
    return p->limit && FDR_COMMIT_BITS(p->progress) + bits <= p->limit + FDR_CALL_BITS_MAX;
}

/* Appends one call. Precondition: not full, or fdr_tail_holds; id <= FDR_ID_MAX, gap and duration < 2^63. */
void fdr_encode_call(struct fdr_part *p, struct fdr_table *table, uint8_t *payload, uint32_t id, uint64_t gap,
                     uint64_t duration, const struct fdr_tie *tie);

/* The same for any call, field by field: what fdr_put_call appends must be these bits. */
void fdr_spell_call(struct fdr_part *p, struct fdr_table *table, uint8_t *payload, uint32_t id, uint64_t gap,
                    uint64_t duration, const struct fdr_tie *tie);

/* No record of such a point is longer. */
static inline uint32_t fdr_point_bits(const struct fdr_standing *at, uint32_t fields)
{
    uint32_t bits =
        105 + 70 * fields; /* id 27, its length 9, gap 62; tied, end of links, number of fields; each field 7 + 63 */
    for (uint32_t i = 0; i < at->links; i++) bits += 2 * fdr_bitlen(at->link[i] + 1ull);
    if (at->cut) bits += 64;
    return bits + 2 * fdr_bitlen(at->sibling + 1ull) + 2 * fdr_bitlen(at->point + 1ull);
}

/* Appends one event without duration. Precondition: fdr_point_bits fit below the limit. fields[count], count <= FDR_FIELDS_MAX. `count` is stored only when
 * store_count is set (user events). */
void fdr_encode_point(struct fdr_part *p, struct fdr_point_table *table, uint8_t *payload, uint32_t id, uint64_t gap,
                      const struct fdr_standing *place, const uint64_t *fields, uint32_t count, bool store_count);

/* How many fields a point of this class and id carries; UINT32_MAX: the count is in the record (user events). */
static inline uint32_t fdr_point_fields(uint32_t class_, uint32_t id)
{
    switch (class_) {
    case FDR_CLASS_MESSAGE: return 4;                 /* peer, zigzag tag, comm, bytes; id 1 send, 2 recv */
    case FDR_CLASS_COLLECTIVE: return id & 1 ? 4 : 0; /* id = operation << 1 | end; comm, zigzag root, sent, received */
    case FDR_CLASS_METRIC:
    case FDR_CLASS_MARKER: return 1;
    default: return UINT32_MAX;
    }
}

/* ======================================== decoder ======================================== */

struct fdr_record {
    uint64_t enter; /* stored ticks; points: their time */
    uint64_t leave; /* = enter for points */
    uint32_t id;
    uint32_t ordinal;   /* of a call among those of its depth in its tick; FDR_ORDINAL_COUNTED: longer calls, mostly */
    struct fdr_tie tie; /* zero-length calls */
};

struct fdr_decoder {
    const uint8_t *payload;
    uint32_t bits, records; /* what commit promises */
    uint32_t check;
    uint32_t depth, class_, contexts;
    /* running */
    uint32_t bit, done, ctx1, ctx2, len_gap, len_duration;
    uint64_t last, hash;
    uint64_t zero_tick;
    uint32_t zero_count;
    bool bad;
    struct fdr_point_table table; /* calls use .t only */
    /* The caller's, for a bin of samples, and set before fdr_decode_begin: it is six times as large as all the rest, and a reader has a
     * decoder for each partition. NULL: a bin of samples is bad. */
    struct fdr_sample_decoder *sample;
    struct fdr_standing place; /* of the newest point */
    uint64_t fields[FDR_FIELDS_MAX];
    uint32_t field_count;
};

/* Prepares to decode the bin whose header is `h` and whose payload_bytes of payload follow. Returns false when
 * the commit word promises more than there is. Reads 8 bytes at a time but never beyond payload_bytes. */
bool fdr_decode_begin(struct fdr_decoder *d, const struct fdr_bin *h, const uint8_t *payload, uint32_t payload_bytes);

/* The next record: 1, 0 at the end (all records seen, check right), -1 when the bin is not what commit promised.
 * Nothing of a bin that ends in -1 is to be believed. Time stays monotonic: enter >= the last leave. */
int fdr_decode_next(struct fdr_decoder *d, struct fdr_record *r);

/* The next call records, `most` at most, into out[]: how many, 0 at the end, -1 as above. The same as fdr_decode_next again and
 * again, several times as fast; `slowly`: without the fast way, which has the last word about what is damage. */
int fdr_decode_calls(struct fdr_decoder *d, struct fdr_record *out, uint32_t most, bool slowly);

#endif
