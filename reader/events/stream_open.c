/* SPDX-License-Identifier: MIT */
/* Opens and closes the event stream of one location: selects its partitions and makes their cursors. */
#include "base/bits.h"
#include "format/arena/arena.h"
#include "format/codec/decode.h"
#include "reader/events/cursor.h"
#include "reader/events/events.h"
#include "reader/events/location_stream.h"
#include "reader/events/point_merge.h"
#include "reader/file/file.h"

#include <fdr/reader.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

/* If more partitions are open at once, whole decoded bins would take too much memory. */
#define WHOLE_CURSORS 128u

/* May the partition hold zero-length calls? */
static bool holds_zeros(const struct fdri_events_stream *s, const struct fdri_file_part *p)
{
    return !p->band || (p->band == FDRI_ARENA_BANDS - 1 && s->location->raw.flags & FDRI_ARENA_LOCATION_JOINED_ALL);
}

/* A partition without any event to show may be wanted, too: its cursor knows from when to when calls are missing. */
static bool needs_cursor(const struct fdri_events_stream *s, const struct fdri_file_part *p)
{
    if (p->class_ != FDRI_ARENA_CLASS_REGION || p->depth <= s->base || p->depth > s->depth_max || p->band < s->band_min)
        return false;
    return p->any || (holds_zeros(s, p) && (p->tail_gap || fdri_file_bins_missing(p)));
}

/* Are points shown that may lie in calls? */
static bool any_points(const struct fdri_events_stream *s)
{
    for (size_t i = 0; i < s->location->part_count; i++) {
        const struct fdri_file_part *p = &s->location->part[i];
        bool point = p->class_ != FDRI_ARENA_CLASS_REGION && p->class_ != FDRI_ARENA_CLASS_SAMPLE;
        if (point && p->any && fdri_events_class_selected(s->select, p->class_)) return true;
    }
    return false;
}

/* A band is not read if all of its calls are shorter than the minimum: the calls in a call are no longer than it.
 * But the place of a point needs all calls of its tick. So this holds only if no points are shown. */
static void find_bands(struct fdri_events_stream *s)
{
    const struct fdri_arena_superblock *sb = &s->file->sb;
    if (!s->select->min_duration_ns || any_points(s)) return;
    bool other_unit = sb->clock_kind == FDRI_ARENA_CLOCK_TSC && (s->location->raw.flags & FDRI_ARENA_LOCATION_NS);
    for (uint32_t band = 0; band < sb->band_edge_count; band++) {
        uint64_t edge = other_unit ? fdri_arena_band_edge_ns(band) >> s->clock.shift : sb->band_edge[band];
        if (edge == 0 || edge > s->clock.stored_max) break;
        uint64_t longest = fdri_file_duration_ns(&s->clock, (edge - 1) << s->clock.shift) + 1;
        if (longest >= s->select->min_duration_ns) break;
        s->band_min = (uint8_t)(band + 1);
    }
}

static void find_depths(struct fdri_events_stream *s)
{
    const struct fdr_select *w = s->select;
    const struct fdri_file_location *l = s->location;
    uint32_t deepest = l->frame_count, most = w->depth_max ? w->depth_max : UINT32_MAX;
    for (size_t i = 0; i < l->part_count; i++)
        if (l->part[i].class_ == FDRI_ARENA_CLASS_REGION && l->part[i].any && l->part[i].depth > deepest)
            deepest = l->part[i].depth;
    s->base = w->depth_min > 1 ? w->depth_min - 1 : 0;
    if (s->base > deepest) s->base = deepest;
    s->depth_max = deepest < most ? deepest : most;
    if (s->depth_max < s->base || !fdri_events_class_selected(w, FDRI_ARENA_CLASS_REGION)) s->depth_max = s->base;
    s->depth = s->base;
}

/* Is this not a cursor of band 0, which have reserved places? */
static bool is_not_first_cursor(const struct fdri_file_part *p) { return p->band > 0 || p->pinned; }

/* level[] and stack[] are used from index base on. Cursor i of `memory` is band 0 of depth base + 1 + i; the cursors
 * of other bands follow. */
static bool make_room(struct fdri_events_stream *s, size_t others)
{
    size_t most = 0; /* a bin that turns out bad may make one more partition wanted */
    for (size_t i = 0; i < s->location->part_count; i++) most += is_not_first_cursor(&s->location->part[i]);
    size_t depths = s->depth_max - s->base;
    s->level = fdri_file_calloc(s->depth_max + 3, sizeof *s->level);
    s->stack = fdri_file_calloc(s->depth_max + 3, sizeof *s->stack);
    s->memory = fdri_file_malloc((depths + most + 1) * sizeof *s->memory);
    s->used = fdri_file_malloc((depths + most + 1) * sizeof(struct fdri_events_cursor *));
    s->may_keep_whole = (depths + others) * s->file->location_count <= WHOLE_CURSORS;
    return s->level && s->stack && s->memory && s->used;
}

static void add_cursor(struct fdri_events_stream *s, struct fdri_file_part *p, struct fdri_events_cursor *c,
                       uint64_t min_leave)
{
    struct fdri_events_depth *v = &s->level[p->depth];
    fdri_events_cursor_init(c, s->file, s->location, p, p->min_leave > min_leave ? p->min_leave : min_leave,
                            FDRI_EVENTS_CHUNK);
    s->used[s->used_count++] = c;
    c->may_keep_whole = s->may_keep_whole;
    if (fdri_events_cursor_fill(c)) v->cursor[v->cursors++] = c;
    s->careful |= c->gapped;
    if (holds_zeros(s, p)) v->zero_cursors[v->zero_cursor_count++] = c;
}

static void add_frames(struct fdri_events_stream *s)
{
    const struct fdri_file_location *l = s->location;
    for (uint32_t d = s->base + 1; d <= l->frame_count && d <= s->depth_max; d++) {
        if (!fdri_events_frame_kept(&l->frame[d - 1])) continue;
        s->level[d].has_frame = true;
        s->level[d].frame = (struct fdri_codec_record){.enter = l->frame[d - 1].enter,
                                                       .leave = FDRI_EVENTS_OPEN,
                                                       .id = l->frame[d - 1].region,
                                                       .ordinal = l->frame[d - 1].ordinal};
    }
}

/* If zero-length calls may be missing before a longer call, the ordinal of that call is unknown. */
static void add_unnumbered(struct fdri_events_stream *s)
{
    const struct fdri_file_location *l = s->location;
    for (size_t i = 0; i < l->part_count; i++) {
        const struct fdri_file_part *p = &l->part[i];
        bool all_gone = p->floor_unknown && !p->bin_count; /* otherwise the gaps between bins show it */
        if (p->class_ == FDRI_ARENA_CLASS_REGION && all_gone && holds_zeros(s, p) && p->depth > s->base &&
            p->depth <= s->depth_max)
            s->level[p->depth].unnumbered_until = UINT64_MAX;
    }
    for (uint32_t d = s->base + 1; l->parts_missing && d <= s->depth_max; d++)
        s->level[d].unnumbered_until = fdri_bits_max(s->level[d].unnumbered_until, fdri_file_zeros_from(l, d));
}

static bool open_calls(struct fdri_events_stream *s, uint64_t min_leave)
{
    struct fdri_file_location *l = s->location;
    size_t others = 0;
    for (size_t i = 0; i < l->part_count; i++)
        others += needs_cursor(s, &l->part[i]) && is_not_first_cursor(&l->part[i]);
    if (!make_room(s, others)) return false;
    struct fdri_events_cursor *next = s->memory + (s->depth_max - s->base);
    for (size_t i = 0; i < l->part_count; i++) {
        struct fdri_file_part *p = &l->part[i];
        if (needs_cursor(s, p))
            add_cursor(s, p, is_not_first_cursor(p) ? next++ : &s->memory[p->depth - s->base - 1], min_leave);
    }
    add_unnumbered(s);
    add_frames(s);
    for (uint32_t d = s->base; d < s->depth_max + 3; d++) fdri_events_stream_head(&s->level[d]);
    s->stack[s->base] = (struct fdri_events_call){
        .leave = UINT64_MAX - 1, .ordinal_known = true, .real_depth = s->base};
    return true;
}

struct fdri_events_stream *fdri_events_stream_open(struct fdr_file *f, struct fdri_file_location *l,
                                                   const struct fdr_select *w)
{
    struct fdri_events_stream *s = fdri_file_calloc(1, sizeof *s);
    if (!s) return NULL;
    s->file = f;
    s->location = l;
    s->clock = l->clock;
    s->select = w;
    s->unfiltered = !w->from_ns && !w->to_ns && !w->min_duration_ns && !w->regions;
    s->careful = l->careful;
    s->stop_tick = w->to_ns ? fdri_file_stored_before(&s->clock, w->to_ns + 1) : UINT64_MAX - 2;
    find_depths(s);
    find_bands(s);
    uint64_t from = w->from_ns ? fdri_file_stored_before(&s->clock, w->from_ns) : 0;
    bool ok = open_calls(s, from) && fdri_events_points_open(&s->points, f, l, w, from);
    if (ok && s->careful) ok = fdri_events_careful_start(s);
    if (ok) return s;
    fdri_events_stream_close(s);
    return NULL;
}

void fdri_events_stream_close(struct fdri_events_stream *s)
{
    if (!s) return;
    fdri_events_points_close(&s->points);
    for (size_t i = 0; i < s->used_count; i++) fdri_events_cursor_done(s->used[i]);
    free(s->used);
    free(s->level);
    free(s->stack);
    free(s->memory);
    free(s->tree);
    free(s);
}
