/* SPDX-License-Identifier: MIT */
/* fdr dump: the events in order of time: for people, as a table (--tsv), as JSON. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/common/verbs.h"
#include "tools/common/fast_output.h"
#include "tools/common/job_files.h"
#include "tools/common/progress.h"
#include "tools/common/selection.h"
#include "tools/common/short_names.h"

struct arguments {
    struct file_list files;
    const char *path; /* for messages */
    bool tsv, json;
    struct selection selection;
};

static const struct argp_option options[] = {
    {"tsv", 't', 0, 0, "A table with a header line: location time_ns kind depth id name attributes, separated by tabs",
     0},
    {"json", 'j', 0, 0, "An array with one object per event", 0},
    {0}};

static error_t parse(int key, char *text, struct argp_state *state)
{
    struct arguments *a = state->input;
    switch (key) {
    case ARGP_KEY_INIT: state->child_inputs[0] = &a->selection; return 0;
    case 't': a->tsv = true; return 0;
    case 'j': a->json = true; return 0;
    case ARGP_KEY_ARG: return some_files(state, key, text, &a->files);
    case ARGP_KEY_END:
        some_files(state, key, text, &a->files);
        if (a->tsv && a->json) argp_error(state, "--tsv or --json, not both");
        return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

/* ---- attributes: the fields of an event with their names and types ------------------------------------------- */

struct fields {
    uint32_t count;
    const struct fdr_field_info *field;
};

static struct fields fields_of(const struct fdr_file *file, const struct fdr_read_event *e)
{
    struct fields f;
    f.count = (uint32_t)fdr_event_fields(file, e, &f.field);
    return f;
}

/* Of metrics; else "". */
static const char *unit_of(const struct fdr_file *file, const struct fdr_read_event *e)
{
    return e->kind == FDR_METRIC ? fdr_metric_info(file, e->id)->unit : "";
}

/* True for a metric whose values are running counts; all others are gauges. */
static bool is_counter(const struct fdr_file *file, const struct fdr_read_event *e)
{
    return e->kind == FDR_METRIC && fdr_metric_info(file, e->id)->counter;
}

static const char *word_of(const struct fdr_field_info *f, uint64_t value)
{
    for (uint64_t i = 0; f->word && f->word[i]; i++)
        if (i == value) return f->word[i];
    return NULL;
}

static void write_value(const struct fdr_field_info *f, uint64_t bits, bool json)
{
    enum fdr_value_type type = f->type;
    const char *word = word_of(f, bits);
    double real;
    if (word) {
        if (json) out_json(word);
        else out_text(word);
        return;
    }
    memcpy(&real, &bits, sizeof real);
    if (type == FDR_VALUE_F64) {
        if (json && !(real - real == 0)) out_text("null"); /* JSON has neither infinities nor NaN */
        else out_f64(real);
    } else if (type == FDR_VALUE_I64) {
        out_i64((int64_t)bits);
    } else {
        out_u64(bits);
    }
}

/* Writes a name without the spaces and equal signs that would separate fields. */
static void write_word(const char *text)
{
    for (size_t n; *text; text += n ? n : 1) {
        n = *text == ' ' || *text == '=' ? 0 : plain_bytes(text);
        out_bytes(n ? text : "_", n ? n : 1);
    }
}

/* Fields may share a name, but keys must differ: the second is "name#2". */
static unsigned nth_of_name(const struct fields *f, uint32_t i)
{
    unsigned nth = 1;
    for (uint32_t k = 0; k < i; k++) nth += strcmp(f->field[k].name, f->field[i].name) == 0;
    return nth;
}

static void write_field_name(const struct fields *f, uint32_t i)
{
    unsigned nth = nth_of_name(f, i);
    write_word(f->field[i].name[0] ? f->field[i].name : "_");
    if (nth == 1) return;
    out_char('#');
    out_u64(nth);
}

static void out_hex(uint64_t value)
{
    char text[24];
    snprintf(text, sizeof text, "0x%llx", (unsigned long long)value);
    out_text(text);
}

/* Writes the path: regions, outermost first; then the functions of the stack. */
static void sample_attributes(const struct fdr_file *file, const struct fdr_read_event *e)
{
    const struct fdr_sample_path *p = e->sample;
    out_text("pc=");
    out_hex(address_in_process(file, p->pc));
    out_text(" weight=");
    out_u64(p->weight);
    for (uint32_t i = 0; i < p->region_count; i++) {
        out_text(i ? ";" : " regions=");
        write_word(region_name(file, p->region[i]));
    }
    for (uint32_t i = 0; i < p->frame_count; i++) {
        out_text(i ? ";" : " stack=");
        write_word(fdr_place_at(file, p->frame[i], true, e->time_ns)->function);
    }
    if (p->state != UINT32_MAX) {
        out_text(" state=");
        write_word(region_name(file, p->state));
    }
    if (p->flags & 1) out_text(p->state == UINT32_MAX ? " inside_fdr=1" : " moved=1");
    if (p->flags & 2) out_text(" cut=1");
}

/* Messages and collectives: do they say their ordinal? */
static bool has_place(const struct fdr_read_event *e)
{
    return e->kind == FDR_SEND || e->kind == FDR_RECV || e->kind == FDR_COLL_BEGIN || e->kind == FDR_COLL_END;
}

static void ordinal_attribute(const struct fdr_read_event *e)
{
    bool known = e->ordinal_kind == FDR_ORDINAL_KNOWN || e->ordinal_kind == FDR_ORDINAL_SHARED;
    out_text(e->field_count ? " ordinal=" : "ordinal=");
    if (known) out_u64(e->ordinal);
    else out_char('?');
    if (e->ordinal_kind == FDR_ORDINAL_SHARED) out_text(" ambiguous=1");
    if (e->ordinal_kind != FDR_ORDINAL_OPEN) return;
    out_text(" token=");
    out_u64(e->ordinal);
}

/* unknown: an ordinal that the recording does not have is written as `?`. */
static void write_attributes(const struct fdr_file *file, const struct fdr_read_event *e, bool unknown)
{
    struct fields f = fields_of(file, e);
    const char *unit = unit_of(file, e);
    bool some = false;
    for (uint32_t i = 0; i < f.count && i < e->field_count && i < 16; i++) {
        if (some) out_char(' ');
        write_field_name(&f, i);
        out_char('=');
        write_value(&f.field[i], e->field[i], false);
        some = true;
    }
    if (has_place(e) && (unknown || e->ordinal_kind != FDR_ORDINAL_NONE)) ordinal_attribute(e);
    if (unit[0]) {
        out_text(" unit=");
        write_word(unit);
    }
    if (is_counter(file, e)) out_text(" kind=counter");
    if (e->sample) sample_attributes(file, e);
    if (e->repaired) out_text(some ? " repaired=1" : "repaired=1");
    if (e->reduced) out_text(" reduced=1");
    if (e->filtered) out_text(" filtered=1");
    if (e->not_over) out_text(" not_over=1");
}

/* ---- --tsv ------------------------------------------------------------------------------------------------------ */

static void tsv_line(const struct fdr_file *file, const struct fdr_read_event *e)
{
    out_location(file, e->location);
    out_char('\t');
    out_u64(e->time_ns);
    out_char('\t');
    out_text(kind_name(e->kind));
    out_char('\t');
    out_u64(e->depth);
    out_char('\t');
    out_u64(e->id);
    out_char('\t');
    out_cell(event_name(file, e));
    out_char('\t');
    write_attributes(file, e, true);
    out_char('\n');
}

/* ---- --json ------------------------------------------------------------------------------------------------------ */

static void json_key(const char *before, const char *key)
{
    out_text(before);
    out_json(key);
    out_text(": ");
}

static void sample_json(const struct fdr_file *file, const struct fdr_read_event *e)
{
    const struct fdr_sample_path *p = e->sample;
    out_text("\"pc\": \"");
    out_hex(p->pc);
    out_text("\", \"weight\": ");
    out_u64(p->weight);
    out_text(", \"regions\": [");
    for (uint32_t i = 0; i < p->region_count; i++) {
        if (i) out_text(", ");
        out_json(region_name(file, p->region[i]));
    }
    out_text("], \"stack\": [");
    for (uint32_t i = 0; i < p->frame_count; i++) {
        if (i) out_text(", ");
        out_json(fdr_place_at(file, p->frame[i], true, e->time_ns)->function);
    }
    out_text("], \"state\": ");
    if (p->state == UINT32_MAX) out_text("null");
    else out_json(region_name(file, p->state));
    out_text(", \"flags\": ");
    out_u64(p->flags);
}

static void field_key(const char *before, const struct fields *f, uint32_t i)
{
    char key[1024];
    unsigned nth = nth_of_name(f, i);
    if (nth > 1) snprintf(key, sizeof key, "%.1000s#%u", f->field[i].name, nth);
    json_key(before, nth > 1 ? key : f->field[i].name);
}

static void ordinal_json(const char *before, const struct fdr_read_event *e)
{
    json_key(before, "ordinal");
    if (e->ordinal_kind == FDR_ORDINAL_KNOWN || e->ordinal_kind == FDR_ORDINAL_SHARED) out_u64(e->ordinal);
    else out_text("null");
    if (e->ordinal_kind == FDR_ORDINAL_SHARED) out_text(", \"ambiguous\": 1");
    if (e->ordinal_kind != FDR_ORDINAL_OPEN) return;
    json_key(", ", "token");
    out_u64(e->ordinal);
}

static void json_attributes(const struct fdr_file *file, const struct fdr_read_event *e)
{
    struct fields f = fields_of(file, e);
    const char *unit = unit_of(file, e);
    const char *before = "";
    for (uint32_t i = 0; i < f.count && i < e->field_count && i < 16; i++, before = ", ") {
        field_key(before, &f, i);
        write_value(&f.field[i], e->field[i], true);
    }
    if (has_place(e)) ordinal_json(before, e);
    if (unit[0]) {
        json_key(", ", "unit");
        out_json(unit);
    }
    if (e->kind == FDR_METRIC) {
        json_key(", ", "metric_kind");
        out_json(is_counter(file, e) ? "counter" : "gauge");
    }
    if (e->sample) sample_json(file, e);
    if (e->repaired) out_text(before), out_text("\"repaired\": 1");
    if (e->reduced) out_text(", \"reduced\": 1");
    if (e->filtered) out_text(", \"filtered\": 1");
    if (e->not_over) out_text(", \"not_over\": 1");
}

static void json_line(const struct fdr_file *file, const struct fdr_read_event *e, bool first)
{
    out_text(first ? "\n{\"location\": " : ",\n{\"location\": ");
    out_location_json(file, e->location);
    out_text(", \"time_ns\": ");
    out_u64(e->time_ns);
    out_text(", \"kind\": \"");
    out_text(kind_name(e->kind));
    out_text("\", \"depth\": ");
    out_u64(e->depth);
    out_text(", \"id\": ");
    out_u64(e->id);
    json_key(", ", "name");
    out_json(event_name(file, e));
    out_text(", \"attributes\": {");
    json_attributes(file, e);
    out_text("}}");
}

/* ---- for people -------------------------------------------------------------------------------------------------- */

#define INDENT_MOST 48u

static void left_columns(const struct fdr_file *file, uint64_t first_ns, const struct fdr_read_event *e)
{
    uint64_t d = e->time_ns >= first_ns ? e->time_ns - first_ns : 0;
    out_u64_wide(d / 1000000000u, 6);
    out_char('.');
    out_zeros(d % 1000000000u, 9);
    char text[LOCATION_LABEL_BYTES];
    out_text_wide(location_label(file, e->location, text), 6);
    out_char(' ');
}

static void indented(uint32_t depth)
{
    out_text("  ");
    out_spaces(2 * (depth < INDENT_MOST ? depth : INDENT_MOST));
}

static const char *note_of(const struct fdr_read_event *enter, const struct fdr_read_event *leave)
{
    if (enter->not_over) return "   (open when the snapshot was taken, name unknown)";
    if (enter->filtered) return "   (filtered, not stored)";
    if (enter->reduced) return "   (given back)";
    if (leave && leave->repaired) return "   (still open)";
    return enter->repaired ? "   (edge added)" : "";
}

/* Prints an enter. leave: its own leave if nothing lies between; then one line shows both. */
static void enter_line(const struct fdr_file *file, uint64_t first_ns, const struct fdr_read_event *e,
                       const struct fdr_read_event *leave)
{
    left_columns(file, first_ns, e);
    if (e->duration_ns || (leave && !leave->repaired)) out_time(e->duration_ns);
    else out_text_wide("", 12);
    indented(e->depth ? e->depth - 1 : 0);
    out_cell(shown_event(file, e));
    if (!leave) out_text(" {");
    out_text(note_of(e, leave));
    out_char('\n');
}

/* between: calls open like this one that got no line. */
static void leave_line(const struct fdr_file *file, uint64_t first_ns, const struct fdr_read_event *e, uint32_t between)
{
    left_columns(file, first_ns, e);
    out_spaces(12);
    indented(e->depth ? e->depth - 1 : 0);
    out_text("} ");
    out_cell(shown_event(file, e));
    if (between) {
        out_text("   (still open, and ");
        out_u64(between);
        out_text(" calls between)");
    } else if (e->repaired && !e->reduced) {
        out_text("   (still open)");
    }
    out_char('\n');
}

static void point_line(const struct fdr_file *file, uint64_t first_ns, const struct fdr_read_event *e)
{
    left_columns(file, first_ns, e);
    out_spaces(12);
    indented(e->depth);
    out_text("* ");
    const char *phase = kind_phase(e->kind);
    if (!*phase && e->class_ != FDR_IN_MESSAGE) {
        out_text(kind_name(e->kind));
        out_char(' ');
    }
    out_cell(shown_event(file, e));
    if (*phase) out_char(' '), out_text(phase), out_char('s');
    out_text("  ");
    write_attributes(file, e, false);
    out_char('\n');
}

static bool leaf(const struct fdr_read_event *enter, const struct fdr_read_event *next)
{
    return enter->kind == FDR_ENTER && next->kind == FDR_LEAVE && enter->location == next->location &&
           enter->depth == next->depth && enter->id == next->id;
}

static void human_line(const struct fdr_file *file, uint64_t first_ns, const struct fdr_read_event *e)
{
    if (e->kind == FDR_ENTER) enter_line(file, first_ns, e, NULL);
    else if (e->kind == FDR_LEAVE) leave_line(file, first_ns, e, 0);
    else point_line(file, first_ns, e);
}

/* Calls open at the end of the recording all leave at once, one after the other. Only the innermost and the outermost
 * get a line. */
struct open_calls {
    struct fdr_read_event outermost;
    uint32_t count;
};

static void end_open_calls(const struct fdr_file *file, uint64_t first_ns, struct open_calls *open)
{
    if (open->count > 1) leave_line(file, first_ns, &open->outermost, open->count - 2);
    open->count = 0;
}

static void human_event(const struct fdr_file *file, uint64_t first_ns, const struct fdr_read_event *e,
                        struct open_calls *open)
{
    bool ends = e->kind == FDR_LEAVE && e->repaired;
    if (open->count && (!ends || e->location != open->outermost.location)) end_open_calls(file, first_ns, open);
    if (!open->count) human_line(file, first_ns, e);
    if (!ends) return;
    open->outermost = *e;
    open->count++;
}

static void human_head(const struct fdr_file *file)
{
    const struct fdr_file_info *info = fdr_file_info(file);
    out_text("# times in seconds since ");
    out_u64(info->first_ns);
    out_text(" ns; calls without children on one line\n#    seconds          loc    duration   \n");
}

/* ---- steps of the clock ----------------------------------------------------------------------------------------- */

/* They belong to no event: people see them as lines between events. */
struct steps {
    const struct fdr_file_info *info;
    uint32_t next;
};

/* Prints the steps up to a time. Steps before the requested time get no line. */
static void steps_until(struct steps *s, uint64_t time_ns)
{
    char text[32];
    for (; s->next < s->info->clock_step_count && s->info->clock_step[s->next].time_ns <= time_ns; s->next++) {
        uint64_t d = s->info->clock_step[s->next].time_ns - s->info->first_ns;
        out_u64_wide(d / 1000000000u, 6);
        out_char('.');
        out_zeros(d % 1000000000u, 9);
        out_text("        # here the clock stepped back by ");
        out_text(human_time(text, s->info->clock_step[s->next].back_ns));
        out_text("; the times go on from there\n");
    }
}

static struct steps steps_from(const struct fdr_file *file, const struct fdr_select *select)
{
    struct steps s = {.info = fdr_file_info(file)};
    uint64_t from = select->from_ns > s.info->first_ns ? select->from_ns : s.info->first_ns;
    while (s.next < s.info->clock_step_count && s.info->clock_step[s.next].time_ns < from) s.next++;
    return s;
}

/* ---- the loop --------------------------------------------------------------------------------------------------- */

/* Holds an enter back until the next event, in case that is its leave. Holds nothing else: of a sample only an invalid
 * pointer would remain. */
static void dump_human(const struct fdr_file *file, const struct fdr_select *select, struct fdr_iter *iter,
                       struct progress *progress)
{
    uint64_t first_ns = fdr_file_info(file)->first_ns, done = 0;
    struct fdr_read_event slot[2], *held = NULL;
    struct steps steps = steps_from(file, select);
    struct open_calls open = {.count = 0};
    human_head(file);
    while (!out.failed) {
        struct fdr_read_event *e = held == &slot[0] ? &slot[1] : &slot[0];
        if (!fdr_iter_next(iter, e)) break;
        progress_at(progress, ++done);
        if (held) steps_until(&steps, held->time_ns);
        if (held && leaf(held, e)) {
            end_open_calls(file, first_ns, &open);
            enter_line(file, first_ns, held, e);
            held = NULL;
            continue;
        }
        if (held) human_event(file, first_ns, held, &open);
        held = e->kind == FDR_ENTER ? e : NULL;
        if (held) continue;
        steps_until(&steps, e->time_ns);
        human_event(file, first_ns, e, &open);
    }
    if (held) steps_until(&steps, held->time_ns);
    if (held) human_event(file, first_ns, held, &open);
    end_open_calls(file, first_ns, &open);
    steps_until(&steps, select->to_ns ? select->to_ns : UINT64_MAX);
}

static void dump_tsv(const struct fdr_file *file, struct fdr_iter *iter, struct progress *progress)
{
    struct fdr_read_event e;
    uint64_t done = 0;
    out_text("location\ttime_ns\tkind\tdepth\tid\tname\tattributes\n");
    while (!out.failed && fdr_iter_next(iter, &e)) {
        tsv_line(file, &e);
        progress_at(progress, ++done);
    }
}

static void dump_json(const struct fdr_file *file, struct fdr_iter *iter, struct progress *progress)
{
    struct fdr_read_event e;
    uint64_t done = 0;
    out_char('[');
    while (!out.failed && fdr_iter_next(iter, &e)) {
        json_line(file, &e, done == 0);
        progress_at(progress, ++done);
    }
    out_text("\n]\n");
}

static int dump(const struct arguments *a, struct fdr_file *file)
{
    struct progress progress = {.what = "dump"};
    struct chosen chosen;
    if (!choose(&a->selection, file, a->path, &chosen)) return COULD_NOT;
    struct fdr_iter *iter = fdr_iter_open(file, &chosen.select);
    if (iter) {
        progress_now(&progress, 0);
        if (a->tsv) dump_tsv(file, iter, &progress);
        else if (a->json) dump_json(file, iter, &progress);
        else dump_human(file, &chosen.select, iter, &progress);
        progress_end(&progress);
        fdr_iter_close(iter);
    } else {
        complain("%s: out of memory", a->path);
    }
    chosen_free(&chosen);
    return iter ? out_finish() : COULD_NOT;
}

int verb_dump(int argc, char **argv)
{
    static const struct argp_child children[] = {{&select_argp, 0, NULL, 0}, {&names_argp, 0, NULL, 0}, {0}};
    static const struct argp argp = {
        options,
        parse,
        "FILE...",
        "The events of a recording in time order.\v"
        "A call is shown as its enter and its leave. repaired=1 marks an edge that fdr added because the call was "
        "still open. Three attributes mark ancestors without a stored call: reduced=1 was given back, filtered=1 was "
        "filtered, not_over=1 was open when the snapshot was taken, its name unknown. A line marks where the clock "
        "stepped back. Tables and JSON have events only; fdr info --json has the steps. Several FILEs are the ranks of "
        "one "
        "job: a location is then RANK:ID.",
        children,
        NULL,
        NULL};
    struct arguments a = {0};
    int status = DONE;
    parse_arguments(&argp, argc, argv, &a);
    struct job_files job;
    if (!open_files(&job, &a.files, &status)) return status;
    a.path = job.name;
    status = worse(status, dump(&a, job.file));
    return worse(status, close_files(&job, true));
}
