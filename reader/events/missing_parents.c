/* SPDX-License-Identifier: MIT */
/* May a call be missing around calls that are shown? The fast traversal takes every call's parent to be stored.
 * Without one, it would end where the parent's depth ends; careful_stream.c does not. */
#include "base/bits.h"
#include "format/arena/arena.h"
#include "reader/events/cursor.h"
#include "reader/events/events.h"
#include "reader/file/file.h"

#include <fdr/reader.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

/* The kept calls of one depth, from the first enter to the last leave, and the open call. */
struct kept {
    uint64_t from, to;
    const struct fdri_file_frame *open;
};

static struct kept kept_range_of(const struct fdri_file_location *l, uint32_t depth)
{
    struct kept k = {.from = UINT64_MAX, .open = depth <= l->frame_count ? &l->frame[depth - 1] : NULL};
    for (uint32_t i = 0; i < FDRI_ARENA_BANDS; i++) {
        const struct fdri_file_part *p = fdri_file_part(l, FDRI_ARENA_CLASS_REGION, depth, i, false);
        if (!p || !p->any) continue;
        k.from = fdri_bits_min(k.from, p->first_tick);
        k.to = fdri_bits_max(k.to, p->last_tick);
    }
    return k;
}

/* The enter of the first call of partition p that leaves after `tick`; UINT64_MAX: none does. */
static uint64_t enter_behind(struct fdr_file *f, struct fdri_file_location *l, struct fdri_file_part *p, uint64_t tick,
                             struct fdri_events_cursor *c)
{
    fdri_events_cursor_init(c, f, l, p, fdri_bits_max(p->min_leave, tick + 1), 1);
    uint64_t enter = fdri_events_cursor_fill(c) ? c->at->enter : UINT64_MAX;
    fdri_events_cursor_done(c);
    return enter;
}

/* Every kept call's parent is kept (kept_records.c) or open. Does a call of partition p lie in none of the calls one
 * level up? Calls of one depth follow each other. So it suffices to look at the first call, the last, and the first
 * that leaves after the kept calls above. */
static bool has_call_outside_parents(struct fdr_file *f, struct fdri_file_location *l, struct fdri_file_part *p,
                                     struct fdri_events_cursor *c)
{
    struct kept above = kept_range_of(l, p->depth - 1u);
    if (!above.open) return p->first_tick < above.from || p->last_tick > above.to;
    if (p->first_tick < fdri_bits_min(above.from, above.open->enter)) return true;
    return p->last_tick > above.to && enter_behind(f, l, p, above.to, c) < above.open->enter;
}

/* In a live file, words that change with every event have no check. Damage may hide an open call, or let it begin
 * too late. The calls inside of it reveal that. */
static bool any_call_outside_parents(struct fdr_file *f, struct fdri_file_location *l)
{
    struct fdri_events_cursor *c = f->headers_only ? NULL : fdri_file_malloc(sizeof *c);
    bool any = false;
    for (size_t i = 0; c && !any && i < l->part_count && l->part[i].class_ == FDRI_ARENA_CLASS_REGION; i++)
        any = l->part[i].any && l->part[i].depth > 1 && has_call_outside_parents(f, l, &l->part[i], c);
    free(c);
    return any;
}

/* Was a call open that is not readable any more? */
static bool open_lost(const struct fdri_file_location *l)
{
    /* the calls open at the stop are unknown */
    if (l->raw.flags & FDRI_ARENA_LOCATION_STOPPED && !l->stopped) return true;
    return l->stopped ? l->frozen_lost : l->live_count < l->raw.depth;
}

static bool partitions_need_it(const struct fdri_file_location *l)
{
    uint32_t deepest = 0;
    for (size_t i = 0; i < l->part_count && l->part[i].class_ == FDRI_ARENA_CLASS_REGION; i++) {
        const struct fdri_file_part *p = &l->part[i];
        if (p->pinned) return true;
        if (fdri_file_bins_missing(p) || p->tail_gap || p->floor_unknown) return true;
        if (p->bin_count && p->depth > deepest + 1 && p->depth > l->frame_count + 1) return true;
        if (p->bin_count) deepest = p->depth;
    }
    return false;
}

static bool levels_need_it(const struct fdr_file *f, const struct fdri_file_location *l)
{
    for (uint32_t d = 1; d <= fdri_arena_levels_in(l->raw.level_blocks); d++) {
        const struct fdri_arena_level *v = fdri_file_level(f, l, d);
        if (v && (v->lost || v->filtered)) return true;
        if (d <= l->frame_count && !fdri_events_frame_kept(&l->frame[d - 1])) return true;
    }
    return false;
}

bool fdri_events_may_lack_parents(struct fdr_file *f, struct fdri_file_location *l)
{
    if (!l->off || l->block_damaged || l->parts_missing || l->levels_lost || l->moving || l->raw.presented_overflow ||
        l->raw.pause || l->raw.flags & FDRI_ARENA_LOCATION_ANEW)
        return true;
    return open_lost(l) || partitions_need_it(l) || levels_need_it(f, l) || any_call_outside_parents(f, l);
}
