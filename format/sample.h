/* SPDX-License-Identifier: MIT */
/* The codec of samples: where a thread was, as a path of open regions and return addresses, in a few bits.
 *
 * A bin holds a tree of the paths seen in it: node 0 is the empty path, every other node is its parent's path and one
 * step more. A step is an open region or a return address, outermost first. A record names the node it was at, the
 * steps that are new (they become nodes while there is room), and the program counter. Programs come back to the same few
 * hundred paths, so most records name a node and a short distance. An address is told against the newest one in the same
 * function: where a path was left before, it was left from within the function that its last call went to.
 * The tree starts empty with the bin: each bin decodes from its own bytes. */
#ifndef FDR_FORMAT_SAMPLE_H
#define FDR_FORMAT_SAMPLE_H

#include <stdbool.h>
#include <stdint.h>

#include "format/arena.h"

#define FDR_SAMPLE_STEPS_MAX  256u /* of one path */
#define FDR_SAMPLE_NODES_MAX  512u
#define FDR_SAMPLE_REGION     (1ull << 48)            /* a step: region id with this bit, else a return address */
#define FDR_SAMPLE_ADDRESS    (FDR_SAMPLE_REGION - 1) /* addresses are kept to their low 48 bits */
#define FDR_SAMPLE_NUMBER_MAX (1ull << 62)

enum fdr_sample_flag {
    FDR_SAMPLE_INSIDE = 1, /* fdr itself was at work */
    FDR_SAMPLE_CUT = 2,    /* steps are missing: the path was deeper than what is kept, or could not be followed */
    FDR_SAMPLE_ALL_FLAGS = 7
};

/* What one sample says. */
struct fdr_sample_record {
    uint64_t number; /* of the newest period it stands for; numbers rise */
    uint64_t pc;
    uint32_t flags;
    uint32_t steps;
    const uint64_t *step; /* outermost first */
};

struct fdr_sample_node {
    uint64_t what; /* parent << 49 | step */
    uint64_t
        leaf; /* newest address in the function that the path's last step called: a pc or a step further in; 0: none */
};

/* State of one open bin, in both directions. The encoder's lies in a meta block behind which the nodes and a hash
 * table of node indices follow. */
struct fdr_sample_state {
    uint64_t number, stride; /* of the newest record; what it was above the one before */
    uint64_t leaf;           /* of the newest record */
    uint64_t address;        /* newest address a step was spelled with */
    uint32_t count, capacity;
    uint32_t newest; /* node of the newest record */
    uint32_t inside; /* the node whose leaf is near the next address; NOWHERE: none is known */
    uint32_t gap_length;
    bool first; /* no record yet */
};
struct fdr_sample_table {
    struct fdr_sample_state s;
    uint64_t before;               /* number of the newest record of the partition when the bin was opened */
    struct fdr_sample_node node[]; /* capacity of them, then uint16_t hash[2 * capacity] */
};

static inline uint32_t fdr_sample_nodes(uint32_t bin_bytes)
{
    uint32_t n = bin_bytes >> 3;
    return n > FDR_SAMPLE_NODES_MAX ? FDR_SAMPLE_NODES_MAX : n; /* 512 B bins: 64 */
}
static inline uint32_t fdr_sample_table_bytes(uint32_t bin_bytes)
{
    return (uint32_t)sizeof(struct fdr_sample_table) +
           fdr_sample_nodes(bin_bytes) * (uint32_t)(sizeof(struct fdr_sample_node) + 2 * sizeof(uint16_t));
}

/* ---- encoder ---- */
/* Restarts on a new bin of partition p whose newest record has `before`; behind fdr_encode_begin. */
void fdr_sample_begin(struct fdr_sample_table *t, uint32_t bin_bytes, uint64_t before);

/* How much of the path the tree knows. */
struct fdr_sample_match {
    uint32_t node, steps;
};
struct fdr_sample_match fdr_sample_find(const struct fdr_sample_table *t, const struct fdr_sample_record *r);

/* The record has at most this many bits when `news` of its steps are new. */
static inline uint32_t fdr_sample_bits(uint32_t news) { return 352u + 58u * news; }

/* Appends it. Precondition: room for fdr_sample_bits, number > the newest one, gap < 2^63, steps <= the limit. */
void fdr_sample_encode(struct fdr_part *p, struct fdr_sample_table *t, uint8_t *payload, uint64_t gap,
                       const struct fdr_sample_record *r, struct fdr_sample_match m);

/* ---- decoder: behind fdr_decode_begin and fdr_decode_next of format/record.h ---- */
struct fdr_decoder;
struct fdr_record;
struct fdr_sample_decoder {
    struct fdr_sample_state s;
    uint64_t before; /* number of the partition's newest record before this bin */
    uint64_t pc;
    uint32_t flags, steps;
    struct fdr_sample_node node[FDR_SAMPLE_NODES_MAX];
    uint64_t step[FDR_SAMPLE_STEPS_MAX];
};
void fdr_sample_decode_begin(struct fdr_sample_decoder *d, uint32_t bin_bytes);
/* As fdr_decode_next; what it says is in *d->sample. */
int fdr_sample_decode_next(struct fdr_decoder *d, struct fdr_record *r);

#endif
