/* SPDX-License-Identifier: MIT */
/* The activity of each process when its file ended: the call of MPI that its counters name, else its open regions. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/common/short_names.h"
#include "tools/deaths/deaths.h"
#include "tools/hang/load.h"
#include "tools/hang/verdict.h"

const char *regions_of(const struct death *d, const struct fdr_location_info *l, char *text, size_t bytes)
{
    enum { TOLD = 3 };
    size_t used = 0, end = l ? l->open_count : 0;
    *text = 0;
    for (size_t i = end > TOLD ? end - TOLD : 0; i < end && used < bytes; i++)
        used += (size_t)snprintf(text + used, bytes - used, "%s%s", used ? " > " : "",
                                 plain_shown(d->file, l->open[i].region));
    return text;
}

static void by_regions(const struct death *d, struct doing *doing)
{
    char regions[180];
    struct fdr_crash_cause_info c = main_cause(d->file);
    const struct fdr_location_info *l = location_of_thread(d->file, c.tid);
    uint64_t newest = newest_event(d->file);
    if (!l) l = last_location(d->file);
    doing->moved_ns = newest ? real_of(fdr_file_info(d->file), newest) : 0;
    regions_of(d, l, regions, sizeof regions);
    snprintf(doing->text, sizeof doing->text, *regions ? "in %s" : "in no region%s", regions);
}

/* Of messages the call alone: peers and tags differ between ranks. */
static void by_counters(const struct job *job, const struct job_rank *r, struct doing *doing)
{
    const struct job_wait *w = &r->wait;
    char call[160];
    bool collective = w->kind == FDR_MPI_WAIT_COLLECTIVE || w->operation > 1;
    if (!w->in_call || w->kind == FDR_MPI_WAIT_NOTHING) return;
    if (collective) hang_call_text(job, w, call, sizeof call);
    else snprintf(call, sizeof call, "%s", w->call[0] ? w->call : "MPI");
    if (!strcmp(call, "MPI_Abort")) snprintf(doing->text, sizeof doing->text, "in MPI_Abort, which ends the job");
    else snprintf(doing->text, sizeof doing->text, "waiting in %s", call);
}

static bool any_has_mpi(const struct deaths *d)
{
    for (size_t i = 0; i < d->count; i++)
        if (has_mpi_state(d->death[i].file)) return true;
    return false;
}

/* Replaces what the regions say by what the counters of a job say. */
static bool add_counters(struct deaths *d)
{
    struct process *process = calloc(d->count + 1, sizeof *process);
    struct fdr_file **earlier = calloc(d->count + 1, sizeof *earlier);
    struct job job = {0};
    for (size_t i = 0; process && i < d->count; i++) process[i] = process_of(d->death[i].file, d->death[i].path);
    bool good = process && earlier && job_load(&job, process, earlier, d->count);
    for (size_t i = 0; good && i < job.ranks; i++) {
        const struct process *p = job.rank[i].process;
        by_counters(&job, &job.rank[i], &d->doing[p - process]);
    }
    job_free(&job);
    free(process), free(earlier);
    return good;
}

bool find_doings(struct deaths *d)
{
    d->doing = calloc(d->count + 1, sizeof *d->doing);
    if (!d->doing) return false;
    for (size_t i = 0; i < d->count; i++) by_regions(&d->death[i], &d->doing[i]);
    return d->count < 2 || !any_has_mpi(d) || add_counters(d);
}
