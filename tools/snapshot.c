/* SPDX-License-Identifier: MIT */
/* fdr snapshot: the recording of a process into a file, from outside. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/common.h"
#include "tools/live.h"

struct arguments {
    char **processes;
    int count;
    const char *out, *reason;
    bool json;
};

static const struct argp_option options[] = {
    {"output", 'o', "OUT", 0, "The new file, or a directory for it; default: the working directory", 0},
    {"reason", 'r', "TEXT", 0, "What the snapshot says of why it was taken (outside)", 0},
    {"json", 'j', 0, 0, "Say as JSON what was written", 0},
    {0}};

static error_t parse(int key, char *text, struct argp_state *state)
{
    struct arguments *a = state->input;
    uint64_t pid;
    switch (key) {
    case 'o': a->out = text; return 0;
    case 'r': a->reason = text; return 0;
    case 'j': a->json = true; return 0;
    case ARGP_KEY_ARGS:
        a->processes = state->argv + state->next;
        a->count = state->argc - state->next;
        for (int i = 0; i < a->count; i++)
            if (!parse_count(a->processes[i], &pid) || pid == 0 || pid > INT32_MAX)
                argp_error(state, "no process number: '%s'", a->processes[i]);
        return 0;
    case ARGP_KEY_END:
        if (a->count == 0) argp_error(state, "a PID is needed");
        return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

static bool is_directory(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* DIR/NAME.HOST.PID[.rRANK].N.fdr, as the process itself names its snapshots. */
static void name_it(char *path, size_t bytes, const char *directory, const struct fdr_file_info *info, unsigned n)
{
    char rank[16] = "";
    const char *slash = strrchr(info->exe, '/'), *name = slash ? slash + 1 : info->exe;
    if (info->rank >= 0) snprintf(rank, sizeof rank, ".r%d", info->rank);
    snprintf(path, bytes, "%s/%s.%s.%u%s.%u.fdr", directory, name[0] ? name : "program", info->host, info->pid, rank,
             n);
}

/* Writes to a name that is free. 0 or -errno with `message`. */
static int write_named(const struct arguments *a, uint32_t pid, char *path, size_t path_bytes, char *message,
                       size_t message_bytes)
{
    if (a->out && !is_directory(a->out)) {
        snprintf(path, path_bytes, "%s", a->out);
        return fdr_process_snapshot(pid, path, a->reason, message, message_bytes);
    }
    struct fdr_file *file;
    if (fdr_process_open(pid, false, &file, message, message_bytes) == FDR_UNREADABLE) return -ESRCH;
    int e = -EEXIST;
    for (unsigned n = 1; n < 10000 && e == -EEXIST; n++) {
        name_it(path, path_bytes, a->out ? a->out : ".", fdr_file_info(file), n);
        if (access(path, F_OK) == 0) continue;
        e = fdr_process_snapshot(pid, path, a->reason, message, message_bytes);
    }
    fdr_file_close(file);
    return e;
}

static int take(const struct arguments *a, const char *process, json_t *list)
{
    char path[4096] = "", message[512] = "", size[HUMAN_BYTES];
    uint64_t pid = 0;
    struct stat st = {0};
    parse_count(process, &pid);
    int e = write_named(a, (uint32_t)pid, path, sizeof path, message, sizeof message);
    if (e) {
        complain("%s", message[0] ? message : strerror(-e));
        return COULD_NOT;
    }
    stat(path, &st);
    if (a->json) {
        json_t *o = json_object();
        json_object_set_new(o, "pid", json_u64(pid));
        json_object_set_new(o, "snapshot", json_text(path));
        json_object_set_new(o, "bytes", json_u64((uint64_t)st.st_size));
        json_array_append_new(list, o);
    } else {
        printf("%s (%s)\n", path, human_bytes(size, (uint64_t)st.st_size));
    }
    return DONE;
}

int verb_snapshot(int argc, char **argv)
{
    static const struct argp argp = {options,
                                     parse,
                                     "PID...",
                                     "Copies what a process has recorded into a snapshot, without its help: also of "
                                     "one that hangs, is stopped or blocks "
                                     "every signal. Nothing is written to the process. Needs the same user, or root.",
                                     NULL,
                                     NULL,
                                     NULL};
    struct arguments a = {0};
    int status = DONE;
    parse_arguments(&argp, argc, argv, &a);
    if (a.count > 1 && a.out && !is_directory(a.out)) {
        complain("%s: several processes need a directory", a.out);
        return USAGE;
    }
    setenv("FDR_SYMBOLS", "0", 0);
    json_t *list = json_array();
    for (int i = 0; i < a.count; i++) status = worse(status, take(&a, a.processes[i], list));
    if (a.json) return worse(status, print_json(list));
    json_decref(list);
    return worse(status, finish_output());
}
