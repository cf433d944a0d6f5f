/* SPDX-License-Identifier: MIT */
/* Orders the bins of one partition. It follows the list link by link. If a link is wrong, it sorts the bins that the
 * scan found by their seq.
 *
 * Not damage: the newest bin is not linked yet, because the process was killed while opening it.
 *
 * In a snapshot of a moving location (location_model.h), list heads are newer than bins, and bins are newer than the
 * cut. So bins that begin after the cut may be missing; the list ends before the first of these. The oldest bin may
 * be missing, too, if its place was copied before the bin was there. */
#include "base/atomic.h"
#include "base/bits.h"
#include "format/arena/arena.h"
#include "format/codec/encode.h"
#include "reader/file/file.h"

#include <fdr/reader.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

static bool matches(const struct fdri_arena_bin *h, uint32_t location, const struct fdri_file_part *p)
{
    return h->location == location && h->class_ == p->class_ && h->depth == p->depth && h->band == p->band;
}

/* Appends a bin. Returns false for a bin that another list holds: that of the pinned partition before this one, or
 * of its successor. */
static bool append_bin(struct fdr_file *f, struct fdri_file_part *p, uint64_t off, const struct fdri_arena_bin *h,
                       bool gap)
{
    size_t room = p->bin_room;
    if (!fdri_file_grow(&p->bin, p->bin_count, &room, sizeof *p->bin) || !fdri_file_mark_listed(f, off)) return false;
    p->bin_room = (uint32_t)room;
    p->bin[p->bin_count++] = (struct fdri_file_bin){.base_tick = h->base_tick,
                                                    .first_index = h->first_index,
                                                    .off = (uint32_t)off,
                                                    .seq = h->seq,
                                                    .records = FDRI_ARENA_COMMIT_RECORDS(h->commit),
                                                    .size_log2 = h->size_log2,
                                                    .gap = gap,
                                                    .gap_accounted = h->flags & FDRI_ARENA_BIN_GAP};
    return true;
}

/* Follows the links from `off`, whose bin must have seq `*expect`. Returns true if the list ended regularly. */
static bool follow(struct fdr_file *f, const struct fdri_file_location *l, struct fdri_file_part *p, uint64_t off,
                   uint32_t *expect)
{
    struct fdri_arena_bin h;
    while (off) {
        if (!fdri_file_bin_header(f, off, &h) || !matches(&h, l->id, p) || h.seq != *expect) return false;
        if (!append_bin(f, p, off, &h, false)) return false;
        (*expect)++;
        off = h.next;
    }
    return true;
}

static size_t first_of(struct fdri_file_found **all, size_t count, const struct fdri_file_location *l,
                       const struct fdri_file_part *p, uint32_t seq)
{
    size_t low = 0, high = count;
    while (low < high) {
        size_t i = low + (high - low) / 2;
        const struct fdri_file_found *a = all[i];
        bool below = a->location != l->id     ? a->location < l->id
                     : a->class_ != p->class_ ? a->class_ < p->class_
                     : a->depth != p->depth   ? a->depth < p->depth
                     : a->band != p->band     ? a->band < p->band
                                              : a->seq < seq;
        if (below) low = i + 1;
        else high = i;
    }
    return low;
}

/* Appends the scanned bins with a seq from `*expect` on. Returns true if there was any. */
static bool append_scanned(struct fdr_file *f, struct fdri_file_location *l, struct fdri_file_part *p, uint32_t *expect,
                           uint32_t last)
{
    struct fdri_file_found **all = fdri_file_by_identity(f);
    struct fdri_arena_bin h;
    bool any = false;
    if (!all) return false;
    for (size_t i = first_of(all, f->found_count, l, p, *expect); i < f->found_count; i++) {
        if (!fdri_file_bin_header(f, all[i]->off, &h) || !matches(&h, l->id, p)) break;
        if (h.seq < *expect) continue; /* a second bin of the same seq */
        if (all[i]->listed) continue;
        if (p->pinned && h.seq > last) break; /* it belongs to the partition that succeeded the pinned one */
        if (!append_bin(f, p, all[i]->off, &h, h.seq != *expect)) break;
        *expect = h.seq + 1;
        any = true;
    }
    return any;
}

static void report_list_damage(struct fdr_file *f, const struct fdri_file_location *l, const struct fdri_file_part *p,
                               const char *what)
{
    fdri_file_damage(f, "location %u, %s depth %u band %u: %s", l->id, fdr_class_name(p->class_), p->depth, p->band,
                     what);
}

/* May the records of this bin all be newer than the cut? Then the bins before it may have been opened after the copy
 * of their place. If the location rewinds, a bin that does not follow its predecessor was opened after a rewind, and
 * so after the copy of the predecessor. */
static bool after_cut(const struct fdri_file_location *l, const struct fdri_file_bin *b)
{
    return l->moving && (b->base_tick >= l->cut || l->raw.flags & FDRI_ARENA_LOCATION_REWINDS);
}

/* Reports that the bins from number `from` on were found by scan. */
static void report_rebuilt(struct fdr_file *f, const struct fdri_file_location *l, const struct fdri_file_part *p,
                           uint32_t from)
{
    uint32_t holes = 0;
    for (uint32_t i = from; i < p->bin_count; i++) holes += p->bin[i].gap && !after_cut(l, &p->bin[i]);
    if (holes) report_list_damage(f, l, p, "bins are missing");
    if (l->settled || holes) report_list_damage(f, l, p, "the list of bins is broken, rebuilt from the bins");
}

static void report_missing_end(struct fdr_file *f, const struct fdri_file_location *l, struct fdri_file_part *p)
{
    p->tail_gap = true;
    report_list_damage(f, l, p, "the newest bins are missing");
}

/* The location is moving: the missing bins may have been opened after the copy of their place, so this is not
 * damage. */
static void mark_end_uncertain(struct fdri_file_part *p, uint32_t expect, uint32_t last)
{
    if (expect <= last) p->tail_gap = p->tail_after_cut = true;
}

/* After a scan: is a bin missing at the end, where `expect` would be the next seq? finish() accepts a newest bin
 * whose opening a kill interrupted; after other damage it counts as missing. */
static void report_end(struct fdr_file *f, const struct fdri_file_location *l, struct fdri_file_part *p,
                       uint32_t expect, uint32_t last)
{
    if (!l->settled) mark_end_uncertain(p, expect, last);
    else if (expect <= last) report_missing_end(f, l, p);
}

/* Continues by scan; the list broke where seq `expect` should be. */
static void continue_by_scan(struct fdr_file *f, struct fdri_file_location *l, struct fdri_file_part *p,
                             uint32_t expect, uint32_t last)
{
    uint32_t from = p->bin_count;
    if (append_scanned(f, l, p, &expect, last)) {
        report_rebuilt(f, l, p, from);
        report_end(f, l, p, expect, last);
    } else if (l->settled) {
        report_missing_end(f, l, p);
    } else {
        mark_end_uncertain(p, expect, last);
    }
}

/* The list does not begin where its head says. Either the head's seq is right, or the bin at its offset is the
 * oldest and has the right seq. The lower seq of both loses nothing. If the block is known to be damaged (`doubt`)
 * and neither finds bins, all of the partition's bins count. */
static bool rebuild(struct fdr_file *f, struct fdri_file_location *l, struct fdri_file_part *p,
                    const struct fdri_arena_part *raw, bool doubt)
{
    struct fdri_arena_bin h;
    uint32_t off = (uint32_t)raw->list_head, seq = (uint32_t)(raw->list_head >> 32);
    bool there = fdri_file_bin_header(f, off, &h) && matches(&h, l->id, p);
    uint32_t expect = there && h.seq < seq && (doubt || !l->moving) ? h.seq : seq, zero = 0;
    if (!append_scanned(f, l, p, &expect, raw->open_seq) &&
        !(doubt && off && append_scanned(f, l, p, &zero, raw->open_seq)))
        return false;
    /* without checks, this bin may be one that was given back and used again */
    p->bin[0].gap = p->bin[0].off != off || !doubt;
    report_rebuilt(f, l, p, 0);
    report_end(f, l, p, p->bin[p->bin_count - 1].seq + 1, raw->open_seq);
    return true;
}

/* A list that ended regularly may still miss its newest bin, or a damaged link may have ended it too early. */
static void finish(struct fdr_file *f, struct fdri_file_location *l, struct fdri_file_part *p,
                   const struct fdri_arena_part *raw, uint32_t expect)
{
    struct fdri_arena_bin h;
    if (p->bin_count && p->bin[p->bin_count - 1].seq >= raw->open_seq) return;
    if (p->bin_count && p->bin[p->bin_count - 1].off == raw->open_off && fdri_file_is_suspect(f, p->off, sizeof *raw))
        return; /* the list ends with the open bin; the block's open_seq is damaged */
    /* all was given back, and a bin with a later seq was never linked: its opening was interrupted */
    if (!p->bin_count && expect == raw->open_seq + 1) return;
    if (raw->open_off && fdri_file_bin_header(f, raw->open_off, &h) && matches(&h, l->id, p) &&
        (h.seq == expect || (p->bin_count == 0 && h.seq == raw->open_seq && h.seq >= expect))) {
        if (append_bin(f, p, raw->open_off, &h, false)) expect = h.seq + 1;
        if (expect > raw->open_seq) return;
    }
    if (!l->settled) {
        mark_end_uncertain(p, expect, raw->open_seq);
        return;
    }
    if (append_scanned(f, l, p, &expect, raw->open_seq)) {
        report_list_damage(f, l, p, "the list of bins ends early, rebuilt from the bins");
        report_end(f, l, p, expect, raw->open_seq);
    } else if (p->bin_count && raw->open_seq > expect) {
        report_missing_end(f, l, p);
    }
}

/* Time never steps back along a list. A bin that does belongs to another list, or its time is damaged. It stays as a
 * bad bin, so that the floor stays where it is. */
static bool steps_back(struct fdr_file *f, const struct fdri_file_location *l, const struct fdri_file_part *p,
                       struct fdri_file_bin *b, uint64_t newest)
{
    if (b->base_tick >= newest) return false;
    fdri_file_damage(f,
                     "bin at %u (location %u, %s depth %u band %u seq %u) begins before the one before it: "
                     "%u records lost",
                     b->off, l->id, fdr_class_name(p->class_), p->depth, p->band, b->seq, b->records);
    fdri_atomic_store_relaxed(&b->state, FDRI_FILE_BIN_BAD);
    b->reported = true;
    return true;
}

/* first_index of each bin follows from the bin before. If it does not, records in between are missing. In a snapshot
 * of a moving location, the list ends there: these records came after the cut. */
static void check_indices(struct fdr_file *f, const struct fdri_file_location *l, struct fdri_file_part *p)
{
    /* the bins before it were given back, or not yet there at the copy */
    if (p->bin_count && l->moving) p->bin[0].gap = false;
    uint64_t newest = p->bin_count ? p->bin[0].base_tick : 0;
    for (uint32_t i = 1; i < p->bin_count; i++) {
        struct fdri_file_bin *b = &p->bin[i];
        const struct fdri_file_bin *a = b - 1;
        bool follows = b->first_index == a->first_index + a->records;
        if ((!follows || b->gap || b->base_tick < newest) && after_cut(l, b)) {
            p->bin_count = i;
            return;
        }
        if (!steps_back(f, l, p, b, newest)) newest = b->base_tick;
        if (!follows && !b->gap)
            fdri_file_damage(f, "bin at %u (location %u, %s depth %u band %u seq %u): records before it are missing",
                             b->off, l->id, fdr_class_name(p->class_), p->depth, p->band, b->seq);
        b->gap |= !follows;
    }
}

/* The oldest bins are damaged. If exactly one is, and its records can be counted, the given-back part ended where
 * that bin began. If the list began with seq 1, nothing was given back. Otherwise they count as given back if the
 * block has a floor, else as lost. */
static void behind_damage(const struct fdr_file *f, struct fdri_file_part *p, const struct fdri_arena_part *raw,
                          uint64_t said)
{
    const struct fdri_file_bin *oldest = &p->bin[0];
    uint32_t seq = (uint32_t)(raw->list_head >> 32);
    uint64_t records, span = 0;
    p->floor = said;
    if (seq == 1) {
        p->given_back = p->floor = 0;
    } else if (oldest->seq == seq + 1 &&
               fdri_file_bin_headless(f, (uint32_t)raw->list_head, p->class_, p->depth, &records, &span) &&
               records <= oldest->first_index && span <= oldest->base_tick) {
        p->given_back = oldest->first_index - records;
        p->floor = p->given_back ? oldest->base_tick - span : 0;
    } else if (!said) {
        p->given_back = 0;
    }
}

uint64_t fdri_file_floor_of_bin(const struct fdri_file_bin *oldest, uint64_t given_back)
{
    return given_back ? oldest->base_tick : 0;
}

/* The given-back part ends at first_index of the oldest bin. floor_tick may be one bin ahead if a kill interrupted a
 * reduction. */
static void set_floor(const struct fdr_file *f, const struct fdri_file_location *l, struct fdri_file_part *p,
                      const struct fdri_arena_part *raw)
{
    const struct fdri_file_bin *oldest = p->bin_count ? &p->bin[0] : NULL;
    /* another thread took the newest bin while the owner slept */
    bool taken = raw && raw->open_off && !raw->limit && !(uint32_t)raw->list_head;
    uint64_t says = raw ? fdri_bits_max(raw->floor_tick, taken ? raw->last_tick : 0) : 0;
    uint64_t said = says <= l->clock.stored_max ? says : 0;
    p->floor_unknown = p->unaccounted = raw && raw->flags & FDRI_ARENA_PART_UNACCOUNTED;
    if (!oldest) {
        /* the block may belong to another partition */
        bool doubt = raw && fdri_file_is_suspect(f, p->off, sizeof *raw);
        p->floor = doubt ? 0 : said;
        p->floor_unknown |= raw && raw->total && (doubt || (l->moving && (uint32_t)raw->list_head));
        p->given_back = taken                                             ? fdri_codec_part_given(raw)
                        : raw && (l->moving || !(uint32_t)raw->list_head) ? raw->total
                                                                          : 0;
        return;
    }
    p->given_back = oldest->first_index;
    if (oldest->gap && raw) {
        behind_damage(f, p, raw, said);
        return;
    }
    p->floor = fdri_file_floor_of_bin(oldest, p->given_back);
    /* an earlier recovery found the bins before the oldest damaged */
    if (p->unaccounted && !fdri_file_is_suspect(f, p->off, sizeof *raw)) {
        p->floor = said;
        return;
    }
    uint64_t end = p->bin_count > 1 ? p->bin[1].base_tick : raw ? raw->last_tick : 0;
    if (said == end && said > p->floor) p->floor = said;
}

/* Adds the gaps that an earlier recovery noted. The accounts include them, and first_index counts on across them. */
static void add_accounted_gaps(struct fdri_file_part *p, const struct fdri_arena_part *raw)
{
    for (uint32_t i = 0; i < p->bin_count; i++) {
        struct fdri_file_bin *b = &p->bin[i];
        b->gap_accounted &= !b->gap; /* a new gap here means that more is missing than the accounts include */
        b->gap |= b->gap_accounted;
    }
    p->tail_gap_accounted = !p->tail_gap && raw && raw->flags & FDRI_ARENA_PART_SHORT;
    p->tail_gap |= p->tail_gap_accounted;
}

void fdri_file_list_bins(struct fdr_file *f, struct fdri_file_location *l, struct fdri_file_part *p,
                         const struct fdri_arena_part *raw)
{
    uint32_t expect = 0;
    if (!raw) {
        if (append_scanned(f, l, p, &expect, UINT32_MAX)) p->bin[0].gap = p->pinned && p->bin[0].first_index;
        p->tail_gap = f->cut_off; /* then the scanned bins may not be the newest */
    } else {
        expect = (uint32_t)(raw->list_head >> 32);
        bool ended = follow(f, l, p, (uint32_t)raw->list_head, &expect), empty = !p->bin_count;
        bool doubt = fdri_file_is_suspect(f, p->off, sizeof *raw);
        if (empty && (doubt || !ended) && rebuild(f, l, p, raw, doubt)) expect = p->bin[p->bin_count - 1].seq + 1;
        else if (ended) finish(f, l, p, raw, expect);
        else continue_by_scan(f, l, p, expect, raw->open_seq);
    }
    check_indices(f, l, p);
    set_floor(f, l, p, raw);
    add_accounted_gaps(p, raw);
}
