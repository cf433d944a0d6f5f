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
#ifndef FDRI_READER_EVENTS_EVENTS_H
#define FDRI_READER_EVENTS_EVENTS_H

#include <assert.h>
#include <fdr/reader.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format/arena/arena.h"
#include "format/codec/record_codec.h"
#include "format/codec/sample_codec.h"
#include "reader/file/file.h"

bool fdri_events_may_lack_parents(struct fdr_file *f, struct fdri_file_location *l);

/* Of a location that went on: which frames are believed, and `over`. */
void fdri_events_snapshot_cut(struct fdr_file *f, struct fdri_file_location *l);
/* Are records of this depth missing, by damage, anywhere? Decodes all there are. */
bool fdri_events_gaps(const struct fdr_file *f, const struct fdri_file_location *l, uint32_t depth);
/* The call of this depth around r, which is in p (NULL: an open call), is not there. Was it not over at the cut, beyond
 * doubt, where nothing is missing by damage? */
bool fdri_events_not_over(const struct fdr_file *f, const struct fdri_file_location *l, uint32_t depth,
                          const struct fdri_file_part *p, const struct fdri_codec_record *r);

/* Levels: what is held of one counts as kept as far back as all sparser ones reach. */
void fdri_events_keep_samples(struct fdri_file_location *l);
/* The accounts of one level, or NULL. */
const struct fdri_arena_samples *fdri_events_samples(const struct fdr_file *f, const struct fdri_file_location *l);
/* The number that what is kept counts from: all before it is given back at every level. */
uint64_t fdri_events_samples_from(struct fdr_file *f, struct fdri_file_location *l);
void fdri_events_show_sample(struct fdr_read_event *e, const struct fdr_sample_path *path);
/* By depth (regions open around it) and region (any of them). */
bool fdri_events_sample_wanted(const struct fdr_select *w, const struct fdr_sample_path *path);

#define FDRI_EVENTS_CHUNK 64u
struct fdri_events_cursor {
    const struct fdri_codec_record *at, *end; /* the newest decoded ones; at == end: all seen */
    struct fdr_file *file;
    struct fdri_file_location *location;
    struct fdri_file_part *part;
    uint64_t min_leave, max_enter;
    uint64_t gap_from, gap_to; /* the newest stretch of ticks where something is missing; empty when from > to */
    uint64_t newest;           /* leave of the newest record seen */
    uint32_t next_bin;
    bool decoding, gapped, slowly;
    uint32_t chunk;
    /* A bin nobody has decoded yet is decoded as a whole, once, where memory is no question; else it is decoded to its
     * end first and then again, a chunk at a time. */
    bool may_keep_whole;
    struct fdri_codec_record *whole;
    uint32_t whole_room;
    struct fdri_codec_decoder decoder;
    struct fdri_codec_record record[FDRI_EVENTS_CHUNK];
};
static_assert(sizeof(struct fdri_events_cursor) <= 5120, "there is one for each partition of each location");
/* chunk 1: after each fill decoder.fields are those of *at. */
void fdri_events_cursor_init(struct fdri_events_cursor *c, struct fdr_file *f, struct fdri_file_location *l,
                             struct fdri_file_part *p, uint64_t min_leave, uint32_t chunk);
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
    uint64_t number; /* of the newest one pulled */
    uint32_t next;   /* buffer of the next one */
    struct fdr_sample_path path[3];
    uint32_t region[3][FDRI_CODEC_SAMPLE_STEPS_MAX];
    uint64_t frame[3][FDRI_CODEC_SAMPLE_STEPS_MAX];
};
struct fdri_events_points {
    struct fdri_events_cursor **heap;
    size_t heap_count;
    struct fdri_events_cursor *memory;
    size_t memory_count;
    struct fdri_events_point pending[FDRI_EVENTS_PENDING]; /* of one tick, in order */
    uint32_t first, count;
    uint64_t tick;                   /* of the pending ones; UINT64_MAX: none */
    struct fdri_events_paths *paths; /* a location of samples: one is pending at a time, and one was shown */
    bool readings;                   /* user events of any depth are in no call */
};
const struct fdr_sample_path *fdri_events_path(struct fdri_events_paths *p, const struct fdri_codec_sample_decoder *d);
bool fdri_events_points_open(struct fdri_events_points *q, struct fdr_file *f, struct fdri_file_location *l,
                             const struct fdr_select *s, uint64_t min_tick);
void fdri_events_points_next(struct fdri_events_points *q); /* drops the first pending one */
void fdri_events_points_close(struct fdri_events_points *q);

/* Once for each location, where it can have such calls; under f->lock. */
void fdri_events_find_unplaced(struct fdr_file *f, struct fdri_file_location *l);
void fdri_events_unplaced_add(struct fdri_file_location *l, uint32_t depth, uint64_t leave);

#define FDRI_EVENTS_OPEN (UINT64_MAX - 1) /* leave of an open call */
struct fdri_events_depth {                /* the calls of one depth */
    const struct fdri_codec_record *head;
    struct fdri_events_cursor *cursor[FDRI_ARENA_BANDS * 2]; /* of each band also what was set aside */
    uint32_t cursors, from;                                  /* how many; which one head is of */
    /* where calls of length 0 lie: of band 0, of the longest where bands are joined, set aside or not */
    const struct fdri_events_cursor *zeros[4];
    uint32_t zeros_count;
    uint64_t zero_tick; /* the newest zero-length calls seen */
    uint32_t zero_next;
    uint64_t unnumbered; /* calls of length 0 may be missing anywhere before: longer ones have no ordinal */
    bool looked, gaps;   /* were all of them decoded once, and is one damaged, or was when the file was recovered? */
    bool has_frame;
    struct fdri_codec_record frame; /* the open call of this depth comes last */
};
struct fdri_events_call { /* on the reader's own stack */
    uint64_t enter, leave, leave_ns, duration_ns;
    uint32_t id, ordinal;
    uint64_t place; /* for points: its ordinal + 1, or, of a longer call that none of them names, more than any */
    /* filtered, not_over: made up for one that a filter kept out, that was open when a snapshot's stack was copied */
    bool shown, open, made_up, filtered, not_over, ordinal_known;
    bool placed;   /* it was made up and has a place, or one right around it */
    uint32_t real; /* the depth of this one, or of the next further out that was not made up */
};
struct fdri_events_stream {
    struct fdr_file *file;
    struct fdri_file_location *location;
    struct fdri_file_clock clock;
    const struct fdr_select *select;
    bool plain;       /* nothing to filter */
    uint8_t band_min; /* shorter ones are not touched */
    bool careful, done;
    uint32_t base, depth, depth_max; /* depth: index of the top call; base: of the root */
    uint64_t now, now_ns;
    uint64_t stop; /* calls that enter later are not wanted */
    struct fdri_events_depth *level;
    struct fdri_events_call *stack;
    struct fdri_events_cursor *memory, **used;
    size_t used_count;
    bool may_keep_whole;
    uint64_t *tree; /* careful: least key over depths */
    uint32_t tree_size;
    struct fdri_events_points points;
    struct fdri_file_location *unplaced; /* gets calls that fit nowhere; NULL: nobody asks */
    bool point_next;                     /* the next point comes before anything else */
};
enum fdri_events_step { FDRI_EVENTS_CALL, FDRI_EVENTS_MAKE_UP, FDRI_EVENTS_LEAVE, FDRI_EVENTS_END };
struct fdri_events_stream *fdri_events_stream_open(struct fdr_file *f, struct fdri_file_location *l,
                                                   const struct fdr_select *s);
/* Fills everything but unused fields; false at the end. */
bool fdri_events_stream_next(struct fdri_events_stream *s, struct fdr_read_event *e);
void fdri_events_stream_head(struct fdri_events_depth *v); /* what comes next at a depth whose cursors are there */
void fdri_events_stream_close(struct fdri_events_stream *s);
/* The next record of depth d becomes its head. */
void fdri_events_stream_advance(struct fdri_events_stream *s, uint32_t d);
/* What comes next where anything may be missing; *d: the depth it happens at. */
enum fdri_events_step fdri_events_careful_step(struct fdri_events_stream *s, uint32_t *d);
bool fdri_events_careful_start(struct fdri_events_stream *s);
void fdri_events_careful_update(struct fdri_events_stream *s, uint32_t d);
bool fdri_events_careful_gaps(struct fdri_events_stream *s, uint32_t d); /* fdri_events_gaps, once */
/* Does the open call count as kept, and is it shown? */
static inline bool fdri_events_frame_kept(const struct fdri_file_frame *frame)
{
    return !(frame->flags & (FDRI_ARENA_LEVEL_UNTIMED | FDRI_ARENA_LEVEL_SETTLED));
}
/* Is this location (class) selected? */
/* Readings: what is said to be their depth tells their level (FORMAT.md, 12.3). */
static inline bool fdri_events_is_reading(const struct fdri_file_location *l, uint32_t class_, uint32_t depth)
{
    return class_ == FDRI_ARENA_CLASS_USER && depth && l->raw.flags & FDRI_ARENA_LOCATION_READINGS;
}
static inline bool fdri_events_class_selected(const struct fdr_select *s, uint32_t class_)
{
    return !s->classes || s->classes >> class_ & 1;
}

#endif
