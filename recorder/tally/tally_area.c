/* SPDX-License-Identifier: MIT */
/* The tables of the recording. The first one is small: most programs need no more. When a key finds no place there, a
 * larger one is made, once. */
#include "recorder/tally/tally.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/atomic.h"
#include "base/bits.h"
#include "bins/bins.h"
#include "bins/slabs.h"
#include "format/arena/arena.h"
#include "format/tallies/tally_table.h"
#include "recorder/recording.h"

/* Shares of the buffer, in bytes: 1/1024 at first, 1/64 for the larger table, and 1/512 where no more is left. */
enum { FIRST_SHARE = 1024, LARGER_SHARE = 64, LATE_SHARE = 512, LEAST_LOG2 = 4, FIRST_LOG2_MOST = 10 };

static struct fdri_arena_tallies *first; /* NULL: none */

static uint32_t log2_of_share(uint64_t share)
{
    uint64_t rows = fdri_life_recording.arena.super->arena_bytes / share / sizeof(struct fdri_arena_tally);
    return rows < 1u << LEAST_LOG2 ? LEAST_LOG2 : fdri_bits_log2_floor(rows);
}

/* A table; 0: no room for it beside what is set aside for threads and for this. */
static uint32_t new_table(uint32_t log2)
{
    struct fdri_bins_arena *a = &fdri_life_recording.arena;
    uint32_t bytes = fdri_arena_tallies_bytes(log2);
    bool room = fdri_bins_meta_spares(a, &fdri_life_recording.slabs, FDRI_BINS_SPARE_TALLIES, bytes);
    uint32_t off = room ? fdri_bins_meta_take(a, FDRI_ARENA_META_TALLIES, bytes, UINT32_MAX) : 0;
    if (off) ((struct fdri_arena_tallies *)fdri_bins_at(a, off))->log2 = log2;
    return off;
}

void fdri_tally_start(void)
{
    struct fdri_bins_arena *a = &fdri_life_recording.arena;
    uint32_t off = new_table((uint32_t)fdri_bits_min(log2_of_share(FIRST_SHARE), FIRST_LOG2_MOST));
    first = off ? fdri_bins_at(a, off) : NULL;
    if (off)
        fdri_arena_section_add(a->super->section, FDRI_ARENA_SECTIONS, FDRI_ARENA_SECTION_TALLIES,
                               FDRI_ARENA_SECTION_TALLIES_VERSION, off);
}

static bool leaves_newcomers_their_bins(uint32_t bytes)
{
    const struct fdri_life_recorder *r = &fdri_life_recording;
    uint64_t free_bytes = (uint64_t)fdri_bins_free_count(&r->arena) * r->arena.super->bin_bytes;
    return free_bytes >= bytes + (uint64_t)r->bin_reserve * r->arena.super->bin_bytes;
}

/* Decides once and for all between a larger table and none. Of several threads here one decides; the table of another
 * one becomes free memory. */
static uint32_t grow(void)
{
    uint32_t log2 = log2_of_share(LARGER_SHARE), larger = 0;
    uint32_t off = leaves_newcomers_their_bins(fdri_arena_tallies_bytes(log2)) ? new_table(log2) : 0;
    if (!off) off = new_table(log2_of_share(LATE_SHARE));
    /* L:tally - the head of the table is complete before it is found */
    if (fdri_atomic_cas_acq_rel_u32(&first->larger, &larger, off ? off : FDRI_ARENA_TALLIES_NEVER))
        return off ? off : FDRI_ARENA_TALLIES_NEVER;
    if (off) fdri_bins_slab_give(&fdri_life_recording.arena, &fdri_life_recording.slabs, off);
    return larger;
}

struct fdri_arena_tally *fdri_tally_row(uint32_t kind, const void *key)
{
    if (!first) return NULL;
    struct fdri_tallies_key k = fdri_tallies_key(kind, key);
    struct fdri_arena_tally *row = fdri_tallies_row(first, &k, FDRI_ARENA_TALLY_PROBES_FIRST);
    if (row) return row;
    uint32_t larger = fdri_atomic_load_acquire(&first->larger); /* A:tally */
    if (!larger) larger = grow();
    if (larger != FDRI_ARENA_TALLIES_NEVER)
        row = fdri_tallies_row(fdri_bins_at(&fdri_life_recording.arena, larger), &k, FDRI_ARENA_TALLY_PROBES_FURTHER);
    if (!row) fdri_atomic_add_relaxed(&first->refused, (uint64_t)1);
    return row;
}
