/* SPDX-License-Identifier: MIT */
/* fdr export: writes recordings in the formats of other viewers. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/common/verbs.h"
#include "tools/common/selection.h"

typedef int exporter(struct fdr_file *const *files, size_t count, const struct fdr_select *select,
                     const char *out_path);

static const struct {
    const char *name;
    exporter *run;
} formats[] = {
    {"chrome", fdr_export_chrome},
    {"folded", fdr_export_folded},
};

struct arguments {
    char **paths;
    int path_count;
    const char *out, *format;
    exporter *run;
    bool json;
    struct selection selection;
};

static const struct argp_option options[] = {
    {"to", 't', "FORMAT", 0, "chrome: Chrome trace JSON (chrome://tracing, Perfetto); folded: stacks for flame graphs",
     0},
    {"output", 'o', "OUT", 0, "Where to write; - is standard output", 0},
    {"json", 'j', 0, 0, "Report as JSON", 0},
    {0}};

static exporter *find_format(const char *name)
{
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++)
        if (strcmp(formats[i].name, name) == 0) return formats[i].run;
    return NULL;
}

static error_t parse(int key, char *text, struct argp_state *state)
{
    struct arguments *a = state->input;
    switch (key) {
    case ARGP_KEY_INIT: state->child_inputs[0] = &a->selection; return 0;
    case 't':
        if (text[0] && strchr("0123456789@-", text[0])) { /* the filter of that name; no format begins like this */
            select_to(&a->selection, text, state);
            return 0;
        }
        a->format = text;
        a->run = find_format(text);
        if (!a->run) argp_error(state, "--to: '%s' is no format (chrome, folded) and no TIME", text);
        return 0;
    case 'o': a->out = text; return 0;
    case 'j': a->json = true; return 0;
    case ARGP_KEY_ARGS:
        a->paths = state->argv + state->next;
        a->path_count = state->argc - state->next;
        return 0;
    case ARGP_KEY_END:
        if (!a->paths) argp_error(state, "a FILE is needed");
        if (!a->run) argp_error(state, "--to is needed: chrome or folded");
        if (!a->out) argp_error(state, "-o OUT is needed");
        if (a->json && strcmp(a->out, "-") == 0) argp_error(state, "--json needs an OUT other than standard output");
        return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

static int report(const struct arguments *a)
{
    struct stat s;
    json_t *o = json_object();
    json_object_set_new(o, "output", json_text(a->out));
    json_object_set_new(o, "format", json_text(a->format));
    json_object_set_new(o, "files", json_integer(a->path_count));
    json_object_set_new(o, "bytes", stat(a->out, &s) == 0 ? json_u64((uint64_t)s.st_size) : json_null());
    return print_json(o);
}

/* ---- an incomplete file is not left behind ---- */

static char *part; /* the file's name until it is complete; the signal handler reads it */

static void on_end(int number)
{
    unlink(part);
    raise(number); /* the signal has its default action and is blocked until the handler returns */
}

/* Handles the signals that end the program, except those ignored at its start. */
static void remove_at_end(void)
{
    static const int numbers[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGPIPE, SIGALRM, SIGXCPU, SIGXFSZ};
    struct sigaction before, ours = {.sa_handler = on_end, .sa_flags = (int)SA_RESETHAND};
    sigfillset(&ours.sa_mask);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        if (!sigaction(numbers[i], NULL, &before) && before.sa_handler != SIG_IGN) sigaction(numbers[i], &ours, NULL);
}

/* Creates a temporary file beside `out`. Returns its descriptor, or -1 with errno. */
static int open_part(const char *out)
{
    sigset_t all, old;
    int fd = -1, error = 0;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, &old);
    for (unsigned n = 0; fd < 0 && n < 1000; n++) {
        free(part);
        if (asprintf(&part, "%s.%d.%u.part", out, (int)getpid(), n) < 0) part = NULL;
        fd = part ? open(part, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666) : -1;
        error = part ? errno : ENOMEM;
        if (fd < 0 && error != EEXIST) break;
    }
    if (fd >= 0) remove_at_end();
    sigprocmask(SIG_SETMASK, &old, NULL);
    errno = error;
    return fd;
}

static bool is_file(const char *path)
{
    struct stat s;
    return lstat(path, &s) ? errno == ENOENT : S_ISREG(s.st_mode);
}

/* Returns 0 or -errno. */
static int convert(const struct arguments *a, struct fdr_file *const *files, size_t count,
                   const struct fdr_select *select)
{
    char open_file[40];
    if (strcmp(a->out, "-") == 0 || !is_file(a->out)) return a->run(files, count, select, a->out);
    int fd = open_part(a->out);
    if (fd < 0) return -errno;
    snprintf(open_file, sizeof open_file, "/proc/self/fd/%d", fd);
    int error = a->run(files, count, select, open_file);
    if (close(fd) != 0 && !error) error = -errno;
    if (!error && rename(part, a->out) != 0) error = -errno;
    if (error) unlink(part);
    return error;
}

/* Says so if the output will be large: Chrome JSON takes some 120 bytes a call. */
static void announce(const struct arguments *a, struct fdr_file *const *files, size_t count,
                     const struct fdr_select *select)
{
    enum { CALL_BYTES = 120, LARGE_MB = 100 };
    struct fdr_read_event event;
    uint64_t events = 0;
    for (size_t i = 0; i < count && a->run == fdr_export_chrome; i++) {
        struct fdr_iter *iter = fdr_iter_open(files[i], select);
        while (iter && fdr_iter_next(iter, &event)) events++;
        if (iter) fdr_iter_close(iter);
    }
    uint64_t mb = events / 2 * CALL_BYTES / 1000000;
    if (mb >= LARGE_MB)
        complain("%s: %llu events make some %llu MB of Chrome JSON; --from, --depth and --min-duration leave some out",
                 a->out, (unsigned long long)events, (unsigned long long)mb);
}

/* Converts all files in one run, unless a filter names ids: ids of locations and regions differ between files. */
static int export(const struct arguments *a, struct fdr_file *const *files, size_t count)
{
    struct chosen chosen;
    if (!choose(&a->selection, files[0], a->paths[0], &chosen)) return COULD_NOT;
    announce(a, files, count, &chosen.select);
    int error = convert(a, files, count, &chosen.select);
    chosen_free(&chosen);
    if (error != 0) {
        complain("%s: %s", a->out, strerror(-error));
        return COULD_NOT;
    }
    return a->json ? report(a) : DONE;
}

static bool may_run(const struct arguments *a)
{
    if (a->path_count > 1 &&
        (a->selection.region_count || a->selection.location_count || a->selection.from || a->selection.to)) {
        complain("export: --region, --location, --from and --to work on one file at a time, %d were given",
                 a->path_count);
        return false;
    }
    return !is_input(a->out, (const char *const *)a->paths, (size_t)a->path_count);
}

static int run(const struct arguments *a)
{
    struct fdr_file **files = calloc((size_t)a->path_count, sizeof *files);
    const char **paths = calloc((size_t)a->path_count, sizeof *paths);
    size_t count = 0;
    int status = DONE;
    if (!may_run(a) || !files || !paths) {
        free(files);
        free(paths);
        return USAGE;
    }
    for (int i = 0; i < a->path_count; i++) {
        files[count] = open_recording(a->paths[i], &status);
        if (files[count]) paths[count++] = a->paths[i];
    }
    if (count > 0) status = worse(status, export(a, files, count));
    for (size_t i = 0; i < count; i++) {
        status = worse(status, close_recording(files[i], paths[i], true));
    }
    free(files);
    free(paths);
    return status;
}

int verb_export(int argc, char **argv)
{
    static const struct argp_child children[] = {{&select_argp, 0, NULL, 0}, {0}};
    static const struct argp argp = {options,  parse, "FILE...", "Writes recordings in the format of another viewer.",
                                     children, NULL,  NULL};
    struct arguments a = {0};
    parse_arguments(&argp, argc, argv, &a);
    return run(&a);
}
