/* SPDX-License-Identifier: MIT */
/* The folder and the verdict of a job under `fdr run -- mpirun ...`. */
#define _GNU_SOURCE
#include "tools/run_job.h"

#include <errno.h>
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

/* It died of a fault, or by a bad exit. */
static bool died_by_itself(const char *path)
{
    struct fdr_file *file = NULL;
    fdr_file_open(path, &file, NULL, 0);
    if (!file) return false;
    const struct fdr_file_info *i = fdr_file_info(file);
    bool died = i->has_cause && !is_request_to_end(i->cause_signal) && strcmp(i->state, "crashed") == 0;
    fdr_file_close(file);
    return died;
}

/* Runs a verb with its output on standard error: standard output is the program's. */
static void say(int (*verb)(int, char **), char **words, int count)
{
    fflush(stdout);
    int own = dup(STDOUT_FILENO);
    if (own < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0) return;
    optind = 0;
    verb(count, words);
    fflush(stdout);
    dup2(own, STDOUT_FILENO);
    close(own);
}

static void judge(const char *folder, char **words, int count)
{
    char crash[] = "crash", hang[] = "hang";
    bool any = false;
    for (int i = 1; i < count && !any; i++) any = died_by_itself(words[i]);
    complain("the files of %d process%s of the job are in %s", count - 1, count > 2 ? "es" : "", plain_name(folder));
    words[0] = any ? crash : hang;
    say(any ? verb_crash : verb_hang, words, count);
}

void job_verdict(const char *folder, bool is_new, long long began)
{
    struct found_list list = {.named = true};
    int count = 1;
    recordings_find(folder, RECORDINGS_ANY_OWNER, &list);
    char **words = calloc(list.count + 2, sizeof *words);
    for (size_t i = 0; words && i < list.count; i++)
        if (list.entry[i]->readable && list.entry[i]->stat.st_mtime >= began) words[count++] = list.entry[i]->path;
    if (words && count > 1) judge(folder, words, count);
    free(words);
    recordings_free(&list);
    if (is_new) rmdir(folder); /* fails if there is a file in it */
}
