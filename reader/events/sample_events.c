/* SPDX-License-Identifier: MIT */
/* Streams of samples. The levels from k on hold one sample for each 2^k periods; the stored part of a level is its
 * newest part. A sample counts as kept if all sparser levels reach back to it. So the shown samples thin with age in
 * steps of two, without holes. A kept sample stands for the distance of its number to the kept one before. */
#include "format/arena/arena.h"
#include "format/codec/decode.h"
#include "format/codec/sample_codec.h"
#include "reader/account/account.h"
#include "reader/events/point_merge.h"
#include "reader/events/sample_events.h"
#include "reader/file/file.h"
#include "reader/job/job.h"

#include <fdr/reader.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

void fdri_events_keep_samples(struct fdri_file_location *l)
{
    uint64_t floor = fdri_account_floor(l);
    for (size_t i = l->part_count; i-- > 0;) { /* sorted by class, then depth; the depth of a sample is its level */
        struct fdri_file_part *p = &l->part[i];
        if (p->class_ != FDRI_ARENA_CLASS_SAMPLE) continue;
        p->min_leave = floor ? floor + 1 : 0;
        if (p->floor > floor && p->bin_count) floor = p->floor;
    }
}

const struct fdri_arena_samples *fdri_events_samples(const struct fdr_file *f, const struct fdri_file_location *l)
{
    if (!(l->raw.flags & FDRI_ARENA_LOCATION_SAMPLES) || !l->raw.samples_off) return NULL;
    return (const void *)fdri_file_meta_at(f, l->raw.samples_off, FDRI_ARENA_META_SAMPLES, l->id,
                                           sizeof(struct fdri_arena_samples));
}

/* The number of the sample before the partition's oldest readable bin. */
static uint64_t before_first(struct fdr_file *f, const struct fdri_file_location *l, struct fdri_file_part *p)
{
    struct fdri_codec_sample_decoder sample;
    struct fdri_codec_decoder d = {.sample = &sample};
    struct fdri_codec_record r;
    for (uint32_t i = 0; i < p->bin_count; i++)
        if (fdri_file_bin_good(f, l, &p->bin[i]) && fdri_file_bin_begin(f, &p->bin[i], &d) &&
            fdri_codec_decode_next(&d, &r) > 0)
            return sample.before;
    return 0;
}

uint64_t fdri_events_samples_from(struct fdr_file *f, struct fdri_file_location *l)
{
    uint64_t from = UINT64_MAX;
    for (size_t i = 0; i < l->part_count; i++) {
        struct fdri_file_part *p = &l->part[i];
        if (p->class_ != FDRI_ARENA_CLASS_SAMPLE || !p->any) continue;
        uint64_t before = p->given_back ? before_first(f, l, p) : 0;
        if (before < from) from = before;
    }
    return from == UINT64_MAX ? 0 : from;
}

const struct fdr_sample_path *fdri_events_path(struct fdri_events_paths *p, const struct fdri_codec_sample_decoder *d)
{
    uint32_t i = p->next, regions = 0;
    struct fdr_sample_path *out = &p->path[i];
    p->next = (i + 1) % 3;
    while (regions < d->steps && d->step[regions] & FDRI_CODEC_SAMPLE_REGION) {
        p->region[i][regions] = (uint32_t)(d->step[regions] & FDRI_CODEC_SAMPLE_ADDRESS);
        regions++;
    }
    for (uint32_t k = regions; k < d->steps; k++) p->frame[i][k - regions] = d->step[k] & FDRI_CODEC_SAMPLE_ADDRESS;
    bool has_state = d->flags & FDRI_CODEC_SAMPLE_OUTSIDE && regions;
    *out = (struct fdr_sample_path){.pc = d->pc,
                                    .number = d->s.number,
                                    .flags = d->flags & ~(uint32_t)FDRI_CODEC_SAMPLE_OUTSIDE,
                                    .region_count = regions - has_state,
                                    .frame_count = d->steps - regions,
                                    .state = has_state ? p->region[i][regions - 1] : UINT32_MAX,
                                    .region = p->region[i],
                                    .frame = p->frame[i]};
    out->weight = d->s.number > p->number ? d->s.number - p->number : 0;
    if (d->s.number > p->number) p->number = d->s.number;
    return out;
}

void fdri_events_show_sample(struct fdr_read_event *e, const struct fdr_sample_path *path)
{
    e->depth = path->region_count;
    e->sample = path;
}

bool fdri_events_sample_wanted(const struct fdr_select *w, const struct fdr_sample_path *path)
{
    if (path->region_count < w->depth_min || (w->depth_max && path->region_count > w->depth_max)) return false;
    if (!w->regions) return true;
    for (uint32_t i = 0; i < path->region_count; i++)
        if (path->region[i] < w->region_count && w->regions[path->region[i]]) return true;
    return false;
}

/* ---- the streams of a file ---- */

static void sum_up(struct fdr_file *f, struct fdri_file_location *l, struct fdr_sample_stream *out)
{
    struct fdr_select all = {.classes = 1u << FDRI_ARENA_CLASS_SAMPLE};
    struct fdri_events_points q;
    out->from = out->to = fdri_events_samples_from(f, l);
    if (fdri_events_points_open(&q, f, l, &all, 0) && q.paths) {
        for (; q.count; fdri_events_points_next(&q)) {
            out->kept++;
            out->to = q.pending[q.first].path->number;
        }
    }
    fdri_events_points_close(&q);
}

/* The thread's name: the location's name without the suffix for samples. */
static const char *plain_name(struct fdr_file *f, const struct fdri_file_location *l)
{
    static const char suffix[] = " (samples)";
    size_t bytes = strlen(l->raw.name), ends = sizeof suffix - 1;
    char *name = fdri_file_alloc(f, bytes + 1);
    if (!name) return "";
    memcpy(name, l->raw.name, bytes);
    if (bytes >= ends && !strcmp(name + bytes - ends, suffix)) name[bytes - ends] = 0;
    return name;
}

static void add_stream(struct fdr_file *f, struct fdri_file_location *l)
{
    const struct fdri_arena_samples *s = fdri_events_samples(f, l);
    bool any = s || l->raw.flags & FDRI_ARENA_LOCATION_SAMPLES;
    for (size_t i = 0; i < l->part_count; i++) any |= l->part[i].class_ == FDRI_ARENA_CLASS_SAMPLE;
    if (!any || !fdri_file_grow(&f->stream, f->stream_count, &f->stream_room, sizeof *f->stream)) return;
    struct fdr_sample_stream *out = &f->stream[f->stream_count++];
    *out = (struct fdr_sample_stream){
        .location = l->id, .parent = l->raw.parent, .tid = l->raw.tid, .name = plain_name(f, l)};
    for (size_t i = 0; i < l->part_count; i++)
        for (uint32_t b = 0; l->part[i].class_ == FDRI_ARENA_CLASS_SAMPLE && b < l->part[i].bin_count; b++)
            out->bytes += 1ull << l->part[i].bin[b].size_log2;
    sum_up(f, l, out);
    out->periods = out->to;
    if (!s) return;
    out->by = s->clock <= FDRI_ARENA_SAMPLE_EVENTS ? s->clock : FDRI_ARENA_SAMPLE_EVENTS;
    out->period = s->period;
    out->periods = s->number > out->to ? s->number : out->to;
    out->low = s->lowest_level;
    out->unpathed = s->without_path;
    out->left_out = s->left_out;
    for (uint32_t i = 0; i < FDRI_ARENA_SAMPLE_LEVELS; i++) out->presented += s->level[i].presented;
    if (out->presented < out->kept) { /* the accounts were copied before the bins */
        uint64_t looks = out->kept - out->presented, periods = out->periods - s->number;
        uint64_t due = out->low < FDRI_ARENA_SAMPLE_LEVELS ? periods >> out->low : 0;
        if (s->left_out && due > looks) out->left_out += due - looks;
        out->presented = out->kept;
    }
}

static void join_streams(struct fdr_file *f)
{
    for (size_t i = 0; i < f->job->count; i++) {
        const struct fdri_job_part *p = &f->job->part[i];
        const struct fdr_sample_stream *from;
        for (size_t k = 0, n = fdr_sample_streams(p->file, &from); k < n; k++) {
            if (!fdri_file_grow(&f->stream, f->stream_count, &f->stream_room, sizeof *f->stream)) return;
            struct fdr_sample_stream *to = &f->stream[f->stream_count++];
            *to = from[k];
            to->location = fdri_job_location(p, from[k].location);
            to->parent = from[k].parent == UINT32_MAX ? UINT32_MAX : fdri_job_location(p, from[k].parent);
            if (to->parent < f->location_count) to->name = f->location[to->parent].info.name;
        }
    }
}

size_t fdr_sample_streams(struct fdr_file *f, const struct fdr_sample_stream **streams)
{
    pthread_mutex_lock(&f->lock);
    if (!f->has_streams && f->job) join_streams(f);
    else if (!f->has_streams)
        for (size_t i = 0; i < f->location_count; i++) add_stream(f, &f->location[i]);
    f->has_streams = true;
    pthread_mutex_unlock(&f->lock);
    if (streams) *streams = f->stream;
    return f->stream_count;
}
