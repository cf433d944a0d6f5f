/* SPDX-License-Identifier: MIT */
/* fdr info: what a recording is, why it was taken, what it contains, and what is missing, where and why. */
#include <stdio.h>
#include <stdlib.h>
#include <limits.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

#include "tools/common/detail.h"
#include "tools/common/terminal.h"
#include "tools/common/verbs.h"
#include "tools/info.h"
#include "tools/info_mpi.h"
#include "tools/common/live_files.h"
#include "tools/common/short_names.h"
#include "tools/unseen_end.h"

struct arguments {
    struct file_list files;
    const char *path;
    bool json, ledger, config, all;
};

static const struct argp_option options[] = {
    {"ledger", 'l', 0, 0, "The ledger in full: by location, class and depth", 0},
    {"all", 'a', 0, 0, "Every location, every depth of the ledger, every reduction", 0},
    {"config", 'c', 0, 0, "Also the configuration of the recorder", 0},
    {"json", 'j', 0, 0, "As JSON", 0},
    {0}};

static error_t parse(int key, char *text, struct argp_state *state)
{
    struct arguments *a = state->input;
    switch (key) {
    case 'l': a->ledger = true; return 0;
    case 'c': a->config = true; return 0;
    case 'a': a->all = true; return 0;
    case 'j': a->json = true; return 0;
    default: return some_files(state, key, text, &a->files);
    }
}

/* ---- text: what it is ------------------------------------------------------------------------------------------- */

static const char *wall_time(char *text, uint64_t realtime_ns)
{
    struct tm tm;
    time_t seconds = (time_t)(realtime_ns / 1000000000u);
    if (!localtime_r(&seconds, &tm) || strftime(text, HUMAN_BYTES, "%Y-%m-%d %H:%M:%S %z", &tm) == 0) strcpy(text, "?");
    return text;
}

/* Prints the names of functions in a reason. It was written in the process, where addresses have no names. */
static void print_functions(const struct fdr_file *file, const char *reason)
{
    char *end;
    for (const char *at = reason; (at = strstr(at, "0x")); at = end) {
        uint64_t address = strtoull(at, &end, 16);
        const struct fdr_place *p = fdr_place(file, address, false);
        if (!address || !p->function[0] || p->function[0] == '[') continue;
        printf("           0x%llx is %s", (unsigned long long)address, plain_name(p->function));
        if (p->file && p->line) printf(" at %s:%u", plain_name(p->file), p->line);
        printf("\n");
    }
}

static void print_why(const struct fdr_file *file, const char *path)
{
    const struct fdr_file_info *info = fdr_file_info(file);
    char name[HUMAN_BYTES], end[256];
    print_counted_deaths(info);
    if (info->over)
        printf("note       over: the process no longer needed this live file%s%s\n",
               info->over_error ? " and could not remove it: " : "",
               info->over_error ? strerror(info->over_error) : "");
    if (info->has_cause && info->killed_in_handler)
        printf("note       killed while it handled the cause: stacks, registers, memory map and messages of the death "
               "are missing\n");
    if (info->has_cause && !info->cause_signal) {
        printf("why        the process ended by %s with status %d in thread %u\n", plain_name(ended_by(file)),
               info->cause_code, info->cause_tid);
        return;
    }
    if (info->has_cause) {
        printf("why        the process died of %s (code %d, address 0x%llx) in thread %u%s%s\n",
               signal_name(info->cause_signal, name), info->cause_code, (unsigned long long)info->cause_addr,
               info->cause_tid, thread_of(file, info->cause_tid)[0] ? " " : "",
               plain_name(thread_of(file, info->cause_tid)));
        return;
    }
    if (strcmp(info->reason, "live") == 0)
        printf("why        no snapshot: the live recording itself, copied while its process goes on\n");
    else if (info->reason[0]) printf("why        %s\n", plain_name(info->reason)), print_functions(file, info->reason);
    else if (strcmp(info->state, "recording") != 0) printf("why        no reason is stored\n");
    else if (written_by(path, info)) printf("why        no snapshot: the live recording itself, written right now\n");
    else printf("why        the process ended by %s\n", unseen_end(info, end, sizeof end));
}

static void print_trigger(const struct fdr_file *file)
{
    const struct fdr_file_info *info = fdr_file_info(file);
    char value[HUMAN_BYTES], since[HUMAN_BYTES];
    double f;
    if (!info->has_trigger) return;
    memcpy(&f, &info->trigger_value, sizeof f);
    if (info->trigger_value_type == 2) snprintf(value, sizeof value, "%.9g", f);
    else if (info->trigger_value_type == 1) snprintf(value, sizeof value, "%lld", (long long)info->trigger_value);
    else snprintf(value, sizeof value, "%llu", (unsigned long long)info->trigger_value);
    bool inside = info->first_ns && info->trigger_time_ns >= info->first_ns;
    printf("trigger    %s: value %s %s%s", plain_name(info->trigger_name), value,
           inside ? "at " : "before the first event",
           inside ? human_since(since, info->trigger_time_ns, info->first_ns) : "");
    if (info->trigger_location != UINT32_MAX) {
        const char *name = location_name(file, info->trigger_location);
        printf(" on location %u%s%s%s", info->trigger_location, *name ? " (" : "", plain_name(name), *name ? ")" : "");
    }
    putchar('\n');
}

static void print_end(const struct fdr_file_info *info)
{
    char text[HUMAN_BYTES];
    if (!info->has_end) return;
    if (info->end_status == INT_MIN) printf("end        not seen");
    else if (WIFSIGNALED(info->end_status))
        printf("end        killed by %s", signal_name(WTERMSIG(info->end_status), text));
    else printf("end        exit status %d", WEXITSTATUS(info->end_status));
    if (info->end_oom_kills)
        printf("; the kernel killed %u process%s of its control group for want of memory", info->end_oom_kills,
               info->end_oom_kills == 1 ? "" : "es");
    if (info->end_realtime_ns) printf(" (%s)", wall_time(text, info->end_realtime_ns));
    putchar('\n');
}

/* For a process that was killed. */
static void print_alive(const struct fdr_file_info *info)
{
    char text[HUMAN_BYTES], since[HUMAN_BYTES];
    if (info->reason[0] || info->has_cause || info->alive_ns <= info->last_ns) return;
    printf("alive      at %s, without an event since %s", human_since(text, info->alive_ns, info->first_ns),
           human_since(since, info->last_ns, info->first_ns));
    printf(" (%s)\n", wall_time(text, info->alive_ns + (uint64_t)info->realtime_offset_ns));
}

static void print_notes(const struct fdr_file *file)
{
    const struct fdr_note_info *note;
    for (size_t i = 0, n = fdr_notes(file, &note); i < n; i++)
        printf("note       %s = %s\n", plain_name(note[i].key), plain_name(note[i].value));
}

static void print_identity(const struct fdr_file *file, const char *path)
{
    const struct fdr_file_info *info = fdr_file_info(file);
    char text[HUMAN_BYTES];
    printf("%s: fdr recording, format %u, state %s\n", plain_name(path), info->format, info->state);
    print_why(file, path);
    print_trigger(file);
    print_replaced_handlers(info);
    printf("process    %s, pid %u", plain_name(info->exe), info->pid);
    if (info->rank >= 0) printf(", rank %d", info->rank);
    printf(" on %s\n", plain_name(info->host));
    if (info->build_id[0]) printf("build id   %s\n", plain_name(info->build_id));
    printf("started    %s\n", wall_time(text, info->created_realtime_ns));
    print_end(info);
    print_alive(info);
    print_notes(file);
}

/* The time between the two events beside a step of the clock is unknown. */
static void print_steps(const struct fdr_file_info *info)
{
    char at[HUMAN_BYTES], back[HUMAN_BYTES];
    if (!info->clock_steps) return;
    printf("clock      stepped back %u time%s; the times go on from there:\n", info->clock_steps,
           info->clock_steps == 1 ? "" : "s");
    for (uint32_t i = 0; i < info->clock_step_count; i++)
        printf("           by %s at %s\n", human_time(back, info->clock_step[i].back_ns),
               human_since(at, info->clock_step[i].time_ns, info->first_ns));
}

/* True if a location began later than that; it is complete since its beginning. */
static bool any_began_later(const struct fdr_file *file, uint64_t common_ns)
{
    for (size_t i = 0; i < fdr_location_count(file); i++) {
        const struct fdr_location_info *l = fdr_location_info(file, i);
        if ((l->bins || l->open_count) && l->from_ns > common_ns) return true;
    }
    return false;
}

static bool any_empty(const struct fdr_file *file)
{
    for (size_t i = 0; i < fdr_location_count(file); i++) {
        const struct fdr_location_info *l = fdr_location_info(file, i);
        if (!l->bytes_stored && !l->open_count) return true;
    }
    return false;
}

static void print_time(const struct fdr_file *file)
{
    const struct fdr_file_info *info = fdr_file_info(file);
    char a[HUMAN_BYTES], b[HUMAN_BYTES];
    uint64_t span = info->last_ns > info->first_ns ? info->last_ns - info->first_ns : 0;
    uint64_t common = info->last_ns > info->common_from_ns ? info->last_ns - info->common_from_ns : 0;
    uint64_t ended = info->last_ns + (uint64_t)info->realtime_offset_ns;
    printf("reach      %s, from %llu to %llu ns", human_time(a, span), (unsigned long long)info->first_ns,
           (unsigned long long)info->last_ns);
    /* A replayed stream has times of its own, unrelated to the wall clock of this machine. */
    bool later = info->taken_ns && info->last_ns > info->taken_ns;
    if (ended >= info->created_realtime_ns && !later) printf(", ended %s", wall_time(a, ended));
    printf("\ncommon     every location%s reaches back to %s%s: the last %s\n",
           any_empty(file) ? " with stored events" : "", human_since(a, info->common_from_ns, info->first_ns),
           any_began_later(file, info->common_from_ns) ? " (or to where it began, if that was later)" : "",
           human_time(b, common));
    printf("time unit  %.6g ns\n", info->time_unit_ns);
    print_steps(info);
}

static void print_buffer(const struct fdr_file_info *info)
{
    char a[HUMAN_BYTES], b[HUMAN_BYTES], c[HUMAN_BYTES], d[HUMAN_BYTES];
    uint64_t used = info->bins > info->bins_free ? info->bins - info->bins_free : 0;
    printf("buffer     %s, strategy %s: %s of %s bins of %s in use (%.1f %%)\n", human_bytes(a, info->buffer_bytes),
           info->strategy, human_count(b, used), human_count(c, info->bins), human_bytes(d, info->bin_bytes),
           info->bins ? 100.0 * (double)used / (double)info->bins : 0.0);
    printf("           %s stored, %s of definitions, stacks, totals and ledger; memory balance %.3f\n",
           human_bytes(a, info->bytes_stored), human_bytes(b, info->meta_bytes), info->memory_balance);
}

/* Prints one line if n > 0: n of `noun`. */
static void print_count(uint64_t n, const char *noun, const char *what)
{
    char text[HUMAN_BYTES];
    if (n > 0) printf("           %s %s%s %s\n", human_count(text, n), noun, n == 1 ? "" : "s", what);
}

void print_losses(const struct fdr_file_info *info)
{
    print_count(info->lost_locations, "thread",
                "found no room in the buffer or no memory: their events, or their samples, are not recorded");
    print_count(info->lost_unattached, "event",
                "lost: of threads without room or after their last destructor, of signal handlers that interrupted a "
                "recording one, or points at depths without room");
    print_count(info->lost_definitions, "time",
                "a definition found no room (each repetition counts); its calls are recorded as [unknown]");
    print_count(info->threads_gone, "thread",
                "ended during the copy from outside: their events and totals are missing");
    print_count(info->accounts_anew, "location", "recovered with rebuilt accounts: presented may be too low");
    print_count(info->totals_lost, "location", "with damaged totals: fdr stats shows exact rows, but some are missing");
    print_count(info->dropped_bins, "bin", "given back during the copy: their events are missing");
    print_count(info->unlisted_bins, "bin", "of no location (given back, or in flight): not shown");
}

/* ---- text: locations -------------------------------------------------------------------------------------------- */

/* The number of consecutive calls of the same region from i on: recursion. */
static size_t run_of(const struct fdr_location_info *l, size_t i)
{
    size_t n = 1;
    while (i + n < l->open_count && l->open[i + n].region == l->open[i].region) n++;
    return n;
}

/* Prints all open calls; of a very deep stack only the outermost and the innermost. */
static void print_open(const struct fdr_file *file, const struct fdr_location_info *l)
{
    enum { OUTER = 16, INNER = 32 };
    char text[HUMAN_BYTES];
    const struct fdr_file_info *info = fdr_file_info(file);
    size_t runs = 0, at = 0, hidden = 0;
    if (l->open_count == 0) return;
    for (size_t i = 0; i < l->open_count; i += run_of(l, i)) runs++;
    printf("    open    ");
    for (size_t i = 0, n; i < l->open_count; i += n, at++) {
        n = run_of(l, i);
        if (runs > OUTER + INNER && at >= OUTER && at + INNER < runs) {
            hidden += n;
            if (at + INNER + 1 == runs) printf(" > ... %zu more ...", hidden);
            continue;
        }
        printf("%s%s", i ? " > " : "", plain_shown(file, l->open[i].region));
        if (n > 1) printf(" (%zu times)", n);
    }
    size_t timed = l->open_count; /* the others were only counted */
    while (timed && l->open[timed - 1].untimed) timed--;
    putchar('\n');
    if (timed)
        printf("            innermost%s since %s\n", timed < l->open_count ? " with a time" : "",
               human_since(text, l->open[timed - 1].enter_ns, info->first_ns));
}

static void print_location_count(uint64_t n, const char *what)
{
    char text[HUMAN_BYTES];
    if (n > 0) printf("    note    %s %s\n", human_count(text, n), what);
}

static void print_location_notes(const struct fdr_location_info *l)
{
    char what[120];
    snprintf(what, sizeof what, "calls lost: no room for their level of the stack; the ledger has them at depth %u",
             l->levels_refused_from);
    print_location_count(l->levels_refused, what);
    print_location_count(l->clamped, "events whose clock stepped back; they carry the newest time before them");
    print_location_count(l->unbalanced, "calls that ended without a leave of their own (longjmp, exceptions)");
    print_location_count(l->stray_leaves, "leaves of regions that were not open; ignored");
    print_location_count(l->abandoned, "operations abandoned by longjmp out of a signal handler");
    print_location_count(l->hists_dropped, "regions without histogram: no room");
    print_location_count(l->rows_folded, "calls accounted in [rest]: no room for a row of their region");
    print_location_count(l->points_without_row, "events without duration in no total: no room for a row of their kind");
    if (l->traffic_lost)
        printf("    note    messages or collectives of some regions are in no region's total: no room\n");
}

static void print_location(const struct fdr_file *file, const struct fdr_location_info *l)
{
    char a[HUMAN_BYTES], b[HUMAN_BYTES], c[HUMAN_BYTES], d[HUMAN_BYTES];
    const struct fdr_file_info *info = fdr_file_info(file);
    printf("  %u %s%s", l->id, plain_name(l->name), l->name[0] ? ", " : "");
    if (l->ended_threads)
        printf("accounts of %u thread%s that ended", l->ended_threads, l->ended_threads == 1 ? "" : "s");
    else printf("tid %u, %s, node %u", l->tid, l->live ? "live" : "ended", l->numa_node);
    if (l->parent != UINT32_MAX)
        printf(l->samples ? ", samples of location %u" : ", signal handlers of location %u", l->parent);
    if (l->bytes_stored || l->open_count)
        printf("\n    reach   %s to %s (%s), %u epoch%s, %s\n", human_since(a, l->from_ns, info->first_ns),
               human_since(b, l->to_ns, info->first_ns),
               human_time(c, l->to_ns > l->from_ns ? l->to_ns - l->from_ns : 0), l->epochs, l->epochs == 1 ? "" : "s",
               human_bytes(d, l->bytes_stored));
    else printf("\n    reach   no event is kept\n");
    if (l->pinned_to_ns)
        printf("    pinned  everything that ended by %s: %s events, %s\n",
               human_since(a, l->pinned_to_ns, info->first_ns), human_count(b, l->pinned_events),
               human_bytes(d, l->pinned_bytes));
    if (l->pinned_given) printf("    pinned  no longer: the thread ended and gave its first moments back\n");
    if (l->folding) printf("    note    this thread is being merged into [ended]: add both rows\n");
    print_open(file, l);
    print_location_notes(l);
}

static void print_locations(const struct fdr_file *file, bool all)
{
    enum { SHOWN = 8 };
    size_t count = fdr_location_count(file), shown = all || count <= SHOWN ? count : SHOWN;
    printf("\n%zu location%s (times from the first event kept)\n", count, count == 1 ? "" : "s");
    for (size_t i = 0; i < shown; i++) print_location(file, fdr_location_info(file, i));
    if (shown < count) printf("  and %zu more: --all\n", count - shown);
}

/* ---- text: ledger ----------------------------------------------------------------------------------------------- */

static void ledger_line(const char *label, const struct fdr_ledger_row *r)
{
    char a[HUMAN_BYTES], b[HUMAN_BYTES], c[HUMAN_BYTES], d[HUMAN_BYTES], e[HUMAN_BYTES];
    printf("  %-28s %15s %15s %15s %15s %12s\n", label, human_count(a, r->presented), human_count(b, r->kept),
           human_count(c, r->filtered), human_count(d, r->reduced), human_count(e, r->lost));
}

static void add_row(struct fdr_ledger_row *to, const struct fdr_ledger_row *r)
{
    to->presented += r->presented;
    to->kept += r->kept;
    to->filtered += r->filtered;
    to->reduced += r->reduced;
    to->lost += r->lost;
}

static int by_class_and_depth(const void *a, const void *b)
{
    const struct fdr_ledger_row *x = a, *y = b;
    if (x->class_ != y->class_) return x->class_ < y->class_ ? -1 : 1;
    return x->depth < y->depth ? -1 : x->depth > y->depth;
}

/* Consecutive depths with the same figures. */
struct run {
    struct fdr_ledger_row row; /* of each of these depths; `depth` is that of the first */
    uint32_t depths;
};

static bool is_next(const struct run *run, const struct fdr_ledger_row *r)
{
    const struct fdr_ledger_row *x = &run->row;
    return run->depths && r->depth == x->depth + run->depths && x->depth > 0 && r->presented == x->presented &&
           r->kept == x->kept && r->filtered == x->filtered && r->reduced == x->reduced && r->lost == x->lost;
}

/* Two depths get a line each: one line for both would save little and be harder to trust. */
static void print_run(struct run *run, uint32_t class_)
{
    char label[64];
    const char *what = class_ == FDR_IN_SAMPLE ? "level" : "depth";
    uint32_t first = run->row.depth, lines = run->depths < 3 ? run->depths : 1;
    for (uint32_t i = 0; i < lines; i++) {
        if (run->depths > lines)
            snprintf(label, sizeof label, "  each of %s %u..%u", what, first, first + run->depths - 1);
        else if (first == 0 && class_ != FDR_IN_SAMPLE) snprintf(label, sizeof label, "  outside any region");
        else snprintf(label, sizeof label, "  %s %u", what, first + i);
        ledger_line(label, &run->row);
    }
    run->depths = 0;
}

/* rows: sorted by class and depth, of several locations. Prints one line for the class; if asked for, one for each run
 * of depths. */
static void print_class(const struct fdr_ledger_row *rows, size_t count, bool depths)
{
    struct fdr_ledger_row sum = {0}, depth = {0};
    struct run run = {.depths = 0};
    for (size_t i = 0; i < count; i++) add_row(&sum, &rows[i]);
    ledger_line(fdr_class_name(rows[0].class_), &sum);
    for (size_t i = 0; depths && i < count; i++) {
        depth.depth = rows[i].depth;
        add_row(&depth, &rows[i]);
        if (i + 1 < count && rows[i + 1].depth == rows[i].depth) continue;
        if (!is_next(&run, &depth)) {
            print_run(&run, rows[0].class_);
            run.row = depth;
        }
        run.depths++;
        depth = (struct fdr_ledger_row){0};
    }
    print_run(&run, rows[0].class_);
}

static void print_summary(const struct fdr_ledger_row *rows, size_t count, bool depths)
{
    struct fdr_ledger_row *sorted = malloc((count + 1) * sizeof *sorted);
    if (!sorted) return;
    if (count) memcpy(sorted, rows, count * sizeof *sorted); /* without rows there is no array */
    qsort(sorted, count, sizeof *sorted, by_class_and_depth);
    for (size_t i = 0, end; i < count; i = end) {
        for (end = i + 1; end < count && sorted[end].class_ == sorted[i].class_;) end++;
        print_class(sorted + i, end - i, depths);
    }
    free(sorted);
}

static void print_full(const struct fdr_file *file, const struct fdr_ledger_row *rows, size_t count)
{
    char label[96], at[LOCATION_LABEL_BYTES];
    for (size_t i = 0; i < count; i++) {
        snprintf(label, sizeof label, "%s %s depth %u", location_label(file, rows[i].location, at),
                 fdr_class_name(rows[i].class_), rows[i].depth);
        ledger_line(label, &rows[i]);
    }
}

/* The surplus of kept + filtered + reduced + lost over presented, in locations that went on during the copy. The
 * accounts of calls were copied before the bins. */
static uint64_t ran_on(const struct fdr_file *file, const struct fdr_ledger_row *rows, size_t count)
{
    uint64_t sum = 0, before = 0, after = 0;
    for (size_t i = 0; i < count; i++) {
        const struct fdr_ledger_row *r = &rows[i];
        uint64_t right = r->kept + r->filtered + r->reduced + r->lost;
        if (i == 0 || r->location != rows[i - 1].location) fdr_ledger_bounds(file, r->location, &before, &after);
        if (before != after && right > r->presented) sum += right - r->presented;
    }
    return sum;
}

void print_ledger(struct fdr_file *file, bool full, bool depths)
{
    char text[HUMAN_BYTES];
    const struct fdr_ledger_row *rows;
    size_t count = fdr_ledger(file, &rows);
    uint64_t more = ran_on(file, rows, count);
    printf("\nledger (calls of the class region, else events)\n");
    if (more)
        printf("  the program went on during the copy: kept, filtered, reduced and lost exceed presented by %s\n",
               human_count(text, more));
    printf("  %-28s %15s %15s %15s %15s %12s\n",
           full     ? "location, class, depth"
           : depths ? "class, depth"
                    : "class (--all: depths)",
           "presented", "kept", "filtered", "reduced", "lost");
    if (full) print_full(file, rows, count);
    else print_summary(rows, count, depths);
}

static void print_config(const char *config)
{
    char text[1024]; /* longer than any setting */
    printf("\nconfiguration\n");
    for (const char *line = config; *line;) {
        size_t length = strcspn(line, "\n");
        snprintf(text, sizeof text, "%.*s", (int)length, line);
        printf("  %s\n", plain_name(text));
        line += length + (line[length] == '\n');
    }
}

/* Metrics of the program, and counters, with unit and kind. */
static void print_metrics(const struct fdr_file *file)
{
    enum { SHOWN = 8 };
    size_t count = fdr_definition_count(file, FDR_METRIC_DEFINITION);
    for (uint32_t id = 1; id <= count && id <= SHOWN; id++) {
        const struct fdr_metric_info *m = fdr_metric_info(file, id);
        printf("%s%s (%s%s%s)", id == 1 ? "metrics    " : ", ", plain_name(m->name), m->counter ? "counter" : "gauge",
               m->unit[0] ? ", " : "", plain_name(m->unit));
    }
    if (count > SHOWN) printf(" and %zu more (--json names them)", count - SHOWN);
    if (count) putchar('\n');
}

/* How far to believe it, before any table. */
static void print_detail(struct fdr_file *file)
{
    char text[1024];
    detail_sentence(file, text, sizeof text);
    print_wrapped("detail", text);
}

static int print_text(const struct arguments *a, struct fdr_file *file)
{
    const struct fdr_file_info *info = fdr_file_info(file);
    print_identity(file, a->path);
    print_detail(file);
    print_time(file);
    print_buffer(info);
    print_overhead(file);
    print_losses(info);
    print_metrics(file);
    print_unknown_sections(file);
    if (a->config) print_config(info->config);
    print_locations(file, a->all);
    print_ages(file);
    print_ledger(file, a->ledger, a->all);
    print_mutes(file, a->ledger);
    print_mpi_state(file, a->ledger);
    print_tallies(file, a->ledger);
    print_reductions(file, a->all);
    return finish_output();
}

int verb_info(int argc, char **argv)
{
    static const struct argp_child children[] = {{&names_argp, 0, NULL, 0}, {0}};
    static const struct argp argp = {options,
                                     parse,
                                     "FILE...",
                                     "Shows a recording's origin, the reason why it was taken, each location's reach "
                                     "and open calls, the ledger and every reduction. Of several FILEs, the ranks of a "
                                     "job, a line each and the sums; --json: an array.",
                                     children,
                                     NULL,
                                     NULL};
    struct arguments a = {0};
    int status = DONE;
    parse_arguments(&argp, argc, argv, &a);
    struct job_files job;
    bool several = a.files.count > 1;
    if (!open_files(&job, &a.files, &status)) return status;
    const struct fdr_total *totals;
    fdr_totals(job.file, &totals); /* so that the damage to the totals is known */
    a.path = job.name;
    if (several) status = worse(status, a.json ? print_info_array(&job) : print_info_ranks(&job, a.ledger));
    else status = worse(status, a.json ? print_json(info_json(job.file)) : print_text(&a, job.file));
    static const char *const next[] = {"findings", "stats", "dump --from -100ms", NULL};
    if (!a.json) print_hint(next, job.count == 1 ? plain_name(a.path) : "FILE...");
    return worse(status, close_files(&job, true));
}
