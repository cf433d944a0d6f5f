/* SPDX-License-Identifier: MIT */
/* Strategy `whole`: applies the escalation chain to the whole run. A partition that becomes empty closes its gate for
 * ever. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/atomic.h"
#include "bins/bins.h"
#include "bins/partition.h"
#include "bins/pieces.h"
#include "format/arena/arena.h"
#include "policies/policies.h"
#include "recorder/memory/memory.h"
#include "recorder/pressure/recorder_pressure.h"
#include "recorder/record/record.h"
#include "recorder/recording.h"
#include "recorder/strategy/reduce.h"
#include "recorder/strategy_table.h"
#include "recorder/thread/thread_state.h"

/* The least valuable partition. `asking` counts even if it holds nothing yet. */
static struct fdri_arena_part *least_valuable(struct fdri_thread *t, const struct fdri_arena_part *asking)
{
    uint64_t class_bytes[FDRI_ARENA_CLASS_COUNT] = {0};
    struct fdri_arena_part *best = NULL;
    struct fdri_policies_part_view best_view = {0};
    const struct fdri_policies_chain *chain = &fdri_life_recording.settings.chain;
    for (struct fdri_arena_part *p = fdri_strategy_part_at(t, t->loc->parts_first); p;
         /* claimers change it */
         p = fdri_strategy_part_at(t, p->next))
        class_bytes[p->class_] += fdri_atomic_load_relaxed(&p->bytes);
    for (struct fdri_arena_part *p = fdri_strategy_part_at(t, t->loc->parts_first); p;
         p = fdri_strategy_part_at(t, p->next)) {
        if (p->flags & (FDRI_ARENA_PART_CLOSED | FDRI_ARENA_PART_PINNED) ||
            (!(uint32_t)fdri_atomic_load_relaxed(&p->list_head) && p != asking))
            continue; /* claimers change it */
        struct fdri_policies_part_view v = fdri_strategy_view_of(p, class_bytes);
        enum fdri_policies_reason why;
        if (best && !fdri_policies_precedes(chain, &v, &best_view, &why)) continue;
        best = p;
        best_view = v;
    }
    if (best) {
        uint32_t index;
        struct fdri_policies_verdict v = fdri_policies_step(chain, &best_view, &index);
        t->victim_step = (uint8_t)v.step;
        t->victim_reason = (uint8_t)v.reason;
    }
    return best;
}

/* Gives a level of counter readings back as a whole; the remaining readings are spread evenly. Returns a piece of its
 * bins, or 0: other locations took them. */
static uint32_t thin(struct fdri_thread *t, struct fdri_arena_part *v, uint32_t size_log2, uint32_t *got)
{
    struct fdri_bins_arena *a = &fdri_life_recording.arena;
    struct fdri_bins_given given = FDRI_STRATEGY_NOTHING_GIVEN;
    uint32_t have, off;
    fdri_bins_part_seal(a, v);
    fdri_memory_close_gate(t, v);
    while ((off = fdri_bins_part_pop(a, v, &have, &given))) fdri_bins_piece_give(a, t->loc, off, have);
    fdri_strategy_reduction_note(t, FDRI_ARENA_STEP_THIN, FDRI_POLICIES_REASON_OLDEST, v, &given, true);
    *got = size_log2;
    off = fdri_memory_may_take(t) ? fdri_bins_piece_take(a, t->loc, size_log2)
                                  : fdri_bins_piece_own(a, t->loc, size_log2);
    return off ? off : fdri_bins_piece_any(a, t->loc, size_log2, 9, got);
}

/* Gives a run of bins back; 0: none. The size of a partition does not matter for the choice, except in step `epoch`,
 * which therefore gives one bin at a time. */
static uint32_t pop_run(struct fdri_thread *t, struct fdri_arena_part *v, const struct fdri_arena_part *asking,
                        struct fdri_bins_given *given)
{
    const uint64_t tick = UINT64_MAX - 1;
    uint32_t most = fdri_ready_run(t, asking);
    if (most < 2 || t->victim_step == FDRI_POLICIES_BY_EPOCH || !fdri_ready_give(t, v, tick, most, false, given))
        return 0;
    fdri_ready_ahead(t, v, tick);
    return fdri_ready_first(t);
}

static uint32_t room(struct fdri_thread *t, struct fdri_arena_part *asking, uint32_t size_log2, uint32_t *got)
{
    struct fdri_bins_arena *a = &fdri_life_recording.arena;
    for (;;) { /* the loop ends: each round gives a bin back or closes a partition for ever */
        struct fdri_arena_part *v = t->victim ? t->victim : least_valuable(t, asking);
        if (!v) return 0;
        if (fdri_record_is_reading(t->loc, v->class_, v->depth)) {
            uint32_t off = thin(t, v, size_log2, got);
            t->victim = NULL;
            /* the caller's partition is closed: it must not get a bin */
            if (off && v == asking) fdri_bins_piece_give(a, t->loc, off, *got);
            if (v == asking) return 0;
            if (off) return off;
            continue;
        }
        bool closes = fdri_policies_closes_gate((enum fdri_policies_step)t->victim_step), closed = false;
        if (!fdri_bins_part_has_sealed(v)) {
            if (v == asking || !closes) fdri_bins_part_seal(a, v);
            if (closes) {
                fdri_bins_part_seal(a, v);
                fdri_memory_close_gate(t, v);
                closed = true;
            }
        }
        struct fdri_bins_given given = FDRI_STRATEGY_NOTHING_GIVEN;
        uint32_t have = a->bin_log2, off = pop_run(t, v, asking, &given);
        if (!off) off = fdri_bins_part_pop(a, v, &have, &given);
        t->victim = closes && !closed ? v : NULL;
        if (off || closed) fdri_strategy_reduction_note(t, t->victim_step, t->victim_reason, v, &given, closed);
        if (off) {
            if (have > size_log2) fdri_bins_piece_split(a, t->loc, off, have, size_log2);
            *got = have < size_log2 ? have : size_log2;
            if (v == asking && closed) { /* the caller's partition was just closed: it must not get a bin */
                fdri_bins_piece_give(a, t->loc, off, *got);
                return 0;
            }
            return off;
        }
        if (v == asking || !closes) return 0;
    }
}

static const struct fdri_policies_chain *by_chain(void) { return &fdri_life_recording.settings.chain; }

const struct fdri_strategy fdri_strategy_whole = {
    .room = room, .claimable = by_chain, .samples = FDRI_STRATEGY_SAMPLES_CLOSE_LEVELS};
