/* SPDX-License-Identifier: MIT */
/* fdr stats: exact totals of the whole run, or the same figures from the kept events. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/common/fast_output.h"
#include "tools/common/short_names.h"
#include "tools/common/terminal.h"
#include "tools/common/region_waits.h"
#include "tools/counters.h"
#include "tools/samples.h"
#include "tools/stats.h"

static const struct argp_option options[] = {
    {"by", 'b', "WHAT", 0, "region (default), path, class, depth, location, time, epoch, metric or file", 0},
    {"events", 'e', 0, 0, "From the events that are kept, not from the exact totals", 0},
    {"limit", 'n', "N", 0, "At most N rows (0: all)", 0},
    {"all", 'a', 0, 0, "All rows", 0},
    {"longest", 'l', 0, 0, "When and where the longest call of each region was", 0},
    {"json", 'j', 0, 0, "As JSON", 0},
    {0}};

static enum stat_by parse_by(struct argp_state *state, const char *text)
{
    static const char *const names[] = {"region", "path",   "class", "depth", "location",
                                        "epoch",  "metric", "file",  "time"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(text, names[i]) == 0) return (enum stat_by)i;
    argp_error(state, "--by: '%s' is none of region, path, class, depth, location, time, epoch, metric, file", text);
    return BY_REGION;
}

/* Totals cover the whole run and every depth, so filters of time and depth do not apply. */
static void check(struct argp_state *state, const struct stats_arguments *a)
{
    const struct selection *s = &a->selection;
    if (a->by == BY_CLASS && a->events)
        argp_error(state, "--by class counts kept events already (column kept); leave out --events");
    if (a->by == BY_CLASS && s->region_count)
        argp_error(state, "--by class counts events of all regions together; leave out --region");
    if (a->by == BY_EPOCH && (a->events || s->depth_min || s->depth_max || s->min_duration_ns || s->classes))
        argp_error(state, "--by epoch shows totals; of the filters it takes --location, --region, --from and --to");
    if (a->by == BY_SLICE && (a->events || s->from || s->to || s->depth_min || s->depth_max || s->min_duration_ns))
        argp_error(state, "--by time shows the whole run; of the filters it takes --location and --region");
    if (a->longest && a->by != BY_REGION) argp_error(state, "--longest shows calls of regions: leave out --by");
    if (a->by == BY_METRIC && (a->events || s->location_count || s->region_count || s->from || s->to || s->depth_min ||
                               s->depth_max || s->min_duration_ns || s->classes))
        argp_error(state, "--by metric takes no filters; fdr counters divides metrics by region, thread and time");
    if (a->by == BY_FILE && (a->events || s->region_count))
        argp_error(state, "--by file shows totals of operations; of the filters it takes --location");
    if (a->events || a->by == BY_PATH) select_one_class(state, s, FDR_IN_REGION, "calls");
    if (a->events || a->by == BY_PATH || a->by == BY_EPOCH) return;
    if (s->from || s->to || s->depth_min || s->depth_max || s->min_duration_ns || s->classes)
        argp_error(state,
                   "--from, --to, --depth, --class and --min-duration need --events: totals cover the whole run");
    if (a->by == BY_DEPTH && s->region_count)
        argp_error(state, "--by depth --region needs --events: totals of a depth are of all regions together");
}

static error_t parse(int key, char *text, struct argp_state *state)
{
    struct stats_arguments *a = state->input;
    switch (key) {
    case ARGP_KEY_INIT: state->child_inputs[0] = &a->selection; return 0;
    case 'b': a->by = parse_by(state, text); return 0;
    case 'e': a->events = true; return 0;
    case 'j': a->json = true; return 0;
    case 'a': a->all = true; return 0;
    case 'l': a->longest = true; return 0;
    case 'n':
        if (!parse_count(text, &a->limit)) argp_error(state, "--limit: not a number: '%s'", text);
        a->limit_given = true;
        return 0;
    case ARGP_KEY_ARG: return some_files(state, key, text, &a->files);
    case ARGP_KEY_END:
        some_files(state, key, text, &a->files);
        check(state, a);
        return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

size_t limited(const struct stats_arguments *a, size_t count)
{
    return a->limit && a->limit < count ? (size_t)a->limit : count;
}

/* Long lists for people end with --all. */
size_t shown_rows(const struct stats_arguments *a, size_t count)
{
    enum { ROWS = 40 };
    return a->limit || a->limit_given || a->all || count <= ROWS ? limited(a, count) : ROWS;
}

void more_rows(size_t count, size_t shown)
{
    if (shown >= count) return;
    out_text("# and ");
    out_u64(count - shown);
    out_text(" more rows: --all\n");
}

int out_of_memory(const struct stats_arguments *a)
{
    complain("%s: out of memory", a->path);
    return COULD_NOT;
}

/* ---- rows: JSON ------------------------------------------------------------------------------------------------- */

void key_u64(const char *key, uint64_t value)
{
    out_text(", \"");
    out_text(key);
    out_text("\": ");
    out_u64(value);
}

void histogram_json(bool has, const uint64_t *histogram)
{
    if (!has) {
        out_text(", \"histogram\": null");
        return;
    }
    out_text(", \"histogram\": [");
    for (size_t i = 0; i < HISTOGRAM_BINS; i++) {
        if (i) out_char(',');
        out_u64(histogram[i]);
    }
    out_char(']');
}

static void row_figures_json(const struct stat_row *r, bool inclusive)
{
    key_u64("calls", r->calls);
    key_u64("untimed", r->untimed);
    out_text(r->at_least ? ", \"at_least\": true" : ", \"at_least\": false");
    out_text(r->saturated ? ", \"saturated\": true" : ", \"saturated\": false");
    if (inclusive) key_u64("inclusive_ns", r->inclusive_ns);
    key_u64("exclusive_ns", r->exclusive_ns);
    key_u64("min_ns", r->min_ns);
    key_u64("max_ns", r->max_ns);
    histogram_json(r->has_histogram, r->histogram);
}

static const char *row_name(const struct fdr_file *file, const struct stat_row *r)
{
    return r->rest ? "[rest]" : region_name(file, r->id);
}

/* Some calls of a muted region (FDR_OVERHEAD) have times. */
static bool is_muted(const struct fdr_file *file, const struct stat_row *r, enum stat_by by)
{
    return by == BY_REGION && !r->rest && r->untimed && fdr_region_was_muted(file, r->id);
}

static void muted_json(const struct fdr_file *file, const struct stat_row *r)
{
    out_text(is_muted(file, r, BY_REGION) ? ", \"muted\": true" : ", \"muted\": false");
}

static void region_json(const struct fdr_file *file, const struct stat_row *r)
{
    const struct fdr_definition *d = fdr_definition(file, FDR_REGION_DEFINITION, r->id);
    out_text("{\"id\": ");
    out_u64(r->id);
    out_text(", \"name\": ");
    out_json(row_name(file, r));
    out_text(r->rest ? ", \"rest\": true" : ", \"rest\": false");
    row_figures_json(r, true);
    out_text(", \"file\": ");
    out_json(r->rest ? "" : d->file);
    key_u64("line", r->rest ? 0 : d->line);
    muted_json(file, r);
    out_char('}');
}

static void row_json(const struct fdr_file *file, const struct stat_row *r, enum stat_by by)
{
    if (by == BY_REGION) {
        region_json(file, r);
        return;
    }
    out_text(by == BY_DEPTH ? "{\"depth\": " : "{\"location\": ");
    if (by == BY_LOCATION) out_location_json(file, r->id);
    else out_u64(r->id);
    if (by == BY_LOCATION) {
        out_text(", \"name\": ");
        out_json(location_name(file, r->id));
    }
    row_figures_json(r, by == BY_DEPTH);
    out_char('}');
}

/* ---- rows: text ------------------------------------------------------------------------------------------------- */

static int by_exclusive(const void *a, const void *b)
{
    const struct stat_row *x = a, *y = b;
    if (x->exclusive_ns != y->exclusive_ns) return x->exclusive_ns < y->exclusive_ns ? 1 : -1;
    if (x->calls != y->calls) return x->calls < y->calls ? 1 : -1;
    return x->id < y->id ? -1 : x->id > y->id;
}

void out_share(uint64_t part, uint64_t total)
{
    char text[16];
    snprintf(text, sizeof text, "%6.2f %%", total ? 100.0 * (double)part / (double)total : 0.0);
    out_text(text);
}

static void muted_label(const struct stat_row *r)
{
    char text[HUMAN_BYTES];
    out_text("  [muted: its times are those of ");
    out_text(human_count(text, r->calls - r->untimed));
    out_text(" calls]");
}

static void row_label(const struct fdr_file *file, const struct stat_row *r, enum stat_by by, bool chosen,
                      const struct layout *layout)
{
    if (by == BY_DEPTH) {
        out_text("depth ");
        out_u64(r->id);
    } else if (by == BY_LOCATION) {
        out_location(file, r->id);
        out_char(' ');
        out_cell(location_name(file, r->id));
    } else {
        region_label(file, r, layout);
    }
    if (r->rest && chosen) out_text("  [all regions without an exact row; selected regions may be among them]");
    const struct fdr_file_info *info = fdr_file_info(file);
    if (r->at_least)
        out_text(info->threads_gone  ? "  [or more: threads ended while they were copied]"
                 : info->totals_lost ? "  [or more: rows of totals are damaged]"
                                     : "  [or more: some may be in [rest]]");
    if (r->saturated) out_text("  [times or more: they overflowed 64 bits]");
    if (is_muted(file, r, by)) muted_label(r);
    else if (r->untimed) {
        out_text("  [");
        out_u64(r->untimed);
        out_text(" untimed]");
    }
}

/* An interpolated time lies between the shortest and the longest. */
static uint64_t between(const struct stat_row *r, double ns)
{
    return ns >= (double)r->max_ns ? r->max_ns : ns <= (double)r->min_ns ? r->min_ns : (uint64_t)ns;
}

/* A mean hides two modes: the call in the middle, the slow ones, and the slowest. */
static void out_typical(const struct stat_row *r, uint64_t timed)
{
    if (timed && r->has_histogram) {
        out_time(between(r, percentile(r->histogram, 0.5)));
        out_time(between(r, percentile(r->histogram, 0.99)));
    } else {
        out_text_wide("- ", 12);
        out_text_wide("- ", 12);
    }
    if (timed) out_time(r->max_ns);
    else out_text_wide("- ", 12);
}

static void out_longest(const struct fdr_file *file, const struct stat_row *r, const struct longest *l)
{
    char since[HUMAN_BYTES];
    if (!l || r->rest || !r->max_ns) return;
    if (l[r->id].ns + l[r->id].ns / 1000 + 100 < r->max_ns) { /* edges are rounded */
        out_text("  [the longest is not kept]");
        return;
    }
    out_text("  [longest ");
    out_text(human_since(since, l[r->id].start_ns, run_start(file)));
    out_text(" in ");
    out_cell(location_name(file, l[r->id].location));
    out_char(']');
}

static void row_line(const struct fdr_file *file, const struct stat_row *r, uint64_t total,
                     const struct stats_arguments *a, uint64_t waiting_ns, const struct longest *longest,
                     const struct layout *layout)
{
    enum stat_by by = a->by;
    char count[HUMAN_BYTES];
    uint64_t timed = r->calls > r->untimed ? r->calls - r->untimed : 0;
    bool all = by != BY_LOCATION && !layout->narrow;
    out_time(r->exclusive_ns);
    out_share(r->exclusive_ns, total);
    out_char(' ');
    if (all) out_time(r->inclusive_ns);
    out_text_wide(human_count(count, r->calls), 15);
    out_char(' ');
    if (all && timed) out_time(r->inclusive_ns / timed);
    else if (all) out_text_wide("- ", 12);
    out_typical(r, timed);
    if (by == BY_LOCATION) out_time(waiting_ns);
    out_char(' ');
    row_label(file, r, by, a->selection.region_count > 0, layout);
    out_longest(file, r, longest);
    out_char('\n');
}

/* The time of a location in regions that wait, by their names. */
static uint64_t waiting_of(const struct fdr_file *file, uint32_t location)
{
    const struct fdr_total *t;
    uint64_t sum = 0;
    for (size_t i = 0, n = fdr_totals(file, &t); i < n; i++)
        if (t[i].location == location && t[i].class_ == FDR_IN_REGION && !t[i].rest &&
            name_waits(region_name(file, t[i].id)))
            sum += t[i].exclusive_ns;
    return sum;
}

/* The time from the start of the first known thread, which may be long before the kept events, to the newest event. */
static uint64_t whole_run(const struct fdr_file *file)
{
    uint64_t first = UINT64_MAX, last = fdr_file_info(file)->last_ns;
    for (size_t i = 0; i < fdr_location_count(file); i++) {
        const struct fdr_location_info *l = fdr_location_info(file, i);
        if (l->samples) continue; /* began with its first sample */
        if (l->start_ns && l->start_ns < first) first = l->start_ns;
        if (l->moved_ns > last) last = l->moved_ns;
    }
    return last > first ? last - first : 0;
}

/* Says how times are rounded: exact totals are sums of clock ticks, events have edges. */
static void rounding_line(const struct fdr_file *file)
{
    char text[40];
    double unit = fdr_file_info(file)->time_unit_ns;
    if (unit == 1) return;
    snprintf(text, sizeof text, "%.3g", unit < 1 ? 1 : unit);
    out_text("# the edges of calls are rounded to ");
    out_text(text);
    out_text(" ns: a call may differ by as much from the exact totals\n");
}

/* True for a location with events and no totals: the file is damaged or truncated there. */
static bool totals_missing(const struct fdr_file *file)
{
    const struct fdr_total *total;
    uint64_t stored = 0;
    for (size_t i = 0; i < fdr_location_count(file); i++) {
        const struct fdr_location_info *l = fdr_location_info(file, i);
        if (!l->samples) stored += l->bytes_stored; /* they are in no totals */
    }
    size_t count = fdr_totals(file, &total), empty = 0;
    while (empty < count && !(total[empty].calls | total[empty].untimed)) empty++;
    return stored && empty == count;
}

static void folding_lines(const struct fdr_file *file)
{
    for (size_t i = 0; i < fdr_location_count(file); i++) {
        const struct fdr_location_info *l = fdr_location_info(file, i);
        if (!l->folding) continue;
        out_text("# being merged into [ended], add both rows: ");
        out_location(file, l->id);
        out_char(' ');
        out_cell(l->name);
        out_char('\n');
    }
}

static void lost_line(const struct fdr_file_info *info)
{
    char text[HUMAN_BYTES];
    if (!info->totals_lost) return;
    out_text("# rows of totals are damaged, in ");
    out_text(human_count(text, info->totals_lost));
    out_text(info->totals_lost == 1 ? " location" : " locations");
    out_text(": the rows shown are right, and marked where incomplete\n");
}

static void muted_line(const struct fdr_file *file)
{
    const struct fdr_governor *g = fdr_governor(file);
    if (g && g->regions)
        out_text("# some regions were muted (FDR_OVERHEAD): what their calls without a time took is in the exclusive "
                 "time of their callers\n");
}

static void source_line(const struct fdr_file *file, bool events)
{
    char text[HUMAN_BYTES];
    if (!events && totals_missing(file)) {
        out_text("# the totals of this run are missing; --events counts the calls that are kept\n");
        return;
    }
    const struct fdr_file_info *info = fdr_file_info(file);
    const struct fdr_reduction_info *reductions;
    uint64_t taken = 0;
    size_t count = fdr_reductions((struct fdr_file *)file, &reductions);
    if (!events) {
        out_text(info->totals_lost || info->lost_unattached ? "# totals of the whole run, "
                                                            : "# exact totals of the whole run, ");
        out_text(human_time(text, whole_run(file)));
        out_text(", filtered and reduced calls included; open calls with a time are left out\n");
        lost_line(info);
        muted_line(file);
        if (info->lost_unattached) {
            out_text("# of ");
            out_text(human_count(text, info->lost_unattached));
            out_text(" more events the location is unknown: fdr info\n");
        }
        return;
    }
    for (size_t i = 0; i < count; i++) taken += reductions[i].events;
    out_text("# from the events that are kept only");
    if (taken) {
        out_text(" (reductions gave back ");
        out_text(human_count(text, taken));
        out_text(" others; without --events: exact totals)");
    }
    out_text("; exclusive = without kept children; open calls left out\n");
    rounding_line(file);
}

static void rows_head(const struct stats_arguments *a, const struct fdr_file *file, const struct stat_rows *rows,
                      const struct layout *layout)
{
    bool all = a->by != BY_LOCATION && !layout->narrow;
    source_line(file, a->events);
    if (a->by == BY_LOCATION && !a->events) folding_lines(file);
    if (a->by == BY_LOCATION)
        out_text("# of the exclusive time, `waiting` is that of regions that wait, by their names\n");
    folder_line(file, rows, layout);
    out_text("   exclusive    share ");
    if (all) out_text("   inclusive");
    out_text("           calls ");
    if (all) out_text("        mean");
    out_text("         p50         p99         max ");
    if (a->by == BY_LOCATION) out_text("    waiting ");
    out_text(a->by == BY_REGION ? " region\n" : a->by == BY_DEPTH ? " calling depth\n" : " location\n");
}

static void rows_text(const struct stats_arguments *a, struct fdr_file *file, struct stat_rows *rows)
{
    uint64_t total = 0;
    size_t shown = shown_rows(a, rows->count);
    struct layout layout = layout_of(a, file, rows, shown);
    struct longest *longest = a->longest ? find_longest(file, rows, shown) : NULL;
    for (size_t i = 0; i < rows->count; i++) add_time(&total, rows->row[i].exclusive_ns);
    rows_head(a, file, rows, &layout);
    for (size_t i = 0; i < shown; i++) {
        uint64_t waiting = a->by == BY_LOCATION && !a->events ? waiting_of(file, rows->row[i].id) : 0;
        row_line(file, &rows->row[i], total, a, waiting, longest, &layout);
    }
    more_rows(rows->count, shown);
    free(longest);
}

/* Samples only: no call, no other event. */
static bool has_samples_only(struct fdr_file *file)
{
    const struct fdr_sample_stream *s;
    const struct fdr_total *total;
    uint64_t kept = 0;
    for (size_t i = 0, n = fdr_sample_streams(file, &s); i < n; i++) kept += s[i].kept;
    for (size_t i = 0, n = fdr_totals(file, &total); i < n; i++)
        if (total[i].calls | total[i].untimed) return false;
    for (size_t i = 0; i < fdr_location_count(file); i++)
        if (fdr_location_info(file, i)->open_count) return false;
    return kept != 0;
}

static int print_rows(const struct stats_arguments *a, struct fdr_file *file, const struct fdr_select *select)
{
    struct stat_rows rows;
    bool good = a->events ? rows_from_events(&rows, file, select, a->by) : rows_from_totals(&rows, file, select, a->by);
    if (good && a->by == BY_REGION && !rows_join_copies(&rows, file)) {
        rows_free(&rows);
        good = false;
    }
    if (!good) return out_of_memory(a);
    if (a->by != BY_DEPTH) qsort(rows.row, rows.count, sizeof *rows.row, by_exclusive);
    if (a->json) {
        out_char('[');
        for (size_t i = 0; i < limited(a, rows.count); i++) {
            out_text(i ? ",\n" : "\n");
            row_json(file, &rows.row[i], a->by);
        }
        out_text("\n]\n");
    } else {
        rows_text(a, file, &rows);
        if (a->by == BY_REGION && !a->events && !a->selection.region_count) good = points_text(a, file, select);
    }
    rows_free(&rows);
    return good ? out_finish() : out_of_memory(a);
}

/* Prints metrics and sampled counters with kinds, units and rates; fdr counters prints more. */
static int print_metrics(const struct stats_arguments *a, struct fdr_file *file)
{
    const struct counters_arguments counters = {.path = a->path, .by = BY_COUNTER, .json = a->json, .limit = a->limit};
    return print_counters(&counters, file);
}

static int stats(const struct stats_arguments *a, struct fdr_file *file)
{
    struct chosen chosen;
    int status;
    if (!choose(&a->selection, file, a->path, &chosen)) return COULD_NOT;
    if (a->by == BY_PATH) status = print_paths(a, file, &chosen.select);
    else if (a->by == BY_METRIC) status = print_metrics(a, file);
    else if (a->by == BY_FILE) status = print_files(a, file, &chosen.select);
    else if (a->by == BY_SLICE) status = print_times(a, file, &chosen.select);
    else if (a->by == BY_EPOCH) status = print_epochs(a, file, &chosen.select);
    else if (a->by == BY_CLASS || (a->by == BY_DEPTH && !a->events)) status = print_accounts(a, file, &chosen.select);
    else if (a->by == BY_REGION && !a->json && has_samples_only(file)) {
        out_text("# this recording has samples only, no calls; fdr samples shows more of them\n");
        status = print_samples(file, a->path);
    } else status = print_rows(a, file, &chosen.select);
    chosen_free(&chosen);
    return status;
}

int verb_stats(int argc, char **argv)
{
    static const struct argp_child children[] = {{&select_argp, 0, NULL, 0}, {&names_argp, 0, NULL, 0}, {0}};
    static const struct argp argp = {options,
                                     parse,
                                     "FILE...",
                                     "Exact totals of the whole run, filtered and reduced calls included. --by path "
                                     "and --events use the kept events only. Several FILEs are the ranks of one job.",
                                     children,
                                     NULL,
                                     NULL};
    struct stats_arguments a = {0};
    int status = DONE;
    parse_arguments(&argp, argc, argv, &a);
    struct job_files job;
    if (!open_files(&job, &a.files, &status)) return status;
    struct fdr_file *file = job.file;
    a.path = job.name;
    status = worse(status, stats(&a, file));
    static const char *const next[] = {"stats --by time", "stats --longest", "tree", "outliers", NULL};
    static const char *const next_of_several[] = {"stats --by time", "stats --longest", "tree", "findings", NULL};
    if (!a.json && job.count == 1) print_hint(next, plain_name(a.path));
    else if (!a.json) print_hint(next_of_several, "FILE...");
    if (a.json && fdr_file_info(file)->histograms_left_out)
        complain("%s: %llu histograms are not shown: they changed during the copy and do not match their calls", a.path,
                 (unsigned long long)fdr_file_info(file)->histograms_left_out);
    if (a.json && !a.events && fdr_file_info(file)->totals_lost)
        complain("%s: %llu locations have damaged totals: the rows are exact, but some are missing", a.path,
                 (unsigned long long)fdr_file_info(file)->totals_lost);
    return worse(status, close_files(&job, a.events || a.by == BY_PATH || a.by == BY_CLASS || a.by == BY_DEPTH ||
                                               a.by == BY_EPOCH));
}
