/* SPDX-License-Identifier: MIT */
/* The verdict on recordings that are open already: one look, and nothing is asked of the kernel. */
#include "tools/hang/job_view.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

#include "tools/hang/load.h"
#include "tools/hang/print.h"
#include "tools/hang/verdict.h"

static void mark(const struct job *job, const struct process *process, size_t index, struct job_view_file *file,
                 bool behind)
{
    if (index >= job->ranks) return;
    struct job_view_file *of = &file[(const struct process *)job->rank[index].process - process];
    if (behind) of->behind = true;
    else of->first_of_kind = true;
}

static void mark_all(const struct job *job, const struct verdict *v, const struct process *process,
                     struct job_view_file *file)
{
    size_t kinds = 0;
    struct alike *a = find_alike(job, v, &kinds);
    for (size_t i = 0; i < kinds; i++) mark(job, process, a[i].one, file, false);
    free_alike(a, kinds);
    for (size_t i = 0; i < v->findings; i++)
        for (size_t k = 0; v->finding[i].judgement != NOTHING && k < v->finding[i].behinds; k++)
            mark(job, process, job_find(job, v->finding[i].behind[k]), file, true);
}

static bool judge(struct job *job, const struct process *process, struct job_view_file *file, char *text, size_t bytes)
{
    struct verdict v = {0};
    bool good = hang_judge(job, &v);
    if (good) mark_all(job, &v, process, file);
    if (good && v.judgement != NOTHING)
        snprintf(text, bytes, "%c%s. As judged, %s: %s.", toupper(v.sentence[0]), v.sentence + 1,
                 judgement_name[v.judgement], v.why);
    hang_verdict_free(&v);
    return good;
}

bool view_job(struct job_view_file *file, size_t count, char *text, size_t bytes)
{
    struct process *process = calloc(count + 1, sizeof *process);
    struct fdr_file **earlier = calloc(count + 1, sizeof *earlier);
    struct job job = {0};
    size_t ranks = 0;
    *text = 0;
    for (size_t i = 0; process && i < count; i++) {
        process[i] = process_of(file[i].file, file[i].path);
        ranks += has_mpi_state(file[i].file);
    }
    bool good = process && earlier && ranks && job_load(&job, process, earlier, count) && !job.doubled &&
                judge(&job, process, file, text, bytes);
    job_free(&job);
    free(earlier);
    free(process);
    return good;
}
