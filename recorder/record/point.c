/* SPDX-License-Identifier: MIT */
/* Records events without duration: metrics, markers, input and output, user events, and those of message_point.c. Each
 * class has its own partition at the depth where the event happens (Wagner 2015, 4.2). */
#include <fdr/fdr.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/atomic.h"
#include "base/bits.h"
#include "format/arena/arena.h"
#include "format/classes/class_table.h"
#include "format/codec/bit_length.h"
#include "format/codec/encode.h"
#include "format/codec/prediction.h"
#include "format/codec/record_codec.h"
#include "recorder/recording.h"
#include "recorder/memory/memory.h"
#include "recorder/names/names.h"
#include "recorder/record/point.h"
#include "recorder/record/record.h"
#include "recorder/thread/arena_place.h"
#include "recorder/thread/thread.h"
#include "recorder/thread/thread_clock.h"
#include "recorder/thread/thread_state.h"
#include "recorder/totals/totals.h"
#include "recorder/watch/watch.h"

/* The depth at which the point is stored: that of the open calls, except for readings. */
static uint32_t depth_of(struct fdri_thread *t, const struct fdri_record_point *e)
{
    uint32_t depth = e->reading ? fdri_record_reading_depth(t, e->before, e->number) : t->loc->depth;
    /* deeper user events of this location are readings */
    if (!e->reading && fdri_record_is_reading(t->loc, e->class_, depth)) return 0;
    return depth;
}

struct fdri_arena_level_points *fdri_record_points_of(struct fdri_thread *t, uint32_t depth)
{
    struct fdri_arena_level *v = depth == t->loc->depth ? t->top : fdri_thread_level(t, depth);
    if (!v->points_off) t->search_barriers = 0;
    if (!v->points_off)
        v->points_off = fdri_memory_meta(t, FDRI_ARENA_META_POINTS, sizeof(struct fdri_arena_level_points));
    return v->points_off ? fdri_thread_at(t, v->points_off) : NULL;
}

static uint32_t ordinal_now(const struct fdri_arena_level *v, uint64_t tick)
{
    return v->zero_tick == tick ? v->zero_count : 0;
}

/* Adds to `place` the ordinals of the open calls that began in this tick, innermost first. Marks these calls, so that
 * their records store their ordinals. So no point names a longer call whose record stores none. Such a call needs no
 * count of the calls before it, and those may be gone. */
static void add_links(struct fdri_thread *t, uint64_t tick, struct fdri_codec_standing *place)
{
    uint32_t bits = 0;
    for (uint32_t d = t->loc->depth; d; d--) {
        struct fdri_arena_level *v = fdri_thread_level(t, d);
        if (v->enter_tick >> t->shift != tick) break;
        uint32_t ordinal = ordinal_now(v, tick);
        bits += 2 * fdri_codec_bitlen(ordinal + 1ull);
        place->cut = place->links == FDRI_CODEC_LINKS_MAX || bits > FDRI_CODEC_LINKS_BITS;
        if (place->cut) break;
        place->link[place->links++] = ordinal;
        if (!(v->flags & FDRI_ARENA_LEVEL_UNTIMED)) v->flags |= FDRI_ARENA_LEVEL_ORDINAL;
    }
    if (place->links) t->tie_tick_end = tick + 1;
}

/* The place of the event among the events of its tick. */
static void find_place(struct fdri_thread *t, uint64_t tick, struct fdri_codec_standing *place)
{
    const struct fdri_arena_location *l = t->loc;
    place->not_first_in_tick = l->last_tick >> t->shift == tick;
    place->links = 0;
    place->cut = false;
    place->sibling = place->point = 0;
    if (!place->not_first_in_tick) return;
    add_links(t, tick, place);
    if (l->depth < fdri_arena_levels_in(l->level_blocks))
        place->sibling = ordinal_now(fdri_thread_level(t, l->depth + 1), tick);
    place->point = l->point_tick == tick ? l->point_count : 0;
}

/* Number of fields that the table of p's open bin has room for. It is fewer than the event has, if its type was defined
 * after the table was made. */
static uint32_t fields_of(struct fdri_thread *t, const struct fdri_arena_part *p)
{
    const struct fdri_arena_meta_head *h = fdri_thread_at(t, p->table_off - (uint32_t)sizeof *h);
    return fdri_codec_point_table_fields(p->class_, h->bytes - (uint32_t)sizeof *h, p->context_mask + 1);
}

static void encode(struct fdri_thread *t, struct fdri_arena_part *p, struct fdri_arena_bin *bin,
                   const struct fdri_record_point *e, uint64_t tick, const struct fdri_codec_standing *place)
{
    struct fdri_codec_table *table = fdri_thread_at(t, p->table_off);
    uint8_t *payload = (uint8_t *)bin + FDRI_ARENA_BIN_HEADER;
    uint64_t gap = tick - p->last_tick;
    if (e->numbered == FDRI_CODEC_NUMBER_NONE)
        fdri_codec_encode_point(p, table, fields_of(t, p), payload, e->id, gap, place, e->field, e->count,
                                e->store_count);
    else
        fdri_codec_encode_numbered(p, table, fields_of(t, p), payload, e->id, gap, place, e->field, e->count,
                                   e->numbered, e->ordinal);
}

static void store(struct fdri_thread *t, const struct fdri_record_point *e, uint64_t full_tick,
                  struct fdri_arena_level_points *points, uint32_t depth)
{
    struct fdri_arena_location *l = t->loc;
    uint64_t tick = full_tick >> t->shift;
    struct fdri_codec_standing place;
    find_place(t, tick, &place);
    uint32_t *slot = &points->by_class[e->class_].part;
    if (l->point_tick != tick) l->point_tick = tick, l->point_count = 0;
    l->point_count++;
    struct fdri_arena_part *p = *slot > FDRI_THREAD_GATE_CLOSED ? fdri_thread_at(t, *slot) : NULL;
    uint32_t fields = e->count + (e->numbered != FDRI_CODEC_NUMBER_NONE);
    if (!p || FDRI_ARENA_COMMIT_BITS(p->progress) + fdri_codec_point_bits(&place, fields) > p->limit ||
        fields > fields_of(t, p))
        p = fdri_memory_room(t, slot, depth, e->class_, 0, &points->by_class[e->class_].reduced_gate,
                             &points->by_class[e->class_].lost);
    if (!p) return;
    struct fdri_arena_bin *bin = fdri_thread_at(t, p->open_off);
    encode(t, p, bin, e, tick, &place);
    p->last_tick = tick;
    fdri_atomic_signal_fence();
    fdri_atomic_store_release(&bin->commit, fdri_codec_commit_word(p)); /* R:commit */
}

/* Messages, and collectives at their end, count for the regions in which they are. */
static void count_traffic(struct fdri_thread *t, const struct fdri_record_point *e)
{
    if (e->class_ == FDRI_ARENA_CLASS_MESSAGE && e->id != FDRI_CODEC_RESOLVE)
        fdri_totals_count_traffic(t, e->id == FDRI_CODEC_SEND ? FDRI_ARENA_TRAFFIC_SENDS : FDRI_ARENA_TRAFFIC_RECEIVES,
                                  e->field[3], 0);
    if (e->class_ == FDRI_ARENA_CLASS_COLLECTIVE && e->id & 1)
        fdri_totals_count_traffic(t, FDRI_ARENA_TRAFFIC_COLLECTIVES, e->field[2], e->field[3]);
}

uint64_t fdri_record_present(const struct fdri_record_point *e, enum fdri_arena_value_type type, uint64_t value,
                             bool live, uint64_t time_ns)
{
    if (!fdri_atomic_load_relaxed(&fdr_switch_.on)) return 0;
    struct fdri_thread *t = fdri_thread_begin(live ? FDRI_THREAD_LIVE : FDRI_THREAD_NS);
    if (!t) return 0;
    struct fdri_arena_location *l = t->loc;
    uint64_t tick = 0;
    uint32_t depth = depth_of(t, e);
    struct fdri_arena_level_points *points = fdri_record_points_of(t, depth);
    if (points) fdri_atomic_bump_relaxed(&points->by_class[e->class_].presented, 1);
    else /* totals and triggers get it anyway */
        fdri_atomic_add_relaxed(&fdri_life_recording.arena.super->lost_unattached, 1u);
    if (l->pause) {
        if (points) fdri_atomic_bump_relaxed(&points->by_class[e->class_].filtered, 1);
    } else {
        tick = live ? fdri_thread_clamp_live(t, fdri_thread_tick_live(t)) : fdri_thread_tick_at(t, time_ns);
        uint32_t key = fdri_classes_row_key(e->class_, e->id);
        if (points) store(t, e, tick, points, depth);
        if (fdri_classes_kind(e->class_, e->id)->totals != FDRI_CLASSES_NO_ROW)
            fdri_totals_count_point(t, key, type, value, e->began && e->began < tick ? tick - e->began : 0);
        count_traffic(t, e);
        if (FDRI_UNLIKELY(fdri_atomic_load_relaxed(&fdri_watch_classes) >> e->class_ & 1))
            fdri_watch_point(t, key, type, value, e->field, e->count, tick);
        l->last_tick = tick;
    }
    fdri_thread_end(t);
    return tick;
}

/* ---- metrics ---- */

static void metric(uint32_t id, enum fdri_arena_value_type type, uint64_t value, bool live, uint64_t time_ns)
{
    struct fdri_record_point e = {
        .class_ = FDRI_ARENA_CLASS_METRIC, .id = id > FDRI_CODEC_ID_MAX ? 0 : id, .count = 1, .field = {value}};
    fdri_record_present(&e, type, value, live, time_ns);
}

/* A value of another type is converted to the metric's type. A value outside its range becomes the nearest one in
 * range, and NaN becomes 0. */
static uint64_t of_double(uint32_t type, double v)
{
    if (type == FDRI_ARENA_VALUE_F64) return fdri_bits_of_double(v);
    if (v != v) return 0;
    if (type == FDRI_ARENA_VALUE_U64) return v >= 0x1p64 ? UINT64_MAX : v > 0 ? (uint64_t)v : 0;
    if (v < -0x1p63) return (uint64_t)INT64_MIN;
    return v >= 0x1p63 ? INT64_MAX : (uint64_t)(int64_t)v;
}
static void metric_u64(uint32_t id, uint64_t v, bool live, uint64_t time_ns)
{
    uint32_t type = fdri_names_metric_type(id);
    uint64_t value = type == FDRI_ARENA_VALUE_F64   ? fdri_bits_of_double((double)v)
                     : type == FDRI_ARENA_VALUE_I64 ? fdri_bits_min(v, INT64_MAX)
                                                    : v;
    metric(id, (enum fdri_arena_value_type)type, value, live, time_ns);
}
static void metric_i64(uint32_t id, int64_t v, bool live, uint64_t time_ns)
{
    uint32_t type = fdri_names_metric_type(id);
    uint64_t value = type == FDRI_ARENA_VALUE_F64            ? fdri_bits_of_double((double)v)
                     : type == FDRI_ARENA_VALUE_U64 && v < 0 ? 0
                                                             : (uint64_t)v;
    metric(id, (enum fdri_arena_value_type)type, value, live, time_ns);
}
static void metric_f64(uint32_t id, double v, bool live, uint64_t time_ns)
{
    uint32_t type = fdri_names_metric_type(id);
    metric(id, (enum fdri_arena_value_type)type, of_double(type, v), live, time_ns);
}
void fdr_metric_u64(fdr_metric_id id, uint64_t v) { metric_u64(id, v, true, 0); }
void fdr_metric_i64(fdr_metric_id id, int64_t v) { metric_i64(id, v, true, 0); }
void fdr_metric_f64(fdr_metric_id id, double v) { metric_f64(id, v, true, 0); }
void fdr_metric_u64_at(fdr_metric_id id, uint64_t v, uint64_t time_ns) { metric_u64(id, v, false, time_ns); }
void fdr_metric_i64_at(fdr_metric_id id, int64_t v, uint64_t time_ns) { metric_i64(id, v, false, time_ns); }
void fdr_metric_f64_at(fdr_metric_id id, double v, uint64_t time_ns) { metric_f64(id, v, false, time_ns); }

/* ---- markers ---- */

static void marker(uint32_t id, uint64_t value, bool live, uint64_t time_ns)
{
    struct fdri_record_point e = {
        .class_ = FDRI_ARENA_CLASS_MARKER, .id = id > FDRI_CODEC_ID_MAX ? 0 : id, .count = 1, .field = {value}};
    fdri_record_present(&e, FDRI_ARENA_VALUE_U64, value, live, time_ns);
}
void fdr_marker(fdr_marker_id id, uint64_t value) { marker(id, value, true, 0); }
void fdr_marker_at(fdr_marker_id id, uint64_t value, uint64_t time_ns) { marker(id, value, false, time_ns); }

/* ---- input and output ---- */

/* The id names the file, the operation, and whether it is the end. */
static uint32_t io_id(uint32_t file, uint32_t operation, uint32_t end)
{
    uint32_t known = file <= FDRI_CODEC_ID_MAX >> 4 ? file : 0;
    return known << 4 | (operation < FDR_IO_OTHER ? operation : FDR_IO_OTHER) << 1 | end;
}

/* Fields at the end that are 0 or not known are left out. */
static uint64_t io_begin(uint32_t file, uint32_t operation, uint64_t bytes, uint64_t offset, bool live,
                         uint64_t time_ns)
{
    struct fdri_record_point e = {.class_ = FDRI_ARENA_CLASS_IO,
                                  .id = io_id(file, operation, 0),
                                  .store_count = true,
                                  .count = offset != FDR_IO_NO_OFFSET ? 2 : bytes != 0,
                                  .field = {bytes, offset}};
    return fdri_record_present(&e, FDRI_ARENA_VALUE_U64, 0, live, time_ns);
}
static void io_end(uint32_t file, uint32_t operation, uint64_t bytes, int error, uint64_t began, bool live,
                   uint64_t time_ns)
{
    struct fdri_record_point e = {.class_ = FDRI_ARENA_CLASS_IO,
                                  .id = io_id(file, operation, 1),
                                  .store_count = true,
                                  .count = error ? 2 : bytes != 0,
                                  .began = began,
                                  .field = {bytes, (uint32_t)error}};
    fdri_record_present(&e, FDRI_ARENA_VALUE_U64, bytes, live, time_ns);
}
uint64_t fdr_io_begin(fdr_io_file file, uint32_t operation, uint64_t bytes, uint64_t offset)
{
    return io_begin(file, operation, bytes, offset, true, 0);
}
void fdr_io_end(fdr_io_file file, uint32_t operation, uint64_t bytes, int error, uint64_t began)
{
    io_end(file, operation, bytes, error, began, true, 0);
}
uint64_t fdr_io_begin_at(fdr_io_file file, uint32_t operation, uint64_t bytes, uint64_t offset, uint64_t time_ns)
{
    return io_begin(file, operation, bytes, offset, false, time_ns);
}
void fdr_io_end_at(fdr_io_file file, uint32_t operation, uint64_t bytes, int error, uint64_t began, uint64_t time_ns)
{
    io_end(file, operation, bytes, error, began, false, time_ns);
}

/* ---- user events ---- */

static uint64_t read_field(const void *payload, uint8_t type, uint16_t offset)
{
    const uint8_t *p = (const uint8_t *)payload + offset;
    uint64_t u = 0;
    uint32_t w;
    float f;
    switch (type) {
    case FDR_U32: memcpy(&w, p, 4); return w;
    case FDR_I32: memcpy(&w, p, 4); return (uint64_t)(int64_t)(int32_t)w;
    case FDR_F32: memcpy(&f, p, 4); return fdri_bits_of_double((double)f);
    default: memcpy(&u, p, 8); return u;
    }
}

static void user_event(struct fdri_record_point e, fdr_event_type type, const void *payload, bool live,
                       uint64_t time_ns)
{
    const struct fdri_names_event_shape *shape = fdri_names_event_shape(type);
    e.class_ = FDRI_ARENA_CLASS_USER;
    e.id = type > FDRI_CODEC_ID_MAX ? 0 : type;
    e.store_count = true;
    if (shape && payload) {
        e.count = fdri_atomic_load_acquire(&shape->count); /* A:shape */
        for (uint32_t i = 0; i < e.count; i++) e.field[i] = read_field(payload, shape->type[i], shape->offset[i]);
    }
    fdri_record_present(&e, FDRI_ARENA_VALUE_U64, 0, live, time_ns);
}
void fdr_event(fdr_event_type type, const void *payload)
{
    user_event((struct fdri_record_point){.reading = false}, type, payload, true, 0);
}
void fdr_event_at(fdr_event_type type, const void *payload, uint64_t time_ns)
{
    user_event((struct fdri_record_point){.reading = false}, type, payload, false, time_ns);
}
void fdr_reading(fdr_event_type type, const void *payload, uint64_t before, uint64_t number)
{
    user_event((struct fdri_record_point){.reading = true, .before = before, .number = number}, type, payload, true, 0);
}
