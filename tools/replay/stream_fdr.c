/* SPDX-License-Identifier: MIT */
/* A recording as streams, one per location. Only recorded events are replayed, without the edges and ancestors that the
 * reader adds. So a call that was open is open again at the end. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <fdr/fdr.h>

#include "tools/replay/event_stream.h"

/* Arrays that grow together with the records. */
struct builder {
    struct stream *s;
    size_t capacity, field_capacity;
    uint64_t last_ns, reduced, samples;
    uint64_t depth, deeper_points; /* open calls in the replay; deeper points */
    struct {
        uint64_t key, order; /* file and operation, and when it began; order 0: the place is free */
    } io[IO_PLACES];
    uint64_t io_begun;
};

static bool room_for_record(struct builder *b)
{
    struct stream *s = b->s;
    if (s->count < b->capacity) return true;
    size_t more = b->capacity ? b->capacity * 2 : 4096;
    uint32_t *dt = realloc(s->dt, more * sizeof *dt);
    if (dt) s->dt = dt;
    uint32_t *value = realloc(s->value, more * sizeof *value);
    if (value) s->value = value;
    uint8_t *op = realloc(s->op, more * sizeof *op);
    if (op) s->op = op;
    if (dt && value && op) b->capacity = more;
    return dt && value && op;
}

static bool room_for_fields(struct builder *b)
{
    struct stream *s = b->s;
    if (s->field_count + 24 < b->field_capacity) return true;
    size_t more = b->field_capacity ? b->field_capacity * 2 : 1024;
    uint64_t *field = realloc(s->field, more * sizeof *field);
    if (!field) return false;
    s->field = field;
    b->field_capacity = more;
    return true;
}

static bool add(struct builder *b, uint32_t dt, enum op op, uint32_t value)
{
    if (!room_for_record(b)) return false;
    struct stream *s = b->s;
    s->dt[s->count] = dt;
    s->op[s->count] = (uint8_t)op;
    s->value[s->count++] = value;
    return true;
}

/* Splits a step above 2^32 - 1 ns. */
static bool advance(struct builder *b, uint64_t time_ns, uint32_t *dt)
{
    struct stream *s = b->s;
    if (s->count == 0 && s->events == 0) s->t0_ns = b->last_ns = time_ns;
    uint64_t step = time_ns > b->last_ns ? time_ns - b->last_ns : 0;
    s->span_ns += step;
    b->last_ns += step;
    for (; step > UINT32_MAX; step -= UINT32_MAX)
        if (!add(b, UINT32_MAX, OP_TICK, 0)) return false;
    *dt = (uint32_t)step;
    return true;
}

static enum op op_of(const struct fdr_read_event *e)
{
    switch (e->kind) {
    case FDR_ENTER: return OP_ENTER;
    case FDR_LEAVE: return OP_LEAVE;
    case FDR_SEND: return OP_SEND;
    case FDR_RECV: return OP_RECV;
    case FDR_COLL_BEGIN: return OP_COLL_BEGIN;
    case FDR_COLL_END: return OP_COLL_END;
    case FDR_METRIC: return OP_METRIC;
    case FDR_MARKER: return OP_MARKER;
    case FDR_EVENT: return e->field_count ? OP_EVENT : OP_BARE_EVENT;
    case FDR_IO_BEGIN: return OP_IO_BEGIN;
    case FDR_IO_END: return OP_IO_END;
    default: return OP_TICK; /* no call of the API presents a sample */
    }
}

static bool is_io(enum op op) { return op == OP_IO_BEGIN || op == OP_IO_END; }

static bool has_ordinal(enum op op)
{
    return op == OP_SEND || op == OP_RECV || op == OP_COLL_BEGIN || op == OP_COLL_END;
}
static uint64_t ordinal_of(const struct fdr_read_event *e)
{
    if (e->ordinal_kind == FDR_ORDINAL_KNOWN) return e->ordinal;
    return e->ordinal_kind == FDR_ORDINAL_SHARED ? e->ordinal | FDR_ORDINAL_AMBIGUOUS : FDR_ORDINAL_UNKNOWN;
}

static bool takes_id(enum op op)
{
    return op == OP_COLL_BEGIN || op == OP_COLL_END || op == OP_METRIC || op == OP_MARKER || op == OP_EVENT ||
           is_io(op);
}

/* A place for the time of a begin; of an end, that of the newest begin of its file and operation. */
static uint64_t io_place(struct builder *b, enum op op, uint64_t key)
{
    uint64_t found = IO_PLACES;
    for (uint64_t i = 0; i < IO_PLACES; i++) {
        if (op == OP_IO_BEGIN && !b->io[i].order) found = i;
        if (op == OP_IO_END && b->io[i].order && b->io[i].key == key &&
            (found == IO_PLACES || b->io[i].order > b->io[found].order))
            found = i;
    }
    if (found == IO_PLACES) return found;
    b->io[found].key = key;
    b->io[found].order = op == OP_IO_BEGIN ? ++b->io_begun : 0;
    return found;
}

/* Fields that the event does not have are not known, or 0. */
static void add_io(struct builder *b, enum op op, const struct fdr_read_event *e)
{
    uint64_t *to = b->s->field + b->s->field_count;
    to[0] = e->field[0];
    to[1] = e->field_count > 1 ? e->field[1] : 0;
    to[2] = e->field_count > 2 ? e->field[2] : op == OP_IO_BEGIN ? UINT64_MAX : 0;
    to[3] = io_place(b, op, (uint64_t)e->id << 8 | e->field[0]);
}

static bool add_event(struct builder *b, const struct fdr_read_event *e)
{
    struct stream *s = b->s;
    enum op op = op_of(e);
    uint32_t value = e->id, dt;
    b->samples += e->kind == FDR_SAMPLE;
    if (op == OP_TICK || e->repaired || e->reduced) {
        b->reduced += e->reduced && e->kind == FDR_ENTER;
        return true;
    }
    if (op == OP_SEND || op == OP_RECV || takes_id(op)) {
        if (!room_for_fields(b)) return false;
        value = (uint32_t)s->field_count;
        if (takes_id(op)) s->field[s->field_count++] = e->id;
        if (is_io(op)) add_io(b, op, e);
        else memcpy(s->field + s->field_count, e->field, sizeof e->field);
        s->field_count += op == OP_EVENT ? 16 : op == OP_COLL_BEGIN ? 1 : 4;
        if (has_ordinal(op)) s->field[s->field_count++] = ordinal_of(e);
    }
    if (!advance(b, e->time_ns, &dt) || !add(b, dt, op, value)) return false;
    if (op == OP_ENTER) b->depth++;
    else if (op == OP_LEAVE) b->depth -= b->depth > 0;
    else b->deeper_points += e->depth > b->depth;
    s->events++;
    s->calls += op == OP_ENTER;
    return true;
}

/* Ids count from 0 or 1; one more than the count covers both. */
static struct stream_definition *definitions(const struct fdr_file *file, enum fdr_definition_kind kind, size_t *count)
{
    size_t n = fdr_definition_count(file, kind) + 1;
    struct stream_definition *list = calloc(n, sizeof *list);
    *count = list ? n : 0;
    for (size_t id = 0; list && id < n; id++) {
        const struct fdr_definition *d = fdr_definition(file, kind, (uint32_t)id);
        list[id] = (struct stream_definition){.name = d->name,
                                              .file = d->file,
                                              .line = d->line,
                                              .metric = fdr_metric_info(file, (uint32_t)id),
                                              .event = fdr_event_info(file, (uint32_t)id)};
    }
    return list;
}

/* [0] is the world. Ids without a definition are groups without members, so that each has a number. */
static bool read_comms(struct stream *s, const struct fdr_file *file)
{
    size_t n = fdr_definition_count(file, FDR_COMM_DEFINITION) + 1;
    s->comm = calloc(n, sizeof *s->comm);
    s->comm_count = s->comm ? n : 0;
    s->other_comms = true;
    for (size_t id = 1; id < s->comm_count; id++) {
        const struct fdr_comm_info *c = fdr_comm_info(file, (uint32_t)id);
        s->comm[id] = (struct stream_comm){
            .rank = c->world_rank, .size = c->size, .name = c->name, .identity = c->identity};
    }
    return s->comm != NULL;
}

static bool read_definitions(struct stream *s, const struct fdr_file *file)
{
    s->region = definitions(file, FDR_REGION_DEFINITION, &s->region_count);
    s->metric = definitions(file, FDR_METRIC_DEFINITION, &s->metric_count);
    s->marker = definitions(file, FDR_MARKER_DEFINITION, &s->marker_count);
    s->event = definitions(file, FDR_EVENT_DEFINITION, &s->event_count);
    s->io_file = definitions(file, FDR_FILE_DEFINITION, &s->io_file_count);
    s->began = calloc(IO_PLACES + 1, sizeof *s->began);
    return s->region && s->metric && s->marker && s->event && s->io_file && s->began && read_comms(s, file);
}

static bool read_events(struct builder *b, struct fdr_file *file, uint32_t location)
{
    struct fdr_select select = {.locations = &location, .location_count = 1};
    struct fdr_read_event e;
    struct fdr_iter *iter = fdr_iter_open(file, &select);
    bool good = iter != NULL;
    while (good && fdr_iter_next(iter, &e)) good = add_event(b, &e);
    if (iter) fdr_iter_close(iter);
    return good;
}

/* False: nothing to replay. *samples increases by the samples met. */
static bool load_location(struct stream *s, struct fdr_file *file, const char *path, const struct fdr_location_info *l,
                          uint64_t *samples, int *status)
{
    char base[32];
    struct builder b = {.s = s};
    stream_base_name(base, path);
    if (l->name[0]) snprintf(s->name, sizeof s->name, "%s", l->name);
    else snprintf(s->name, sizeof s->name, "%.20s.%u", base, l->id);
    if (!read_definitions(s, file) || !read_events(&b, file, l->id)) {
        complain("%s: location %u: out of memory", path, l->id);
        *status = COULD_NOT;
        return false;
    }
    *samples += b.samples;
    if (b.reduced)
        complain("%s: location %u: %llu calls were given back and are not replayed", path, l->id,
                 (unsigned long long)b.reduced);
    if (b.deeper_points)
        complain(
            "%s: location %u: calls around %llu events without duration were given back; they are replayed less deep",
            path, l->id, (unsigned long long)b.deeper_points);
    return s->events > 0;
}

void load_recording(struct streams *streams, const char *path, int *status)
{
    struct fdr_file *file = open_recording(path, status);
    size_t before = streams->count;
    uint64_t samples = 0;
    if (!file) return;
    for (size_t i = 0; i < fdr_location_count(file); i++) {
        struct stream *s = streams_add(streams);
        if (s && load_location(s, file, path, fdr_location_info(file, i), &samples, status)) continue;
        if (s) stream_clear(&streams->list[--streams->count]);
    }
    fdr_file_met(file); /* damaged bins that were met and left out */
    *status = worse(*status, tell_damage(file, path));
    if (samples) complain("%s: %llu samples are not replayed: only events are", path, (unsigned long long)samples);
    if (streams->count > before) {
        streams->list[before].file = file;
        return;
    }
    complain("%s: no events in it", path);
    fdr_file_close(file);
}
