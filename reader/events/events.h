/* SPDX-License-Identifier: MIT */
/* Events in order: of one partition, of one location, of all.
 *
 *   cursor.c           records of one partition         location_stream.c  calls and points of one location
 *   stream_open.c      its beginning and end            careful_stream.c   the same where calls may be missing
 *   point_merge.c      points by time                   location_merge.c   all locations by time
 *   visit_calls.c      calls with their times           sample_events.c    streams of samples
 *   snapshot_cut.c     locations that went on           missing_parents.c  may a caller be missing?
 *   unplaced_calls.c   calls without a place
 *
 * Neighbours: file/ below; tools and convert/ above, through <fdr/reader.h>. */
#ifndef FDR_READER_EVENTS_EVENTS_H
#define FDR_READER_EVENTS_EVENTS_H

#include <assert.h>
#include <fdr/reader.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format/arena/arena.h"
#include "format/codec/record_codec.h"
#include "format/codec/sample_codec.h"
#include "reader/file/file.h"

bool fdri_reader_needs_care(struct fdr_file *f, struct fdri_reader_location *l);

/* Of a location that went on: which frames are believed, and `over`. */
void fdri_reader_cut(struct fdr_file *f, struct fdri_reader_location *l);
/* Are records of this depth missing, by damage, anywhere? Decodes all there are. */
bool fdri_reader_gaps(const struct fdr_file *f, const struct fdri_reader_location *l, uint32_t depth);
/* The call of this depth around r, which is in p (NULL: an open call), is not there. Was it not over at the cut, beyond
 * doubt, where nothing is missing by damage? */
bool fdri_reader_not_over(const struct fdr_file *f, const struct fdri_reader_location *l, uint32_t depth,
                          const struct fdri_reader_part *p, const struct fdr_record *r);

/* Levels: what is held of one counts as kept as far back as all sparser ones reach. */
void fdri_reader_keep_samples(struct fdri_reader_location *l);
/* The accounts of one level, or NULL. */
const struct fdr_samples *fdri_reader_samples(const struct fdr_file *f, const struct fdri_reader_location *l);
/* The number that what is kept counts from: all before it is given back at every level. */
uint64_t fdri_reader_samples_from(struct fdr_file *f, struct fdri_reader_location *l);
void fdri_reader_show_sample(struct fdr_read_event *e, const struct fdr_sample_path *path);
/* By depth (regions open around it) and region (any of them). */
bool fdri_reader_sample_wanted(const struct fdr_select *w, const struct fdr_sample_path *path);

#define FDRI_READER_CHUNK 64u
struct fdri_reader_cursor {
    const struct fdr_record *at, *end; /* the newest decoded ones; at == end: all seen */
    struct fdr_file *file;
    struct fdri_reader_location *location;
    struct fdri_reader_part *part;
    uint64_t min_leave, max_enter;
    uint64_t gap_from, gap_to; /* the newest stretch of ticks where something is missing; empty when from > to */
    uint64_t newest;           /* leave of the newest record seen */
    uint32_t next_bin;
    bool decoding, gapped, slowly;
    uint32_t chunk;
    /* A bin nobody has decoded yet is decoded as a whole, once, where memory is no question; else it is decoded to its
     * end first and then again, a chunk at a time. */
    bool may_keep_whole;
    struct fdr_record *whole;
    uint32_t whole_room;
    struct fdr_decoder decoder;
    struct fdr_record record[FDRI_READER_CHUNK];
};
static_assert(sizeof(struct fdri_reader_cursor) <= 5120, "there is one for each partition of each location");
/* chunk 1: after each fill decoder.fields are those of *at. */
void fdri_reader_cursor_init(struct fdri_reader_cursor *c, struct fdr_file *f, struct fdri_reader_location *l,
                             struct fdri_reader_part *p, uint64_t min_leave, uint32_t chunk);
bool fdri_reader_cursor_fill(struct fdri_reader_cursor *c);
void fdri_reader_cursor_done(struct fdri_reader_cursor *c);

#define FDRI_READER_PENDING 16u
struct fdri_reader_point {
    struct fdr_record record;
    struct fdr_standing place;
    uint16_t depth;
    uint8_t class_;
    uint8_t field_count;
    uint64_t field[FDR_FIELDS_MAX];
    const struct fdr_sample_path *path;
};
struct fdri_reader_paths {
    uint64_t number; /* of the newest one pulled */
    uint32_t next;   /* buffer of the next one */
    struct fdr_sample_path path[3];
    uint32_t region[3][FDR_SAMPLE_STEPS_MAX];
    uint64_t frame[3][FDR_SAMPLE_STEPS_MAX];
};
struct fdri_reader_points {
    struct fdri_reader_cursor **heap;
    size_t heap_count;
    struct fdri_reader_cursor *memory;
    size_t memory_count;
    struct fdri_reader_point pending[FDRI_READER_PENDING]; /* of one tick, in order */
    uint32_t first, count;
    uint64_t tick;                   /* of the pending ones; UINT64_MAX: none */
    struct fdri_reader_paths *paths; /* a location of samples: one is pending at a time, and one was shown */
    bool readings;                   /* user events of any depth are in no call */
};
const struct fdr_sample_path *fdri_reader_path(struct fdri_reader_paths *p, const struct fdr_sample_decoder *d);
bool fdri_reader_points_open(struct fdri_reader_points *q, struct fdr_file *f, struct fdri_reader_location *l,
                             const struct fdr_select *s, uint64_t min_tick);
void fdri_reader_points_next(struct fdri_reader_points *q); /* drops the first pending one */
void fdri_reader_points_close(struct fdri_reader_points *q);

/* Once for each location, where it can have such calls; under f->lock. */
void fdri_reader_find_unplaced(struct fdr_file *f, struct fdri_reader_location *l);
void fdri_reader_unplaced_add(struct fdri_reader_location *l, uint32_t depth, uint64_t leave);

#define FDRI_READER_OPEN (UINT64_MAX - 1) /* leave of an open call */
struct fdri_reader_depth {                /* the calls of one depth */
    const struct fdr_record *head;
    struct fdri_reader_cursor *cursor[FDR_BANDS * 2]; /* of each band also what was set aside */
    uint32_t cursors, from;                           /* how many; which one head is of */
    /* where calls of length 0 lie: of band 0, of the longest where bands are joined, set aside or not */
    const struct fdri_reader_cursor *zeros[4];
    uint32_t zeros_count;
    uint64_t zero_tick; /* the newest zero-length calls seen */
    uint32_t zero_next;
    uint64_t unnumbered; /* calls of length 0 may be missing anywhere before: longer ones have no ordinal */
    bool looked, gaps;   /* were all of them decoded once, and is one damaged, or was when the file was recovered? */
    bool has_frame;
    struct fdr_record frame; /* the open call of this depth comes last */
};
struct fdri_reader_call { /* on the reader's own stack */
    uint64_t enter, leave, leave_ns, duration_ns;
    uint32_t id, ordinal;
    uint64_t place; /* for points: its ordinal + 1, or, of a longer call that none of them names, more than any */
    /* filtered, not_over: made up for one that a filter kept out, that was open when a snapshot's stack was copied */
    bool shown, open, made_up, filtered, not_over, ordinal_known;
    bool placed;   /* it was made up and has a place, or one right around it */
    uint32_t real; /* the depth of this one, or of the next further out that was not made up */
};
struct fdri_reader_stream {
    struct fdr_file *file;
    struct fdri_reader_location *location;
    struct fdri_reader_clock clock;
    const struct fdr_select *select;
    bool plain;       /* nothing to filter */
    uint8_t band_min; /* shorter ones are not touched */
    bool careful, done;
    uint32_t base, depth, depth_max; /* depth: index of the top call; base: of the root */
    uint64_t now, now_ns;
    uint64_t stop; /* calls that enter later are not wanted */
    struct fdri_reader_depth *level;
    struct fdri_reader_call *stack;
    struct fdri_reader_cursor *memory, **used;
    size_t used_count;
    bool may_keep_whole;
    uint64_t *tree; /* careful: least key over depths */
    uint32_t tree_size;
    struct fdri_reader_points points;
    struct fdri_reader_location *unplaced; /* gets calls that fit nowhere; NULL: nobody asks */
    bool point_next;                       /* the next point comes before anything else */
};
enum fdri_reader_step { FDRI_READER_CALL, FDRI_READER_MAKE_UP, FDRI_READER_LEAVE, FDRI_READER_END };
struct fdri_reader_stream *fdri_reader_stream_open(struct fdr_file *f, struct fdri_reader_location *l,
                                                   const struct fdr_select *s);
/* Fills everything but unused fields; false at the end. */
bool fdri_reader_stream_next(struct fdri_reader_stream *s, struct fdr_read_event *e);
void fdri_reader_stream_head(struct fdri_reader_depth *v); /* what comes next at a depth whose cursors are there */
void fdri_reader_stream_close(struct fdri_reader_stream *s);
/* The next record of depth d becomes its head. */
void fdri_reader_stream_advance(struct fdri_reader_stream *s, uint32_t d);
/* What comes next where anything may be missing; *d: the depth it happens at. */
enum fdri_reader_step fdri_reader_careful_step(struct fdri_reader_stream *s, uint32_t *d);
bool fdri_reader_careful_start(struct fdri_reader_stream *s);
void fdri_reader_careful_update(struct fdri_reader_stream *s, uint32_t d);
bool fdri_reader_careful_gaps(struct fdri_reader_stream *s, uint32_t d); /* fdri_reader_gaps, once */
/* Does the open call count as kept, and is it shown? */
static inline bool fdri_reader_frame_kept(const struct fdri_reader_frame *frame)
{
    return !(frame->flags & (FDR_LEVEL_UNTIMED | FDR_LEVEL_SETTLED));
}
/* Is this location (class) selected? */
/* Readings: what is said to be their depth tells their level (FORMAT.md, 12.3). */
static inline bool fdri_reader_is_reading(const struct fdri_reader_location *l, uint32_t class_, uint32_t depth)
{
    return class_ == FDR_CLASS_USER && depth && l->raw.flags & FDR_LOCATION_READINGS;
}
static inline bool fdri_reader_class_selected(const struct fdr_select *s, uint32_t class_)
{
    return !s->classes || s->classes >> class_ & 1;
}

#endif
