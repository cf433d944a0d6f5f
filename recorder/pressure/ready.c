/* SPDX-License-Identifier: MIT */
/* Bins that a reduction gave back for later calls. A step takes a run of them off a list at once, chooses once and
 * writes one line of the log. Most full bins are then replaced without a reduction.
 *
 * They are empty and belong to the location. They are at most a 32nd of its bins, or a 64th where it has few. On
 * average half of them are lost to stored events. The owner alone takes from them, so no agreement is needed. When its
 * thread ends they become free.
 *
 * With each opened bin, two more bins of the run that goes next are looked at (bins/bin_run.c), before the bin is
 * filled and after. So when the run goes, all about it is known. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/atomic.h"
#include "base/bits.h"
#include "bins/bin_run.h"
#include "bins/bins.h"
#include "bins/partition.h"
#include "bins/pieces.h"
#include "format/arena/arena.h"
#include "recorder/memory/memory.h"
#include "recorder/pressure/recorder_pressure.h"
#include "recorder/recording.h"
#include "recorder/thread/arena_place.h"
#include "recorder/thread/thread_state.h"

enum { SHARE = 32, SHARE_FEW = 64, FEW = 512, RUN_MOST = 32, LOOKS = 4 /* in a step, if none was before */ };

uint32_t fdri_ready_most(const struct fdri_thread *t)
{
    uint32_t held = fdri_atomic_load_relaxed(&t->loc->bins_held);
    return (uint32_t)fdri_bits_min(held / (held < FEW ? SHARE_FEW : SHARE), RUN_MOST);
}

uint32_t fdri_ready_run(const struct fdri_thread *t, const struct fdri_arena_part *asking)
{
    return asking && !t->bins_ready ? fdri_ready_most(t) : 0;
}

static struct fdri_bins_run *run_of(const struct fdri_thread *t)
{
    return t->run_off ? fdri_thread_at(t, t->run_off) : NULL;
}

/* With room for `most` bins, or less where memory is short; NULL: none. */
static struct fdri_bins_run *make_run(struct fdri_thread *t, uint32_t most)
{
    struct fdri_bins_run *r = run_of(t);
    const uint32_t head = sizeof(struct fdri_arena_meta_head), room = most + most / 2;
    if (r && r->capacity >= most) return r;
    uint32_t bytes = head + (uint32_t)sizeof *r + (room + 1) * (uint32_t)sizeof r->bin[0];
    uint32_t off = fdri_memory_meta_without_reduction(t, FDRI_ARENA_META_TABLE, bytes), old = t->run_off;
    if (!off) return r;
    t->run_off = off + head;
    if (old) fdri_memory_meta_give(t, old - head);
    r = run_of(t);
    r->capacity = room;
    return r;
}

void fdri_ready_look(struct fdri_thread *t)
{
    if (t->run_off) fdri_bins_run_look(&fdri_life_recording.arena, run_of(t));
}

void fdri_ready_forget(struct fdri_thread *t)
{
    if (t->run_off) fdri_bins_run_forget(run_of(t));
}

static uint32_t whole_ones(const struct fdri_bins_run *r)
{
    uint32_t whole = 0;
    for (uint32_t i = 0; i < r->popped; i++) whole += r->bin[i].size_log2 == fdri_life_recording.arena.bin_log2;
    return whole;
}

/* The next one has another head. Nobody has looked at it for long: its lines are fetched by calls behind, a few
 * each. */
static void set_ready(struct fdri_thread *t, uint32_t off)
{
    enum { FETCHED_MOST = 4096 }; /* behind that the processor knows by itself where this leads */
    t->bins_ready = off;
    t->prefetch_off = off;
    t->prefetch_end = off ? off + (uint32_t)fdri_bits_min(fdri_life_recording.arena.super->bin_bytes, FETCHED_MOST) : 0;
}

/* In front of those that wait. They are chained already, as they were in the list. */
static void keep_all(struct fdri_thread *t, const struct fdri_bins_run *r)
{
    fdri_atomic_store_relaxed(&fdri_bins_bin(&fdri_life_recording.arena, r->bin[r->popped - 1].off)->next,
                              t->bins_ready);
    fdri_atomic_signal_fence();
    set_ready(t, r->bin[0].off);
}

/* In front of those that wait. */
void fdri_ready_keep(struct fdri_thread *t, uint32_t off, uint32_t size_log2)
{
    struct fdri_bins_arena *a = &fdri_life_recording.arena;
    if (size_log2 != a->bin_log2) {
        fdri_bins_piece_give(a, t->loc, off, size_log2);
        return;
    }
    fdri_atomic_store_relaxed(&fdri_bins_bin(a, off)->next, t->bins_ready);
    fdri_atomic_signal_fence();
    set_ready(t, off);
}

static void keep_each(struct fdri_thread *t, const struct fdri_bins_run *r)
{
    for (uint32_t i = 0; i < r->popped; i++) fdri_ready_keep(t, r->bin[i].off, r->bin[i].size_log2);
}

static void keep(struct fdri_thread *t, const struct fdri_bins_run *r)
{
    uint32_t whole = whole_ones(r);
    if (whole) fdri_atomic_add_relaxed(&fdri_life_recording.shares.bins_refilled, whole - 1ull);
    /* behind it, as a locked instruction waits until all that is stored is written */
    fdri_bins_run_empty(&fdri_life_recording.arena, r);
    if (whole == r->popped) keep_all(t, r);
    else keep_each(t, r);
}

const struct fdri_bins_run *fdri_ready_give(struct fdri_thread *t, struct fdri_arena_part *p, uint64_t tick,
                                            uint32_t most, bool small, struct fdri_bins_given *given)
{
    struct fdri_bins_arena *a = &fdri_life_recording.arena;
    struct fdri_bins_run *r = make_run(t, most);
    if (!r) return NULL;
    fdri_bins_run_begin(a, p, tick, r);
    /* the step would wait for each: what was not seen by now goes another time */
    while (r->noted < LOOKS && fdri_bins_run_look(a, r)) continue;
    if (!fdri_bins_run_pop(a, p, most, small, r, given)) return NULL;
    keep(t, r);
    return r;
}

void fdri_ready_ahead(struct fdri_thread *t, const struct fdri_arena_part *p, uint64_t tick)
{
    if (p && t->run_off) fdri_bins_run_begin(&fdri_life_recording.arena, p, tick, run_of(t));
}

/* One of them, as it is. */
uint32_t fdri_ready_first(struct fdri_thread *t)
{
    const struct fdri_bins_arena *a = &fdri_life_recording.arena;
    uint32_t off = t->bins_ready;
    if (!off) return 0;
    set_ready(t, fdri_atomic_load_relaxed(&fdri_bins_bin(a, off)->next));
    fdri_atomic_signal_fence(); /* left here by longjmp it is lost, and not taken twice */
    if (!t->bins_ready) fdri_leave_for_later(t, FDRI_LATER_BIN);
    return off;
}

uint32_t fdri_ready_take(struct fdri_thread *t, uint32_t size_log2)
{
    struct fdri_bins_arena *a = &fdri_life_recording.arena;
    fdri_ready_look(t);
    uint32_t off = fdri_ready_first(t);
    if (!off) return 0;
    if (a->nodes > 1) off = fdri_bins_exchange_nearer(a, off, fdri_bins_node_here(a, t->loc));
    fdri_bins_piece_split(a, t->loc, off, a->bin_log2, size_log2);
    return off;
}

void fdri_ready_release(struct fdri_thread *t)
{
    for (uint32_t off; (off = fdri_ready_take(t, fdri_life_recording.arena.bin_log2));)
        fdri_bins_piece_give(&fdri_life_recording.arena, t->loc, off, fdri_life_recording.arena.bin_log2);
}
