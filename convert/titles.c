/* SPDX-License-Identifier: MIT */
/* Names of calls, threads and processes, as all formats show them. */
#include "convert/titles.h"

#include <stdio.h>
#include <string.h>

const char *fdri_convert_call(const struct fdr_file *file, const struct fdr_read_event *e)
{
    return e->filtered   ? "[filtered]"
           : e->not_over ? "[open]"
           : e->reduced  ? "[reduced]"
                         : fdr_definition(file, FDR_REGION_DEFINITION, e->id)->name;
}

void fdri_convert_process(const struct fdr_file *file, char *text, size_t bytes)
{
    const struct fdr_file_info *info = fdr_file_info(file);
    const char *exe = strrchr(info->exe, '/');
    exe = exe ? exe + 1 : info->exe;
    if (info->rank >= 0) snprintf(text, bytes, "rank %d: %s (pid %u)", info->rank, exe, info->pid);
    else snprintf(text, bytes, "%s (pid %u)", exe, info->pid);
}

void fdri_convert_thread(const struct fdr_location_info *l, char *text, size_t bytes)
{
    snprintf(text, bytes, "%s (tid %u)", l->name[0] ? l->name : "thread", l->tid);
}

const struct fdr_sample_stream *fdri_convert_stream(struct fdr_file *file, uint32_t location)
{
    static const struct fdr_sample_stream none = {.name = "", .period = 1};
    const struct fdr_sample_stream *s;
    size_t n = fdr_sample_streams(file, &s);
    for (size_t i = 0; i < n; i++)
        if (s[i].location == location) return &s[i];
    return &none;
}

const char *fdri_convert_sampled(const struct fdr_file *file, const struct fdr_sample_stream *s)
{
    for (size_t i = 0; i < fdr_location_count(file); i++) {
        const struct fdr_location_info *l = fdr_location_info(file, i);
        if (l->id == s->parent && l->name[0]) return l->name;
    }
    return s->name[0] ? s->name : "thread";
}

bool fdri_convert_pids_collide(struct fdr_file *const *files, size_t count)
{
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < i; j++)
            if (fdr_file_info(files[i])->pid == fdr_file_info(files[j])->pid) return true;
    return false;
}
