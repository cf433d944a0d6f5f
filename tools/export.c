/* SPDX-License-Identifier: MIT */
/* fdr export: writes recordings in the formats of other viewers. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/common/file_rank.h"
#include "tools/common/progress.h"
#include "tools/common/verbs.h"
#include "tools/common/selection.h"
#include "tools/export_fit.h"

enum { SETTINGS = 32 };

struct arguments {
    char **paths;
    int path_count;
    const char *out;
    const struct fdr_exporter *format;
    const char *set[SETTINGS], *value[SETTINGS]; /* as given; by option of the format */
    size_t set_count;
    bool json, list;
    struct fit fit;
    struct progress progress;
    struct selection selection;
};

static const struct argp_option options[] = {
    {"to", 't', "FORMAT", 0, "The format, see below", 0},
    {"set", 's', "OPTION=VALUE", 0, "An option of the format, see below. May be repeated", 0},
    {"output", 'o', "OUT", 0, "Where to write; - is standard output", 0},
    {"fit", 'f', "SIZE", 0,
     "Leave out the shortest calls, then the oldest time, until the output has at most this size: 100M", 0},
    {"list", 'l', 0, 0, "Only list the formats and their options", 0},
    {"json", 'j', 0, 0, "Report, or list, as JSON", 0},
    {0}};

/* ---- the formats ---- */

static const struct fdr_exporter *find_format(const char *name)
{
    const struct fdr_exporter *format;
    for (size_t i = 0; (format = fdr_exporter(i)) && strcmp(format->name, name) != 0;) i++;
    return format;
}

/* "chrome, folded" */
static const char *format_names(void)
{
    static char names[400];
    const struct fdr_exporter *format;
    size_t used = 0;
    for (size_t i = 0; (format = fdr_exporter(i)) && used < sizeof names; i++)
        used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", i ? ", " : "", format->name);
    return names;
}

static void print_formats(FILE *out)
{
    const struct fdr_exporter *format;
    fprintf(out, "formats of --to, with options for --set\n");
    for (size_t i = 0; (format = fdr_exporter(i)); i++) {
        fprintf(out, "  %-12s %s\n", format->name, format->help);
        for (size_t k = 0; k < format->options; k++) {
            const struct fdr_export_option *o = &format->option[k];
            fprintf(out, "  %-12s   %s=%s: %s\n", "", o->name, o->value, o->help);
        }
    }
}

static json_t *option_json(const struct fdr_export_option *option)
{
    json_t *o = json_object();
    json_object_set_new(o, "name", json_text(option->name));
    json_object_set_new(o, "value", json_text(option->value));
    json_object_set_new(o, "help", json_text(option->help));
    return o;
}

static int list_as_json(void)
{
    const struct fdr_exporter *format;
    json_t *all = json_array();
    for (size_t i = 0; (format = fdr_exporter(i)); i++) {
        json_t *o = json_object(), *list = json_array();
        for (size_t k = 0; k < format->options; k++) json_array_append_new(list, option_json(&format->option[k]));
        json_object_set_new(o, "name", json_text(format->name));
        json_object_set_new(o, "help", json_text(format->help));
        json_object_set_new(o, "options", list);
        json_array_append_new(all, o);
    }
    return print_json(all);
}

static int list_as_text(void)
{
    print_formats(stdout);
    return finish_output();
}

/* The list behind the options of --help. */
static char *help_filter(int key, const char *text, void *input)
{
    char *list = NULL;
    size_t bytes = 0;
    (void)input;
    FILE *out = key == ARGP_KEY_HELP_EXTRA ? open_memstream(&list, &bytes) : NULL;
    if (!out) return (char *)(uintptr_t)text;
    print_formats(out);
    fclose(out);
    return list; /* argp frees it */
}

/* Finds the option of each "OPTION=VALUE". */
static void take_settings(struct arguments *a, struct argp_state *state)
{
    for (size_t i = 0; i < a->set_count; i++) {
        size_t length = strcspn(a->set[i], "="), k = 0;
        const struct fdr_export_option *o = a->format->option;
        while (k < a->format->options && (strncmp(o[k].name, a->set[i], length) || o[k].name[length])) k++;
        if (k >= a->format->options || k >= SETTINGS)
            argp_error(state, "--set: '%.*s' is no option of %s", (int)length, plain_name(a->set[i]), a->format->name);
        else if (!a->set[i][length]) argp_error(state, "--set: '%s' lacks '=VALUE'", plain_name(a->set[i]));
        else a->value[k] = a->set[i] + length + 1;
    }
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
        a->format = find_format(text);
        if (!a->format) argp_error(state, "--to: '%s' is no format (%s) and no TIME", text, format_names());
        return 0;
    case 's':
        if (a->set_count == SETTINGS) argp_error(state, "--set: more than %d times", SETTINGS);
        a->set[a->set_count++] = text;
        return 0;
    case 'f':
        if (!parse_size(text, &a->fit.most) || !a->fit.most) argp_error(state, "--fit: not a size: '%s'", text);
        return 0;
    case 'l': a->list = true; return 0;
    case 'o': a->out = text; return 0;
    case 'j': a->json = true; return 0;
    case ARGP_KEY_ARGS:
        a->paths = state->argv + state->next;
        a->path_count = state->argc - state->next;
        return 0;
    case ARGP_KEY_END:
        if (a->list) return 0;
        if (!a->paths) argp_error(state, "a FILE is needed");
        if (!a->format) argp_error(state, "--to is needed: %s", format_names());
        if (!a->out) argp_error(state, "-o OUT is needed");
        if (a->format->directory && strcmp(a->out, "-") == 0)
            argp_error(state, "--to %s writes a directory: -o needs a name", a->format->name);
        if (a->json && strcmp(a->out, "-") == 0) argp_error(state, "--json needs an OUT other than standard output");
        if (a->fit.most && !a->format->call_bytes)
            argp_error(state, "--fit: the size of %s does not depend on the number of calls", a->format->name);
        if (a->fit.most && strcmp(a->out, "-") == 0) argp_error(state, "--fit needs an OUT other than standard output");
        take_settings(a, state);
        return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

/* ---- sizes ---- */

static uint64_t bytes_written; /* for the next function */

static int add_size(const char *path, const struct stat *s, int type, struct FTW *at)
{
    (void)path, (void)at;
    if (type == FTW_F) bytes_written += (uint64_t)s->st_size;
    return 0;
}

/* The size of a file, or of all files of a directory. */
static uint64_t size_of(const char *path)
{
    bytes_written = 0;
    nftw(path, add_size, 16, 0);
    return bytes_written;
}

static int remove_one(const char *path, const struct stat *s, int type, struct FTW *at)
{
    (void)s, (void)type, (void)at;
    return remove(path);
}

static void remove_tree(const char *path) { nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS); }

static int report(const struct arguments *a)
{
    json_t *o = json_object();
    json_object_set_new(o, "output", json_text(a->out));
    json_object_set_new(o, "format", json_text(a->format->name));
    json_object_set_new(o, "files", json_integer(a->path_count));
    json_object_set_new(o, "bytes", json_u64(size_of(a->out)));
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

static int run_format(const struct arguments *a, struct fdr_file *const *files, size_t count,
                      const struct fdr_select *select, const char *path)
{
    return a->format->run(files, count, select, a->value, path);
}

/* Leaves out more until the output fits, and writes it anew. Returns 0 or -errno; -E2BIG: nothing fits. */
static int run_fitting(struct arguments *a, struct fdr_file *const *files, size_t count,
                       const struct fdr_select *select, const char *path)
{
    struct fdr_select *narrow = calloc(count, sizeof *narrow);
    bool more = narrow != NULL;
    int error = -ENOMEM;
    while (more) {
        fit_narrow(&a->fit, files, select, narrow, count);
        error = run_format(a, files, count, narrow, path);
        uint64_t bytes = error || !a->fit.most ? 0 : size_of(path);
        more = bytes > a->fit.most;
        if (more && a->format->directory) remove_tree(path);
        if (!more || fit_more(&a->fit, bytes)) continue;
        error = -E2BIG;
        break;
    }
    free(narrow);
    return error;
}

/* Returns 0 or -errno. */
static int convert(struct arguments *a, struct fdr_file *const *files, size_t count, const struct fdr_select *select)
{
    char open_file[40];
    if (a->format->directory || strcmp(a->out, "-") == 0 || !is_file(a->out))
        return run_fitting(a, files, count, select, a->out);
    int fd = open_part(a->out);
    if (fd < 0) return -errno;
    snprintf(open_file, sizeof open_file, "/proc/self/fd/%d", fd);
    int error = run_fitting(a, files, count, select, open_file);
    if (close(fd) != 0 && !error) error = -errno;
    if (!error && rename(part, a->out) != 0) error = -errno;
    if (error) unlink(part);
    return error;
}

/* Says so if the output will be large. */
static void announce(struct arguments *a, struct fdr_file *const *files, size_t count, const struct fdr_select *select)
{
    enum { LARGE_MB = 100 };
    if (!a->format->call_bytes) return;
    uint64_t events = fit_count(&a->fit, files, select, count), mb = events / 2 * a->format->call_bytes / 1000000;
    if (a->fit.most) fit_start(&a->fit, a->format->call_bytes);
    else if (mb >= LARGE_MB)
        complain("%s: %llu events make some %llu MB of %s; --fit, --from, --depth and --min-duration leave some out",
                 a->out, (unsigned long long)events, (unsigned long long)mb, a->format->name);
}

static void on_progress(void *context, uint64_t events) { progress_now(context, events); }

/* Resolves the filters for each file: ids and times differ between them. NULL: no memory. */
static struct chosen *choose_all(struct arguments *a, struct fdr_file *const *files, const char *const *paths,
                                 size_t count, struct fdr_select **select)
{
    struct chosen *chosen = calloc(count, sizeof *chosen);
    size_t done = 0;
    *select = calloc(count, sizeof **select);
    while (chosen && *select && done < count && choose(&a->selection, files[done], paths[done], &chosen[done])) {
        (*select)[done] = chosen[done].select;
        (*select)[done].progress = on_progress;
        (*select)[done++].progress_context = &a->progress;
    }
    if (done == count && *select) return chosen;
    while (done > 0) chosen_free(&chosen[--done]);
    free(chosen);
    free(*select);
    return NULL;
}

static int export(struct arguments *a, struct fdr_file *const *files, const char *const *paths, size_t count)
{
    struct fdr_select *select;
    struct chosen *chosen = choose_all(a, files, paths, count, &select);
    if (!chosen) return COULD_NOT;
    announce(a, files, count, select);
    a->progress = (struct progress){.what = a->format->name};
    int error = convert(a, files, count, select);
    progress_end(&a->progress);
    for (size_t i = 0; i < count; i++) chosen_free(&chosen[i]);
    free(chosen);
    free(select);
    if (error != 0) {
        if (error == -ENOTSUP) complain("%s: this build of fdr lacks the library for %s", a->out, a->format->name);
        else if (error == -E2BIG) complain("%s: no part of it fits --fit", a->out);
        else complain("%s: %s", a->out, strerror(-error));
        return COULD_NOT;
    }
    if (a->fit.most) fit_say(&a->fit, a->out);
    return a->json ? report(a) : DONE;
}

static bool may_run(const struct arguments *a)
{
    return !is_input(a->out, (const char *const *)a->paths, (size_t)a->path_count);
}

static int run(struct arguments *a)
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
        if (!files[count]) continue;
        if (selection_shows_rank(&a->selection, rank_of_file(files[count], a->paths[i]))) paths[count++] = a->paths[i];
        else status = worse(status, close_recording(files[count], a->paths[i], true));
    }
    if (!count && status == DONE) {
        complain("no file is of a rank of --rank");
        status = COULD_NOT;
    }
    if (count > 0) status = worse(status, export(a, files, paths, count));
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
    static const struct argp argp = {
        options, parse, "FILE...", "Writes recordings in the format of another viewer.", children, help_filter, NULL};
    struct arguments a = {0};
    parse_arguments(&argp, argc, argv, &a);
    if (!a.list) return run(&a);
    return a.json ? list_as_json() : list_as_text();
}
