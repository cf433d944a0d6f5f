/* SPDX-License-Identifier: MIT */
/* The bins of one partition, in order. The list is followed link by link; where a link does not hold, the bins the
 * scan found are put in order of their seq.
 *
 * Not damage: the newest bin not linked yet (killed while opening it); bins given back or opened while a snapshot
 * was copying. */
#include "reader/reader.h"

#include <stdlib.h>

static bool matches(const struct fdr_bin *h, uint32_t location, const struct fdri_reader_part *p)
{
    return h->location == location && h->class_ == p->class_ && h->depth == p->depth && h->band == p->band;
}

static bool accept(struct fdr_file *f, struct fdri_reader_part *p, uint64_t off, const struct fdr_bin *h, bool gap)
{
    size_t room = p->bin_room;
    if (!fdri_reader_room(&p->bin, p->bin_count, &room, sizeof *p->bin)) return false;
    p->bin_room = (uint32_t)room;
    p->bin[p->bin_count++] = (struct fdri_reader_bin){.base_tick = h->base_tick,
                                                      .first_index = h->first_index,
                                                      .off = (uint32_t)off,
                                                      .seq = h->seq,
                                                      .records = FDR_COMMIT_RECORDS(h->commit),
                                                      .size_log2 = h->size_log2,
                                                      .gap = gap};
    fdri_reader_listed(f, off);
    return true;
}

/* Follows the links from `off`, whose bin must have seq `*expect`. true: the list ended as lists do. */
static bool follow(struct fdr_file *f, const struct fdri_reader_location *l, struct fdri_reader_part *p, uint64_t off,
                   uint32_t *expect)
{
    struct fdr_bin h;
    while (off) {
        if (!fdri_reader_bin_header(f, off, &h) || !matches(&h, l->id, p) || h.seq != *expect) return false;
        if (!accept(f, p, off, &h, false)) return false;
        (*expect)++;
        off = h.next;
    }
    return true;
}

static size_t first_of(struct fdri_reader_found **all, size_t count, const struct fdri_reader_location *l,
                       const struct fdri_reader_part *p, uint32_t seq)
{
    size_t low = 0, high = count;
    while (low < high) {
        size_t i = low + (high - low) / 2;
        const struct fdri_reader_found *a = all[i];
        bool below = a->location != l->id         ? a->location < l->id
                     : a->class_ != p->class_     ? a->class_ < p->class_
                     : a->depth != p->depth       ? a->depth < p->depth
                     : a->band != p->band         ? a->band < p->band
                                                  : a->seq < seq;
        if (below) low = i + 1;
        else high = i;
    }
    return low;
}

/* Adds what the scan found with a seq from `*expect` on; true when there was any. */
static bool gather(struct fdr_file *f, struct fdri_reader_location *l, struct fdri_reader_part *p, uint32_t *expect)
{
    struct fdri_reader_found **all = fdri_reader_by_identity(f);
    struct fdr_bin h;
    bool any = false;
    if (!all) return false;
    for (size_t i = first_of(all, f->found_count, l, p, *expect); i < f->found_count; i++) {
        if (!fdri_reader_bin_header(f, all[i]->off, &h) || !matches(&h, l->id, p)) break;
        if (h.seq < *expect) continue; /* a second one of the same seq */
        if (!accept(f, p, all[i]->off, &h, h.seq != *expect)) break;
        *expect = h.seq + 1;
        any = true;
    }
    return any;
}

static void complain(struct fdr_file *f, const struct fdri_reader_location *l, const struct fdri_reader_part *p,
                     const char *what)
{
    fdri_reader_damage(f, "location %u, %s depth %u band %u: %s", l->id, fdr_class_name(p->class_), p->depth, p->band,
                       what);
}

/* Did bins move while this was copied? */
static bool moving(const struct fdr_file *f, const struct fdri_reader_location *l)
{
    return l->has_cut || f->sb.dropped_bins || (f->has_tail && f->sb.state == FDR_STATE_RECORDING);
}

/* The list broke where seq `expect` should be. */
static void mend(struct fdr_file *f, struct fdri_reader_location *l, struct fdri_reader_part *p,
                 const struct fdr_part *raw, uint32_t expect)
{
    bool at_head = p->bin_count == 0, allowed = moving(f, l);
    if (allowed && !at_head && expect > raw->open_seq) return; /* opened after the directory was copied */
    uint32_t from = p->bin_count;
    if (!gather(f, l, p, &expect)) {
        if (allowed && at_head) return; /* all of it was given back meanwhile */
        p->tail_gap = true;
        complain(f, l, p, "the newest bins are missing");
        return;
    }
    if (allowed && at_head) p->bin[0].gap = false;
    for (uint32_t i = from; i < p->bin_count; i++)
        if (p->bin[i].gap) complain(f, l, p, "bins are missing");
    if (!(allowed && at_head)) complain(f, l, p, "the list of bins is broken, rebuilt from the bins");
}

/* A list that ended as lists do may still miss its newest bin, or have been cut by a damaged link. */
static void finish(struct fdr_file *f, struct fdri_reader_location *l, struct fdri_reader_part *p,
                   const struct fdr_part *raw, uint32_t expect)
{
    struct fdr_bin h;
    if (p->bin_count && p->bin[p->bin_count - 1].seq >= raw->open_seq) return;
    if (raw->open_off && fdri_reader_bin_header(f, raw->open_off, &h) && matches(&h, l->id, p) &&
        (h.seq == expect || (p->bin_count == 0 && h.seq == raw->open_seq && h.seq >= expect))) {
        accept(f, p, raw->open_off, &h, false);
        expect = h.seq + 1;
        if (h.seq >= raw->open_seq) return;
    }
    if (moving(f, l)) return;
    if (gather(f, l, p, &expect)) complain(f, l, p, "the list of bins is cut, rebuilt from the bins");
    else if (p->bin_count && raw->open_seq - expect > 0 && raw->open_seq >= expect) p->tail_gap = true;
    if (p->tail_gap) complain(f, l, p, "the newest bins are missing");
}

/* first_index of each bin follows from the bin before; where it does not, records are missing in between. */
static void check_indices(struct fdr_file *f, const struct fdri_reader_location *l, struct fdri_reader_part *p)
{
    for (uint32_t i = 1; i < p->bin_count; i++) {
        struct fdri_reader_bin *b = &p->bin[i];
        const struct fdri_reader_bin *a = b - 1;
        if (b->gap || (b->first_index == a->first_index + a->records && b->base_tick >= a->base_tick)) continue;
        b->gap = true;
        if (moving(f, l)) continue;
        fdri_reader_damage(f, "bin at %u (location %u, %s depth %u band %u seq %u): records before it are missing",
                           b->off, l->id, fdr_class_name(p->class_), p->depth, p->band, b->seq);
    }
}

/* What was given back ends where the oldest bin held begins to count. floor_tick may be one bin ahead when the
 * recorder was killed while giving back. */
static void set_floor(const struct fdri_reader_location *l, struct fdri_reader_part *p, const struct fdr_part *raw)
{
    const struct fdri_reader_bin *oldest = p->bin_count ? &p->bin[0] : NULL;
    uint64_t said = raw && raw->floor_tick <= l->clock.stored_max ? raw->floor_tick : 0;
    if (!oldest) {
        p->floor = said;
        p->given_back = raw && !(uint32_t)raw->list_head ? raw->total : 0;
        return;
    }
    p->given_back = oldest->first_index;
    if (oldest->gap && raw) { /* it follows bins that are damaged: lost, not given back, as far as one can tell */
        p->floor = said;
        if (!said) p->given_back = 0;
        return;
    }
    uint64_t end = p->bin_count > 1 ? p->bin[1].base_tick : raw ? raw->last_tick : 0;
    p->floor = oldest->first_index ? oldest->base_tick : 0;
    if (said == end && said > p->floor) p->floor = said;
}

void fdri_reader_list(struct fdr_file *f, struct fdri_reader_location *l, struct fdri_reader_part *p,
                      const struct fdr_part *raw)
{
    uint32_t expect = 0;
    if (!raw) {
        if (gather(f, l, p, &expect)) p->bin[0].gap = false;
    } else {
        expect = (uint32_t)(raw->list_head >> 32);
        if (follow(f, l, p, (uint32_t)raw->list_head, &expect)) finish(f, l, p, raw, expect);
        else mend(f, l, p, raw, expect);
    }
    check_indices(f, l, p);
    set_floor(l, p, raw);
}
