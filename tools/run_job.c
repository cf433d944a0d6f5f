/* SPDX-License-Identifier: MIT */
/* The folder and the verdict of a job under `fdr run -- mpirun ...`. */
#define _GNU_SOURCE
#include "tools/run_job.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/common/found_recordings.h"
#include "tools/common/verbs.h"
#include "tools/crash.h"

bool is_job_launcher(const char *command)
{
    static const char *const names[] = {"mpirun", "mpiexec", "orterun", "prterun", "prun", "srun", "jsrun", "aprun"};
    const char *slash = strrchr(command, '/'), *name = slash ? slash + 1 : command;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        size_t n = strlen(names[i]); /* "mpirun.openmpi", "mpiexec.hydra" */
        if (strncmp(name, names[i], n) == 0 && (!name[n] || name[n] == '.' || name[n] == '-')) return true;
    }
    return false;
}

bool job_folder(const char *out, char *path, size_t bytes)
{
    char name[64];
    snprintf(name, sizeof name, "fdr-job.%d", (int)getpid());
    if (mkdir(out ? out : name, 0700) != 0 && (!out || errno != EEXIST)) return false;
    char *whole = realpath(out ? out : name, NULL); /* ranks may run in another directory */
    if (!whole) return false;
    bool fits = snprintf(path, bytes, "%s", whole) < (int)bytes;
    free(whole);
    if (!fits) errno = ENAMETOOLONG;
    return fits && setenv("FDR_DIR", path, 1) == 0;
}

/* Is it known which process died first, of a fault or unseen? */
enum known { NONE_DIED, NOT_KNOWN, KNOWN };
static enum known first_is_known(char **path, int count)
{
    struct file_list list = {.path = calloc((size_t)count + 1, sizeof *list.path), .count = (size_t)count};
    size_t opened = 0, perhaps = 0;
    int status = 0;
    for (int i = 0; list.path && i < count; i++) list.path[i] = path[i];
    struct death *d = list.path ? open_deaths(&list, &opened, &status) : NULL;
    const struct death *first = d ? first_of(d, opened) : NULL;
    bool died = first && first->kind != BY_REQUEST;
    for (size_t i = 0; died && first->kind == KILLED && i < opened; i++) perhaps += may_be_first(&d[i], first);
    for (size_t i = 0; i < opened; i++) fdr_file_close(d[i].file);
    free(d);
    return !died ? NONE_DIED : perhaps > 1 ? NOT_KNOWN : KNOWN;
}

/* Runs a verb with its output on standard error: standard output is the program's. */
static int say(int (*verb)(int, char **), char **words, int count)
{
    fflush(stdout);
    int own = dup(STDOUT_FILENO);
    if (own < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0) return COULD_NOT;
    optind = 0;
    int status = verb(count, words);
    fflush(stdout);
    dup2(own, STDOUT_FILENO);
    close(own);
    return status;
}

static void judge(const char *folder, char **words, int count)
{
    char crash[] = "crash";
    enum known first = first_is_known(words + 1, count - 1);
    complain("the files of %d process%s of the job are in %s", count - 1, count > 2 ? "es" : "", plain_name(folder));
    bool hangs = first != KNOWN && say(verb_hang, words, count) != 0;
    words[0] = crash;
    if (first != NONE_DIED && !hangs) say(verb_crash, words, count);
}

void job_verdict(const char *folder, bool is_new, long long began)
{
    struct found_list list = {.named = true};
    int count = 1;
    recordings_find(folder, RECORDINGS_ANY_OWNER, &list);
    char **words = calloc(list.count + 2, sizeof *words), verb[] = "hang";
    for (size_t i = 0; words && i < list.count; i++)
        if (list.entry[i]->readable && list.entry[i]->stat.st_mtime >= began) words[count++] = list.entry[i]->path;
    if (words) words[0] = verb;
    if (words && count > 1) judge(folder, words, count);
    free(words);
    recordings_free(&list);
    if (is_new) rmdir(folder); /* fails if there is a file in it */
}
