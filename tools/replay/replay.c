/* SPDX-License-Identifier: MIT */
/* fdr replay: feeds recorded streams to the real recorder at their own times, one thread per stream. */
#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fdr/fdr.h>

#include "tools/common/verbs.h"
#include "tools/replay/play.h"
#include "tools/replay/event_stream.h"

/* ---- arguments -------------------------------------------------------------------------------------------------- */

/* The names of the environment variables in lower case; each sets a field of struct fdr_config. */
static const struct {
    const char *name, *argument, *text;
    size_t offset;
} knobs[] = {
    {"buffer", "SIZE", "Memory of the whole recording: 256K, 32M, 1G", offsetof(struct fdr_config, buffer)},
    {"bin", "SIZE", "Size of a bin, 512 to 64K, a power of two", offsetof(struct fdr_config, bin)},
    {"strategy", "NAME", "telescope, whole, last or first", offsetof(struct fdr_config, strategy)},
    {"telescope", "LIST", "Shares of the age tiers, newest first: 8,4,1; fdr info shows the effect",
     offsetof(struct fdr_config, telescope)},
    {"pin", "TIME", "The first moments, which stay: 5s", offsetof(struct fdr_config, pin)},
    {"reduce", "LIST", "Order of the reduction steps: duration,depth,class,epoch", offsetof(struct fdr_config, reduce)},
    {"classes", "LIST", "Event classes, least important first", offsetof(struct fdr_config, classes)},
    {"min-duration", "TIME", "Drop shorter calls: 1us", offsetof(struct fdr_config, min_duration)},
    {"depth", "N", "Only count calls that are deeper", offsetof(struct fdr_config, depth)},
    {"resolution", "TIME", "Resolution of stored times: 128ns; 0 is lossless", offsetof(struct fdr_config, resolution)},
    {"filter", "FILE", "Include and exclude rules", offsetof(struct fdr_config, filter)},
    {"arena", "KIND", "anonymous (default here) or mapped", offsetof(struct fdr_config, arena)},
    {"live-dir", "DIR", "Where a mapped recording lives", offsetof(struct fdr_config, live_dir)},
    {"name", "NAME", "NAME of the recording", offsetof(struct fdr_config, name)},
    {"timer", "KIND", "tsc or monotonic", offsetof(struct fdr_config, timer)},
    {"signal", "NAME", "Signal that takes a snapshot (none)", offsetof(struct fdr_config, signal)},
    {"enable", "0|1", "0: record nothing", offsetof(struct fdr_config, enable)},
    {"disk", "SIZE", "Most bytes of snapshots", offsetof(struct fdr_config, disk)},
    {"keep", "N,WHICH", "How many snapshots stay", offsetof(struct fdr_config, keep)},
    {"holdoff", "TIME", "Least time between two snapshots by signal", offsetof(struct fdr_config, holdoff)},
    {"check", "0|1", "1: the recorder checks itself after each give-back", offsetof(struct fdr_config, check)},
};
enum { KNOBS = sizeof knobs / sizeof knobs[0], FIRST_KNOB = 0x2000 };

struct arguments {
    char **paths;
    int path_count;
    const char *out;
    uint64_t repeat;
    bool json;
    struct fdr_config config;
};

static void set_knob(struct fdr_config *config, size_t knob, const char *text)
{
    memcpy((char *)config + knobs[knob].offset, &text, sizeof text);
}

static error_t parse(int key, char *text, struct argp_state *state)
{
    struct arguments *a = state->input;
    if (key >= FIRST_KNOB && key < FIRST_KNOB + KNOBS) {
        set_knob(&a->config, (size_t)(key - FIRST_KNOB), text);
        return 0;
    }
    switch (key) {
    case 'o': a->out = text; return 0;
    case 'j': a->json = true; return 0;
    case 'r':
        if (!parse_count(text, &a->repeat) || a->repeat == 0) argp_error(state, "--repeat: not a count: '%s'", text);
        return 0;
    case ARGP_KEY_ARGS:
        a->paths = state->argv + state->next;
        a->path_count = state->argc - state->next;
        return 0;
    case ARGP_KEY_END:
        if (!a->paths) argp_error(state, "a STREAM is needed");
        return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

static void parse_all(struct arguments *a, int argc, char **argv)
{
    static struct argp_option options[KNOBS + 6] = {
        {"output", 'o', "OUT", 0, "The recording, which replaces a file of that name; without it only the figures", 0},
        {"repeat", 'r', "N", 0, "Replay the streams N times, one after the other in time", 0},
        {"json", 'j', 0, 0, "The figures as JSON", 0},
        {0, 0, 0, 0, "Options of the recorder, as its environment (FDR_BUFFER is --buffer):", 1}};
    static const struct argp argp = {
        options,
        parse,
        "STREAM...",
        "Drives the real recorder with recorded event streams (.evt, .evt.zst, .fdr) on their own clock; "
        "several streams are several locations of one recording.",
        NULL,
        NULL,
        NULL};
    for (int i = 0; i < KNOBS; i++)
        options[4 + i] = (struct argp_option){knobs[i].name, FIRST_KNOB + i, knobs[i].argument, 0, knobs[i].text, 1};
    parse_arguments(&argp, argc, argv, a);
}

/* ---- threads ---------------------------------------------------------------------------------------------------- */

/* Threads attach one after the other, so locations have the order of the streams; then all start together. They stay
 * until the snapshot is taken: an ended thread would be the first to lose its events. Each step of a thread wakes the
 * starter alone: of a thousand threads none wakes all others. */
struct gang {
    pthread_mutex_t lock;
    pthread_cond_t counted, told; /* the starter waits for the first, the threads for the second */
    size_t size, attached, finished;
    uint64_t repeat;
    bool started, released;
    bool balanced;        /* the first reduction was seen */
    double first_balance; /* negative: there was none */
};
struct player {
    pthread_t thread;
    struct gang *gang;
    struct stream *stream;
    uint64_t elapsed_ns;
    bool saw_reduction; /* the first reduction was noticed */
};

static void count_up(struct gang *g, size_t *count)
{
    pthread_mutex_lock(&g->lock);
    ++*count;
    pthread_cond_signal(&g->counted);
    pthread_mutex_unlock(&g->lock);
}

static void wait_for_attached(struct gang *g, size_t count)
{
    pthread_mutex_lock(&g->lock);
    while (g->attached < count) pthread_cond_wait(&g->counted, &g->lock);
    pthread_mutex_unlock(&g->lock);
}

static void wait_until(struct gang *g, const bool *what)
{
    pthread_mutex_lock(&g->lock);
    while (!*what) pthread_cond_wait(&g->told, &g->lock);
    pthread_mutex_unlock(&g->lock);
}

static void tell(struct gang *g, bool *what)
{
    pthread_mutex_lock(&g->lock);
    *what = true;
    pthread_cond_broadcast(&g->told);
    pthread_mutex_unlock(&g->lock);
}

static size_t first_event(const struct stream *s)
{
    size_t i = 0;
    while (i < s->count && s->op[i] == OP_TICK) i++;
    return i < s->count ? i + 1 : i;
}

/* Measures how evenly memory is used at the first reduction. It looks from outside, because a snapshot would count
 * against --keep and --disk. */
static void look_for_first(struct player *p)
{
    struct fdr_file *file;
    struct gang *g = p->gang;
    pthread_mutex_lock(&g->lock);
    bool mine = !g->balanced && fdr_usage().reductions > 0;
    g->balanced |= mine;
    p->saw_reduction = g->balanced;
    pthread_mutex_unlock(&g->lock);
    if (!mine || fdr_process_open((uint32_t)getpid(), false, &file, NULL, 0) == FDR_UNREADABLE) return;
    g->first_balance = fdr_file_info(file)->memory_balance;
    fdr_file_close(file);
}

enum { LOOK_EVERY = 4096 }; /* events between two checks for the first reduction */

/* Plays events [from, to) of the stream; returns the time of the last. *elapsed excludes the checks. */
static uint64_t play_part(struct player *p, size_t from, size_t to, uint64_t t)
{
    const struct stream *s = p->stream;
    while (from < to) {
        size_t end = p->saw_reduction || to - from < LOOK_EVERY ? to : from + LOOK_EVERY;
        uint64_t start = now_ns();
        t = play(s, from, end, t);
        p->elapsed_ns += now_ns() - start;
        from = end;
        if (!p->saw_reduction) look_for_first(p);
    }
    return t;
}

static void *player_main(void *argument)
{
    struct player *p = argument;
    const struct stream *s = p->stream;
    size_t first = first_event(s);
    uint64_t t = play(s, 0, first, s->t0_ns); /* before the name: the first event decides that times are in ns */
    fdr_thread_name(s->name);
    count_up(p->gang, &p->gang->attached);
    wait_until(p->gang, &p->gang->started);
    t = play_part(p, first, s->count, t);
    for (uint64_t i = 1; i < p->gang->repeat; i++) {
        close_open(s, t);
        t = play_part(p, 0, s->count, s->t0_ns + i * s->span_ns);
    }
    count_up(p->gang, &p->gang->finished);
    wait_until(p->gang, &p->gang->released);
    return NULL;
}

static void wait_for_all(struct gang *g)
{
    struct timespec until;
    uint64_t start = now_ns();
    bool terminal = isatty(STDERR_FILENO), shown = false;
    pthread_mutex_lock(&g->lock);
    while (g->finished < g->size) {
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_sec += 1;
        pthread_cond_timedwait(&g->counted, &g->lock, &until);
        uint64_t seconds = (now_ns() - start) / 1000000000u;
        if (!terminal || seconds == 0) continue;
        fprintf(stderr, "\rfdr: replay: %llu s, %zu of %zu streams done ", (unsigned long long)seconds, g->finished,
                g->size);
        shown = true;
    }
    pthread_mutex_unlock(&g->lock);
    if (shown) fputs("\r\033[K", stderr);
}

/* ---- figures ---- */

struct figures {
    uint64_t events, calls, kept_events, elapsed_ns;
    struct fdr_usage usage;
    uint64_t given_back;           /* in bytes */
    double balance, first_balance; /* at the end; at the first reduction, negative: none */
    const char *snapshot;          /* NULL: not requested */
};

/* Calls shown without their end. With strategy `first` these include calls open when storage stopped. */
static uint64_t count_open(struct fdr_file *file)
{
    const struct fdr_select calls = {.classes = 1u << FDR_IN_REGION};
    struct fdr_read_event e;
    uint64_t open = 0;
    if (strcmp(fdr_file_info(file)->strategy, "first") != 0) {
        for (size_t i = 0; i < fdr_location_count(file); i++) {
            const struct fdr_location_info *l = fdr_location_info(file, i);
            for (size_t k = 0; k < l->open_count; k++) open += !l->open[k].untimed; /* others are not kept */
        }
        return open;
    }
    struct fdr_iter *iter = fdr_iter_open(file, &calls);
    while (iter && fdr_iter_next(iter, &e)) open += e.kind == FDR_LEAVE && e.repaired && !e.reduced;
    if (iter) fdr_iter_close(iter);
    return open;
}

/* A kept call is two events; an open one is none. */
static bool count_kept(const char *path, struct figures *f)
{
    int status = DONE;
    uint64_t calls = 0, points = 0;
    const struct fdr_ledger_row *rows;
    const struct fdr_reduction_info *reductions;
    struct fdr_file *file = open_recording(path, &status);
    if (!file) return false;
    size_t count = fdr_ledger(file, &rows);
    for (size_t i = 0; i < count; i++) *(rows[i].class_ == FDR_IN_REGION ? &calls : &points) += rows[i].kept;
    uint64_t open = count_open(file);
    f->kept_events = 2 * (calls > open ? calls - open : 0) + points;
    f->balance = fdr_file_info(file)->memory_balance;
    count = fdr_reductions(file, &reductions);
    for (size_t i = 0; i < count; i++) f->given_back += reductions[i].bytes;
    fdr_file_close(file);
    return true;
}

static double quotient(uint64_t what, uint64_t count) { return count ? (double)what / (double)count : 0; }

static int print_object(const struct figures *f)
{
    json_t *o = json_object();
    json_object_set_new(o, "events", json_u64(f->events));
    json_object_set_new(o, "calls", json_u64(f->calls));
    json_object_set_new(o, "kept_events", json_u64(f->kept_events));
    json_object_set_new(o, "bytes_stored", json_u64(f->usage.bytes_stored));
    json_object_set_new(o, "bytes_per_event", json_real(quotient(f->usage.bytes_stored, f->kept_events)));
    json_object_set_new(o, "bins_used", json_u64(f->usage.bins_used));
    json_object_set_new(o, "reductions", json_u64(f->usage.reductions));
    json_object_set_new(o, "ns_per_event", json_real(quotient(f->elapsed_ns, f->events)));
    json_object_set_new(o, "snapshot", f->snapshot ? json_text(f->snapshot) : json_null());
    json_object_set_new(o, "locations", json_u64(f->usage.locations));
    json_object_set_new(o, "lost", json_u64(f->usage.lost));
    json_object_set_new(o, "meta_bytes", json_u64(f->usage.meta_bytes));
    json_object_set_new(o, "given_back_bytes", json_u64(f->given_back));
    json_object_set_new(o, "reduction_ns", json_u64(f->usage.reduction_ns));
    json_object_set_new(o, "reduction_worst_ns", json_u64(f->usage.reduction_worst_ns));
    json_object_set_new(o, "memory_balance", json_real(f->balance));
    json_object_set_new(o, "memory_balance_first", f->first_balance < 0 ? json_null() : json_real(f->first_balance));
    return print_json(o);
}

static int print_text(const struct figures *f)
{
    char a[HUMAN_BYTES], b[HUMAN_BYTES], c[HUMAN_BYTES];
    printf("presented  %s events, %s calls, %.1f ns per event\n", human_count(a, f->events), human_count(b, f->calls),
           quotient(f->elapsed_ns, f->events));
    printf("kept       %s events (%.1f %%), %.3f bytes per event\n", human_count(a, f->kept_events),
           100 * quotient(f->kept_events, f->events), quotient(f->usage.bytes_stored, f->kept_events));
    printf("buffer     %s in %s of %s bins, %s reductions\n", human_bytes(c, f->usage.bytes_stored),
           human_count(a, f->usage.bins_used), human_count(b, f->usage.bins),
           human_count((char[HUMAN_BYTES]){0}, f->usage.reductions));
    if (f->given_back)
        printf("           %s given back, %.1f us per MiB, the longest step %s\n", human_bytes(a, f->given_back),
               (double)f->usage.reduction_ns * 1048.576 / (double)f->given_back,
               human_time(b, f->usage.reduction_worst_ns));
    printf("balance    %.4f", f->balance);
    if (f->first_balance >= 0) printf("; %.4f when memory was given back for the first time", f->first_balance);
    printf("\n");
    if (f->snapshot) printf("snapshot   %s\n", plain_name(f->snapshot));
    return finish_output();
}

/* ---- taking it out ---------------------------------------------------------------------------------------------- */

/* The directory for the snapshot: that of OUT, or a temporary one. */
static bool choose_directory(const struct arguments *a, char directory[PATH_MAX])
{
    const char *temporary = getenv("TMPDIR");
    if (a->out) {
        char copy[PATH_MAX];
        snprintf(copy, sizeof copy, "%s", a->out);
        snprintf(directory, PATH_MAX, "%s", dirname(copy));
        if (access(directory, W_OK | X_OK) == 0) return true;
        complain("%s: %s: nothing can be written there; nothing was replayed", directory, strerror(errno));
        return false;
    }
    snprintf(directory, PATH_MAX, "%s/fdr-replay-XXXXXX", temporary && temporary[0] ? temporary : "/tmp");
    if (mkdtemp(directory)) return true;
    complain("%s: %s", directory, strerror(errno));
    return false;
}

static bool write_snapshot(const struct arguments *a, struct figures *f)
{
    int error = fdr_snapshot("replay");
    const char *path = fdr_last_snapshot();
    if (error != 0) {
        complain("snapshot to %s: %s", a->config.dir, strerror(-error));
        return false;
    }
    if (!a->out) {
        bool good = count_kept(path, f);
        unlink(path);
        return good;
    }
    if (rename(path, a->out) != 0) {
        complain("%s: %s; the recording stays in %s", a->out, strerror(errno), path);
        return false;
    }
    f->snapshot = a->out;
    return count_kept(a->out, f);
}

static void sum_figures(struct figures *f, const struct player *players, size_t count, uint64_t repeat)
{
    for (size_t i = 0; i < count; i++) {
        const struct stream *s = players[i].stream;
        f->events += s->events * repeat + s->open_count * (repeat - 1);
        f->calls += s->calls * repeat;
        f->elapsed_ns += players[i].elapsed_ns;
    }
    f->usage = fdr_usage();
}

static void start_players(struct player *players, struct streams *streams, struct gang *g)
{
    for (size_t i = 0; i < streams->count; i++) {
        players[i] = (struct player){.gang = g, .stream = &streams->list[i]};
        int error = pthread_create(&players[i].thread, NULL, player_main, &players[i]);
        if (error) {
            complain("cannot start thread %zu of %zu: %s; nothing was replayed", i + 1, streams->count,
                     strerror(error));
            exit(COULD_NOT); /* the running threads wait for the missing one; nothing was written yet */
        }
        wait_for_attached(g, i + 1);
    }
    tell(g, &g->started);
}

static bool run(const struct arguments *a, struct streams *streams, struct figures *f)
{
    struct gang g = {.lock = PTHREAD_MUTEX_INITIALIZER,
                     .counted = PTHREAD_COND_INITIALIZER,
                     .told = PTHREAD_COND_INITIALIZER,
                     .size = streams->count,
                     .repeat = a->repeat,
                     .first_balance = -1};
    struct player *players = calloc(streams->count + 1, sizeof *players); /* there may be none */
    if (!players || !play_prepare(streams)) {
        complain("replay: out of memory");
        free(players);
        return false;
    }
    start_players(players, streams, &g);
    wait_for_all(&g);
    sum_figures(f, players, streams->count, a->repeat);
    f->first_balance = g.first_balance;
    bool good = write_snapshot(a, f);
    tell(&g, &g.released);
    for (size_t i = 0; i < streams->count; i++) pthread_join(players[i].thread, NULL);
    free(players);
    return good;
}

/* Only the command line counts, not the environment of this shell. */
static void set_defaults(struct fdr_config *c, const char *name)
{
    c->size = sizeof *c;
    c->ignore_environment = 1;
    c->strict = 1;
    if (!c->arena) c->arena = "anonymous";
    if (!c->signal) c->signal = "none";
    if (!c->timer) c->timer = "monotonic"; /* replayed times are in ns, so the recording's unit is, too */
    if (!c->disk) c->disk = "1024G";
    if (!c->name) c->name = name;
    c->finalize = "none";
}

/* Starts the recorder, or reports why it does not record. Bad values it has reported itself. */
static int start_recorder(const struct fdr_config *c)
{
    if (c->filter && c->filter[0] && access(c->filter, R_OK)) {
        complain("%s: %s", c->filter, strerror(errno));
        return COULD_NOT;
    }
    struct stat filter;
    if (c->filter && c->filter[0] && stat(c->filter, &filter) == 0 && !S_ISREG(filter.st_mode)) {
        complain("--filter: %s: not a file", c->filter);
        return USAGE;
    }
    int error = fdr_init(c);
    if (error == -EINVAL) return USAGE;
    if (error) complain("the recorder does not start: %s", strerror(-error));
    else if (fdr_usage().buffer_bytes == 0) complain("--enable %s: nothing is recorded", c->enable);
    else return DONE;
    return COULD_NOT;
}

static int replay(struct arguments *a, struct streams *streams)
{
    char directory[PATH_MAX], name[32];
    struct figures f = {0};
    stream_base_name(name, a->paths[0]);
    if (!choose_directory(a, directory)) return COULD_NOT;
    a->config.dir = directory;
    set_defaults(&a->config, name);
    int status = start_recorder(&a->config);
    if (status == DONE && !run(a, streams, &f)) status = COULD_NOT;
    fdr_finalize();
    if (!a->out) rmdir(directory);
    if (status != DONE) return status;
    return a->json ? print_object(&f) : print_text(&f);
}

int verb_replay(int argc, char **argv)
{
    struct arguments a = {.repeat = 1};
    struct streams streams = {0};
    int status = DONE, load = DONE;
    parse_all(&a, argc, argv);
    if (a.out) status = may_write(a.out, (const char *const *)a.paths, (size_t)a.path_count);
    if (status != DONE) return status;
    if (a.out && is_null_device(a.out)) a.out = NULL;
    for (int i = 0; i < a.path_count; i++) streams_load(&streams, a.paths[i], &load);
    for (size_t i = 0; a.repeat > 1 && i < streams.count; i++) stream_forget_numbers(&streams.list[i]);
    if (streams.count == 0 && load != DONE) status = COULD_NOT;
    else status = worse(load == DONE ? DONE : DIFFERENT, replay(&a, &streams));
    streams_free(&streams);
    return status;
}
