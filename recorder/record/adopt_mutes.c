/* SPDX-License-Identifier: MIT */
/* A thread learns which regions are muted, or have a rule whose names came late. The flag GATED of a row, and the
 * entries of the row's functions in the cache of addresses, keep the fast path from the region. So its next enter takes
 * the slow path, and finds the rule. */
#include <stdbool.h>
#include <stdint.h>

#include "base/atomic.h"
#include "format/arena/arena.h"
#include "recorder/names/names.h"
#include "recorder/names/region_rules.h"
#include "recorder/record/record.h"
#include "recorder/record/rule_table.h"
#include "recorder/thread/arena_place.h"
#include "recorder/thread/thread_state.h"

static void adopt(struct fdri_thread *t, uint32_t row_off)
{
    struct fdri_arena_row *row = fdri_thread_at(t, row_off);
    uint32_t region = row->key & 0xffffffu;
    if (row->key >> 24 != FDRI_ARENA_DEF_REGION) return;
    bool ruled = fdri_names_is_ruled(region) || fdri_names_is_muted(region), gated = row->flags & FDRI_ARENA_ROW_GATED;
    if (ruled == gated) return;
    if (ruled) fdri_names_cache_drop(t, row_off);
    else fdri_record_ruled_drop(t, row_off);
    row->flags ^= FDRI_ARENA_ROW_GATED; /* last: a longjmp before it leaves the row to the next adoption */
}

void fdri_record_adopt_mutes(struct fdri_thread *t)
{
    uint32_t version = fdri_atomic_load_acquire(&fdri_names_mutes_version); /* A:mutes */
    for (uint32_t i = 0; i <= UINT32_MAX >> t->row_shift; i++)
        if (t->row_slot[i]) adopt(t, t->row_slot[i]);
    t->mutes_seen = version;
}
