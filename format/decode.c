/* SPDX-License-Identifier: MIT */
/* The record codec, the other direction: one record at a time, every bit of it checked. The codes are in record.h. */
#include "format/record.h"

bool fdr_decode_begin(struct fdr_decoder *d, const struct fdr_bin *h, const uint8_t *payload, uint32_t payload_bytes)
{
    uint64_t commit = h->commit;
    d->payload = payload;
    d->bits = FDR_COMMIT_BITS(commit);
    d->records = FDR_COMMIT_RECORDS(commit);
    d->check = FDR_COMMIT_CHECK(commit);
    d->depth = h->depth;
    d->class_ = h->class_;
    d->contexts = fdr_contexts(1u << h->size_log2);
    d->bit = d->done = d->ctx1 = d->ctx2 = 0;
    d->len_gap = d->len_duration = FDR_INITIAL_LENGTH;
    d->last = h->base_tick;
    d->hash = FDR_HASH_SEED;
    d->zero_tick = h->base_tick;
    d->zero_count = h->base_ordinal;
    d->bad = false;
    d->field_count = 0;
    for (uint32_t i = 0; i < d->contexts; i++) d->table.t.slot[i] = (uint64_t)FDR_ENTRY_EMPTY << 32 | FDR_ENTRY_EMPTY;
    if (h->class_ == FDR_CLASS_SAMPLE && !d->sample) return !(d->bad = true);
    if (h->class_ == FDR_CLASS_SAMPLE) fdr_sample_decode_begin(d->sample, 1u << h->size_log2);
    else if (h->class_ != FDR_CLASS_REGION) memset(d->table.value, 0, sizeof d->table.value);
    /* 8 bytes of slack: every load stays inside the payload */
    if (payload_bytes < 16 || d->bits > (payload_bytes - 8) * 8 || d->records > d->bits) return !(d->bad = true);
    return true;
}

static inline uint64_t peek(const struct fdr_decoder *d)
{
    uint64_t w;
    memcpy(&w, d->payload + (d->bit >> 3), 8);
    return w >> (d->bit & 7);
}

/* n <= 56. Past the end it reads zeros and marks the bin bad. */
static inline uint64_t get(struct fdr_decoder *d, uint32_t n)
{
    if (d->bit + n > d->bits) {
        d->bad = true;
        return 0;
    }
    uint64_t v = peek(d) & ((1ull << n) - 1);
    d->bit += n;
    return v;
}

/* A code whose length is known only while it is read: look at the bits, then take them as the encoder put them. */
static inline uint64_t look(const struct fdr_decoder *d, uint32_t n)
{
    return d->bit >= d->bits ? 0 : peek(d) & ((1ull << n) - 1);
}

static uint32_t get_length(struct fdr_decoder *d, uint32_t predicted)
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

static uint64_t get_low(struct fdr_decoder *d, uint32_t len)
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

static uint32_t get_gamma(struct fdr_decoder *d)
{
    uint64_t w = look(d, 33);
    if (!w) {
        d->bad = true;
        return 1;
    }
    uint32_t k = (uint32_t)__builtin_ctzll(w);
    get(d, k + 1);
    return (uint32_t)get_low(d, k + 1);
}

static uint32_t get_candidate(struct fdr_decoder *d)
{
    uint64_t slot = d->table.t.slot[d->ctx1], w = look(d, 3);
    uint32_t first = (uint32_t)slot, second = (uint32_t)(slot >> 32), seen;
    if (!(w & 2)) {
        get(d, 2);
        seen = first;
        d->table.t.slot[d->ctx1] = (uint64_t)second << 32; /* the caller adds the new entry */
    } else {
        if (!(w & 4)) {
            get(d, 3);
            seen = second;
        } else {
            uint32_t len = (uint32_t)(get(d, 8) >> 3);
            if (len > FDR_ID_BITS) {
                d->bad = true;
                len = 0;
            }
            seen = fdr_entry((uint32_t)get_low(d, len), d->len_gap, d->len_duration);
        }
        d->table.t.slot[d->ctx1] = (uint64_t)first << 32;
    }
    if ((seen & FDR_ENTRY_EMPTY) == FDR_ENTRY_EMPTY) d->bad = true;
    d->len_gap = seen >> 20 & 63;
    d->len_duration = seen >> 26;
    return seen & FDR_ENTRY_EMPTY;
}

static void step(struct fdr_decoder *d, uint32_t id, uint32_t lg, uint32_t ld)
{
    d->len_gap = lg;
    d->len_duration = ld;
    d->ctx1 = fdr_context(id, d->ctx2, d->contexts);
    d->ctx2 = id;
    d->done++;
}

static void get_parent(struct fdr_decoder *d, struct fdr_tie *tie)
{
    tie->in_tick = get(d, 1);
    tie->parent = tie->in_tick ? get_gamma(d) - 1 : 0;
}

static void finish_zero(struct fdr_decoder *d, struct fdr_record *r)
{
    if (d->zero_tick != r->enter) {
        d->zero_tick = r->enter;
        d->zero_count = 0;
    }
    if (r->ordinal != FDR_ORDINAL_COUNTED) d->zero_count = r->ordinal;
    r->ordinal = d->zero_count++;
    r->tie = (struct fdr_tie){0};
    if (d->depth <= 1) return;
    get_parent(d, &r->tie);
    d->hash = fdr_hash_parent(d->hash, &r->tie);
}

static int finish_call(struct fdr_decoder *d, struct fdr_record *r, uint32_t id, uint64_t gap, uint64_t duration)
{
    r->id = id;
    if (__builtin_add_overflow(d->last, gap, &r->enter) || __builtin_add_overflow(r->enter, duration, &r->leave))
        d->bad = true;
    d->last = r->leave;
    d->hash = fdr_hash_record(d->hash, id, gap, duration);
    if (duration == 0) finish_zero(d, r);
    return d->bad ? -1 : 1;
}

static void get_ordinal(struct fdr_decoder *d, struct fdr_record *r)
{
    r->ordinal = FDR_ORDINAL_COUNTED;
    if (look(d, 8) != FDR_ORDINAL_MARK) return;
    get(d, 8);
    r->ordinal = get_gamma(d) - 1;
    d->hash = fdr_hash_ordinal(d->hash, r->ordinal);
}

static int next_call(struct fdr_decoder *d, struct fdr_record *r)
{
    get_ordinal(d, r);
    uint32_t id, lg, ld;
    if (!look(d, 1)) {
        uint32_t e = (uint32_t)d->table.t.slot[d->ctx1];
        id = e & FDR_ENTRY_EMPTY;
        lg = e >> 20 & 63;
        ld = e >> 26;
        if (id == FDR_ENTRY_EMPTY) return -1;
        uint32_t ng = lg ? lg - 1 : 0, nd = ld ? ld - 1 : 0;
        if (ld != 0 && ng + nd < FDR_CHUNK_MAX) { /* one chunk, as the encoder's fast path wrote it */
            uint64_t v = get(d, 1 + ng + nd) >> 1;
            uint64_t gap = lg ? (v & ((1ull << ng) - 1)) | 1ull << ng : 0;
            uint64_t duration = v >> ng | 1ull << nd;
            step(d, id, lg, ld);
            return finish_call(d, r, id, gap, duration);
        }
        get(d, 1);
    } else {
        id = get_candidate(d);
        lg = get_length(d, d->len_gap);
        ld = get_length(d, d->len_duration);
        d->table.t.slot[d->ctx1] |= fdr_entry(id, lg, ld);
    }
    uint64_t gap = get_low(d, lg);
    uint64_t duration = get_low(d, ld);
    int result = finish_call(d, r, id, gap, duration);
    step(d, id, lg, ld);
    return result;
}

static void get_place(struct fdr_decoder *d, struct fdr_standing *place)
{
    place->tied = get(d, 1);
    place->links = 0;
    place->cut = false;
    place->sibling = place->point = 0;
    if (!place->tied) return;
    while (!place->cut && get(d, 1)) {
        uint32_t link = get_gamma(d) - 1;
        place->cut = link == FDR_LINKS_CUT;
        if (!place->cut && place->links == FDR_LINKS_MAX) d->bad = place->cut = true;
        if (!place->cut) place->link[place->links++] = link;
    }
    place->sibling = get_gamma(d) - 1;
    place->point = get_gamma(d) - 1;
}

static int next_point(struct fdr_decoder *d, struct fdr_record *r)
{
    uint32_t id, lg;
    if (!look(d, 1)) {
        uint32_t e = (uint32_t)d->table.t.slot[d->ctx1];
        get(d, 1);
        id = e & FDR_ENTRY_EMPTY;
        lg = e >> 20 & 63;
        if (id == FDR_ENTRY_EMPTY) return -1;
    } else {
        id = get_candidate(d);
        lg = get_length(d, d->len_gap);
        d->table.t.slot[d->ctx1] |= fdr_entry(id, lg, 0);
    }
    uint64_t gap = get_low(d, lg);
    if (__builtin_add_overflow(d->last, gap, &r->enter)) d->bad = true;
    r->leave = d->last = r->enter;
    r->id = id;
    r->ordinal = 0;
    r->tie = (struct fdr_tie){0};
    get_place(d, &d->place);
    d->hash = fdr_hash_standing(fdr_hash_record(d->hash, id, gap, 0), &d->place);
    uint32_t count = fdr_point_fields(d->class_, id);
    if (count == UINT32_MAX) count = (uint32_t)get(d, 5);
    if (count > FDR_FIELDS_MAX) return -1;
    uint64_t *newest = d->table.value[id % FDR_VALUE_SLOTS];
    for (uint32_t i = 0; i < count; i++) {
        uint64_t w = look(d, 1);
        if (!w) {
            get(d, 1);
        } else {
            uint32_t len = (uint32_t)(get(d, 7) >> 1) + 1;
            newest[i] += fdr_unzigzag(get_low(d, len));
        }
        d->fields[i] = newest[i];
        d->hash = fdr_hash_step(d->hash, newest[i]);
    }
    d->field_count = count;
    step(d, id, lg, 0);
    return d->bad ? -1 : 1;
}

static int at_end(const struct fdr_decoder *d)
{
    return d->bit == d->bits && fdr_check24(d->hash) == d->check ? 0 : -1;
}

int fdr_decode_next(struct fdr_decoder *d, struct fdr_record *r)
{
    if (d->bad) return -1;
    if (d->done == d->records) return at_end(d);
    int result = d->class_ == FDR_CLASS_REGION   ? next_call(d, r)
                 : d->class_ == FDR_CLASS_SAMPLE ? fdr_sample_decode_next(d, r)
                                                 : next_point(d, r);
    if (result < 0) d->bad = true;
    return result;
}
