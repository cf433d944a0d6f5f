/* SPDX-License-Identifier: MIT */
/* Decoding samples, with every bit checked. The codes are in sample_state.h. */
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "format/codec/bit_length.h"
#include "format/codec/decode.h"
#include "format/codec/record_codec.h"
#include "format/codec/running_check.h"
#include "format/codec/sample_codec.h"
#include "format/codec/sample_state.h"

void fdri_codec_sample_decode_begin(struct fdri_codec_sample_decoder *d, uint32_t bin_bytes)
{
    reset(&d->s, d->site, d->node, bin_bytes);
    d->before = 0;
    d->steps = 0;
}

/* Takes n <= 63 bits. At the end it returns 0 and marks the bin bad. */
static uint64_t take(struct fdri_codec_decoder *d, uint32_t n)
{
    uint64_t word, v = 0;
    if (d->bit + n > d->bits) {
        d->damaged = true;
        return 0;
    }
    for (uint32_t got = 0, most; got < n; got += most) {
        most = n - got > 32 ? 32 : n - got;
        memcpy(&word, d->payload + (d->bit >> 3), 8);
        v |= (word >> (d->bit & 7) & fdri_codec_mask(most)) << got;
        d->bit += most;
    }
    return v;
}

static uint64_t take_low(struct fdri_codec_decoder *d, uint32_t len)
{
    if (len < 2) return len;
    return take(d, len - 1) | 1ull << (len - 1);
}

static uint64_t take_sized(struct fdri_codec_decoder *d) { return take_low(d, (uint32_t)take(d, 6)); }

static uint32_t take_gamma(struct fdri_codec_decoder *d)
{
    uint32_t k = 0;
    while (k < 31 && !d->damaged && !take(d, 1)) k++;
    return (uint32_t)take_low(d, k + 1);
}

static uint64_t take_by_length(struct fdri_codec_decoder *d, uint32_t *length)
{
    if (take(d, 1)) {
        if (!take(d, 1)) --*length;
        else if (!take(d, 1)) ++*length;
        else *length = (uint32_t)take(d, 6);
    }
    if (*length > 63) d->damaged = true;
    return d->damaged ? 0 : take_low(d, *length);
}

static uint64_t take_gap(struct fdri_codec_decoder *d, struct fdri_codec_sample_state *s)
{
    uint64_t gap = s->pace && take(d, 1)
                       ? s->stride * s->pace + fdri_codec_unzigzag(take_by_length(d, &s->drift_length))
                       : take_by_length(d, &s->gap_length);
    if (gap >> 63) d->damaged = true;
    if (d->damaged) return 0;
    gap_in(s, gap);
    return gap;
}

static void take_number(struct fdri_codec_decoder *d, struct fdri_codec_sample_decoder *t)
{
    if (t->s.first) {
        t->s.number = take_sized(d);
        t->s.stride = take_sized(d);
        t->before = t->s.number - t->s.stride;
        if (t->s.stride > t->s.number || !t->s.stride) d->damaged = true;
    } else {
        if (take(d, 1)) t->s.stride = take_sized(d);
        t->s.number += t->s.stride;
        if (!t->s.stride) d->damaged = true;
    }
    if (t->s.number > FDRI_CODEC_SAMPLE_NUMBER_MAX) d->damaged = true;
}

static uint32_t take_index(struct fdri_codec_decoder *d, uint32_t count)
{
    uint32_t i = (uint32_t)take(d, index_bits(count));
    if (i < count) return i;
    d->damaged = true;
    return 0;
}

static uint64_t take_address(struct fdri_codec_decoder *d, const struct fdri_codec_sample_state *s, uint64_t reference)
{
    uint32_t len = (uint32_t)take(d, 5);
    uint64_t address;
    if (len <= NEAR_BITS) {
        address = reference + fdri_codec_unzigzag(take_low(d, len));
    } else if (len == TO_FAR) {
        len = (uint32_t)take(d, 5);
        address = s->far + fdri_codec_unzigzag(take_low(d, len));
    } else {
        address = take(d, 48);
    }
    if (address > FDRI_CODEC_SAMPLE_ADDRESS) d->damaged = true;
    return address & FDRI_CODEC_SAMPLE_ADDRESS;
}

/* A site that followed the current one before, or a site by its index. */
static uint64_t take_site(struct fdri_codec_decoder *d, const struct fdri_codec_sample_decoder *t, uint32_t *at,
                          uint32_t code)
{
    const struct fdri_codec_sample_site *inside = t->s.inside == NOWHERE ? &t->site[0] : &t->site[t->s.inside];
    if (code == SITE) *at = take_index(d, t->s.sites);
    else if (t->s.inside != NOWHERE) *at = code == FIRST ? inside->first : inside->second;
    if (!*at) d->damaged = true;
    return t->site[*at].step;
}

static uint64_t take_step(struct fdri_codec_decoder *d, struct fdri_codec_sample_decoder *t)
{
    uint32_t at = 0, code = (uint32_t)take(d, 2);
    uint64_t step;
    if (code == ADDRESS) {
        step = take_address(d, &t->s, reference(&t->s, t->site, t->s.address));
    } else if (code == RARE && take(d, 1)) {
        step = FDRI_CODEC_SAMPLE_REGION | (uint64_t)(take_gamma(d) - 1);
        if ((step & FDRI_CODEC_SAMPLE_ADDRESS) > FDRI_CODEC_ID_MAX) d->damaged = true;
    } else {
        step = take_site(d, t, &at, code);
    }
    step &= STEP_MASK;
    step_in(&t->s, t->site, t->node, step, at);
    return step;
}

/* Writes the path of a node into step[]. Sets d->damaged if it is longer than the maximum. */
static void spell(struct fdri_codec_decoder *d, struct fdri_codec_sample_decoder *t, uint32_t node)
{
    uint32_t n = 0;
    for (uint32_t i = node; i; i = t->node[i].parent) n++; /* terminates: a parent is older than its child */
    if (n > FDRI_CODEC_SAMPLE_STEPS_MAX) {
        d->damaged = true;
        n = 0;
        node = 0;
    }
    t->steps = n;
    for (uint32_t i = node; i; i = t->node[i].parent) t->step[--n] = t->site[t->node[i].site].step;
}

static void take_news(struct fdri_codec_decoder *d, struct fdri_codec_sample_decoder *t, uint32_t news)
{
    if (news > FDRI_CODEC_SAMPLE_STEPS_MAX - t->steps) d->damaged = true;
    for (uint32_t i = 0; i < news && !d->damaged; i++) {
        uint64_t step = take_step(d, t);
        t->step[t->steps++] = step;
        d->hash = fdri_codec_hash_step(d->hash, step);
    }
}

int fdri_codec_sample_decode_next(struct fdri_codec_decoder *d, struct fdri_codec_record *r)
{
    struct fdri_codec_sample_decoder *t = d->sample;
    take_number(d, t);
    uint64_t gap = d->damaged ? 0 : take_gap(d, &t->s);
    uint32_t news = 0, node = t->s.newest;
    if (take(d, 1)) {
        node = take_index(d, t->s.nodes);
        news = take(d, 1) ? take_gamma(d) : 0;
    }
    arrive(&t->s, &t->node[node], node);
    d->hash = hash_head(d->hash, gap, &t->s, t->s.newest, news);
    spell(d, t, t->s.newest);
    take_news(d, t, news);
    t->pc = reference(&t->s, t->site, t->s.leaf);
    if (take(d, 1)) t->pc = take_address(d, &t->s, t->pc);
    t->flags = take(d, 1) ? (uint32_t)take(d, 3) : 0;
    pc_in(&t->s, t->site, t->pc);
    d->hash = hash_tail(d->hash, t->pc, t->flags);
    if (__builtin_add_overflow(d->last, gap, &r->enter)) d->damaged = true;
    r->leave = d->last = r->enter;
    r->id = r->ordinal = 0;
    r->tie = (struct fdri_codec_tie){0};
    /* within one tick samples are in order of number */
    d->place = (struct fdri_codec_standing){.not_first_in_tick = true, .point = (uint32_t)t->s.number};
    d->field_count = 0;
    d->decoded_records++;
    return d->damaged ? -1 : 1;
}
