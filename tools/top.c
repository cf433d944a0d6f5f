/* SPDX-License-Identifier: MIT */
/* fdr top: shows a running process at regular intervals. On a terminal it redraws the screen, else it prints one block
 * after the other. It needs no help of the process, which may hang or be stopped. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "tools/info_mpi.h"
#include "tools/common/verbs.h"
#include "tools/common/short_names.h"

struct arguments {
    const char *process;
    uint32_t pid;
    uint64_t interval_ns, count; /* count 0: until the process ends */
    bool json;
};

static const struct argp_option options[] = {
    {"interval", 'i', "TIME", 0, "Time between two looks (1s)", 0},
    {"count", 'n', "N", 0, "End after N looks; 0 and default: when the process ends", 0},
    {"json", 'j', 0, 0, "As JSON, one object a line", 0},
    {0}};

static error_t parse(int key, char *text, struct argp_state *state)
{
    struct arguments *a = state->input;
    switch (key) {
    case 'i':
        if (!parse_duration(text, &a->interval_ns)) argp_error(state, "--interval: not a duration: '%s'", text);
        return 0;
    case 'n':
        if (!parse_count(text, &a->count)) argp_error(state, "--count: not a number: '%s'", text);
        return 0;
    case 'j': a->json = true; return 0;
    case ARGP_KEY_ARG:
        if (a->process) argp_error(state, "one PID at a time: '%s'", text);
        a->process = text;
        uint64_t pid;
        if (!parse_count(text, &pid) || pid == 0 || pid > INT32_MAX)
            argp_error(state, "not a process number: '%s'", text);
        a->pid = (uint32_t)pid;
        return 0;
    case ARGP_KEY_END:
        if (!a->process) argp_error(state, "a PID is needed");
        return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

/* ---- one look -------------------------------------------------------------------------------------------------- */

struct sums {
    uint32_t location;
    uint64_t presented, kept, filtered, reduced, lost; /* a call counts once */
    uint64_t events;                                   /* presented; a call counts twice */
};
struct reading {
    struct fdr_file *file;
    uint64_t time_ns;
    struct sums *sums; /* by location index */
    size_t count;
    struct sums all;
};

static void add(struct sums *s, const struct fdr_ledger_row *r)
{
    s->presented += r->presented;
    s->events += r->class_ == FDR_IN_REGION ? 2 * r->presented : r->presented;
    s->kept += r->kept;
    s->filtered += r->filtered;
    s->reduced += r->reduced;
    s->lost += r->lost;
}

static void sum_up(struct reading *l)
{
    const struct fdr_ledger_row *rows;
    size_t n = fdr_ledger(l->file, &rows), i = 0;
    l->count = fdr_location_count(l->file);
    l->sums = calloc(l->count + 1, sizeof *l->sums);
    for (size_t at = 0; l->sums && at < l->count; at++) {
        l->sums[at].location = fdr_location_info(l->file, at)->id;
        for (; i < n && rows[i].location == l->sums[at].location; i++) {
            add(&l->sums[at], &rows[i]);
            add(&l->all, &rows[i]);
        }
    }
}

static bool read_process(uint32_t pid, struct reading *l, char *message, size_t message_bytes)
{
    *l = (struct reading){.time_ns = now_ns()};
    fdr_process_open(pid, false, &l->file, message, message_bytes);
    if (l->file) sum_up(l);
    return l->file != NULL;
}

static void free_reading(struct reading *l)
{
    short_names_forget(l->file); /* the next file may lie at its address */
    if (l->file) fdr_file_close(l->file);
    free(l->sums);
    *l = (struct reading){0};
}

/* Events a second since the look before; negative: unknown. */
#define NO_RATE (-1.0)

static bool same_recording(const struct reading *now, const struct reading *before)
{
    if (!before->file) return false;
    const struct fdr_file_info *a = fdr_file_info(now->file), *b = fdr_file_info(before->file);
    return a->pid == b->pid && a->created_realtime_ns == b->created_realtime_ns;
}

static double rate_between(const struct reading *now, const struct reading *before, uint64_t events,
                           uint64_t events_before)
{
    if (now->time_ns <= before->time_ns || events < events_before) return NO_RATE;
    return (double)(events - events_before) * 1e9 / (double)(now->time_ns - before->time_ns);
}

/* Of the location with index `at`. Unknown for [ended], which adds up ended threads. */
static double rate_of(const struct reading *now, const struct reading *before, size_t at)
{
    const struct sums *s = &now->sums[at];
    if (!same_recording(now, before) || fdr_location_info(now->file, at)->ended_threads) return NO_RATE;
    for (size_t i = 0; i < before->count; i++) {
        if (before->sums[i].location != s->location) continue;
        bool same = fdr_location_info(before->file, i)->tid == fdr_location_info(now->file, at)->tid;
        return same ? rate_between(now, before, s->events, before->sums[i].events) : NO_RATE;
    }
    return rate_between(now, before, s->events, 0); /* a new location */
}

/* Of all locations, including those that came and ended between the looks. */
static double whole_rate(const struct reading *now, const struct reading *before)
{
    if (!same_recording(now, before)) return NO_RATE;
    return rate_between(now, before, now->all.events, before->all.events);
}

static const char *rate_text(char *text, double rate) { return rate < 0 ? "-" : human_count(text, (uint64_t)rate); }
static json_t *rate_json(double rate) { return rate < 0 ? json_null() : json_real(rate); }

/* ---- as text -------------------------------------------------------------------------------------------------- */

/* Prints "outermost < ... < innermost"; in a short line only the innermost. */
static void print_open(const struct fdr_file *file, const struct fdr_location_info *l, unsigned columns)
{
    char name[256], line[1024] = "";
    size_t first = l->open_count, used = 0;
    while (first > 0) {
        size_t length = strlen(shown_region(file, l->open[first - 1].region));
        if (length > 48) length = 48;
        if (used && used + length + 3 > columns) break;
        used += length + 3;
        first--;
    }
    if (first > 0) strcpy(line, "... > ");
    for (size_t i = first; i < l->open_count; i++) {
        size_t at = strlen(line);
        snprintf(line + at, sizeof line - at, "%s%s", fit(name, shown_region(file, l->open[i].region), 48),
                 i + 1 < l->open_count ? " > " : "");
    }
    printf("%s", l->open_count ? plain_name(line) : "-");
}

static void print_sums(const char *what, const struct sums *s)
{
    char a[HUMAN_BYTES], b[HUMAN_BYTES], c[HUMAN_BYTES], d[HUMAN_BYTES], e[HUMAN_BYTES];
    printf("%s presented %s: kept %s, filtered %s, reduced %s, lost %s\n", what, human_count(a, s->presented),
           human_count(b, s->kept), human_count(c, s->filtered), human_count(d, s->reduced), human_count(e, s->lost));
}

static void print_head(const struct reading *now, const struct reading *before)
{
    const struct fdr_file_info *info = fdr_file_info(now->file);
    char rate[HUMAN_BYTES], buffer[HUMAN_BYTES];
    uint64_t free_bins = info->bins_free;
    printf("%s, pid %u on %s: %zu locations, %s events/s\n", plain_name(info->exe), info->pid, plain_name(info->host),
           now->count, rate_text(rate, whole_rate(now, before)));
    printf("buffer  %s, %.1f %% of bins free\n", human_bytes(buffer, info->buffer_bytes),
           info->bins ? 100.0 * (double)free_bins / (double)info->bins : 0.0);
    print_sums("ledger ", &now->all);
}

static unsigned width(bool terminal)
{
    struct winsize w;
    if (terminal && ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) == 0 && w.ws_col > 60) return w.ws_col;
    return 160;
}

static unsigned lines_on_screen(bool terminal)
{
    struct winsize w;
    return terminal && ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) == 0 && w.ws_row > 8 ? w.ws_row : 0;
}

enum { HEAD_LINES = 6 /* including the last one */, MPI_LINES = 15 };

static void print_reading(const struct reading *now, const struct reading *before, bool terminal)
{
    char rate[HUMAN_BYTES], for_[HUMAN_BYTES], name[80];
    unsigned rows = lines_on_screen(terminal), columns = width(terminal) - 58;
    size_t live = 0, shown = 0;
    for (size_t i = 0; i < now->count; i++) live += fdr_location_info(now->file, i)->live;
    if (terminal) fputs("\033[H\033[J", stdout);
    print_head(now, before);
    printf("%5s %-16s %14s %12s  %s\n", "LOC", "NAME", "EVENTS/S", "INNERMOST", "OPEN REGIONS");
    for (size_t i = 0; i < now->count; i++) {
        const struct fdr_location_info *l = fdr_location_info(now->file, i);
        if (!l->live) continue;
        if (rows && shown + HEAD_LINES >= rows) {
            printf("      ... %zu more", live - shown);
            break;
        }
        shown++;
        uint64_t since = l->open_count && !l->given_times ? l->open[l->open_count - 1].enter_ns : 0;
        printf("%5u %-16s %14s %12s  ", l->id, fit(name, plain_name(l->name), 16),
               rate_text(rate, rate_of(now, before, i)),
               since ? human_time(for_, now->time_ns > since ? now->time_ns - since : 0) : "-");
        print_open(now->file, l, columns);
        putchar('\n');
    }
    if (!rows || shown + HEAD_LINES + MPI_LINES <= rows) print_mpi_state(now->file, false);
    if (!terminal) putchar('\n');
}

/* ---- as JSON -------------------------------------------------------------------------------------------------- */

static void set_sums(json_t *o, const struct sums *s)
{
    json_object_set_new(o, "presented", json_u64(s->presented));
    json_object_set_new(o, "kept", json_u64(s->kept));
    json_object_set_new(o, "filtered", json_u64(s->filtered));
    json_object_set_new(o, "reduced", json_u64(s->reduced));
    json_object_set_new(o, "lost", json_u64(s->lost));
}

static json_t *location_json(const struct reading *now, const struct reading *before, size_t i)
{
    const struct fdr_location_info *l = fdr_location_info(now->file, i);
    json_t *o = json_object(), *open = json_array(), *since = json_array();
    for (size_t k = 0; k < l->open_count; k++) {
        json_array_append_new(open, json_text(region_name(now->file, l->open[k].region)));
        json_array_append_new(since, json_u64(l->open[k].enter_ns));
    }
    json_object_set_new(o, "id", json_u64(l->id));
    json_object_set_new(o, "name", json_text(l->name));
    json_object_set_new(o, "tid", json_u64(l->tid));
    json_object_set_new(o, "ended_threads", json_u64(l->ended_threads));
    json_object_set_new(o, "live", json_boolean(l->live));
    json_object_set_new(o, "given_times", json_boolean(l->given_times));
    json_object_set_new(o, "open", open);
    json_object_set_new(o, "open_enter_ns", since);
    json_object_set_new(o, "events_per_s", rate_json(rate_of(now, before, i)));
    set_sums(o, &now->sums[i]);
    return o;
}

static int print_object(const struct reading *now, const struct reading *before)
{
    const struct fdr_file_info *info = fdr_file_info(now->file);
    json_t *o = json_object(), *all = json_array(), *ledger = json_object();
    for (size_t i = 0; i < now->count; i++) json_array_append_new(all, location_json(now, before, i));
    set_sums(ledger, &now->all);
    json_object_set_new(o, "time_ns", json_u64(now->time_ns));
    json_object_set_new(o, "pid", json_u64(info->pid));
    json_object_set_new(o, "exe", json_text(info->exe));
    json_object_set_new(o, "events_per_s", rate_json(whole_rate(now, before)));
    json_object_set_new(o, "buffer_bytes", json_u64(info->buffer_bytes));
    json_object_set_new(o, "bins", json_u64(info->bins));
    json_object_set_new(o, "bins_free", json_u64(info->bins_free));
    json_object_set_new(o, "ledger", ledger);
    json_object_set_new(o, "locations", all);
    json_object_set_new(o, "mpi", mpi_state_json(now->file));
    char *line = json_plain(o);
    if (line) puts(line);
    free(line);
    json_decref(o);
    return finish_output();
}

/* ---- again and again ------------------------------------------------------------------------------------------ */

static volatile sig_atomic_t interrupted;
static void on_interrupt(int number)
{
    (void)number;
    interrupted = 1;
}

static void wait_for(uint64_t ns)
{
    struct timespec t = {(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};
    while (!interrupted && nanosleep(&t, &t) && errno == EINTR) {}
}

/* Between two recordings of a process there is none for a moment, so it tries again. */
static bool read_process_retrying(uint32_t pid, struct reading *l, char *message, size_t message_bytes)
{
    enum { LOOKS = 10, WAIT_NS = 10000000 };
    for (int i = 0; i < LOOKS && !interrupted; i++) {
        if (i) wait_for(WAIT_NS);
        if (read_process(pid, l, message, message_bytes)) return true;
    }
    return false;
}

static int watch(const struct arguments *a)
{
    struct reading now, before = {0};
    char message[512] = "";
    bool terminal = !a->json && isatty(STDOUT_FILENO);
    int status = DONE;
    uint64_t n = 0;
    for (; !interrupted && status == DONE && (a->count == 0 || n < a->count); n++) {
        if (n) wait_for(a->interval_ns);
        if (interrupted || !read_process_retrying(a->pid, &now, message, sizeof message)) break;
        message[0] = '\0'; /* a copy of a running process lacks a few events; that is no news here */
        if (!a->json) print_reading(&now, &before, terminal);
        status = a->json ? print_object(&now, &before) : finish_output();
        free_reading(&before);
        before = now;
    }
    free_reading(&before);
    if (message[0] && !interrupted) complain("%s", message);
    return n == 0 ? COULD_NOT : status; /* the end of the process is the normal end of a watch */
}

int verb_top(int argc, char **argv)
{
    static const struct argp_child children[] = {{&names_argp, 0, NULL, 0}, {0}};
    static const struct argp argp = {
        options,
        parse,
        "PID",
        "Shows a running process from its recording: the buffer, the ledger and each thread. A thread's row has its "
        "events per second and its open regions, innermost last, with the time since the innermost was entered. The "
        "process may hang or be stopped. Ends with the process, or at an interrupt.",
        children,
        NULL,
        NULL};
    struct arguments a = {.interval_ns = 1000000000u};
    parse_arguments(&argp, argc, argv, &a);
    signal(SIGINT, on_interrupt);
    return watch(&a);
}
