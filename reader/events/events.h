/* SPDX-License-Identifier: MIT */
/* Events in order: of one partition, of one location, of all.
 *
 *   cursor.c           records of one partition         location_stream.c  calls and points of one location
 *   stream_open.c      opens and closes that stream     careful_stream.c   its next step; makes up missing callers
 *   point_merge.c      points of a location by time     location_merge.c   all locations by time
 *   visit_calls.c      calls with their times           sample_events.c    streams of samples
 *   snapshot_cut.c     moving locations                 missing_parents.c  may a caller be missing?
 *   unplaced_calls.c   calls without a place            event_kinds.c      what kinds of events are
 *   cursor.h, point_merge.h, sample_events.h, location_stream.h: the parts of a stream, for the files above
 *
 * Neighbours: file/ below; tools and convert/ above, through <fdr/reader.h>. */
#ifndef FDRI_READER_EVENTS_EVENTS_H
#define FDRI_READER_EVENTS_EVENTS_H

#include <fdr/reader.h>
#include <stdbool.h>
#include <stdint.h>

#include "format/arena/arena.h"
#include "reader/file/file.h"

struct fdri_codec_record;

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

/* Finds the calls without a place, if the location can have any; once for each location. The caller holds f->lock. */
void fdri_events_find_unplaced(struct fdr_file *f, struct fdri_file_location *l);
void fdri_events_unplaced_add(struct fdri_file_location *l, uint32_t depth, uint64_t leave);

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
