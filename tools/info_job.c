/* SPDX-License-Identifier: MIT */
/* fdr info of several files: the ranks of a job, a line each, and what they lost together. */
#include <stdio.h>
#include <string.h>

#include "tools/common/live_files.h"
#include "tools/info.h"
#include "tools/unseen_end.h"

static const char *why(const struct fdr_file *file, const char *path, char *text, size_t bytes)
{
    const struct fdr_file_info *info = fdr_file_info(file);
    char name[HUMAN_BYTES], end[256];
    if (info->has_cause && info->cause_signal)
        snprintf(text, bytes, "died of %s", signal_name(info->cause_signal, name));
    else if (info->has_cause) snprintf(text, bytes, "ended by %s, status %d", ended_by(file), info->cause_code);
    else if (info->reason[0]) snprintf(text, bytes, "%s", info->reason);
    else if (strcmp(info->state, "recording") != 0) snprintf(text, bytes, "no reason is stored");
    else if (written_by(path, info)) snprintf(text, bytes, "runs, written right now");
    else snprintf(text, bytes, "ended by %s", unseen_end(info, end, sizeof end));
    return text;
}

struct sums {
    uint64_t presented, kept, reduced, lost;
};

static struct sums sums_of(struct fdr_file *file)
{
    const struct fdr_ledger_row *row;
    struct sums s = {0};
    for (size_t i = 0, n = fdr_ledger(file, &row); i < n; i++) {
        s.presented += row[i].presented;
        s.kept += row[i].kept;
        s.reduced += row[i].reduced;
        s.lost += row[i].lost;
    }
    return s;
}

static void print_sums(const struct sums *s)
{
    char a[HUMAN_BYTES], b[HUMAN_BYTES], c[HUMAN_BYTES], d[HUMAN_BYTES];
    printf("%15s %15s %15s %12s", human_count(a, s->presented), human_count(b, s->kept), human_count(c, s->reduced),
           human_count(d, s->lost));
}

static void print_rank(const struct job_files *job, size_t i)
{
    char text[512], reach[HUMAN_BYTES];
    struct fdr_file *file = job->part[i];
    const struct fdr_file_info *info = fdr_file_info(file);
    int rank = rank_of_file(file, job->path[i]);
    struct sums s = sums_of(file);
    if (rank < 0) snprintf(text, sizeof text, "-");
    else snprintf(text, sizeof text, "%d", rank);
    printf("%6s %8u ", text, info->pid);
    printf("%12s ", human_time(reach, info->last_ns > info->first_ns ? info->last_ns - info->first_ns : 0));
    print_sums(&s);
    printf("  %s: %s\n", plain_name(info->host), plain_name(why(file, job->path[i], text, sizeof text)));
}

/* The stretch of time of which every file has something. */
static uint64_t common_ns(const struct job_files *job)
{
    uint64_t from = 0, to = UINT64_MAX;
    for (size_t i = 0; i < job->count; i++) {
        const struct fdr_file_info *info = fdr_file_info(job->part[i]);
        if (info->common_from_ns > from) from = info->common_from_ns;
        if (info->last_ns < to) to = info->last_ns;
    }
    return to > from ? to - from : 0;
}

int print_info_ranks(const struct job_files *job, bool full)
{
    char text[HUMAN_BYTES];
    const struct fdr_file_info *info = fdr_file_info(job->file);
    struct sums s = sums_of(job->file);
    printf("%zu files; fdr info FILE shows one of them\n\n", job->count);
    printf("%6s %8s %12s %15s %15s %15s %12s  host: why\n", "rank", "pid", "reach", "presented", "kept", "reduced",
           "lost");
    for (size_t i = 0; i < job->count; i++) print_rank(job, i);
    printf("%6s %8s %12s ", "all", "", human_time(text, common_ns(job)));
    print_sums(&s);
    printf("  (reach: the window common to all)\n");
    print_losses(info);
    print_ledger(job->file, full, false);
    return finish_output();
}

int print_info_array(const struct job_files *job)
{
    json_t *all = json_array();
    for (size_t i = 0; i < job->count; i++) {
        json_t *one = info_json(job->part[i]);
        json_object_set_new(one, "file", json_text(job->path[i]));
        json_array_append_new(all, one);
    }
    return print_json(all);
}
