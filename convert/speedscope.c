/* SPDX-License-Identifier: MIT */
/* The JSON of the viewer Speedscope. A location with calls is an evented profile: an O and a C for each call. Its times
 * are ns since the first stored event of its recording, as `fdr dump` shows them. Samples of a thread are a sampled
 * profile of their own. Its stacks begin with the outermost region. Their weight is the time that they stand for, or
 * the number of counted events. All profiles share one list of functions, which follows them. Other events have no
 * place in this format. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "convert/convert_text.h"
#include "convert/exporters.h"
#include "convert/titles.h"

struct frame {
    const char *name, *file; /* belong to a recording, which stays open until the end */
    uint32_t line;
};
struct frames {
    struct frame *frame;
    uint32_t *slot; /* hash table of indices + 1; 0: free */
    size_t count, slots;
};
enum section { NONE, CALLS, SAMPLES };
struct scope {
    struct fdri_convert_text *out;
    struct fdr_file *file;
    struct frames frames;
    bool several, any; /* several files; a profile was written */
    /* the profile under way */
    enum section section;
    uint32_t location;
    uint64_t from, to, count;
    const struct fdr_sample_stream *stream;
    uint64_t *weight; /* of its samples */
    size_t room;
    bool no_memory;
};

/* ---- functions ---- */

static size_t slot_of(const struct frames *f, const struct frame *one)
{
    uint64_t h = 0xCBF29CE484222325u ^ one->line;
    for (const char *c = one->name; *c; c++) h = (h ^ (uint8_t)*c) * 0x100000001B3u;
    size_t i = (h ^ h >> 29) & (f->slots - 1);
    for (; f->slot[i]; i = (i + 1) & (f->slots - 1)) {
        const struct frame *known = &f->frame[f->slot[i] - 1];
        if (known->line == one->line && !strcmp(known->name, one->name) && !strcmp(known->file, one->file)) break;
    }
    return i;
}

/* The table is at most half full. */
static bool room_for_frame(struct frames *f)
{
    if (f->count * 2 < f->slots) return true;
    size_t slots = f->slots ? f->slots * 2 : 1024;
    struct frame *frame = realloc(f->frame, slots / 2 * sizeof *frame);
    if (frame) f->frame = frame;
    uint32_t *slot = frame ? calloc(slots, sizeof *slot) : NULL;
    if (!slot) return false;
    free(f->slot);
    f->slot = slot;
    f->slots = slots;
    for (uint32_t i = 0; i < f->count; i++) slot[slot_of(f, &f->frame[i])] = i + 1;
    return true;
}

static uint32_t frame_of(struct scope *s, const char *name, const char *file, uint32_t line)
{
    struct frames *f = &s->frames;
    const struct frame one = {name, file, line};
    if (!room_for_frame(f)) {
        s->no_memory = true;
        return 0;
    }
    size_t i = slot_of(f, &one);
    if (!f->slot[i]) {
        f->frame[f->count] = one;
        f->slot[i] = (uint32_t)++f->count;
    }
    return f->slot[i] - 1;
}

static void write_frames(struct fdri_convert_text *out, const struct frames *f)
{
    fdri_convert_text_string(out, "\n],\"shared\":{\"frames\":[");
    for (size_t i = 0; i < f->count; i++) {
        fdri_convert_text_string(out, i ? ",\n{\"name\":" : "\n{\"name\":");
        fdri_convert_text_json(out, f->frame[i].name);
        if (f->frame[i].file[0]) {
            fdri_convert_text_string(out, ",\"file\":");
            fdri_convert_text_json(out, f->frame[i].file);
        }
        if (f->frame[i].line) {
            fdri_convert_text_string(out, ",\"line\":");
            fdri_convert_text_u64(out, f->frame[i].line);
        }
        fdri_convert_text_string(out, "}");
    }
    fdri_convert_text_string(out, "\n]}}\n");
}

/* ---- profiles ---- */

static void number(struct scope *s, const char *before, uint64_t value)
{
    fdri_convert_text_string(s->out, before);
    fdri_convert_text_u64(s->out, value);
}

/* The profile's name: its thread, behind the process if there are several. */
static void write_title(const struct scope *s)
{
    char title[1000] = "";
    size_t used = 0;
    if (s->several) {
        fdri_convert_process(s->file, title, sizeof title - 300);
        used = strlen(title);
        used += (size_t)snprintf(title + used, sizeof title - used, ": ");
    }
    if (s->section == SAMPLES)
        snprintf(title + used, sizeof title - used, "samples of %s", fdri_convert_sampled(s->file, s->stream));
    for (size_t i = 0; s->section == CALLS && i < fdr_location_count(s->file); i++) {
        const struct fdr_location_info *l = fdr_location_info(s->file, i);
        if (l->id == s->location) fdri_convert_thread(l, title + used, sizeof title - used);
    }
    fdri_convert_text_string(s->out, ",\"name\":");
    fdri_convert_text_json(s->out, title);
}

static void begin(struct scope *s, enum section section, uint32_t location)
{
    s->section = section;
    s->location = location;
    s->from = s->to = s->count = 0;
    s->stream = section == SAMPLES ? fdri_convert_stream(s->file, location) : NULL;
    bool timed = section == CALLS || s->stream->by != 2;
    fdri_convert_text_string(s->out, s->any ? ",\n{\"type\":" : "\n{\"type\":");
    fdri_convert_text_string(s->out, section == CALLS ? "\"evented\",\"unit\":" : "\"sampled\",\"unit\":");
    fdri_convert_text_string(s->out, timed ? "\"nanoseconds\"" : "\"none\"");
    write_title(s);
    fdri_convert_text_string(s->out, section == CALLS ? ",\"events\":[" : ",\"samples\":[");
    s->any = true;
}

static void end(struct scope *s)
{
    if (s->section == NONE) return;
    fdri_convert_text_string(s->out, "]");
    if (s->section == SAMPLES) fdri_convert_text_string(s->out, ",\"weights\":[");
    for (uint64_t i = 0; s->section == SAMPLES && i < s->count; i++) number(s, i ? "," : "", s->weight[i]);
    if (s->section == SAMPLES) fdri_convert_text_string(s->out, "]");
    number(s, ",\"startValue\":", s->from);
    number(s, ",\"endValue\":", s->to);
    fdri_convert_text_string(s->out, "}");
    s->section = NONE;
}

static void edge(struct scope *s, const struct fdr_read_event *e)
{
    const struct fdr_definition *d = fdr_definition(s->file, FDR_REGION_DEFINITION, e->id);
    bool known = !e->reduced;
    uint64_t first = fdr_file_info(s->file)->first_ns, at = e->time_ns > first ? e->time_ns - first : 0;
    fdri_convert_text_string(s->out, s->count ? ",\n{\"type\":\"" : "\n{\"type\":\"");
    fdri_convert_text_string(s->out, e->kind == FDR_ENTER ? "O" : "C");
    number(s, "\",\"frame\":", frame_of(s, fdri_convert_call(s->file, e), known ? d->file : "", known ? d->line : 0));
    number(s, ",\"at\":", at);
    fdri_convert_text_string(s->out, "}");
    if (!s->count++) s->from = at;
    s->to = at;
}

static void stack_frame(struct scope *s, bool *first, uint32_t frame)
{
    number(s, *first ? "" : ",", frame);
    *first = false;
}

static void place(struct scope *s, bool *first, uint64_t address, bool returns, uint64_t time_ns)
{
    const struct fdr_place *at = fdr_place_at(s->file, address, returns, time_ns);
    stack_frame(s, first, frame_of(s, at->function, at->file ? at->file : "", 0));
    for (uint32_t i = at->inlined_count; i-- > 0;) {
        const struct fdr_place *in = &at->inlined[i];
        stack_frame(s, first, frame_of(s, in->function, in->file ? in->file : "", 0));
    }
}

static void sample(struct scope *s, const struct fdr_read_event *e)
{
    const struct fdr_sample_path *p = e->sample;
    bool first = true;
    if (s->count == s->room) {
        size_t room = s->room ? s->room * 2 : 1024;
        uint64_t *weight = realloc(s->weight, room * sizeof *weight);
        if (!weight) {
            s->no_memory = true;
            return;
        }
        s->weight = weight;
        s->room = room;
    }
    fdri_convert_text_string(s->out, s->count ? ",\n[" : "\n[");
    for (uint32_t i = 0; i < p->region_count; i++) {
        const struct fdr_definition *d = fdr_definition(s->file, FDR_REGION_DEFINITION, p->region[i]);
        stack_frame(s, &first, frame_of(s, d->name, d->file, d->line));
    }
    for (uint32_t i = 0; i < p->frame_count; i++) place(s, &first, p->frame[i], true, e->time_ns);
    if (p->pc) place(s, &first, p->pc, false, e->time_ns);
    fdri_convert_text_string(s->out, "]");
    s->weight[s->count++] = p->weight * s->stream->period;
    s->to += p->weight * s->stream->period;
}

static int one_file(struct scope *s, const struct fdr_select *select)
{
    struct fdr_select chosen = select ? *select : (struct fdr_select){0};
    const uint32_t shown = 1u << FDR_IN_REGION | 1u << FDR_IN_SAMPLE;
    struct fdr_read_event e;
    chosen.classes = chosen.classes ? chosen.classes & shown : shown;
    chosen.one_location_after_another = true;
    if (!chosen.classes) return 0;
    struct fdr_iter *iter = fdr_iter_open(s->file, &chosen);
    if (!iter) return -ENOMEM;
    while (!s->no_memory && !s->out->error && fdr_iter_next(iter, &e)) {
        enum section section = e.kind == FDR_SAMPLE ? SAMPLES : CALLS;
        if (section == SAMPLES && !e.sample) continue;
        if (section != s->section || e.location != s->location) {
            end(s);
            begin(s, section, e.location);
        }
        (section == SAMPLES ? sample : edge)(s, &e);
    }
    end(s);
    fdr_iter_close(iter);
    return s->no_memory ? -ENOMEM : 0;
}

enum { TITLE };
static const struct fdr_export_option options[] = {
    [TITLE] = {"title", "TEXT", "title in the viewer; default: the program"},
};

static int run(struct fdr_file *const *files, size_t count, const struct fdr_select *select, const char *const *value,
               const char *out_path)
{
    struct scope s = {.several = count > 1};
    char title[700] = "fdr";
    int status = fdri_convert_text_open(&s.out, out_path);
    if (status) return status;
    if (count) fdri_convert_process(files[0], title, sizeof title);
    fdri_convert_text_string(s.out,
                             "{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\",\"exporter\":");
    fdri_convert_text_json(s.out, "fdr");
    fdri_convert_text_string(s.out, ",\"name\":");
    fdri_convert_text_json(s.out, value && value[TITLE] ? value[TITLE] : title);
    fdri_convert_text_string(s.out, ",\"profiles\":[");
    for (size_t i = 0; i < count && !status; i++) {
        s.file = files[i];
        status = one_file(&s, select ? &select[i] : NULL);
    }
    write_frames(s.out, &s.frames);
    free(s.frames.frame);
    free(s.frames.slot);
    free(s.weight);
    return fdri_convert_text_close(s.out, status);
}

const struct fdr_exporter fdri_convert_speedscope = {
    .name = "speedscope",
    .help = "JSON for speedscope.app, a profile for each thread",
    .option = options,
    .options = sizeof options / sizeof *options,
    .call_bytes = 75,
    .run = run,
};
