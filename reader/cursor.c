/* SPDX-License-Identifier: MIT */
/* The records of one partition, oldest first, a few at a time. Every bin is decoded to its end once before any of
 * its records is shown, so a bin that turns out bad shows nothing. */
#include "reader/reader.h"

void fdri_reader_cursor_init(struct fdri_reader_cursor *c, struct fdr_file *f, struct fdri_reader_location *l,
                             struct fdri_reader_part *p, uint64_t min_leave, uint32_t chunk)
{
    c->at = c->end = c->record;
    c->file = f;
    c->location = l;
    c->part = p;
    c->min_leave = min_leave;
    c->gap_from = 1;
    c->gap_to = 0;
    c->newest = 0;
    c->next_bin = 0;
    c->decoding = c->gapped = false;
    c->chunk = chunk;
}

/* Between the newest record seen and `to` something is missing. */
static void note_gap(struct fdri_reader_cursor *c, uint64_t to)
{
    if (!c->gapped || c->gap_to < c->newest) c->gap_from = c->newest;
    c->gap_to = to;
    c->gapped = true;
}

/* Begins to decode the next bin that has something to show. */
static bool next_bin(struct fdri_reader_cursor *c)
{
    struct fdri_reader_part *p = c->part;
    while (c->next_bin < p->bin_count) {
        struct fdri_reader_bin *b = &p->bin[c->next_bin++];
        bool last = c->next_bin == p->bin_count;
        if (b->gap) note_gap(c, b->base_tick);
        if (!last && !b[1].gap && b[1].base_tick < c->min_leave) continue;
        if (!fdri_reader_bin_good(c->file, c->location, b)) {
            if (c->newest < b->base_tick) c->newest = b->base_tick;
            note_gap(c, last ? UINT64_MAX : b[1].base_tick);
            continue;
        }
        if (fdri_reader_bin_begin(c->file, b, &c->decoder) && c->decoder.records) return true;
    }
    if (p->tail_gap) note_gap(c, UINT64_MAX);
    return false;
}

bool fdri_reader_cursor_fill(struct fdri_reader_cursor *c)
{
    uint32_t n = 0;
    while (n == 0) {
        if (!c->decoding && !next_bin(c)) break;
        c->decoding = true;
        while (n < c->chunk) {
            struct fdr_record *r = &c->record[n];
            if (fdr_decode_next(&c->decoder, r) <= 0) {
                c->decoding = false;
                break;
            }
            if (__builtin_expect(r->leave >= c->min_leave, 1)) n++;
        }
    }
    c->at = c->record;
    c->end = c->record + n;
    if (n) c->newest = c->record[n - 1].leave;
    return n != 0;
}
