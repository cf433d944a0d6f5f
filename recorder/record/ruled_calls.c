/* SPDX-License-Identifier: MIT */
/* Calls that a rule leaves out, the less frequent ways. */
#include "recorder/record/ruled_calls.h"

#include <stdbool.h>
#include <stdint.h>

#include "format/arena/arena.h"
#include "recorder/names/names.h"
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

/* Does the rule leave out the next call of r, so that it needs no frame? Counts it, if so and if the rule counts. */
static bool leaves_out(const struct fdri_thread *t, const struct fdri_record_ruled *r)
{
    struct fdri_arena_row *row = fdri_thread_at(t, r->row_off);
    if (r->mode == FDRI_NAMES_RULE_EXCLUDE) return true;
    if (r->mode == FDRI_NAMES_RULE_MIN || t->ruled_open || !would_skip(row, r)) return false;
    return fdri_record_ruled_skips(row, r->mode, r->count);
}

bool fdri_record_ruled_leave_out(struct fdri_thread *t, uint64_t key)
{
    struct fdri_arena_location *l = t->loc;
    if (l->busy) return false;
    fdri_record_mark_busy(l);
    const struct fdri_record_ruled *r = fdri_record_ruled_find(t, key);
    if (!fdri_record_ruled_is(t, r, key) || l->depth >= t->kept_levels || !leaves_out(t, r))
        return fdri_record_not_busy(l);
    t->ruled_level = fdri_record_child_of(t, t->top, l->depth);
    t->ruled_around = t->top;
    fdri_record_ruled_count(t, r);
    return true;
}

void fdri_record_ruled_recount(struct fdri_thread *t)
{
    t->ruled_open = 0;
    for (uint32_t d = t->loc->depth; d; d--)
        t->ruled_open += (fdri_thread_level(t, d)->flags & FDRI_ARENA_LEVEL_NTH) != 0;
}
