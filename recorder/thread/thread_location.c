/* SPDX-License-Identifier: MIT */
/* Makes and gives back locations, for a thread's first event and for the accounts of ended threads. Blocks of locations
 * that were given back stay on the chain and become locations again. */
#define _GNU_SOURCE
#include <assert.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/bits.h"
#include "base/clock.h"
#include "base/stack/thread_stack.h"
#include "base/system/topology.h"
#include "bins/bins.h"
#include "bins/claims.h"
#include "bins/pieces.h"
#include "bins/pressure/bins_pressure.h"
#include "bins/slabs.h"
#include "export/view.h"
#include "format/arena/arena.h"
#include "recorder/ended/ended.h"
#include "recorder/memory/memory.h"
#include "recorder/names/names.h"
#include "recorder/names/region_rules.h"
#include "recorder/recording.h"
#include "recorder/strategy_table.h"
#include "recorder/thread/arena_place.h"
#include "recorder/thread/thread.h"
#include "recorder/thread/thread_clock.h"
#include "recorder/thread/thread_state.h"
#include "recorder/totals/totals.h"

enum { ROUNDS = 64, PATIENCE_NS = 20000000 };

void fdri_thread_update_soft(struct fdri_thread *t)
{
    struct fdri_arena_location *l = t->loc;
    uint32_t kept = fdri_arena_levels_in(l->level_blocks);
    bool slow = t->no_event_yet || !t->fast_clock || l->pause || l->overflow || t->walk.block ||
                l->flags & FDRI_ARENA_LOCATION_STOPPED;
    bool gaps = t->tie_tick_end ==
                (l->last_tick >> t->shift) + 1; /* a call of this tick may have to store its ordinal */
    t->slow_depth = slow || gaps || t->pinning_due ? 0 : t->depth_limit < kept ? t->depth_limit : kept;
    t->counted_levels = slow || kept < t->depth_limit ? 0 : kept - t->depth_limit;
    uint32_t quick = t->fast_clock && !l->overflow ? t->recording : 0;
    t->exact = t->shift ? 0 : quick;
    t->rounded_recording = t->shift ? quick : 0;
    t->unruled = t->ruled ? 0 : t->recording;
    t->unrounded_recording = t->ruled ? 0 : t->exact;
    t->kept_levels = l->overflow ? 0 : kept;
    t->ruled_around = NULL; /* there may be no level inside of it any more */
}

void fdri_thread_stop_recording(struct fdri_thread *t)
{
    t->recording = t->unrounded_recording = t->unruled = t->exact = t->rounded_recording = 0;
}

void fdri_thread_update_pause(struct fdri_thread *t)
{
    t->loc->pause = t->pauses || (t->wants_phase && !t->phases);
    fdri_thread_update_soft(t);
}

static bool add_level_block(struct fdri_thread *t)
{
    struct fdri_arena_location *l = t->loc;
    uint32_t off = 0;
    if (l->level_blocks >= FDRI_ARENA_LEVEL_BLOCKS_MAX) return false;
    if (fdri_strategy_levels(t, fdri_arena_levels_in(l->level_blocks + 1)))
        off = fdri_memory_meta(t, FDRI_ARENA_META_LEVELS,
                               fdri_arena_levels_bytes(fdri_arena_levels_of(l->level_blocks)));
    if (!off) return false;
    ((struct fdri_arena_levels_block *)fdri_thread_at(t, off))->index = l->level_blocks;
    l->levels_off[l->level_blocks] = off;
    fdri_atomic_signal_fence();
    l->level_blocks++;
    fdri_thread_update_soft(t);
    return true;
}

/* If nothing is ever given back, a level missing when memory is full never comes. Therefore a thread with deep calls
 * gets AHEAD blocks of levels more than it needs. */
enum { AHEAD_FROM = 2, AHEAD = 2 };
bool fdri_thread_grow_levels(struct fdri_thread *t)
{
    const struct fdri_arena_location *l = t->loc;
    bool may_stop = !fdri_strategy_gives() && !(l->flags & FDRI_ARENA_LOCATION_STOPPED);
    uint32_t ahead = may_stop && l->level_blocks >= AHEAD_FROM ? AHEAD : 0;
    if (l->level_blocks >= FDRI_ARENA_LEVEL_BLOCKS_MAX) return false;
    if (fdri_thread_search_pauses(&t->level_search, l->last_tick)) return false;
    t->search_barriers = 0;
    bool grown = add_level_block(t);
    fdri_thread_search_over(&t->level_search, grown, l->last_tick + t->pause_ticks);
    if (!grown) return false;
    while (ahead-- && add_level_block(t)) continue;
    return true;
}

void fdri_thread_set_clock(struct fdri_thread *t, bool ns)
{
    struct fdri_life_recorder *r = &fdri_life_recording;
    t->times_given = ns;
    t->ticks = r->ticks && !ns;
    if (!t->ticks) fdri_atomic_store_relaxed(&t->loc->flags, t->loc->flags | FDRI_ARENA_LOCATION_NS);
    fdri_atomic_fence_release(); /* R:unit - before every time in this unit */
    fdri_thread_clock_adopt(t);
    t->presented_tick = 0;
    t->shift = r->shift;
    t->to_ns = t->ticks ? r->tick_to_ns : 1ull << 32;
    for (uint32_t i = 0; i < FDRI_ARENA_BANDS - 1; i++) {
        uint64_t least = fdri_arena_band_edge_ns(i), full = t->ticks ? fdri_life_ns_to_ticks(least) : least;
        t->edge[i] = fdri_bits_max(full >> r->shift, 1); /* so zero-length calls always lie in the shortest band */
    }
    t->pause_ticks = t->ticks ? fdri_life_ns_to_ticks(FDRI_THREAD_PAUSE_NS) : FDRI_THREAD_PAUSE_NS;
    t->min_ticks = t->ticks ? fdri_life_ns_to_ticks(r->settings.min_duration_ns) : r->settings.min_duration_ns;
}

void fdri_thread_link_location(struct fdri_arena_location *l, uint32_t off)
{
    struct fdri_arena_superblock *s = fdri_life_recording.arena.super;
    uint32_t first = fdri_atomic_load_relaxed(&s->location_first);
    do {
        l->next = first;
        /* R:location - pairs with A:location in export/ */
    } while (!fdri_atomic_cas_acq_rel_u32(&s->location_first, &first, off));
}

struct fdri_arena_location *fdri_thread_location_new(void)
{
    struct fdri_bins_arena *a = &fdri_life_recording.arena;
    uint32_t off = fdri_bins_meta_take(a, FDRI_ARENA_META_LOCATION, sizeof(struct fdri_arena_location), UINT32_MAX);
    if (!off) return NULL;
    struct fdri_arena_location *l = fdri_bins_at(a, off);
    l->claim = FDRI_BINS_PINNED;
    l->flags = FDRI_ARENA_LOCATION_FREE;
    fdri_thread_link_location(l, off);
    return l;
}

static struct fdri_arena_location *new_location_block(struct fdri_thread *t)
{
    struct fdri_bins_arena *a = &fdri_life_recording.arena;
    uint32_t off = fdri_bins_location_slot_take(a, &fdri_life_recording.slabs);
    if (off) return fdri_bins_at(a, off);
    struct fdri_arena_location *l = fdri_thread_location_new();
    if (l) return l;
    for (int i = 0; i < ROUNDS && !off && fdri_ended_room(t, FDRI_ENDED_FOR_ATTACH_WHOLE); i++)
        off = fdri_bins_location_slot_take(a, &fdri_life_recording.slabs);
    return off ? fdri_bins_at(a, off) : NULL;
}

static_assert(offsetof(struct fdri_arena_location, piece_free) == offsetof(struct fdri_arena_location, bins_held) + 8 &&
                  offsetof(struct fdri_arena_location, strewn_units) ==
                      offsetof(struct fdri_arena_location, bins_held) + 4,
              "neighbours: cleared around");

/* Clears a location. Threads that walk the chain read `next`, `claim`, `bins_held`, `strewn_units`, `meta_units` and
 * `flags` of free locations, too, and the dumper thread may compare names. memset must not write these. */
static void clear_location(struct fdri_arena_location *l)
{
    uint8_t *p = (uint8_t *)l;
    const size_t held = offsetof(struct fdri_arena_location, bins_held),
                 from = offsetof(struct fdri_arena_location, parent);
    const size_t behind = offsetof(struct fdri_arena_location, piece_free),
                 end = offsetof(struct fdri_arena_location, name);
    const size_t meta = offsetof(struct fdri_arena_location, meta_units), on = meta + sizeof l->meta_units;
    memset(p + from, 0, meta - from);
    memset(p + on, 0, held - on);
    memset(p + behind, 0, end - behind);
    fdri_atomic_store_relaxed(&l->strewn_units, 0u);
    fdri_atomic_store_relaxed(&l->meta_units, 0u);
    fdri_thread_set_name(l, "");
    l->split_bins = 0;
    l->bins_filled_at_end = 0;
    l->fold_from = l->slabs = 0;
    l->reduction_ticks = l->reduction_worst = 0;
}

/* The calling thread's id. A vfork child has another pid, but stands for the thread that waits for it. */
static uint32_t thread_id(void)
{
    clockid_t its;
    if (fdri_export_pid() == fdri_life_recording.pid || pthread_getcpuclockid(pthread_self(), &its))
        return (uint32_t)syscall(SYS_gettid);
    return (uint32_t) ~(its >> 3); /* the id of a thread's CPU clock is ~tid << 3 | 6 */
}

bool fdri_thread_location_make(struct fdri_thread *t, struct fdri_arena_location *l, uint32_t parent, const char *name)
{
    struct fdri_life_recorder *r = &fdri_life_recording;
    t->loc = NULL;
    if (t->no_room_recording != fdri_life_recording.number)
        t->attach_deadline_ns = fdri_clock_ns(CLOCK_MONOTONIC) + PATIENCE_NS;
    if (!l) fdri_ended_make_room_early(t);
    if (!l && !(l = new_location_block(t))) return false;
    clear_location(l);
    l->id = l->head.location = UINT32_MAX - 1;
    fdri_atomic_store_relaxed(&l->tid, thread_id());
    l->parent = parent;
    l->numa_node = r->topology.nodes > 1 ? r->topology.id[fdri_system_topology_here(&r->topology)] : r->topology.id[0];
    fdri_thread_set_name(l, name);
    t->loc = l;
    t->base = r->arena.base;
    t->depth_limit = r->settings.depth;
    t->victim = NULL;
    t->awaiting_record = NULL;
    t->floor_part_off = t->bins_ready = t->run_off = t->prefetch_off = t->prefetch_end = 0;
    t->last_served = NULL;
    t->deferred = 0;
    t->order_off = t->order_count = t->order_room = t->order_sorted = t->live_parts = 0;
    t->walk = (struct fdri_thread_walk){0};
    t->traffic_off = 0;
    t->pinned_units = 0;
    t->pinning_done = t->pinning_due = t->order_incomplete = false;
    t->pinning = 0;
    t->rewind_mark = t->iteration_mark = NULL;
    t->iterations = NULL;
    t->iteration_depth = 0;
    t->ruled = NULL;
    t->ruled_around = NULL;
    t->mutes_seen = fdri_atomic_load_acquire(&fdri_names_mutes_version); /* A:mutes */
    t->first_search_failed = t->many_adoptable = false;
    memset(t->returned_seen, 0, sizeof t->returned_seen);
    t->gave_nothing_off = t->search_barriers = 0;
    t->room_search = t->meta_search = t->level_search = (struct fdri_thread_search){.credit = FDRI_THREAD_CREDIT};
    t->eviction_hand = (struct fdri_thread_eviction_hand){0};
    t->frozen_off = 0;
    t->stack_end = fdri_stack_own_end(fdri_thread_is_first(l));
    fdri_names_cache_start(t);
    t->untimed = t->phases = t->pauses = 0;
    t->no_event_yet = true;
    uint32_t zero = fdri_memory_meta(t, FDRI_ARENA_META_LEVELS, fdri_arena_levels_bytes(1));
    if (zero) {
        ((struct fdri_arena_levels_block *)fdri_thread_at(t, zero))->index = UINT32_MAX;
        l->level0_off = zero + (uint32_t)sizeof(struct fdri_arena_levels_block);
        t->top = fdri_thread_at(t, l->level0_off);
        t->top->region = UINT32_MAX;
        t->top->address = UINT64_MAX;             /* no function's address; its frame 0 is above all others */
        t->top->flags = FDRI_ARENA_LEVEL_NO_CALL; /* the program may leave a region with this id */
        fdri_thread_set_clock(t, false);
        if (fdri_totals_rows_start(t) && fdri_thread_grow_levels(t)) return true;
    }
    fdri_thread_location_drop(t);
    return false;
}

/* Gives the location and all its meta blocks an id. It must have no accounts yet. */
void fdri_thread_location_number(struct fdri_thread *t)
{
    struct fdri_arena_location *l = t->loc;
    uint32_t was = l->id;
    l->id = l->head.location = fdri_atomic_add_relaxed(&fdri_life_recording.arena.super->location_count, 1u);
    for (uint32_t off = l->slabs; off; off = ((struct fdri_arena_slab *)fdri_thread_at(t, off))->next) {
        uint32_t bytes = ((struct fdri_arena_meta_head *)fdri_thread_at(t, off))->bytes;
        for (uint32_t at = 0; at < bytes; at += FDRI_ARENA_META_ALIGN) {
            struct fdri_arena_meta_head *h = fdri_thread_at(t, off + at);
            if (h->magic == FDRI_ARENA_META_MAGIC && h->location == was) h->location = l->id;
        }
    }
}

void fdri_thread_location_publish(struct fdri_thread *t, uint32_t flags)
{
    struct fdri_arena_location *l = t->loc;
    flags |= l->flags & (FDRI_ARENA_LOCATION_NS | FDRI_ARENA_LOCATION_NAMED);
    fdri_atomic_store_release(&l->flags, flags); /* R:location */
    fdri_bins_claim_unpin(l);
}

void fdri_thread_location_drop(struct fdri_thread *t)
{
    struct fdri_arena_location *l = t->loc;
    struct fdri_bins_arena *a = &fdri_life_recording.arena;
    /* R:location - from here on no reader looks at the blocks given back below */
    fdri_atomic_store_release(&l->flags, (uint32_t)FDRI_ARENA_LOCATION_FREE);
    fdri_atomic_signal_fence();
    fdri_bins_claim_pin(a, l);
    fdri_piece_collect(a, l);
    fdri_memory_meta_release(t);
    fdri_bins_piece_leave(a, l);
    fdri_atomic_sub_relaxed(&a->split_bins, l->split_bins);
    /* bins lost by operations that a longjmp left belong to nobody: else the block's next owner would count as holding
     * them */
    fdri_atomic_store_relaxed(&l->bins_held, 0u);
    clear_location(l); /* no offset here may lead to memory that others own now */
    if (l != fdri_life_recording.shares.spare[0] && l != fdri_life_recording.shares.spare[1])
        fdri_bins_location_slot_give(a, &fdri_life_recording.slabs, fdri_thread_offset_of(t, l));
    t->loc = NULL;
}
