/* SPDX-License-Identifier: MIT */
/* Presents the records of a stream to the recorder. */
#include "tools/replay/play.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <fdr/fdr.h>

/* ---- definitions ------------------------------------------------------------------------------------------ */

static void define_regions(struct stream *s)
{
    for (size_t i = 0; i < s->region_count; i++)
        if (s->region[i].name)
            s->region[i].recorded = fdr_region_define(s->region[i].name, s->region[i].file, s->region[i].line);
}

static bool same_comm(const struct stream_comm *a, const struct stream_comm *b)
{
    return a->size == b->size && (!a->size || memcmp(a->rank, b->rank, a->size * sizeof *a->rank) == 0);
}

/* Ranks of one run define the same communicators in the same order: one definition serves all of them. */
static uint32_t defined_by_other_stream(const struct streams *all, size_t stream, size_t comm)
{
    const struct stream_comm *c = &all->list[stream].comm[comm];
    for (size_t i = 0; i < stream; i++)
        if (comm < all->list[i].comm_count && same_comm(&all->list[i].comm[comm], c))
            return all->list[i].comm[comm].recorded;
    return 0;
}

static void define_comms(struct streams *all, size_t stream)
{
    char name[32];
    struct stream *s = &all->list[stream];
    for (size_t i = 1; i < s->comm_count; i++) {
        snprintf(name, sizeof name, "comm %zu", i);
        const char *given = s->comm[i].name ? s->comm[i].name : name;
        s->comm[i].recorded = defined_by_other_stream(all, stream, i);
        if (!s->comm[i].recorded)
            s->comm[i].recorded = fdr_comm_define_as(given, s->comm[i].rank, s->comm[i].size, s->comm[i].identity);
    }
}

/* All values have 64 bits in the stream, whatever their recorded types. */
static void define_event(struct stream_definition *d)
{
    struct fdr_field fields[16];
    uint32_t count = d->event->field_count < 16 ? d->event->field_count : 16;
    for (uint32_t i = 0; i < count; i++) {
        const struct fdr_field_info *f = &d->event->field[i];
        fields[i] = (struct fdr_field){f->name, (enum fdr_type)f->type, i * sizeof(uint64_t)};
    }
    d->recorded = fdr_event_define(d->name, fields, count);
}

static void define_points(struct stream *s)
{
    for (size_t i = 1; i < s->metric_count; i++) {
        const struct fdr_metric_info *m = s->metric[i].metric;
        s->metric[i].recorded = fdr_metric_define(m->name, m->unit, (enum fdr_type)m->type,
                                                  m->counter ? FDR_METRIC_COUNTER : FDR_METRIC_GAUGE);
    }
    for (size_t i = 1; i < s->marker_count; i++) s->marker[i].recorded = fdr_marker_define(s->marker[i].name);
    for (size_t i = 1; i < s->event_count; i++) define_event(&s->event[i]);
    for (size_t i = 1; i < s->io_file_count; i++) s->io_file[i].recorded = fdr_io_file_define(s->io_file[i].name);
}

static uint32_t recorded(const struct stream_definition *list, size_t count, uint64_t id)
{
    return id < count ? list[id].recorded : 0;
}

static uint32_t recorded_comm(const struct stream *s, uint64_t comm)
{
    if (comm < s->comm_count) return s->comm[comm].recorded;
    return s->other_comms ? (uint32_t)comm : 0;
}

/* Puts the recorder's own ids into the records, so the timed loop looks nothing up. */
static void translate(struct stream *s)
{
    for (size_t i = 0; i < s->count; i++) {
        uint64_t *f = s->field + s->value[i];
        switch ((enum op)s->op[i]) {
        case OP_ENTER:
        case OP_LEAVE: s->value[i] = recorded(s->region, s->region_count, s->value[i]); break;
        case OP_SEND:
        case OP_RECV: f[2] = recorded_comm(s, f[2]); break;
        case OP_COLL_BEGIN:
        case OP_COLL_END: f[1] = recorded_comm(s, f[1]); break;
        case OP_METRIC:
            f[2] = f[0] < s->metric_count ? (uint64_t)s->metric[f[0]].metric->type : 0;
            f[0] = recorded(s->metric, s->metric_count, f[0]);
            break;
        case OP_MARKER: f[0] = recorded(s->marker, s->marker_count, f[0]); break;
        case OP_EVENT: f[0] = recorded(s->event, s->event_count, f[0]); break;
        case OP_IO_BEGIN:
        case OP_IO_END: f[0] = recorded(s->io_file, s->io_file_count, f[0]); break;
        case OP_BARE_EVENT: s->value[i] = recorded(s->event, s->event_count, s->value[i]); break;
        default: break;
        }
    }
}

/* Finds the regions open at the end, which a repetition must close first. A leave that skips open regions closes
 * them. */
static bool find_open(struct stream *s)
{
    size_t depth = 0, deepest = 1;
    for (size_t i = 0; i < s->count; i++) deepest += s->op[i] == OP_ENTER;
    s->open = malloc(deepest * sizeof *s->open);
    for (size_t i = 0; s->open && i < s->count; i++) {
        if (s->op[i] == OP_ENTER) s->open[depth++] = s->value[i];
        if (s->op[i] != OP_LEAVE) continue;
        size_t at = depth;
        while (at > 0 && s->open[at - 1] != s->value[i]) at--;
        if (at > 0) depth = at - 1;
    }
    s->open_count = depth;
    return s->open != NULL;
}

bool play_prepare(struct streams *all)
{
    for (size_t i = 0; i < all->count; i++) {
        define_regions(&all->list[i]);
        define_comms(all, i);
        define_points(&all->list[i]);
        translate(&all->list[i]);
        if (!find_open(&all->list[i])) return false;
    }
    return true;
}

/* ---- the loop --------------------------------------------------------------------------------------------------- */

static void metric_at(const uint64_t *f, uint64_t t)
{
    double real;
    memcpy(&real, &f[1], sizeof real);
    if (f[2] == FDR_F64) fdr_metric_f64_at((fdr_metric_id)f[0], real, t);
    else if (f[2] == FDR_I64) fdr_metric_i64_at((fdr_metric_id)f[0], (int64_t)f[1], t);
    else fdr_metric_u64_at((fdr_metric_id)f[0], f[1], t);
}

/* began: of the stream; its last place stands for a begin that is not known, and is 0. */
static void io_at(enum op op, const uint64_t *f, uint64_t *began, uint64_t t)
{
    fdr_io_file file = (fdr_io_file)f[0];
    uint32_t operation = (uint32_t)f[1];
    if (op == OP_IO_END) {
        fdr_io_end_at(file, operation, f[2], (int)f[3], began[f[4]], t);
        return;
    }
    uint64_t now = fdr_io_begin_at(file, operation, f[2], f[3], t);
    if (f[4] < IO_PLACES) began[f[4]] = now;
}

static void point_at(enum op op, const uint64_t *f, uint64_t t)
{
    switch (op) {
    case OP_SEND: fdr_message_send_nth_at((uint32_t)f[0], (int32_t)f[1], (fdr_comm_id)f[2], f[3], f[4], t); break;
    case OP_RECV: fdr_message_recv_nth_at((uint32_t)f[0], (int32_t)f[1], (fdr_comm_id)f[2], f[3], f[4], t); break;
    case OP_COLL_BEGIN: fdr_collective_begin_nth_at((uint32_t)f[0], (fdr_comm_id)f[1], f[2], t); break;
    case OP_COLL_END:
        fdr_collective_end_nth_at((uint32_t)f[0], (fdr_comm_id)f[1], (int32_t)f[2], f[3], f[4], f[5], t);
        break;
    case OP_METRIC: metric_at(f, t); break;
    case OP_MARKER: fdr_marker_at((fdr_marker_id)f[0], f[1], t); break;
    case OP_EVENT: fdr_event_at((fdr_event_type)f[0], f + 1, t); break;
    default: break;
    }
}

uint64_t play(const struct stream *s, size_t from, size_t to, uint64_t t)
{
    for (size_t i = from; i < to; i++) {
        t += s->dt[i];
        switch ((enum op)s->op[i]) {
        case OP_TICK: break;
        case OP_ENTER: fdr_enter_at(s->value[i], t); break;
        case OP_LEAVE: fdr_leave_at(s->value[i], t); break;
        case OP_BARE_EVENT: fdr_event_at(s->value[i], NULL, t); break;
        case OP_IO_BEGIN:
        case OP_IO_END: io_at((enum op)s->op[i], s->field + s->value[i], s->began, t); break;
        default: point_at((enum op)s->op[i], s->field + s->value[i], t); break;
        }
    }
    return t;
}

void close_open(const struct stream *s, uint64_t t)
{
    for (size_t i = s->open_count; i > 0; i--) fdr_leave_at(s->open[i - 1], t);
}
