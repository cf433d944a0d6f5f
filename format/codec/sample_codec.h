/* SPDX-License-Identifier: MIT */
/* The codec of samples: where a thread was, as a path of open regions and return addresses, in a few bits.
 *
 * A step is an open region or a return address, outermost first. A bin has a list of its sites, the different steps
 * seen in it, and a tree of the paths: node 0 is the empty path, every other node is its parent's path and one site
 * more. A record names the node it was at, the steps that are new (they become nodes while there is room), and the
 * program counter. Programs come back to the same few hundred paths, so most records name a node and a short distance.
 * What follows a site on one path follows it on others: a new step is most often one of the two that came behind the
 * same site before. An address that is not is told against the newest one in the same function: what a site called was
 * left from there. Time is told against the pace of the samples where that is shorter. All of this starts empty with
 * the bin: each bin decodes from its own bytes. */
#ifndef FDRI_FORMAT_CODEC_SAMPLE_CODEC_H
#define FDRI_FORMAT_CODEC_SAMPLE_CODEC_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format/arena/arena.h"
#include "format/codec/record_codec.h"

#define FDRI_CODEC_SAMPLE_STEPS_MAX  256u         /* of one path */
#define FDRI_CODEC_SAMPLE_NODES_MAX  512u         /* and sites */
#define FDRI_CODEC_SAMPLE_REGION     (1ull << 48) /* a step: region id with this bit, else a return address */
#define FDRI_CODEC_SAMPLE_ADDRESS    (FDRI_CODEC_SAMPLE_REGION - 1) /* addresses are kept to their low 48 bits */
#define FDRI_CODEC_SAMPLE_NUMBER_MAX (1ull << 62)

enum fdri_codec_sample_flag {
    FDRI_CODEC_SAMPLE_INSIDE = 1, /* fdr itself was at work */
    FDRI_CODEC_SAMPLE_CUT = 2, /* steps are missing: the path was deeper than what is kept, or could not be followed */
    FDRI_CODEC_SAMPLE_ALL_FLAGS = 7
};

/* What one sample says. */
struct fdri_codec_sample_record {
    uint64_t number; /* of the newest period it stands for; numbers rise */
    uint64_t pc;
    uint32_t flags;
    uint32_t steps;
    const uint64_t *step; /* outermost first */
};

/* Site 0 is where paths begin. */
struct fdri_codec_sample_site {
    uint64_t step : 49;
    uint64_t second : 15; /* site: came behind this one before `first` did; 0: none */
    uint64_t leaf : 48;   /* newest address in the function that this one called: a pc or a step further in; 0: none */
    uint64_t first : 16;  /* site: the newest that came behind this one; 0: none */
};
static_assert(sizeof(struct fdri_codec_sample_site) == 16, "site");
struct fdri_codec_sample_node {
    uint16_t parent, site;
};

/* State of one open bin, in both directions. The encoder's lies in a meta block behind which sites, nodes and hash
 * tables of both follow. */
struct fdri_codec_sample_state {
    uint64_t number, stride; /* of the newest record; what it was above the one before */
    uint64_t rate, pace;     /* ticks a period: between the newest two; of two in a row that agreed, 0: none did */
    uint64_t address, leaf;  /* newest step that is an address; newest pc */
    uint64_t near, far;      /* newest address; the newest that was far away from the one behind it */
    uint32_t nodes, sites, capacity;
    uint32_t newest; /* node of the newest record */
    uint32_t inside; /* site behind which the next step comes; NOWHERE: it is no site */
    uint32_t gap_length, drift_length;
    bool whole; /* all steps so far are nodes */
    bool first; /* no record yet */
};
struct fdri_codec_sample_table {
    struct fdri_codec_sample_state s;
    uint64_t before; /* number of the newest record of the partition when the bin was opened */
    /* capacity of them, then as many nodes, then uint16_t hash[2 capacity] of each */
    struct fdri_codec_sample_site site[];
};

static inline uint32_t fdri_codec_sample_nodes(uint32_t bin_bytes)
{
    uint32_t n = bin_bytes >> 3;
    return n > FDRI_CODEC_SAMPLE_NODES_MAX ? FDRI_CODEC_SAMPLE_NODES_MAX : n; /* 512 B bins: 64 */
}
static inline uint32_t fdri_codec_sample_table_bytes(uint32_t bin_bytes)
{
    const size_t each = sizeof(struct fdri_codec_sample_site) + sizeof(struct fdri_codec_sample_node) +
                        4 * sizeof(uint16_t);
    return (uint32_t)(sizeof(struct fdri_codec_sample_table) + fdri_codec_sample_nodes(bin_bytes) * each);
}

/* ---- encoder ---- */
/* Restarts on a new bin of partition p whose newest record has `before`; behind fdri_codec_encode_begin. */
void fdri_codec_sample_begin(struct fdri_codec_sample_table *t, uint32_t bin_bytes, uint64_t before);

/* How much of the path the tree knows. */
struct fdri_codec_sample_match {
    uint32_t node, steps;
};
struct fdri_codec_sample_match fdri_codec_sample_find(const struct fdri_codec_sample_table *t,
                                                      const struct fdri_codec_sample_record *r);

/* The record has at most this many bits when `news` of its steps are new. */
static inline uint32_t fdri_codec_sample_bits(uint32_t news) { return 352u + 58u * news; }

/* Appends it. Precondition: room for fdri_codec_sample_bits, number > the newest one, gap < 2^63, steps <= the
 * limit. */
void fdri_codec_sample_encode(struct fdri_arena_part *p, struct fdri_codec_sample_table *t, uint8_t *payload,
                              uint64_t gap, const struct fdri_codec_sample_record *r, struct fdri_codec_sample_match m);

/* ---- decoder: behind fdri_codec_decode_begin and fdri_codec_decode_next of format/codec/record_codec.h ---- */
struct fdri_codec_decoder;
struct fdri_codec_record;
struct fdri_codec_sample_decoder {
    struct fdri_codec_sample_state s;
    uint64_t before; /* number of the partition's newest record before this bin */
    uint64_t pc;
    uint32_t flags, steps;
    struct fdri_codec_sample_site site[FDRI_CODEC_SAMPLE_NODES_MAX];
    struct fdri_codec_sample_node node[FDRI_CODEC_SAMPLE_NODES_MAX];
    uint64_t step[FDRI_CODEC_SAMPLE_STEPS_MAX];
};
void fdri_codec_sample_decode_begin(struct fdri_codec_sample_decoder *d, uint32_t bin_bytes);
/* As fdri_codec_decode_next; what it says is in *d->sample. */
int fdri_codec_sample_decode_next(struct fdri_codec_decoder *d, struct fdri_codec_record *r);

#endif
