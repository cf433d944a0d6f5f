/* SPDX-License-Identifier: MIT */
/* Merges all selected locations by time, with a heap of their next events. Equal times are in order of the
 * location's id. */
#include "format/arena/arena.h"
#include "reader/events/location_stream.h"
#include "reader/file/file.h"
#include "reader/job/job.h"

#include <fdr/reader.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct source {
    struct fdri_events_stream *stream;
    const struct fdri_job_part *part; /* of a job: the file of the location */
    struct fdr_read_event next;
};

struct fdr_iter {
    struct fdr_file *file;
    struct fdr_select select;
    bool in_turn; /* one location after another */
    size_t turn;  /* in turn: the next location to open */
    struct fdri_events_stream *current;
    const struct fdri_job_part *current_part;
    struct fdr_select *part_select;   /* of a job: for each part */
    struct fdri_events_stream *ended; /* its last event was just returned and may use its memory */
    struct source *source;
    struct source **heap;
    size_t source_count, heap_count;
    uint64_t done; /* events returned */
};

static bool selects_location(const struct fdr_select *s, uint32_t location)
{
    for (size_t i = 0; i < s->location_count; i++)
        if (s->locations[i] == location) return true;
    return false;
}

/* If only samples are selected, a thread's id also selects the samples that others took of the thread. */
static bool selected(const struct fdr_select *s, const struct fdri_file_location *l)
{
    bool of_thread = s->classes == 1u << FDRI_ARENA_CLASS_SAMPLE && l->raw.flags & FDRI_ARENA_LOCATION_SAMPLES;
    return !s->locations || selects_location(s, l->id) || (of_thread && selects_location(s, l->raw.parent));
}

/* Copies only the used fields: an event has up to 16, but usually none. */
static inline void copy_event(struct fdr_read_event *to, const struct fdr_read_event *from)
{
    memcpy(to, from, offsetof(struct fdr_read_event, field)); /* a sample's path stays valid for one more event */
    if (__builtin_expect(from->field_count != 0, 0))
        memcpy(to->field, from->field, from->field_count * sizeof *to->field);
}

static inline bool comes_before(const struct source *a, const struct source *b)
{
    if (a->next.time_ns != b->next.time_ns) return a->next.time_ns < b->next.time_ns;
    return a->next.location < b->next.location;
}

static void sift(struct fdr_iter *it, size_t i)
{
    struct source *moving = it->heap[i];
    for (;;) {
        size_t child = 2 * i + 1;
        if (child >= it->heap_count) break;
        if (child + 1 < it->heap_count && comes_before(it->heap[child + 1], it->heap[child])) child++;
        if (!comes_before(it->heap[child], moving)) break;
        it->heap[i] = it->heap[child];
        i = child;
    }
    it->heap[i] = moving;
}

static struct fdri_events_stream *open_stream(struct fdr_iter *it, size_t i, const struct fdri_job_part **part)
{
    const struct fdri_job_part *p = fdri_job_part_of(it->file, i);
    *part = p;
    if (!p) return fdri_events_stream_open(it->file, &it->file->location[i], &it->select);
    return fdri_events_stream_open(p->file, &p->file->location[i - p->first],
                                   &it->part_select[p - it->file->job->part]);
}

static inline bool next_of(const struct fdr_iter *it, struct fdri_events_stream *s, const struct fdri_job_part *part,
                           struct fdr_read_event *e)
{
    if (!fdri_events_stream_next(s, e)) return false;
    if (__builtin_expect(part != NULL, 0)) fdri_job_event(it->file, part, e);
    return true;
}

static bool open_all(struct fdr_iter *it)
{
    struct fdr_file *f = it->file;
    it->source = fdri_file_calloc(f->location_count + 1, sizeof *it->source);
    it->heap = fdri_file_calloc(f->location_count + 1, sizeof *it->heap);
    if (!it->source || !it->heap) return false;
    for (size_t i = 0; i < f->location_count; i++) {
        if (!selected(&it->select, &f->location[i])) continue;
        struct source *s = &it->source[it->source_count++];
        s->stream = open_stream(it, i, &s->part);
        if (!s->stream) return false;
        if (next_of(it, s->stream, s->part, &s->next)) {
            it->heap[it->heap_count++] = s;
            continue;
        }
        fdri_events_stream_close(s->stream);
        s->stream = NULL;
    }
    for (size_t i = it->heap_count / 2; i-- > 0;) sift(it, i);
    return true;
}

struct fdr_iter *fdr_iter_open(struct fdr_file *f, const struct fdr_select *select)
{
    struct fdr_iter *it = fdri_file_calloc(1, sizeof *it);
    if (!it) return NULL;
    it->file = f;
    if (select) it->select = *select;
    it->in_turn = it->select.one_location_after_another || f->location_count == 1;
    if (f->job) it->part_select = fdri_job_selects(f, &it->select);
    bool good = !f->job || it->part_select;
    if (good && (it->in_turn || open_all(it))) return it;
    fdr_iter_close(it);
    return NULL;
}

static bool next_in_turn(struct fdr_iter *it, struct fdr_read_event *e)
{
    for (;;) {
        if (it->current && next_of(it, it->current, it->current_part, e)) return true;
        fdri_events_stream_close(it->current);
        it->current = NULL;
        if (it->turn >= it->file->location_count) return false;
        size_t i = it->turn++;
        if (selected(&it->select, &it->file->location[i])) it->current = open_stream(it, i, &it->current_part);
    }
}

bool fdr_iter_next(struct fdr_iter *it, struct fdr_read_event *e)
{
    if ((++it->done & 0xffff) == 0 && it->select.progress) it->select.progress(it->select.progress_context, it->done);
    if (it->in_turn) return next_in_turn(it, e);
    if (!it->heap_count) return false;
    struct source *s = it->heap[0];
    copy_event(e, &s->next);
    fdri_events_stream_close(it->ended);
    it->ended = NULL;
    if (!next_of(it, s->stream, s->part, &s->next)) {
        it->ended = s->stream;
        s->stream = NULL;
        it->heap[0] = it->heap[--it->heap_count];
    }
    if (it->heap_count > 1) sift(it, 0);
    return true;
}

size_t fdr_iter_take(struct fdr_iter *it, struct fdr_read_event *events, size_t count)
{
    size_t taken = 0;
    for (; taken < count && fdr_iter_next(it, &events[taken]); taken++) events[taken].sample = NULL;
    return taken;
}

void fdr_iter_close(struct fdr_iter *it)
{
    if (!it) return;
    fdri_events_stream_close(it->current);
    fdri_events_stream_close(it->ended);
    for (size_t i = 0; i < it->source_count; i++) fdri_events_stream_close(it->source[i].stream);
    free(it->part_select);
    free(it->source);
    free(it->heap);
    free(it);
}
