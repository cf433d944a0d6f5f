/* SPDX-License-Identifier: MIT */
/* The events of one location, in order.
 *
 * Calls of one depth follow each other, so the partitions of a depth merge by (enter, leave) into one sequence with a
 * head. With k calls open there are two candidates. The head of depth k+1 enters if it is a child of the top call.
 * Otherwise the top call leaves. A longer call contains its children, endpoints included. The record of a zero-length
 * call names its parent. point_is_due inserts the points.
 *
 * This holds as long as every call's parent is stored. If one may be missing, careful_stream.c decides what comes next.
 * stream_open.c finds the partitions to merge. */
#include "format/arena/arena.h"
#include "format/classes/class_table.h"
#include "format/codec/bit_length.h"
#include "format/codec/decode.h"
#include "format/codec/record_codec.h"
#include "reader/account/account.h"
#include "reader/events/cursor.h"
#include "reader/events/events.h"
#include "reader/events/location_stream.h"
#include "reader/events/point_merge.h"
#include "reader/events/sample_events.h"
#include "reader/file/file.h"

#include <fdr/reader.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static const struct fdri_codec_record no_more = {.enter = UINT64_MAX, .leave = UINT64_MAX};

/* ---- heads ---- */

static inline void pick_head(struct fdri_events_depth *v)
{
    const struct fdri_codec_record *best = v->cursor[0]->at;
    uint32_t from = 0;
    for (uint32_t i = 1; i < v->cursors; i++) {
        const struct fdri_codec_record *r = v->cursor[i]->at;
        bool less = r->enter < best->enter || (r->enter == best->enter && r->leave < best->leave);
        best = less ? r : best;
        from = less ? i : from;
    }
    v->head = best;
    v->head_cursor = from;
}

static void no_cursor_left(struct fdri_events_depth *v)
{
    v->head = v->has_frame ? &v->frame : &no_more;
    v->has_frame = false;
}

void fdri_events_stream_head(struct fdri_events_depth *v)
{
    if (v->cursors) pick_head(v);
    else no_cursor_left(v);
}

/* Refills the cursor of the head. Returns true if records are missing before the next one. */
static __attribute__((noinline)) bool refill(struct fdri_events_depth *v)
{
    struct fdri_events_cursor *c = v->cursor[v->head_cursor];
    if (!fdri_events_cursor_fill(c)) /* keeps the order: of zero-length calls the shorter band comes first */
        memmove(&v->cursor[v->head_cursor], &v->cursor[v->head_cursor + 1],
                (--v->cursors - v->head_cursor) * sizeof(struct fdri_events_cursor *));
    return c->gapped;
}

static inline void advance(struct fdri_events_stream *s, uint32_t d)
{
    struct fdri_events_depth *v = &s->level[d];
    const struct fdri_codec_record *r = v->head;
    bool gap = false;
    if (r->enter == r->leave) {
        v->zero_tick = r->enter;
        v->zero_next = r->ordinal + 1;
    }
    if (v->cursors) {
        struct fdri_events_cursor *c = v->cursor[v->head_cursor];
        if (__builtin_expect(++c->at == c->end, 0)) gap = refill(v);
    }
    if (v->cursors) pick_head(v);
    else no_cursor_left(v);
    if (__builtin_expect(gap && !s->careful, 0)) s->careful = fdri_events_careful_start(s); /* reads all heads */
    else if (__builtin_expect(s->careful, 0)) fdri_events_careful_update(s, d);
}

void fdri_events_stream_advance(struct fdri_events_stream *s, uint32_t d) { advance(s, d); }

/* ---- children ---- */

/* Is the zero-length call at `tick` with this tie a direct child of `top`? */
static inline bool tie_fits(const struct fdri_events_call *top, const struct fdri_codec_tie *tie, uint64_t tick)
{
    if (top->made_up || top->leave < tick) return false;
    if (!tie->parent_in_tick) return top->enter < tick;
    return top->enter == tick && top->ordinal_known && top->ordinal == tie->parent;
}

static inline bool is_child(const struct fdri_events_stream *s, const struct fdri_events_call *top,
                            const struct fdri_codec_record *r)
{
    if (r->enter < s->now || r->leave > top->leave) return false;
    return r->enter != r->leave || top == s->stack + s->base || tie_fits(top, &r->tie, r->enter);
}

#define ANYWHERE UINT64_MAX /* an unknown place */

static inline uint32_t ordinal_of(const struct fdri_events_depth *v, const struct fdri_codec_record *r)
{
    if (r->ordinal != FDRI_CODEC_ORDINAL_COUNTED) return r->ordinal;
    return v->zero_tick == r->enter ? v->zero_next : 0;
}

static bool gapped_at(const struct fdri_events_cursor *c, uint64_t tick)
{
    return c->gapped && c->gap_from <= tick && tick <= c->gap_to;
}

/* For a longer call that began in the tick of the cut. If it was on the copied stack, its frame has the ordinal. It
 * was not if the frame's call was already seen, as a zero-length call. */
static bool as_frame(const struct fdri_events_stream *s, const struct fdri_events_depth *v,
                     struct fdri_events_call *call, const struct fdri_codec_record *r)
{
    const struct fdri_file_location *l = s->location;
    uint32_t i = (uint32_t)(call - s->stack) - 1;
    const struct fdri_file_frame *frame = i < l->frame_count ? &l->frame[i] : NULL;
    if (!frame || frame->enter != r->enter || frame->region != r->id || frame->ordinal == FDRI_CODEC_ORDINAL_COUNTED)
        return false;
    if (v->zero_tick == r->enter && v->zero_next > frame->ordinal) return false;
    call->ordinal = frame->ordinal;
    return true;
}

/* A longer call comes after the zero-length calls of its depth that entered in the same tick. If some of these may
 * be missing, its ordinal is unknown. */
static void give_ordinal(const struct fdri_events_stream *s, const struct fdri_events_depth *v,
                         struct fdri_events_call *call, const struct fdri_codec_record *r)
{
    call->ordinal_known = true;
    call->place = r->ordinal == FDRI_FILE_NO_ORDINAL ? ANYWHERE : r->ordinal + 1ull;
    call->ordinal = ordinal_of(v, r);
    if (r->enter == r->leave) return;
    if (__builtin_expect(!s->careful, 1) || r->ordinal != FDRI_CODEC_ORDINAL_COUNTED) return;
    for (uint32_t i = 0; i < v->zero_cursor_count; i++)
        if (gapped_at(v->zero_cursors[i], r->enter)) call->ordinal_known = false;
    if (r->enter < v->unnumbered_until) call->ordinal_known = false;
    if (s->location->moving && r->enter >= s->location->cut) call->ordinal_known = as_frame(s, v, call, r);
}

/* ---- what is shown ---- */

static bool call_selected(const struct fdri_events_stream *s, const struct fdri_events_call *c, uint64_t enter_ns)
{
    const struct fdr_select *w = s->select;
    if (w->from_ns && c->leave_ns < w->from_ns) return false;
    if (w->to_ns && enter_ns > w->to_ns) return false;
    if (w->min_duration_ns && c->leave_ns - enter_ns < w->min_duration_ns) return false;
    return !w->regions || (c->id < w->region_count && w->regions[c->id]);
}

static inline void fill(const struct fdri_events_stream *s, struct fdr_read_event *e, uint8_t kind, uint64_t ns,
                        const struct fdri_events_call *c)
{
    e->time_ns = ns;
    e->location = s->location->id;
    e->kind = kind;
    e->class_ = FDRI_ARENA_CLASS_REGION;
    e->repaired = c->made_up;
    e->reduced = c->made_up;
    e->filtered = c->filtered;
    e->not_over = c->not_over;
    e->open = c->open;
    e->depth = s->depth;
    e->id = c->id;
    e->duration_ns = c->duration_ns;
    e->field_count = 0;
    e->ordinal_kind = FDR_ORDINAL_NONE;
    e->sample = NULL;
}

/* ---- steps ---- */

/* Pushes the head of depth d. Returns true if *e is its enter. */
static inline bool enter_call(struct fdri_events_stream *s, struct fdr_read_event *e)
{
    struct fdri_events_depth *v = &s->level[s->depth + 1];
    struct fdri_events_call *c = &s->stack[s->depth + 1];
    const struct fdri_codec_record *r = v->head;
    uint64_t enter_ns = fdri_file_ns(&s->clock, r->enter);
    c->enter = r->enter;
    c->leave = r->leave;
    c->id = r->id;
    c->made_up = c->filtered = c->not_over = c->placed = false;
    c->real_depth = s->depth + 1;
    c->open = r->leave == FDRI_EVENTS_OPEN;
    c->leave_ns = c->open ? s->location->info.to_ns : fdri_file_ns(&s->clock, r->leave);
    c->duration_ns = c->open ? 0 : c->leave_ns - enter_ns;
    give_ordinal(s, v, c, r);
    s->depth++;
    s->now = r->enter;
    s->now_ns = enter_ns;
    c->shown = s->unfiltered || call_selected(s, c, enter_ns);
    advance(s, s->depth);
    if (c->shown) fill(s, e, FDR_ENTER, enter_ns, c);
    return c->shown;
}

/* Did a filter keep the missing call of depth d around [enter, leave] out? That is certain only if no call that may
 * be around it was lost, given back, or open at the cut. */
static bool only_filtered(struct fdri_events_stream *s, uint32_t d, uint64_t enter, uint64_t leave)
{
    const struct fdri_file_location *l = s->location;
    const struct fdri_arena_level *v = fdri_file_level(s->file, l, d);
    if (!v || !v->filtered || v->reduced_gate || v->lost || l->block_damaged || l->levels_lost || l->parts_missing)
        return false;
    if (leave <= fdri_account_floor(l)) return false;
    if (l->moving && (leave > l->cut || !l->lost_open_until || l->lost_open_until[d] <= enter)) return false;
    for (uint32_t i = 0; i < FDRI_ARENA_BANDS * 2; i++) {
        const struct fdri_file_part *p = fdri_file_part(l, FDRI_ARENA_CLASS_REGION, d, i / 2, i & 1);
        if (p && leave <= p->floor) return false;
    }
    return !fdri_events_careful_gaps(s, d);
}

static bool longer(const struct fdri_codec_record *enters) { return enters->enter != enters->leave; }

static bool record_selected(const struct fdri_events_stream *s, const struct fdri_codec_record *r)
{
    uint64_t to = r->leave < FDRI_EVENTS_OPEN ? fdri_file_ns(&s->clock, r->leave) : s->location->info.to_ns;
    struct fdri_events_call like = {.leave_ns = to, .id = r->id};
    return call_selected(s, &like, fdri_file_ns(&s->clock, r->enter));
}

/* Enters a made-up parent for the head of depth `for_depth`: the real one was given back or never stored. */
static bool enter_made_up(struct fdri_events_stream *s, uint32_t for_depth, struct fdr_read_event *e)
{
    const struct fdri_codec_record *r = s->level[for_depth].head;
    struct fdri_events_call *c = &s->stack[s->depth + 1];
    s->now = r->enter;
    s->now_ns = fdri_file_ns(&s->clock, r->enter);
    /* its parent began in an earlier tick, and so did all ancestors */
    bool began_before = !longer(r) && !r->tie.parent_in_tick;
    *c = (struct fdri_events_call){.enter = r->enter,
                                   .leave = UINT64_MAX - 1,
                                   .id = 0,
                                   .made_up = true,
                                   .place = began_before ? 0 : ANYWHERE,
                                   .placed = began_before || s->stack[s->depth].placed,
                                   .real_depth = s->stack[s->depth].real_depth};
    const struct fdri_events_depth *v = &s->level[for_depth];
    const struct fdri_file_part *p = v->cursors && r->leave < FDRI_EVENTS_OPEN ? v->cursor[v->head_cursor]->part : NULL;
    uint64_t leave = r->leave < FDRI_EVENTS_OPEN ? r->leave : r->enter;
    c->not_over = fdri_events_not_over(s->file, s->location, s->depth + 1, p, r) &&
                  !fdri_events_careful_gaps(s, s->depth + 1);
    c->filtered = !c->not_over && only_filtered(s, s->depth + 1, r->enter, leave);
    c->shown = s->unfiltered || record_selected(s, r);
    s->depth++;
    if (c->shown) fill(s, e, FDR_ENTER, s->now_ns, c);
    return c->shown;
}

/* A made-up call is shown only when something in it is. Will r be shown? Then the outermost hidden one of the
 * made-up calls on top of the stack enters. */
static bool show_made_up(struct fdri_events_stream *s, const struct fdri_codec_record *r, struct fdr_read_event *e)
{
    uint32_t hidden = 0;
    for (uint32_t d = s->depth; s->stack[d].made_up && !s->stack[d].shown; d--) hidden = d;
    if (!hidden) return false;
    if (!(s->stack[hidden].shown = record_selected(s, r))) return false;
    s->now = r->enter;
    s->now_ns = fdri_file_ns(&s->clock, r->enter);
    fill(s, e, FDR_ENTER, s->now_ns, &s->stack[hidden]);
    e->depth = hidden;
    return true;
}

static inline bool leave_top(struct fdri_events_stream *s, struct fdr_read_event *e)
{
    const struct fdri_events_call *c = &s->stack[s->depth];
    if (__builtin_expect(c->made_up || c->open, 0)) {
        uint64_t end = c->not_over ? s->location->info.to_ns : c->open ? c->leave_ns : 0;
        uint64_t ns = end > s->now_ns ? end : s->now_ns;
        if (c->shown) fill(s, e, FDR_LEAVE, ns, c);
        e->repaired = true;
        s->now_ns = ns;
    } else {
        s->now = c->leave;
        s->now_ns = c->leave_ns;
        if (c->shown) fill(s, e, FDR_LEAVE, c->leave_ns, c);
    }
    s->depth--;
    return c->shown;
}

/* ---- points ---- */

/* The place of the call of depth d around the point, in the point's tick. 0: the call began earlier; else its
 * ordinal + 1. */
static uint64_t place_of(const struct fdri_events_point *p, uint32_t d)
{
    uint32_t i = p->depth - d;
    if (i < p->place.links) return p->place.link[i] + 1ull;
    return p->place.cut ? ANYWHERE : 0;
}

/* The calls between the stack and the entering call of depth `at` are missing and will be made up. Does the point
 * stand before all of these? */
static bool before_made_up(const struct fdri_events_point *p, uint32_t at, const struct fdri_codec_record *enters)
{
    if (p->depth + 1u < at) { /* the point lies in a missing call, or around all of them */
        if (longer(enters)) return true;
        /* the calls around the entering one began earlier, so a point outside of them comes after them */
        if (!enters->tie.parent_in_tick) return false;
        return p->depth + 2u < at || enters->tie.parent >= p->place.sibling;
    }
    if (p->depth + 1u == at) return longer(enters) || enters->ordinal >= p->place.sibling;
    uint64_t place = place_of(p, at);
    return place != ANYWHERE && place < enters->ordinal + 1ull;
}

/* Is the call of depth d around the point, if the point's record names it, still to come? */
static bool call_is_to_come(const struct fdri_events_stream *s, const struct fdri_events_point *p, uint32_t d,
                            uint64_t tick)
{
    uint32_t i = p->depth - d;
    const struct fdri_events_depth *v = d <= s->depth_max && i < p->place.links ? &s->level[d] : NULL;
    return v && v->head->enter == tick && ordinal_of(v, v->head) <= p->place.link[i];
}

/* Is any call that the point's record names still to come? */
static bool any_call_is_to_come(const struct fdri_events_stream *s, const struct fdri_events_point *p, uint64_t tick)
{
    for (uint32_t d = p->depth; d > s->depth && p->depth - d < p->place.links; d--)
        if (call_is_to_come(s, p, d, tick)) return true;
    return false;
}

/* Does the point stand before the step at its tick? This compares the calls around the point with those on the
 * stack, then with the entering call of depth `at`. */
static bool stands_before(const struct fdri_events_stream *s, const struct fdri_events_point *p, uint64_t tick,
                          const struct fdri_codec_record *enters, uint32_t at)
{
    uint32_t k = s->depth;
    for (uint32_t d = s->base + 1; d <= k && d <= p->depth; d++) {
        const struct fdri_events_call *c = &s->stack[d];
        /* A made-up call may stand for several calls. In later ticks it is unknown for which. */
        uint64_t want = place_of(p, d), have = c->enter == tick ? c->place : c->made_up ? ANYWHERE : 0;
        /* it does not stand for the call still to come */
        if (have == ANYWHERE && c->made_up && call_is_to_come(s, p, d, tick)) return false;
        if (have == ANYWHERE || want == ANYWHERE || want == have) continue;
        return want < have;
    }
    if (p->depth < k) { /* a longer call in the point's sibling could not be over in this tick */
        const struct fdri_events_call *c = &s->stack[p->depth + 1];
        if (enters && longer(enters)) return true;
        if (enters && c->made_up && p->depth + 1u == k && at == k + 1 && enters->tie.parent_in_tick &&
            enters->tie.parent >= p->place.sibling)
            return true; /* the entering call's parent came after the point */
        return !c->made_up && c->place != ANYWHERE && c->enter == tick && c->place > p->place.sibling;
    }
    if (p->depth > k && place_of(p, k + 1) == ANYWHERE) return false;
    if (!enters) return place_of(p, k) != ANYWHERE || k == s->base || !any_call_is_to_come(s, p, tick);
    if (at > k + 1) return before_made_up(p, at, enters);
    if (p->depth == k) return longer(enters) || enters->ordinal >= p->place.sibling;
    return place_of(p, k + 1) < enters->ordinal + 1ull;
}

/* Does the point lie in this zero-length call, by its record? `unknown`: the answer if the record does not say. */
static bool is_inside(const struct fdri_events_point *p, const struct fdri_codec_record *r, uint32_t at, bool unknown)
{
    if (p->depth < at) return false;
    uint64_t place = place_of(p, at);
    return place == ANYWHERE ? unknown : place == r->ordinal + 1ull;
}

/* Must the first pending point come before the step at `tick`? If any pending point must, so must all points before
 * it. */
static bool point_is_due(const struct fdri_events_stream *s, uint64_t tick, const struct fdri_codec_record *enters,
                         uint32_t at)
{
    const struct fdri_events_points *q = &s->points;
    if (q->tick != tick) return q->tick < tick;
    for (uint32_t i = 0; i < q->count; i++) {
        const struct fdri_events_point *p = &q->pending[(q->first + i) % FDRI_EVENTS_PENDING];
        if (!p->place.not_first_in_tick || stands_before(s, p, tick, enters, at)) return true;
        /* it lies in the entering call, so earlier points outside of that call came before the call */
        if (i && enters && !longer(enters) && is_inside(p, enters, at, false) &&
            !is_inside(&q->pending[q->first], enters, at, true))
            return true;
    }
    return false;
}

static void kind_of(struct fdr_read_event *e, const struct fdri_events_point *p)
{
    const struct fdri_classes_class *c = &fdri_classes[p->class_];
    e->kind = fdri_classes_kind(p->class_, p->record.id)->number;
    e->id = p->record.id >> c->id_shift;
    if (p->class_ == FDRI_ARENA_CLASS_SAMPLE)
        e->id = p->path && p->path->region_count ? p->path->region[p->path->region_count - 1] : 0;
}

/* A value that the id carries comes first. */
static void copy_fields(struct fdr_read_event *e, const struct fdri_events_point *p)
{
    const struct fdri_classes_class *c = &fdri_classes[p->class_];
    const struct fdri_classes_kind *k = fdri_classes_kind(p->class_, p->record.id);
    uint32_t before = c->value_mask != 0 && p->field_count < FDRI_CODEC_FIELDS_MAX, count = p->field_count;
    if (before) e->field[0] = p->record.id >> c->value_shift & c->value_mask;
    for (uint32_t i = 0; i < count; i++)
        e->field[before + i] = i < k->fields && k->field[i].zigzag ? fdri_codec_unzigzag(p->field[i]) : p->field[i];
    e->field_count = before + count;
}

static void copy_number(struct fdr_read_event *e, const struct fdri_events_point *p)
{
    static const uint8_t kind[] = {FDR_ORDINAL_NONE, FDR_ORDINAL_KNOWN, FDR_ORDINAL_KNOWN, FDR_ORDINAL_OPEN,
                                   FDR_ORDINAL_SHARED};
    if (!fdri_codec_numbers_in(p->class_)) return;
    e->ordinal_kind = kind[p->numbered];
    e->ordinal = p->number;
}

static bool show_point(struct fdri_events_stream *s, struct fdr_read_event *e)
{
    const struct fdri_events_point *p = &s->points.pending[s->points.first];
    const struct fdr_select *w = s->select;
    uint64_t ns = fdri_file_ns(&s->clock, p->record.enter);
    bool shown = (!w->from_ns || ns >= w->from_ns) && (!w->to_ns || ns <= w->to_ns);
    if (p->path) shown = shown && fdri_events_sample_wanted(w, p->path);
    /* the deeper calls on the stack were over by then, but the copy lacks their records */
    if (s->location->moving && p->depth < s->depth) shown = false;
    s->now = p->record.enter;
    s->now_ns = ns;
    if (shown) {
        *e = (struct fdr_read_event){
            .time_ns = ns, .location = s->location->id, .class_ = p->class_, .depth = p->depth};
        if (p->path) fdri_events_show_sample(e, p->path);
        kind_of(e, p);
        copy_fields(e, p);
        copy_number(e, p);
    }
    fdri_events_points_next(&s->points);
    return shown;
}

/* ---- the next event ---- */

/* Drops everything that begins after s->stop_tick. All points up to there were returned before. */
static bool stop_entering(struct fdri_events_stream *s)
{
    for (uint32_t d = s->base; d <= s->depth_max; d++) {
        s->level[d].cursors = 0;
        s->level[d].has_frame = false;
        s->level[d].head = &no_more;
    }
    s->points.tick = UINT64_MAX;
    return !s->careful || fdri_events_careful_start(s);
}

/* Is the top call made up, and deeper than the first pending point? Then it ends before the point. */
static bool stands_outside(const struct fdri_events_stream *s)
{
    return s->stack[s->depth].made_up && s->points.pending[s->points.first].depth < s->depth;
}

/* A made-up call may stand for several calls. From the first end of a call in it, its place is unknown. */
static bool leave_careful(struct fdri_events_stream *s, struct fdr_read_event *e)
{
    bool shown = leave_top(s, e);
    for (uint32_t d = s->depth; d > s->base && s->stack[d].placed; d--)
        s->stack[d].place = ANYWHERE, s->stack[d].placed = false;
    return shown;
}

static __attribute__((noinline)) bool careful_next(struct fdri_events_stream *s, struct fdr_read_event *e)
{
    for (;;) {
        if (s->point_next) {
            bool outside = stands_outside(s);
            s->point_next = outside;
            if (outside ? leave_careful(s, e) : show_point(s, e)) return true;
            continue;
        }
        uint32_t d = 0;
        enum fdri_events_step step = fdri_events_careful_step(s, &d);
        const struct fdri_events_call *top = &s->stack[s->depth];
        const struct fdri_codec_record *r = step == FDRI_EVENTS_CALL || step == FDRI_EVENTS_MAKE_UP ? s->level[d].head
                                                                                                    : NULL;
        uint64_t end = top->not_over && s->location->cut > s->now ? s->location->cut : s->now;
        uint64_t tick = r ? r->enter : step == FDRI_EVENTS_END ? UINT64_MAX - 1 : top->made_up ? end : top->leave;
        if (r && r->enter > s->stop_tick && s->points.tick > s->stop_tick) {
            if (stop_entering(s)) continue;
            return false;
        }
        if (tick >= s->points.tick && point_is_due(s, tick, r, d)) {
            s->point_next = true;
        } else if (step == FDRI_EVENTS_END) {
            return false;
        } else if (r && show_made_up(s, r, e)) {
            return true;
        } else if (step == FDRI_EVENTS_CALL      ? enter_call(s, e)
                   : step == FDRI_EVENTS_MAKE_UP ? enter_made_up(s, d, e)
                                                 : leave_careful(s, e)) {
            return true;
        }
    }
}

bool fdri_events_stream_next(struct fdri_events_stream *s, struct fdr_read_event *e)
{
    while (!s->careful) {
        const struct fdri_events_call *top = &s->stack[s->depth];
        const struct fdri_codec_record *r = s->level[s->depth + 1].head;
        bool child = is_child(s, top, r);
        /* neither inside of the top call nor after it: a call is missing */
        if (__builtin_expect(!child && r->enter < top->leave, 0)) {
            s->careful = fdri_events_careful_start(s);
            if (!s->careful) return false;
            break;
        }
        if (__builtin_expect(child && r->enter > s->stop_tick, 0) && s->points.tick > s->stop_tick && stop_entering(s))
            continue;
        uint64_t tick = child ? r->enter : top->leave;
        if (__builtin_expect(tick >= s->points.tick, 0) && point_is_due(s, tick, child ? r : NULL, s->depth + 1)) {
            if (show_point(s, e)) return true;
        } else if (child) {
            if (enter_call(s, e)) return true;
        } else if (s->depth > s->base) {
            if (leave_top(s, e)) return true;
        } else {
            return false;
        }
    }
    return careful_next(s, e);
}
