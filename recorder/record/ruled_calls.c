/* SPDX-License-Identifier: MIT */
/* Calls that a rule leaves out, the less frequent ways. */
#include "recorder/record/ruled_calls.h"

#include <stdbool.h>
#include <stdint.h>

#include "format/arena/arena.h"
#include "recorder/names/names.h"
#include "recorder/names/region_rules.h"
#include "recorder/record/rule_table.h"
#include "recorder/record/call_fast.h"
#include "recorder/record/record.h"
#include "recorder/thread/arena_place.h"
#include "recorder/thread/thread_state.h"

bool fdri_record_ruled_skips(struct fdri_arena_row *row, uint32_t mode, uint32_t count)
{
    uint32_t seen = row->flags >> FDRI_ARENA_ROW_SEEN_SHIFT, next = mode == FDRI_NAMES_RULE_FIRST ? seen : seen + 1;
    bool skips = mode == FDRI_NAMES_RULE_FIRST ? seen >= count || row->key == FDRI_ARENA_ROW_KEY_REST : seen != 0;
    if (mode == FDRI_NAMES_RULE_FIRST && !skips) next++;
    if (mode == FDRI_NAMES_RULE_EVERY && next >= count) next = 0;
    row->flags = (row->flags & ((1u << FDRI_ARENA_ROW_SEEN_SHIFT) - 1)) | next << FDRI_ARENA_ROW_SEEN_SHIFT;
    return skips;
}

static bool would_skip(const struct fdri_arena_row *row, const struct fdri_record_ruled *r)
{
    uint32_t seen = row->flags >> FDRI_ARENA_ROW_SEEN_SHIFT;
    return r->mode == FDRI_NAMES_RULE_FIRST ? seen >= r->count || row->key == FDRI_ARENA_ROW_KEY_REST : seen != 0;
}

/* Does the rule leave out the next call of r, so that it needs no time? Counts it, if so and if the rule counts. */
static bool leaves_out(const struct fdri_thread *t, const struct fdri_record_ruled *r)
{
    struct fdri_arena_row *row = fdri_thread_at(t, r->row_off);
    switch (r->mode) {
    case FDRI_NAMES_RULE_EXCLUDE: return true;
    case FDRI_NAMES_RULE_MUTED: return row->untimed < r->limit;
    case FDRI_NAMES_RULE_MIN: return false;
    default:
        if (fdri_record_ruled_frames(r) || !would_skip(row, r)) return false;
        return fdri_record_ruled_skips(row, r->mode, r->count);
    }
}

/* Does f's frame lie below that of the newest call that has one? Then no jump has left that call. */
static bool is_below(const struct fdri_thread *t, const struct fdri_record_function *f)
{
    return !f || f->frame == FDRI_RECORD_FRAME_UNKNOWN ||
           (t->top->address && f->frame - FDRI_NAMES_LEAST_FRAME >= t->top->frame);
}

/* Counts a call that gets a frame without a time: inside of one of its own region that has a frame, or after jumps. */
static bool nest(struct fdri_thread *t, const struct fdri_record_ruled *r, const struct fdri_record_function *f)
{
    struct fdri_arena_location *l = t->loc;
    struct fdri_arena_row *row = fdri_thread_at(t, r->row_off);
    if (!t->slow_depth || !is_below(t, f) || row->key == FDRI_ARENA_ROW_KEY_REST) return fdri_record_not_busy(l);
    struct fdri_arena_level *v = fdri_record_child_of(t, t->top, l->depth);
    fdri_record_level_place(v, f);
    fdri_record_push_untimed(t, v, row, row->key & 0xffffffu, FDRI_ARENA_LEVEL_NTH);
    fdri_atomic_store_release(&l->busy, 0); /* R:busy */
    return true;
}

bool fdri_record_ruled_leave_out(struct fdri_thread *t, fdr_region region, const struct fdri_record_function *f)
{
    uint64_t key = fdri_record_ruled_key(region, f ? f->address : 0);
    struct fdri_arena_location *l = t->loc;
    if (l->busy) return false;
    fdri_record_mark_busy(l);
    const struct fdri_record_ruled *r = fdri_record_ruled_find(t, key);
    if (!fdri_record_ruled_is(t, r, key) || l->depth >= t->kept_levels || !leaves_out(t, r))
        return fdri_record_not_busy(l);
    if (r->framed & ~FDRI_RECORD_RULED_SLOW) return nest(t, r, f);
    t->ruled_level = fdri_record_child_of(t, t->top, l->depth);
    t->ruled_around = t->top;
    fdri_record_ruled_count(t, r);
    return true;
}

bool fdri_record_ruled_leave(struct fdri_thread *t, fdr_region region, uint64_t address)
{
    const uint32_t flags = FDRI_ARENA_LEVEL_UNTIMED | FDRI_ARENA_LEVEL_NTH;
    struct fdri_arena_location *l = t->loc;
    if (l->busy) return false;
    fdri_record_mark_busy(l);
    if (!fdri_record_is_top(t->top, region, address, 0, flags)) return fdri_record_not_busy(l);
    fdri_record_close_flagged(t, l->last_tick);
    fdri_atomic_store_release(&l->busy, 0); /* R:busy */
    return true;
}
