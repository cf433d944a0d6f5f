/* SPDX-License-Identifier: MIT */
/* Makes one file of several: a file without bytes, whose locations lie in others. */
#include "reader/job/job.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct fdri_job_part *fdri_job_part_of(const struct fdr_file *f, size_t index)
{
    if (!f->job) return NULL;
    size_t low = 0, high = f->job->count; /* the last part that begins at or before index */
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (f->job->part[middle].first <= index) low = middle;
        else high = middle;
    }
    return &f->job->part[low];
}

uint32_t fdri_job_location(const struct fdri_job_part *p, uint32_t id)
{
    const struct fdri_file_location *l = fdri_file_location(p->file, id);
    return l ? p->first + (uint32_t)(l - p->file->location) : UINT32_MAX;
}

/* ---- locations ---- */

static const char *name_of(struct fdr_file *f, const struct fdri_job_part *p, const struct fdr_location_info *l)
{
    size_t bytes = strlen(l->name) + 40;
    char *name = fdri_file_alloc(f, bytes);
    if (!name) return "";
    if (*l->name) snprintf(name, bytes, "%d:%s", p->rank, l->name);
    else snprintf(name, bytes, "%d:%u", p->rank, l->id);
    return name;
}

/* A shallow copy: its arrays stay those of the part. */
static void take_locations(struct fdr_file *f, const struct fdri_job_part *p)
{
    for (size_t i = 0; i < p->file->location_count; i++) {
        struct fdri_file_location *to = &f->location[f->location_count];
        *to = p->file->location[i];
        to->id = to->info.id = (uint32_t)f->location_count++;
        to->raw.parent = to->raw.parent == UINT32_MAX ? UINT32_MAX : fdri_job_location(p, to->raw.parent);
        to->info.parent = to->info.parent == UINT32_MAX ? UINT32_MAX : fdri_job_location(p, to->info.parent);
        to->info.name = name_of(f, p, &p->file->location[i].info);
        struct fdr_open_call *open = fdri_file_alloc(f, to->info.open_count * sizeof *open);
        if (!open) to->info.open_count = 0;
        for (size_t k = 0; k < to->info.open_count; k++) {
            open[k] = to->info.open[k];
            open[k].region = fdri_job_id(p, FDR_REGION_DEFINITION, open[k].region);
        }
        to->info.open = open;
    }
}

/* ---- figures of the whole ---- */

static void add_info(struct fdr_file_info *to, const struct fdr_file_info *from)
{
    if (from->last_ns && (!to->first_ns || from->first_ns < to->first_ns)) to->first_ns = from->first_ns;
    if (from->last_ns > to->last_ns) to->last_ns = from->last_ns;
    if (from->common_from_ns > to->common_from_ns) to->common_from_ns = from->common_from_ns;
    if (from->time_unit_ns > to->time_unit_ns) to->time_unit_ns = from->time_unit_ns;
    to->buffer_bytes += from->buffer_bytes;
    to->bins += from->bins;
    to->bins_free += from->bins_free;
    to->meta_bytes += from->meta_bytes;
    to->bytes_stored += from->bytes_stored;
    to->record_bytes += from->record_bytes;
    to->lost_locations += from->lost_locations;
    to->lost_unattached += from->lost_unattached;
    to->lost_definitions += from->lost_definitions;
    to->dropped_bins += from->dropped_bins;
    to->unlisted_bins += from->unlisted_bins;
    to->threads_gone += from->threads_gone;
    to->accounts_anew += from->accounts_anew;
}

/* A fact that is unknown of the whole, or differs from file to file, is the first file's or none. */
static void join_info(struct fdr_file *f)
{
    const struct fdr_file_info *first = &f->job->part[0].file->info;
    f->info = (struct fdr_file_info){.format = first->format,
                                     .state = first->state,
                                     .reason = "",
                                     .reason_kind = "",
                                     .trigger_name = "",
                                     .rank = -1,
                                     .host = first->host,
                                     .exe = first->exe,
                                     .build_id = "",
                                     .config = "",
                                     .strategy = first->strategy,
                                     .created_realtime_ns = first->created_realtime_ns,
                                     .realtime_offset_ns = first->realtime_offset_ns,
                                     .bin_bytes = first->bin_bytes};
    memcpy(f->info.band_edge_ns, first->band_edge_ns, sizeof first->band_edge_ns);
    for (size_t i = 0; i < f->job->count; i++) add_info(&f->info, &f->job->part[i].file->info);
}

static bool join(struct fdr_file *f, struct fdr_file *const *files, const int *ranks, size_t count)
{
    struct fdri_job *job = fdri_file_alloc(f, sizeof *job);
    size_t locations = 0;
    if (!job || !(job->part = fdri_file_alloc(f, count * sizeof *job->part))) return false;
    for (size_t i = 0; i < count; i++) {
        job->part[i] = (struct fdri_job_part){.file = files[i], .rank = ranks[i], .first = (uint32_t)locations};
        locations += files[i]->location_count;
    }
    job->count = count;
    f->job = job;
    f->location = fdri_file_calloc(locations + 1, sizeof *f->location);
    if (!f->location || !fdri_job_definitions(f, job)) return false;
    for (size_t i = 0; i < count; i++) take_locations(f, &job->part[i]);
    join_info(f);
    return !fdri_file_memory_short(f);
}

struct fdr_file *fdr_files_join(struct fdr_file *const *files, const int *ranks, size_t count)
{
    struct fdr_file *f = count ? fdri_file_calloc(1, sizeof *f) : NULL;
    if (!f) return NULL;
    f->sound = true;
    fdri_file_memory_begin(f);
    pthread_mutex_init(&f->lock, NULL);
    if (join(f, files, ranks, count)) return f;
    fdr_file_close(f);
    return NULL;
}

bool fdr_location_origin(const struct fdr_file *file, uint32_t location, struct fdr_origin *origin)
{
    const struct fdri_job_part *p = fdri_job_part_of(file, location);
    if (!p || location >= file->location_count) return false;
    *origin = (struct fdr_origin){
        .file = (size_t)(p - file->job->part), .rank = p->rank, .id = p->file->location[location - p->first].id};
    return true;
}
