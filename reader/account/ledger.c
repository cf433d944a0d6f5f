/* SPDX-License-Identifier: MIT */
/* The ledger: presented = kept + filtered + reduced + lost, by location, class and depth. The recorder counted
 * everything but `kept`; decoding counts `kept`. */
#include "base/atomic.h"
#include "base/bits.h"
#include "format/arena/arena.h"
#include "reader/account/account.h"
#include "reader/events/events.h"
#include "reader/events/sample_events.h"
#include "reader/file/file.h"

#include <fdr/reader.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

static struct fdr_ledger_row *new_row(struct fdr_file *f, uint32_t location, uint32_t class_, uint32_t depth)
{
    if (!fdri_file_grow(&f->ledger, f->ledger_count, &f->ledger_room, sizeof *f->ledger)) return NULL;
    struct fdr_ledger_row *r = &f->ledger[f->ledger_count++];
    *r = (struct fdr_ledger_row){.location = location, .class_ = class_, .depth = depth};
    return r;
}

/* Reads the recorder's accounts. Returns false if there is no such level. */
static bool accounts(const struct fdr_file *f, const struct fdri_file_location *l, struct fdr_ledger_row *r)
{
    const struct fdri_arena_samples *samples = r->class_ == FDRI_ARENA_CLASS_SAMPLE ? fdri_events_samples(f, l) : NULL;
    if (samples && r->depth < FDRI_ARENA_SAMPLE_LEVELS) {
        r->presented = samples->level[r->depth].presented;
        r->filtered = samples->level[r->depth].filtered;
        r->reduced = samples->level[r->depth].reduced_gate;
        r->lost = samples->level[r->depth].lost;
        return true;
    }
    if (r->class_ == FDRI_ARENA_CLASS_REGION) {
        const struct fdri_arena_level *v = fdri_file_level(f, l, r->depth);
        if (!v) return false;
        r->presented = v->presented;
        r->filtered = v->filtered;
        r->reduced = v->reduced_gate;
        r->lost = v->lost;
        return true;
    }
    const struct fdri_arena_level_points *p = fdri_file_points(f, l, r->depth);
    if (!p) return false;
    r->presented = p->by_class[r->class_].presented;
    r->filtered = p->by_class[r->class_].filtered;
    r->reduced = p->by_class[r->class_].reduced_gate;
    r->lost = p->by_class[r->class_].lost;
    return true;
}

/* Counts the partition's records into the row. Returns the number of records left out because they came after the
 * cut. */
static uint64_t count_part(const struct fdr_file *f, const struct fdri_file_location *l, const struct fdri_file_part *p,
                           struct fdr_ledger_row *r)
{
    uint64_t later = 0;
    r->reduced += p->given_back;
    for (uint32_t i = 0; i < p->bin_count; i++) {
        struct fdri_file_bin *b = &p->bin[i];
        uint64_t gone, newest, shown = b->records;
        if (f->headers_only) {
            r->kept += b->records;
            continue;
        }
        if (!fdri_file_bin_read(f, l, b, p->min_leave, &gone, &newest)) continue;
        if (l->moving && newest > l->cut) shown = fdri_file_bin_up_to(f, b, l->cut, &newest);
        gone = fdri_bits_min(gone, shown);
        r->kept += shown - gone;
        r->reduced += gone;
        later += b->records - shown;
    }
    return later;
}

/* A rewind was under way: adds the records that it had removed but not yet counted. */
static void count_forgotten(struct fdr_ledger_row *r, uint64_t most, uint64_t later)
{
    uint64_t sum = r->kept + r->filtered + r->reduced + r->lost + later;
    if (sum < r->presented) r->filtered += fdri_bits_min(r->presented - sum, most);
}

static void count_cell(struct fdr_file *f, const struct fdri_file_location *l, uint32_t class_, uint32_t depth)
{
    struct fdr_ledger_row r = {.location = l->id, .class_ = class_, .depth = depth};
    uint64_t forgets = 0, later = 0;
    accounts(f, l, &r);
    if (class_ == FDRI_ARENA_CLASS_REGION && depth == fdri_account_without_level_from(l)) {
        r.presented += l->raw.presented_overflow;
        r.lost += l->raw.lost_overflow;
    }
    for (uint32_t i = 0; i < FDRI_ARENA_BANDS * 2; i++) {
        const struct fdri_file_part *p = fdri_file_part(l, class_, depth, i / 2, i & 1);
        if (!p) continue;
        later += count_part(f, l, p, &r);
        forgets += p->rewind_records;
    }
    if (class_ == FDRI_ARENA_CLASS_REGION && depth > 0 && depth <= l->frame_count)
        r.kept += fdri_events_frame_kept(&l->frame[depth - 1]);
    if (forgets) count_forgotten(&r, forgets, later);
    if (!(r.presented | r.kept | r.filtered | r.reduced | r.lost)) return;
    struct fdr_ledger_row *row = new_row(f, l->id, class_, depth);
    if (row) *row = r;
}

static uint32_t deepest_of(const struct fdri_file_location *l)
{
    uint32_t deepest = 0;
    for (uint32_t i = 0; i < l->raw.level_blocks; i++)
        if (l->levels_off[i]) deepest = fdri_arena_levels_in(i + 1);
    for (size_t i = 0; i < l->part_count; i++)
        if (l->part[i].depth > deepest) deepest = l->part[i].depth;
    return deepest;
}

uint32_t fdri_account_without_level_from(const struct fdri_file_location *l)
{
    uint32_t behind = (uint32_t)fdri_bits_max(fdri_arena_levels_in(l->raw.level_blocks), deepest_of(l)) + 1,
             from = l->raw.no_level_depth;
    if (!(l->raw.presented_overflow | l->raw.lost_overflow)) return 0;
    return from && from < behind ? from : behind;
}

/* Calls without a place count as lost, like their parents. `first` is the first of the location's rows for calls,
 * which are sorted by depth. */
static void count_unplaced(struct fdr_file *f, struct fdri_file_location *l, size_t first)
{
    size_t rows = f->ledger_count - first;
    fdri_events_find_unplaced(f, l);
    if (!rows) return;
    struct fdr_ledger_row *row = f->ledger + first;
    for (size_t i = 0; i < l->unplaced_count; i++) {
        uint32_t depth = l->unplaced[i].depth;
        /* the row is at this index or before it: a depth may have no row */
        size_t k = fdri_bits_min(depth - fdri_bits_min(depth, row->depth), rows - 1);
        while (k && row[k].depth > depth) k--;
        if (row[k].depth != depth || !row[k].kept) continue;
        row[k].kept--;
        row[k].lost++;
    }
}

static void count_location(struct fdr_file *f, struct fdri_file_location *l)
{
    size_t first = f->ledger_count;
    uint32_t deepest = deepest_of(l), refused = fdri_account_without_level_from(l);
    for (uint32_t d = 1; d <= fdri_bits_max(deepest, refused); d++) count_cell(f, l, FDRI_ARENA_CLASS_REGION, d);
    count_unplaced(f, l, first);
    if (fdri_events_samples(f, l) && deepest < FDRI_ARENA_SAMPLE_LEVELS - 1) deepest = FDRI_ARENA_SAMPLE_LEVELS - 1;
    for (uint32_t c = FDRI_ARENA_CLASS_REGION + 1; c < FDRI_ARENA_CLASS_COUNT; c++)
        for (uint32_t d = 0; d <= deepest; d++) count_cell(f, l, c, d);
}

size_t fdr_ledger(struct fdr_file *f, const struct fdr_ledger_row **rows)
{
    pthread_mutex_lock(&f->lock);
    if (!f->has_ledger && !fdri_account_job_ledger(f))
        for (size_t i = 0; i < f->location_count; i++) count_location(f, &f->location[i]);
    f->has_ledger = true;
    pthread_mutex_unlock(&f->lock);
    if (rows) *rows = f->ledger;
    return f->ledger_count;
}

/* The bounds of the number presented. An operation under way at the copy or the kill may have counted its event but
 * not stored it, or the reverse. */
static void bounds(const struct fdri_file_location *l, uint64_t *before, uint64_t *after)
{
    if (l->moving && !l->in_tail) { /* the tail had no room for its entry */
        *before = 0;
        *after = UINT64_MAX;
        return;
    }
    bool moving = l->moving, under_way = l->raw.busy != 0 || (l->in_tail && l->tail.under_way);
    *before = moving ? l->tail.completed : l->presented_before - (under_way && l->presented_before > 0);
    *after = moving ? l->tail.presented : l->presented_before;
    *after += under_way && *after < UINT64_MAX;
}

void fdr_ledger_bounds(const struct fdr_file *f, uint32_t location, uint64_t *before, uint64_t *after)
{
    *before = *after = 0;
    for (size_t i = 0; i < f->location_count; i++)
        if (f->location[i].id == location) bounds(&f->location[i], before, after);
}

/* ---- every bin once ---- */

static void verify_part(struct fdr_file *f, const struct fdri_file_location *l, const struct fdri_file_part *p,
                        bool unread)
{
    for (uint32_t i = 0; i < p->bin_count; i++) {
        struct fdri_file_bin *b = &p->bin[i];
        if (!unread && fdri_atomic_load_relaxed(&b->state) != FDRI_FILE_BIN_BAD) continue;
        if (b->reported || fdri_file_bin_good(f, l, b)) continue;
        b->reported = true;
        fdri_file_damage(f, "bin at %u (location %u, %s depth %u band %u seq %u) is damaged: %u records lost", b->off,
                         l->id, fdr_class_name(p->class_), p->depth, p->band, b->seq, b->records);
    }
}

static enum fdr_verdict verify(struct fdr_file *f, bool unread)
{
    pthread_mutex_lock(&f->lock);
    if (!f->verified && !f->headers_only)
        for (size_t i = 0; i < f->location_count; i++)
            for (size_t j = 0; j < f->location[i].part_count; j++)
                verify_part(f, &f->location[i], &f->location[i].part[j], unread);
    f->verified |= unread;
    pthread_mutex_unlock(&f->lock);
    if (fdri_file_memory_short(f)) return FDR_UNREADABLE;
    return f->sound ? FDR_WHOLE : FDR_DAMAGED;
}

enum fdr_verdict fdr_file_met(struct fdr_file *f)
{
    return f->job ? fdri_account_job_verdict(f, fdr_file_met) : verify(f, false);
}

enum fdr_verdict fdr_file_verify(struct fdr_file *f)
{
    if (f->job) return fdri_account_job_verdict(f, fdr_file_verify);
    const struct fdr_total *totals;
    const struct fdr_epoch_info *epochs;
    fdr_totals(f, &totals); /* reports damage of its own */
    if (!f->headers_only) fdr_epochs(f, &epochs);
    return verify(f, true);
}
