/* SPDX-License-Identifier: MIT */
/* The accounts of a job: the rows of its files, one file after another, under the ids of the job. */
#include "reader/account/account.h"
#include "reader/job/job.h"

/* The next row at the end of an array of the file; NULL: no memory. */
#define NEXT_ROW(f, rows)                                                                                              \
    (fdri_file_grow(&(f)->rows, (f)->rows##_count, &(f)->rows##_room, sizeof *(f)->rows)                               \
         ? &(f)->rows[(f)->rows##_count++]                                                                             \
         : NULL)

static void totals_of(struct fdr_file *f, const struct fdri_job_part *p)
{
    const struct fdr_total *from;
    for (size_t i = 0, n = fdr_totals(p->file, &from); i < n; i++) {
        struct fdr_total *to = NEXT_ROW(f, total);
        if (!to) return;
        *to = from[i];
        to->location = fdri_job_location(p, from[i].location);
        to->id = fdri_job_id_of_class(p, from[i].class_, from[i].id);
    }
    const struct fdr_traffic_total *traffic;
    for (size_t i = 0, n = fdr_traffic(p->file, &traffic); i < n; i++) {
        struct fdr_traffic_total *to = NEXT_ROW(f, traffic);
        if (!to) return;
        *to = traffic[i];
        to->location = fdri_job_location(p, traffic[i].location);
        if (traffic[i].region != UINT32_MAX) to->region = fdri_job_id(p, FDR_REGION_DEFINITION, traffic[i].region);
    }
    for (size_t i = 0; i < p->file->location_count; i++)
        f->location[p->first + i].info.totals_lost = p->file->location[i].info.totals_lost;
    f->info.totals_lost += p->file->info.totals_lost;
    f->info.histograms_left_out += p->file->info.histograms_left_out;
}

static void ledger_of(struct fdr_file *f, const struct fdri_job_part *p)
{
    const struct fdr_ledger_row *from;
    for (size_t i = 0, n = fdr_ledger(p->file, &from); i < n; i++) {
        struct fdr_ledger_row *to = NEXT_ROW(f, ledger);
        if (!to) return;
        *to = from[i];
        to->location = fdri_job_location(p, from[i].location);
    }
}

static void reductions_of(struct fdr_file *f, const struct fdri_job_part *p)
{
    const struct fdr_reduction_info *from;
    for (size_t i = 0, n = fdr_reductions(p->file, &from); i < n; i++) {
        struct fdr_reduction_info *to = NEXT_ROW(f, reduction);
        if (!to) return;
        *to = from[i];
        to->location = fdri_job_location(p, from[i].location);
    }
}

static void epochs_of(struct fdr_file *f, const struct fdri_job_part *p)
{
    const struct fdr_epoch_info *epoch;
    const struct fdr_epoch_total *total;
    for (size_t i = 0, n = fdr_epochs(p->file, &epoch); i < n; i++) {
        struct fdr_epoch_info *to = NEXT_ROW(f, epoch);
        if (!to) return;
        *to = epoch[i];
        to->location = fdri_job_location(p, epoch[i].location);
    }
    for (size_t i = 0, n = fdr_epoch_totals(p->file, &total); i < n; i++) {
        struct fdr_epoch_total *to = NEXT_ROW(f, epoch_total);
        if (!to) return;
        *to = total[i];
        to->location = fdri_job_location(p, total[i].location);
        to->region = fdri_job_id(p, FDR_REGION_DEFINITION, total[i].region);
    }
}

static bool joined(struct fdr_file *f, void (*rows_of)(struct fdr_file *, const struct fdri_job_part *))
{
    for (size_t i = 0; f->job && i < f->job->count; i++) rows_of(f, &f->job->part[i]);
    return f->job != NULL;
}

bool fdri_account_job_totals(struct fdr_file *f) { return joined(f, totals_of); }
bool fdri_account_job_ledger(struct fdr_file *f) { return joined(f, ledger_of); }
bool fdri_account_job_reductions(struct fdr_file *f) { return joined(f, reductions_of); }
bool fdri_account_job_epochs(struct fdr_file *f) { return joined(f, epochs_of); }

bool fdri_account_job_muted(const struct fdr_file *f, uint32_t region)
{
    for (size_t i = 0; i < f->job->count; i++) {
        const struct fdr_governor *g = fdr_governor(f->job->part[i].file);
        for (size_t k = 0; g && k < g->regions; k++)
            if (fdri_job_id(&f->job->part[i], FDR_REGION_DEFINITION, g->region[k].region) == region) return true;
    }
    return false;
}

enum fdr_verdict fdri_account_job_verdict(struct fdr_file *f, enum fdr_verdict (*verdict_of)(struct fdr_file *))
{
    enum fdr_verdict worst = fdri_file_memory_short(f) ? FDR_UNREADABLE : FDR_WHOLE;
    for (size_t i = 0; i < f->job->count; i++) {
        enum fdr_verdict v = verdict_of(f->job->part[i].file);
        if (v > worst) worst = v;
    }
    return worst;
}
