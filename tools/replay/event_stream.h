/* SPDX-License-Identifier: MIT */
/* An event stream in memory, ready to be replayed: the contents of an .evt file, or of one location of a recording.
 *
 *   event_stream.c  reads and decompresses files      play.c    presents the records to the recorder
 *   stream_evt.c    loads .evt files                  replay.c  the verb: threads, times, figures
 *   stream_fdr.c    loads recordings                  stream_numbers.c  ordinals of messages; stream_evt.h
 *
 * Neighbours: common/ for messages and files; the recorder through fdr/fdr.h alone. */
#ifndef FDRI_TOOLS_REPLAY_EVENT_STREAM_H
#define FDRI_TOOLS_REPLAY_EVENT_STREAM_H

#include "tools/common/verbs.h"

enum op {
    OP_TICK = 0, /* no event: advances the time */
    OP_ENTER,    /* value: region */
    OP_LEAVE,
    OP_SEND, /* value: index of peer, tag, comm, bytes, ordinal in `field` */
    OP_RECV,
    OP_COLL_BEGIN, /* value: index of operation, comm, ordinal */
    OP_COLL_END,   /* value: index of operation, comm, root, sent, received, ordinal */
    OP_METRIC,     /* value: index of metric, bits of the value */
    OP_MARKER,     /* value: index of marker, value */
    OP_EVENT,      /* value: index of event type, then its fields */
    OP_BARE_EVENT, /* value: event type; recorded without fields */
    OP_IO_BEGIN,   /* value: index of file, operation, bytes, offset, place in `began` */
    OP_IO_END      /* value: index of file, operation, bytes, error, place of its begin; IO_PLACES: it is not known */
};

enum { IO_PLACES = 64 }; /* operations under way at once whose times are replayed */

struct stream_definition {
    const char *name, *file; /* name NULL: unknown; "" is a name */
    uint32_t line;
    const struct fdr_metric_info *metric; /* metrics and events, which only recordings have */
    const struct fdr_event_info *event;
    uint32_t recorded; /* id from the recorder */
};
struct stream_comm {
    const uint32_t *rank;
    uint32_t size, recorded;
    const char *name;  /* NULL: it has none */
    uint64_t identity; /* 0: none */
};

struct stream {
    char name[32];           /* of the thread that replays it */
    uint64_t t0_ns, span_ns; /* first time; time from there to the last record */
    size_t count;            /* records: op[i] happens dt[i] ns after the record before */
    uint32_t *dt, *value;
    uint8_t *op;
    uint64_t *field;
    size_t field_count;
    struct stream_definition *region, *metric, *marker, *event, *io_file;
    size_t region_count, metric_count, marker_count, event_count, io_file_count;
    uint64_t *began;          /* IO_PLACES results of fdr_io_begin_at, in a replay */
    struct stream_comm *comm; /* [0] is the world */
    size_t comm_count;
    bool other_comms; /* events may name communicators beyond these */
    uint32_t *open;   /* regions open at the end, outermost first */
    size_t open_count;
    uint64_t events, calls; /* in one pass; calls: number of enters */
    void *storage;          /* the file's bytes; names and ranks point into it */
    struct fdr_file *file;  /* or the recording that they point into; its first stream closes it */
};

struct streams {
    struct stream *list;
    size_t count;
};

/* Adds the streams of a file: one of an .evt file, one per location of a recording. Raises *status to DIFFERENT if a
 * part is left out, to COULD_NOT if nothing is usable; one line reports which. */
void streams_load(struct streams *streams, const char *path, int *status);
void streams_free(struct streams *streams);

/* ---- for the loaders ------------------------------------------------------------------------------------------- */
/* Appends an empty stream. NULL: out of memory. */
struct stream *streams_add(struct streams *streams);
void stream_clear(struct stream *stream);
/* Shortens "dir/npb-cg.r0.t0.evt.zst" to "npb-cg", at most 31 bytes. */
void stream_base_name(char name[32], const char *path);
bool load_evt(struct stream *stream, const char *path, unsigned char *bytes, size_t size, int *status);
/* For a stream that is replayed more than once. */
void stream_forget_numbers(struct stream *stream);
void load_recording(struct streams *streams, const char *path, int *status);

#endif
