/* SPDX-License-Identifier: MIT */
/* Decoding calls in chunks, with the decoder's state in registers and few branches. It decodes records that fit a
 * candidate, and those spelled out with a candidate's region; one load nearly always covers such a record. All other
 * records, and all doubtful ones, go to fdri_codec_decode_next. A bin that is bad here is decoded the slow way before
 * it counts as damaged (reader/file/read_bins.c). */
#include "format/codec/decode.h"
#include "format/codec/prediction.h"
#include "format/codec/record_codec.h"
#include "format/codec/running_check.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define LEAST_AHEAD 64u                 /* bits: more than such a record needs */
#define LAST_MOST   ((uint64_t)1 << 61) /* at later times sums could overflow: the slow way decodes them */
#define LOW_MOST    32u                 /* maximum bits below the leading one */

struct running {
    uint64_t hash, last, zero_tick;
    uint32_t bit, context, newest, zero_count;
    bool nested; /* depth > 1: calls of length 0 name their parent */
};

static inline uint64_t load(const struct fdri_codec_decoder *d, uint32_t bit)
{
    uint64_t w;
    memcpy(&w, d->payload + (bit >> 3), 8);
    return w >> (bit & 7);
}

/* A length against the predicted one. 0, 1 or 2 ones and a zero: equal, one less, one more. Three ones: the length
 * itself in six bits. *bits: length of the code. */
static inline uint32_t read_length(uint64_t x, uint32_t predicted, uint32_t *bits)
{
    uint32_t t = (uint32_t)__builtin_ctzll(~x | 8), near = predicted + (t >> 1) - (t & 1), said = x >> 3 & 63;
    *bits = t > 2 ? 9 : t + 1;
    return t > 2 ? said : near;
}

/* A decoded record, without the parent of a call of length 0. */
struct span {
    uint32_t bits, entry;
    uint64_t gap, duration, hashed;
};

static inline __attribute__((always_inline)) struct span read_fitting(uint64_t w, uint32_t entry, uint32_t start)
{
    uint32_t for_gap = fdri_codec_entry_gap(entry), bits = start + for_gap + fdri_codec_entry_bits(entry);
    uint64_t chunk = w & ((1ull << bits) - 1), zero = entry >> 20 & 1;
    return (struct span){.bits = bits,
                         .entry = entry,
                         .gap = chunk >> start & ((1ull << for_gap) - 1),
                         .duration = (chunk >> (start + for_gap)) + 1 - zero,
                         .hashed = chunk};
}

/* n <= LOW_MOST bits, with a one above them if `there`. */
static inline uint64_t low_bits(uint64_t x, uint32_t n, uint32_t there)
{
    return (x & ((1ull << n) - 1)) | (uint64_t)there << n;
}

/* A record spelled out with a candidate's region, behind a start of 3 or 4 bits. False: it is too long for one load. */
static inline bool read_spelled(uint64_t w, uint32_t seen, uint32_t start, struct span *s)
{
    uint32_t gap_code, duration_code, id = fdri_codec_entry_id(seen);
    uint32_t lg = read_length(w >> start, fdri_codec_entry_gap(seen), &gap_code);
    uint32_t ld = read_length(w >> (start + gap_code), fdri_codec_entry_duration(seen), &duration_code);
    uint32_t head = start + gap_code + duration_code, gap_bits = lg - (lg != 0), duration_bits = ld - (ld != 0);
    duration_bits -= duration_bits != 0;
    if ((gap_bits > LOW_MOST) | (duration_bits > LOW_MOST) | (head + gap_bits + duration_bits > FDRI_CODEC_CHUNK_MAX))
        return false;
    s->bits = head + gap_bits + duration_bits;
    s->gap = low_bits(w >> head, gap_bits, lg != 0);
    s->duration = ld ? low_bits(w >> (head + gap_bits), duration_bits, ld > 1) + 1 : 0;
    s->hashed = fdri_codec_hashed(id, s->gap, s->duration);
    s->entry = fdri_codec_entry_after(seen, true, id, lg, ld);
    return true;
}

/* The parent of a call of length 0; returns the bits of its code. */
static inline uint32_t read_parent(uint64_t x, struct fdri_codec_tie *tie)
{
    *tie = (struct fdri_codec_tie){.parent_in_tick = x & 1};
    if (!tie->parent_in_tick) return 1;
    x >>= 1;
    uint32_t k = (uint32_t)__builtin_ctzll(x | 1ull << 30);
    tie->parent = (uint32_t)((x >> (k + 1) & ((1ull << k) - 1)) | 1ull << k) - 1;
    return 1 + 2 * k + 1;
}

static inline void read_zero(struct running *s, struct fdri_codec_record *r)
{
    if (s->zero_tick != r->enter) {
        s->zero_tick = r->enter;
        s->zero_count = 0;
    }
    r->ordinal = s->zero_count++;
}

/* Decodes one record. False: it is of another kind, and nothing but *r has changed. */
static inline __attribute__((always_inline)) bool one(struct fdri_codec_decoder *d, struct running *s,
                                                      struct fdri_codec_record *r)
{
    uint64_t w = load(d, s->bit), *slot = &d->table.t.slot[s->context];
    uint32_t first = (uint32_t)*slot, second = (uint32_t)(*slot >> 32);
    struct span x;
    bool one = (w & 7) == 3, spelled = (w & 3) == 3;
    if (!spelled) x = read_fitting(w, w & 1 ? second : first, 1 + (w & 1));
    else if ((w & 15) == 15 || !read_spelled(w, one ? first : second, one ? 3 : 4, &x)) return false;
    uint32_t id = fdri_codec_entry_id(x.entry), bits = x.bits;
    if (id == FDRI_CODEC_ENTRY_EMPTY) return false;
    bool zero = x.duration == 0;
    if (zero) {
        r->tie = (struct fdri_codec_tie){0};
        if (s->nested) bits += read_parent(w >> bits, &r->tie);
        if (bits > FDRI_CODEC_CHUNK_MAX) return false;
    }
    if (spelled) *slot = (uint64_t)(one ? second : first) << 32 | x.entry;
    s->bit += bits;
    s->hash = fdri_codec_hash_step(s->hash, x.hashed);
    r->enter = s->last + x.gap;
    r->leave = s->last = r->enter + x.duration;
    r->id = id;
    r->ordinal = FDRI_CODEC_ORDINAL_COUNTED;
    if (zero) {
        read_zero(s, r);
        if (s->nested) s->hash = fdri_codec_hash_parent(s->hash, &r->tie);
    }
    s->newest = x.entry;
    s->context = fdri_codec_context(s->context, id, d->contexts - 1);
    return true;
}

/* Decodes records up to the first of another kind. Returns their number. */
static uint32_t run(struct fdri_codec_decoder *d, struct fdri_codec_record *out, uint32_t most)
{
    struct running s = {.hash = d->hash,
                        .last = d->last,
                        .bit = d->bit,
                        .context = d->context,
                        .newest = d->newest,
                        .zero_tick = d->zero_tick,
                        .zero_count = d->zero_count,
                        .nested = d->depth > 1};
    uint32_t n = 0;
    if (d->damaged) return 0;
    while (n < most && s.bit + LEAST_AHEAD <= d->bits && s.last < LAST_MOST && one(d, &s, &out[n])) n++;
    if (n == 0) return 0;
    d->hash = s.hash;
    d->last = s.last;
    d->bit = s.bit;
    d->context = s.context;
    d->newest = s.newest;
    d->zero_tick = s.zero_tick;
    d->zero_count = s.zero_count;
    d->decoded_records += n;
    return n;
}

int fdri_codec_decode_calls(struct fdri_codec_decoder *d, struct fdri_codec_record *out, uint32_t most, bool slowly)
{
    uint32_t n = 0;
    while (n < most) {
        uint32_t left = d->records - d->decoded_records;
        if (!slowly) n += run(d, out + n, left < most - n ? left : most - n);
        if (n == most) break;
        int result = fdri_codec_decode_next(d, &out[n]);
        if (result < 0) return -1;
        if (result == 0) break;
        n++;
    }
    return (int)n;
}
