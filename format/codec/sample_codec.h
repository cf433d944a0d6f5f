/* SPDX-License-Identifier: MIT */
/* The codec of samples: the place of a thread, as a path of open regions and return addresses, in a few bits.
 *
 * A step is an open region or a return address; a path lists its steps, outermost first. A bin has a list of sites, the
 * different steps in it, and a tree of paths. Node 0 is the empty path; each other node is its parent's path and one
 * site. A record names a known node, the new steps behind it, which become nodes while there is room, and the program
 * counter. Programs return to the same few hundred paths, so most records are a node and a short distance.
 *
 * Sites tend to follow the same site on different paths. So a new step is mostly one of the two that followed the
 * current site before. Another address is stored as the distance to the newest address in the same function, the one
 * that the current site called. The time is stored against the pace of the samples if that is shorter. All state starts
 * empty with each bin, so a bin is decoded from its own bytes alone. */
#ifndef FDRI_FORMAT_CODEC_SAMPLE_CODEC_H
#define FDRI_FORMAT_CODEC_SAMPLE_CODEC_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format/arena/arena.h"

#define FDRI_CODEC_SAMPLE_STEPS_MAX  256u         /* of one path */
#define FDRI_CODEC_SAMPLE_NODES_MAX  512u         /* and of sites */
#define FDRI_CODEC_SAMPLE_REGION     (1ull << 48) /* in a step: region id; without this bit: return address */
#define FDRI_CODEC_SAMPLE_ADDRESS    (FDRI_CODEC_SAMPLE_REGION - 1) /* the low 48 bits of an address are stored */
#define FDRI_CODEC_SAMPLE_NUMBER_MAX (1ull << 62)

enum fdri_codec_sample_flag {
    /* the sample interrupted fdr itself; with OUTSIDE: the thread made calls meanwhile, so inner ones may be missing */
    FDRI_CODEC_SAMPLE_INSIDE = 1,
    FDRI_CODEC_SAMPLE_CUT = 2, /* steps are missing: the path was too deep, or the stack walk failed */
    /* another thread looked: the last region of the path is no open call, its name is the state of the thread */
    FDRI_CODEC_SAMPLE_OUTSIDE = 4,
    FDRI_CODEC_SAMPLE_ALL_FLAGS = 7
};

/* The contents of one sample. */
struct fdri_codec_sample_record {
    uint64_t number; /* of the newest period that it stands for; numbers rise */
    uint64_t pc;
    uint32_t flags;
    uint32_t steps;
    const uint64_t *step; /* outermost first */
};

/* A step of the bin. Site 0 is the beginning of all paths. */
struct fdri_codec_sample_site {
    uint64_t step : 49;
    uint64_t second : 15; /* site: followed this one before `first`; 0: none */
    uint64_t leaf : 48;   /* newest address in the function that this site called, a pc or the next step; 0: none */
    uint64_t first : 16;  /* site: the newest that followed this one; 0: none */
};
static_assert(sizeof(struct fdri_codec_sample_site) == 16, "site");
struct fdri_codec_sample_node {
    uint16_t parent, site;
};

/* State of one open bin, alike in encoder and decoder. The encoder's lies in a meta block, with sites, nodes and the
 * hash tables of both behind it. */
struct fdri_codec_sample_state {
    uint64_t number, stride; /* number of the newest record, and its distance to the one before */
    uint64_t rate, pace;     /* ticks a period: of the newest two records; of two in a row that agreed, 0 none */
    uint64_t address, leaf;  /* newest step that is an address; newest pc */
    uint64_t near, far;      /* newest address; newest address that was far from the next one */
    uint32_t nodes, sites, capacity;
    uint32_t newest; /* node of the newest record */
    uint32_t inside; /* site that the next step follows; NOWHERE: not a site */
    uint32_t gap_length, drift_length;
    bool whole; /* all steps so far became nodes */
    bool first; /* the bin has no record yet */
};
struct fdri_codec_sample_table {
    struct fdri_codec_sample_state s;
    uint64_t before; /* number of the newest record of the partition when the bin was opened */
    /* `capacity` sites, then as many nodes, then uint16_t hash[2 capacity] for sites and for nodes */
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
/* Restarts on a new bin of partition p, after fdri_codec_encode_begin. `before`: number of the partition's newest
 * record. */
void fdri_codec_sample_begin(struct fdri_codec_sample_table *t, uint32_t bin_bytes, uint64_t before);

/* The known part of a path: its node, and its length in steps. */
struct fdri_codec_sample_match {
    uint32_t node, steps;
};
struct fdri_codec_sample_match fdri_codec_sample_find(const struct fdri_codec_sample_table *t,
                                                      const struct fdri_codec_sample_record *r);

/* The maximum bits of a record with `news` new steps. */
static inline uint32_t fdri_codec_sample_bits(uint32_t news) { return 352u + 58u * news; }

/* Appends a sample. Precondition: room for fdri_codec_sample_bits; number above the newest one; gap < 2^63; steps <=
 * the maximum. */
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
/* As fdri_codec_decode_next; the sample is in *d->sample. */
int fdri_codec_sample_decode_next(struct fdri_codec_decoder *d, struct fdri_codec_record *r);

#endif
