/* SPDX-License-Identifier: MIT */
/* Chrome trace JSON, for chrome://tracing, Perfetto and Speedscope.
 *
 * Calls are B/E pairs, not X events: the order in the file then says which of two calls in one nanosecond is outside.
 * Times are microseconds with three decimals, on the time line of the first recording; so they equal those of `fdr
 * dump`. A thread of the trace is a location: its tid is the location's id + 1, as 0 means "idle" to viewers. The
 * thread's name has the real tid. A sample is an instant, named by its function, with its regions and weight. Its
 * native stack refers to "stackFrames", which follow the events. */
#include <fdr/reader.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "convert/convert_text.h"
#include "convert/exporters.h"
#include "convert/time_line.h"
#include "convert/titles.h"

/* The native stacks of samples, as a tree: frame number i + 1 is frame[i]. */
struct frames {
    struct frame {
        const char *name;                /* belongs to a recording, which stays open until the end */
        uint32_t parent, child, sibling; /* frame numbers; 0: none */
    } * frame;
    uint32_t count, room, root; /* root: the newest frame without a parent */
    bool full;                  /* no memory for more */
};

struct process {
    struct fdr_file *file;
    struct fdri_convert_text *out;
    uint64_t pid;
    uint64_t shift_ns; /* added to every time, to put several hosts on one line */
    bool *first;       /* true until the first event is written */
    struct frames *frames;
};

static void begin(const struct process *p, char phase, uint32_t location)
{
    struct fdri_convert_text *out = p->out;
    fdri_convert_text_string(out, *p->first ? "\n{\"ph\":\"" : ",\n{\"ph\":\"");
    *p->first = false;
    fdri_convert_text_bytes(out, &phase, 1);
    fdri_convert_text_string(out, "\",\"pid\":");
    fdri_convert_text_u64(out, p->pid);
    fdri_convert_text_string(out, ",\"tid\":");
    fdri_convert_text_u64(out, (uint64_t)location + 1);
}

static void at(const struct process *p, uint64_t time_ns)
{
    uint64_t ns = time_ns + p->shift_ns;
    char decimals[4] = {'.', (char)('0' + ns / 100 % 10), (char)('0' + ns / 10 % 10), (char)('0' + ns % 10)};
    fdri_convert_text_string(p->out, ",\"ts\":");
    fdri_convert_text_u64(p->out, ns / 1000);
    fdri_convert_text_bytes(p->out, decimals, 4);
}

static void named(const struct process *p, const char *name)
{
    fdri_convert_text_string(p->out, ",\"name\":");
    fdri_convert_text_json(p->out, name);
}

static void argument(const struct process *p, const char *before, const char *name)
{
    fdri_convert_text_string(p->out, before);
    fdri_convert_text_json(p->out, name);
    fdri_convert_text_string(p->out, ":");
}

static void value(const struct process *p, enum fdr_value_type type, uint64_t bits)
{
    double real;
    memcpy(&real, &bits, sizeof real);
    if (type == FDR_VALUE_F64) fdri_convert_text_f64(p->out, real);
    else if (type == FDR_VALUE_I64) fdri_convert_text_i64(p->out, (int64_t)bits);
    else fdri_convert_text_u64(p->out, bits);
}

static void metadata(const struct process *p, const char *what, uint32_t location, const char *text)
{
    begin(p, 'M', location);
    named(p, what);
    argument(p, ",\"args\":{", "name");
    fdri_convert_text_json(p->out, text);
    fdri_convert_text_string(p->out, "}}");
}

static void describe(const struct process *p)
{
    char text[700];
    fdri_convert_process(p->file, text, sizeof text);
    metadata(p, "process_name", 0, text);
    for (size_t i = 0; i < fdr_location_count(p->file); i++) {
        const struct fdr_location_info *l = fdr_location_info(p->file, i);
        if (l->ended_threads) continue; /* it has no events */
        fdri_convert_thread(l, text, sizeof text);
        metadata(p, "thread_name", l->id, text);
    }
}

static void edge(const struct process *p, const struct fdr_read_event *e)
{
    begin(p, e->kind == FDR_ENTER ? 'B' : 'E', e->location);
    at(p, e->time_ns);
    if (e->kind == FDR_ENTER) named(p, fdri_convert_call(p->file, e));
    if (e->repaired) fdri_convert_text_string(p->out, ",\"args\":{\"repaired\":1}");
    fdri_convert_text_string(p->out, "}");
}

static void instant(const struct process *p, const struct fdr_read_event *e, const char *name)
{
    begin(p, 'i', e->location);
    at(p, e->time_ns);
    fdri_convert_text_string(p->out, ",\"s\":\"t\"");
    named(p, name);
}

/* Fields may share a name, but keys of one object may not. So the second one is "name#2". */
static void field(const struct process *p, const char *before, const struct fdr_field_info *fields, uint32_t i)
{
    char key[1024];
    unsigned nth = 1;
    for (uint32_t k = 0; k < i; k++) nth += strcmp(fields[k].name, fields[i].name) == 0;
    if (nth > 1) snprintf(key, sizeof key, "%.1000s#%u", fields[i].name, nth);
    argument(p, before, nth > 1 ? key : fields[i].name);
}

static void field_value(const struct process *p, const struct fdr_field_info *f, uint64_t bits)
{
    for (uint64_t i = 0; f->word && f->word[i]; i++) {
        if (i != bits) continue;
        fdri_convert_text_json(p->out, f->word[i]);
        return;
    }
    value(p, f->type, bits);
}

static void arguments(const struct process *p, const struct fdr_read_event *e)
{
    const struct fdr_field_info *fields;
    size_t count = fdr_event_fields(p->file, e, &fields);
    const char *before = ",\"args\":{";
    for (uint32_t i = 0; i < count && i < e->field_count && i < 16; i++) {
        field(p, before, fields, i);
        field_value(p, &fields[i], e->field[i]);
        before = ",";
    }
    fdri_convert_text_string(p->out, strcmp(before, ",") == 0 ? "}}" : "}"); /* with arguments, two objects are open */
}

static void counter(const struct process *p, const struct fdr_read_event *e)
{
    const struct fdr_metric_info *m = fdr_metric_info(p->file, e->id);
    begin(p, 'C', e->location);
    at(p, e->time_ns);
    fdri_convert_text_string(p->out, ",\"id\":"); /* gives each location a track of its own */
    fdri_convert_text_u64(p->out, (uint64_t)e->location + 1);
    named(p, m->name);
    argument(p, ",\"args\":{", m->unit[0] ? m->unit : "value");
    value(p, m->type, e->field[0]);
    fdri_convert_text_string(p->out, "}}");
}

/* An event of any other kind: its name and its fields. */
static void point(const struct process *p, const struct fdr_read_event *e)
{
    const struct fdr_kind_info *kind = fdr_kind_info(e->kind);
    const char *name = fdr_id_name(p->file, e->class_, e->id);
    char text[1024];
    if (kind && *kind->phase) snprintf(text, sizeof text, "%.1000s %s", name, kind->phase);
    instant(p, e, kind && *kind->phase ? text : name);
    arguments(p, e);
}

static uint32_t new_frame(struct frames *f, uint32_t parent, const char *name)
{
    if (f->count == f->room) {
        uint32_t room = f->room ? f->room * 2 : 1024;
        struct frame *frame = f->full ? NULL : realloc(f->frame, room * sizeof *frame);
        if (!frame) {
            f->full = true;
            return parent;
        }
        f->frame = frame;
        f->room = room;
    }
    uint32_t *first = parent ? &f->frame[parent - 1].child : &f->root;
    f->frame[f->count] = (struct frame){name, parent, 0, *first};
    return *first = ++f->count;
}

static uint32_t frame_of(struct frames *f, uint32_t parent, const char *name)
{
    uint32_t id = parent ? f->frame[parent - 1].child : f->root;
    while (id && f->frame[id - 1].name != name && strcmp(f->frame[id - 1].name, name)) id = f->frame[id - 1].sibling;
    return id ? id : new_frame(f, parent, name);
}

static uint32_t frame_at(const struct process *p, uint32_t parent, uint64_t address, bool returns, uint64_t time_ns)
{
    const struct fdr_place *at = fdr_place_at(p->file, address, returns, time_ns);
    parent = frame_of(p->frames, parent, at->function);
    for (uint32_t i = at->inlined_count; i-- > 0;) parent = frame_of(p->frames, parent, at->inlined[i].function);
    return parent;
}

static void write_frames(struct fdri_convert_text *out, const struct frames *f)
{
    fdri_convert_text_string(out, ",\"stackFrames\":{");
    for (uint32_t i = 0; i < f->count; i++) {
        fdri_convert_text_string(out, i ? ",\n\"" : "\n\"");
        fdri_convert_text_u64(out, i + 1);
        fdri_convert_text_string(out, "\":{\"name\":");
        fdri_convert_text_json(out, f->frame[i].name);
        if (f->frame[i].parent) {
            fdri_convert_text_string(out, ",\"parent\":\"");
            fdri_convert_text_u64(out, f->frame[i].parent);
            fdri_convert_text_string(out, "\"");
        }
        fdri_convert_text_string(out, "}");
    }
    fdri_convert_text_string(out, "}");
}

static const char *sample_name(const struct process *p, const struct fdr_read_event *e)
{
    const struct fdr_sample_path *path = e->sample;
    if (path && path->state != UINT32_MAX) return fdr_definition(p->file, FDR_REGION_DEFINITION, path->state)->name;
    return path && path->pc ? fdr_place_at(p->file, path->pc, false, e->time_ns)->function : "sample";
}

static void sample(const struct process *p, const struct fdr_read_event *e)
{
    const struct fdr_sample_path *path = e->sample;
    uint32_t frame = 0;
    instant(p, e, sample_name(p, e));
    fdri_convert_text_string(p->out, ",\"cat\":\"sample\"");
    if (path) {
        for (uint32_t i = 0; i < path->frame_count; i++) frame = frame_at(p, frame, path->frame[i], true, e->time_ns);
        if (path->pc) frame = frame_at(p, frame, path->pc, false, e->time_ns);
        if (path->state != UINT32_MAX) frame = frame_of(p->frames, frame, sample_name(p, e));
        if (frame) {
            fdri_convert_text_string(p->out, ",\"sf\":\"");
            fdri_convert_text_u64(p->out, frame);
            fdri_convert_text_string(p->out, "\"");
        }
        argument(p, ",\"args\":{", "weight");
        fdri_convert_text_u64(p->out, path->weight);
        argument(p, ",", "regions");
        for (uint32_t i = 0; i < path->region_count; i++) {
            fdri_convert_text_string(p->out, i ? "," : "[");
            fdri_convert_text_json(p->out, fdr_definition(p->file, FDR_REGION_DEFINITION, path->region[i])->name);
        }
        fdri_convert_text_string(p->out, path->region_count ? "]}" : "[]}");
    }
    fdri_convert_text_string(p->out, "}");
}

static void event(const struct process *p, const struct fdr_read_event *e)
{
    switch (e->kind) {
    case FDR_ENTER:
    case FDR_LEAVE: edge(p, e); break;
    case FDR_METRIC: counter(p, e); break;
    case FDR_SAMPLE: sample(p, e); break;
    default: point(p, e); break;
    }
}

static int process(const struct process *p, const struct fdr_select *select)
{
    struct fdr_read_event e;
    struct fdr_iter *iter = fdr_iter_open(p->file, select);
    if (!iter) return -ENOMEM;
    describe(p);
    while (!p->out->error && fdr_iter_next(iter, &e)) event(p, &e);
    fdr_iter_close(iter);
    return 0;
}

static int run(struct fdr_file *const *files, size_t count, const struct fdr_select *select, const char *const *value,
               const char *out_path)
{
    (void)value;
    struct fdri_convert_text *out;
    struct frames frames = {0};
    bool first = true, by_place = fdri_convert_pids_collide(files, count);
    uint64_t *shift = calloc(count ? count : 1, sizeof *shift);
    int status = shift ? fdri_convert_text_open(&out, out_path) : -ENOMEM;
    if (status != 0) {
        free(shift);
        return status;
    }
    fdri_convert_time_line(files, count, shift);
    fdri_convert_text_string(out, "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[");
    for (size_t i = 0; i < count && status == 0; i++) {
        const struct fdr_file_info *info = fdr_file_info(files[i]);
        struct process p = {files[i], out, by_place ? i + 1 : info->pid, shift[i], &first, &frames};
        status = process(&p, select ? &select[i] : NULL);
    }
    fdri_convert_text_string(out, "\n]");
    if (frames.count) write_frames(out, &frames);
    fdri_convert_text_string(out, "}\n");
    free(frames.frame);
    free(shift);
    return fdri_convert_text_close(out, status);
}

const struct fdr_exporter fdri_convert_chrome = {
    .name = "chrome",
    .help = "JSON for trace viewers: Perfetto, chrome://tracing",
    .call_bytes = 120,
    .run = run,
};
