/* SPDX-License-Identifier: MIT */
/* An event stream in memory, ready to be replayed: what an .evt file or one location of a recording holds. */
#ifndef FDRI_TOOLS_REPLAY_EVENT_STREAM_H
#define FDRI_TOOLS_REPLAY_EVENT_STREAM_H

#include "tools/common/verbs.h"

enum op {
    OP_TICK = 0, /* no event: only moves time on */
    OP_ENTER,    /* value: region */
    OP_LEAVE,
    OP_SEND, /* value: index of peer, tag, comm, bytes in `field` */
    OP_RECV,
    OP_COLL_BEGIN, /* value: operation */
    OP_COLL_END,   /* value: index of operation, comm, root, sent, received */
    OP_METRIC,     /* value: index of metric, bits of the value */
    OP_MARKER,     /* value: index of marker, value */
    OP_EVENT,      /* value: index of event type, then its fields */
    OP_BARE_EVENT  /* value: event type; it was recorded without fields */
};

struct stream_definition {
    const char *name, *file; /* name NULL: not known, "" is one; metrics: the unit stands in `file` */
    uint32_t line;
    uint32_t value_type;  /* metrics: enum fdr_type */
    uint32_t field_count; /* events */
    const char *const *field_name;
    const uint8_t *field_type;
    uint32_t recorded; /* id that the recorder gave it */
};
struct stream_comm {
    const uint32_t *rank;
    uint32_t size, recorded;
};

struct stream {
    char name[32];           /* of the thread that replays it */
    uint64_t t0_ns, span_ns; /* first time; from there to the last record */
    size_t count;            /* records: op[i] happens dt[i] ns after the one before */
    uint32_t *dt, *value;
    uint8_t *op;
    uint64_t *field;
    size_t field_count;
    struct stream_definition *region, *metric, *marker, *event;
    size_t region_count, metric_count, marker_count, event_count;
    struct stream_comm *comm; /* [0] is the world */
    size_t comm_count;
    uint32_t *open; /* regions open at the end, outermost first */
    size_t open_count;
    uint64_t events, calls; /* in one pass; calls: enters */
    void *storage;          /* the file's bytes, that names and ranks point into */
    struct fdr_file *file;  /* or the recording they point into; the first of its streams closes it */
};

struct streams {
    struct stream *list;
    size_t count;
};

/* Adds what the file holds: one stream of an .evt file, one per location of a recording. *status is raised to
 * DIFFERENT where a part of it is left out, to COULD_NOT where nothing of it is usable; a line says what. */
void streams_load(struct streams *streams, const char *path, int *status);
void streams_free(struct streams *streams);

/* ---- for the loaders ------------------------------------------------------------------------------------------- */
/* Appends an empty stream. NULL: no memory. */
struct stream *streams_add(struct streams *streams);
void stream_clear(struct stream *stream);
/* "dir/npb-cg.r0.t0.evt.zst" to "npb-cg", at most 31 bytes. */
void stream_base_name(char name[32], const char *path);
bool load_evt(struct stream *stream, const char *path, unsigned char *bytes, size_t size, int *status);
void load_recording(struct streams *streams, const char *path, int *status);

#endif
