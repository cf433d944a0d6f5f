/* SPDX-License-Identifier: MIT */
/* The record codec, one direction: an event becomes bits. The codes are in record.h. */
#include "format/record.h"

const uint32_t fdr_head_code[32] = {
    0x06000015, 0x05000009, 0x0700002d, 0x0d00081d, 0x05000005, 0x01000000, 0x0600000d, 0x0c00001d,
    0x07000035, 0x06000019, 0x0800006d, 0x0e00181d, 0x0d000075, 0x0c000039, 0x0e0000ed, 0x1400381d,
    0x0700002b, 0x06000013, 0x0800005b, 0x0e00103b, 0x0600000b, 0x05000003, 0x0700001b, 0x0d00003b,
    0x0800006b, 0x07000033, 0x090000db, 0x0f00303b, 0x0e0000eb, 0x0d000073, 0x0f0001db, 0x1500703b,
};

void fdr_encode_begin(struct fdr_part *p, struct fdr_table *table, uint8_t *payload, uint32_t bin_bytes,
                      uint32_t record_bits_max)
{
    uint32_t contexts = fdr_contexts(bin_bytes);
    for (uint32_t i = 0; i < contexts; i++) table->slot[i] = (uint64_t)FDR_ENTRY_EMPTY << 32 | FDR_ENTRY_EMPTY;
    payload[0] = 0;
    p->progress = 0;
    p->hash = FDR_HASH_SEED;
    p->context = 0;
    p->context_mask = contexts - 1;
    p->newest = fdr_entry(0, FDR_INITIAL_LENGTH, FDR_INITIAL_LENGTH);
    p->limit = (bin_bytes - FDR_BIN_HEADER) * 8 - record_bits_max - 64;
}

/* One record on its way: gathered bits, handed on in chunks. */
struct writer {
    struct fdr_part *p;
    uint8_t *payload;
    uint64_t value;
    uint32_t bits;
};

static void flush(struct writer *w)
{
    if (w->bits) fdr_put(w->p, w->payload, w->value, w->bits, 0);
    w->value = 0;
    w->bits = 0;
}

static void add(struct writer *w, uint64_t value, uint32_t bits)
{
    if (w->bits + bits > FDR_CHUNK_MAX) flush(w);
    w->value |= value << w->bits;
    w->bits += bits;
}

static void add_length(struct writer *w, uint32_t length, uint32_t predicted)
{
    uint32_t code = fdr_length_code(length, predicted);
    add(w, code & 0xffffffu, code >> 24);
}

/* The bits of v below its leading one. */
static void add_low(struct writer *w, uint64_t v, uint32_t len)
{
    if (len < 2) return;
    v &= fdr_mask(len - 1);
    if (len - 1 > 32) {
        add(w, v & 0xffffffffu, 32);
        add(w, v >> 32, len - 1 - 32);
    } else {
        add(w, v, len - 1);
    }
}

static void add_gamma(struct writer *w, uint32_t n)
{
    uint32_t k = fdr_bitlen(n) - 1;
    add(w, 1ull << k, k + 1);
    add_low(w, n, k + 1);
}

/* The candidate code; brings the slot up to date for `entry` and returns the entry whose lengths are the prediction. */
static uint32_t add_candidate(struct writer *w, struct fdr_table *table, uint32_t entry)
{
    uint64_t slot = table->slot[w->p->context];
    uint32_t first = (uint32_t)slot, second = (uint32_t)(slot >> 32), id = entry & FDR_ENTRY_EMPTY;
    if ((first & FDR_ENTRY_EMPTY) == id) {
        add(w, 1, 2); /* not all right, first candidate */
        table->slot[w->p->context] = (uint64_t)second << 32 | entry;
        return first;
    }
    table->slot[w->p->context] = (uint64_t)first << 32 | entry;
    if ((second & FDR_ENTRY_EMPTY) == id) {
        add(w, 3, 3);
        return second;
    }
    uint32_t len = fdr_bitlen(id);
    add(w, 7u | (uint64_t)len << 3, 8);
    add_low(w, id, len);
    return w->p->newest;
}

static void advance(struct fdr_part *p, uint32_t entry)
{
    p->context = fdr_context(entry & FDR_ENTRY_EMPTY, p->newest & FDR_ENTRY_EMPTY, p->context_mask + 1);
    p->newest = entry;
}

static void add_parent(struct writer *w, const struct fdr_tie *tie)
{
    add(w, tie->in_tick, 1);
    if (tie->in_tick) add_gamma(w, tie->parent + 1);
}

static void finish(struct writer *w, uint32_t entry)
{
    flush(w);
    w->p->progress += FDR_ONE_RECORD;
    advance(w->p, entry);
}

void fdr_spell_call(struct fdr_part *p, struct fdr_table *table, uint8_t *payload, uint32_t id, uint64_t gap,
                    uint64_t duration, const struct fdr_tie *tie)
{
    struct writer w = {p, payload, 0, 0};
    uint32_t lg = fdr_bitlen(gap), ld = fdr_bitlen(duration), entry = fdr_entry(id, lg, ld);
    if (tie->said) {
        add(&w, FDR_ORDINAL_MARK, 8);
        add_gamma(&w, tie->ordinal + 1);
        p->hash = fdr_hash_ordinal(p->hash, tie->ordinal);
    }
    if ((uint32_t)table->slot[p->context] == entry) {
        add(&w, 0, 1);
    } else {
        uint32_t seen = add_candidate(&w, table, entry);
        add_length(&w, lg, seen >> 20 & 63);
        add_length(&w, ld, seen >> 26);
    }
    add_low(&w, gap, lg);
    add_low(&w, duration, ld);
    p->hash = fdr_hash_record(p->hash, id, gap, duration);
    if (duration == 0 && p->depth > 1) {
        add_parent(&w, tie);
        p->hash = fdr_hash_parent(p->hash, tie);
    }
    finish(&w, entry);
}

void fdr_encode_call(struct fdr_part *p, struct fdr_table *table, uint8_t *payload, uint32_t id, uint64_t gap,
                     uint64_t duration, const struct fdr_tie *tie)
{
    if (fdr_is_short_call(gap, duration) && !tie->said) fdr_put_call(p, table, payload, id, gap, duration);
    else fdr_spell_call(p, table, payload, id, gap, duration, tie);
}

static void add_value(struct writer *w, uint64_t value, uint64_t newest)
{
    uint64_t delta = fdr_zigzag(value - newest);
    if (!delta) {
        add(w, 0, 1);
        return;
    }
    uint32_t len = 64u - (uint32_t)__builtin_clzll(delta);
    add(w, 1u | (uint64_t)(len - 1) << 1, 7);
    add_low(w, delta, len);
}

static void add_place(struct writer *w, const struct fdr_standing *place)
{
    add(w, place->tied, 1);
    if (!place->tied) return;
    for (uint32_t i = 0; i < place->links; i++) {
        add(w, 1, 1);
        add_gamma(w, place->link[i] + 1);
    }
    add(w, place->cut, 1);
    if (place->cut) add_gamma(w, FDR_LINKS_CUT + 1);
    add_gamma(w, place->sibling + 1);
    add_gamma(w, place->point + 1);
}

void fdr_encode_point(struct fdr_part *p, struct fdr_point_table *table, uint8_t *payload, uint32_t id, uint64_t gap,
                      const struct fdr_standing *place, const uint64_t *fields, uint32_t count, bool store_count)
{
    struct writer w = {p, payload, 0, 0};
    uint32_t lg = fdr_bitlen(gap), entry = fdr_entry(id, lg, 0);
    if (FDR_COMMIT_RECORDS(p->progress) == 0) memset(table->value, 0, sizeof table->value);
    if ((uint32_t)table->t.slot[p->context] == entry) {
        add(&w, 0, 1);
    } else {
        uint32_t seen = add_candidate(&w, &table->t, entry);
        add_length(&w, lg, seen >> 20 & 63);
    }
    add_low(&w, gap, lg);
    add_place(&w, place);
    p->hash = fdr_hash_standing(fdr_hash_record(p->hash, id, gap, 0), place);
    if (store_count) add(&w, count, 5);
    uint64_t *newest = table->value[id % FDR_VALUE_SLOTS];
    for (uint32_t i = 0; i < count; i++) {
        add_value(&w, fields[i], newest[i]);
        newest[i] = fields[i];
        p->hash = fdr_hash_step(p->hash, fields[i]);
    }
    finish(&w, entry);
}
