/* SPDX-License-Identifier: MIT */
/* Call records a chunk at a time, with the decoder's state in registers and few branches: calls predicted in
 * everything, and calls whose region is a candidate. One load holds such a record nearly always. Everything else, and
 * everything doubtful, goes to fdr_decode_next. What comes out bad here is decoded slowly before it counts as damage
 * (reader/bins.c). */
#include "format/record.h"

#include <string.h>

#define LEAST_AHEAD 64u                 /* bits: more than one record of this kind needs */
#define LAST_MOST   ((uint64_t)1 << 61) /* from here on sums could wrap: not worth being fast */
#define LOW_MOST    32u                 /* bits below the leading one */

struct running {
    uint64_t hash, last, zero_tick;
    uint32_t bit, ctx1, ctx2, entry, zero_count;
    bool nested; /* depth > 1: zero-length calls say who their parent is */
};

static inline uint64_t load(const struct fdr_decoder *d, uint32_t bit)
{
    uint64_t w;
    memcpy(&w, d->payload + (bit >> 3), 8);
    return w >> (bit & 7);
}

/* A length against the predicted one: t ones and a zero say equal, one less, one more; three ones: the length itself
 * in six bits. *bits: what the code takes. */
static inline uint32_t read_length(uint64_t x, uint32_t predicted, uint32_t *bits)
{
    uint32_t t = (uint32_t)__builtin_ctzll(~x | 8), near = predicted + (t >> 1) - (t & 1), said = x >> 3 & 63;
    *bits = t > 2 ? 9 : t + 1;
    return t > 2 ? said : near;
}

/* What the head of a record says. */
struct head {
    uint32_t id, bits, gap_length, duration_length;
    uint64_t other; /* the slot's other candidate; unused when predicted */
};

/* Bits w begin with a one: candidate and lengths. false: the region is no candidate. */
static inline __attribute__((always_inline)) bool read_head(uint64_t slot, uint64_t w, struct head *h)
{
    uint32_t second = w >> 1 & 1, seen = (uint32_t)(slot >> 32 * second), gap_code, duration_code;
    uint64_t x = w >> (2 + second);
    h->other = slot >> 32 * (1 - second) & UINT32_MAX;
    h->id = seen & FDR_ENTRY_EMPTY;
    h->gap_length = read_length(x, seen >> 20 & 63, &gap_code);
    h->duration_length = read_length(x >> gap_code, seen >> 26, &duration_code);
    h->bits = 2 + second + gap_code + duration_code;
    return !(second & (w >> 2 & 1));
}

/* The parent of a zero-length call; returns the bits it takes. */
static inline uint32_t read_parent(uint64_t x, struct fdr_tie *tie)
{
    *tie = (struct fdr_tie){.in_tick = x & 1};
    if (!tie->in_tick) return 1;
    x >>= 1;
    uint32_t k = (uint32_t)__builtin_ctzll(x | 1ull << 30);
    tie->parent = (uint32_t)((x >> (k + 1) & ((1ull << k) - 1)) | 1ull << k) - 1;
    return 1 + 2 * k + 1;
}

static inline void read_zero(struct running *s, struct fdr_record *r)
{
    if (s->zero_tick != r->enter) {
        s->zero_tick = r->enter;
        s->zero_count = 0;
    }
    r->ordinal = s->zero_count++;
}

/* One record; false: it is of another kind, and nothing but *r was changed. */
static inline __attribute__((always_inline)) bool one(struct fdr_decoder *d, struct running *s, struct fdr_record *r)
{
    uint64_t w = load(d, s->bit), slot = d->table.t.slot[s->ctx1];
    uint32_t first = (uint32_t)slot;
    struct head h = {first & FDR_ENTRY_EMPTY, 1, first >> 20 & 63, first >> 26, 0};
    bool predicted = !(w & 1);
    if (!predicted && !read_head(slot, w, &h)) return false;
    uint32_t gap_bits = h.gap_length - (h.gap_length != 0),
             duration_bits = h.duration_length - (h.duration_length != 0);
    uint32_t bits = h.bits + gap_bits + duration_bits;
    if ((gap_bits > LOW_MOST) | (duration_bits > LOW_MOST) | (bits > FDR_CHUNK_MAX) | (h.id == FDR_ENTRY_EMPTY))
        return false;
    bool zero = h.duration_length == 0;
    if (zero) {
        r->tie = (struct fdr_tie){0};
        if (s->nested) bits += read_parent(w >> bits, &r->tie);
        if (bits > FDR_CHUNK_MAX) return false;
    }
    uint64_t low = w >> h.bits;
    uint64_t gap = (low & ((1ull << gap_bits) - 1)) | (uint64_t)(h.gap_length != 0) << gap_bits;
    uint64_t duration = (low >> gap_bits & ((1ull << duration_bits) - 1)) | (uint64_t)!zero << duration_bits;
    s->bit += bits;
    s->hash = fdr_hash_record(s->hash, h.id, gap, duration);
    r->enter = s->last + gap;
    r->leave = s->last = r->enter + duration;
    r->id = h.id;
    r->ordinal = FDR_ORDINAL_COUNTED;
    if (zero) {
        read_zero(s, r);
        if (s->nested) s->hash = fdr_hash_parent(s->hash, &r->tie);
    }
    s->entry = fdr_entry(h.id, h.gap_length, h.duration_length);
    if (!predicted) d->table.t.slot[s->ctx1] = h.other << 32 | s->entry;
    s->ctx1 = fdr_context(h.id, s->ctx2, d->contexts);
    s->ctx2 = h.id;
    return true;
}

/* As many as there are before one of another kind. */
static uint32_t run(struct fdr_decoder *d, struct fdr_record *out, uint32_t most)
{
    struct running s = {.hash = d->hash,
                        .last = d->last,
                        .bit = d->bit,
                        .ctx1 = d->ctx1,
                        .ctx2 = d->ctx2,
                        .zero_tick = d->zero_tick,
                        .zero_count = d->zero_count,
                        .nested = d->depth > 1};
    uint32_t n = 0;
    if (d->bad) return 0;
    while (n < most && s.bit + LEAST_AHEAD <= d->bits && s.last < LAST_MOST && one(d, &s, &out[n])) n++;
    if (n == 0) return 0;
    d->hash = s.hash;
    d->last = s.last;
    d->bit = s.bit;
    d->ctx1 = s.ctx1;
    d->ctx2 = s.ctx2;
    d->zero_tick = s.zero_tick;
    d->zero_count = s.zero_count;
    d->len_gap = s.entry >> 20 & 63;
    d->len_duration = s.entry >> 26;
    d->done += n;
    return n;
}

int fdr_decode_calls(struct fdr_decoder *d, struct fdr_record *out, uint32_t most, bool slowly)
{
    uint32_t n = 0;
    while (n < most) {
        uint32_t left = d->records - d->done;
        if (!slowly) n += run(d, out + n, left < most - n ? left : most - n);
        if (n == most) break;
        int result = fdr_decode_next(d, &out[n]);
        if (result < 0) return -1;
        if (result == 0) break;
        n++;
    }
    return (int)n;
}
