/* SPDX-License-Identifier: MIT */
/* Calls and samples, summed up by call path. A path is its parent and a frame; a frame is a name and a place. */
#include "convert/paths.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "convert/titles.h"

#define NONE UINT32_MAX

/* ---- two hash tables, at most half full ---- */

static bool more_slots(uint32_t **slot, size_t *slots, size_t *room, void *array, size_t bytes)
{
    size_t more = *slots ? *slots * 2 : 1024;
    void *bigger = realloc(*(void **)array, more / 2 * bytes);
    if (bigger) *(void **)array = bigger;
    uint32_t *table = bigger ? calloc(more, sizeof *table) : NULL;
    if (!table) return false;
    free(*slot);
    *slot = table;
    *slots = more;
    *room = more / 2;
    return true;
}

static size_t mixed(uint64_t h) { return (size_t)(h ^ h >> 29); }

static size_t slot_of_frame(const struct fdri_convert_paths *p, const struct fdri_convert_frame *one)
{
    uint64_t h = 0xCBF29CE484222325u ^ one->line;
    for (const char *c = one->name; *c; c++) h = (h ^ (uint8_t)*c) * 0x100000001B3u;
    size_t i = mixed(h) & (p->frame_slots - 1);
    for (; p->frame_slot[i]; i = (i + 1) & (p->frame_slots - 1)) {
        const struct fdri_convert_frame *f = &p->frame[p->frame_slot[i] - 1];
        bool same_name = f->name == one->name || strcmp(f->name, one->name) == 0;
        if (same_name && f->line == one->line && strcmp(f->file, one->file) == 0) break;
    }
    return i;
}

static uint32_t frame_of(struct fdri_convert_paths *p, const char *name, const char *file, uint32_t line)
{
    const struct fdri_convert_frame one = {name, file ? file : "", line};
    if (p->frames == p->frame_room) {
        if (!more_slots(&p->frame_slot, &p->frame_slots, &p->frame_room, &p->frame, sizeof *p->frame)) return NONE;
        for (uint32_t i = 0; i < p->frames; i++) p->frame_slot[slot_of_frame(p, &p->frame[i])] = i + 1;
    }
    size_t i = slot_of_frame(p, &one);
    if (!p->frame_slot[i]) {
        p->frame[p->frames] = one;
        p->frame_slot[i] = ++p->frames;
    }
    return p->frame_slot[i] - 1;
}

static size_t slot_of_path(const struct fdri_convert_paths *p, uint32_t parent, uint32_t frame)
{
    size_t i = mixed(((uint64_t)parent << 32 | frame) * 0x9E3779B97F4A7C15u) & (p->path_slots - 1);
    for (; p->path_slot[i]; i = (i + 1) & (p->path_slots - 1)) {
        const struct fdri_convert_path *one = &p->path[p->path_slot[i] - 1];
        if (one->parent == parent && one->frame == frame) break;
    }
    return i;
}

/* The path below `parent`; NONE: no memory. */
static uint32_t below(struct fdri_convert_paths *p, uint32_t parent, uint32_t frame)
{
    if (parent == NONE && p->paths) return NONE;
    if (frame == NONE && p->paths) return NONE;
    if (p->paths == p->path_room) {
        if (!more_slots(&p->path_slot, &p->path_slots, &p->path_room, &p->path, sizeof *p->path)) return NONE;
        for (uint32_t i = 0; i < p->paths; i++)
            p->path_slot[slot_of_path(p, p->path[i].parent, p->path[i].frame)] = i + 1;
    }
    size_t i = slot_of_path(p, parent, frame);
    if (!p->path_slot[i]) {
        p->path[p->paths] = (struct fdri_convert_path){.parent = parent, .frame = frame};
        p->path_slot[i] = ++p->paths;
    }
    return p->path_slot[i] - 1;
}

static bool has_root(struct fdri_convert_paths *p) { return p->paths || below(p, NONE, NONE) == 0; }

/* ---- calls ---- */

static bool enter(void *context, const struct fdr_read_event *e)
{
    struct fdri_convert_paths *p = context;
    const struct fdr_definition *d = fdr_definition(p->file, FDR_REGION_DEFINITION, e->id);
    bool known = !e->reduced;
    uint32_t frame = frame_of(p, fdri_convert_call(p->file, e), known ? d->file : "", known ? d->line : 0);
    p->at = below(p, p->at, frame);
    p->any_calls = true;
    return p->at != NONE;
}

static void leave(void *context, const struct fdr_call *c)
{
    struct fdri_convert_paths *p = context;
    struct fdri_convert_path *at = &p->path[p->at];
    at->calls++;
    at->inclusive_ns += c->duration_ns;
    at->exclusive_ns += c->exclusive_ns;
    p->at = at->parent;
}

static void new_location(void *context, uint32_t location)
{
    struct fdri_convert_paths *p = context;
    (void)location;
    p->at = 0;
}

static bool chosen(const struct fdr_select *select, size_t file, enum fdr_event_class class_)
{
    return !select || !select[file].classes || select[file].classes & 1u << class_;
}

int fdri_convert_paths_calls(struct fdri_convert_paths *p, struct fdr_file *const *files, size_t count,
                             const struct fdr_select *select)
{
    const struct fdr_call_visitor visitor = {.context = p, .location = new_location, .enter = enter, .leave = leave};
    int status = has_root(p) ? 0 : -ENOMEM;
    for (size_t i = 0; i < count && !status; i++) {
        p->file = files[i];
        if (chosen(select, i, FDR_IN_REGION) && fdr_visit_calls(files[i], select ? &select[i] : NULL, &visitor))
            status = -ENOMEM;
    }
    return status;
}

/* ---- samples ---- */

static uint32_t place_below(struct fdri_convert_paths *p, uint32_t path, uint64_t address, bool returns,
                            uint64_t time_ns)
{
    const struct fdr_place *at = fdr_place_at(p->file, address, returns, time_ns);
    path = below(p, path, frame_of(p, at->function, at->file, 0));
    for (uint32_t i = at->inlined_count; i-- > 0;)
        path = below(p, path, frame_of(p, at->inlined[i].function, at->inlined[i].file, 0));
    return path;
}

static uint32_t region_below(struct fdri_convert_paths *p, uint32_t path, uint32_t id)
{
    const struct fdr_definition *d = fdr_definition(p->file, FDR_REGION_DEFINITION, id);
    return below(p, path, frame_of(p, d->name, d->file, d->line));
}

static bool add_sample(struct fdri_convert_paths *p, const char *thread, uint64_t period,
                       const struct fdr_read_event *e)
{
    const struct fdr_sample_path *s = e->sample;
    uint32_t path = below(p, 0, frame_of(p, thread, "", 0));
    for (uint32_t i = 0; i < s->region_count; i++) path = region_below(p, path, s->region[i]);
    for (uint32_t i = 0; i < s->frame_count; i++) path = place_below(p, path, s->frame[i], true, e->time_ns);
    if (s->pc) path = place_below(p, path, s->pc, false, e->time_ns);
    if (s->state != UINT32_MAX) path = region_below(p, path, s->state);
    if (path == NONE) return false;
    p->any_samples = true;
    p->path[path].samples++;
    p->path[path].sampled += s->weight * period;
    return true;
}

static int samples_of(struct fdri_convert_paths *p, const struct fdr_select *select)
{
    struct fdr_select samples = select ? *select : (struct fdr_select){0};
    const struct fdr_sample_stream *stream = NULL;
    const char *thread = NULL;
    struct fdr_read_event e;
    samples.classes = 1u << FDR_IN_SAMPLE;
    samples.one_location_after_another = true;
    struct fdr_iter *iter = fdr_iter_open(p->file, &samples);
    bool good = iter != NULL;
    while (good && fdr_iter_next(iter, &e)) {
        if (!e.sample) continue;
        if (!stream || stream->location != e.location) {
            stream = fdri_convert_stream(p->file, e.location);
            thread = fdri_convert_sampled(p->file, stream);
        }
        good = add_sample(p, thread, stream->period, &e);
    }
    fdr_iter_close(iter);
    return good ? 0 : -ENOMEM;
}

int fdri_convert_paths_samples(struct fdri_convert_paths *p, struct fdr_file *const *files, size_t count,
                               const struct fdr_select *select)
{
    int status = has_root(p) ? 0 : -ENOMEM;
    for (size_t i = 0; i < count && !status; i++) {
        p->file = files[i];
        if (chosen(select, i, FDR_IN_SAMPLE)) status = samples_of(p, select ? &select[i] : NULL);
    }
    return status;
}

void fdri_convert_paths_free(struct fdri_convert_paths *p)
{
    free(p->frame);
    free(p->path);
    free(p->frame_slot);
    free(p->path_slot);
    *p = (struct fdri_convert_paths){0};
}
