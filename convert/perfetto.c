/* SPDX-License-Identifier: MIT */
/* Perfetto's trace packets: slices for calls, instants for points, counters for metrics, flows for messages.
 *
 * Each location is a sequence of packets of its own, with its names by number and its track as the default. So an enter
 * or a leave takes some 20 bytes. tests/convert/perfetto.proto has the fields that are written. Times are those of fdr
 * dump, on the time line of the first recording. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "convert/convert_text.h"
#include "convert/exporters.h"
#include "convert/interned.h"
#include "convert/partners.h"
#include "convert/protobuf.h"
#include "convert/time_line.h"
#include "convert/titles.h"

enum { PACKET = 1 };
enum packet { TIMESTAMP = 8, SEQUENCE = 10, TRACK_EVENT = 11, INTERNED = 12, FLAGS = 13, DEFAULTS = 59, TRACK = 60 };
enum flags { CLEARED = 1, NEEDS_STATE = 2 };
enum track { UUID = 1, NAME = 2, PROCESS = 3, THREAD = 4, PARENT = 5, COUNTER = 8 };
enum event {
    ANNOTATION = 4,
    TYPE = 9,
    NAME_IID = 10,
    TRACK_UUID = 11,
    CATEGORY = 22,
    COUNTER_VALUE = 30,
    COUNTER_DOUBLE = 44,
    FLOW = 47,
    FLOW_END = 48
};
enum type { BEGIN = 1, END, INSTANT, COUNT };
enum annotation { UINT_VALUE = 3, INT_VALUE = 4, DOUBLE_VALUE = 5, TEXT_VALUE = 6, ANNOTATION_NAME = 10 };

struct perfetto {
    struct fdri_convert_text *out;
    struct fdri_convert_partners *partners;
    struct fdr_file *file;
    size_t at; /* number of the file */
    uint64_t pid, shift_ns;
    uint32_t sequence; /* of the location under way */
    uint64_t track;
    bool begun;                            /* the sequence has its first packet */
    struct fdri_convert_interned names;    /* of the sequence */
    struct fdri_convert_interned counters; /* of all: location and metric */
    uint32_t *name_of_region;              /* number + 1; 0: none yet */
    size_t regions;
    struct fdri_convert_message packet, event, interned, part, inner;
    bool no_memory;
};

/* ---- packets ---- */

static void write_packet(struct perfetto *p)
{
    uint8_t head[12];
    size_t used = 0;
    head[used++] = PACKET << 3 | 2;
    uint64_t count = p->packet.used;
    for (; count >= 0x80; count >>= 7) head[used++] = (uint8_t)(count | 0x80);
    head[used++] = (uint8_t)count;
    fdri_convert_text_bytes(p->out, (const char *)head, used);
    fdri_convert_text_bytes(p->out, (const char *)p->packet.bytes, p->packet.used);
    p->no_memory |= p->packet.no_memory;
    p->packet.used = 0;
}

static void write_track(struct perfetto *p, const struct fdri_convert_message *track)
{
    fdri_convert_message_message(&p->packet, TRACK, track);
    fdri_convert_message_u64(&p->packet, SEQUENCE, 1);
    write_packet(p);
    p->part.used = p->inner.used = 0;
}

/* Writes p->event, with the names that it uses first. */
static void write_event(struct perfetto *p, uint64_t time_ns)
{
    fdri_convert_message_u64(&p->packet, TIMESTAMP, time_ns + p->shift_ns);
    fdri_convert_message_u64(&p->packet, SEQUENCE, p->sequence);
    fdri_convert_message_u64(&p->packet, FLAGS, p->begun ? NEEDS_STATE : NEEDS_STATE | CLEARED);
    if (!p->begun) {
        fdri_convert_message_u64(&p->inner, TRACK_UUID, p->track);
        fdri_convert_message_message(&p->part, 11, &p->inner); /* TrackEventDefaults */
        fdri_convert_message_message(&p->packet, DEFAULTS, &p->part);
        p->inner.used = p->part.used = 0;
    }
    p->begun = true;
    if (p->interned.used) fdri_convert_message_message(&p->packet, INTERNED, &p->interned);
    fdri_convert_message_message(&p->packet, TRACK_EVENT, &p->event);
    write_packet(p);
    p->interned.used = p->event.used = 0;
}

/* ---- names ---- */

static uint32_t number_of_name(struct perfetto *p, const char *name)
{
    bool is_new;
    uint32_t number = fdri_convert_intern(&p->names, name, strlen(name), &is_new);
    if (number == FDRI_CONVERT_NO_NUMBER) p->no_memory = true;
    if (!is_new) return number + 1;
    fdri_convert_message_u64(&p->part, 1, number + 1);
    fdri_convert_message_text(&p->part, 2, name);
    fdri_convert_message_message(&p->interned, 2, &p->part); /* event_names */
    p->part.used = 0;
    return number + 1;
}

static uint32_t number_of_call(struct perfetto *p, const struct fdr_read_event *e)
{
    if (e->reduced || e->id >= p->regions) return number_of_name(p, fdri_convert_call(p->file, e));
    uint32_t *number = &p->name_of_region[e->id];
    if (!*number) *number = number_of_name(p, fdr_definition(p->file, FDR_REGION_DEFINITION, e->id)->name);
    return *number;
}

/* ---- tracks ---- */

static uint64_t process_uuid(const struct perfetto *p) { return (uint64_t)(p->at + 1) << 40; }
static uint64_t location_uuid(const struct perfetto *p, uint32_t location) { return process_uuid(p) + location + 1; }

static void describe_process(struct perfetto *p)
{
    char text[700];
    fdri_convert_process(p->file, text, sizeof text);
    fdri_convert_message_u64(&p->part, UUID, process_uuid(p));
    fdri_convert_message_u64(&p->inner, 1, p->pid);
    fdri_convert_message_text(&p->inner, 6, text);
    fdri_convert_message_message(&p->part, PROCESS, &p->inner);
    write_track(p, &p->part);
}

/* Lanes and samples are tracks below that of their thread. */
static void describe_location(struct perfetto *p, const struct fdr_location_info *l)
{
    char text[700];
    bool below = l->parent != UINT32_MAX || l->samples || !l->tid;
    fdri_convert_thread(l, text, sizeof text);
    fdri_convert_message_u64(&p->part, UUID, location_uuid(p, l->id));
    fdri_convert_message_u64(&p->part, PARENT, l->parent != UINT32_MAX ? location_uuid(p, l->parent) : process_uuid(p));
    if (l->samples)
        snprintf(text, sizeof text, "samples of %s",
                 fdri_convert_sampled(p->file, fdri_convert_stream(p->file, l->id)));
    else if (below) snprintf(text, sizeof text, l->ended_threads ? "[ended]" : "signal handlers");
    if (below) fdri_convert_message_text(&p->part, NAME, text);
    if (!below) {
        fdri_convert_message_u64(&p->inner, 1, p->pid);
        fdri_convert_message_u64(&p->inner, 2, l->tid);
        fdri_convert_message_text(&p->inner, 5, l->name[0] ? l->name : "thread");
        fdri_convert_message_message(&p->part, THREAD, &p->inner);
    }
    write_track(p, &p->part);
}

/* The track of a metric on a location. */
static uint64_t counter_track(struct perfetto *p, uint32_t location, const struct fdr_metric_info *m)
{
    const struct {
        uint64_t file;
        uint32_t location, metric;
    } key = {p->at, location, m->id};
    bool is_new;
    uint32_t number = fdri_convert_intern(&p->counters, &key, sizeof key, &is_new);
    uint64_t uuid = (uint64_t)1 << 62 | number;
    if (number == FDRI_CONVERT_NO_NUMBER) p->no_memory = true;
    if (!is_new) return uuid;
    fdri_convert_message_u64(&p->part, UUID, uuid);
    fdri_convert_message_u64(&p->part, PARENT, location_uuid(p, location));
    fdri_convert_message_text(&p->part, NAME, m->name);
    fdri_convert_message_text(&p->inner, 6, m->unit);
    fdri_convert_message_message(&p->part, COUNTER, &p->inner);
    write_track(p, &p->part);
    return uuid;
}

/* ---- events ---- */

static void annotate(struct perfetto *p, const char *name, enum fdr_value_type type, uint64_t bits, const char *text)
{
    fdri_convert_message_text(&p->part, ANNOTATION_NAME, name);
    if (text) fdri_convert_message_text(&p->part, TEXT_VALUE, text);
    else if (type == FDR_VALUE_F64) fdri_convert_message_fixed64(&p->part, DOUBLE_VALUE, bits);
    else fdri_convert_message_u64(&p->part, type == FDR_VALUE_I64 ? INT_VALUE : UINT_VALUE, bits);
    fdri_convert_message_message(&p->event, ANNOTATION, &p->part);
    p->part.used = 0;
}

static void call(struct perfetto *p, const struct fdr_read_event *e)
{
    fdri_convert_message_u64(&p->event, TYPE, e->kind == FDR_ENTER ? BEGIN : END);
    if (e->kind == FDR_ENTER) fdri_convert_message_u64(&p->event, NAME_IID, number_of_call(p, e));
    if (e->repaired) annotate(p, "repaired", FDR_VALUE_U64, 1, NULL);
}

static void counter(struct perfetto *p, const struct fdr_read_event *e)
{
    const struct fdr_metric_info *m = fdr_metric_info(p->file, e->id);
    uint64_t track = counter_track(p, e->location, m);
    fdri_convert_message_u64(&p->event, TYPE, COUNT);
    fdri_convert_message_u64(&p->event, TRACK_UUID, track);
    if (m->type == FDR_VALUE_F64) fdri_convert_message_fixed64(&p->event, COUNTER_DOUBLE, e->field[0]);
    else fdri_convert_message_u64(&p->event, COUNTER_VALUE, e->field[0]);
}

static uint64_t mixed(uint64_t h, uint64_t value)
{
    h = (h ^ value) * 0x9E3779B97F4A7C15u;
    return h ^ h >> 29;
}

/* An arrow from a send to its receive: both ends have the same number. */
static void flow(struct perfetto *p, const struct fdr_read_event *e)
{
    uint64_t ordinal;
    bool sent = e->kind == FDR_SEND;
    if (!fdri_convert_partners_message(p->partners, p->at, e)) return;
    if (!fdri_convert_partners_ordinal(p->partners, p->at, e, &ordinal)) return;
    uint64_t own = (uint64_t)fdri_convert_partners_rank(p->partners, p->at), peer = e->field[0];
    uint64_t id = mixed(mixed(1, sent ? own : peer), sent ? peer : own);
    id = mixed(mixed(id, e->field[1]), fdr_comm_info(p->file, (uint32_t)e->field[2])->identity);
    fdri_convert_message_fixed64(&p->event, sent ? FLOW : FLOW_END, mixed(id, ordinal));
}

static void fields(struct perfetto *p, const struct fdr_read_event *e)
{
    const struct fdr_field_info *field;
    size_t count = fdr_event_fields(p->file, e, &field);
    for (uint32_t i = 0; i < count && i < e->field_count && i < 16; i++) {
        const char *word = NULL;
        for (uint64_t w = 0; field[i].word && field[i].word[w]; w++)
            if (w == e->field[i]) word = field[i].word[w];
        annotate(p, field[i].name, field[i].type, e->field[i], word);
    }
}

static void point(struct perfetto *p, const struct fdr_read_event *e)
{
    const struct fdr_kind_info *kind = fdr_kind_info(e->kind);
    const char *name = fdr_id_name(p->file, e->class_, e->id);
    char text[1024];
    bool phase = kind && *kind->phase;
    if (phase) snprintf(text, sizeof text, "%.1000s %s", name, kind->phase);
    fdri_convert_message_u64(&p->event, TYPE, INSTANT);
    fdri_convert_message_u64(&p->event, NAME_IID, number_of_name(p, phase ? text : name));
    fdri_convert_message_text(&p->event, CATEGORY, fdr_class_name(e->class_));
    fields(p, e);
    if (e->kind == FDR_SEND || e->kind == FDR_RECV) flow(p, e);
}

/* The stack of a sample, outermost first, one function a line. */
static void stack_line(char *text, size_t bytes, size_t *used, const char *name)
{
    int n = *used < bytes ? snprintf(text + *used, bytes - *used, "%s%s", *used ? ";" : "", name) : 0;
    *used += n > 0 ? (size_t)n : 0;
}

static void sample(struct perfetto *p, const struct fdr_read_event *e)
{
    const struct fdr_sample_path *path = e->sample;
    char text[8192] = "";
    size_t used = 0;
    const char *name = "sample";
    for (uint32_t i = 0; path && i < path->region_count; i++) {
        name = fdr_definition(p->file, FDR_REGION_DEFINITION, path->region[i])->name;
        stack_line(text, sizeof text, &used, name);
    }
    for (uint32_t i = 0; path && i < path->frame_count; i++)
        stack_line(text, sizeof text, &used, fdr_place_at(p->file, path->frame[i], true, e->time_ns)->function);
    if (path && path->pc)
        stack_line(text, sizeof text, &used, name = fdr_place_at(p->file, path->pc, false, e->time_ns)->function);
    if (path && path->state != UINT32_MAX) name = fdr_definition(p->file, FDR_REGION_DEFINITION, path->state)->name;
    fdri_convert_message_u64(&p->event, TYPE, INSTANT);
    fdri_convert_message_u64(&p->event, NAME_IID, number_of_name(p, name));
    fdri_convert_message_text(&p->event, CATEGORY, "sample");
    if (path) annotate(p, "weight", FDR_VALUE_U64, path->weight, NULL);
    annotate(p, "stack", FDR_VALUE_U64, 0, text);
}

static void event(struct perfetto *p, const struct fdr_read_event *e)
{
    switch (e->kind) {
    case FDR_ENTER:
    case FDR_LEAVE: call(p, e); break;
    case FDR_METRIC: counter(p, e); break;
    case FDR_SAMPLE: sample(p, e); break;
    case FDR_RESOLVE: return; /* the ordinals of messages know it */
    default: point(p, e); break;
    }
    write_event(p, e->time_ns);
}

/* ---- files ---- */

static void begin_location(struct perfetto *p, uint32_t location)
{
    p->sequence++;
    p->track = location_uuid(p, location);
    p->begun = false;
    fdri_convert_interned_free(&p->names);
    memset(p->name_of_region, 0, p->regions * sizeof *p->name_of_region);
}

static int one_file(struct perfetto *p, const struct fdr_select *select)
{
    struct fdr_select all = select ? *select : (struct fdr_select){0};
    struct fdr_read_event e;
    uint64_t location = UINT64_MAX;
    p->regions = fdr_definition_count(p->file, FDR_REGION_DEFINITION) + 1;
    p->name_of_region = calloc(p->regions, sizeof *p->name_of_region);
    all.one_location_after_another = true;
    struct fdr_iter *iter = p->name_of_region ? fdr_iter_open(p->file, &all) : NULL;
    p->no_memory |= !iter;
    describe_process(p);
    for (size_t i = 0; i < fdr_location_count(p->file); i++) describe_location(p, fdr_location_info(p->file, i));
    while (!p->no_memory && !p->out->error && fdr_iter_next(iter, &e)) {
        if (e.location != location) begin_location(p, e.location);
        location = e.location;
        event(p, &e);
    }
    fdr_iter_close(iter);
    free(p->name_of_region);
    return p->no_memory ? -ENOMEM : 0;
}

static void free_all(struct perfetto *p)
{
    fdri_convert_partners_close(p->partners);
    fdri_convert_interned_free(&p->names);
    fdri_convert_interned_free(&p->counters);
    free(p->packet.bytes);
    free(p->event.bytes);
    free(p->interned.bytes);
    free(p->part.bytes);
    free(p->inner.bytes);
}

static int run(struct fdr_file *const *files, size_t count, const struct fdr_select *select, const char *const *value,
               const char *out_path)
{
    struct perfetto p = {.sequence = 1};
    (void)value;
    int status = fdri_convert_text_open(&p.out, out_path);
    if (status) return status;
    uint64_t *shift = calloc(count + 1, sizeof *shift);
    p.partners = fdri_convert_partners_open(files, count, select);
    if (!shift || !p.partners) status = -ENOMEM;
    if (shift) fdri_convert_time_line(files, count, shift);
    bool by_place = fdri_convert_pids_collide(files, count);
    for (size_t i = 0; i < count && !status; i++) {
        p.at = i;
        p.file = files[i];
        p.shift_ns = shift[i];
        p.pid = by_place ? i + 1 : fdr_file_info(files[i])->pid;
        status = one_file(&p, select ? &select[i] : NULL);
    }
    free_all(&p);
    free(shift);
    return fdri_convert_text_close(p.out, status);
}

const struct fdr_exporter fdri_convert_perfetto = {
    .name = "perfetto",
    .help = "trace packets for ui.perfetto.dev, with arrows for messages",
    .call_bytes = 44,
    .run = run,
};
