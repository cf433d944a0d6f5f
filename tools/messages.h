/* SPDX-License-Identifier: MIT */
/* fdr messages: messages matched across recordings by ordinals. messages_load.c reads the files, messages_match.c finds
 * the pairs, messages_print.c and messages_regions.c show the result. */
#ifndef FDRI_TOOLS_MESSAGES_H
#define FDRI_TOOLS_MESSAGES_H

#include "tools/common/verbs.h"

enum end_state { ALONE, MATCHED, EDGE, GIVEN_BACK, AMBIGUOUS, UNRESOLVED, UNMATCHABLE, END_STATES };

/* One end of a message that is held. */
struct message_end {
    uint32_t from, to; /* world ranks */
    int32_t tag;
    uint64_t comm, ordinal, bytes, time_ns;
    uint32_t file, location;
    uint8_t state; /* enum end_state */
    bool is_send, shared;
    size_t partner; /* index of the other end, if matched */
};

/* A row of counters of one envelope, or of a communicator's collectives. */
struct counted {
    uint32_t from, to;
    int32_t tag;
    bool is_send;
    uint64_t comm, count, bytes, hole; /* of a communicator: begun, ended, under way */
    bool volume_known;                 /* of a communicator: the bytes of its collectives */
    struct fdr_mpi_comm_bytes volume;
};

struct collective {
    uint64_t comm, begun, ended, sent, received;
    uint32_t operation;
};

/* Messages and collectives of a region of one rank, exact. */
#define NO_REGION messages_no_region /* as `name`: outside of all regions */
extern const char messages_no_region[];
struct region_sum {
    uint32_t rank; /* UINT32_MAX: not known */
    const char *name;
    bool caller; /* of the calls that the region made; else of itself */
    bool saturated;
    struct fdr_traffic sum;
};

struct job_comm {
    uint64_t identity;
    char name[64];
    uint32_t size;
};

struct job_file {
    const char *path;
    struct fdr_file *file;
    int rank;              /* -1: its locations are of several ranks, or none is known */
    bool counts, left_out; /* it has counters of messages; messages were given back, filtered or lost */
    bool unknown;          /* none of its messages can have a partner: no rank is known */
};

struct rank_file {
    uint32_t rank, file;
};

struct job {
    struct job_file *file;
    size_t files;
    struct rank_file *rank; /* each rank that a file holds, ascending */
    size_t ranks;
    struct message_end *end; /* sends and receives; sorted by envelope and ordinal once they are matched */
    size_t ends, ends_room;
    struct counted *counted; /* sorted by envelope */
    size_t counts, counts_room;
    struct counted *begun; /* of communicators */
    size_t comms_begun, begun_room;
    struct collective *collective;
    size_t collectives, collectives_room;
    struct job_comm *comm;
    size_t comms, comms_room;
    struct region_sum *region;
    size_t regions, regions_room;
    struct fdr_traffic recorded; /* numbers of all that were recorded, whatever their region */
    bool traffic_lost;           /* some file had no room for the row of a region */
    uint64_t state[END_STATES];  /* messages of each; a matched pair counts once */
    bool opened;                 /* messages_free closes the files */
};

/* Opens the files and takes their messages. False: out of memory, or no file can be read. */
bool messages_load(struct job *job, const char *const *paths, size_t count, int *status);
/* Adds an open recording with its messages. False: out of memory. */
bool messages_add(struct job *job, const char *path, struct fdr_file *file);
void messages_match(struct job *job);
int messages_print(const struct job *job, bool json, bool pairs, bool all);
/* No message and no collective is held or counted. */
bool messages_none(const struct job *job);
void messages_free(struct job *job);

/* The order of envelopes: from, to, tag, communicator. */
int compare_envelopes(uint32_t from, uint32_t to, int32_t tag, uint64_t comm, const struct message_end *e);
const struct counted *count_of(const struct job *job, const struct message_end *envelope, bool is_send);
const struct job_comm *comm_of(const struct job *job, uint64_t identity);
/* UINT32_MAX: not known. */
uint32_t rank_of_location(const struct job_file *jf, uint32_t location);

/* ---- messages_regions.c ---- */
void add_traffic(struct fdr_traffic *to, const struct fdr_traffic *more);
bool print_regions(const struct job *job, bool all); /* false: out of memory */
/* Sets the seven numbers. */
void set_traffic(json_t *o, const struct fdr_traffic *t);
json_t *regions_json(const struct job *job);
json_t *missing_json(const struct job *job);
json_t *epoch_traffic_json(const struct job *job);
bool has_rank(const struct job *job, uint32_t rank, uint32_t *file);

#endif
