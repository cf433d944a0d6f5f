/* SPDX-License-Identifier: MIT */
/* The inline parts of the fast path of enter and leave; call.c makes functions of them.
 *
 * The fast path makes no call except tail calls to the rare cases. It leaves before its first store that counts, or, if
 * a record is spelled out, when only that is left to do. The location is marked busy before anything of it is read. A
 * handler from here on records into the lane and changes nothing of this location. In all these functions `address` is
 * 0 for regions entered by id. `frame` is 0 unless the place on the stack alone says which call a leave ends. */
#ifndef FDRI_RECORDER_RECORD_CALL_FAST_H
#define FDRI_RECORDER_RECORD_CALL_FAST_H
#include <assert.h>
#include <fdr/fdr.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/atomic.h"
#include "base/bits.h"
#include "base/clock.h"
#include "format/arena/arena.h"
#include "format/codec/encode.h"
#include "format/codec/foreseen_call.h"
#include "format/codec/prediction.h"
#include "format/codec/record_codec.h"
#include "recorder/names/names.h"
#include "recorder/record/record.h"
#include "recorder/record/shadow_stack.h"
#include "recorder/thread/arena_place.h"
#include "recorder/thread/thread.h"
#include "recorder/thread/thread_clock.h"
#include "recorder/thread/thread_state.h"
#include "recorder/totals/totals.h"
#include "recorder/watch/watch.h"

/* Stores a record that is spelled out, and ends the call. */
typedef void fdri_record_spell(struct fdri_thread *t, struct fdri_arena_part *p, uint64_t gap, uint64_t tick);
fdri_record_spell fdri_record_store_spelled;
/* Completes a leave that fdri_record_leave_fast returned as FDRI_RECORD_LEAVE_REST, with the tick it took. */
void fdri_record_leave_rest(struct fdri_thread *t, uint64_t tick);
/* Enters a function of the cache whose frame is not below that of the newest call, or whose newest call has no frame.
 * The location is busy, and `tick` is read. */
void fdri_record_enter_beside(uint64_t address, uint64_t frame, uint64_t caller, uint64_t site, uint64_t tick,
                              const struct fdri_names_cached *k);

static inline __attribute__((always_inline)) void fdri_record_mark_busy(struct fdri_arena_location *l)
{
    fdri_atomic_store_relaxed(&l->busy, FDRI_RECORD_HERE());
    fdri_atomic_signal_fence();
}

static inline __attribute__((always_inline)) bool fdri_record_not_busy(struct fdri_arena_location *l)
{
    fdri_atomic_store_release(&l->busy, 0); /* R:busy */
    return false;
}

static inline __attribute__((always_inline)) struct fdri_arena_level *
fdri_record_child_of(struct fdri_thread *t, struct fdri_arena_level *v, uint32_t depth)
{
    return FDRI_LIKELY(depth % FDRI_ARENA_LEVELS_STEP) ? v + 1 : fdri_thread_level(t, depth + 1);
}

/* Equal to the key alone if the row has no flags. */
static_assert(offsetof(struct fdri_arena_row, flags) == offsetof(struct fdri_arena_row, key) + 4, "read as one word");
static inline uint64_t fdri_record_key_and_flags(const struct fdri_arena_row *row)
{
    uint64_t both;
    memcpy(&both, &row->key, sizeof both);
    return both;
}

/* flags: of the region's row, and of the call's level: those of its rule. */
static inline __attribute__((always_inline)) bool fdri_record_enter_fast(struct fdri_thread *t, fdr_region region,
                                                                         uint32_t row_flags, uint32_t flags)
{
    struct fdri_arena_location *l = t->loc;
    uint32_t key = FDRI_TOTALS_KEY(FDRI_ARENA_DEF_REGION, region);
    if (FDRI_UNLIKELY(l->busy || region > FDRI_CODEC_ID_MAX)) return false;
    fdri_record_mark_busy(l);
    /* after the mark: before it a handler may leave calls open */
    if (FDRI_UNLIKELY(l->depth >= t->slow_depth)) return fdri_record_not_busy(l);
    /* The counter's reading waits for loads before it in program order. So the look-up stands behind it, and the
     * processor may run it while the clock is read. soft is 0 if the location has another clock. */
    uint64_t tick = fdri_clock_ticks();
    uint32_t depth = l->depth, row_off = t->row_slot[key * 0x9E3779B1u >> t->row_shift];
    const struct fdri_arena_row *row = (void *)(t->base + row_off);
    if (FDRI_UNLIKELY(fdri_record_key_and_flags(row) != (key | (uint64_t)row_flags << 32) || tick < l->last_tick))
        return fdri_record_not_busy(l);
    struct fdri_arena_level *v = fdri_record_child_of(t, t->top, depth);
    v->address = 0;
    fdri_record_push(t, l, v, depth, row_off, region, flags, tick);
    l->last_tick = tick;
    fdri_atomic_store_release(&l->busy, 0); /* R:busy */
    return true;
}

/* The compiler inlined f into the newest calls: they share its frame and return address, and f's hook is not near f's
 * own beginning. This is the usual case of fdri_jumps_is_below. */
static inline __attribute__((always_inline)) bool fdri_record_is_plain_part(const struct fdri_arena_level *v,
                                                                            uint32_t depth,
                                                                            const struct fdri_record_function *f,
                                                                            uint64_t bytes)
{
    if (f->site - f->address < FDRI_NAMES_HOOK_NEAR) return false;
    for (; v->frame == f->frame && v->address; v--, depth--)
        if (v->caller != (uint32_t)f->caller || v->site == (uint32_t)f->site || depth % FDRI_ARENA_LEVELS_STEP == 1)
            return false;
    return v->address && v->frame <= f->frame - bytes;
}

/* The newest call that has a frame. Regions entered by id have none; they belong to the function around them. */
static inline __attribute__((always_inline)) const struct fdri_arena_level *
fdri_record_newest_function(struct fdri_thread *t, struct fdri_arena_level *v, uint32_t *depth)
{
    while (FDRI_UNLIKELY(!v->address)) v = fdri_record_parent_of(t, v, (*depth)--);
    return v;
}

/* A lower bound for the bytes of stack of the entered function. */
static inline __attribute__((always_inline)) uint64_t fdri_record_own_bytes(const struct fdri_names_cached *k,
                                                                            uint64_t site)
{
    return FDRI_LIKELY(k->site == (uint32_t)site) ? k->frame_bytes : FDRI_NAMES_LEAST_FRAME;
}

/* Pushes a function that is in this thread's cache, and ends the operation. */
static inline __attribute__((always_inline)) void
fdri_record_push_known(struct fdri_thread *t, struct fdri_arena_location *l, const struct fdri_names_cached *k,
                       const struct fdri_record_function *f, uint32_t flags, uint64_t tick)
{
    uint32_t depth = l->depth;
    struct fdri_arena_level *v = fdri_record_child_of(t, t->top, depth);
    fdri_record_level_place(v, f);
    fdri_record_push(t, l, v, depth, k->row_off, k->region, flags, tick);
    l->last_tick = tick;
    fdri_atomic_store_release(&l->busy, 0); /* R:busy */
}

/* Enters a function by its address, if it is in this thread's cache; false: it is not. look: the stack pointer is
 * known, so f's frame must lie below that of the newest call. If it does not, or the newest call has no frame,
 * fdri_record_enter_beside continues from here, still busy. It needs more registers than the fast path should save, so
 * it is a function of its own. flags: those that the function's rule gives the level. */
static inline __attribute__((always_inline)) bool
fdri_record_enter_known(struct fdri_thread *t, struct fdri_record_function f, bool look, uint32_t flags)
{
    uint64_t key = flags ? f.address | FDRI_NAMES_CACHED_RULED : f.address;
    struct fdri_arena_location *l = t->loc;
    if (FDRI_UNLIKELY(l->busy || t->address_cache_version != fdri_atomic_load_relaxed(&fdri_names_address_version)))
        return false;
    fdri_record_mark_busy(l);
    /* after the mark: before it a handler may leave calls open */
    if (FDRI_UNLIKELY(l->depth >= t->slow_depth)) return fdri_record_not_busy(l);
    uint64_t tick = fdri_clock_ticks();
    const struct fdri_names_cached *k = fdri_names_cache_find(t, key);
    if (FDRI_UNLIKELY(k->address != key || tick < l->last_tick)) return fdri_record_not_busy(l);
    const struct fdri_arena_level *newest = t->top;
    if (look && (!newest->address || f.frame - fdri_record_own_bytes(k, f.site) < newest->frame))
        fdri_record_enter_beside(f.address, f.frame, f.caller, f.site, tick, k);
    else fdri_record_push_known(t, l, k, &f, flags, tick);
    return true;
}

/* Region and flags, loaded as one word. Equal to the region alone if the open call has no flags. */
static inline uint64_t fdri_record_region_and_flags(const struct fdri_arena_level *v)
{
    uint64_t both;
    memcpy(&both, &v->region, sizeof both);
    return both;
}
static_assert(offsetof(struct fdri_arena_level, flags) == offsetof(struct fdri_arena_level, region) + 4,
              "read as one word");

static inline __attribute__((always_inline)) bool fdri_record_is_top(const struct fdri_arena_level *v,
                                                                     fdr_region region, uint64_t address,
                                                                     uint64_t frame, uint32_t flags)
{
    /* a level without address has the frame of an older call */
    if (frame) return FDRI_LIKELY(v->frame == frame) && FDRI_LIKELY(v->flags == flags) && FDRI_LIKELY(v->address);
    return address ? FDRI_LIKELY(v->address == address) && FDRI_LIKELY(v->flags == flags)
                   : fdri_record_region_and_flags(v) == (region | (uint64_t)flags << 32);
}

/* Adds a call to the row's sums. unfinished_call.c relies on the order. */
static inline __attribute__((always_inline)) void
fdri_record_add_sums(struct fdri_arena_row *r, const struct fdri_arena_level *v, uint64_t duration)
{
    fdri_atomic_signal_fence();
    fdri_atomic_bump_relaxed(&r->calls, 1);
    fdri_atomic_signal_fence();
    fdri_atomic_bump_relaxed(&r->exclusive, duration - v->child_ticks);
    fdri_atomic_signal_fence();
    fdri_atomic_bump_relaxed(&r->sum, duration);
}

/* Adds a duration between the row's minimum and maximum to the totals. The histogram has a counter for it, but the
 * counter's address is known late, after the clock. Loads after a store to it would wait for the address (8 of 27 ns on
 * AMD's processors). So the next call does the store. */
static inline __attribute__((always_inline)) void
fdri_record_add_ordinary(struct fdri_thread *t, struct fdri_arena_location *l, uint8_t *base, struct fdri_arena_row *r,
                         struct fdri_arena_level *v, uint64_t duration)
{
    uint64_t ns = (uint64_t)((unsigned __int128)duration * t->to_ns >> 32);
    uint32_t before = l->pending_counter_off;
    if (FDRI_LIKELY(before)) fdri_atomic_bump_relaxed((uint64_t *)(void *)(base + before), 1);
    fdri_atomic_signal_fence();
    l->pending_counter_off = (uint32_t)r->histogram + fdri_totals_bucket(ns) * (uint32_t)sizeof(uint64_t);
    t->sum_before = r->sum;
    /* The order is that of fdri_totals_count_pending; unfinished_call.c relies on it. */
    fdri_record_add_sums(r, v, duration);
}

/* Ends the leave: adds the duration to the parent's child_ticks and pops the call. */
static inline __attribute__((always_inline)) void fdri_record_end_ordinary(struct fdri_thread *t,
                                                                           struct fdri_arena_location *l,
                                                                           struct fdri_arena_level *v,
                                                                           uint64_t duration)
{
    struct fdri_arena_level *parent = fdri_record_parent_of(t, v, l->depth);
    fdri_atomic_bump_relaxed(&parent->child_ticks, duration);
    fdri_record_pop(t, l, parent);
    fdri_record_not_busy(l);
}

/* Prefetches two cache lines of the next bin, so that they are there when it is opened. */
static inline void fdri_record_fetch_ahead(struct fdri_thread *t)
{
    const uint8_t *line = t->base + t->prefetch_off;
    t->prefetch_off += 128;
    __builtin_prefetch(line, 1, 3);
    __builtin_prefetch(line + 64, 1, 3);
}

/* Stores a record that is spelled out, and ends the call. */
static inline __attribute__((always_inline)) void
fdri_record_spell_out(struct fdri_thread *t, struct fdri_arena_part *p, uint64_t gap, uint64_t tick)
{
    struct fdri_arena_level *v = t->top;
    struct fdri_arena_bin *bin = (void *)(t->base + p->open_off);
    uint64_t leave = tick >> t->shift, stored = leave - (v->enter_tick >> t->shift);
    uint64_t commit = fdri_codec_encode_longer(p, (void *)(t->base + p->table_off), (uint8_t *)(bin + 1), v->region,
                                               gap, stored);
    p->last_tick = leave;
    fdri_atomic_signal_fence();
    fdri_atomic_store_release(&bin->commit, commit); /* R:commit */
    if (FDRI_LIKELY(t->prefetch_off < t->prefetch_end)) fdri_record_fetch_ahead(t);
    fdri_record_end_ordinary(t, t->loc, v, tick - v->enter_tick);
}

/* Stores the top call, whose duration is not 0, and ends it. Values are loaded again here and after each fence. To keep
 * them in registers through all of leave would cost a save, that is a store, for each; loads cost less. spell: for a
 * record that is spelled out. */
static inline __attribute__((always_inline)) void fdri_record_store_ordinary(struct fdri_thread *t,
                                                                             struct fdri_arena_part *p, uint64_t tick,
                                                                             uint32_t shift, fdri_record_spell *spell)
{
    const struct fdri_arena_level *v = t->top;
    uint64_t entered = v->enter_tick >> shift, stored = (tick >> shift) - entered, gap = entered - p->last_tick;
    const struct fdri_codec_table *table = (const void *)(t->base + p->table_off);
    struct fdri_codec_foreseen record;
    if (FDRI_UNLIKELY(!fdri_codec_foresee(table->slot[p->context], p->progress, v->region, gap, stored, &record))) {
        spell(t, p, gap, tick);
        return;
    }
    fdri_atomic_signal_fence();
    struct fdri_arena_bin *bin = (void *)(t->base + p->open_off);
    uint64_t commit = fdri_codec_put_foreseen(p, (uint8_t *)(bin + 1), t->top->region, &record);
    p->last_tick = tick >> shift;
    fdri_atomic_signal_fence();
    fdri_atomic_store_release(&bin->commit, commit); /* R:commit */
    fdri_record_end_ordinary(t, t->loc, t->top, tick - t->top->enter_tick);
}

enum fdri_record_leave_result { FDRI_RECORD_LEAVE_DONE, FDRI_RECORD_LEAVE_NOT_MINE, FDRI_RECORD_LEAVE_REST };

/* FDRI_RECORD_LEAVE_REST: the location is still busy, and fdri_record_leave_rest must complete the leave. The unit of
 * time is 2^shift ticks of the counter. flags: the level's, from the region's rule; calls shorter than min_ticks are
 * not stored. */
static inline __attribute__((always_inline)) enum fdri_record_leave_result
fdri_record_leave_fast(struct fdri_thread *t, fdr_region region, uint64_t address, uint64_t frame, uint32_t shift,
                       uint32_t flags, uint64_t min_ticks, fdri_record_spell *spell, uint64_t *tick_out)
{
    struct fdri_arena_location *l = t->loc;
    if (FDRI_UNLIKELY(l->busy)) return FDRI_RECORD_LEAVE_NOT_MINE;
    fdri_record_mark_busy(l);
    /* first: the processor may run the loads below meanwhile */
    uint64_t tick = *tick_out = fdri_clock_ticks();
    struct fdri_arena_level *v = t->top;
    if (FDRI_UNLIKELY(!fdri_record_is_top(v, region, address, frame, flags))) {
        fdri_record_not_busy(l);
        return FDRI_RECORD_LEAVE_NOT_MINE;
    }
    uint8_t *base = t->base;
    uint64_t entered = v->enter_tick, duration = tick - entered;
    struct fdri_arena_row *r = (void *)(base + v->row_off);
    if (FDRI_UNLIKELY(tick < l->last_tick || duration < r->min || duration > r->max || !r->histogram))
        return FDRI_RECORD_LEAVE_REST;
    if (FDRI_UNLIKELY(duration < min_ticks)) {
        bool watched = duration >= fdri_atomic_load_relaxed(&fdri_watch_ticks);
        if (FDRI_UNLIKELY(watched || t->tie_tick_end == (tick >> shift) + 1)) return FDRI_RECORD_LEAVE_REST;
        l->last_tick = tick;
        fdri_record_add_ordinary(t, l, base, r, v, duration);
        fdri_atomic_bump_relaxed(&v->filtered, 1);
        fdri_record_end_ordinary(t, l, v, duration);
        return FDRI_RECORD_LEAVE_DONE;
    }
    uint64_t stored = (tick >> shift) - (entered >> shift);
    uint32_t off = v->part[0]; /* by branches: so the loads below need not wait for the duration */
    if (stored >= t->edge[0]) {
        /* a trigger may fire */
        if (FDRI_UNLIKELY(duration >= fdri_atomic_load_relaxed(&fdri_watch_ticks))) return FDRI_RECORD_LEAVE_REST;
        off = stored < t->edge[1] ? v->part[1] : stored < t->edge[2] ? v->part[2] : v->part[3];
    }
    struct fdri_arena_part *p = (void *)(base + off);
    if (FDRI_UNLIKELY(off <= FDRI_THREAD_GATE_CLOSED || fdri_codec_encode_full(p) || !stored))
        return FDRI_RECORD_LEAVE_REST;
    l->last_tick = tick;
    fdri_record_add_ordinary(t, l, base, r, v, duration);
    fdri_atomic_signal_fence();
    fdri_record_store_ordinary(t, p, tick, shift, spell);
    return FDRI_RECORD_LEAVE_DONE;
}

/* Region and flags, as one word, of a call that is only counted. */
static inline uint64_t fdri_record_untimed_word(fdr_region region)
{
    return region | (uint64_t)FDRI_ARENA_LEVEL_UNTIMED << 32;
}

/* Pushes a call that is only counted, and ends the operation. */
static inline __attribute__((always_inline)) void
fdri_record_count_push(struct fdri_thread *t, struct fdri_arena_location *l, struct fdri_arena_level *v,
                       fdr_region region, uint32_t row_off, const struct fdri_record_function *f)
{
    struct fdri_arena_row *row = (void *)(t->base + row_off);
    uint64_t word = fdri_record_untimed_word(region), place = row_off; /* reserved stays 0 */
    v->enter_tick = l->last_tick;
    memcpy(&v->region, &word, sizeof word);
    memcpy(&v->row_off, &place, sizeof place);
    fdri_record_level_place(v, f);
    fdri_atomic_signal_fence();
    fdri_atomic_bump_relaxed(&v->presented, 1);
    fdri_atomic_bump_relaxed(&v->filtered, 1);
    fdri_atomic_signal_fence();
    fdri_atomic_bump_relaxed(&row->untimed, 1);         /* after presented: unfinished_call.c */
    fdri_atomic_store_release(&l->depth, l->depth + 1); /* R:frame */
    t->top = v;
    fdri_atomic_store_release(&l->busy, 0); /* R:busy */
}

/* Enters a function deeper than FDR_DEPTH that is in this thread's cache, and whose frame is below that of the newest
 * call. */
static inline bool fdri_record_count_known(struct fdri_thread *t, const struct fdri_record_function *f)
{
    struct fdri_arena_location *l = t->loc;
    if (l->busy || t->address_cache_version != fdri_atomic_load_relaxed(&fdri_names_address_version)) return false;
    fdri_record_mark_busy(l);
    const struct fdri_names_cached *k = fdri_names_cache_find(t, f->address);
    const struct fdri_arena_level *newest = t->top;
    bool known = k->address == f->address && l->depth - t->depth_limit < t->counted_levels;
    bool below = f->frame == FDRI_RECORD_FRAME_UNKNOWN ||
                 (newest->address && f->frame - fdri_record_own_bytes(k, f->site) >= newest->frame);
    if (!known || !below) return fdri_record_not_busy(l);
    fdri_record_count_push(t, l, fdri_record_child_of(t, t->top, l->depth), k->region, k->row_off, f);
    return true;
}

/* Enters a call deeper than FDR_DEPTH: it is counted, and no clock is read. far: handle also a next level in another
 * block. False: the slow path must enter it. */
static inline __attribute__((always_inline)) bool
fdri_record_count_enter(struct fdri_thread *t, fdr_region region, const struct fdri_record_function *f, bool far)
{
    struct fdri_arena_location *l = t->loc;
    if (FDRI_UNLIKELY(l->busy || region > FDRI_CODEC_ID_MAX)) return false;
    fdri_record_mark_busy(l);
    uint32_t depth = l->depth, key = FDRI_TOTALS_KEY(FDRI_ARENA_DEF_REGION, region);
    if (FDRI_UNLIKELY(depth - t->depth_limit >= t->counted_levels)) return fdri_record_not_busy(l);
    if (FDRI_UNLIKELY(!far && depth % FDRI_ARENA_LEVELS_STEP == 0)) return fdri_record_not_busy(l);
    uint32_t row_off = t->row_slot[key * 0x9E3779B1u >> t->row_shift];
    struct fdri_arena_row *row = (void *)(t->base + row_off);
    if (FDRI_UNLIKELY(row->key != key || (row->flags & FDRI_ARENA_ROW_GATED))) return fdri_record_not_busy(l);
    struct fdri_arena_level *v = far ? fdri_thread_level(t, depth + 1) : t->top + 1;
    fdri_record_count_push(t, l, v, region, row_off, f);
    return true;
}

static inline __attribute__((always_inline)) bool fdri_record_count_leave(struct fdri_thread *t, fdr_region region,
                                                                          uint64_t address, uint64_t frame, bool far)
{
    struct fdri_arena_location *l = t->loc;
    if (FDRI_UNLIKELY(l->busy)) return false;
    fdri_record_mark_busy(l);
    struct fdri_arena_level *v = t->top;
    uint32_t depth = l->depth;
    if (FDRI_UNLIKELY(depth - t->depth_limit - 1 >= t->counted_levels)) return fdri_record_not_busy(l);
    if (FDRI_UNLIKELY(!far && depth % FDRI_ARENA_LEVELS_STEP == 1)) return fdri_record_not_busy(l);
    if (FDRI_UNLIKELY(!fdri_record_is_top(v, region, address, frame, FDRI_ARENA_LEVEL_UNTIMED)))
        return fdri_record_not_busy(l);
    fdri_record_pop(t, l, far ? fdri_thread_level(t, depth - 1) : v - 1);
    fdri_atomic_store_release(&l->busy, 0); /* R:busy */
    return true;
}

#endif
