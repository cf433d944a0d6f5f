/* SPDX-License-Identifier: MIT */
/* Bands of duration become one where there is little memory for many partitions. Each partition has a table and an open
 * bin, half empty on average. With few bins each, that is most of the unused memory. Strategy `telescope` only.
 *
 * First all calls of band 1 go to the partitions of band 2, at every depth. Then both go to those of band 3, at last
 * all. So closure holds: a caller ends later, and is stored in the same band or a longer one, too. The old records of a
 * joined band age as before; none are added. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/atomic.h"
#include "base/bits.h"
#include "bins/bins.h"
#include "bins/partition.h"
#include "format/arena/arena.h"
#include "recorder/memory/memory.h"
#include "recorder/pressure/recorder_pressure.h"
#include "recorder/record/record.h"
#include "recorder/recording.h"
#include "recorder/shares/shares.h"
#include "recorder/strategy_table.h"
#include "recorder/thread/arena_place.h"
#include "recorder/thread/thread_state.h"

static const uint32_t joined_flag[] = {FDRI_ARENA_LOCATION_JOINED, FDRI_ARENA_LOCATION_JOINED_LONG,
                                       FDRI_ARENA_LOCATION_JOINED_ALL};
enum { STEPS = 3, LONGEST = FDRI_ARENA_BANDS - 1 };

static uint32_t steps_made(const struct fdri_arena_location *l)
{
    uint32_t n = 0;
    while (n < STEPS && l->flags & joined_flag[n]) n++;
    return n;
}

/* Where calls of this band go after so many steps. */
static uint32_t band_after(uint32_t steps, uint32_t band)
{
    if (steps == STEPS) return LONGEST;
    return band && band < LONGEST && steps ? steps + 1 : band;
}

/* The most it may come to hold: what it has and what is free, or its fair share where it can take that of others. Among
 * very many threads what is free is not for one alone. */
uint64_t fdri_join_room(const struct fdri_thread *t)
{
    uint32_t held = fdri_atomic_load_relaxed(&t->loc->bins_held),
             free = fdri_bins_free_count(&fdri_life_recording.arena);
    uint64_t bins = fdri_shares_crowded() ? fdri_bits_max(held, fdri_shares_fair_when_full())
                                          : fdri_bits_max(held + free, fdri_shares_fair());
    return bins * fdri_life_recording.arena.super->bin_bytes;
}

/* Bytes for each partition, its share of the accounts included, below which the next step is made. Programs show their
 * depths and durations early: what a sixteenth of the room has seen will be twice as much. And there will be a
 * partition at least for each call that is open. Among very many threads it cannot wait until there are: a partition
 * that was made stays. */
enum { CROWDED_PARTS = 12 };
static bool many_parts(const struct fdri_thread *t, uint32_t steps)
{
    static const uint64_t least_each[STEPS] = {16384, 12288, 7168};
    const struct fdri_arena_location *l = t->loc;
    bool crowded = fdri_shares_crowded();
    if (steps == STEPS || !fdri_strategy_now()->always_gives) return false;
    if (!l->epochs_off && !crowded) return false;
    uint64_t room = fdri_join_room(t), held = (uint64_t)fdri_atomic_load_relaxed(&l->bins_held)
                                              << fdri_life_recording.arena.bin_log2;
    uint64_t sure = l->level_blocks ? fdri_arena_levels_in(l->level_blocks - 1) : 0, parts = t->live_parts;
    uint64_t expected = fdri_bits_max(parts, sure) * (held < room / 16 ? 2 : 1);
    if (room >= fdri_bits_max(expected, crowded ? CROWDED_PARTS : 0) * least_each[steps]) return false;
    return crowded || held < room / 2 || !fdri_memory_may_take(t);
}

/* Nothing more is stored in it. */
static void end_part(struct fdri_thread *t, struct fdri_arena_part *p)
{
    fdri_bins_part_seal(&fdri_life_recording.arena, p);
    fdri_strategy_sealed(t, p);
    t->live_parts -= t->live_parts != 0;
    fdri_atomic_signal_fence();
    fdri_memory_give_table(t, p, 0);
}

static void join_depth(struct fdri_thread *t, uint32_t depth, uint32_t steps)
{
    struct fdri_arena_level *v = fdri_thread_level(t, depth);
    bool any = false;
    for (uint32_t band = 0; band < LONGEST; band++) {
        uint32_t off = v->part[band];
        if (band_after(steps, band) == band || off <= FDRI_THREAD_GATE_CLOSED) continue;
        v->part[band] = 0; /* whoever comes asks where to store */
        struct fdri_arena_part *p = fdri_thread_at(t, off);
        if (p->band == band) end_part(t, p);
        any |= p->band == band;
    }
    if (any && !v->part[band_after(steps, 1)]) t->live_parts++; /* it will be made: fdri_join_expected */
    if (steps < STEPS || v->zero_tick != t->loc->last_tick >> t->shift) return;
    /* calls of length 0 are numbered on from those that band 0 has of this tick: by the next bin's header */
    uint32_t off = v->part[LONGEST];
    if (off > FDRI_THREAD_GATE_CLOSED) {
        fdri_bins_part_seal(&fdri_life_recording.arena, fdri_thread_at(t, off));
        fdri_strategy_sealed(t, fdri_thread_at(t, off));
    }
    v->zero_gap = 1;
}

/* Records of this tick in band 0 are given back before records inside of the calls that follow: these calls say their
 * ordinals. */
static void number_calls(struct fdri_thread *t)
{
    fdri_record_number_open(t);
    t->tie_tick_end = (t->loc->last_tick >> t->shift) + 1;
    t->slow_depth = 0;
}

/* False: there is no need. */
static bool join(struct fdri_thread *t)
{
    struct fdri_arena_location *l = t->loc;
    uint32_t steps = steps_made(l);
    if (FDRI_LIKELY(!many_parts(t, steps))) return false;
    for (uint32_t depth = 1; depth <= fdri_arena_levels_in(l->level_blocks); depth++) join_depth(t, depth, steps + 1);
    if (steps + 1 == STEPS) number_calls(t);
    t->victim = NULL;
    fdri_atomic_signal_fence(); /* left before this is set it is done once more, and nobody has used it */
    fdri_atomic_store_relaxed(&l->flags, l->flags | joined_flag[steps]);
    return true;
}

void fdri_join_look(struct fdri_thread *t)
{
    while (join(t) && !t->live_parts) continue; /* of a newcomer that has little room none is made in vain */
}

void fdri_join_zero(struct fdri_thread *t, struct fdri_arena_part *p)
{
    p->last_tick = fdri_bits_max(p->last_tick, fdri_thread_level(t, p->depth)->zero_tick);
}

bool fdri_join_expected(const struct fdri_thread *t, const struct fdri_arena_part *p)
{
    uint32_t steps = steps_made(t->loc);
    if (!steps || p->class_ != FDRI_ARENA_CLASS_REGION) return false;
    for (uint32_t off = t->loc->parts_first; off;) {
        const struct fdri_arena_part *q = fdri_thread_at(t, off);
        off = q->next;
        if (q->class_ != FDRI_ARENA_CLASS_REGION || q->depth != p->depth || q->flags & FDRI_ARENA_PART_PINNED) continue;
        if (q->band != p->band && band_after(steps, q->band) == p->band) return true;
    }
    return false;
}

bool fdri_joined_away(const struct fdri_thread *t, const struct fdri_arena_part *p)
{
    return p->class_ == FDRI_ARENA_CLASS_REGION && band_after(steps_made(t->loc), p->band) != p->band;
}

uint32_t *fdri_joined_slot(struct fdri_thread *t, uint32_t depth, uint32_t class_, uint32_t *band)
{
    uint32_t goes = class_ == FDRI_ARENA_CLASS_REGION ? band_after(steps_made(t->loc), *band) : *band;
    if (goes == *band) return NULL;
    return &fdri_thread_level(t, depth)->part[*band = goes];
}

void fdri_leave_slots(struct fdri_thread *t, const struct fdri_arena_part *p)
{
    struct fdri_arena_level *v = fdri_thread_level(t, p->depth);
    uint32_t off = fdri_thread_offset_of(t, p), *slot = fdri_memory_slot_of(t, p);
    if (*slot == off) *slot = 0; /* there may be another one by now */
    for (uint32_t band = 0; p->class_ == FDRI_ARENA_CLASS_REGION && band < FDRI_ARENA_BANDS; band++)
        if (v->part[band] == off) v->part[band] = 0;
}
