/* SPDX-License-Identifier: MIT */
/* Enter and leave: the fast path of every call; rare cases are in call_slow.c.
 *
 * Enter pushes (region, time) on the shadow stack and counts the call as presented; nothing is encoded. Leave pops the
 * call, computes the duration and adds it to the totals. Only then it decides whether to store one call record.
 *
 * Store order of enter: level, then depth. A handler or a kill in between finds no region that was never entered.
 * Store order of leave: record, then depth. In between the call has a record and is open; a reader takes the record. */
#define FDR_NO_INLINE
#include <assert.h>
#include <fdr/fdr.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/atomic.h"
#include "base/bits.h"
#include "base/clock.h"
#include "bins/pressure/bins_pressure.h"
#include "format/arena/arena.h"
#include "format/codec/encode.h"
#include "format/codec/foreseen_call.h"
#include "format/codec/prediction.h"
#include "format/codec/record_codec.h"
#include "recorder/jumps/jumps.h"
#include "recorder/recording.h"
#include "recorder/names/names.h"
#include "recorder/pressure/recorder_pressure.h"
#include "recorder/record/record.h"
#include "recorder/record/shadow_stack.h"
#include "recorder/thread/arena_place.h"
#include "recorder/thread/thread.h"
#include "recorder/thread/thread_clock.h"
#include "recorder/thread/thread_state.h"
#include "recorder/totals/totals.h"
#include "recorder/watch/watch.h"
#include "sampler/counters/counter_view.h"

__thread struct fdri_thread fdri_record_self;
__thread struct fdri_thread fdri_record_lane;

static FDRI_NOINLINE void enter_slow(fdr_region region, const struct fdri_record_function *f, bool live,
                                     uint64_t time_ns)
{
    struct fdri_thread *t = fdri_thread_begin(live ? FDRI_THREAD_LIVE : FDRI_THREAD_NS);
    if (!t) return;
    bool opened = fdri_record_enter(t, region, f, live, time_ns);
    uint32_t depth = t->loc->depth;
    bool edges = live && opened && t->top->flags & FDRI_ARENA_LEVEL_EDGES && t == &fdri_record_self;
    fdri_thread_end(t);
    if (edges) fdri_counters_edge_enter(region, depth);
}

/* Reads counters for the call that is about to end. Their record belongs inside of the call, so the call must still be
 * open. */
static void edge_before_leave(fdr_region region, uint64_t address)
{
    struct fdri_thread *t = &fdri_record_self;
    if (!t->recording || t->recording != fdri_atomic_load_relaxed(&fdr_switch_.on) || t->loc->busy) return;
    const struct fdri_arena_level *v = t->top;
    bool mine = address ? v->address == address : v->region == region;
    if (v->flags & FDRI_ARENA_LEVEL_EDGES && mine) fdri_counters_edge_leave(v->region, t->loc->depth);
}

static FDRI_NOINLINE void leave_slow(fdr_region region, uint64_t address, bool live, uint64_t time_ns)
{
    if (live) edge_before_leave(region, address);
    struct fdri_thread *t = fdri_thread_begin(live ? FDRI_THREAD_LIVE : FDRI_THREAD_NS);
    if (!t) return;
    fdri_record_leave(t, region, address, live, time_ns);
    fdri_thread_end(t);
}

/* The fast path makes no call except tail calls to the rare cases. It leaves before its first store that counts, or, if
 * a record is spelled out, when only that is left to do. The location is marked busy before anything of it is read: a
 * handler from here on records into the lane and changes nothing of this location. In all these functions `address` is
 * 0 for regions entered by id. */
static inline __attribute__((always_inline)) void mark_busy(struct fdri_arena_location *l)
{
    fdri_atomic_store_relaxed(&l->busy, FDRI_RECORD_HERE());
    fdri_atomic_signal_fence();
}

static inline __attribute__((always_inline)) bool not_busy(struct fdri_arena_location *l)
{
    fdri_atomic_store_release(&l->busy, 0); /* R:busy */
    return false;
}

static inline __attribute__((always_inline)) struct fdri_arena_level *
child_of(struct fdri_thread *t, struct fdri_arena_level *v, uint32_t depth)
{
    return FDRI_LIKELY(depth % FDRI_ARENA_LEVELS_STEP) ? v + 1 : fdri_thread_level(t, depth + 1);
}

/* Equal to the key alone if the row has no flags. */
static_assert(offsetof(struct fdri_arena_row, flags) == offsetof(struct fdri_arena_row, key) + 4, "read as one word");
static inline uint64_t key_and_flags(const struct fdri_arena_row *row)
{
    uint64_t both;
    memcpy(&both, &row->key, sizeof both);
    return both;
}

static inline __attribute__((always_inline)) bool enter_fast(struct fdri_thread *t, fdr_region region)
{
    struct fdri_arena_location *l = t->loc;
    uint32_t key = FDRI_TOTALS_KEY(FDRI_ARENA_DEF_REGION, region);
    if (FDRI_UNLIKELY(l->busy || region > FDRI_CODEC_ID_MAX)) return false;
    mark_busy(l);
    /* after the mark: before it a handler may leave calls open */
    if (FDRI_UNLIKELY(l->depth >= t->slow_depth)) return not_busy(l);
    /* The counter's reading waits for loads before it in program order. So the look-up stands behind it, and the
     * processor may run it while the clock is read. soft is 0 if the location has another clock. */
    uint64_t tick = fdri_clock_ticks();
    uint32_t depth = l->depth, row_off = t->row_slot[key * 0x9E3779B1u >> t->row_shift];
    const struct fdri_arena_row *row = (void *)(t->base + row_off);
    if (FDRI_UNLIKELY(key_and_flags(row) != key || tick < l->last_tick)) return not_busy(l);
    struct fdri_arena_level *v = child_of(t, t->top, depth);
    v->address = 0;
    fdri_record_push(t, l, v, depth, row_off, region, 0, tick);
    l->last_tick = tick;
    fdri_atomic_store_release(&l->busy, 0); /* R:busy */
    return true;
}

/* The compiler inlined f into the newest calls: they share its frame and return address, and f's hook is not near f's
 * own beginning. This is the usual case of fdri_jumps_is_below. */
static inline __attribute__((always_inline)) bool is_plain_part(const struct fdri_arena_level *v, uint32_t depth,
                                                                const struct fdri_record_function *f, uint64_t bytes)
{
    if (f->site - f->address < FDRI_NAMES_HOOK_NEAR) return false;
    for (; v->frame == f->frame && v->address; v--, depth--)
        if (v->caller != (uint32_t)f->caller || v->site == (uint32_t)f->site || depth % FDRI_ARENA_LEVELS_STEP == 1)
            return false;
    return v->address && v->frame <= f->frame - bytes;
}

/* The newest call that has a frame. Regions entered by id have none; they belong to the function around them. */
static inline __attribute__((always_inline)) const struct fdri_arena_level *
newest_function(struct fdri_thread *t, struct fdri_arena_level *v, uint32_t *depth)
{
    while (FDRI_UNLIKELY(!v->address)) v = fdri_record_parent_of(t, v, (*depth)--);
    return v;
}

/* A lower bound for the bytes of stack of the entered function. */
static inline __attribute__((always_inline)) uint64_t own_bytes(const struct fdri_names_cached *k, uint64_t site)
{
    return FDRI_LIKELY(k->site == (uint32_t)site) ? k->frame_bytes : FDRI_NAMES_LEAST_FRAME;
}

/* Pushes a function that is in this thread's cache, and ends the operation. */
static inline __attribute__((always_inline)) void push_known(struct fdri_thread *t, struct fdri_arena_location *l,
                                                             const struct fdri_names_cached *k,
                                                             const struct fdri_record_function *f, uint64_t tick)
{
    uint32_t depth = l->depth;
    struct fdri_arena_level *v = child_of(t, t->top, depth);
    fdri_record_level_place(v, f);
    fdri_record_push(t, l, v, depth, k->row_off, k->region, 0, tick);
    l->last_tick = tick;
    fdri_atomic_store_release(&l->busy, 0); /* R:busy */
}

static void enter_beside(uint64_t address, uint64_t frame, uint64_t caller, uint64_t site, uint64_t tick,
                         const struct fdri_names_cached *k);

/* Enters a function by its address, if it is in this thread's cache; false: it is not. look: the stack pointer is
 * known, so f's frame must lie below that of the newest call. If it does not, or the newest call has no frame,
 * enter_beside continues from here, still busy. It needs more registers than the fast path should save, so it is a
 * function of its own. */
static inline __attribute__((always_inline)) bool enter_known(struct fdri_thread *t, struct fdri_record_function f,
                                                              bool look)
{
    struct fdri_arena_location *l = t->loc;
    if (FDRI_UNLIKELY(l->busy || t->address_cache_version != fdri_atomic_load_relaxed(&fdri_names_address_version)))
        return false;
    mark_busy(l);
    if (FDRI_UNLIKELY(l->depth >= t->slow_depth)) return not_busy(l);
    uint64_t tick = fdri_clock_ticks();
    const struct fdri_names_cached *k = fdri_names_cache_find(t, f.address);
    if (FDRI_UNLIKELY(k->address != f.address || tick < l->last_tick)) return not_busy(l);
    const struct fdri_arena_level *newest = t->top;
    if (look && (!newest->address || f.frame - own_bytes(k, f.site) < newest->frame))
        enter_beside(f.address, f.frame, f.caller, f.site, tick, k);
    else push_known(t, l, k, &f, tick);
    return true;
}

/* Completes a leave that leave_fast returned as REST, with the tick it took. Uses data that all threads share, so it
 * must not run after fdr_finalize. Either fdr_finalize sees the busy mark, or the load here sees the switch off. */
static FDRI_NOINLINE void leave_rest(struct fdri_thread *t, uint64_t tick)
{
    struct fdri_arena_location *l = t->loc;
    if (FDRI_UNLIKELY(fdri_atomic_load_relaxed(&fdr_switch_.on) != t->recording)) {
        not_busy(l);
        return;
    }
    fdri_stay_awake(&fdri_life_recording.arena, l);
    fdri_totals_count_pending(t->base, l);
    tick = fdri_thread_clamp_live(t, tick);
    l->last_tick = tick;
    fdri_record_close_top(t, l, t->top, l->depth, tick);
    fdri_thread_end(t);
}

/* Region and flags, loaded as one word. Equal to the region alone if the open call has no flags. */
static inline uint64_t region_and_flags(const struct fdri_arena_level *v)
{
    uint64_t both;
    memcpy(&both, &v->region, sizeof both);
    return both;
}
static_assert(offsetof(struct fdri_arena_level, flags) == offsetof(struct fdri_arena_level, region) + 4,
              "read as one word");

static inline __attribute__((always_inline)) bool is_top(const struct fdri_arena_level *v, fdr_region region,
                                                         uint64_t address)
{
    return address ? FDRI_LIKELY(v->address == address) && FDRI_LIKELY(!v->flags) : region_and_flags(v) == region;
}

/* Adds a duration between the row's minimum and maximum to the totals. The histogram has a counter for it, but the
 * counter's address is known late, after the clock. Loads after a store to it would wait for the address (8 of 27 ns on
 * AMD's processors). So the next call does the store. */
static inline __attribute__((always_inline)) void add_ordinary(struct fdri_thread *t, struct fdri_arena_location *l,
                                                               uint8_t *base, struct fdri_arena_row *r,
                                                               struct fdri_arena_level *v, uint64_t duration)
{
    uint64_t ns = (uint64_t)((unsigned __int128)duration * t->to_ns >> 32);
    uint32_t before = l->pending_counter_off;
    if (FDRI_LIKELY(before)) fdri_atomic_bump_relaxed((uint64_t *)(void *)(base + before), 1);
    fdri_atomic_signal_fence();
    l->pending_counter_off = (uint32_t)r->histogram + fdri_totals_bucket(ns) * (uint32_t)sizeof(uint64_t);
    t->sum_before = r->sum;
    /* The order is that of fdri_totals_count_pending; unfinished_call.c relies on it, and on the order below. */
    fdri_atomic_signal_fence();
    fdri_atomic_bump_relaxed(&r->calls, 1);
    fdri_atomic_signal_fence();
    fdri_atomic_bump_relaxed(&r->exclusive, duration - v->child_ticks);
    fdri_atomic_signal_fence();
    fdri_atomic_bump_relaxed(&r->sum, duration);
}

/* Ends the leave: adds the duration to the parent's child_ticks and pops the call. */
static inline __attribute__((always_inline)) void end_ordinary(struct fdri_thread *t, struct fdri_arena_location *l,
                                                               struct fdri_arena_level *v, uint64_t duration)
{
    struct fdri_arena_level *parent = fdri_record_parent_of(t, v, l->depth);
    fdri_atomic_bump_relaxed(&parent->child_ticks, duration);
    fdri_record_pop(t, l, parent);
    not_busy(l);
}

/* Prefetches two cache lines of the next bin, so that they are there when it is opened. */
static inline void fetch_ahead(struct fdri_thread *t)
{
    const uint8_t *line = t->base + t->prefetch_off;
    t->prefetch_off += 128;
    __builtin_prefetch(line, 1, 3);
    __builtin_prefetch(line + 64, 1, 3);
}

/* Stores a record that is spelled out, and ends the call. That is about one record of five, one of 64 at the least. So
 * this function also does the deferred work of opening bins. */
static FDRI_NOINLINE void store_spelled(struct fdri_thread *t, struct fdri_arena_part *p, uint64_t gap, uint64_t tick)
{
    struct fdri_arena_level *v = t->top;
    struct fdri_arena_bin *bin = (void *)(t->base + p->open_off);
    uint64_t leave = tick >> t->shift, stored = leave - (v->enter_tick >> t->shift);
    uint64_t commit = fdri_codec_encode_longer(p, (void *)(t->base + p->table_off), (uint8_t *)(bin + 1), v->region,
                                               gap, stored);
    p->last_tick = leave;
    fdri_atomic_signal_fence();
    fdri_atomic_store_release(&bin->commit, commit); /* R:commit */
    if (t->prefetch_off < t->prefetch_end) fetch_ahead(t);
    end_ordinary(t, t->loc, v, tick - v->enter_tick);
    if (FDRI_UNLIKELY(t->deferred)) fdri_do_later();
}

/* Stores the top call, whose duration is not 0, and ends it. Values are loaded again here and after each fence. To keep
 * them in registers through all of leave would cost a save, that is a store, for each; loads cost less. */
static inline __attribute__((always_inline)) void store_ordinary(struct fdri_thread *t, struct fdri_arena_part *p,
                                                                 uint64_t tick, uint32_t shift)
{
    const struct fdri_arena_level *v = t->top;
    uint64_t entered = v->enter_tick >> shift, stored = (tick >> shift) - entered, gap = entered - p->last_tick;
    const struct fdri_codec_table *table = (const void *)(t->base + p->table_off);
    struct fdri_codec_foreseen record;
    if (FDRI_UNLIKELY(!fdri_codec_foresee(table->slot[p->context], p->progress, v->region, gap, stored, &record))) {
        store_spelled(t, p, gap, tick);
        return;
    }
    fdri_atomic_signal_fence();
    struct fdri_arena_bin *bin = (void *)(t->base + p->open_off);
    uint64_t commit = fdri_codec_put_foreseen(p, (uint8_t *)(bin + 1), t->top->region, &record);
    p->last_tick = tick >> shift;
    fdri_atomic_signal_fence();
    fdri_atomic_store_release(&bin->commit, commit); /* R:commit */
    end_ordinary(t, t->loc, t->top, tick - t->top->enter_tick);
}

enum leave_result { LEFT, NOT_MINE, REST };

/* REST: the location is still busy, and leave_rest must complete the leave. The unit of time is 2^shift ticks of the
 * counter. */
static inline __attribute__((always_inline)) enum leave_result
leave_fast(struct fdri_thread *t, fdr_region region, uint64_t address, uint32_t shift, uint64_t *tick_out)
{
    struct fdri_arena_location *l = t->loc;
    if (FDRI_UNLIKELY(l->busy)) return NOT_MINE;
    mark_busy(l);
    /* first: the processor may run the loads below meanwhile */
    uint64_t tick = *tick_out = fdri_clock_ticks();
    struct fdri_arena_level *v = t->top;
    if (FDRI_UNLIKELY(!is_top(v, region, address))) {
        not_busy(l);
        return NOT_MINE;
    }
    uint8_t *base = t->base;
    uint64_t entered = v->enter_tick, duration = tick - entered;
    struct fdri_arena_row *r = (void *)(base + v->row_off);
    if (FDRI_UNLIKELY(tick < l->last_tick || duration < r->min || duration > r->max || !r->histogram)) return REST;
    if (FDRI_UNLIKELY(duration < t->min_ticks)) {
        bool watched = duration >= fdri_atomic_load_relaxed(&fdri_watch_ticks);
        if (FDRI_UNLIKELY(watched || t->tie_tick_end == (tick >> shift) + 1)) return REST;
        l->last_tick = tick;
        add_ordinary(t, l, base, r, v, duration);
        fdri_atomic_bump_relaxed(&v->filtered, 1);
        end_ordinary(t, l, v, duration);
        return LEFT;
    }
    uint64_t stored = (tick >> shift) - (entered >> shift);
    uint32_t off = v->part[0]; /* by branches: so the loads below need not wait for the duration */
    if (stored >= t->edge[0]) {
        /* a trigger may fire */
        if (FDRI_UNLIKELY(duration >= fdri_atomic_load_relaxed(&fdri_watch_ticks))) return REST;
        off = stored < t->edge[1] ? v->part[1] : stored < t->edge[2] ? v->part[2] : v->part[3];
    }
    struct fdri_arena_part *p = (void *)(base + off);
    if (FDRI_UNLIKELY(off <= FDRI_THREAD_GATE_CLOSED || fdri_codec_encode_full(p) || !stored)) return REST;
    l->last_tick = tick;
    add_ordinary(t, l, base, r, v, duration);
    fdri_atomic_signal_fence();
    store_ordinary(t, p, tick, shift);
    return LEFT;
}

/* Region and flags, as one word, of a call that is only counted. */
static inline uint64_t untimed_word(fdr_region region) { return region | (uint64_t)FDRI_ARENA_LEVEL_UNTIMED << 32; }

/* Enters a call deeper than FDR_DEPTH: it is counted, and no clock is read. far: handle also a next level in another
 * block. False: the slow path must enter it. */
static inline __attribute__((always_inline)) bool count_enter(struct fdri_thread *t, fdr_region region,
                                                              const struct fdri_record_function *f, bool far)
{
    struct fdri_arena_location *l = t->loc;
    if (FDRI_UNLIKELY(l->busy || region > FDRI_CODEC_ID_MAX)) return false;
    mark_busy(l);
    uint32_t depth = l->depth, key = FDRI_TOTALS_KEY(FDRI_ARENA_DEF_REGION, region);
    if (FDRI_UNLIKELY(depth - t->depth_limit >= t->counted_levels)) return not_busy(l);
    if (FDRI_UNLIKELY(!far && depth % FDRI_ARENA_LEVELS_STEP == 0)) return not_busy(l);
    uint32_t row_off = t->row_slot[key * 0x9E3779B1u >> t->row_shift];
    struct fdri_arena_row *row = (void *)(t->base + row_off);
    if (FDRI_UNLIKELY(row->key != key || (row->flags & FDRI_ARENA_ROW_GATED))) return not_busy(l);
    struct fdri_arena_level *v = far ? fdri_thread_level(t, depth + 1) : t->top + 1;
    uint64_t word = untimed_word(region), place = row_off; /* skipped becomes 0 */
    v->enter_tick = l->last_tick;
    memcpy(&v->region, &word, sizeof word);
    memcpy(&v->row_off, &place, sizeof place);
    fdri_record_level_place(v, f);
    fdri_atomic_signal_fence();
    fdri_atomic_bump_relaxed(&v->presented, 1);
    fdri_atomic_bump_relaxed(&v->filtered, 1);
    fdri_atomic_signal_fence();
    fdri_atomic_bump_relaxed(&row->untimed, 1);      /* after presented: unfinished_call.c */
    fdri_atomic_store_release(&l->depth, depth + 1); /* R:frame */
    t->top = v;
    fdri_atomic_store_release(&l->busy, 0); /* R:busy */
    return true;
}

static inline __attribute__((always_inline)) bool count_leave(struct fdri_thread *t, fdr_region region,
                                                              uint64_t address, bool far)
{
    struct fdri_arena_location *l = t->loc;
    if (FDRI_UNLIKELY(l->busy)) return false;
    mark_busy(l);
    struct fdri_arena_level *v = t->top;
    uint32_t depth = l->depth;
    if (FDRI_UNLIKELY(depth - t->depth_limit - 1 >= t->counted_levels)) return not_busy(l);
    if (FDRI_UNLIKELY(!far && depth % FDRI_ARENA_LEVELS_STEP == 1)) return not_busy(l);
    bool mine = address ? v->address == address && v->flags == FDRI_ARENA_LEVEL_UNTIMED
                        : region_and_flags(v) == untimed_word(region);
    if (FDRI_UNLIKELY(!mine)) return not_busy(l);
    fdri_record_pop(t, l, far ? fdri_thread_level(t, depth - 1) : v - 1);
    fdri_atomic_store_release(&l->busy, 0); /* R:busy */
    return true;
}

static FDRI_NOINLINE void leave_address_slow(uint64_t address)
{
    if (fdri_thread_attached()) leave_slow(fdri_names_address_region(address), address, true, 0);
}

static FDRI_NOINLINE void leave_by_name(fdr_region region, uint64_t address)
{
    if (address) leave_address_slow(address);
    else leave_slow(region, 0, true, 0);
}

/* A leave that must not take the fastest path, mostly because the unit of time is not one tick. */
static FDRI_NOINLINE void leave_other(fdr_region region, uint64_t address, uint32_t on)
{
    struct fdri_thread *t = &fdri_record_self;
    uint64_t tick;
    enum leave_result result = NOT_MINE;
    if (t->rounded_recording == on) {
        if (FDRI_UNLIKELY(t->loc->depth > t->depth_limit) && count_leave(t, region, address, true)) return;
        result = leave_fast(t, region, address, t->shift, &tick);
    }
    if (result == REST) leave_rest(t, tick);
    else if (result == NOT_MINE) leave_by_name(region, address);
}

/* Functions of their own, reached by tail calls before anything else: so their callers save no registers. */
static FDRI_NOINLINE void enter_other(fdr_region region) { enter_slow(region, NULL, true, 0); }

static FDRI_NOINLINE void enter_deep_far(fdr_region region)
{
    if (!count_enter(&fdri_record_self, region, NULL, true)) enter_slow(region, NULL, true, 0);
}

static FDRI_NOINLINE void enter_deep(fdr_region region)
{
    if (FDRI_UNLIKELY(!count_enter(&fdri_record_self, region, NULL, false))) enter_deep_far(region);
}

static FDRI_NOINLINE void leave_deep_far(fdr_region region, uint64_t address)
{
    if (!count_leave(&fdri_record_self, region, address, true)) leave_by_name(region, address);
}

static FDRI_NOINLINE void leave_deep(fdr_region region)
{
    if (FDRI_UNLIKELY(!count_leave(&fdri_record_self, region, 0, false))) leave_deep_far(region, 0);
}

static FDRI_NOINLINE void leave_address_deep(uint64_t address)
{
    if (FDRI_UNLIKELY(!count_leave(&fdri_record_self, 0, address, false))) leave_deep_far(0, address);
}

void fdr_enter_(fdr_region region, uint32_t on)
{
    struct fdri_thread *t = &fdri_record_self;
    if (FDRI_UNLIKELY(t->recording != on)) enter_other(region);
    else if (FDRI_UNLIKELY(t->loc->depth >= t->slow_depth)) enter_deep(region);
    else if (FDRI_UNLIKELY(!enter_fast(t, region))) enter_slow(region, NULL, true, 0);
}

void fdr_leave_(fdr_region region, uint32_t on)
{
    struct fdri_thread *t = &fdri_record_self;
    uint64_t tick;
    if (FDRI_UNLIKELY(t->unrounded_recording != on)) {
        leave_other(region, 0, on);
        return;
    }
    if (FDRI_UNLIKELY(t->loc->depth > t->depth_limit)) {
        leave_deep(region);
        return;
    }
    enum leave_result result = leave_fast(t, region, 0, 0, &tick);
    if (result == REST) leave_rest(t, tick);
    else if (result == NOT_MINE) leave_slow(region, 0, true, 0);
}

/* The callers pass four words, not the structure, by tail calls: so the usual case keeps them in registers. */
static struct fdri_record_function function_of(uint64_t address, uint64_t frame, uint64_t caller, uint64_t site)
{
    struct fdri_record_function f = {address, frame, caller, site, frame};
    if (frame != FDRI_RECORD_FRAME_UNKNOWN) f.upper = fdri_jumps_frame_upper(&f);
    return f;
}

static FDRI_NOINLINE void enter_unknown(uint64_t address, uint64_t frame, uint64_t caller, uint64_t site)
{
    struct fdri_thread *t = &fdri_record_self;
    const struct fdri_record_function f = function_of(address, frame, caller, site);
    fdr_region region = fdri_names_address_region(address);
    bool gone = frame != FDRI_RECORD_FRAME_UNKNOWN && FDRI_UNLIKELY(!fdri_jumps_is_below(t, &f)) &&
                fdri_jumps_first_abandoned(t, &f);
    /* which closes the abandoned calls */
    if (gone || !count_enter(t, region, &f, true)) enter_slow(region, &f, true, 0);
}

/* f's frame overlaps that of the newest call, and f was not plainly inlined into it. Either a longjmp left the newest
 * call, or both are parts of one function. */
static FDRI_NOINLINE void enter_same_place(uint64_t address, uint64_t frame, uint64_t caller, uint64_t site)
{
    struct fdri_thread *t = &fdri_record_self;
    const struct fdri_record_function f = function_of(address, frame, caller, site);
    if (FDRI_UNLIKELY(!fdri_jumps_is_below(t, &f)) || !enter_known(t, f, false))
        enter_unknown(address, frame, caller, site);
}

/* Enters a function of the cache whose frame is not below that of the newest call, or whose newest call has no frame.
 * The location is busy, and `tick` is read. */
static FDRI_NOINLINE void enter_beside(uint64_t address, uint64_t frame, uint64_t caller, uint64_t site, uint64_t tick,
                                       const struct fdri_names_cached *k)
{
    struct fdri_thread *t = &fdri_record_self;
    struct fdri_arena_location *l = t->loc;
    const struct fdri_record_function f = {address, frame, caller, site, 0};
    uint64_t bytes = own_bytes(k, site);
    uint32_t depth = l->depth;
    const struct fdri_arena_level *newest = newest_function(t, t->top, &depth);
    if (FDRI_LIKELY(frame - bytes >= newest->frame || is_plain_part(newest, depth, &f, bytes))) {
        push_known(t, l, k, &f, tick);
        return;
    }
    not_busy(l);
    enter_same_place(address, frame, caller, site);
}

/* The thread's first event. Attaches first: only threads registered with liburcu may look up an address. */
static FDRI_NOINLINE void enter_first(uint64_t address, uint64_t pointer, uint64_t caller, uint64_t site)
{
    if (fdri_thread_attached())
        enter_unknown(address, pointer ? fdri_record_self.stack_end - pointer : FDRI_RECORD_FRAME_UNKNOWN, ~caller,
                      site);
}

/* pointer 0: the stack pointer is unknown. */
static inline __attribute__((always_inline)) void enter_address(uint64_t address, uint64_t pointer, uint64_t caller,
                                                                uint64_t site)
{
    struct fdri_thread *t = &fdri_record_self;
    uint32_t on = fdri_atomic_load_relaxed(&fdr_switch_.on);
    if (!on) return;
    if (FDRI_UNLIKELY(t->recording != on)) {
        enter_first(address, pointer, caller, site);
        return;
    }
    uint64_t frame = pointer ? t->stack_end - pointer : FDRI_RECORD_FRAME_UNKNOWN;
    caller = ~caller;
    if (FDRI_UNLIKELY(!enter_known(t, (struct fdri_record_function){address, frame, caller, site, 0}, pointer != 0)))
        enter_unknown(address, frame, caller, site);
}

void fdr_enter_address(const void *function) { enter_address((uint64_t)(uintptr_t)function, 0, 0, 0); }

void fdr_enter_function_(const void *function, const void *caller, const void *pointer, const void *site)
{
    uint64_t sp = (uint64_t)(uintptr_t)pointer;
    if (!sp) __builtin_unreachable();
    enter_address((uint64_t)(uintptr_t)function, sp, (uint64_t)(uintptr_t)caller, (uint64_t)(uintptr_t)site);
}

void fdr_leave_address(const void *function)
{
    struct fdri_thread *t = &fdri_record_self;
    uint32_t on = fdri_atomic_load_relaxed(&fdr_switch_.on);
    uint64_t address = (uint64_t)(uintptr_t)function;
    uint64_t tick;
    if (!on) return;
    if (FDRI_UNLIKELY(t->unrounded_recording != on)) {
        leave_other(0, address, on);
        return;
    }
    if (FDRI_UNLIKELY(t->loc->depth > t->depth_limit)) {
        leave_address_deep(address);
        return;
    }
    enum leave_result result = leave_fast(t, 0, address, 0, &tick);
    if (result == REST) leave_rest(t, tick);
    else if (result == NOT_MINE) leave_address_slow(address);
}

void fdr_enter(fdr_region region)
{
    uint32_t on = fdri_atomic_load_relaxed(&fdr_switch_.on);
    if (on) fdr_enter_(region, on);
}
void fdr_leave(fdr_region region)
{
    uint32_t on = fdri_atomic_load_relaxed(&fdr_switch_.on);
    if (on) fdr_leave_(region, on);
}
void fdr_enter_at(fdr_region region, uint64_t time_ns)
{
    if (fdri_atomic_load_relaxed(&fdr_switch_.on)) enter_slow(region, NULL, false, time_ns);
}
void fdr_leave_at(fdr_region region, uint64_t time_ns)
{
    if (fdri_atomic_load_relaxed(&fdr_switch_.on)) leave_slow(region, 0, false, time_ns);
}
