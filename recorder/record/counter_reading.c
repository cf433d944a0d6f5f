/* SPDX-License-Identifier: MIT */
/* Chooses the depth of readings: events of a series, such as counts that are read again and again.
 *
 * Evenly spread readings say nearly as much as all of them. So readings are thinned by powers of two, as samples are
 * (sample.c). The level of a reading is the highest bit in which its number differs from the number before. So the
 * levels from k on contain one reading for each 2^k.
 *
 * Their partitions are those of user events at depths without calls: the lower the level, the deeper. The rule of
 * policies/ for user events gives the deepest back first, so the lowest level goes first. Under `telescope` it goes
 * from the oldest tiers, and claimers take it first, too. `whole` takes a whole level at once. The first and the last
 * reading of a series have depth 0 and stay longest. */
#include <stdbool.h>
#include <stdint.h>

#include "base/atomic.h"
#include "base/bits.h"
#include "format/arena/arena.h"
#include "policies/policies.h"
#include "recorder/recording.h"
#include "recorder/memory/memory.h"
#include "recorder/record/record.h"
#include "recorder/strategy_table.h"
#include "recorder/thread/arena_place.h"
#include "recorder/thread/thread.h"
#include "recorder/thread/thread_state.h"

static bool levelled(void) { return fdri_strategy_now()->samples >= FDRI_STRATEGY_SAMPLES_BY_LEVEL; }

/* Prepares the location for readings. Not if it has user events stored inside of calls: these use the depths. */
static bool begin(struct fdri_thread *t)
{
    struct fdri_arena_location *l = t->loc;
    if (l->flags & FDRI_ARENA_LOCATION_READINGS) return true;
    for (uint32_t off = l->parts_first; off;) {
        const struct fdri_arena_part *p = fdri_thread_at(t, off);
        if (p->class_ == FDRI_ARENA_CLASS_USER && p->depth) return false;
        off = p->next;
    }
    while (fdri_arena_levels_in(l->level_blocks) < FDRI_ARENA_READING_DEPTHS)
        if (!fdri_thread_grow_levels(t)) return false;
    fdri_atomic_store_relaxed(&l->flags, l->flags | FDRI_ARENA_LOCATION_READINGS);
    return true;
}

static bool ready(struct fdri_thread *t, uint32_t depth)
{
    struct fdri_arena_level_points *points = fdri_record_points_of(t, depth);
    return points &&
           fdri_memory_part_ready(t, &points->by_class[FDRI_ARENA_CLASS_USER].part, depth, FDRI_ARENA_CLASS_USER);
}

/* Without memory for another level, rarer readings are stored among less rare ones. */
uint32_t fdri_record_reading_depth(struct fdri_thread *t, uint64_t before, uint64_t number)
{
    if (t->loc->depth || before == number || !levelled() || !begin(t))
        return t->loc->flags & FDRI_ARENA_LOCATION_READINGS ? 0 : t->loc->depth;
    uint32_t level = fdri_policies_sample_level(before, number);
    uint32_t depth = FDRI_ARENA_READING_DEPTHS - (uint32_t)fdri_bits_min(level, FDRI_ARENA_READING_DEPTHS - 1);
    while (depth < FDRI_ARENA_READING_DEPTHS && !ready(t, depth)) depth++;
    return depth;
}
