/* SPDX-License-Identifier: MIT */
#include "format/sample.h"

#include <string.h>

#include "format/record.h"

/* ---- codes (low bit first); the general ones are those of format/record.c ----
 * number       first of a bin: len:6 low(number) len:6 low(distance to the partition's record before)
 *              others: 0: as far as the one before   1 len:6 low(distance)
 * place        0: the newest node, no new step   1 node (then 0, or 1 gamma(new steps) and the steps)
 * step         0 node: the same step as that node's   1 0 len:6 low(zigzag distance): address   1 1 gamma(id + 1): region
 * pc           0: the leaf of the node arrived at   1 len:6 low(zigzag distance)
 * flags        0: none   1 flags:3 */

enum { STEP_BITS = 49, INITIAL_GAP = 20 };
#define NOWHERE   UINT32_MAX
#define STEP_MASK ((1ull << STEP_BITS) - 1)

static void reset(struct fdr_sample_state *s, uint32_t bin_bytes)
{
    *s = (struct fdr_sample_state){
        .count = 1, .capacity = fdr_sample_nodes(bin_bytes), .gap_length = INITIAL_GAP, .first = true};
}

/* Bits of a node's index while there are `count` of them. */
static uint32_t index_bits(uint32_t count) { return fdr_bitlen(count - 1); }

static uint64_t hash_head(uint64_t hash, uint64_t gap, const struct fdr_sample_state *s, uint32_t node, uint32_t news)
{
    hash = fdr_hash_step(hash, (gap << 32 | gap >> 32) ^ s->number);
    hash = fdr_hash_step(hash, s->stride);
    return fdr_hash_step(hash, node | (uint64_t)news << 16);
}
static uint64_t hash_tail(uint64_t hash, uint64_t pc, uint32_t flags)
{
    return fdr_hash_step(hash, pc | (uint64_t)flags << 48);
}

/* The address that the next one is told against: in the same function if one is known, else `otherwise`. */
static uint64_t reference(const struct fdr_sample_state *s, const struct fdr_sample_node *node, uint64_t otherwise)
{
    return s->inside != NOWHERE && node[s->inside].leaf ? node[s->inside].leaf : otherwise;
}

/* A step was told; `like`: a node with the same step, 0 none. It is a node of its own while there is room. */
static void step_in(struct fdr_sample_state *s, struct fdr_sample_node *node, uint64_t step, uint32_t like)
{
    if (!(step & FDR_SAMPLE_REGION)) {
        s->address = step;
        if (s->inside != NOWHERE) node[s->inside].leaf = step;
    }
    if (s->count == s->capacity) {
        s->inside = like ? like : NOWHERE;
        return;
    }
    node[s->count] = (struct fdr_sample_node){(uint64_t)s->newest << STEP_BITS | step, like ? node[like].leaf : 0};
    s->newest = s->inside = s->count++;
}

static void step_out(struct fdr_sample_state *s, struct fdr_sample_node *node, uint64_t pc)
{
    s->leaf = pc;
    if (s->inside != NOWHERE) node[s->inside].leaf = pc;
}

/* ======================================== encoder ======================================== */

static uint16_t *hash_of(struct fdr_sample_table *t) { return (uint16_t *)(void *)(t->node + t->s.capacity); }

static uint32_t slot_of(const struct fdr_sample_table *t, uint64_t what)
{
    return (uint32_t)(what * FDR_HASH_MUL >> 40) & (2 * t->s.capacity - 1);
}

void fdr_sample_begin(struct fdr_sample_table *t, uint32_t bin_bytes, uint64_t before)
{
    reset(&t->s, bin_bytes);
    t->before = before;
    t->node[0] = (struct fdr_sample_node){0};
    memset(hash_of(t), 0, 2 * t->s.capacity * sizeof(uint16_t));
}

/* The node of `step` under `parent`, or 0. The table is at most half full. */
static uint32_t child_of(const struct fdr_sample_table *t, uint32_t parent, uint64_t step)
{
    uint64_t what = (uint64_t)parent << STEP_BITS | step;
    const uint16_t *hash = (const uint16_t *)(const void *)(t->node + t->s.capacity);
    for (uint32_t i = slot_of(t, what); hash[i]; i = (i + 1) & (2 * t->s.capacity - 1))
        if (t->node[hash[i]].what == what) return hash[i];
    return 0;
}

/* The newest node, to find it again. */
static void index_newest(struct fdr_sample_table *t)
{
    uint16_t *hash = hash_of(t);
    uint32_t i = slot_of(t, t->node[t->s.newest].what);
    while (hash[i]) i = (i + 1) & (2 * t->s.capacity - 1);
    hash[i] = (uint16_t)t->s.newest;
}

struct fdr_sample_match fdr_sample_find(const struct fdr_sample_table *t, const struct fdr_sample_record *r)
{
    struct fdr_sample_match m = {0, 0};
    for (uint32_t child; m.steps < r->steps && (child = child_of(t, m.node, r->step[m.steps])); m.steps++)
        m.node = child;
    return m;
}

struct writer {
    struct fdr_part *p;
    uint8_t *payload;
};

static void put(struct writer *w, uint64_t value, uint32_t bits)
{
    if (bits > 32) {
        fdr_put(w->p, w->payload, value & 0xffffffffu, 32, 0);
        fdr_put(w->p, w->payload, value >> 32, bits - 32, 0);
    } else if (bits) {
        fdr_put(w->p, w->payload, value, bits, 0);
    }
}

static void put_low(struct writer *w, uint64_t v, uint32_t len)
{
    if (len > 1) put(w, v & fdr_mask(len - 1), len - 1);
}

static void put_sized(struct writer *w, uint64_t v)
{
    uint32_t len = fdr_bitlen(v);
    put(w, len, 6);
    put_low(w, v, len);
}

static void put_gamma(struct writer *w, uint32_t n)
{
    uint32_t k = fdr_bitlen(n) - 1;
    put(w, 1ull << k, k + 1);
    put_low(w, n, k + 1);
}

static void put_gap(struct writer *w, struct fdr_sample_state *s, uint64_t gap)
{
    uint32_t length = fdr_bitlen(gap);
    if (length == s->gap_length) put(w, 0, 1);
    else if (length + 1 == s->gap_length) put(w, 1, 2);
    else if (length == s->gap_length + 1) put(w, 3, 3);
    else put(w, 7u | length << 3, 9);
    put_low(w, gap, length);
    s->gap_length = length;
}

static void put_number(struct writer *w, struct fdr_sample_table *t, uint64_t number)
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
    t->s.first = false;
}

static void put_step(struct writer *w, struct fdr_sample_table *t, uint64_t step)
{
    uint32_t like = t->s.count - 1, before = t->s.count;
    while (like && (t->node[like].what & STEP_MASK) != step) like--;
    if (like) {
        put(w, (uint64_t)like << 1, 1 + index_bits(t->s.count));
    } else if (step & FDR_SAMPLE_REGION) {
        put(w, 3, 2);
        put_gamma(w, (uint32_t)(step & FDR_SAMPLE_ADDRESS) + 1);
    } else {
        put(w, 1, 2);
        put_sized(w, fdr_zigzag(step - reference(&t->s, t->node, t->s.address)));
    }
    step_in(&t->s, t->node, step, like);
    if (t->s.count > before) index_newest(t);
}

static void put_pc(struct writer *w, struct fdr_sample_table *t, uint64_t pc)
{
    uint64_t distance = fdr_zigzag(pc - reference(&t->s, t->node, t->s.leaf));
    put(w, distance != 0, 1);
    if (distance) put_sized(w, distance);
    step_out(&t->s, t->node, pc);
}

void fdr_sample_encode(struct fdr_part *p, struct fdr_sample_table *t, uint8_t *payload, uint64_t gap,
                       const struct fdr_sample_record *r, struct fdr_sample_match m)
{
    struct writer w = {p, payload};
    uint32_t news = r->steps - m.steps, flags = r->flags & FDR_SAMPLE_ALL_FLAGS;
    uint64_t pc = r->pc & FDR_SAMPLE_ADDRESS;
    put_gap(&w, &t->s, gap);
    put_number(&w, t, r->number);
    p->hash = hash_head(p->hash, gap, &t->s, m.node, news);
    if (m.node == t->s.newest && !news) {
        put(&w, 0, 1);
    } else {
        put(&w, 1 | (uint64_t)m.node << 1, 1 + index_bits(t->s.count));
        put(&w, news != 0, 1);
        if (news) put_gamma(&w, news);
    }
    t->s.newest = t->s.inside = m.node;
    for (uint32_t i = m.steps; i < r->steps; i++) {
        put_step(&w, t, r->step[i]);
        p->hash = fdr_hash_step(p->hash, r->step[i]);
    }
    put_pc(&w, t, pc);
    put(&w, flags ? 1u | flags << 1 : 0, flags ? 4 : 1);
    p->progress += FDR_ONE_RECORD;
    p->hash = hash_tail(p->hash, pc, flags);
}

/* ======================================== decoder ======================================== */

void fdr_sample_decode_begin(struct fdr_sample_decoder *d, uint32_t bin_bytes)
{
    reset(&d->s, bin_bytes);
    d->before = 0;
    d->steps = 0;
    d->node[0] = (struct fdr_sample_node){0};
}

/* n <= 63. Past the end it gives zeros and marks the bin bad. */
static uint64_t take(struct fdr_decoder *d, uint32_t n)
{
    uint64_t word, v = 0;
    if (d->bit + n > d->bits) {
        d->bad = true;
        return 0;
    }
    for (uint32_t got = 0, most; got < n; got += most) {
        most = n - got > 32 ? 32 : n - got;
        memcpy(&word, d->payload + (d->bit >> 3), 8);
        v |= (word >> (d->bit & 7) & fdr_mask(most)) << got;
        d->bit += most;
    }
    return v;
}

static uint64_t take_low(struct fdr_decoder *d, uint32_t len)
{
    if (len < 2) return len;
    return take(d, len - 1) | 1ull << (len - 1);
}

static uint64_t take_sized(struct fdr_decoder *d) { return take_low(d, (uint32_t)take(d, 6)); }

static uint32_t take_gamma(struct fdr_decoder *d)
{
    uint32_t k = 0;
    while (k < 31 && !d->bad && !take(d, 1)) k++;
    return (uint32_t)take_low(d, k + 1);
}

static uint64_t take_gap(struct fdr_decoder *d, struct fdr_sample_state *s)
{
    if (take(d, 1)) {
        if (!take(d, 1)) s->gap_length--;
        else if (!take(d, 1)) s->gap_length++;
        else s->gap_length = (uint32_t)take(d, 6);
    }
    if (s->gap_length > 63) d->bad = true;
    return d->bad ? 0 : take_low(d, s->gap_length);
}

static void take_number(struct fdr_decoder *d, struct fdr_sample_decoder *t)
{
    if (t->s.first) {
        t->s.number = take_sized(d);
        t->s.stride = take_sized(d);
        t->before = t->s.number - t->s.stride;
        if (t->s.stride > t->s.number || !t->s.stride) d->bad = true;
    } else {
        if (take(d, 1)) t->s.stride = take_sized(d);
        t->s.number += t->s.stride;
        if (!t->s.stride) d->bad = true;
    }
    if (t->s.number > FDR_SAMPLE_NUMBER_MAX) d->bad = true;
    t->s.first = false;
}

static uint32_t take_node(struct fdr_decoder *d, const struct fdr_sample_decoder *t)
{
    uint32_t node = (uint32_t)take(d, index_bits(t->s.count));
    if (node < t->s.count) return node;
    d->bad = true;
    return 0;
}

static uint64_t take_step(struct fdr_decoder *d, struct fdr_sample_decoder *t)
{
    uint64_t step;
    uint32_t like = 0;
    if (!take(d, 1)) step = t->node[like = take_node(d, t)].what & STEP_MASK;
    else if (take(d, 1)) step = FDR_SAMPLE_REGION | (uint64_t)(take_gamma(d) - 1);
    else step = reference(&t->s, t->node, t->s.address) + fdr_unzigzag(take_sized(d));
    if (step > STEP_MASK || (step & FDR_SAMPLE_REGION && (step & FDR_SAMPLE_ADDRESS) > FDR_ID_MAX)) d->bad = true;
    step &= STEP_MASK;
    step_in(&t->s, t->node, step, like);
    return step;
}

/* The path of a node into step[]; d->bad when it is longer than any. */
static void spell(struct fdr_decoder *d, struct fdr_sample_decoder *t, uint32_t node)
{
    uint32_t n = 0;
    for (uint32_t i = node; i; i = (uint32_t)(t->node[i].what >> STEP_BITS)) n++; /* ends: parents are older */
    if (n > FDR_SAMPLE_STEPS_MAX) {
        d->bad = true;
        n = 0;
        node = 0;
    }
    t->steps = n;
    for (uint32_t i = node; i; i = (uint32_t)(t->node[i].what >> STEP_BITS)) t->step[--n] = t->node[i].what & STEP_MASK;
}

static void take_news(struct fdr_decoder *d, struct fdr_sample_decoder *t, uint32_t news)
{
    if (news > FDR_SAMPLE_STEPS_MAX - t->steps) d->bad = true;
    for (uint32_t i = 0; i < news && !d->bad; i++) {
        uint64_t step = take_step(d, t);
        t->step[t->steps++] = step;
        d->hash = fdr_hash_step(d->hash, step);
    }
}

int fdr_sample_decode_next(struct fdr_decoder *d, struct fdr_record *r)
{
    struct fdr_sample_decoder *t = d->sample;
    uint64_t gap = take_gap(d, &t->s);
    take_number(d, t);
    uint32_t news = 0;
    if (take(d, 1)) {
        t->s.newest = take_node(d, t);
        news = take(d, 1) ? take_gamma(d) : 0;
    }
    t->s.inside = t->s.newest;
    d->hash = hash_head(d->hash, gap, &t->s, t->s.newest, news);
    spell(d, t, t->s.newest);
    take_news(d, t, news);
    t->pc = reference(&t->s, t->node, t->s.leaf);
    if (take(d, 1)) t->pc += fdr_unzigzag(take_sized(d));
    t->flags = take(d, 1) ? (uint32_t)take(d, 3) : 0;
    step_out(&t->s, t->node, t->pc);
    d->hash = hash_tail(d->hash, t->pc, t->flags);
    if (t->pc > FDR_SAMPLE_ADDRESS || __builtin_add_overflow(d->last, gap, &r->enter)) d->bad = true;
    r->leave = d->last = r->enter;
    r->id = r->ordinal = 0;
    r->tie = (struct fdr_tie){0};
    d->place = (struct fdr_standing){.tied = true,
                                     .point = (uint32_t)t->s.number}; /* of one tick: in order of number */
    d->field_count = 0;
    d->done++;
    return d->bad ? -1 : 1;
}
