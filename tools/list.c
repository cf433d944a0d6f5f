/* SPDX-License-Identifier: MIT */
/* fdr list: live and left recordings, and snapshots in the working directory. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tools/common/verbs.h"
#include "tools/common/live_files.h"

struct arguments {
    char **directories;
    int count;
    bool json;
};

static const struct argp_option options[] = {{"json", 'j', 0, 0, "As JSON", 0}, {0}};

static error_t parse(int key, char *text, struct argp_state *state)
{
    struct arguments *a = state->input;
    (void)text;
    switch (key) {
    case 'j': a->json = true; return 0;
    case ARGP_KEY_ARGS:
        a->directories = state->argv + state->next;
        a->count = state->argc - state->next;
        return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

enum { SUPERBLOCK_BYTES = 4096 }; /* docs/FORMAT.md, section 3 */

struct entry {
    char path[4096];
    _Alignas(8) uint8_t superblock[SUPERBLOCK_BYTES];
    struct stat stat;
    bool readable, live;
    struct fdr_file *file; /* NULL: cannot be read */
};

/* "live": a process maps it. "left": the process of this recording has ended. "kept": a snapshot or bundle. "over": a
 * live file that its process no longer needed and could not remove. */
static const char *file_status(const struct entry *e)
{
    if (e->live) return "live";
    if (!e->readable) return "unreadable";
    if (fdr_file_info(e->file)->over) return "over";
    return strcmp(fdr_file_info(e->file)->state, "recording") == 0 && !fdr_file_info(e->file)->reason[0] ? "left"
                                                                                                         : "kept";
}

static uint64_t age_of(const struct entry *e)
{
    time_t now = time(NULL);
    return now > e->stat.st_mtime ? (uint64_t)(now - e->stat.st_mtime) : 0;
}

/* Reads the superblock only, which has all that is needed: 4 KiB of a live file of 64 MiB. */
static struct fdr_file *open_superblock(struct entry *e)
{
    struct fdr_file *file = NULL;
    int fd = open(e->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    ssize_t n = fd >= 0 ? pread(fd, e->superblock, SUPERBLOCK_BYTES, 0) : -1;
    if (fd >= 0) close(fd);
    if (n > 0) fdr_file_open_memory(e->superblock, (size_t)n, &file, NULL, 0);
    return file;
}

static bool open_entry(struct entry *e, const char *directory, const char *name)
{
    if (!ends_in(name, ".fdr") || snprintf(e->path, sizeof e->path, "%s/%s", directory, name) >= (int)sizeof e->path)
        return false;
    if (lstat(e->path, &e->stat) != 0 || !S_ISREG(e->stat.st_mode)) return false;
    e->file = open_superblock(e);
    e->readable = e->file != NULL;
    e->live = e->readable && written_by(e->path, fdr_file_info(e->file)) != 0;
    return true;
}

static json_t *entry_json(const struct entry *e)
{
    const struct fdr_file_info *info = e->readable ? fdr_file_info(e->file) : NULL;
    json_t *o = json_object();
    json_object_set_new(o, "path", json_text(e->path));
    json_object_set_new(o, "name", json_text(strrchr(e->path, '/') + 1));
    json_object_set_new(o, "pid", info ? json_integer(info->pid) : json_null());
    json_object_set_new(o, "rank", info && info->rank >= 0 ? json_integer(info->rank) : json_null());
    json_object_set_new(o, "condition", json_text(file_status(e)));
    json_object_set_new(o, "live", json_boolean(e->live));
    json_object_set_new(o, "state", info ? json_text(info->state) : json_null());
    json_object_set_new(o, "reason", info && info->reason[0] ? json_text(info->reason) : json_null());
    json_object_set_new(o, "exe", info ? json_text(info->exe) : json_null());
    json_object_set_new(o, "bytes", json_u64((uint64_t)e->stat.st_size));
    json_object_set_new(o, "age_s", json_u64(age_of(e)));
    return o;
}

static void entry_line(const struct entry *e)
{
    char size[HUMAN_BYTES], age[HUMAN_BYTES], pid[16] = "-";
    const struct fdr_file_info *info = e->readable ? fdr_file_info(e->file) : NULL;
    if (info) snprintf(pid, sizeof pid, "%u", info->pid);
    printf("%-10s %8s %10s %12s  %-10s %s%s%s%s\n", file_status(e), pid, human_bytes(size, (uint64_t)e->stat.st_size),
           age_of(e) ? human_time(age, age_of(e) * 1000000000u) : "now", info ? info->state : "-", plain_name(e->path),
           info && info->reason[0] ? "  (" : "", info ? plain_name(info->reason) : "",
           info && info->reason[0] ? ")" : "");
}

/* Live recordings are listed by file name only. A live directory that does not exist is empty. */
static int list_directory(const char *directory, bool must_be, bool json, json_t *list, size_t *count)
{
    struct dirent **names;
    struct entry e;
    int n = scandir(directory, &names, NULL, alphasort);
    if (n < 0) {
        if (!must_be && errno == ENOENT) return DONE;
        if (errno == ENOTDIR) complain("%s: not a directory; fdr %s tells about a recording", directory, directory);
        else complain("%s: %s", directory, strerror(errno));
        return COULD_NOT;
    }
    for (int i = 0; i < n; i++) {
        char below[4096];
        struct stat st;
        if (strncmp(names[i]->d_name, "run-", 4) == 0 && /* made by `fdr run` */
            snprintf(below, sizeof below, "%s/%s", directory, names[i]->d_name) < (int)sizeof below &&
            lstat(below, &st) == 0 && S_ISDIR(st.st_mode))
            list_directory(below, false, json, list, count);
        if (open_entry(&e, directory, names[i]->d_name)) {
            if (json) json_array_append_new(list, entry_json(&e));
            else if ((*count)++ == 0)
                printf("%-10s %8s %10s %12s  %-10s %s\n", "CONDITION", "PID", "SIZE", "AGE", "STATE", "FILE");
            if (!json) entry_line(&e);
            if (e.file) fdr_file_close(e.file);
        }
        free(names[i]);
    }
    free(names);
    return DONE;
}

static bool same_directory(const char *a, const char *b)
{
    struct stat x, y;
    return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

int verb_list(int argc, char **argv)
{
    static const struct argp argp = {
        options,
        parse,
        "[DIRECTORY...]",
        "Recordings in the live directory (FDR_LIVE_DIR, else /dev/shm/fdr-<uid>) and in the working "
        "directory, or in the directories given. live: a process maps it; left: its process is gone; "
        "kept: a snapshot or bundle; over: its process no longer needs it and could not remove it.",
        NULL,
        NULL,
        NULL};
    struct arguments a = {0};
    size_t count = 0;
    int status = DONE;
    parse_arguments(&argp, argc, argv, &a);
    setenv("FDR_SYMBOLS", "0", 0); /* no function names are needed here */
    json_t *list = json_array();
    for (int i = 0; i < a.count; i++)
        status = worse(status, list_directory(a.directories[i], true, a.json, list, &count));
    if (a.count == 0) {
        status = list_directory(live_directory(), false, a.json, list, &count);
        if (!same_directory(live_directory(), "."))
            status = worse(status, list_directory(".", true, a.json, list, &count));
    }
    if (a.json) return worse(status, print_json(list));
    json_decref(list);
    if (count == 0 && status == DONE) printf("no recordings%s\n", a.count ? "" : " in the live directory or here");
    return worse(status, finish_output());
}
