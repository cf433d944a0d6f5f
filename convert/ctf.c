/* SPDX-License-Identifier: MIT */
/* The Common Trace Format 1.8, for babeltrace2 and Trace Compass: a directory with a file for each location, and the
 * text that describes them. Names are labels of two enumerations, of regions and of all else, so that an event holds a
 * number. The text is written last, when all names and kinds of events are known. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "convert/convert_text.h"
#include "convert/exporters.h"
#include "convert/interned.h"
#include "convert/output_directory.h"
#include "convert/time_line.h"
#include "convert/titles.h"

enum { ENTER, LEAVE, SAMPLE, FIRST_KIND };
enum { NAME_BYTES = 100, NAME_MOST = 41, FIELDS = 16 };

/* An event class of points: what they are, and their fields. */
struct kind {
    const char *name;
    const struct fdr_field_info *field; /* belongs to the reader */
    uint32_t fields;
    bool labelled; /* says by a label which metric, file, ... it is about */
};
struct ctf {
    const char *directory;
    struct fdri_convert_text *out; /* the stream under way */
    struct fdr_file *file;
    size_t at; /* number of the file */
    uint64_t shift_ns;
    uint32_t streams;
    struct fdri_convert_interned regions, labels, kinds;
    struct kind *kind; /* of each key in `kinds` */
    size_t kind_room;
    int error;
};

/* ---- bytes of a stream ---- */

static void number(struct ctf *c, uint64_t value, unsigned bytes)
{
    char raw[8];
    for (unsigned i = 0; i < bytes; i++) raw[i] = (char)(value >> 8 * i);
    fdri_convert_text_bytes(c->out, raw, bytes);
}

/* Characters that are not plain become spaces. */
static void plain(struct fdri_convert_text *out, const char *text)
{
    for (size_t n; *text; text += n ? n : 1) {
        n = fdri_convert_text_plain(text);
        fdri_convert_text_bytes(out, n ? text : " ", n ? n : 1);
    }
}

static void string(struct ctf *c, const char *text)
{
    plain(c->out, text);
    fdri_convert_text_bytes(c->out, "", 1);
}

static uint32_t label(struct ctf *c, struct fdri_convert_interned *labels, const char *text)
{
    bool is_new;
    uint32_t n = fdri_convert_intern(labels, text, strlen(text), &is_new);
    if (n == FDRI_CONVERT_NO_NUMBER) c->error = -ENOMEM;
    return n;
}

static void header(struct ctf *c, uint32_t kind, uint64_t time_ns)
{
    number(c, kind, 4);
    number(c, time_ns + c->shift_ns, 8);
}

/* ---- events ---- */

static void call(struct ctf *c, const struct fdr_read_event *e)
{
    header(c, e->kind == FDR_ENTER ? ENTER : LEAVE, e->time_ns);
    number(c, label(c, &c->regions, fdri_convert_call(c->file, e)), 4);
    number(c, e->repaired, 1);
}

static void sample(struct ctf *c, const struct fdr_read_event *e)
{
    const struct fdr_sample_path *s = e->sample;
    header(c, SAMPLE, e->time_ns);
    number(c, s ? s->weight : 0, 8);
    for (uint32_t i = 0; s && i < s->region_count; i++) {
        plain(c->out, fdr_definition(c->file, FDR_REGION_DEFINITION, s->region[i])->name);
        fdri_convert_text_string(c->out, ";");
    }
    for (uint32_t i = 0; s && i < s->frame_count; i++) {
        plain(c->out, fdr_place_at(c->file, s->frame[i], true, e->time_ns)->function);
        fdri_convert_text_string(c->out, ";");
    }
    if (s && s->pc) plain(c->out, fdr_place_at(c->file, s->pc, false, e->time_ns)->function);
    if (s && s->state != UINT32_MAX) plain(c->out, fdr_definition(c->file, FDR_REGION_DEFINITION, s->state)->name);
    fdri_convert_text_bytes(c->out, "", 1);
}

/* The number of the event class; user events have one for each type. */
static uint32_t kind_of(struct ctf *c, const struct fdr_read_event *e)
{
    bool own = e->class_ == FDR_IN_USER || e->class_ == FDR_IN_METRIC, is_new;
    const struct {
        uint64_t file;
        uint32_t kind, id;
    } key = {own ? c->at + 1 : 0, e->kind, own ? e->id : 0};
    if (c->kinds.count == c->kind_room) {
        size_t room = c->kind_room ? c->kind_room * 2 : 64;
        struct kind *more = realloc(c->kind, room * sizeof *more);
        if (!more) {
            c->error = -ENOMEM;
            return 0;
        }
        c->kind = more;
        c->kind_room = room;
    }
    uint32_t n = fdri_convert_intern(&c->kinds, &key, sizeof key, &is_new);
    if (n == FDRI_CONVERT_NO_NUMBER) c->error = -ENOMEM;
    if (is_new) {
        const struct fdr_field_info *field;
        size_t count = fdr_event_fields(c->file, e, &field);
        const char *name = own ? fdr_id_name(c->file, e->class_, e->id) : fdr_kind_info(e->kind)->name;
        c->kind[n] = (struct kind){name, field, (uint32_t)(count < FIELDS ? count : FIELDS), !own};
    }
    return n;
}

static void point(struct ctf *c, const struct fdr_read_event *e)
{
    uint32_t n = kind_of(c, e);
    if (c->error) return;
    const struct kind *k = &c->kind[n];
    header(c, n + FIRST_KIND, e->time_ns);
    if (k->labelled) number(c, label(c, &c->labels, fdr_id_name(c->file, e->class_, e->id)), 4);
    for (uint32_t i = 0; i < k->fields; i++) number(c, i < e->field_count ? e->field[i] : 0, 8);
}

static void event(struct ctf *c, const struct fdr_read_event *e)
{
    if (e->kind == FDR_ENTER || e->kind == FDR_LEAVE) call(c, e);
    else if (e->kind == FDR_SAMPLE) sample(c, e);
    else if (e->kind != FDR_RESOLVE) point(c, e);
}

/* ---- files ---- */

static void open_file(struct ctf *c, const char *name)
{
    char *path = malloc(strlen(c->directory) + 40);
    if (path) sprintf(path, "%s/%s", c->directory, name);
    int status = path ? fdri_convert_text_open(&c->out, path) : -ENOMEM;
    free(path);
    if (status) c->error = status;
}

static void close_file(struct ctf *c)
{
    int status = c->out ? fdri_convert_text_close(c->out, c->error) : 0;
    c->out = NULL;
    if (status) c->error = status;
}

static void begin_stream(struct ctf *c, uint32_t location)
{
    char text[700];
    close_file(c);
    if (c->error) return;
    snprintf(text, sizeof text, "stream_%u", c->streams++);
    open_file(c, text);
    if (c->error) return;
    number(c, 0xC1FC1FC1u, 4);
    number(c, 0, 4); /* the only class of streams */
    number(c, c->at, 4);
    number(c, location, 4);
    fdri_convert_process(c->file, text, sizeof text);
    string(c, text);
    for (size_t i = 0; i < fdr_location_count(c->file); i++) {
        const struct fdr_location_info *l = fdr_location_info(c->file, i);
        if (l->id != location) continue;
        fdri_convert_thread(l, text, sizeof text);
        string(c, text);
        return;
    }
    string(c, "");
}

static void one_file(struct ctf *c, const struct fdr_select *select)
{
    struct fdr_select all = select ? *select : (struct fdr_select){0};
    struct fdr_read_event e;
    uint64_t location = UINT64_MAX;
    all.one_location_after_another = true;
    struct fdr_iter *iter = fdr_iter_open(c->file, &all);
    if (!iter) c->error = -ENOMEM;
    while (!c->error && fdr_iter_next(iter, &e)) {
        if (e.location != location) begin_stream(c, e.location);
        location = e.location;
        if (!c->error) event(c, &e);
        if (c->out && c->out->error) c->error = -c->out->error;
    }
    fdr_iter_close(iter);
    close_file(c);
}

/* ---- the description ---- */

static void text(struct ctf *c, const char *words) { fdri_convert_text_string(c->out, words); }

static void literal(struct ctf *c, const char *words)
{
    text(c, "\"");
    for (size_t n; *words; words += n ? n : 1) {
        n = fdri_convert_text_plain(words);
        if (*words == '"' || *words == '\\') text(c, "\\");
        fdri_convert_text_bytes(c->out, n ? words : " ", n ? n : 1);
    }
    text(c, "\"");
}

static void enumeration(struct ctf *c, const char *name, const struct fdri_convert_interned *labels)
{
    text(c, "enum ");
    text(c, name);
    text(c, " : uint32_t {");
    for (uint32_t i = 0; i < labels->count; i++) {
        text(c, i ? ",\n\t" : "\n\t");
        literal(c, fdri_convert_interned_key(labels, i));
        text(c, " = ");
        fdri_convert_text_u64(c->out, i);
    }
    text(c, labels->count ? "\n};\n" : " \"none\" = 0 };\n");
}

static void identifier(const char *text, char *name)
{
    size_t used = 0;
    name[used++] = '_';
    for (; *text && used < NAME_MOST; text++) {
        bool good = (*text >= 'a' && *text <= 'z') || (*text >= 'A' && *text <= 'Z') || (*text >= '0' && *text <= '9');
        name[used++] = good ? *text : '_';
    }
    name[used] = 0;
}

/* Names of fields are identifiers, and no two of an event are equal: babeltrace2 refuses the whole trace otherwise. */
static void field_names(const struct kind *k, char name[FIELDS][NAME_BYTES])
{
    for (uint32_t i = 0; i < k->fields; i++) {
        identifier(k->field[i].name, name[i]);
        for (uint32_t earlier = 0; earlier < i;) {
            if (strcmp(name[earlier], name[i]) != 0) {
                earlier++;
                continue;
            }
            size_t used = strlen(name[i]);
            snprintf(name[i] + used, NAME_BYTES - used, "_%u", i);
            earlier = 0;
        }
    }
}

static void field(struct ctf *c, const struct fdr_field_info *f, const char *name)
{
    text(c, "\n\t\t");
    if (f->word) {
        text(c, "enum : uint64_t { ");
        for (uint64_t w = 0; f->word[w]; w++) {
            text(c, w ? ", " : "");
            literal(c, f->word[w]);
            text(c, " = ");
            fdri_convert_text_u64(c->out, w);
        }
        text(c, " } ");
    } else {
        text(c, f->type == FDR_VALUE_F64 ? "double " : f->type == FDR_VALUE_I64 ? "int64_t " : "uint64_t ");
    }
    text(c, name);
    text(c, ";");
}

static void begin_class(struct ctf *c, const char *name, uint32_t id)
{
    text(c, "event {\n\tname = ");
    literal(c, name);
    text(c, ";\n\tid = ");
    fdri_convert_text_u64(c->out, id);
    text(c, ";\n\tstream_id = 0;\n\tfields := struct {");
}

static void describe_kind(struct ctf *c, uint32_t n)
{
    const struct kind *k = &c->kind[n];
    char name[FIELDS][NAME_BYTES];
    field_names(k, name);
    begin_class(c, k->name, n + FIRST_KIND);
    if (k->labelled) text(c, "\n\t\tenum label _name;");
    for (uint32_t i = 0; i < k->fields; i++) field(c, &k->field[i], name[i]);
    text(c, "\n\t};\n};\n");
}

static void describe_clock(struct ctf *c, struct fdr_file *const *files, size_t count)
{
    int64_t offset = count ? fdr_file_info(files[0])->realtime_offset_ns : 0;
    text(c, "env {\n\ttracer_name = \"fdr\";\n\thostname = ");
    literal(c, count ? fdr_file_info(files[0])->host : "");
    text(c, ";\n};\nclock {\n\tname = monotonic;\n\tfreq = 1000000000;\n\toffset = ");
    fdri_convert_text_i64(c->out, offset > 0 ? offset : 0);
    text(c, ";\n};\n"
            "typealias integer { size = 64; align = 8; signed = false; map = clock.monotonic.value; } := time_t;\n");
}

static void describe(struct ctf *c, struct fdr_file *const *files, size_t count)
{
    open_file(c, "metadata");
    if (c->error) return;
    text(c, "/* CTF 1.8 */\n"
            "typealias integer { size = 8; align = 8; signed = false; } := uint8_t;\n"
            "typealias integer { size = 32; align = 8; signed = false; } := uint32_t;\n"
            "typealias integer { size = 64; align = 8; signed = false; } := uint64_t;\n"
            "typealias integer { size = 64; align = 8; signed = true; } := int64_t;\n"
            "typealias floating_point { exp_dig = 11; mant_dig = 53; align = 8; } := double;\n"
            "trace {\n\tmajor = 1;\n\tminor = 8;\n\tbyte_order = le;\n"
            "\tpacket.header := struct { uint32_t magic; uint32_t stream_id; };\n};\n");
    describe_clock(c, files, count);
    enumeration(c, "region", &c->regions);
    enumeration(c, "label", &c->labels);
    text(c, "stream {\n\tid = 0;\n"
            "\tpacket.context := struct { uint32_t recording; uint32_t location; string process; string thread; };\n"
            "\tevent.header := struct { uint32_t id; time_t timestamp; };\n};\n");
    begin_class(c, "enter", ENTER);
    text(c, " enum region _region; uint8_t _repaired; };\n};\n");
    begin_class(c, "leave", LEAVE);
    text(c, " enum region _region; uint8_t _repaired; };\n};\n");
    begin_class(c, "sample", SAMPLE);
    text(c, " uint64_t _weight; string _stack; };\n};\n");
    for (uint32_t i = 0; i < c->kinds.count; i++) describe_kind(c, i);
    close_file(c);
}

static int run(struct fdr_file *const *files, size_t count, const struct fdr_select *select, const char *const *value,
               const char *out_path)
{
    struct ctf c = {0};
    char *part;
    (void)value;
    int status = fdri_convert_directory_begin(out_path, &part);
    if (status) return status;
    uint64_t *shift = calloc(count + 1, sizeof *shift);
    c.directory = part;
    c.error = shift ? 0 : -ENOMEM;
    if (shift) fdri_convert_time_line(files, count, shift);
    for (size_t i = 0; i < count && !c.error; i++) {
        c.at = i;
        c.file = files[i];
        c.shift_ns = shift[i];
        one_file(&c, select ? &select[i] : NULL);
    }
    if (!c.error) describe(&c, files, count);
    free(shift);
    free(c.kind);
    fdri_convert_interned_free(&c.regions);
    fdri_convert_interned_free(&c.labels);
    fdri_convert_interned_free(&c.kinds);
    return fdri_convert_directory_end(out_path, part, c.error);
}

const struct fdr_exporter fdri_convert_ctf = {
    .name = "ctf",
    .help = "a directory for babeltrace2 and Trace Compass",
    .call_bytes = 34,
    .directory = true,
    .run = run,
};
