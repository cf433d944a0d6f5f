/* SPDX-License-Identifier: MIT */
/* Reads the rows of kind CALL one after the other, of the first table and of the larger one. */
#include "format/tallies/mpi_calls.h"

#include <string.h>

#include "base/atomic.h"
#include "format/arena/arena.h"
#include "format/tallies/tally_table.h"

enum { CALLS_SHIFT = 20, REGION_NONE = 0xfffff, NUMBER = 0xffff, KIND_SHIFT = 32, WAITS_FOR_NOTHING = 9 };

static const struct fdri_arena_tallies *table_at(const uint8_t *base, uint32_t off)
{
    return off && off != FDRI_ARENA_TALLIES_NEVER ? (const void *)(base + off) : NULL;
}

struct fdri_tallies_cursor fdri_tallies_first(const uint8_t *base)
{
    const struct fdri_arena_superblock *s = (const void *)base;
    struct fdri_tallies_cursor c = {.base = base};
    for (uint32_t i = 0; i < FDRI_ARENA_SECTIONS && !c.table; i++)
        if (fdri_arena_section_is(&s->section[i], FDRI_ARENA_SECTION_TALLIES))
            c.table = table_at(base, fdri_atomic_load_relaxed(&s->section[i].off));
    return c;
}

/* The larger table may be there by now. */
static void next_table(struct fdri_tallies_cursor *c)
{
    c->table = table_at(c->base, fdri_atomic_load_acquire(&c->table->larger)); /* A:tally */
    c->at = 0;
}

/* True if the row's thread is in a call, and all its words are of that call. */
static bool take(const struct fdri_arena_tally *row, struct fdri_tallies_mpi_call *call)
{
    uint8_t key[FDRI_ARENA_TALLY_KEY_BYTES];
    uint64_t word[FDRI_ARENA_TALLY_COUNTERS];
    uint32_t kind;
    if (fdri_atomic_load_relaxed(&row->key[0]) >> 48 != FDRI_ARENA_TALLY_CALL) return false;
    if (fdri_tallies_read(row, &kind, key) != FDRI_TALLIES_WHOLE) return false;
    for (int i = 0; i < 3; i++) word[i] = fdri_atomic_load_relaxed(&row->counter[i]);
    uint64_t number = word[0] >> CALLS_SHIFT & NUMBER;
    uint32_t region = word[0] & REGION_NONE;
    if (!region || (word[1] & NUMBER) != number || (word[2] & NUMBER) != number) return false;
    *call = (struct fdri_tallies_mpi_call){.region = region == REGION_NONE ? 0 : region,
                                           .since_ns = word[1] & ~(uint64_t)NUMBER,
                                           .waits = (word[2] >> KIND_SHIFT & 0xff) != WAITS_FOR_NOTHING};
    memcpy(&call->tid, key, sizeof call->tid);
    return true;
}

bool fdri_tallies_next_call(struct fdri_tallies_cursor *c, struct fdri_tallies_mpi_call *call)
{
    while (c->table) {
        while (c->at < 1u << c->table->log2)
            if (take(&c->table->row[c->at++], call)) return true;
        next_table(c);
    }
    return false;
}
