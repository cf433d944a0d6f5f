/* SPDX-License-Identifier: MIT */
/* The stream of one location: its calls and points in order, with callers made up where they are missing. */
#ifndef FDRI_READER_EVENTS_LOCATION_STREAM_H
#define FDRI_READER_EVENTS_LOCATION_STREAM_H

#include <fdr/reader.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format/arena/arena.h"
#include "format/codec/decode.h"
#include "reader/events/cursor.h"
#include "reader/events/point_merge.h"
#include "reader/file/file.h"

#define FDRI_EVENTS_OPEN (UINT64_MAX - 1) /* the leave of an open call */
struct fdri_events_depth {                /* the calls of one depth */
    const struct fdri_codec_record *head;
    struct fdri_events_cursor *cursor[FDRI_ARENA_BANDS * 2]; /* for each band, the pinned partition and the other one */
    uint32_t cursors, head_cursor;                           /* number of cursors; index of head's cursor */
    /* Cursors of the partitions that may hold zero-length calls: band 0, or the longest band if bands are joined;
     * pinned or not. */
    const struct fdri_events_cursor *zero_cursors[4];
    uint32_t zero_cursor_count;
    uint64_t zero_tick; /* tick of the newest zero-length call, and the next ordinal in it */
    uint32_t zero_next;
    uint64_t unnumbered_until; /* before this tick zero-length calls may be missing, so longer calls have no ordinal */
    bool gaps_known, gaps; /* `gaps` is valid if `gaps_known`: are records damaged now, or were they at a recovery? */
    bool has_frame;
    struct fdri_codec_record frame; /* the open call of this depth; it comes last */
};
struct fdri_events_call { /* a call on the reader's stack */
    uint64_t enter, leave, leave_ns, duration_ns;
    uint32_t id, ordinal;
    uint64_t place; /* its ordinal + 1, to compare with points of its tick; UINT64_MAX: unknown */
    /* for a made-up call: filtered: a filter kept the real one out; not_over: the real one was open at the cut */
    bool shown, open, made_up, filtered, not_over, ordinal_known;
    bool placed;         /* a made-up call whose place is known, or that of the call around it */
    uint32_t real_depth; /* depth of this call, or of the next one outside that is not made up */
};
struct fdri_events_stream {
    struct fdr_file *file;
    struct fdri_file_location *location;
    struct fdri_file_clock clock;
    const struct fdr_select *select;
    bool unfiltered;  /* no filters */
    uint8_t band_min; /* shorter bands are not read */
    bool careful, done;
    uint32_t base, depth, depth_max; /* depth: index of the top call; base: index of the root */
    uint64_t now, now_ns;
    uint64_t stop_tick; /* calls that enter later are not wanted */
    struct fdri_events_depth *level;
    struct fdri_events_call *stack;
    struct fdri_events_cursor *memory, **used;
    size_t used_count;
    bool may_keep_whole;
    uint64_t *tree; /* for careful_stream.c: a tree of the least keys over depths */
    uint32_t tree_size;
    struct fdri_events_points points;
    struct fdri_file_location *unplaced; /* receives the calls without a place; NULL: not wanted */
    bool point_next;                     /* the next point comes before any call */
};
enum fdri_events_step { FDRI_EVENTS_CALL, FDRI_EVENTS_MAKE_UP, FDRI_EVENTS_LEAVE, FDRI_EVENTS_END };
/* Opens the events of a location; NULL without memory. `s` must live until the close. */
struct fdri_events_stream *fdri_events_stream_open(struct fdr_file *f, struct fdri_file_location *l,
                                                   const struct fdr_select *s);
/* Fills all fields of *e that its kind uses. Returns false at the end. */
bool fdri_events_stream_next(struct fdri_events_stream *s, struct fdr_read_event *e);
void fdri_events_stream_head(struct fdri_events_depth *v); /* sets the head of a depth from its cursors */
void fdri_events_stream_close(struct fdri_events_stream *s);
/* Consumes the head of depth d. */
void fdri_events_stream_advance(struct fdri_events_stream *s, uint32_t d);
/* Decides what comes next if any call may be missing. *d: the depth at which it happens. */
enum fdri_events_step fdri_events_careful_step(struct fdri_events_stream *s, uint32_t *d);
bool fdri_events_careful_start(struct fdri_events_stream *s);
void fdri_events_careful_update(struct fdri_events_stream *s, uint32_t d);
bool fdri_events_careful_gaps(struct fdri_events_stream *s, uint32_t d); /* fdri_events_gaps, computed once */

#endif
