/* SPDX-License-Identifier: MIT */
/* Events of one file of a job, in the ids of the job. */
#include "format/classes/class_table.h"
#include "reader/job/job.h"

#include <string.h>

uint32_t fdri_job_id(const struct fdri_job_part *p, uint32_t kind, uint32_t id)
{
    return kind < FDRI_FILE_KINDS && id < p->ids[kind] ? p->id[kind][id] : 0;
}

uint32_t fdri_job_id_of_class(const struct fdri_job_part *p, uint32_t class_, uint32_t id)
{
    uint32_t kind = class_ < FDRI_ARENA_CLASS_COUNT ? fdri_classes[class_].named_by : 0;
    return kind ? fdri_job_id(p, kind, id) : id;
}

/* ---- events ---- */

/* The path lies in memory of the stream that made it, which never reads it again. */
static void sample_path(const struct fdr_file *f, const struct fdri_job_part *p, const struct fdr_sample_path *path)
{
    struct fdr_sample_path *to = (struct fdr_sample_path *)(uintptr_t)path;
    uint32_t *region = (uint32_t *)(uintptr_t)path->region;
    uint64_t *frame = (uint64_t *)(uintptr_t)path->frame;
    uint64_t part = (uint64_t)(p - f->job->part + 1) << FDRI_JOB_ADDRESS_BITS;
    for (uint32_t i = 0; i < path->region_count; i++) region[i] = fdri_job_id(p, FDR_REGION_DEFINITION, region[i]);
    for (uint32_t i = 0; i < path->frame_count; i++) frame[i] |= part;
    if (path->pc) to->pc |= part;
    if (path->state != UINT32_MAX) to->state = fdri_job_id(p, FDR_REGION_DEFINITION, path->state);
}

void fdri_job_event(const struct fdr_file *f, const struct fdri_job_part *p, struct fdr_read_event *e)
{
    e->location = fdri_job_location(p, e->location);
    e->id = fdri_job_id_of_class(p, e->class_, e->id);
    if (e->sample) sample_path(f, p, e->sample);
    uint32_t comm = e->class_ == FDR_IN_MESSAGE ? 2 : 0;
    bool has_comm = (e->kind == FDR_SEND || e->kind == FDR_RECV || e->class_ == FDR_IN_COLLECTIVE) &&
                    comm < e->field_count;
    if (has_comm) e->field[comm] = fdri_job_id(p, FDR_COMM_DEFINITION, (uint32_t)e->field[comm]);
}

const struct fdri_job_part *fdri_job_address(const struct fdr_file *f, uint64_t *address)
{
    uint64_t part = *address >> FDRI_JOB_ADDRESS_BITS;
    *address &= ((uint64_t)1 << FDRI_JOB_ADDRESS_BITS) - 1;
    return part && part <= f->job->count ? &f->job->part[part - 1] : &f->job->part[0];
}

/* ---- selections ---- */

struct fdr_select *fdri_job_selects(const struct fdr_file *f, const struct fdr_select *select)
{
    const struct fdri_job *job = f->job;
    size_t bytes = job->count * sizeof(struct fdr_select);
    for (size_t i = 0; select->regions && i < job->count; i++) bytes += job->part[i].ids[FDR_REGION_DEFINITION];
    struct fdr_select *all = fdri_file_calloc(1, bytes);
    uint8_t *regions = all ? (uint8_t *)(all + job->count) : NULL;
    for (size_t i = 0; all && i < job->count; i++) {
        const struct fdri_job_part *p = &job->part[i];
        all[i] = *select;
        all[i].locations = NULL; /* they are chosen among those of the job */
        if (!select->regions) continue;
        all[i].regions = regions;
        all[i].region_count = p->ids[FDR_REGION_DEFINITION];
        for (size_t id = 0; id < all[i].region_count; id++) {
            uint32_t ours = p->id[FDR_REGION_DEFINITION][id];
            regions[id] = ours < select->region_count && select->regions[ours];
        }
        regions += all[i].region_count;
    }
    return all;
}
