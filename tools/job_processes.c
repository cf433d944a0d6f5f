/* SPDX-License-Identifier: MIT */
/* Finds the running ranks of a job on this machine, by their live recordings. */
#include "tools/job_processes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/common/found_recordings.h"
#include "tools/common/live_files.h"
#include "tools/common/verbs.h"

/* 0: there is none, or the process is gone. */
static uint32_t parent_of(uint32_t pid)
{
    char path[40], text[1024];
    unsigned parent = 0;
    snprintf(path, sizeof path, "/proc/%u/stat", pid);
    FILE *f = fopen(path, "re");
    size_t n = f ? fread(text, 1, sizeof text - 1, f) : 0;
    if (f) fclose(f);
    text[n] = 0;
    const char *behind_name = strrchr(text, ')');
    if (!behind_name || sscanf(behind_name + 1, " %*c %u", &parent) != 1) return 0;
    return parent;
}

static bool descends_from(uint32_t pid, uint32_t ancestor)
{
    for (int i = 0; i < 64 && pid > 1; i++, pid = parent_of(pid))
        if (pid == ancestor) return true;
    return false;
}

static bool has_job(const char *path, const char *job)
{
    const struct fdr_note_info *note;
    struct fdr_file *file = NULL;
    bool found = false;
    fdr_file_open(path, &file, NULL, 0);
    for (size_t i = 0, n = file ? fdr_notes(file, &note) : 0; i < n && !found; i++)
        found = strcmp(note[i].key, "mpi.job") == 0 && strcmp(note[i].value, job) == 0;
    if (file) fdr_file_close(file);
    return found;
}

int processes_of_job(const char *job, uint32_t **pid, size_t *count)
{
    struct found_list list = {0};
    uint64_t launcher = 0;
    bool number = parse_count(job, &launcher) && launcher > 1 && launcher <= INT32_MAX;
    int status = recordings_find(live_directory(), RECORDINGS_ANY_OWNER, &list);
    *count = 0;
    *pid = malloc((list.count + 1) * sizeof **pid);
    for (size_t i = 0; *pid && i < list.count; i++) {
        const struct found_recording *l = list.entry[i];
        if (!l->live || !l->readable || !ends_in(recording_name(l), ".live.fdr")) continue;
        if ((number && descends_from(l->writer, (uint32_t)launcher)) || has_job(l->path, job))
            (*pid)[(*count)++] = l->writer;
    }
    recordings_free(&list);
    return status;
}
