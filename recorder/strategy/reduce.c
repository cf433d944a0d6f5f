/* SPDX-License-Identifier: MIT */
/* The log of reductions: the steps in which a location gave memory back. */
#include "base/atomic.h"
#include "base/bits.h"
#include "base/racy.h"
#include "bins/bins.h"
#include "bins/partition.h"
#include "format/arena/arena.h"
#include "policies/policies.h"
#include "recorder/memory/memory.h"
#include "recorder/pressure/recorder_pressure.h"
#include "recorder/recording.h"
#include "recorder/strategy/reduce.h"
#include "recorder/strategy/strategy.h"
#include "recorder/strategy_table.h"
#include "recorder/thread/arena_place.h"
#include "recorder/thread/thread_clock.h"
#include "recorder/thread/thread_state.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

void fdri_strategy_reserve_ledger(struct fdri_thread *t)
{
    struct fdri_arena_location *l = t->loc;
    if (!l->reductions_off)
        l->reductions_off = fdri_memory_meta_without_reduction(t, FDRI_ARENA_META_REDUCTIONS,
                                                               sizeof(struct fdri_arena_reductions_block));
}

/* The next free line, or the oldest one, whose numbers move to the dropped ones. The oldest line stays readable until
 * it is overwritten: a kill here leaves no empty line. */
static struct fdri_arena_reduction *new_line(struct fdri_thread *t)
{
    struct fdri_arena_location *l = t->loc;
    fdri_strategy_reserve_ledger(t);
    if (!l->reductions_off) return NULL;
    struct fdri_arena_reductions_block *b = fdri_thread_at(t, l->reductions_off);
    struct fdri_arena_reduction *line = &b->line[l->reduction_count % FDRI_ARENA_REDUCTION_LINES];
    if (l->reduction_count >= FDRI_ARENA_REDUCTION_LINES) {
        l->reductions_dropped_events += line->events;
        l->reductions_dropped_bytes += line->bytes;
    }
    return line;
}

static bool same_line(const struct fdri_arena_reduction *line, const struct fdri_arena_reduction *wanted)
{
    return line->step == wanted->step && line->class_ == wanted->class_ && line->band == wanted->band &&
           line->depth == wanted->depth;
}

/* The line that this step shares, or NULL: the newest one. If steps alternate between partitions, any existing line
 * will do. */
static struct fdri_arena_reduction *old_line(struct fdri_thread *t, const struct fdri_arena_reduction *wanted)
{
    struct fdri_arena_location *l = t->loc;
    if (!l->reduction_count || !l->reductions_off) return NULL;
    struct fdri_arena_reductions_block *b = fdri_thread_at(t, l->reductions_off);
    bool any = fdri_strategy_now()->steps_alternate;
    uint32_t count = any ? fdri_bits_min(l->reduction_count, FDRI_ARENA_REDUCTION_LINES) : 1;
    uint32_t newest = l->reduction_count - 1;
    if (any && same_line(&b->line[t->reduction_line % FDRI_ARENA_REDUCTION_LINES], wanted))
        return &b->line[t->reduction_line % FDRI_ARENA_REDUCTION_LINES];
    for (uint32_t i = 0; i < count; i++) {
        struct fdri_arena_reduction *line = &b->line[(newest - i) % FDRI_ARENA_REDUCTION_LINES];
        if (!same_line(line, wanted)) continue;
        t->reduction_line = newest - i;
        return line;
    }
    return NULL;
}

/* Counts a new line. Before the 32-bit count overflows it goes back to 48 lines: all lines exist then, and the next
 * index is the same. One store: a kill or a copy sees either value, and both mean the same. */
static void line_begun(struct fdri_thread *t)
{
    struct fdri_arena_location *l = t->loc;
    uint32_t next = l->reduction_count + 1;
    t->reduction_line = l->reduction_count;
    fdri_atomic_store_relaxed(&l->reduction_count,
                              next == FDRI_ARENA_REDUCTION_COUNT_END ? FDRI_ARENA_REDUCTION_LINES : next);
}

static void add_to_line(struct fdri_thread *t, const struct fdri_arena_reduction *wanted,
                        const struct fdri_bins_given *g, bool closed)
{
    struct fdri_arena_location *l = t->loc;
    struct fdri_arena_reduction *line = old_line(t, wanted);
    l->reduction_steps = fdri_bits_add_saturating(l->reduction_steps, 1);
    if (!line) {
        line = new_line(t);
        if (!line) {
            l->reductions_dropped_events += g->events;
            l->reductions_dropped_bytes += g->bytes;
            return;
        }
        *line = *wanted;
        line->tick = l->last_tick >> t->shift;
        line->from_tick = UINT64_MAX;
        line_begun(t);
    }
    line->events += g->events;
    line->bytes += g->bytes;
    line->steps = fdri_bits_add_saturating(line->steps, 1);
    line->gate_closed |= closed;
    if (g->from_tick < line->from_tick) line->from_tick = g->from_tick;
    if (g->to_tick > line->to_tick) line->to_tick = g->to_tick;
}

void fdri_strategy_reduction_note(struct fdri_thread *t, uint8_t step, uint8_t reason, const struct fdri_arena_part *p,
                                  const struct fdri_bins_given *g, bool closed)
{
    struct fdri_arena_reduction wanted = {.step = step,
                                          .reason = reason,
                                          .class_ = p ? p->class_ : 255,
                                          .band = p ? p->band : 0,
                                          .depth = p ? p->depth : 0};
    struct fdri_bins_given since = *g;
    since.from_tick = fdri_bits_max(g->from_tick, t->loc->start_tick); /* a partition's first bin begins at 0 */
    add_to_line(t, &wanted, &since, closed);
}

void fdri_strategy_note_claim(struct fdri_thread *t, uint32_t giver, const struct fdri_bins_given *given)
{
    struct fdri_arena_reduction wanted = {
        .step = FDRI_ARENA_STEP_CLAIM, .reason = FDRI_POLICIES_REASON_OLDEST, .class_ = 255, .depth = giver};
    add_to_line(t, &wanted, given, false);
}

FDRI_RACY struct fdri_policies_part_view fdri_strategy_view_of(const struct fdri_arena_part *p,
                                                               const uint64_t *class_bytes)
{
    uint32_t head = (uint32_t)p->list_head;
    return (struct fdri_policies_part_view){.depth = p->depth,
                                            .class_ = p->class_,
                                            .band = p->band,
                                            .class_bytes = class_bytes[p->class_],
                                            .oldest = head ? fdri_bins_bin(&fdri_life_recording.arena, head)->base_tick
                                                           : UINT64_MAX};
}

uint64_t fdri_strategy_reduction_took(struct fdri_thread *t, uint64_t since)
{
    uint64_t now = fdri_thread_tick_now(), took = now > since ? now - since : 0;
    if (took > t->loc->reduction_worst) fdri_atomic_store_relaxed(&t->loc->reduction_worst, took);
    return took;
}
