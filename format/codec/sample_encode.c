/* SPDX-License-Identifier: MIT */
/* Encoding samples. The codes are in sample_state.h. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "format/arena/arena.h"
#include "format/codec/bit_length.h"
#include "format/codec/encode.h"
#include "format/codec/running_check.h"
#include "format/codec/sample_codec.h"
#include "format/codec/sample_state.h"

static struct fdri_codec_sample_node *nodes_of(struct fdri_codec_sample_table *t)
{
    return (void *)(t->site + t->s.capacity);
}
static const struct fdri_codec_sample_node *nodes_in(const struct fdri_codec_sample_table *t)
{
    return (const void *)(t->site + t->s.capacity);
}
static uint16_t *hash_of(struct fdri_codec_sample_table *t)
{
    return (uint16_t *)(void *)(nodes_of(t) + t->s.capacity);
}
static const uint16_t *hash_in(const struct fdri_codec_sample_table *t)
{
    return (const uint16_t *)(const void *)(nodes_in(t) + t->s.capacity);
}

static uint32_t slot_of(const struct fdri_codec_sample_table *t, uint64_t what)
{
    return (uint32_t)(what * FDRI_CODEC_HASH_MUL >> 40) & (2 * t->s.capacity - 1);
}

void fdri_codec_sample_begin(struct fdri_codec_sample_table *t, uint32_t bin_bytes, uint64_t before)
{
    t->s.capacity = fdri_codec_sample_nodes(bin_bytes);
    reset(&t->s, t->site, nodes_of(t), bin_bytes);
    t->before = before;
    memset(hash_of(t), 0, 4 * t->s.capacity * sizeof(uint16_t));
}

/* Two hash tables, each at most half full: of the sites, and behind it of the nodes. */
static uint32_t site_of(const struct fdri_codec_sample_table *t, uint64_t step)
{
    const uint16_t *hash = hash_in(t);
    uint32_t i = slot_of(t, step);
    while (hash[i] && t->site[hash[i]].step != step) i = (i + 1) & (2 * t->s.capacity - 1);
    return hash[i];
}

static uint32_t child_of(const struct fdri_codec_sample_table *t, uint32_t parent, uint32_t site)
{
    const uint16_t *hash = hash_in(t) + 2 * t->s.capacity;
    const struct fdri_codec_sample_node *node = nodes_in(t);
    uint32_t i = slot_of(t, parent << 16 | site);
    while (hash[i] && (node[hash[i]].parent != parent || node[hash[i]].site != site))
        i = (i + 1) & (2 * t->s.capacity - 1);
    return hash[i];
}

static void index_in(const struct fdri_codec_sample_table *t, uint16_t *hash, uint64_t what, uint32_t index)
{
    uint32_t i = slot_of(t, what);
    while (hash[i]) i = (i + 1) & (2 * t->s.capacity - 1);
    hash[i] = (uint16_t)index;
}

struct fdri_codec_sample_match fdri_codec_sample_find(const struct fdri_codec_sample_table *t,
                                                      const struct fdri_codec_sample_record *r)
{
    struct fdri_codec_sample_match m = {0, 0};
    for (uint32_t site, child; m.steps < r->steps; m.steps++) {
        if (!(site = site_of(t, r->step[m.steps])) || !(child = child_of(t, m.node, site))) break;
        m.node = child;
    }
    return m;
}

struct writer {
    struct fdri_arena_part *p;
    uint8_t *payload;
};

static void put(struct writer *w, uint64_t value, uint32_t bits)
{
    if (bits > 32) {
        fdri_codec_put_bits(w->p, w->payload, value & 0xffffffffu, 32, 0);
        fdri_codec_put_bits(w->p, w->payload, value >> 32, bits - 32, 0);
    } else if (bits) {
        fdri_codec_put_bits(w->p, w->payload, value, bits, 0);
    }
}

static void put_low(struct writer *w, uint64_t v, uint32_t len)
{
    if (len > 1) put(w, v & fdri_codec_mask(len - 1), len - 1);
}

static void put_sized(struct writer *w, uint64_t v)
{
    uint32_t len = fdri_codec_bitlen(v);
    put(w, len, 6);
    put_low(w, v, len);
}

static void put_gamma(struct writer *w, uint32_t n)
{
    uint32_t k = fdri_codec_bitlen(n) - 1;
    put(w, 1ull << k, k + 1);
    put_low(w, n, k + 1);
}

/* Bits of a length coded against the one before. */
static uint32_t length_bits(uint32_t length, uint32_t before)
{
    return length == before ? 1 : length + 1 == before ? 2 : length == before + 1 ? 3 : 9;
}

static void put_by_length(struct writer *w, uint64_t v, uint32_t *before)
{
    static const uint8_t prefix[] = {0, 0, 1, 3};
    uint32_t length = fdri_codec_bitlen(v), bits = length_bits(length, *before);
    put(w, bits == 9 ? 7u | length << 3 : prefix[bits], bits);
    put_low(w, v, length);
    *before = length;
}

static void put_gap(struct writer *w, struct fdri_codec_sample_state *s, uint64_t gap)
{
    uint64_t drift = fdri_codec_zigzag(gap - s->stride * s->pace);
    uint32_t plain = fdri_codec_bitlen(gap), other = fdri_codec_bitlen(drift);
    bool paced = s->pace && other < DRIFT_BITS &&
                 other + length_bits(other, s->drift_length) < plain + length_bits(plain, s->gap_length);
    if (s->pace) put(w, paced, 1);
    if (paced) put_by_length(w, drift, &s->drift_length);
    else put_by_length(w, gap, &s->gap_length);
    gap_in(s, gap);
}

static void put_number(struct writer *w, struct fdri_codec_sample_table *t, uint64_t number)
{
    uint64_t distance = number - (t->s.first ? t->before : t->s.number);
    if (t->s.first) {
        put_sized(w, number);
        put_sized(w, distance);
    } else if (distance == t->s.stride) {
        put(w, 0, 1);
    } else {
        put(w, 1, 1);
        put_sized(w, distance);
    }
    t->s.stride = distance;
    t->s.number = number;
}

static void put_address(struct writer *w, const struct fdri_codec_sample_state *s, uint64_t address, uint64_t reference)
{
    uint64_t distance = fdri_codec_zigzag(address - reference), other = fdri_codec_zigzag(address - s->far);
    if (is_near(address, reference)) {
        put(w, fdri_codec_bitlen(distance), 5);
        put_low(w, distance, fdri_codec_bitlen(distance));
    } else if (is_near(address, s->far)) {
        put(w, TO_FAR | (uint64_t)fdri_codec_bitlen(other) << 5, 10);
        put_low(w, other, fdri_codec_bitlen(other));
    } else {
        put(w, IN_FULL, 5);
        put(w, address, 48);
    }
}

static void put_step(struct writer *w, struct fdri_codec_sample_table *t, uint64_t step)
{
    struct fdri_codec_sample_state *s = &t->s;
    const struct fdri_codec_sample_site *inside = s->inside == NOWHERE ? NULL : &t->site[s->inside];
    uint32_t at = site_of(t, step), nodes = s->nodes, parent = s->newest;
    if (at && inside && inside->first == at) {
        put(w, FIRST, 2);
    } else if (at && inside && inside->second == at) {
        put(w, RARE, 3);
    } else if (at) {
        put(w, SITE | (uint64_t)at << 2, 2 + index_bits(s->sites));
    } else if (step & FDRI_CODEC_SAMPLE_REGION) {
        put(w, RARE | 4, 3);
        put_gamma(w, (uint32_t)(step & FDRI_CODEC_SAMPLE_ADDRESS) + 1);
    } else {
        put(w, ADDRESS, 2);
        put_address(w, s, step, reference(s, t->site, s->address));
    }
    if (step_in(s, t->site, nodes_of(t), step, at)) index_in(t, hash_of(t), step, s->sites - 1);
    if (s->nodes > nodes) index_in(t, hash_of(t) + 2 * s->capacity, parent << 16 | s->inside, nodes);
}

static void put_pc(struct writer *w, struct fdri_codec_sample_table *t, uint64_t pc)
{
    uint64_t near = reference(&t->s, t->site, t->s.leaf);
    put(w, pc != near, 1);
    if (pc != near) put_address(w, &t->s, pc, near);
    pc_in(&t->s, t->site, pc);
}

void fdri_codec_sample_encode(struct fdri_arena_part *p, struct fdri_codec_sample_table *t, uint8_t *payload,
                              uint64_t gap, const struct fdri_codec_sample_record *r, struct fdri_codec_sample_match m)
{
    struct writer w = {p, payload};
    uint32_t news = r->steps - m.steps, flags = r->flags & FDRI_CODEC_SAMPLE_ALL_FLAGS;
    uint64_t pc = r->pc & FDRI_CODEC_SAMPLE_ADDRESS;
    put_number(&w, t, r->number);
    put_gap(&w, &t->s, gap);
    p->hash = hash_head(p->hash, gap, &t->s, m.node, news);
    if (m.node == t->s.newest && !news) {
        put(&w, 0, 1);
    } else {
        put(&w, 1 | (uint64_t)m.node << 1, 1 + index_bits(t->s.nodes));
        put(&w, news != 0, 1);
        if (news) put_gamma(&w, news);
    }
    arrive(&t->s, nodes_of(t) + m.node, m.node);
    for (uint32_t i = m.steps; i < r->steps; i++) {
        put_step(&w, t, r->step[i]);
        p->hash = fdri_codec_hash_step(p->hash, r->step[i]);
    }
    put_pc(&w, t, pc);
    put(&w, flags ? 1u | flags << 1 : 0, flags ? 4 : 1);
    p->progress += FDRI_CODEC_ONE_RECORD;
    p->hash = hash_tail(p->hash, pc, flags);
}
