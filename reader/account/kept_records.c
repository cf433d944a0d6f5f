/* SPDX-License-Identifier: MIT */
/* Decides which records count as kept, and how far a location reaches.
 *
 *   T(d, b)  newest leave given back from the partition (depth d, band b)
 *   a call of (d, b) is kept  <=>  leave > max of T(d', b') over d' <= d, b' >= b other than itself
 *
 * So every kept call's ancestors are kept. Stored calls that are not kept count as reduced.
 *
 * Pinned partitions form their own closure: everything else is younger. Nothing is given back of them while their
 * thread lives. Of the ancestors of a pinned call, only those that were still open at the pinning may be missing. */
#include "base/bits.h"
#include "format/arena/arena.h"
#include "reader/account/account.h"
#include "reader/events/cursor.h"
#include "reader/events/events.h"
#include "reader/events/sample_events.h"
#include "reader/file/file.h"

#include <fdr/reader.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

static uint64_t later_of(uint64_t a, uint64_t b) { return a > b ? a : b; }

/* Records in bins are good; no damaged word may hide them. So a floor later than the newest event does not count. In
 * a moving location, the floor was copied before the tail. */
uint64_t fdri_account_floor(const struct fdri_file_location *l)
{
    uint64_t floor = l->raw.floor_tick, newest = l->raw.last_tick;
    if (l->moving) newest = l->in_tail ? later_of(newest, l->tail.end_tick) : UINT64_MAX;
    return l->block_damaged || floor > newest >> l->clock.shift || floor > l->clock.stored_max ? 0 : floor;
}

/* Sets min_leave for the pinned partitions, or for all others. Events that left up to `all` are not kept. Partitions
 * are sorted by class, then depth, then band; region calls come first. */
static void keep_rule(struct fdri_file_location *l, bool pinned, uint64_t all)
{
    uint64_t above[FDRI_ARENA_BANDS] = {0}; /* greatest floor over shallower depths and bands >= the index */
    size_t i = 0;
    while (i < l->part_count && l->part[i].class_ == FDRI_ARENA_CLASS_REGION) {
        uint64_t here[FDRI_ARENA_BANDS] = {0};
        size_t first = i;
        for (; i < l->part_count && l->part[i].class_ == FDRI_ARENA_CLASS_REGION &&
               l->part[i].depth == l->part[first].depth;
             i++)
            if (l->part[i].pinned == pinned) here[l->part[i].band] = l->part[i].floor;
        for (size_t j = first; j < i; j++) {
            uint64_t floor = later_of(above[l->part[j].band], all);
            for (uint32_t b = l->part[j].band + 1u; b < FDRI_ARENA_BANDS; b++) floor = later_of(floor, here[b]);
            if (l->part[j].pinned == pinned) l->part[j].min_leave = floor ? floor + 1 : 0;
        }
        for (uint32_t b = 0; b < FDRI_ARENA_BANDS; b++)
            for (uint32_t longer = b; longer < FDRI_ARENA_BANDS; longer++) above[b] = later_of(above[b], here[longer]);
    }
    for (; i < l->part_count; i++)
        if (l->part[i].pinned == pinned) l->part[i].min_leave = all ? all + 1 : 0;
}

void fdri_account_keep_rule(struct fdri_file_location *l)
{
    keep_rule(l, true, 0);
    keep_rule(l, false, fdri_account_floor(l));
    fdri_events_keep_samples(l);
}

/* Sets first_tick to the enter of the oldest kept record. */
static bool find_oldest_kept(struct fdr_file *f, struct fdri_file_location *l, struct fdri_file_part *p,
                             struct fdri_events_cursor *c)
{
    fdri_events_cursor_init(c, f, l, p, p->min_leave, 1);
    bool any = fdri_events_cursor_fill(c);
    if (any) p->first_tick = c->at->enter;
    fdri_events_cursor_done(c);
    return any;
}

/* Sets last_tick to the leave of the newest record. It lies in the newest good bin that has records. */
static bool find_newest_kept(struct fdr_file *f, struct fdri_file_location *l, struct fdri_file_part *p)
{
    uint64_t gone;
    for (uint32_t i = p->bin_count; i-- > 0;)
        if (fdri_file_bin_read(f, l, &p->bin[i], 0, &gone, &p->last_tick) && p->bin[i].records)
            return p->last_tick >= p->min_leave;
    return false;
}

/* Number of records ever stored in partition p. */
static uint64_t stored_ever(const struct fdri_file_part *p)
{
    const struct fdri_file_bin *b = p->bin_count ? &p->bin[p->bin_count - 1] : NULL;
    return b ? b->first_index + b->records : p->given_back;
}

uint64_t fdri_account_stored_ever(const struct fdr_file *f, const struct fdri_file_location *l, uint32_t depth)
{
    const struct fdri_arena_level *v = fdri_file_level(f, l, depth);
    if (!v || l->block_damaged || l->parts_missing) return UINT64_MAX;
    uint64_t sum = v->filtered + v->reduced_gate + v->lost;
    for (uint32_t i = 0; i < FDRI_ARENA_BANDS * 2; i++) {
        const struct fdri_file_part *p = fdri_file_part(l, FDRI_ARENA_CLASS_REGION, depth, i / 2, i & 1);
        if (p && (p->rewind_records || p->tail_gap || p->unaccounted)) return UINT64_MAX;
        if (p) sum += stored_ever(p);
    }
    return sum;
}

/* Number of calls presented at this depth that are in no account, because they are open. UINT64_MAX: unknown. */
static uint64_t open_unaccounted(const struct fdr_file *f, const struct fdri_file_location *l, uint32_t depth)
{
    uint64_t sum = fdri_account_stored_ever(f, l, depth);
    return sum == UINT64_MAX ? sum : fdri_file_level(f, l, depth)->presented - sum;
}

/* Is the floor the only sign that a call of this depth ended after the frame began, while the accounts count one
 * open call? Then the frame is right: an operation that a handler left by longjmp moved the partition's newest tick
 * but stored nothing. */
static bool open_for_all_that(const struct fdr_file *f, const struct fdri_file_location *l,
                              const struct fdri_file_part *p, const struct fdri_file_frame *frame)
{
    return !l->moving && !l->stopped && fdri_events_frame_kept(frame) && (!p->any || p->last_tick <= frame->enter) &&
           open_unaccounted(f, l, p->depth) == 1;
}

/* A completed record has priority over a frame. A frame counts only if everything completed at its depth ended
 * before it began, and the frames around it count. A call that ended in the frame's first tick came before it, or is
 * the frame itself: killed before the pop. The accounts tell the two apart. snapshot_cut.c does this for a moving
 * location. */
static void believe_frames(const struct fdr_file *f, struct fdri_file_location *l)
{
    for (size_t i = 0; i < l->part_count; i++) {
        const struct fdri_file_part *p = &l->part[i];
        if (p->class_ != FDRI_ARENA_CLASS_REGION || p->depth > l->frame_count) continue;
        uint64_t newest_leave = p->any && p->last_tick > p->floor ? p->last_tick : p->floor;
        const struct fdri_file_frame *frame = &l->frame[p->depth - 1];
        if (frame->flags & FDRI_ARENA_LEVEL_UNTIMED || newest_leave < frame->enter) continue;
        /* then the frame's call is in an account already */
        bool own = fdri_events_frame_kept(frame) && !open_unaccounted(f, l, p->depth);
        if ((newest_leave > frame->enter && !open_for_all_that(f, l, p, frame)) || (own && !l->stopped))
            l->frame_count = p->depth - 1u;
    }
}

/* Without payloads, the bin headers and the partition's block give the range. */
static bool range_from_headers(struct fdr_file *f, const struct fdri_file_location *l, struct fdri_file_part *p)
{
    const struct fdri_arena_part *raw = (const void *)fdri_file_meta_at(f, p->off, FDRI_ARENA_META_PART, l->id,
                                                                        sizeof *raw);
    if (!p->bin_count || !raw) return false;
    p->first_tick = p->bin[0].base_tick;
    p->last_tick = raw->last_tick;
    return true;
}

void fdri_account_reach(struct fdr_file *f, struct fdri_file_location *l)
{
    struct fdri_events_cursor *c = fdri_file_malloc(sizeof *c);
    if (!c) return;
    uint64_t from = UINT64_MAX, to = 0;
    for (size_t i = 0; i < l->part_count; i++) {
        struct fdri_file_part *p = &l->part[i];
        p->any = f->headers_only ? range_from_headers(f, l, p)
                                 : find_newest_kept(f, l, p) && find_oldest_kept(f, l, p, c);
        if (!p->any) continue;
        if (p->first_tick < from) from = p->first_tick;
        if (p->last_tick > to) to = p->last_tick;
    }
    free(c);
    if (!f->headers_only) { /* calls that were open at the copy or the death */
        if (l->moving && !l->stopped) fdri_events_snapshot_cut(f, l);
        else believe_frames(f, l);
    }
    for (uint32_t i = 0; i < l->frame_count; i++) {
        if (!fdri_events_frame_kept(&l->frame[i])) continue;
        if (l->frame[i].enter < from) from = l->frame[i].enter;
        if (l->frame[i].enter > to) to = l->frame[i].enter;
    }
    bool none = from == UINT64_MAX;
    if (l->moving && !none) to = fdri_bits_min(to, fdri_bits_max(l->cut, from)); /* later events are not shown */
    uint64_t start = l->raw.start_tick <= l->clock.stored_max ? l->raw.start_tick : 0;
    l->from_tick = none ? start : from;
    l->end_tick = none ? start : to;
    l->info.from_ns = fdri_file_ns(&l->clock, l->from_tick);
    l->info.to_ns = fdri_file_ns(&l->clock, l->end_tick);
    l->careful = fdri_events_may_lack_parents(f, l);
}
