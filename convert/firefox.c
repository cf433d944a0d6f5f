/* SPDX-License-Identifier: MIT */
/* The processed profile of profiler.firefox.com. A location is a thread. At each enter and leave it has a sample: the
 * stack from then on, weighted by the time to the next one. So the call tree has the own time of each path, the stack
 * chart each call. Samples of a thread are a thread of their own. All other events are markers with their fields.
 *
 * The format has columns, one behind the other. Each is a pass over the events of the location, so that none needs
 * memory; only the tables of strings, functions and stacks do. Times are ms with 6 digits behind the point. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "convert/convert_text.h"
#include "convert/event_text.h"
#include "convert/exporters.h"
#include "convert/interned.h"
#include "convert/time_line.h"
#include "convert/titles.h"

#define POINTS (~(1u << FDR_IN_REGION | 1u << FDR_IN_SAMPLE))
enum { VERSION = 47, GECKO_VERSION = 28, NO_STACK = -1, DEEPEST = 1100 };

struct firefox {
    struct fdri_convert_text *out;
    struct fdr_file *file;
    const struct fdr_select *select; /* of the file */
    const struct fdr_location_info *location;
    uint64_t origin_ns, shift_ns; /* times are shown as time + shift - origin */
    bool samples;                 /* the thread shows samples */
    bool any_thread, no_memory;
    struct fdri_convert_interned strings, functions, stacks; /* of the thread */
    int32_t path[DEEPEST];                                   /* stacks of the open calls; [0] none */
    uint32_t depth;
    uint64_t entries, last_ns; /* of the column under way */
};
struct function {
    uint32_t name, file, line;
};
struct stack {
    int32_t prefix;
    uint32_t function;
};
typedef void (*each)(struct firefox *f, const struct fdr_read_event *e);

static void text(struct firefox *f, const char *string) { fdri_convert_text_string(f->out, string); }
static void number(struct firefox *f, int64_t value) { fdri_convert_text_i64(f->out, value); }

static void milliseconds(struct firefox *f, uint64_t ns)
{
    char digits[40];
    snprintf(digits, sizeof digits, "%llu.%06llu", (unsigned long long)(ns / 1000000),
             (unsigned long long)(ns % 1000000));
    text(f, digits);
}

static void time_of(struct firefox *f, uint64_t ns) { milliseconds(f, ns + f->shift_ns - f->origin_ns); }

/* ---- tables of the thread ---- */

static uint32_t interned(struct firefox *f, struct fdri_convert_interned *t, const void *key, size_t bytes)
{
    bool is_new;
    uint32_t n = fdri_convert_intern(t, key, bytes, &is_new);
    f->no_memory |= n == FDRI_CONVERT_NO_NUMBER;
    return n;
}

static uint32_t string(struct firefox *f, const char *s) { return interned(f, &f->strings, s, strlen(s)); }

/* The stack of a function below another stack. */
static int32_t below(struct firefox *f, int32_t prefix, const char *name, const char *file, uint32_t line)
{
    const struct function function = {string(f, name), file && file[0] ? string(f, file) + 1 : 0, line};
    const struct stack stack = {prefix, interned(f, &f->functions, &function, sizeof function)};
    return (int32_t)interned(f, &f->stacks, &stack, sizeof stack);
}

/* ---- columns ---- */

/* One pass over the chosen events of the location. */
static void pass(struct firefox *f, uint32_t classes, each what)
{
    struct fdr_select s = f->select ? *f->select : (struct fdr_select){0};
    struct fdr_read_event e;
    s.classes = s.classes ? s.classes & classes : classes;
    s.locations = &f->location->id;
    s.location_count = 1;
    f->entries = f->depth = 0;
    f->last_ns = 0;
    struct fdr_iter *iter = s.classes & ((1u << (FDR_IN_USER + 1)) - 1) ? fdr_iter_open(f->file, &s) : NULL;
    while (iter && !f->no_memory && !f->out->error && fdr_iter_next(iter, &e)) {
        if (e.kind == FDR_RESOLVE || (e.kind == FDR_SAMPLE && !e.sample)) continue;
        what(f, &e);
    }
    fdr_iter_close(iter);
}

static void column(struct firefox *f, const char *name, uint32_t classes, each what)
{
    text(f, name);
    pass(f, classes, what);
}

static void comma(struct firefox *f)
{
    if (f->entries++) text(f, ",");
}

/* ---- samples ---- */

static int32_t sampled_stack(struct firefox *f, const struct fdr_read_event *e)
{
    const struct fdr_sample_path *s = e->sample;
    int32_t stack = NO_STACK;
    for (uint32_t i = 0; i < s->region_count; i++) {
        const struct fdr_definition *d = fdr_definition(f->file, FDR_REGION_DEFINITION, s->region[i]);
        stack = below(f, stack, d->name, d->file, d->line);
    }
    for (uint32_t i = 0; i < s->frame_count + (s->pc != 0); i++) {
        bool is_frame = i < s->frame_count;
        const struct fdr_place *p = fdr_place_at(f->file, is_frame ? s->frame[i] : s->pc, is_frame, e->time_ns);
        stack = below(f, stack, p->function, p->file, 0);
        for (uint32_t k = p->inlined_count; k-- > 0;)
            stack = below(f, stack, p->inlined[k].function, p->inlined[k].file, 0);
    }
    return stack;
}

static int32_t call_stack(struct firefox *f, const struct fdr_read_event *e)
{
    if (e->kind == FDR_LEAVE) {
        if (f->depth) f->depth--;
    } else if (f->depth + 1 < DEEPEST) {
        const struct fdr_definition *d = fdr_definition(f->file, FDR_REGION_DEFINITION, e->id);
        int32_t around = f->depth ? f->path[f->depth] : NO_STACK;
        f->path[++f->depth] = below(f, around, fdri_convert_call(f->file, e), e->reduced ? "" : d->file,
                                    e->reduced ? 0 : d->line);
    }
    return f->depth ? f->path[f->depth] : NO_STACK;
}

static void stack_column(struct firefox *f, const struct fdr_read_event *e)
{
    int32_t stack = f->samples ? sampled_stack(f, e) : call_stack(f, e);
    comma(f);
    if (stack == NO_STACK) text(f, "null");
    else number(f, stack);
}

static void time_column(struct firefox *f, const struct fdr_read_event *e)
{
    comma(f);
    time_of(f, e->time_ns);
}

/* Of samples their periods; of calls the time to the next event. */
static void weight_column(struct firefox *f, const struct fdr_read_event *e)
{
    if (f->samples) {
        comma(f);
        fdri_convert_text_u64(f->out, e->sample->weight);
        return;
    }
    if (f->entries > 1) text(f, ",");
    if (f->entries++) milliseconds(f, e->time_ns - f->last_ns);
    f->last_ns = e->time_ns;
}

static void samples(struct firefox *f)
{
    uint32_t classes = 1u << (f->samples ? FDR_IN_SAMPLE : FDR_IN_REGION);
    column(f, ",\n\"samples\":{\"stack\":[", classes, stack_column);
    column(f, "],\n\"time\":[", classes, time_column);
    column(f, "],\n\"weight\":[", classes, weight_column);
    if (!f->samples && f->entries) text(f, f->entries > 1 ? ",0" : "0"); /* nothing follows the last event */
    text(f, f->samples ? "],\"weightType\":\"samples\",\"length\":" : "],\"weightType\":\"tracing-ms\",\"length\":");
    number(f, (int64_t)f->entries);
    text(f, "}");
}

/* ---- markers ---- */

static void marker_name(struct firefox *f, const struct fdr_read_event *e)
{
    char name[300];
    snprintf(name, sizeof name, "%s %.250s", fdr_kind_info(e->kind)->name, fdri_convert_event_name(f->file, e));
    comma(f);
    number(f, string(f, name));
}

static void marker_data(struct firefox *f, const struct fdr_read_event *e)
{
    char values[FDRI_CONVERT_EVENT_VALUES];
    fdri_convert_event_values(f->file, e, values);
    comma(f);
    text(f, "{\"type\":\"fdr\",\"values\":");
    fdri_convert_text_json(f->out, values);
    text(f, "}");
}

static void marker_null(struct firefox *f, const struct fdr_read_event *e)
{
    (void)e;
    comma(f);
    text(f, "null");
}

static void marker_zero(struct firefox *f, const struct fdr_read_event *e)
{
    (void)e;
    comma(f);
    text(f, "0");
}

static void markers(struct firefox *f)
{
    column(f, ",\n\"markers\":{\"name\":[", POINTS, marker_name);
    column(f, "],\n\"startTime\":[", POINTS, time_column);
    column(f, "],\n\"endTime\":[", POINTS, marker_null);
    column(f, "],\n\"phase\":[", POINTS, marker_zero); /* a moment */
    column(f, "],\n\"category\":[", POINTS, marker_zero);
    column(f, "],\n\"data\":[", POINTS, marker_data);
    text(f, "],\"length\":");
    number(f, (int64_t)f->entries);
    text(f, "}");
}

/* ---- tables at the end of a thread ---- */

/* A column of the same text in each row. */
static void same(struct firefox *f, const char *name, uint32_t count, const char *value)
{
    text(f, name);
    for (uint32_t i = 0; i < count; i++) text(f, i ? "," : ""), text(f, value);
    text(f, "]");
}

/* A column of uint32_t or int32_t at this place of each key. -1 becomes null; of `from_one`, 0 does. */
static void field(struct firefox *f, const char *name, const struct fdri_convert_interned *t, size_t place,
                  bool from_one)
{
    text(f, name);
    for (uint32_t i = 0; i < t->count; i++) {
        int32_t value;
        memcpy(&value, (const char *)fdri_convert_interned_key(t, i) + place, sizeof value);
        value -= from_one;
        text(f, i ? "," : "");
        if (value < 0) text(f, "null");
        else number(f, value);
    }
    text(f, "]");
}

static void numbered(struct firefox *f, const char *name, uint32_t count)
{
    text(f, name);
    for (uint32_t i = 0; i < count; i++) text(f, i ? "," : ""), number(f, i);
    text(f, "]");
}

static void length(struct firefox *f, uint32_t count)
{
    text(f, ",\"length\":");
    number(f, count);
    text(f, "}");
}

/* Each function has one frame. */
static void tables(struct firefox *f)
{
    uint32_t n = f->functions.count, stacks = f->stacks.count;
    field(f, ",\n\"stackTable\":{\"prefix\":[", &f->stacks, offsetof(struct stack, prefix), false);
    field(f, ",\"frame\":[", &f->stacks, offsetof(struct stack, function), false);
    same(f, ",\"category\":[", stacks, "0");
    same(f, ",\"subcategory\":[", stacks, "0");
    length(f, stacks);
    numbered(f, ",\n\"frameTable\":{\"func\":[", n);
    same(f, ",\"address\":[", n, "-1");
    same(f, ",\"inlineDepth\":[", n, "0");
    same(f, ",\"category\":[", n, "0");
    same(f, ",\"subcategory\":[", n, "0");
    same(f, ",\"nativeSymbol\":[", n, "null");
    same(f, ",\"innerWindowID\":[", n, "0");
    same(f, ",\"implementation\":[", n, "null");
    same(f, ",\"line\":[", n, "null");
    same(f, ",\"column\":[", n, "null");
    length(f, n);
    field(f, ",\n\"funcTable\":{\"name\":[", &f->functions, offsetof(struct function, name), false);
    field(f, ",\"fileName\":[", &f->functions, offsetof(struct function, file), true);
    field(f, ",\"lineNumber\":[", &f->functions, offsetof(struct function, line), true);
    same(f, ",\"isJS\":[", n, "false");
    same(f, ",\"relevantForJS\":[", n, "false");
    same(f, ",\"resource\":[", n, "-1");
    same(f, ",\"columnNumber\":[", n, "null");
    length(f, n);
    text(f, ",\n\"resourceTable\":{\"lib\":[],\"name\":[],\"host\":[],\"type\":[],\"length\":0}"
            ",\"nativeSymbols\":{\"libIndex\":[],\"address\":[],\"name\":[],\"functionSize\":[],\"length\":0}"
            ",\n\"stringArray\":[");
    for (uint32_t i = 0; i < f->strings.count; i++) {
        text(f, i ? ",\n" : "");
        fdri_convert_text_json(f->out, fdri_convert_interned_key(&f->strings, i));
    }
    text(f, "]");
}

/* ---- threads ---- */

static void thread(struct firefox *f, uint64_t pid)
{
    char name[700], start[300];
    const struct fdr_location_info *l = f->location;
    fdri_convert_thread(l, name, sizeof name);
    if (f->samples)
        snprintf(name, sizeof name, "samples of %.600s",
                 fdri_convert_sampled(f->file, fdri_convert_stream(f->file, l->id)));
    text(f, f->any_thread ? ",\n{\"name\":" : "\n{\"name\":");
    fdri_convert_text_json(f->out, name);
    snprintf(start, sizeof start, ",\"isMainThread\":%s,\"pid\":\"%llu\",\"tid\":%llu",
             l->tid == fdr_file_info(f->file)->pid && !f->samples && l->parent == UINT32_MAX ? "true" : "false",
             (unsigned long long)pid, (unsigned long long)l->id);
    text(f, start);
    text(f, ",\"processType\":\"default\",\"processName\":");
    fdri_convert_process(f->file, name, sizeof name);
    fdri_convert_text_json(f->out, name);
    text(f, ",\"processStartupTime\":0,\"processShutdownTime\":null,\"registerTime\":0,\"unregisterTime\":null,"
            "\"pausedRanges\":[]");
    f->any_thread = true;
    samples(f);
    markers(f);
    tables(f);
    text(f, "}");
    fdri_convert_interned_free(&f->strings);
    fdri_convert_interned_free(&f->functions);
    fdri_convert_interned_free(&f->stacks);
}

static bool chosen(const struct firefox *f)
{
    const struct fdr_select *s = f->select;
    bool any = !s || !s->locations;
    for (size_t i = 0; s && s->locations && i < s->location_count; i++) any |= s->locations[i] == f->location->id;
    return any && (!f->samples || !s || !s->classes || s->classes >> FDR_IN_SAMPLE & 1);
}

static void one_file(struct firefox *f, uint64_t pid)
{
    for (size_t i = 0; i < fdr_location_count(f->file) && !f->no_memory; i++) {
        f->location = fdr_location_info(f->file, i);
        f->samples = f->location->samples;
        if (chosen(f)) thread(f, pid);
    }
}

static void head(struct firefox *f, struct fdr_file *const *files, size_t count)
{
    char title[700] = "fdr", start[60];
    if (count) fdri_convert_process(files[0], title, sizeof title);
    text(f, "{\"meta\":{\"interval\":1,\"startTime\":");
    uint64_t epoch_ns = count ? f->origin_ns + (uint64_t)fdr_file_info(files[0])->realtime_offset_ns : 0;
    milliseconds(f, epoch_ns);
    snprintf(start, sizeof start, ",\"version\":%d,\"preprocessedProfileVersion\":%d", GECKO_VERSION, VERSION);
    text(f, start);
    text(f, ",\"processType\":0,\"stackwalk\":1,\"debug\":false,\"symbolicated\":true,\"importedFrom\":\"fdr\","
            "\"product\":");
    fdri_convert_text_json(f->out, title);
    text(
        f,
        ",\n\"categories\":[{\"name\":\"Other\",\"color\":\"blue\",\"subcategories\":[\"Other\"]}],"
        "\n\"markerSchema\":[{\"name\":\"fdr\",\"tooltipLabel\":\"{marker.name}\",\"tableLabel\":\"{marker.data.values}"
        "\","
        "\"chartLabel\":\"{marker.data.values}\",\"display\":[\"marker-chart\",\"marker-table\",\"timeline-overview\"],"
        "\"data\":[{\"key\":\"values\",\"label\":\"Values\",\"format\":\"string\",\"searchable\":true}]}]},"
        "\n\"libs\":[],\"threads\":[");
}

static int run(struct fdr_file *const *files, size_t count, const struct fdr_select *select, const char *const *value,
               const char *out_path)
{
    struct firefox f = {0};
    (void)value;
    int status = fdri_convert_text_open(&f.out, out_path);
    if (status) return status;
    uint64_t *shift = calloc(count + 1, sizeof *shift);
    if (shift) fdri_convert_time_line(files, count, shift);
    for (size_t i = 0; shift && i < count; i++) {
        uint64_t first = fdr_file_info(files[i])->first_ns + shift[i];
        if (!i || first < f.origin_ns) f.origin_ns = first;
    }
    head(&f, files, count);
    bool by_place = fdri_convert_pids_collide(files, count);
    for (size_t i = 0; shift && i < count; i++) {
        f.file = files[i];
        f.select = select ? &select[i] : NULL;
        f.shift_ns = shift[i];
        one_file(&f, by_place ? i + 1 : fdr_file_info(files[i])->pid);
    }
    text(&f, "\n]}\n");
    status = !shift || f.no_memory ? -ENOMEM : 0;
    free(shift);
    return fdri_convert_text_close(f.out, status);
}

const struct fdr_exporter fdri_convert_firefox = {
    .name = "firefox",
    .help = "a profile for profiler.firefox.com: stacks, samples, markers",
    .call_bytes = 60,
    .run = run,
};
