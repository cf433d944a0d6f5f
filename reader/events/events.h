/* SPDX-License-Identifier: MIT */
/* Events in order: of one partition, of one location, of all.
 *
 *   cursor.c           records of one partition         location_stream.c  calls and points of one location
 *   stream_open.c      opens and closes that stream     careful_stream.c   its next step; makes up missing callers
 *   point_merge.c      points of a location by time     location_merge.c   all locations by time
 *   visit_calls.c      calls with their times           sample_events.c    streams of samples
 *   snapshot_cut.c     moving locations                 missing_parents.c  may a caller be missing?
 *   unplaced_calls.c   calls without a place
 *
 * Neighbours: file/ below; tools and convert/ above, through <fdr/reader.h>. */
#ifndef FDRI_READER_EVENTS_EVENTS_H
#define FDRI_READER_EVENTS_EVENTS_H

#include <assert.h>
#include <fdr/reader.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format/arena/arena.h"
#include "format/codec/decode.h"
#include "format/codec/record_codec.h"
#include "format/codec/sample_codec.h"
#include "reader/file/file.h"

/* May a call be missing around a shown call? Then careful_stream.c must decide. */
bool fdri_events_may_lack_parents(struct fdr_file *f, struct fdri_file_location *l);

/* For a moving location: sets the frames that count, and `over`. */
void fdri_events_snapshot_cut(struct fdr_file *f, struct fdri_file_location *l);
/* Are records of this depth missing because of damage? Decodes all records of the depth. */
bool fdri_events_gaps(const struct fdr_file *f, const struct fdri_file_location *l, uint32_t depth);
/* The call of this depth around record r is missing; r lies in p (NULL: r is an open call). Was that call certainly
 * still open at the cut? The caller must exclude that damage took it (fdri_events_gaps). */
bool fdri_events_not_over(const struct fdr_file *f, const struct fdri_file_location *l, uint32_t depth,
                          const struct fdri_file_part *p, const struct fdri_codec_record *r);

/* Sets min_leave for samples: those of a level count as kept as far back as all sparser levels reach. */
void fdri_events_keep_samples(struct fdri_file_location *l);
/* The accounts of the location's samples, by level, or NULL. */
const struct fdri_arena_samples *fdri_events_samples(const struct fdr_file *f, const struct fdri_file_location *l);
/* The sample number from which the kept samples count on. All samples up to it were given back, at every level. */
uint64_t fdri_events_samples_from(struct fdr_file *f, struct fdri_file_location *l);
/* Sets the fields of *e that belong to a sample. */
void fdri_events_show_sample(struct fdr_read_event *e, const struct fdr_sample_path *path);
/* Does the selection take this sample? It compares the number of open regions with the depths, and any of these
 * regions with the regions. */
bool fdri_events_sample_wanted(const struct fdr_select *w, const struct fdr_sample_path *path);

#define FDRI_EVENTS_CHUNK 64u
struct fdri_events_cursor {
    const struct fdri_codec_record *at, *end; /* decoded records that are not consumed; at == end: none */
    struct fdr_file *file;
    struct fdri_file_location *location;
    struct fdri_file_part *part;
    uint64_t min_leave, max_enter;
    uint64_t gap_from, gap_to; /* newest stretch of ticks in which records are missing; empty if from > to */
    uint64_t newest;           /* leave of the newest record returned */
    uint32_t next_bin;
    bool decoding, gapped, slowly;
    uint32_t chunk;
    /* If memory allows, a bin that was never decoded is decoded once, as a whole. Otherwise it is decoded twice: to
     * its end as a check, then a chunk at a time. */
    bool may_keep_whole;
    struct fdri_codec_record *whole;
    uint32_t whole_room;
    struct fdri_codec_decoder decoder;
    struct fdri_codec_record record[FDRI_EVENTS_CHUNK];
};
static_assert(sizeof(struct fdri_events_cursor) <= 5120, "there is one for each partition of each location");
/* With chunk 1, decoder.fields are those of *at after each fill. */
void fdri_events_cursor_init(struct fdri_events_cursor *c, struct fdr_file *f, struct fdri_file_location *l,
                             struct fdri_file_part *p, uint64_t min_leave, uint32_t chunk);
/* Decodes the next records. Returns false, with at == end, if there are none. */
bool fdri_events_cursor_fill(struct fdri_events_cursor *c);
void fdri_events_cursor_done(struct fdri_events_cursor *c);

#define FDRI_EVENTS_PENDING 16u
struct fdri_events_point {
    struct fdri_codec_record record;
    struct fdri_codec_standing place;
    uint16_t depth;
    uint8_t class_;
    uint8_t field_count;
    uint64_t field[FDRI_CODEC_FIELDS_MAX];
    const struct fdr_sample_path *path;
};
struct fdri_events_paths {
    uint64_t number; /* number of the newest sample returned */
    uint32_t next;   /* index of the buffer for the next sample */
    struct fdr_sample_path path[3];
    uint32_t region[3][FDRI_CODEC_SAMPLE_STEPS_MAX];
    uint64_t frame[3][FDRI_CODEC_SAMPLE_STEPS_MAX];
};
struct fdri_events_points {
    struct fdri_events_cursor **heap;
    size_t heap_count;
    struct fdri_events_cursor *memory;
    size_t memory_count;
    struct fdri_events_point pending[FDRI_EVENTS_PENDING]; /* points of one tick, in order */
    uint32_t first, count;
    uint64_t tick;                   /* tick of the pending points; UINT64_MAX: none */
    struct fdri_events_paths *paths; /* of a location of samples: one is pending, one was returned before */
    bool readings;                   /* user events of any depth are readings, so lie in no call */
};
const struct fdr_sample_path *fdri_events_path(struct fdri_events_paths *p, const struct fdri_codec_sample_decoder *d);
/* Opens the selected points from min_tick on. Returns false without memory; close it in any case. */
bool fdri_events_points_open(struct fdri_events_points *q, struct fdr_file *f, struct fdri_file_location *l,
                             const struct fdr_select *s, uint64_t min_tick);
void fdri_events_points_next(struct fdri_events_points *q); /* drops the first pending point */
void fdri_events_points_close(struct fdri_events_points *q);

/* Finds the calls without a place, if the location can have any; once for each location. The caller holds f->lock. */
void fdri_events_find_unplaced(struct fdr_file *f, struct fdri_file_location *l);
void fdri_events_unplaced_add(struct fdri_file_location *l, uint32_t depth, uint64_t leave);

#define FDRI_EVENTS_OPEN (UINT64_MAX - 1) /* the leave of an open call */
struct fdri_events_depth {                /* the calls of one depth */
    const struct fdri_codec_record *head;
    struct fdri_events_cursor *cursor[FDRI_ARENA_BANDS * 2]; /* for each band, the pinned partition and the other one */
    uint32_t cursors, from;                                  /* number of cursors; index of head's cursor */
    /* Cursors of the partitions that may hold zero-length calls: band 0, or the longest band if bands are joined;
     * pinned or not. */
    const struct fdri_events_cursor *zeros[4];
    uint32_t zeros_count;
    uint64_t zero_tick; /* tick of the newest zero-length call, and the next ordinal in it */
    uint32_t zero_next;
    uint64_t unnumbered; /* before this tick zero-length calls may be missing, so longer calls have no ordinal */
    bool looked, gaps;   /* `gaps` is valid if `looked`: are records damaged now, or were they at a recovery? */
    bool has_frame;
    struct fdri_codec_record frame; /* the open call of this depth; it comes last */
};
struct fdri_events_call { /* a call on the reader's stack */
    uint64_t enter, leave, leave_ns, duration_ns;
    uint32_t id, ordinal;
    uint64_t place; /* its ordinal + 1, to compare with points of its tick; UINT64_MAX: unknown */
    /* for a made-up call: filtered: a filter kept the real one out; not_over: the real one was open at the cut */
    bool shown, open, made_up, filtered, not_over, ordinal_known;
    bool placed;   /* a made-up call whose place is known, or that of the call around it */
    uint32_t real; /* depth of this call, or of the next one outside that is not made up */
};
struct fdri_events_stream {
    struct fdr_file *file;
    struct fdri_file_location *location;
    struct fdri_file_clock clock;
    const struct fdr_select *select;
    bool plain;       /* no filters */
    uint8_t band_min; /* shorter bands are not read */
    bool careful, done;
    uint32_t base, depth, depth_max; /* depth: index of the top call; base: index of the root */
    uint64_t now, now_ns;
    uint64_t stop; /* calls that enter later are not wanted */
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
/* Does this open call count as kept, and is it shown? */
static inline bool fdri_events_frame_kept(const struct fdri_file_frame *frame)
{
    return !(frame->flags & (FDRI_ARENA_LEVEL_UNTIMED | FDRI_ARENA_LEVEL_SETTLED));
}
/* Is this a reading? The depth of a reading gives its level (FORMAT.md, 12.3). */
static inline bool fdri_events_is_reading(const struct fdri_file_location *l, uint32_t class_, uint32_t depth)
{
    return class_ == FDRI_ARENA_CLASS_USER && depth && l->raw.flags & FDRI_ARENA_LOCATION_READINGS;
}
static inline bool fdri_events_class_selected(const struct fdr_select *s, uint32_t class_)
{
    return !s->classes || s->classes >> class_ & 1;
}

#endif
