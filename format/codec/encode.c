/* SPDX-License-Identifier: MIT */
/* Encoding calls and points. The codes are in record_codec.h. */
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "format/arena/arena.h"
#include "format/codec/bit_length.h"
#include "format/codec/encode.h"
#include "format/codec/prediction.h"
#include "format/codec/record_codec.h"
#include "format/codec/running_check.h"

void fdri_codec_encode_begin(struct fdri_arena_part *p, struct fdri_codec_table *table, uint8_t *payload,
                             uint32_t bin_bytes, uint32_t record_bits_max)
{
    uint32_t contexts = fdri_codec_contexts(bin_bytes);
    for (uint32_t i = 0; i < contexts; i++)
        table->slot[i] = (uint64_t)FDRI_CODEC_ENTRY_EMPTY << 32 | FDRI_CODEC_ENTRY_EMPTY;
    payload[0] = 0;
    p->progress = 0;
    p->hash = FDRI_CODEC_HASH_SEED;
    p->context = 0;
    p->context_mask = contexts - 1;
    p->newest = fdri_codec_entry(0, FDRI_CODEC_INITIAL_LENGTH, FDRI_CODEC_INITIAL_LENGTH);
    p->limit = (bin_bytes - FDRI_ARENA_BIN_HEADER) * 8 - record_bits_max - 64;
}

/* A record under construction: bits gather here and go out in chunks. */
struct writer {
    struct fdri_arena_part *p;
    uint8_t *payload;
    uint64_t value;
    uint32_t bits;
};

static inline void flush(struct writer *w)
{
    if (w->bits) fdri_codec_put_bits(w->p, w->payload, w->value, w->bits, 0);
    w->value = 0;
    w->bits = 0;
}

static inline __attribute__((always_inline)) void add(struct writer *w, uint64_t value, uint32_t bits)
{
    if (w->bits + bits > FDRI_CODEC_CHUNK_MAX) flush(w);
    w->value |= value << w->bits;
    w->bits += bits;
}

/* Adds the bits of v below its leading one. */
static void add_low(struct writer *w, uint64_t v, uint32_t len)
{
    if (len < 2) return;
    v &= fdri_codec_mask(len - 1);
    if (len - 1 > 32) {
        add(w, v & 0xffffffffu, 32);
        add(w, v >> 32, len - 1 - 32);
    } else {
        add(w, v, len - 1);
    }
}

static void add_gamma(struct writer *w, uint32_t n)
{
    uint32_t k = fdri_codec_bitlen(n) - 1;
    add(w, 1ull << k, k + 1);
    add_low(w, n, k + 1);
}

static bool fits(uint32_t entry, uint64_t gap, uint64_t duration)
{
    if (gap >> fdri_codec_entry_gap(entry)) return false;
    return entry & FDRI_CODEC_ENTRY_ZERO ? duration == 0
                                         : duration && (duration - 1) >> fdri_codec_entry_bits(entry) == 0;
}

/* Adds a record that fits a candidate, behind a start of `bits` bits. */
static void add_fitting(struct writer *w, uint32_t entry, uint64_t start, uint32_t bits, uint64_t gap,
                        uint64_t duration)
{
    uint32_t for_gap = fdri_codec_entry_gap(entry);
    uint64_t chunk = start | (gap | (duration - (duration != 0)) << for_gap) << bits;
    add(w, chunk, bits + for_gap + fdri_codec_entry_bits(entry));
    w->p->hash = fdri_codec_hash_step(w->p->hash, chunk);
}

/* The beginning of a record, built in one word. It has at most 46 bits, so it always fits into one chunk. */
struct head {
    uint64_t value;
    uint32_t bits;
};

static inline void head_add(struct head *h, uint64_t value, uint32_t bits)
{
    h->value |= value << h->bits;
    h->bits += bits;
}

static inline __attribute__((always_inline)) void head_length(struct head *h, uint32_t length, uint32_t predicted)
{
    static const uint8_t value[4] = {1, 0, 3, 7}, bits[4] = {2, 1, 3, 9};
    uint32_t i = length - predicted + 1;
    i = i < 3 ? i : 3;
    head_add(h, value[i] | (uint64_t)(length & (0u - (i == 3))) << 3, bits[i]);
}

static inline void head_id(struct head *h, uint32_t id)
{
    uint32_t len = fdri_codec_bitlen(id);
    head_add(h, 15u | (uint64_t)len << 4, 9);
    head_add(h, id & ~(1ull << len >> 1), len - (len != 0));
}

/* Adds a record that is spelled out. Returns its new candidate. `which`: 0 the first candidate, 1 the second, 2
 * neither. */
static inline __attribute__((always_inline)) uint32_t
add_spelled(struct writer *w, uint32_t which, uint32_t seen, uint32_t id, uint64_t gap, uint64_t duration, bool timed)
{
    struct head h = {0, 0};
    uint32_t lg = fdri_codec_bitlen(gap), ld = fdri_codec_duration_length(duration);
    if (which < 2) head_add(&h, which ? 7 : 3, 3 + which);
    else head_id(&h, id);
    head_length(&h, lg, fdri_codec_entry_gap(seen));
    if (timed) head_length(&h, ld, fdri_codec_entry_duration(seen));
    uint32_t gap_bits = lg - (lg != 0), rest = ld - (ld != 0), duration_bits = rest - (rest != 0);
    if (h.bits + gap_bits + duration_bits <= FDRI_CODEC_CHUNK_MAX) { /* the usual case: one chunk */
        head_add(&h, gap & ~(1ull << lg >> 1), gap_bits);
        if (ld) head_add(&h, (duration - 1) & ~(1ull << rest >> 1), duration_bits);
        add(w, h.value, h.bits);
    } else {
        add(w, h.value, h.bits);
        add_low(w, gap, lg);
        if (ld) add_low(w, duration - 1, rest);
    }
    w->p->hash = fdri_codec_hash_record(w->p->hash, id, gap, duration);
    return fdri_codec_entry_after(seen, which < 2, id, lg, ld);
}

/* Adds id, gap and duration; points have duration 0. */
static inline __attribute__((always_inline)) void add_record(struct writer *w, struct fdri_codec_table *table,
                                                             uint32_t id, uint64_t gap, uint64_t duration, bool timed)
{
    struct fdri_arena_part *p = w->p;
    uint64_t *slot = &table->slot[p->context];
    uint32_t first = (uint32_t)*slot, second = (uint32_t)(*slot >> 32), entry;
    uint32_t which = fdri_codec_entry_id(first) == id ? 0 : fdri_codec_entry_id(second) == id ? 1 : 2;
    uint32_t seen = which == 0 ? first : which == 1 ? second : p->newest;
    if (which < 2 && FDRI_ARENA_COMMIT_RECORDS(p->progress) % FDRI_CODEC_SPELL_EVERY && fits(seen, gap, duration)) {
        add_fitting(w, entry = seen, which, 1 + which, gap, duration);
    } else {
        entry = add_spelled(w, which, seen, id, gap, duration, timed);
        *slot = (uint64_t)(which == 0 ? second : first) << 32 | entry;
    }
    p->newest = entry;
    p->context = fdri_codec_context(p->context, id, p->context_mask);
}

static void add_parent(struct writer *w, const struct fdri_codec_tie *tie)
{
    add(w, tie->parent_in_tick, 1);
    if (tie->parent_in_tick) add_gamma(w, tie->parent + 1);
}

static void finish(struct writer *w)
{
    flush(w);
    w->p->progress += FDRI_CODEC_ONE_RECORD;
}

/* For records of more than two chunks. */
static __attribute__((noinline)) uint64_t encode_long(struct fdri_arena_part *p, struct fdri_codec_table *table,
                                                      uint8_t *payload, uint32_t id, uint64_t gap, uint64_t duration)
{
    struct writer w = {p, payload, 0, 0};
    add_record(&w, table, id, gap, duration, true);
    finish(&w);
    return fdri_codec_commit_word(p);
}

/* Produces the same bits as add_spelled, in one word or two. One call in five comes here. The code has no branches on
 * data, because a processor could not predict them. */
uint64_t fdri_codec_encode_longer(struct fdri_arena_part *p, struct fdri_codec_table *table, uint8_t *payload,
                                  uint32_t id, uint64_t gap, uint64_t duration)
{
    uint64_t *slot = &table->slot[p->context];
    uint32_t first = (uint32_t)*slot, second = (uint32_t)(*slot >> 32), seen = p->newest, other = first;
    struct head h = {0, 0};
    head_id(&h, id);
    bool is_first = fdri_codec_entry_id(first) == id, is_second = fdri_codec_entry_id(second) == id,
         known = is_first | is_second;
    seen = is_second ? second : seen;
    h.value = is_second ? 7 : h.value;
    h.bits = is_second ? 4 : h.bits;
    seen = is_first ? first : seen;
    other = is_first ? second : other;
    h.value = is_first ? 3 : h.value;
    h.bits = is_first ? 3 : h.bits;
    uint32_t gap_length = fdri_codec_bitlen(gap), length = fdri_codec_bitlen(duration - 1) + 1;
    head_length(&h, gap_length, fdri_codec_entry_gap(seen));
    head_length(&h, length, fdri_codec_entry_duration(seen));
    uint32_t gap_bits = gap_length - (gap_length != 0), bits = gap_bits + length - 1 - (length != 1);
    if (__builtin_expect(bits > FDRI_CODEC_CHUNK_MAX, 0)) return encode_long(p, table, payload, id, gap, duration);
    uint64_t low = (gap & ~(1ull << gap_length >> 1)) | ((duration - 1) & ~(1ull << length >> 2)) << gap_bits;
    uint32_t entry = fdri_codec_entry_after(seen, known, id, gap_length, length);
    *slot = (uint64_t)other << 32 | entry;
    p->newest = entry;
    p->context = fdri_codec_context(p->context, id, p->context_mask);
    if (__builtin_expect(h.bits + bits > FDRI_CODEC_CHUNK_MAX, 0)) {
        fdri_codec_put_bits(p, payload, h.value, h.bits, 0);
        h = (struct head){0, 0};
    }
    head_add(&h, low, bits);
    uint64_t hash = p->hash = fdri_codec_hash_record(p->hash, id, gap, duration);
    return fdri_codec_put_bits(p, payload, h.value, h.bits, FDRI_CODEC_ONE_RECORD) | (hash & ~fdri_codec_mask(40));
}

void fdri_codec_encode_call(struct fdri_arena_part *p, struct fdri_codec_table *table, uint8_t *payload, uint32_t id,
                            uint64_t gap, uint64_t duration, const struct fdri_codec_tie *tie)
{
    struct writer w = {p, payload, 0, 0};
    if (tie->has_ordinal) {
        add(&w, FDRI_CODEC_ORDINAL_MARK, 9);
        add_gamma(&w, tie->ordinal + 1);
        p->hash = fdri_codec_hash_ordinal(p->hash, tie->ordinal);
    }
    add_record(&w, table, id, gap, duration, true);
    if (duration == 0 && p->depth > 1) {
        add_parent(&w, tie);
        p->hash = fdri_codec_hash_parent(p->hash, tie);
    }
    finish(&w);
}

static void add_value(struct writer *w, uint64_t value, uint64_t newest)
{
    uint64_t delta = fdri_codec_zigzag(value - newest);
    if (!delta) {
        add(w, 0, 1);
        return;
    }
    uint32_t len = 64u - (uint32_t)__builtin_clzll(delta);
    add(w, 1u | (uint64_t)(len - 1) << 1, 7);
    add_low(w, delta, len);
}

static void add_place(struct writer *w, const struct fdri_codec_standing *place)
{
    add(w, place->not_first_in_tick, 1);
    if (!place->not_first_in_tick) return;
    for (uint32_t i = 0; i < place->links; i++) {
        add(w, 1, 1);
        add_gamma(w, place->link[i] + 1);
    }
    add(w, place->cut, 1);
    if (place->cut) add_gamma(w, FDRI_CODEC_LINKS_CUT + 1);
    add_gamma(w, place->sibling + 1);
    add_gamma(w, place->point + 1);
}

/* The newest values. They stand behind the candidates in a table, and before them the entries for numbers. */
static uint64_t *values_of(struct fdri_arena_part *p, struct fdri_codec_table *table, uint32_t table_fields)
{
    uint32_t contexts = p->context_mask + 1;
    uint64_t *value = (uint64_t *)(void *)table + (fdri_codec_numbers_in(p->class_) ? 2 : 1) * contexts;
    if (FDRI_ARENA_COMMIT_RECORDS(p->progress) == 0) {
        uint64_t *from = (uint64_t *)(void *)table + contexts;
        memset(from, 0, ((size_t)(value - from) + FDRI_CODEC_VALUE_SLOTS * table_fields) * sizeof *value);
    }
    return value;
}

static void add_fields(struct writer *w, uint64_t *newest, const uint64_t *fields, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        add_value(w, fields[i], newest[i]);
        newest[i] = fields[i];
        w->p->hash = fdri_codec_hash_step(w->p->hash, fields[i]);
    }
}

void fdri_codec_encode_point(struct fdri_arena_part *p, struct fdri_codec_table *table, uint32_t table_fields,
                             uint8_t *payload, uint32_t id, uint64_t gap, const struct fdri_codec_standing *place,
                             const uint64_t *fields, uint32_t count, bool store_count)
{
    struct writer w = {p, payload, 0, 0};
    uint64_t *value = values_of(p, table, table_fields);
    add_record(&w, table, id, gap, 0, false);
    add_place(&w, place);
    p->hash = fdri_codec_hash_standing(p->hash, place);
    if (store_count) add(&w, count, 5);
    add_fields(&w, value + id % FDRI_CODEC_VALUE_SLOTS * table_fields, fields, count);
    finish(&w);
}

void fdri_codec_encode_numbered(struct fdri_arena_part *p, struct fdri_codec_table *table, uint32_t table_fields,
                                uint8_t *payload, uint32_t plain_id, uint64_t gap,
                                const struct fdri_codec_standing *place, const uint64_t *fields, uint32_t count,
                                enum fdri_codec_number kind, uint64_t number)
{
    struct writer w = {p, payload, 0, 0};
    uint64_t *newest = values_of(p, table, table_fields) + plain_id % FDRI_CODEC_VALUE_SLOTS * table_fields;
    uint64_t foreseen = newest[count];
    if (kind == FDRI_CODEC_NUMBER_OPEN) {
        newest[count] = number;
    } else {
        uint64_t *entry = fdri_codec_number_entry((uint64_t *)(void *)table + p->context_mask + 1, p->context_mask + 1,
                                                  fdri_codec_envelope(p->class_, plain_id, fields));
        foreseen = fdri_codec_number_foreseen(entry);
        fdri_codec_number_take(entry, number);
        if (number == foreseen && kind == FDRI_CODEC_NUMBER_STATED) kind = FDRI_CODEC_NUMBER_NEXT;
    }
    add_record(&w, table, plain_id | (uint32_t)kind << fdri_codec_number_shift(p->class_), gap, 0, false);
    add_place(&w, place);
    p->hash = fdri_codec_hash_standing(p->hash, place);
    add_fields(&w, newest, fields, count);
    if (kind != FDRI_CODEC_NUMBER_NEXT) add_value(&w, number, foreseen);
    p->hash = fdri_codec_hash_step(p->hash, number);
    finish(&w);
}
