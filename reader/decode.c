/* SPDX-License-Identifier: MIT */
/* Call records a chunk at a time, with the decoder's state in registers and few branches. Two kinds are decoded here:
 * a call predicted in everything (the inverse of fdr_encode_call's common case), and one whose region is a candidate
 * and whose lengths are at most one off. Either is one chunk of the running check (FDR_CHUNK_MAX bits), which is why
 * one load and one multiplication do. Everything else, and everything doubtful, goes to fdr_decode_next. */
#include "reader/reader.h"

#include <string.h>

#define LEAST_AHEAD 64u                 /* bits: more than one record of either kind needs */
#define LAST_MOST ((uint64_t)1 << 61)   /* from here on sums could wrap: not worth being fast */
#define LOW_MOST 32u                    /* bits below the leading one */

struct running {
    uint64_t hash, last;
    uint32_t bit, ctx1, ctx2, entry;
};

static inline uint64_t load(const struct fdr_decoder *d, uint32_t bit)
{
    uint64_t w;
    memcpy(&w, d->payload + (bit >> 3), 8);
    return w >> (bit & 7);
}

static inline uint64_t mix(uint64_t hash, uint64_t v) { return (hash ^ v) * FDR_HASH_MUL; }

static inline __attribute__((always_inline)) void take(const struct fdr_decoder *d, struct running *s,
                                                       struct fdr_record *r, uint32_t entry, uint64_t gap,
                                                       uint64_t duration)
{
    uint32_t id = entry & FDR_ENTRY_EMPTY;
    r->enter = s->last + gap;
    r->leave = s->last = r->enter + duration;
    r->id = id;
    s->ctx1 = fdr_context(id, s->ctx2, d->contexts);
    s->ctx2 = id;
    s->entry = entry;
}

/* One predicted call from the bits w; false: it is not one, nothing was changed. */
static inline __attribute__((always_inline)) bool predicted(const struct fdr_decoder *d, struct running *s, uint64_t w,
                                                            struct fdr_record *r)
{
    uint32_t entry = (uint32_t)d->table.t.slot[s->ctx1];
    uint32_t gap_length = entry >> 20 & 63, gap_bits = gap_length - (gap_length != 0), duration_bits = (entry >> 26) - 1;
    uint32_t bits = 1 + gap_bits + duration_bits;
    /* an empty slot and one of duration 0 have 0 as their last length: duration_bits is huge then */
    if ((duration_bits > FDR_CHUNK_MAX) | (bits > FDR_CHUNK_MAX)) return false;
    w &= (1ull << bits) - 1;
    s->hash = mix(s->hash, w);
    s->bit += bits;
    w >>= 1;
    uint64_t gap = (w & ((1ull << gap_bits) - 1)) | (uint64_t)(gap_length != 0) << gap_bits;
    take(d, s, r, entry, gap, w >> gap_bits | 1ull << duration_bits);
    return true;
}

/* A length code of t ones and a zero: the predicted length, one less, one more. */
static inline uint32_t adjust(uint32_t length, uint32_t t) { return length + (t >> 1) - (t & 1); }

/* One call of a candidate region whose lengths are near those seen with it; false as above. */
static inline __attribute__((always_inline)) bool near(struct fdr_decoder *d, struct running *s, uint64_t w,
                                                       struct fdr_record *r)
{
    uint32_t second = w >> 1 & 1;
    uint64_t slot = d->table.t.slot[s->ctx1], x = w >> (2 + second);
    uint32_t seen = (uint32_t)(slot >> 32 * second), other = (uint32_t)(slot >> 32 * (1 - second));
    uint32_t t1 = (uint32_t)__builtin_ctzll(~x | 1ull << 60), t2 = (uint32_t)__builtin_ctzll(~(x >> (t1 + 1)) | 1ull << 60);
    uint32_t gap_length = adjust(seen >> 20 & 63, t1), duration_length = adjust(seen >> 26, t2);
    uint32_t gap_bits = gap_length - (gap_length != 0), duration_bits = duration_length - 1;
    uint32_t code_bits = 2 + second + t1 + 1 + t2 + 1, bits = code_bits + gap_bits + duration_bits;
    if ((second & (w >> 2 & 1)) | (t1 > 2) | (t2 > 2) | (gap_bits > LOW_MOST) | (duration_bits > LOW_MOST) |
        (bits > FDR_CHUNK_MAX) | ((seen & FDR_ENTRY_EMPTY) == FDR_ENTRY_EMPTY))
        return false;
    w &= (1ull << bits) - 1;
    s->hash = mix(s->hash, w);
    s->bit += bits;
    w >>= code_bits;
    uint64_t gap = w & ((1ull << gap_bits) - 1), duration = w >> gap_bits;
    uint32_t entry = fdr_entry(seen & FDR_ENTRY_EMPTY, gap_length, duration_length);
    d->table.t.slot[s->ctx1] = (uint64_t)other << 32 | entry;
    take(d, s, r, entry, gap | (uint64_t)(gap_length != 0) << gap_bits, duration | 1ull << duration_bits);
    return true;
}

/* As many as there are before one of another kind. */
static uint32_t run(struct fdr_decoder *d, struct fdr_record *out, uint32_t most)
{
    struct running s = {.hash = d->hash, .last = d->last, .bit = d->bit, .ctx1 = d->ctx1, .ctx2 = d->ctx2};
    uint32_t n = 0;
    if (d->bad) return 0;
    for (; n < most && s.bit + LEAST_AHEAD <= d->bits && s.last < LAST_MOST; n++) {
        uint64_t w = load(d, s.bit);
        if (!(w & 1 ? near(d, &s, w, &out[n]) : predicted(d, &s, w, &out[n]))) break;
    }
    if (n == 0) return 0;
    d->hash = s.hash;
    d->last = s.last;
    d->bit = s.bit;
    d->ctx1 = s.ctx1;
    d->ctx2 = s.ctx2;
    d->len_gap = s.entry >> 20 & 63;
    d->len_duration = s.entry >> 26;
    d->done += n;
    return n;
}

int fdri_reader_decode_calls(struct fdr_decoder *d, struct fdr_record *out, uint32_t most)
{
    uint32_t n = 0;
    while (n < most) {
        uint32_t left = d->records - d->done;
        n += run(d, out + n, left < most - n ? left : most - n);
        if (n == most) break;
        int result = fdr_decode_next(d, &out[n]);
        if (result < 0) return -1;
        if (result == 0) break;
        n++;
    }
    return (int)n;
}
