/* SPDX-License-Identifier: MIT */
/* Merges the points of one location, of all classes and depths, in the order in which they happened. That is by tick,
 * then by their ordinal in the tick. Up to FDRI_EVENTS_PENDING points of one tick are read ahead: any of them may say
 * which comes before a call of that tick. */
#include "format/arena/arena.h"
#include "reader/events/cursor.h"
#include "reader/events/events.h"
#include "reader/events/point_merge.h"
#include "reader/events/sample_events.h"
#include "reader/file/file.h"

#include <fdr/reader.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static bool comes_before(const struct fdri_events_cursor *a, const struct fdri_events_cursor *b)
{
    if (a->at->enter != b->at->enter) return a->at->enter < b->at->enter;
    /* a cursor holds one record, so its decoder has that record's place */
    uint32_t m = a->decoder.place.point, n = b->decoder.place.point;
    if (m != n) return m < n;
    return a->part < b->part;
}

static void sift(struct fdri_events_points *q, size_t i)
{
    for (;;) {
        size_t least = i;
        for (size_t child = 2 * i + 1; child <= 2 * i + 2 && child < q->heap_count; child++)
            if (comes_before(q->heap[child], q->heap[least])) least = child;
        if (least == i) return;
        struct fdri_events_cursor *swap = q->heap[i];
        q->heap[i] = q->heap[least];
        q->heap[least] = swap;
        i = least;
    }
}

static void pull(struct fdri_events_points *q)
{
    struct fdri_events_cursor *c = q->heap[0];
    struct fdri_events_point *p = &q->pending[(q->first + q->count) % FDRI_EVENTS_PENDING];
    p->record = *c->at;
    p->place = c->decoder.place;
    p->depth = q->readings && c->part->class_ == FDRI_ARENA_CLASS_USER ? 0 : c->part->depth;
    p->class_ = c->part->class_;
    p->field_count = (uint8_t)c->decoder.field_count;
    p->numbered = (uint8_t)c->decoder.numbered;
    p->number = c->decoder.number;
    memcpy(p->field, c->decoder.fields, p->field_count * sizeof *p->field);
    p->path = q->paths && p->class_ == FDRI_ARENA_CLASS_SAMPLE ? fdri_events_path(q->paths, c->decoder.sample) : NULL;
    q->count++;
    if (!fdri_events_cursor_fill(c)) q->heap[0] = q->heap[--q->heap_count];
    if (q->heap_count) sift(q, 0);
}

static void refill(struct fdri_events_points *q)
{
    if (!q->count && q->heap_count) pull(q);
    q->tick = q->count ? q->pending[q->first].record.enter : UINT64_MAX;
    if (q->paths) return; /* samples lie in no call, so each is returned alone */
    while (q->count && q->count < FDRI_EVENTS_PENDING && q->heap_count && q->heap[0]->at->enter == q->tick) pull(q);
}

void fdri_events_points_next(struct fdri_events_points *q)
{
    q->first = (q->first + 1) % FDRI_EVENTS_PENDING;
    q->count--;
    refill(q);
}

static bool is_selected(const struct fdri_file_location *l, const struct fdri_file_part *p, const struct fdr_select *s)
{
    uint32_t depth = fdri_events_is_reading(l, p->class_, p->depth) ? 0 : p->depth;
    if (p->class_ == FDRI_ARENA_CLASS_SAMPLE) return p->any && fdri_events_class_selected(s, p->class_);
    return p->class_ != FDRI_ARENA_CLASS_REGION && p->any && fdri_events_class_selected(s, p->class_) &&
           depth >= s->depth_min && (!s->depth_max || depth <= s->depth_max);
}

bool fdri_events_points_open(struct fdri_events_points *q, struct fdr_file *f, struct fdri_file_location *l,
                             const struct fdr_select *s, uint64_t min_tick)
{
    size_t count = 0;
    for (size_t i = 0; i < l->part_count; i++) count += is_selected(l, &l->part[i], s);
    memset(q, 0, sizeof *q);
    q->tick = UINT64_MAX;
    q->readings = l->raw.flags & FDRI_ARENA_LOCATION_READINGS;
    if (!count) return true;
    q->memory = fdri_file_malloc(count * sizeof *q->memory);
    q->heap = fdri_file_malloc(count * sizeof *q->heap);
    if (!q->memory || !q->heap) return false;
    if (l->raw.samples_off && (q->paths = fdri_file_malloc(sizeof *q->paths))) {
        q->paths->number = fdri_events_samples_from(f, l);
        q->paths->next = 0;
        min_tick = 0; /* the weight of a sample needs the sample before it */
    }
    for (size_t i = 0; i < l->part_count; i++) {
        struct fdri_file_part *p = &l->part[i];
        if (!is_selected(l, p, s)) continue;
        struct fdri_events_cursor *c = &q->memory[q->memory_count++];
        fdri_events_cursor_init(c, f, l, p, p->min_leave > min_tick ? p->min_leave : min_tick, 1);
        if (fdri_events_cursor_fill(c)) q->heap[q->heap_count++] = c;
    }
    for (size_t i = q->heap_count / 2; i-- > 0;) sift(q, i);
    refill(q);
    return true;
}

void fdri_events_points_close(struct fdri_events_points *q)
{
    for (size_t i = 0; i < q->memory_count; i++) fdri_events_cursor_done(&q->memory[i]);
    free(q->paths);
    free(q->heap);
    free(q->memory);
}
