/* SPDX-License-Identifier: MIT */
/* Decoding one record at a time, with every bit checked. The codes are in record_codec.h. */
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "format/arena/arena.h"
#include "format/codec/bit_length.h"
#include "format/classes/class_table.h"
#include "format/codec/decode.h"
#include "format/codec/prediction.h"
#include "format/codec/record_codec.h"
#include "format/codec/running_check.h"
#include "format/codec/sample_codec.h"

static void clear_points(struct fdri_codec_point_table *t)
{
    memset(t->value, 0, sizeof t->value);
    memset(t->number, 0, sizeof t->number);
}

bool fdri_codec_decode_begin(struct fdri_codec_decoder *d, const struct fdri_arena_bin *h, const uint8_t *payload,
                             uint32_t payload_bytes)
{
    uint64_t commit = h->commit;
    d->payload = payload;
    d->bits = FDRI_ARENA_COMMIT_BITS(commit);
    d->records = FDRI_ARENA_COMMIT_RECORDS(commit);
    d->check = FDRI_ARENA_COMMIT_CHECK(commit);
    d->depth = h->depth;
    d->class_ = h->class_;
    d->contexts = fdri_codec_contexts(1u << h->size_log2);
    d->bit = d->decoded_records = d->context = 0;
    d->newest = fdri_codec_entry(0, FDRI_CODEC_INITIAL_LENGTH, FDRI_CODEC_INITIAL_LENGTH);
    d->last = h->base_tick;
    d->hash = FDRI_CODEC_HASH_SEED;
    d->zero_tick = h->base_tick;
    d->zero_count = h->base_ordinal;
    d->damaged = false;
    d->field_count = 0;
    for (uint32_t i = 0; i < d->contexts; i++)
        d->table.t.slot[i] = (uint64_t)FDRI_CODEC_ENTRY_EMPTY << 32 | FDRI_CODEC_ENTRY_EMPTY;
    if (h->class_ == FDRI_ARENA_CLASS_SAMPLE && !d->sample) return !(d->damaged = true);
    if (h->class_ == FDRI_ARENA_CLASS_SAMPLE) fdri_codec_sample_decode_begin(d->sample, 1u << h->size_log2);
    else if (h->class_ != FDRI_ARENA_CLASS_REGION) clear_points(&d->table);
    /* 8 bytes of slack keep each load inside of the payload */
    if (payload_bytes < 16 || d->bits > (payload_bytes - 8) * 8 || d->records > d->bits) return !(d->damaged = true);
    return true;
}

static inline uint64_t peek(const struct fdri_codec_decoder *d)
{
    uint64_t w;
    memcpy(&w, d->payload + (d->bit >> 3), 8);
    return w >> (d->bit & 7);
}

/* Takes n <= 56 bits. At the end it returns 0 and marks the bin bad. */
static inline uint64_t get(struct fdri_codec_decoder *d, uint32_t n)
{
    if (d->bit + n > d->bits) {
        d->damaged = true;
        return 0;
    }
    uint64_t v = peek(d) & ((1ull << n) - 1);
    d->bit += n;
    return v;
}

/* Looks at bits without taking them, for codes whose length depends on their first bits. */
static inline uint64_t look(const struct fdri_codec_decoder *d, uint32_t n)
{
    return d->bit >= d->bits ? 0 : peek(d) & ((1ull << n) - 1);
}

static uint32_t get_length(struct fdri_codec_decoder *d, uint32_t predicted)
{
    uint64_t w = look(d, 3);
    if (!(w & 1)) {
        get(d, 1);
        return predicted;
    }
    if (!(w & 2)) {
        get(d, 2);
        return (predicted - 1) & 63;
    }
    if (!(w & 4)) {
        get(d, 3);
        return (predicted + 1) & 63;
    }
    return (uint32_t)(get(d, 9) >> 3);
}

static uint64_t get_low(struct fdri_codec_decoder *d, uint32_t len)
{
    if (len < 2) return len;
    uint64_t v;
    if (len - 1 > 32) {
        v = get(d, 32);
        v |= get(d, len - 1 - 32) << 32;
    } else {
        v = get(d, len - 1);
    }
    return v | 1ull << (len - 1);
}

static uint32_t get_gamma(struct fdri_codec_decoder *d)
{
    uint64_t w = look(d, 33);
    if (!w) {
        d->damaged = true;
        return 1;
    }
    uint32_t k = (uint32_t)__builtin_ctzll(w);
    get(d, k + 1);
    return (uint32_t)get_low(d, k + 1);
}

struct span {
    uint32_t id;
    uint64_t gap, duration;
};

/* Takes a record that fits a candidate, behind a start of `bits` bits. */
static void get_fitting(struct fdri_codec_decoder *d, uint32_t entry, uint32_t bits, struct span *s)
{
    uint32_t for_gap = fdri_codec_entry_gap(entry);
    uint64_t chunk = get(d, bits + for_gap + fdri_codec_entry_bits(entry));
    s->gap = chunk >> bits & fdri_codec_mask(for_gap);
    s->duration = entry & FDRI_CODEC_ENTRY_ZERO ? 0 : (chunk >> (bits + for_gap)) + 1;
    d->hash = fdri_codec_hash_step(d->hash, chunk);
}

static uint32_t get_id(struct fdri_codec_decoder *d)
{
    uint32_t len = (uint32_t)(get(d, 9) >> 4);
    if (len <= FDRI_CODEC_ID_BITS) return (uint32_t)get_low(d, len);
    d->damaged = true;
    return 0;
}

/* Takes a record that is spelled out. Returns its new candidate. */
static uint32_t get_spelled(struct fdri_codec_decoder *d, uint32_t seen, bool known, bool timed, struct span *s)
{
    uint32_t lg = get_length(d, fdri_codec_entry_gap(seen)),
             ld = timed ? get_length(d, fdri_codec_entry_duration(seen)) : 0;
    s->gap = get_low(d, lg);
    s->duration = ld ? get_low(d, ld - 1) + 1 : 0;
    d->hash = fdri_codec_hash_record(d->hash, s->id, s->gap, s->duration);
    return fdri_codec_entry_after(seen, known, s->id, lg, ld);
}

/* Takes id, gap and duration. Updates the newest candidate and the context, and the slot if the record is spelled
 * out. */
static void get_record(struct fdri_codec_decoder *d, bool timed, struct span *s)
{
    uint64_t *slot = &d->table.t.slot[d->context], w = look(d, 4);
    uint32_t first = (uint32_t)*slot, second = (uint32_t)(*slot >> 32), entry;
    bool one = !(w & 1) || (w & 7) == 3, two = (w & 3) == 1 || w == 7, fitting = !(w & 1) || (w & 3) == 1;
    uint32_t seen = one ? first : two ? second : d->newest;
    s->id = fdri_codec_entry_id(seen);
    if (fitting) {
        get_fitting(d, entry = seen, one ? 1 : 2, s);
    } else {
        if (one || two) get(d, one ? 3 : 4);
        else s->id = get_id(d);
        entry = get_spelled(d, seen, one || two, timed, s);
        *slot = (uint64_t)(one ? second : first) << 32 | entry;
    }
    if (s->id == FDRI_CODEC_ENTRY_EMPTY) d->damaged = true;
    d->newest = entry;
    d->context = fdri_codec_context(d->context, s->id, d->contexts - 1);
}

static void get_parent(struct fdri_codec_decoder *d, struct fdri_codec_tie *tie)
{
    tie->parent_in_tick = get(d, 1);
    tie->parent = tie->parent_in_tick ? get_gamma(d) - 1 : 0;
}

static void finish_zero(struct fdri_codec_decoder *d, struct fdri_codec_record *r)
{
    if (d->zero_tick != r->enter) {
        d->zero_tick = r->enter;
        d->zero_count = 0;
    }
    if (r->ordinal != FDRI_CODEC_ORDINAL_COUNTED) d->zero_count = r->ordinal;
    r->ordinal = d->zero_count++;
    r->tie = (struct fdri_codec_tie){0};
    if (d->depth <= 1) return;
    get_parent(d, &r->tie);
    d->hash = fdri_codec_hash_parent(d->hash, &r->tie);
}

static void get_ordinal(struct fdri_codec_decoder *d, struct fdri_codec_record *r)
{
    r->ordinal = FDRI_CODEC_ORDINAL_COUNTED;
    if (look(d, 9) != FDRI_CODEC_ORDINAL_MARK) return;
    get(d, 9);
    r->ordinal = get_gamma(d) - 1;
    d->hash = fdri_codec_hash_ordinal(d->hash, r->ordinal);
}

static int next_call(struct fdri_codec_decoder *d, struct fdri_codec_record *r)
{
    struct span s;
    get_ordinal(d, r);
    get_record(d, true, &s);
    r->id = s.id;
    if (__builtin_add_overflow(d->last, s.gap, &r->enter) || __builtin_add_overflow(r->enter, s.duration, &r->leave))
        d->damaged = true;
    d->last = r->leave;
    if (s.duration == 0) finish_zero(d, r);
    d->decoded_records++;
    return d->damaged ? -1 : 1;
}

static void get_place(struct fdri_codec_decoder *d, struct fdri_codec_standing *place)
{
    place->not_first_in_tick = get(d, 1);
    place->links = 0;
    place->cut = false;
    place->sibling = place->point = 0;
    if (!place->not_first_in_tick) return;
    while (!place->cut && get(d, 1)) {
        uint32_t link = get_gamma(d) - 1;
        place->cut = link == FDRI_CODEC_LINKS_CUT;
        if (!place->cut && place->links == FDRI_CODEC_LINKS_MAX) d->damaged = place->cut = true;
        if (!place->cut) place->link[place->links++] = link;
    }
    place->sibling = get_gamma(d) - 1;
    place->point = get_gamma(d) - 1;
}

/* Takes a value: its difference to `reference`. */
static uint64_t get_value(struct fdri_codec_decoder *d, uint64_t reference)
{
    if (!look(d, 1)) {
        get(d, 1);
        return reference;
    }
    uint32_t len = (uint32_t)(get(d, 7) >> 1) + 1;
    return reference + fdri_codec_unzigzag(get_low(d, len));
}

/* Takes the number behind the fields; newest: the newest token. */
static void get_number(struct fdri_codec_decoder *d, uint32_t plain_id, enum fdri_codec_number kind, uint64_t *newest)
{
    d->numbered = kind == FDRI_CODEC_NUMBER_NEXT ? FDRI_CODEC_NUMBER_STATED : kind;
    d->number = 0;
    if (kind == FDRI_CODEC_NUMBER_NONE) return;
    if (kind > FDRI_CODEC_NUMBER_AMBIGUOUS) d->damaged = true;
    if (kind == FDRI_CODEC_NUMBER_OPEN) {
        d->number = *newest = get_value(d, *newest);
    } else {
        uint64_t *entry = fdri_codec_number_entry(d->table.number, d->contexts,
                                                  fdri_codec_envelope(d->class_, plain_id, d->fields));
        uint64_t foreseen = fdri_codec_number_foreseen(entry);
        d->number = kind == FDRI_CODEC_NUMBER_NEXT ? foreseen : get_value(d, foreseen);
        fdri_codec_number_take(entry, d->number);
    }
    d->hash = fdri_codec_hash_step(d->hash, d->number);
}

/* Without the number; UINT32_MAX: the record says how many. The begin of a collective names its communicator only with
 * a number. */
static uint32_t fields_of(uint32_t class_, uint32_t id)
{
    uint32_t plain = fdri_codec_id_plain(class_, id);
    if (class_ == FDRI_ARENA_CLASS_COLLECTIVE && !(plain & 1))
        return fdri_codec_number_of(class_, id) != FDRI_CODEC_NUMBER_NONE;
    return fdri_classes_fields(class_, plain);
}

static int next_point(struct fdri_codec_decoder *d, struct fdri_codec_record *r)
{
    struct span s;
    get_record(d, false, &s);
    if (__builtin_add_overflow(d->last, s.gap, &r->enter)) d->damaged = true;
    r->leave = d->last = r->enter;
    r->id = fdri_codec_id_plain(d->class_, s.id);
    r->ordinal = 0;
    r->tie = (struct fdri_codec_tie){0};
    get_place(d, &d->place);
    d->hash = fdri_codec_hash_standing(d->hash, &d->place);
    uint32_t count = fields_of(d->class_, s.id);
    if (count == UINT32_MAX) count = (uint32_t)get(d, 5);
    if (count > FDRI_CODEC_FIELDS_MAX) return -1;
    uint64_t *newest = d->table.value[r->id % FDRI_CODEC_VALUE_SLOTS];
    for (uint32_t i = 0; i < count; i++) {
        d->fields[i] = newest[i] = get_value(d, newest[i]);
        d->hash = fdri_codec_hash_step(d->hash, newest[i]);
    }
    d->field_count = count;
    get_number(d, r->id, fdri_codec_number_of(d->class_, s.id), &newest[4]);
    d->decoded_records++;
    return d->damaged ? -1 : 1;
}

static int at_end(const struct fdri_codec_decoder *d)
{
    return d->bit == d->bits && fdri_codec_check24(d->hash) == d->check ? 0 : -1;
}

int fdri_codec_decode_next(struct fdri_codec_decoder *d, struct fdri_codec_record *r)
{
    if (d->damaged) return -1;
    if (d->decoded_records == d->records) return at_end(d);
    int result = d->class_ == FDRI_ARENA_CLASS_REGION   ? next_call(d, r)
                 : d->class_ == FDRI_ARENA_CLASS_SAMPLE ? fdri_codec_sample_decode_next(d, r)
                                                        : next_point(d, r);
    if (result < 0) d->damaged = true;
    return result;
}
