/* SPDX-License-Identifier: MIT */
/* fdr snapshot: copies the recording of a process into a file, from outside. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/common/verbs.h"
#include "tools/common/live_files.h"
#include "tools/job_processes.h"

struct arguments {
    char **processes;
    int count;
    const char *out, *reason, *job;
    bool json;
};

static const struct argp_option options[] = {
    {"output", 'o', "OUT", 0, "The new file, or a directory for it; default: the working directory", 0},
    {"reason", 'r', "TEXT", 0, "The reason stored in the snapshot (outside)", 0},
    {"job", 'J', "ID", 0,
     "All ranks of a job that run on this machine: ID is the launcher's name of the job (the note mpi.job), or the "
     "process number of mpirun or mpiexec",
     0},
    {"json", 'j', 0, 0, "Report as JSON", 0},
    {0}};

static error_t parse(int key, char *text, struct argp_state *state)
{
    struct arguments *a = state->input;
    uint64_t pid;
    switch (key) {
    case 'o': a->out = text; return 0;
    case 'r': a->reason = text; return 0;
    case 'J': a->job = text; return 0;
    case 'j': a->json = true; return 0;
    case ARGP_KEY_ARGS:
        a->processes = state->argv + state->next;
        a->count = state->argc - state->next;
        for (int i = 0; i < a->count; i++)
            if (!parse_count(a->processes[i], &pid) || pid == 0 || pid > INT32_MAX)
                argp_error(state, "not a process number: '%s'", a->processes[i]);
        return 0;
    case ARGP_KEY_END:
        if (a->count == 0 && !a->job) argp_error(state, "a PID or --job is needed");
        return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

static bool is_directory(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

enum { NAME_BYTES = 64 }; /* with the NUL; the process shortens longer names, too */

/* Reads NAME from a live file's name NAME.HOST.PID[.rRANK].N.live.fdr. */
static bool name_of_file(const char *file, const struct fdr_file_info *info, char *name)
{
    char middle[320];
    const char *end = NULL;
    int n = snprintf(middle, sizeof middle, ".%s.%u.", info->host, info->pid);
    if (n >= (int)sizeof middle || !ends_in(file, ".live.fdr")) return false;
    for (const char *at = file; (at = strstr(at + 1, middle));) end = at;
    if (end) snprintf(name, NAME_BYTES, "%.*s", (int)(end - file), file);
    return end != NULL;
}

/* Finds NAME if this line of maps shows a live file. The file was created without a name, so its directory is searched.
 * Directories of other files are not searched: they may be many, or on a server that does not answer. */
static bool live_name(uint32_t pid, const char *line, const struct fdr_file_info *info, char *name)
{
    char perms[8], directory[4352];
    unsigned long long inode;
    int path = 0;
    struct stat st;
    bool found = false;
    if (sscanf(line, "%*s %7s %*s %*s %llu %n", perms, &inode, &path) < 2 || !path || perms[3] != 's') return false;
    const char *slash = strrchr(line + path, '/');
    if (!slash || (slash[1] != '#' && !strstr(slash, ".live.fdr"))) return false;
    snprintf(directory, sizeof directory, "/proc/%u/root%.*s", pid, (int)(slash - line - path + 1), line + path);
    DIR *d = opendir(directory);
    for (struct dirent *e; d && !found && (e = readdir(d));)
        found = name_of_file(e->d_name, info, name) && fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
                st.st_ino == inode;
    if (d) closedir(d);
    return found;
}

/* The name that the process gives its files, from its live file. Without one: the name that it would use by default. */
static void name_of(uint32_t pid, const struct fdr_file_info *info, char *name)
{
    char path[64], *line = NULL;
    size_t room = 0;
    bool found = false;
    snprintf(path, sizeof path, "/proc/%u/maps", pid);
    FILE *maps = fopen(path, "re");
    while (maps && !found && getline(&line, &room, maps) > 0) found = live_name(pid, line, info, name);
    if (maps) fclose(maps);
    free(line);
    if (found) return;
    const char *slash = strrchr(info->exe, '/'), *file = slash ? slash + 1 : info->exe;
    snprintf(name, NAME_BYTES, "%s", file[0] ? file : "program");
}

/* Makes DIR/NAME.HOST.PID[.rRANK].N.fdr, the name that the process itself gives its snapshots. */
static void path_of(char *path, size_t bytes, const char *directory, const char *name, const struct fdr_file_info *info,
                    unsigned n)
{
    char rank[16] = "";
    if (info->rank >= 0) snprintf(rank, sizeof rank, ".r%d", info->rank);
    snprintf(path, bytes, "%s/%s.%s.%u%s.%u.fdr", directory, name, info->host, info->pid, rank, n);
}

/* Writes to a free name. Returns 0, or -errno with `message`. */
static int write_named(const struct arguments *a, uint32_t pid, char *path, size_t path_bytes, char *message,
                       size_t message_bytes)
{
    if (a->out && !is_directory(a->out)) {
        snprintf(path, path_bytes, "%s", a->out);
        return fdr_process_snapshot(pid, path, a->reason, message, message_bytes);
    }
    struct fdr_file *file;
    if (fdr_process_open(pid, false, &file, message, message_bytes) == FDR_UNREADABLE) return -ESRCH;
    char name[NAME_BYTES];
    int e = -EEXIST;
    name_of(pid, fdr_file_info(file), name);
    for (unsigned n = 1; n < 10000 && e == -EEXIST; n++) {
        path_of(path, path_bytes, a->out ? a->out : ".", name, fdr_file_info(file), n);
        if (access(path, F_OK) == 0) continue;
        e = fdr_process_snapshot(pid, path, a->reason, message, message_bytes);
    }
    fdr_file_close(file);
    return e;
}

static int take_one(const struct arguments *a, uint32_t pid, json_t *list)
{
    char path[4096] = "", message[512] = "", size[HUMAN_BYTES];
    struct stat st = {0};
    int e = write_named(a, pid, path, sizeof path, message, sizeof message);
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
        printf("%s (%s)\n", plain_name(path), human_bytes(size, (uint64_t)st.st_size));
    }
    return DONE;
}

static int take_named(const struct arguments *a, json_t *list)
{
    int status = DONE;
    for (int i = 0; i < a->count; i++) {
        uint64_t pid = 0;
        parse_count(a->processes[i], &pid);
        status = worse(status, take_one(a, (uint32_t)pid, list));
    }
    return status;
}

/* A rank that ends meanwhile, or may not be read, is said; the others are taken. */
static int take_job(const struct arguments *a, json_t *list)
{
    uint32_t *pid;
    size_t count;
    int status = processes_of_job(a->job, &pid, &count);
    for (size_t i = 0; pid && i < count; i++) status = worse(status, take_one(a, pid[i], list));
    free(pid);
    if (count == 0) {
        complain("--job %s: no rank of it has a live recording in %s", plain_name(a->job),
                 plain_name(live_directory()));
        return COULD_NOT;
    }
    return status;
}

int verb_snapshot(int argc, char **argv)
{
    static const struct argp argp = {
        options,
        parse,
        "[PID...]",
        "Copies the recordings of processes, or of all ranks of a job, into snapshots, without their help. The process "
        "may hang, be stopped or "
        "block every signal. Nothing is written to the process. Needs the same user, or root.",
        NULL,
        NULL,
        NULL};
    struct arguments a = {0};
    int status;
    parse_arguments(&argp, argc, argv, &a);
    if ((a.count > 1 || a.job) && a.out && !is_directory(a.out)) {
        complain("-o %s: several processes need a directory", a.out);
        return USAGE;
    }
    setenv("FDR_SYMBOLS", "0", 0);
    json_t *list = json_array();
    status = worse(take_named(&a, list), a.job ? take_job(&a, list) : DONE);
    if (a.json) return worse(status, print_json(list));
    json_decref(list);
    return worse(status, finish_output());
}
