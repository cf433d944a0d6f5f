/* SPDX-License-Identifier: MIT */
/* fdr collect: takes the recordings of dead processes out of a node's live directory, before the node is cleaned. */
#define _GNU_SOURCE
#include <errno.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/common/verbs.h"
#include "tools/common/found_recordings.h"
#include "tools/common/live_files.h"

struct arguments {
    char **directories;
    int count;
    const char *out;
    bool live, all, json;
};

static const struct argp_option options[] = {
    {"output", 'o', "DIR", 0, "Target directory (the working directory)", 0},
    {"live", 'l', 0, 0, "Also take a snapshot of each recording that is still written; it stays", 0},
    {"all-users", 'a', 0, 0, "The live directories of all users, /dev/shm/fdr-*; copies keep their owner", 0},
    {"json", 'j', 0, 0, "As JSON", 0},
    {0}};

static error_t parse(int key, char *text, struct argp_state *state)
{
    struct arguments *a = state->input;
    switch (key) {
    case 'o': a->out = text; return 0;
    case 'l': a->live = true; return 0;
    case 'a': a->all = true; return 0;
    case 'j': a->json = true; return 0;
    case ARGP_KEY_ARGS:
        a->directories = state->argv + state->next;
        a->count = state->argc - state->next;
        return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

static void report_file(const struct arguments *a, json_t *list, const struct found_recording *l, const char *to,
                        const char *what)
{
    if (!a->json) {
        printf("%s: %s %s\n", plain_name(l->path), what, plain_name(to));
        return;
    }
    json_t *o = json_object();
    json_object_set_new(o, "path", json_text(l->path));
    json_object_set_new(o, "to", to[0] ? json_text(to) : json_null());
    json_object_set_new(o, "live", json_boolean(l->live));
    json_array_append_new(list, o);
}

enum { MANY = 10000 };

static int from_process(const struct arguments *a, const struct found_recording *l, json_t *list)
{
    char to[4096], message[512] = "";
    if (!a->live) {
        report_file(a, list, l, "", "a process is writing it, it stays");
        return DONE;
    }
    const char *name = recording_name(l), *end = strstr(name, ".live.fdr");
    int e = -EEXIST, stem = (int)(end ? end - name : (ptrdiff_t)strlen(name));
    for (unsigned n = 1; n < MANY && e == -EEXIST; n++) { /* named like a snapshot, not like a live file */
        snprintf(to, sizeof to, "%s/%.*s.%u.fdr", a->out, stem, name, n);
        e = access(to, F_OK) ? fdr_process_snapshot(l->writer, to, "collect", message, sizeof message) : -EEXIST;
    }
    if (e) complain("%s: %s", l->path, message[0] ? message : strerror(-e));
    else report_file(a, list, l, to, "snapshot");
    return e ? COULD_NOT : DONE;
}

/* Removes a live file whose process left its recording in another file. */
static int remove_unneeded(const struct arguments *a, const struct found_recording *l, json_t *list)
{
    int e = recording_remove(l);
    if (e && !recording_vanished(l)) {
        complain("%s: over, and cannot be removed: %s", l->path, strerror(-e));
        return COULD_NOT;
    }
    report_file(a, list, l, "", "over, its process could not remove it: removed");
    return DONE;
}

static int collect_file(const struct arguments *a, const struct found_recording *l, json_t *list)
{
    char to[4096];
    if (l->live) return from_process(a, l, list);
    if (!l->readable && recording_vanished(l)) return DONE; /* another process owns the name by now */
    if (!l->readable) {
        complain("%s: not a readable recording; it stays", l->path);
        return COULD_NOT;
    }
    if (l->unneeded) return remove_unneeded(a, l, list);
    int e = recording_copy(l, a->out, to, sizeof to);
    if (e && recording_vanished(l)) return DONE;
    if (!e && (e = recording_remove(l)) && recording_vanished(l)) e = 0;
    if (e) complain("%s: cannot be moved to %s: %s; it stays", l->path, a->out, strerror(-e));
    else report_file(a, list, l, to, "now");
    return e ? COULD_NOT : DONE;
}

static int from_directory(const struct arguments *a, const char *directory, long owner, json_t *list)
{
    struct found_list all = {.named = a->count > 0};
    struct stat x, y;
    if (stat(directory, &x) == 0 && stat(a->out, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino) {
        complain("%s: source and target are the same directory", directory);
        return COULD_NOT;
    }
    int status = recordings_find(directory, owner, &all);
    for (size_t i = 0; i < all.count; i++) status = worse(status, collect_file(a, all.entry[i], list));
    recordings_remove_empty_folders(&all);
    recordings_free(&all);
    return status;
}

static int from_all_users(const struct arguments *a, json_t *list)
{
    glob_t found = {0};
    int status = DONE;
    static const char stem[] = "/dev/shm/fdr-";
    if (glob("/dev/shm/fdr-[0-9]*", 0, NULL, &found) == 0)
        for (size_t i = 0; i < found.gl_pathc; i++) {
            char *end;
            long owner = strtol(found.gl_pathv[i] + strlen(stem), &end, 10);
            if (*end == 0) status = worse(status, from_directory(a, found.gl_pathv[i], owner, list));
        }
    globfree(&found);
    return status;
}

int verb_collect(int argc, char **argv)
{
    static const struct argp argp = {
        options,
        parse,
        "[DIRECTORY...]",
        "Moves recordings of dead processes from the live directory (FDR_LIVE_DIR, else /dev/shm/fdr-<uid>), or from "
        "the directories given, to another one. Use it before the epilog of a job wipes the live directory. A file "
        "goes when its copy is complete and on disk; an unreadable file stays. If a name is taken, the copy gets a "
        "number.",
        NULL,
        NULL,
        NULL};
    struct arguments a = {.out = "."};
    int status = DONE;
    parse_arguments(&argp, argc, argv, &a);
    setenv("FDR_SYMBOLS", "0", 0);
    json_t *list = json_array();
    for (int i = 0; i < a.count; i++)
        status = worse(status, from_directory(&a, a.directories[i], RECORDINGS_ANY_OWNER, list));
    if (a.all) status = worse(status, from_all_users(&a, list));
    else if (a.count == 0) status = from_directory(&a, live_directory(), RECORDINGS_ANY_OWNER, list);
    if (a.json) return worse(status, print_json(list));
    json_decref(list);
    return worse(status, finish_output());
}
