/* SPDX-License-Identifier: MIT */
/* Strategy `last`: time is divided into epochs, and the oldest epoch goes as a whole. It counts as reduced when the
 * location's floor rises, in one store. Its bins, possibly thousands, are given back as they are needed, so one step
 * handles a few. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/atomic.h"
#include "base/bits.h"
#include "bins/bins.h"
#include "bins/partition.h"
#include "bins/pieces.h"
#include "format/arena/arena.h"
#include "policies/policies.h"
#include "recorder/pressure/recorder_pressure.h"
#include "recorder/recording.h"
#include "recorder/strategy/reduce.h"
#include "recorder/strategy_table.h"
#include "recorder/thread/arena_place.h"
#include "recorder/thread/thread_state.h"

enum { EPOCHS_WANTED = 12, BINS_A_STEP = 16 };

/* There is no place for one more epoch boundary: every second one is removed. So epochs grow with the location, and
 * none holds most of its memory. If their number is odd, the newest joins the current one. */
static void merge_pairs(struct fdri_arena_location *l)
{
    uint32_t floor = l->epoch_floor, closed = l->epoch - floor, kept = 0;
    for (uint32_t i = 2; i <= closed; i += 2) {
        kept++;
        l->cut_tick[(floor + kept) % FDRI_ARENA_EPOCH_CUTS] = l->cut_tick[(floor + i) % FDRI_ARENA_EPOCH_CUTS];
    }
    l->epoch = floor + kept;
    if (closed & 1) l->epoch_bins += fdri_atomic_load_relaxed(&l->bins_held) / (closed + 1);
}

/* Begins a new epoch if it is time. */
static void opened(struct fdri_thread *t, struct fdri_arena_part *p)
{
    struct fdri_arena_location *l = t->loc;
    if (!fdri_policies_begins_epoch(
            l->epoch_bins,
            fdri_bits_max(fdri_atomic_load_relaxed(&l->bins_held), fdri_life_recording.arena.super->bins_total / 16),
            EPOCHS_WANTED))
        return;
    if (l->epoch - l->epoch_floor >= FDRI_ARENA_EPOCH_CUTS - 1) {
        merge_pairs(l);
        return;
    }
    l->cut_tick[(l->epoch + 1) % FDRI_ARENA_EPOCH_CUTS] = p->last_tick;
    fdri_atomic_signal_fence();
    l->epoch++;
    l->epoch_bins = 0;
}

/* Pops the oldest bin of p if it is below the floor, or a run of such bins; 0: none. */
static uint32_t pop_dead(struct fdri_thread *t, struct fdri_arena_part *p, uint32_t run, uint32_t *size_log2,
                         struct fdri_bins_given *given)
{
    struct fdri_bins_arena *a = &fdri_life_recording.arena;
    uint64_t floor = t->loc->floor_tick;
    if (run < 2 || !fdri_ready_give(t, p, floor, run, false, given))
        return fdri_bins_part_pop_older(a, p, floor, size_log2, given);
    fdri_ready_ahead(t, p, floor);
    *size_log2 = a->bin_log2;
    return fdri_ready_first(t);
}

/* Pops the next bin below the floor of any partition; 0: none. */
static uint32_t next_dead(struct fdri_thread *t, uint32_t run, uint32_t *size_log2, struct fdri_bins_given *given)
{
    while (t->floor_part_off) {
        struct fdri_arena_part *p = fdri_thread_at(t, t->floor_part_off);
        if (p->open_off && p->last_tick <= t->loc->floor_tick) fdri_bins_part_seal(&fdri_life_recording.arena, p);
        uint32_t off = (uint32_t)fdri_atomic_load_relaxed(&p->list_head) && !(p->flags & FDRI_ARENA_PART_PINNED)
                           ? pop_dead(t, p, run, size_log2, given)
                           : 0;
        if (off) return off;
        t->floor_part_off = p->next;
    }
    return 0;
}

/* Takes a piece from the bins below the floor. Small bins are collected until they suffice, or until one step has given
 * enough. */
static uint32_t take_dead(struct fdri_thread *t, const struct fdri_arena_part *asking, uint32_t size_log2,
                          uint32_t *got)
{
    struct fdri_arena_location *l = t->loc;
    struct fdri_bins_arena *a = &fdri_life_recording.arena;
    struct fdri_bins_given given = FDRI_STRATEGY_NOTHING_GIVEN;
    uint32_t off = 0, have = 0, most = asking ? BINS_A_STEP : 1, run = fdri_ready_run(t, asking);
    for (uint32_t i = 0; i < most && (off = next_dead(t, run, &have, &given)) && have < size_log2; i++) {
        fdri_bins_piece_give(a, l, off, have);
        off = 0;
    }
    if (given.bytes)
        fdri_strategy_reduction_note(t, FDRI_ARENA_STEP_EPOCH, FDRI_POLICIES_REASON_OLDEST, NULL, &given, false);
    *got = size_log2;
    if (off) fdri_bins_piece_split(a, l, off, have, size_log2);
    else if (given.bytes && !(off = fdri_bins_piece_take(a, l, size_log2)))
        off = fdri_bins_piece_any(a, l, size_log2, 9, got);
    return off;
}

static const struct fdri_policies_chain by_age = {{0}, {0}};

/* The partition whose oldest bin is the oldest. If none has a full bin, the one that wrote longest ago. */
static struct fdri_arena_part *oldest_part(struct fdri_thread *t, const struct fdri_arena_part *asking)
{
    const uint64_t none[FDRI_ARENA_CLASS_COUNT] = {0};
    struct fdri_arena_part *best = NULL, *idle = NULL;
    struct fdri_policies_part_view best_view = {0};
    for (struct fdri_arena_part *p = fdri_strategy_part_at(t, t->loc->parts_first); p;
         p = fdri_strategy_part_at(t, p->next)) {
        enum fdri_policies_reason why;
        if (!(uint32_t)fdri_atomic_load_relaxed(&p->list_head) || p->flags & FDRI_ARENA_PART_PINNED) continue;
        if (p != asking && p != t->awaiting_record && (!idle || p->last_tick < idle->last_tick)) idle = p;
        struct fdri_policies_part_view v = fdri_strategy_view_of(p, none);
        if (!fdri_bins_part_has_sealed(p) || (best && !fdri_policies_precedes(&by_age, &v, &best_view, &why))) continue;
        best = p;
        best_view = v;
    }
    if (!best && idle) fdri_bins_part_seal(&fdri_life_recording.arena, idle);
    return best ? best : idle;
}

/* Only the current epoch is left: pops the oldest bin of any partition. */
uint32_t fdri_strategy_pop_oldest(struct fdri_thread *t, const struct fdri_arena_part *asking, uint32_t size_log2,
                                  uint32_t *got)
{
    struct fdri_arena_location *l = t->loc;
    struct fdri_bins_given given = FDRI_STRATEGY_NOTHING_GIVEN;
    struct fdri_arena_part *p = oldest_part(t, asking);
    bool newest = p && (uint32_t)fdri_atomic_load_relaxed(&p->list_head) == p->open_off;
    uint32_t have, off = p ? fdri_bins_part_pop(&fdri_life_recording.arena, p, &have, &given) : 0;
    if (!off) return 0;
    fdri_strategy_given(t, p, newest, given.to_tick, have);
    fdri_strategy_reduction_note(t, FDRI_ARENA_STEP_EPOCH, FDRI_POLICIES_REASON_OLDEST, NULL, &given, false);
    if (have > size_log2) fdri_bins_piece_split(&fdri_life_recording.arena, l, off, have, size_log2);
    *got = have < size_log2 ? have : size_log2;
    return off;
}

static uint32_t room(struct fdri_thread *t, struct fdri_arena_part *asking, uint32_t size_log2, uint32_t *got)
{
    struct fdri_arena_location *l = t->loc;
    for (;;) {
        uint32_t off = take_dead(t, asking, size_log2, got);
        if (off) return off;
        if (l->epoch_floor >= l->epoch) return fdri_strategy_pop_oldest(t, asking, size_log2, got);
        l->floor_tick = fdri_bits_max(l->floor_tick, l->cut_tick[(l->epoch_floor + 1) % FDRI_ARENA_EPOCH_CUTS]);
        fdri_atomic_signal_fence();
        l->epoch_floor++;
        t->floor_part_off = l->parts_first;
    }
}

static const struct fdri_policies_chain *oldest_first(void) { return &by_age; }

const struct fdri_strategy fdri_strategy_last = {
    .room = room, .opened = opened, .claimable = oldest_first, .samples = FDRI_STRATEGY_SAMPLES_BY_AGE};
