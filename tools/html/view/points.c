/* SPDX-License-Identifier: MIT */
/* Points of a window: samples, messages, collectives, metrics, markers, events. Those of one kind and id that lie in
 * the same cell become one. */
#include "tools/html/view/view_window.h"

#include <stdlib.h>
#include <string.h>

/* Places in `last`, by kind and id. If two kinds share a place, their points are not summed. */
enum { KINDS = 64 };

struct summing {
    struct view_points *points;
    double cell_ns;
    uint32_t last[KINDS]; /* 1 + index of the newest point of this kind and id; 0: none */
};

static double value_of(const struct fdr_file *file, const struct fdr_read_event *e)
{
    double f;
    enum fdr_value_type type = FDR_VALUE_U64;
    uint64_t bits = e->field_count ? e->field[0] : 0;
    if (e->kind == FDR_SEND || e->kind == FDR_RECV) return (double)e->field[3];
    if (e->kind == FDR_METRIC) type = fdr_metric_info(file, e->id)->type;
    if (type == FDR_VALUE_I64) return (double)(int64_t)bits;
    if (type == FDR_VALUE_U64) return (double)bits;
    memcpy(&f, &bits, sizeof f);
    return f;
}

static struct view_point point_of(const struct fdr_file *file, const struct view_window *w,
                                  const struct fdr_read_event *e)
{
    struct view_point p = {.kind = e->kind, .id = e->id, .count = 1};
    p.time_ns = p.last_ns = (double)(int64_t)(e->time_ns - w->base_ns);
    p.value = p.least = p.greatest = value_of(file, e);
    if (e->kind == FDR_SEND || e->kind == FDR_RECV) {
        p.peer = (uint32_t)e->field[0];
        p.tag = (uint32_t)e->field[1];
        p.comm = (uint32_t)e->field[2];
    }
    if (e->sample) {
        p.pc = (double)e->sample->pc;
        p.peer = e->sample->frame_count;
        p.id = e->sample->region_count ? e->sample->region[e->sample->region_count - 1] : 0;
    }
    return p;
}

static bool joins(const struct summing *s, const struct view_point *a, const struct view_point *b)
{
    return a->kind == b->kind && a->id == b->id && a->peer == b->peer && a->pc == b->pc &&
           (int64_t)(a->time_ns / s->cell_ns) == (int64_t)(b->time_ns / s->cell_ns);
}

static void join(struct view_point *sum, const struct view_point *p)
{
    sum->last_ns = p->time_ns;
    sum->value = p->value;
    if (p->value < sum->least) sum->least = p->value;
    if (p->value > sum->greatest) sum->greatest = p->value;
    sum->count++;
}

static void add(struct summing *s, const struct view_point *p)
{
    struct view_points *points = s->points;
    uint32_t *last = &s->last[(p->kind * 31 + p->id * 7 + p->peer) % KINDS];
    if (*last && joins(s, &points->point[*last - 1], p)) {
        join(&points->point[*last - 1], p);
        return;
    }
    if (points->count == points->room) {
        size_t room = points->room ? points->room * 2 : 1024;
        struct view_point *grown = realloc(points->point, room * sizeof *grown);
        if (!grown) {
            points->failed = true;
            return;
        }
        points->point = grown;
        points->room = room;
    }
    points->point[points->count++] = *p;
    *last = (uint32_t)points->count;
}

bool view_points(struct fdr_file *file, const struct view_window *w, struct view_points *points)
{
    struct fdr_select select = {.locations = &w->location,
                                .location_count = 1,
                                .classes = ~(1u << FDR_IN_REGION),
                                .from_ns = w->from_ns,
                                .to_ns = w->to_ns};
    struct summing s = {points, (double)(w->to_ns - w->from_ns) / w->cells, {0}};
    struct fdr_iter *iter = fdr_iter_open(file, &select);
    struct fdr_read_event e;
    if (s.cell_ns < 1) s.cell_ns = 1;
    while (iter && fdr_iter_next(iter, &e)) {
        if (e.kind == FDR_ENTER || e.kind == FDR_LEAVE) continue;
        struct view_point p = point_of(file, w, &e);
        add(&s, &p);
    }
    fdr_iter_close(iter);
    return iter && !points->failed;
}

void view_points_free(struct view_points *points)
{
    free(points->point);
    memset(points, 0, sizeof *points);
}
