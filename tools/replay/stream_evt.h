/* SPDX-License-Identifier: MIT */
/* An .evt file while it is loaded: stream_evt.c reads it, stream_numbers.c counts its messages. */
#ifndef FDRI_TOOLS_REPLAY_STREAM_EVT_H
#define FDRI_TOOLS_REPLAY_STREAM_EVT_H

#include <stddef.h>
#include <stdint.h>

#include "tools/replay/event_stream.h"

struct evt_header {
    char magic[8];
    uint32_t version, header_bytes;
    uint64_t n_records;
    uint32_t n_regions, n_params, n_comms, strings_bytes;
    uint32_t rank, nranks, thread, n_prefix;
    uint64_t t0_ns, run_events, window_first;
    uint32_t n_repaired, reserved0;
    uint64_t off_regions, off_strings, off_comms, off_params, off_dt, off_word;
};
struct evt_region {
    uint32_t name, file, line, reserved;
};
struct evt_param {
    int32_t peer, tag;
    uint32_t comm, req;
    uint64_t bytes, bytes2;
};
_Static_assert(sizeof(struct evt_header) == 136, "header of an event stream");

enum evt_kind {
    EVT_TICK,
    EVT_ENTER,
    EVT_LEAVE,
    EVT_SEND,
    EVT_RECV,
    EVT_ISEND,
    EVT_ISEND_DONE,
    EVT_IRECV_REQ,
    EVT_IRECV,
    EVT_COLL_BEGIN,
    EVT_COLL_END,
    EVT_KINDS
};

struct evt {
    const char *path;
    const unsigned char *bytes;
    size_t size;
    struct evt_header h;
    const char *strings;
    size_t strings_bytes, params;
    /* counts of parts left out, and the index of the first */
    uint64_t bad_kinds, bad_regions, bad_params, first_bad;
};

/* The word of a record, kind << 24 | value. record: below the number of complete ones. */
uint32_t evt_word(const struct evt *e, size_t record);
/* The parameters of a word's value; false: there are none. */
bool evt_param_of(const struct evt *e, uint32_t word, struct evt_param *p);

/* Sets the ordinals of the records of s, where they are known. */
void number_stream(const struct evt *e, struct stream *s);

#endif
