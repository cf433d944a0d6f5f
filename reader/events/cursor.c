/* SPDX-License-Identifier: MIT */
/* Reads the records of one partition, oldest first, a few at a time. It decodes every bin to its end before it
 * returns any of its records, so a bad bin shows nothing. */
#include "base/atomic.h"
#include "format/arena/arena.h"
#include "format/codec/decode.h"
#include "format/codec/sample_codec.h"
#include "reader/events/cursor.h"
#include "reader/file/file.h"

#include <fdr/reader.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#define WHOLE_MOST 16384u /* records */

void fdri_events_cursor_init(struct fdri_events_cursor *c, struct fdr_file *f, struct fdri_file_location *l,
                             struct fdri_file_part *p, uint64_t min_leave, uint32_t chunk)
{
    c->at = c->end = c->record;
    c->file = f;
    c->location = l;
    c->part = p;
    c->min_leave = min_leave;
    c->max_enter = l->moving ? l->cut : UINT64_MAX;
    c->gap_from = 1;
    c->gap_to = 0;
    c->newest = 0;
    c->next_bin = 0;
    c->decoding = c->gapped = c->slow_decoding = false;
    c->chunk = chunk;
    c->may_keep_whole = false;
    c->whole = NULL;
    c->whole_room = 0;
    c->decoder.sample = p->class_ == FDRI_ARENA_CLASS_SAMPLE ? fdri_file_malloc(sizeof *c->decoder.sample) : NULL;
}

void fdri_events_cursor_done(struct fdri_events_cursor *c)
{
    free(c->whole);
    free(c->decoder.sample);
    c->whole = NULL;
    c->decoder.sample = NULL;
}

/* Notes that records are missing between the newest one returned and `to`. */
static void note_gap(struct fdri_events_cursor *c, uint64_t to)
{
    if (!c->gapped || c->gap_to < c->newest) c->gap_from = c->newest;
    c->gap_to = to;
    c->gapped = true;
}

/* Ends a moving location at its cut: calls that began after the copy of its stack may lack their parents. */
static void stop_at_cut(struct fdri_events_cursor *c)
{
    const struct fdri_codec_record *r = c->at;
    while (r < c->end && r->enter <= c->max_enter) r++;
    if (r == c->end) return;
    c->end = r;
    c->next_bin = c->part->bin_count;
    c->decoding = false;
}

/* Drops records that are not shown. Returns false if none is left. */
static bool skip_old(struct fdri_events_cursor *c)
{
    if (c->max_enter != UINT64_MAX) stop_at_cut(c);
    while (c->at < c->end && c->at->leave < c->min_leave) c->at++;
    return c->at < c->end;
}

/* Decodes all calls of a bin into c->whole, if the bin was never decoded. Returns false if that is impossible; the
 * bin's state then stays unknown. */
static bool keep_whole(struct fdri_events_cursor *c, struct fdri_file_bin *b)
{
    if (!c->may_keep_whole || b->records > WHOLE_MOST || fdri_atomic_load_relaxed(&b->state)) return false;
    if (b->records > c->whole_room) {
        struct fdri_codec_record *wider = fdri_file_realloc(c->whole, b->records * sizeof *wider);
        if (!wider) return false;
        c->whole = wider;
        c->whole_room = b->records;
    }
    if (!fdri_file_bin_begin(c->file, b, &c->decoder) || c->decoder.records > c->whole_room) return false;
    int n = fdri_codec_decode_calls(&c->decoder, c->whole, c->whole_room, false);
    if (n <= 0 || fdri_codec_decode_next(&c->decoder, c->record) != 0 ||
        c->whole[n - 1].leave > c->location->clock.stored_max)
        return false;
    fdri_atomic_store_relaxed(&b->state, FDRI_FILE_BIN_GOOD);
    c->at = c->whole;
    c->end = c->whole + n;
    return true;
}

/* Begins to decode the next bin with records to show. */
static bool next_bin(struct fdri_events_cursor *c)
{
    struct fdri_file_part *p = c->part;
    while (c->next_bin < p->bin_count) {
        struct fdri_file_bin *b = &p->bin[c->next_bin++];
        bool last = c->next_bin == p->bin_count;
        if (b->gap) note_gap(c, b->base_tick);
        if (!last && !b[1].gap && b[1].base_tick < c->min_leave) continue;
        if (b->base_tick < c->newest) { /* damage put it into this list: time never steps back along one */
            note_gap(c, last ? UINT64_MAX : b[1].base_tick);
            continue;
        }
        bool whole = keep_whole(c, b);
        if (!fdri_file_bin_good(c->file, c->location, b)) {
            if (c->newest < b->base_tick) c->newest = b->base_tick;
            note_gap(c, last ? UINT64_MAX : b[1].base_tick);
            continue;
        }
        c->slow_decoding = fdri_atomic_load_relaxed(&b->state) == FDRI_FILE_BIN_SLOW;
        if (whole ? skip_old(c) : fdri_file_bin_begin(c->file, b, &c->decoder) && c->decoder.records) {
            c->decoding = !whole;
            return true;
        }
        if (c->newest < b->base_tick) c->newest = b->base_tick; /* an empty bin, left by a recovery */
    }
    if (p->tail_gap) note_gap(c, UINT64_MAX);
    return false;
}

/* Decodes at most one chunk. */
static void decode(struct fdri_events_cursor *c)
{
    int n = c->part->class_ == FDRI_ARENA_CLASS_REGION
                ? fdri_codec_decode_calls(&c->decoder, c->record, c->chunk, c->slow_decoding)
                : fdri_codec_decode_next(&c->decoder, c->record);
    if (n < (int)c->chunk) c->decoding = false;
    c->at = c->record;
    c->end = c->record + (n > 0 ? n : 0);
}

bool fdri_events_cursor_fill(struct fdri_events_cursor *c)
{
    do {
        if (!c->decoding && !next_bin(c)) {
            c->at = c->end;
            return false;
        }
        if (c->decoding) decode(c);
    } while (!skip_old(c));
    c->newest = c->end[-1].leave;
    return true;
}
