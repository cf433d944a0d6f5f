/* SPDX-License-Identifier: MIT */
/* The state of the codec of samples: its codes, and how each record changes the predictions, alike for encoder and
 * decoder. */
#ifndef FDRI_FORMAT_CODEC_SAMPLE_STATE_H
#define FDRI_FORMAT_CODEC_SAMPLE_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "format/codec/bit_length.h"
#include "format/codec/running_check.h"
#include "format/codec/sample_codec.h"

/* Codes, low bit first; the general ones are those of record_codec.h:
 * number       first of a bin: sized(number) sized(distance to the partition's record before)
 *              others: 0: same distance as the record before   1 sized(distance)
 * gap          without a pace: by its length against the one before; with a pace: 0 and that, or 1 and the zigzag
 *              distance to the gap that pace and number predict, by its length against the one before
 * place        0: the newest node, no new step   1 node (then 0, or 1 gamma(new steps) and the steps)
 * step         0 0: the first that followed this site   1 0: address   0 1 0: the second   0 1 1 gamma(id + 1): region
 *              1 1 site: any other known site
 * address      len:5 low(zigzag distance), len <= 28   29 len:5 low(zigzag distance to the far one)   31 the 48 bits
 * pc           0: the leaf of the site of arrival   1 address
 * flags        0: none   1 flags:3 */

enum { STEP_BITS = 49, INITIAL_GAP = 20, NEAR_BITS = 28, TO_FAR = 29, IN_FULL = 31, DRIFT_BITS = 56 };
enum { FIRST = 0, ADDRESS = 1, RARE = 2, SITE = 3 };
#define NOWHERE   UINT32_MAX
#define STEP_MASK ((1ull << STEP_BITS) - 1)

static inline void reset(struct fdri_codec_sample_state *s, struct fdri_codec_sample_site *site,
                         struct fdri_codec_sample_node *node, uint32_t bin_bytes)
{
    *s = (struct fdri_codec_sample_state){.nodes = 1,
                                          .sites = 1,
                                          .capacity = fdri_codec_sample_nodes(bin_bytes),
                                          .gap_length = INITIAL_GAP,
                                          .drift_length = INITIAL_GAP,
                                          .first = true};
    site[0] = (struct fdri_codec_sample_site){.step = 0};
    node[0] = (struct fdri_codec_sample_node){0, 0};
}

/* Bits of an index below `count`. */
static inline uint32_t index_bits(uint32_t count) { return fdri_codec_bitlen(count - 1); }

static inline uint64_t hash_head(uint64_t hash, uint64_t gap, const struct fdri_codec_sample_state *s, uint32_t node,
                                 uint32_t news)
{
    hash = fdri_codec_hash_step(hash, (gap << 32 | gap >> 32) ^ s->number);
    hash = fdri_codec_hash_step(hash, s->stride);
    return fdri_codec_hash_step(hash, node | (uint64_t)news << 16);
}
static inline uint64_t hash_tail(uint64_t hash, uint64_t pc, uint32_t flags)
{
    return fdri_codec_hash_step(hash, pc | (uint64_t)flags << 48);
}

/* If two rates in a row differ by at most a 32nd, their mean is the pace. */
static inline void gap_in(struct fdri_codec_sample_state *s, uint64_t gap)
{
    uint64_t rate = gap / s->stride, off = rate > s->rate ? rate - s->rate : s->rate - rate;
    if (!s->first && off <= rate >> 5) s->pace = (s->rate + rate) / 2;
    s->rate = s->first ? 0 : rate;
    s->first = false;
}

/* The address to which the next one is relative: the newest in the same function if one is known, else `otherwise`. */
static inline uint64_t reference(const struct fdri_codec_sample_state *s, const struct fdri_codec_sample_site *site,
                                 uint64_t otherwise)
{
    return s->inside != NOWHERE && site[s->inside].leaf ? site[s->inside].leaf : otherwise;
}

static inline bool is_near(uint64_t address, uint64_t reference)
{
    return fdri_codec_bitlen(fdri_codec_zigzag(address - reference)) <= NEAR_BITS;
}

static inline void address_in(struct fdri_codec_sample_state *s, struct fdri_codec_sample_site *site, uint64_t address)
{
    if (!is_near(address, s->near)) s->far = s->near;
    s->near = address;
    if (s->inside != NOWHERE) site[s->inside].leaf = address & FDRI_CODEC_SAMPLE_ADDRESS;
}

/* A step was coded; `at`: its site, or 0 for a new step, which becomes a site if there is room. The site becomes a node
 * if all steps before did and there is room. True: the step became a site. */
static inline bool step_in(struct fdri_codec_sample_state *s, struct fdri_codec_sample_site *site,
                           struct fdri_codec_sample_node *node, uint64_t step, uint32_t at)
{
    bool fresh = !at && s->sites < s->capacity;
    if (!(step & FDRI_CODEC_SAMPLE_REGION)) {
        s->address = step;
        address_in(s, site, step);
    }
    if (fresh) site[at = s->sites++] = (struct fdri_codec_sample_site){.step = step};
    if (at && s->inside != NOWHERE && site[s->inside].first != at) {
        site[s->inside].second = site[s->inside].first & 0x7fff;
        site[s->inside].first = at & 0xffff;
    }
    s->inside = at ? at : NOWHERE;
    s->whole = s->whole && at && s->nodes < s->capacity;
    if (!s->whole) return fresh;
    node[s->nodes] = (struct fdri_codec_sample_node){(uint16_t)s->newest, (uint16_t)at};
    s->newest = s->nodes++;
    return fresh;
}

static inline void arrive(struct fdri_codec_sample_state *s, const struct fdri_codec_sample_node *at, uint32_t node)
{
    s->newest = node;
    s->inside = at->site;
    s->whole = true;
}

static inline void pc_in(struct fdri_codec_sample_state *s, struct fdri_codec_sample_site *site, uint64_t pc)
{
    s->leaf = pc;
    address_in(s, site, pc);
}

#endif
