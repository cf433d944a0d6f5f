/* SPDX-License-Identifier: MIT */
/* fdr samples: the samples by function, region, source line, stack or thread. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/common/verbs.h"
#include "tools/common/fast_output.h"
#include "tools/common/job_files.h"
#include "tools/common/sample_table.h"
#include "tools/common/selection.h"
#include "tools/common/terminal.h"
#include "tools/samples.h"

enum { AMOUNT_BYTES = HUMAN_BYTES + 32, ROWS = 30 };

struct arguments {
    struct file_list files;
    const char *path; /* for messages */
    enum samples_by by;
    int clock; /* -1: the clock of most samples */
    bool json, folded;
    uint64_t limit;
    struct selection selection;
};

static const struct argp_option options[] = {
    {"by", 'b', "WHAT", 0, "function (default), region, line, stack or thread", 0},
    {"clock", 'c', "CLOCK", 0, "cpu, wall or events, where a recording has samples of several", 0},
    {"limit", 'n', "N", 0, "At most N rows (30; 0: all)", 0},
    {"all", 'a', 0, 0, "All rows", 0},
    {"folded", 'f', 0, 0, "One line per stack, for flame graphs: thread;region;...;function, a space, and microseconds",
     0},
    {"json", 'j', 0, 0, "As JSON", 0},
    {0}};

static int choice(struct argp_state *state, const char *option, const char *text, const char *const *names, int count)
{
    for (int i = 0; i < count; i++)
        if (!strcmp(text, names[i])) return i;
    argp_error(state, "--%s: '%s' is not known", option, text);
    return 0;
}

static error_t parse(int key, char *text, struct argp_state *state)
{
    static const char *const kinds[] = {"function", "region", "line", "stack", "thread"};
    static const char *const clocks[] = {"cpu", "wall", "events"};
    struct arguments *a = state->input;
    switch (key) {
    case ARGP_KEY_INIT: state->child_inputs[0] = &a->selection; return 0;
    case 'b': a->by = (enum samples_by)choice(state, "by", text, kinds, 5); return 0;
    case 'c': a->clock = choice(state, "clock", text, clocks, 3); return 0;
    case 'n':
        if (!parse_count(text, &a->limit)) argp_error(state, "--limit: not a number: '%s'", text);
        return 0;
    case 'a': a->limit = 0; return 0;
    case 'f': a->folded = true; return 0;
    case 'j': a->json = true; return 0;
    case ARGP_KEY_ARG: return some_files(state, key, text, &a->files);
    case ARGP_KEY_END:
        some_files(state, key, text, &a->files);
        select_one_class(state, &a->selection, FDR_IN_SAMPLE, "samples");
        if (a->selection.min_duration_ns) argp_error(state, "--min-duration: a sample takes no time");
        if (a->json && a->folded) argp_error(state, "--json or --folded, not both");
        return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

/* ---- the total of all samples ---- */

/* The time or events sampled in all with this clock. *held: the part of it that the stored samples cover; the oldest or
 * newest may be missing. */
static double time_sampled(const struct sample_table *t, struct fdr_file *file, double *held)
{
    const struct fdr_sample_stream *s;
    size_t n = fdr_sample_streams(file, &s);
    double all = *held = 0;
    for (size_t i = 0; i < n; i++) {
        if (s[i].by != t->by) continue;
        all += (double)s[i].periods * (double)s[i].period;
        *held += (double)(s[i].to - s[i].from) * (double)s[i].period;
    }
    return all;
}

/* ---- JSON ---- */

static void key_text(const char *before, const char *key)
{
    out_text(before);
    out_char('"');
    out_text(key);
    out_text("\": ");
}
static void key_count(const char *before, const char *key, uint64_t value)
{
    key_text(before, key);
    out_u64(value);
}
static void key_real(const char *before, const char *key, double value)
{
    key_text(before, key);
    out_f64(value);
}

static void stream_json(const struct fdr_file *file, const struct fdr_sample_stream *s)
{
    key_text("{", "location");
    out_location_json(file, s->location);
    key_text(", ", "of");
    if (s->parent == UINT32_MAX) out_text("null");
    else out_location_json(file, s->parent);
    key_count(", ", "tid", s->tid);
    key_text(", ", "name");
    out_json(s->name);
    key_text(", ", "thread");
    out_json(sample_thread(file, s));
    key_text(", ", "clock");
    out_json(sample_clock_name(s->by));
    key_count(", ", "period", s->period);
    key_count(", ", "periods", s->periods);
    key_count(", ", "from", s->from);
    key_count(", ", "to", s->to);
    key_count(", ", "presented", s->presented);
    key_count(", ", "kept", s->kept);
    key_count(", ", "without_stack", s->unpathed);
    key_count(", ", "left_out", s->left_out);
    key_count(", ", "bytes", s->bytes);
    key_real(", ", "bytes_per_sample", s->kept ? (double)s->bytes / (double)s->kept : 0);
    out_char('}');
}

static void sum_json(const char *name, const struct sample_sum *s, const struct sample_sum *total)
{
    struct sample_interval i = sample_interval(s, total);
    key_text(", ", name);
    key_count("{", "samples", s->samples);
    key_real(", ", "weight", s->weight);
    key_real(", ", "share", i.share);
    key_real(", ", "low", i.low);
    key_real(", ", "high", i.high);
    out_char('}');
}

static void print_json_table(const struct sample_table *t, struct fdr_file *file, size_t shown)
{
    double held, sampled = time_sampled(t, file, &held);
    const struct fdr_sample_stream *s;
    size_t n = fdr_sample_streams(file, &s);
    key_text("{", "clock");
    out_json(sample_clock_name(t->by));
    key_count(", ", "samples", t->total.samples);
    key_real(", ", "weight", t->total.weight);
    key_real(", ", "weight_per_sample", t->total.samples ? t->total.weight / (double)t->total.samples : 0);
    key_real(", ", "weight_held", held);
    key_real(", ", "weight_sampled", sampled);
    key_count(", ", "first_ns", t->first_ns);
    key_count(", ", "last_ns", t->last_ns);
    key_count(", ", "samples_of_other_clocks", t->others);
    key_count(", ", "stacks_cut", t->cut);
    key_text(",\n", "streams");
    for (size_t i = 0; i < n; i++) {
        out_text(i ? ",\n" : "[\n");
        stream_json(file, &s[i]);
    }
    if (!n) out_char('[');
    out_text("],\n\"rows\": [");
    for (size_t i = 0; i < shown; i++) {
        out_text(i ? ",\n" : "\n");
        key_text("{", "name");
        out_json(t->row[i].name);
        sum_json("self", &t->row[i].self, &t->total);
        sum_json("all", &t->row[i].all, &t->total);
        out_char('}');
    }
    out_text("]}\n");
}

/* ---- text ---- */

/* Prints "1.5 s" of CPU time, or a number of events. */
static const char *amount(char *text, const struct sample_table *t, double weight)
{
    char time[HUMAN_BYTES];
    if (t->by == 2) snprintf(text, AMOUNT_BYTES, "%.0f events", weight);
    else snprintf(text, AMOUNT_BYTES, "%s of %s time", human_time(time, (uint64_t)weight), t->by ? "wall" : "CPU");
    return text;
}

static uint64_t since(uint64_t at, uint64_t start) { return at > start ? at - start : 0; }

static void print_total(const struct sample_table *t, struct fdr_file *file)
{
    const struct fdr_file_info *info = fdr_file_info(file);
    char all[AMOUNT_BYTES], each[AMOUNT_BYTES], a[HUMAN_BYTES], b[HUMAN_BYTES], c[HUMAN_BYTES], line[400];
    uint64_t start = run_start(file);
    double held, sampled = time_sampled(t, file, &held);
    if (!t->total.samples) return;
    snprintf(line, sizeof line, "# %s in %s samples, each for %s on average\n", amount(all, t, t->total.weight),
             human_count(a, t->total.samples), amount(each, t, t->total.weight / (double)t->total.samples));
    out_text(line);
    snprintf(line, sizeof line, "# taken from %s to %s of a run of %s\n", human_time(a, since(t->first_ns, start)),
             human_time(b, since(t->last_ns, start)), human_time(c, since(info->last_ns, start)));
    out_text(line);
    if (held >= sampled) return;
    snprintf(line, sizeof line, "# the recording holds samples of %s; %s were sampled in all\n", amount(all, t, held),
             amount(each, t, sampled));
    out_text(line);
}

static void print_head(const struct sample_table *t, struct fdr_file *file)
{
    const struct fdr_sample_stream *s;
    char a[HUMAN_BYTES], b[HUMAN_BYTES], line[256];
    size_t n = fdr_sample_streams(file, &s), threads = 0;
    uint64_t kept = 0, presented = 0, bytes = 0, left_out = 0;
    for (size_t i = 0; i < n; i++) {
        left_out += s[i].left_out;
        threads += s[i].kept > 0;
        kept += s[i].kept;
        presented += s[i].presented;
        bytes += s[i].bytes;
    }
    snprintf(line, sizeof line, "# %s samples of %zu threads kept of %s taken; %.1f bytes each\n", human_count(a, kept),
             threads, human_count(b, presented), kept ? (double)bytes / (double)kept : 0.0);
    out_text(line);
    print_total(t, file);
    if (left_out) {
        snprintf(line, sizeof line,
                 "# of %s looks %s were left out: looking takes at most 1 %% of a processor; other looks stand for "
                 "their time\n",
                 human_count(a, presented + left_out), human_count(b, left_out));
        out_text(line);
    }
    if (t->cut * 10 > t->total.samples) {
        snprintf(line, sizeof line,
                 "# %.0f %% of the stacks are cut, mostly by code without frame pointers: their callers are not "
                 "counted (FDR_SAMPLE=1kHz,unwind follows them)\n",
                 100.0 * (double)t->cut / (double)t->total.samples);
        out_text(line);
    }
    if (!t->others) return;
    snprintf(line, sizeof line, "# %s samples use another clock; --clock selects it\n", human_count(a, t->others));
    out_text(line);
}

static void print_row(const struct sample_table *t, const struct sample_row *r)
{
    char text[160], a[HUMAN_BYTES];
    struct sample_interval self = sample_interval(&r->self, &t->total), all = sample_interval(&r->all, &t->total);
    snprintf(text, sizeof text, "%6.2f %% %6.2f ..%6.2f", 100 * self.share, 100 * self.low, 100 * self.high);
    out_text(text);
    if (t->by == 2) {
        snprintf(text, sizeof text, " %12.0f", r->self.weight);
        out_text(text);
    } else {
        out_char(' ');
        out_time((uint64_t)r->self.weight);
    }
    out_text_wide(human_count(a, r->self.samples), 11);
    snprintf(text, sizeof text, "  %6.2f %%  ", 100 * all.share);
    out_text(text);
    out_cell(r->name);
    out_char('\n');
}

static void print_text(const struct sample_table *t, struct fdr_file *file, size_t shown)
{
    print_head(t, file);
    out_text("    self   95 % interval       ");
    out_text(t->by == 2 ? "events" : "  time");
    out_text("    samples       all  name\n");
    for (size_t i = 0; i < shown; i++) print_row(t, &t->row[i]);
    if (shown < t->count) {
        out_text("# ");
        out_u64(t->count - shown);
        out_text(" more rows: --all\n");
    }
}

static bool has_samples(struct fdr_file *file)
{
    const struct fdr_sample_stream *s;
    for (size_t i = 0, n = fdr_sample_streams(file, &s); i < n; i++)
        if (s[i].kept) return true;
    return false;
}

/* Explains why there are no such samples. */
static void print_none(struct fdr_file *file)
{
    const struct fdr_sample_stream *s;
    char text[HUMAN_BYTES];
    uint64_t kept = 0;
    for (size_t i = 0, n = fdr_sample_streams(file, &s); i < n; i++) kept += s[i].kept;
    if (!kept) {
        out_text("# no samples (FDR_SAMPLE=1kHz takes them)\n");
        return;
    }
    out_text("# none of the ");
    out_text(human_count(text, kept));
    out_text(" kept samples is in the selection\n");
}

static void print_folded(const struct sample_table *t)
{
    for (size_t i = 0; i < t->count; i++) {
        double unit = t->by == 2 ? 1 : 1000;
        out_cell(t->row[i].name);
        out_char(' ');
        out_u64((uint64_t)(t->row[i].self.weight / unit + 0.5));
        out_char('\n');
    }
}

static int samples(const struct arguments *a, struct fdr_file *file)
{
    struct chosen chosen;
    struct sample_table t;
    if (!choose(&a->selection, file, a->path, &chosen)) return COULD_NOT;
    bool good = sample_table_build(&t, file, &chosen.select, a->folded ? BY_STACK : a->by, a->clock);
    if (good) {
        size_t shown = a->limit && a->limit < t.count ? a->limit : t.count;
        if (a->json) print_json_table(&t, file, shown);
        else if (a->folded) print_folded(&t);
        else if (!t.total.samples && !t.others) print_none(file);
        else print_text(&t, file, shown);
        sample_table_free(&t);
    } else {
        complain("%s: out of memory", a->path);
    }
    chosen_free(&chosen);
    return good ? out_finish() : COULD_NOT;
}

int print_samples(struct fdr_file *file, const char *path)
{
    return samples(&(struct arguments){.path = path, .clock = -1, .limit = ROWS}, file);
}

int verb_samples(int argc, char **argv)
{
    static const struct argp_child children[] = {{&select_argp, 0, NULL, 0}, {0}};
    static const struct argp argp = {
        options,
        parse,
        "FILE...",
        "Where the threads of a recording were, from samples taken with FDR_SAMPLE.\v"
        "Each row has its share, the 95 % interval of that share (from successive differences: docs/SAMPLING.md) and "
        "its number of samples. `all` counts a sample wherever the name is on its path. Several FILEs are the ranks of "
        "one job.",
        children,
        NULL,
        NULL};
    struct arguments a = {.clock = -1, .limit = ROWS};
    int status = DONE;
    parse_arguments(&argp, argc, argv, &a);
    struct job_files job;
    if (!open_files(&job, &a.files, &status)) return status;
    a.path = job.name;
    status = worse(status, samples(&a, job.file));
    static const char *const next[] = {"samples --by line", "samples --by thread", "html -o page.html", NULL};
    if (!a.json && !a.folded && has_samples(job.file))
        print_hint(next, job.count == 1 ? plain_name(a.path) : "FILE...");
    return worse(status, close_files(&job, true));
}
