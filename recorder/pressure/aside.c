/* SPDX-License-Identifier: MIT */
/* FDR_PIN: the first moments stay. They end when their time is over, or when they hold a quarter of the location's fair
 * share. Then their partitions are set aside as they stand: sealed and out of the levels. Nobody gives back or claims
 * of them. Later records begin new partitions, whose seqs go on where those ended.
 *
 * So a list is still given back at its old end only, and the ledger is a sum over partitions, as before. Where a
 * partition gave something back already, nothing is set aside: it would be no beginning.
 *
 * Setting aside waits for a call that enters in a tick of its own, so no tick lies on both sides. Otherwise calls that
 * began in one tick might lack their parents. Nobody could tell which of them contain the calls that are still open. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/atomic.h"
#include "base/bits.h"
#include "bins/bins.h"
#include "bins/claims.h"
#include "bins/partition.h"
#include "format/arena/arena.h"
#include "recorder/memory/memory.h"
#include "recorder/pressure/recorder_pressure.h"
#include "recorder/recording.h"
#include "recorder/strategy_table.h"
#include "recorder/thread/arena_place.h"
#include "recorder/thread/thread.h"
#include "recorder/thread/thread_state.h"

static struct fdri_arena_part *first_of(const struct fdri_thread *t)
{
    return t->loc->parts_first ? fdri_thread_at(t, t->loc->parts_first) : NULL;
}
static struct fdri_arena_part *next_of(const struct fdri_thread *t, const struct fdri_arena_part *p)
{
    return p->next ? fdri_thread_at(t, p->next) : NULL;
}

/* Since the recording began; times of the caller's: since the location's first one. */
static bool time_is_over(const struct fdri_thread *t)
{
    const struct fdri_life_recorder *r = &fdri_life_recording;
    uint64_t now = t->loc->last_tick >> t->shift, start = t->loc->start_tick;
    uint64_t pin = (t->ticks ? fdri_life_ns_to_ticks(r->settings.pin_ns) : r->settings.pin_ns) >> t->shift;
    uint64_t began = r->first_tick >> t->shift;
    if (!t->times_given && began <= start) start = began;
    return now >= start && now - start >= pin;
}

static bool share_is_used(const struct fdri_thread *t)
{
    uint64_t live = fdri_bits_max(fdri_atomic_load_relaxed(&fdri_life_recording.shares.live), 1);
    return fdri_atomic_load_relaxed(&t->loc->bins_held) * live * 4 >= fdri_life_recording.arena.super->bins_total;
}

static bool is_whole(const struct fdri_thread *t)
{
    if (t->loc->floor_tick) return false;
    for (const struct fdri_arena_part *p = first_of(t); p; p = next_of(t, p)) {
        uint32_t head = (uint32_t)fdri_atomic_load_acquire(&p->list_head); /* A:claim */
        if (head ? fdri_bins_bin(&fdri_life_recording.arena, head)->first_index : p->total) return false;
    }
    return true;
}

static void set_aside(struct fdri_thread *t, struct fdri_arena_part *p, bool cut)
{
    fdri_bins_part_seal(&fdri_life_recording.arena, p);
    bool whole = p->class_ != FDRI_ARENA_CLASS_REGION || p->depth < 2 || !fdri_thread_level(t, p->depth - 1u)->lost;
    p->pin_flags = (uint16_t)((cut ? FDRI_ARENA_PINNED_EARLY : 0) | (whole ? FDRI_ARENA_PINNED_PARENTS : 0));
    p->pin_tick = t->loc->last_tick >> t->shift;
    fdri_atomic_signal_fence();
    p->flags |= FDRI_ARENA_PART_PINNED;
    fdri_leave_slots(t, p);
    /* one of points waits for the partition that follows */
    if (p->class_ == FDRI_ARENA_CLASS_REGION) fdri_memory_give_table(t, p, 0);
    t->pinned_units += fdri_atomic_load_relaxed(&p->bytes);
}

void fdri_aside_look(struct fdri_thread *t)
{
    if (t->pinning_done || t->pinning_due || t->loc->samples_off || !fdri_strategy_gives()) return;
    if (!time_is_over(t) && !share_is_used(t)) return;
    t->pinning_due = true;
    fdri_thread_update_soft(t);
}

static void set_all_aside(struct fdri_thread *t)
{
    for (struct fdri_arena_part *p = first_of(t); p; p = next_of(t, p))
        if ((uint32_t)p->list_head && !(p->flags & FDRI_ARENA_PART_PINNED)) set_aside(t, p, t->pinning > 1);
}

static void end_setting(struct fdri_thread *t)
{
    fdri_bins_claim_unpin(t->loc);
    t->victim = NULL;
    fdri_thread_update_soft(t);
    if (t->pinned_units) {
        fdri_memory_relink_slots(t);
        fdri_strategy_pinned(t);
    }
    fdri_atomic_signal_fence();
    t->pinning = 0;
}

void fdri_aside(struct fdri_thread *t, uint64_t tick)
{
    if (t->loc->last_tick >> t->shift == tick >> t->shift) return;
    bool over = time_is_over(t), alone = fdri_bins_claim_pin(&fdri_life_recording.arena, t->loc);
    bool whole = alone && is_whole(t);
    if (whole) t->pinning = over ? 1 : 2;
    fdri_atomic_signal_fence(); /* left from here on it goes on where it was */
    t->pinning_done = alone;
    t->pinning_due = !alone;
    if (whole) set_all_aside(t);
    end_setting(t);
}

void fdri_aside_left(struct fdri_thread *t)
{
    if (!t->pinning) return;
    t->pinning_done = true; /* first: once more, and there would be two of a kind */
    t->pinning_due = false;
    fdri_atomic_signal_fence();
    if (fdri_bins_claim_pin(&fdri_life_recording.arena, t->loc) && is_whole(t)) set_all_aside(t);
    end_setting(t);
}

struct fdri_arena_part *fdri_aside_of(struct fdri_thread *t, uint32_t depth, uint32_t class_, uint32_t band)
{
    for (struct fdri_arena_part *p = t->pinned_units ? first_of(t) : NULL; p; p = next_of(t, p))
        if (p->flags & FDRI_ARENA_PART_PINNED && p->depth == depth && p->class_ == class_ && p->band == band) return p;
    return NULL;
}
