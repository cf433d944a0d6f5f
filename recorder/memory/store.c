/* SPDX-License-Identifier: MIT */
/* Room for the next record. A partition is made with its first record. Its bins grow from 512 bytes to the configured
 * size. If no bin is free and no other location gives one, strategy/ gives events back. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/atomic.h"
#include "base/bits.h"
#include "bins/bins.h"
#include "bins/partition.h"
#include "bins/pieces.h"
#include "bins/pressure/bins_pressure.h"
#include "format/arena/arena.h"
#include "format/classes/class_table.h"
#include "format/codec/encode.h"
#include "format/codec/prediction.h"
#include "format/codec/record_codec.h"
#include "recorder/memory/memory.h"
#include "recorder/names/names.h"
#include "recorder/pressure/recorder_pressure.h"
#include "recorder/record/record.h"
#include "recorder/recording.h"
#include "recorder/shares/shares.h"
#include "recorder/strategy/strategy.h"
#include "recorder/strategy_table.h"
#include "recorder/thread/arena_place.h"
#include "recorder/thread/thread_state.h"

static uint32_t full_log2(void) { return fdri_life_recording.arena.bin_log2; }

bool fdri_memory_may_take(const struct fdri_thread *t)
{
    /* [ended] may take the last one: with it, accounts of ended threads are folded, which frees more */
    if (t->loc->flags & FDRI_ARENA_LOCATION_ENDED) return true;
    /* among very many threads, half of the reserve waits for a new thread's first accounts: half a bin of 4 KiB each */
    uint32_t left = t->loc->level_blocks && fdri_shares_crowded() ? fdri_life_recording.bin_reserve / 2 : 1;
    if (fdri_shares_poor(t)) return fdri_bins_free_count(&fdri_life_recording.arena) > left;
    return fdri_bins_free_count(&fdri_life_recording.arena) >
           fdri_life_recording.bin_reserve + fdri_record_sample_bins_due();
}

uint32_t fdri_memory_take_free(struct fdri_thread *t, uint32_t size_log2)
{
    struct fdri_bins_arena *a = &fdri_life_recording.arena;
    uint32_t off = 0;
    if (fdri_shares_poor(t) && fdri_bins_free_count(a) <= fdri_life_recording.bin_reserve) {
        fdri_piece_collect(a, t->loc);
        off = fdri_bins_piece_own(a, t->loc, size_log2);
        if (!off) off = fdri_shares_take_returned(t, size_log2);
    }
    return !off && fdri_memory_may_take(t) ? fdri_bins_piece_take(a, t->loc, size_log2) : off;
}

/* Small pieces that are used at once never join into large ones. So if a whole bin is wanted and could be given back
 * instead, free pieces wait for their neighbours. They do not wait once they are a 64th of the location's bins. */
bool fdri_memory_pieces_may_wait(const struct fdri_thread *t)
{
    uint64_t waiting = (uint64_t)t->loc->piece_units << 9,
             held = (uint64_t)fdri_atomic_load_relaxed(&t->loc->bins_held) * fdri_life_recording.arena.super->bin_bytes;
    return fdri_strategy_now()->always_gives && waiting < held / 64;
}

/* The largest bin for this location, as log2. If bands were joined because memory is short, bins stay small and mostly
 * of one size, so that returned pieces fit. The limits are bytes for each partition. Among many threads
 * there is no such limit, so that whole bins can go to other threads. */
enum { SMALLEST_BELOW = 5120, SMALL_BELOW = 12288, SMALL_BELOW_LATER = 24576 };
static uint32_t most_size(const struct fdri_thread *t)
{
    uint32_t flags = t->loc->flags, live = fdri_atomic_load_relaxed(&fdri_life_recording.shares.live);
    if (FDRI_LIKELY(!(flags & FDRI_ARENA_LOCATION_JOINED))) return full_log2();
    if (live > FDRI_SHARES_MANY_THREADS || live * 8 > fdri_life_recording.arena.super->locations_sure)
        return full_log2();
    uint64_t room = fdri_join_room(t), parts = t->live_parts;
    if (room < parts * SMALLEST_BELOW) return 9;
    bool small = room < parts * (flags & FDRI_ARENA_LOCATION_JOINED_LONG ? SMALL_BELOW_LATER : SMALL_BELOW);
    return small ? (uint32_t)fdri_bits_min(10, full_log2()) : full_log2();
}

/* The smallest piece that will do instead of `want`. */
static uint32_t least_size(const struct fdri_thread *t, uint32_t want)
{
    if (want == 9 || !fdri_memory_pieces_may_wait(t)) return 9;
    if (want == full_log2()) return want - 1;
    return most_size(t) < full_log2() ? want : 9;
}

/* Refills the reserve after new threads have used it: with each bin it fills, a location with more than the average
 * gives bins back. New threads depend on it, as open bins and pieces cannot be claimed from other locations. */
enum { PIECES_MORE = 3 };
static void refill(struct fdri_thread *t, struct fdri_arena_part *p)
{
    struct fdri_bins_arena *a = &fdri_life_recording.arena;
    uint32_t got = 0, more = fdri_atomic_load_relaxed(&fdri_life_recording.shares.live) > 1 ? PIECES_MORE : 0;
    fdri_piece_collect(a, t->loc);
    if (fdri_bins_free_count(a) >= fdri_life_recording.bin_reserve || !fdri_strategy_gives() || !fdri_shares_rich(t))
        return;
    uint32_t off = fdri_strategy_reduce(t, p, full_log2(), &got);
    if (off) fdri_bins_piece_give(a, t->loc, off, got);
    for (; off && got < full_log2() && more; more--) /* more pieces, which may complete the bin */
        if ((off = fdri_strategy_reduce(t, p, full_log2(), &got))) fdri_bins_piece_give(a, t->loc, off, got);
    /* the step also left bins ready for this location's next requests: they go to the reserve now */
    while (fdri_bins_free_count(a) < fdri_life_recording.bin_reserve && (off = fdri_ready_take(t, full_log2())))
        fdri_bins_piece_give(a, t->loc, off, full_log2());
}

/* Has the location less than two of the smallest bins for each band of each level, with a share no larger? Then other
 * threads take its bins before it stores in that partition again, and searches cost credit. */
enum { LEVEL_UNITS = 2 * FDRI_ARENA_BANDS };
static bool is_starving(const struct fdri_thread *t)
{
    uint64_t bins = fdri_bits_max(fdri_shares_fair_when_full(), fdri_shares_bins_of(t->loc));
    return !fdri_shares_only_location(t) &&
           bins << (full_log2() - 9) < (uint64_t)fdri_arena_levels_in(t->loc->level_blocks) * LEVEL_UNITS;
}

/* Offset of a bin of 1 << *got bytes for partition p; 0: none. p is NULL if the request is for a meta block. Sources in
 * order: own pieces of that size, free bins, other own pieces, bins ready, other locations, own events. A request for a
 * whole bin begins with bins ready. */
static uint32_t find_bin(struct fdri_thread *t, struct fdri_arena_part *p, uint32_t want, uint32_t *got)
{
    struct fdri_bins_arena *a = &fdri_life_recording.arena;
    *got = want;
    if (t->bins_ready && want == full_log2() && (!t->loc->piece_units || fdri_memory_pieces_may_wait(t)))
        return fdri_ready_take(t, want);
    uint32_t off = fdri_memory_take_free(t, want);
    if (!off && fdri_shares_poor(t)) off = fdri_bins_piece_own(a, t->loc, want);
    if (!off) off = fdri_bins_piece_any(a, t->loc, want, least_size(t, want), got);
    /* split off a larger piece */
    if (!off && !fdri_memory_pieces_may_wait(t)) off = fdri_bins_piece_own(a, t->loc, *got = want);
    if (off) {
        fdri_shares_note_taken(t);
        return off;
    }
    if ((off = fdri_ready_take(t, *got = want))) return off;
    fdri_atomic_add_relaxed(&fdri_life_recording.shares.bins_refilled, 1ull);
    if (is_starving(t)) t->room_search.credit -= FDRI_THREAD_SEARCH_COST;
    refill(t, p);
    off = fdri_shares_any_room(t, (struct fdri_shares_size){want, 9, 0}, got);
    if (!off) off = fdri_strategy_reduce(t, p, want, got);
    if (a->nodes > 1 && off && *got == full_log2())
        off = fdri_bins_exchange_nearer(a, off, fdri_bins_node_here(a, t->loc));
    if (off) fdri_shares_note_taken(t);
    return off;
}

void fdri_memory_prepare_bin(struct fdri_thread *t)
{
    t->search_barriers = 0;
    bool may = t->last_served && !t->bins_ready && !t->room_search.requests_to_skip && t->room_search.credit >= 0;
    uint32_t got = 0, off = may ? find_bin(t, t->last_served, full_log2(), &got) : 0;
    if (off) fdri_ready_keep(t, off, got);
}

/* ---- partitions ---- */

/* Takes the encoder table of a closed partition of readings: a new level of readings closes another one. 0: none. */
static uint32_t table_of_closed(struct fdri_thread *t, uint32_t bytes)
{
    for (uint32_t off = t->loc->parts_first; off;) {
        struct fdri_arena_part *p = fdri_thread_at(t, off);
        uint32_t table = p->table_off, head = sizeof(struct fdri_arena_meta_head);
        off = p->next;
        if (!table || !(p->flags & FDRI_ARENA_PART_CLOSED) || !fdri_record_is_reading(t->loc, p->class_, p->depth))
            continue;
        if (((const struct fdri_arena_meta_head *)fdri_thread_at(t, table - head))->bytes < head + bytes) continue;
        p->table_off = 0;
        return table - head;
    }
    return 0;
}

void fdri_memory_give_table(struct fdri_thread *t, struct fdri_arena_part *p, uint32_t instead)
{
    uint32_t old = p->table_off;
    p->table_off = instead;
    fdri_atomic_signal_fence(); /* a longjmp from here leaks the old table; in the other order it frees it twice */
    if (old) fdri_memory_meta_give(t, old - (uint32_t)sizeof(struct fdri_arena_meta_head));
}

/* Takes the table of the pinned partition that p follows. Tables of points may be too large for reuse as freed blocks.
 * 0: none. */
static uint32_t table_of_aside(struct fdri_thread *t, const struct fdri_arena_part *p, uint32_t bytes)
{
    const uint32_t head = sizeof(struct fdri_arena_meta_head);
    if (p->class_ == FDRI_ARENA_CLASS_REGION || p->table_off) return 0;
    struct fdri_arena_part *before = fdri_aside_of(t, p->depth, p->class_, p->band);
    uint32_t table = before ? before->table_off : 0;
    if (!table || ((const struct fdri_arena_meta_head *)fdri_thread_at(t, table - head))->bytes < head + bytes)
        return 0;
    before->table_off = 0;
    fdri_atomic_signal_fence(); /* a longjmp from here leaks the table; in the other order two partitions share it */
    return table - head;
}

static uint32_t table_bytes(uint32_t class_, uint32_t contexts)
{
    switch (class_) {
    case FDRI_ARENA_CLASS_REGION: return contexts * 8;
    case FDRI_ARENA_CLASS_USER: return fdri_codec_point_table_bytes(class_, contexts, fdri_names_event_fields());
    default: /* messages have room for a token */
        return fdri_codec_point_table_bytes(class_, contexts,
                                            fdri_classes_fields_most(class_) + fdri_codec_numbers_in(class_));
    }
}

/* A new table with room for `need` bytes; 0: no room. If it would be too large for reuse once the partition outgrows
 * it, it is made for the largest bins at once. nice: a smaller table exists, so few events are given back for it. */
static uint32_t new_table(struct fdri_thread *t, const struct fdri_arena_part *p, uint32_t need, bool nice)
{
    const uint32_t head = sizeof(struct fdri_arena_meta_head);
    uint32_t last = table_bytes(p->class_, fdri_codec_contexts(1u << fdri_life_recording.arena.bin_log2)), off = 0;
    if (last > need && !fdri_memory_meta_reusable(head + need))
        off = fdri_memory_meta_larger(t, FDRI_ARENA_META_TABLE, head + last);
    return off ? off : (nice ? fdri_memory_meta_larger : fdri_memory_meta)(t, FDRI_ARENA_META_TABLE, head + need);
}

/* Makes sure that the encoder table of p is large enough for bins of 1 << size_log2 bytes. False: no room. */
static bool have_table(struct fdri_thread *t, struct fdri_arena_part *p, uint32_t size_log2)
{
    const uint32_t head = sizeof(struct fdri_arena_meta_head);
    uint32_t need = table_bytes(p->class_, fdri_codec_contexts(1u << size_log2));
    if (p->table_off) {
        const struct fdri_arena_meta_head *h = fdri_thread_at(t, p->table_off - head);
        if (h->bytes - head >= need) return true;
    }
    bool reading = fdri_record_is_reading(t->loc, p->class_, p->depth);
    uint32_t off = reading ? table_of_closed(t, need) : 0;
    if (!off) off = table_of_aside(t, p, need);
    bool nice = p->table_off && size_log2 > 9; /* else no smaller table would do */
    if (!off) off = new_table(t, p, need, nice);
    if (!off) return false;
    fdri_memory_give_table(t, p, off + head);
    return true;
}

struct fdri_arena_part *fdri_memory_make_part(struct fdri_thread *t, uint32_t depth, uint32_t class_, uint32_t band)
{
    uint32_t off = fdri_memory_meta(t, FDRI_ARENA_META_PART, sizeof(struct fdri_arena_part));
    if (!off) return NULL;
    struct fdri_arena_part *p = fdri_thread_at(t, off);
    p->depth = (uint16_t)depth;
    p->class_ = (uint8_t)class_;
    p->band = (uint8_t)band;
    const struct fdri_arena_part *before = fdri_aside_of(t, depth, class_, band);
    p->open_seq = before ? before->open_seq : 0;
    p->last_tick = before ? before->last_tick : 0;
    p->list_head = (p->open_seq + 1ull) << 32; /* the first bin has seq 1 */
    fdri_codec_encode_close(p);                /* full: the first record asks for a bin */
    p->next = t->loc->parts_first;
    fdri_atomic_signal_fence();
    fdri_atomic_store_release(&t->loc->parts_first, off); /* R:part - pairs with A:part in export/ */
    t->victim = NULL;                                     /* the new one may be less valuable */
    if (!t->loc->samples_off) fdri_strategy_made(t, p);   /* samples are thinned otherwise */
    return p;
}

/* Are records of this kind only counted, as reduced? */
static bool gate_closed(const struct fdri_thread *t, uint32_t depth, uint32_t class_, uint32_t band)
{
    const struct fdri_arena_location *l = t->loc;
    if (l->flags & FDRI_ARENA_LOCATION_STOPPED) return true;
    if (fdri_record_is_reading(l, class_, depth)) {
        uint32_t gate = fdri_thread_level(t, 0)->reading_gate;
        return gate && depth >= gate;
    }
    if (l->class_closed >> class_ & 1) return true;
    return class_ == FDRI_ARENA_CLASS_REGION && l->gate_depth[band] && depth >= l->gate_depth[band];
}

bool fdri_memory_part_ready(struct fdri_thread *t, uint32_t *slot, uint32_t depth, uint32_t class_)
{
    if (*slot == FDRI_THREAD_GATE_CLOSED || (!*slot && gate_closed(t, depth, class_, 0))) return true;
    struct fdri_arena_part *p = *slot ? fdri_thread_at(t, *slot) : fdri_memory_make_part(t, depth, class_, 0);
    if (!p) return false;
    if (!*slot) *slot = fdri_thread_offset_of(t, p);
    return p->table_off || have_table(t, p, 9);
}

uint32_t *fdri_memory_slot_of(struct fdri_thread *t, const struct fdri_arena_part *p)
{
    struct fdri_arena_level *v = fdri_thread_level(t, p->depth);
    if (p->class_ == FDRI_ARENA_CLASS_REGION) return &v->part[p->band];
    struct fdri_arena_level_points *points = fdri_thread_at(t, v->points_off);
    return &points->by_class[p->class_].part;
}

/* A longjmp between linking a partition and setting its slot, or a join of bands, leaves the slot empty. Without this a
 * second partition of the same kind would be made, and a file with two is damaged. */
void fdri_memory_relink_slots(struct fdri_thread *t)
{
    t->live_parts = t->pinned_units = 0;
    for (uint32_t off = t->loc->parts_first, next; off; off = next) {
        const struct fdri_arena_part *p = fdri_thread_at(t, off);
        next = p->next;
        if (p->flags & FDRI_ARENA_PART_PINNED) {
            t->pinned_units += fdri_atomic_load_relaxed(&p->bytes);
            fdri_leave_slots(t, p);
        }
        if (p->flags & FDRI_ARENA_PART_PINNED || fdri_joined_away(t, p)) continue;
        uint32_t *slot = fdri_memory_slot_of(t, p);
        if (!*slot) *slot = off;
        t->live_parts++;
    }
}

/* Closes the gate of p's kind and those of all calls that such a call may contain: deeper ones, in p's band and shorter
 * ones. They may have no partition yet. So a call is stored only if its caller is. */
static void close_gates(struct fdri_arena_location *l, const struct fdri_arena_part *p)
{
    for (uint32_t band = 0; band <= p->band; band++) {
        uint32_t *gate = &l->gate_depth[band], depth = p->depth + (band < p->band);
        if (!*gate || depth < *gate) *gate = depth;
    }
}

void fdri_memory_close_gate(struct fdri_thread *t, struct fdri_arena_part *p)
{
    struct fdri_arena_location *l = t->loc;
    *fdri_memory_slot_of(t, p) = FDRI_THREAD_GATE_CLOSED;
    p->flags |= FDRI_ARENA_PART_CLOSED;
    if (p->class_ == FDRI_ARENA_CLASS_REGION) {
        close_gates(l, p);
    } else if (fdri_record_is_reading(l, p->class_, p->depth)) {
        fdri_thread_level(t, 0)->reading_gate = p->depth;
    } else {
        l->class_closed |= 1u << p->class_;
    }
}

/* A third of the partition's bytes. So the open bin, half empty on average, costs a sixth at most; larger bins store
 * more in each byte. Among many threads bins are whole soon, as other threads can claim whole bins at once. With few
 * bins for each thread they stay small in locations that hold few, as encoder tables grow with the size. */
enum { CROWDED_SMALL = 2, NOT_MUCH = 8 };
static uint32_t best_size(const struct fdri_thread *t, const struct fdri_arena_part *p)
{
    uint32_t units = fdri_atomic_load_relaxed(&p->bytes) / 3, most = most_size(t);
    if (most == full_log2() && fdri_shares_crowded()) {
        bool little = fdri_shares_fair_when_full() < NOT_MUCH && fdri_shares_bins_of(t->loc) < NOT_MUCH;
        return little || p->open_seq < CROWDED_SMALL ? 9 : most;
    }
    return units ? (uint32_t)fdri_bits_min(9 + fdri_bits_log2_floor(units), most) : 9;
}

/* Other threads cannot claim the open bin of a partition while its owner records, nor pieces that are not listed. If
 * many threads hold more than a quarter of the used bins in this way, a partition's first eight bins stay small. */
static bool stays_small(const struct fdri_arena_part *p)
{
    const struct fdri_bins_arena *a = &fdri_life_recording.arena;
    if (p->open_seq >= 8 || fdri_atomic_load_relaxed(&fdri_life_recording.shares.live) <= FDRI_SHARES_MANY_THREADS)
        return false;
    return fdri_atomic_load_relaxed(&a->split_bins) > (uint32_t)fdri_atomic_load_relaxed(&a->super->virgin) / 4;
}

/* Each rewind ends an open bin. So after it bins begin small again and double. A program that rewinds again and again
 * has bins about as large as the records between two rewinds. */
static uint32_t size_after_rewind(struct fdri_arena_part *p, uint32_t best)
{
    uint32_t want = p->flags & FDRI_ARENA_PART_REWOUND ? 9 : p->size_log2 + 1u;
    p->flags &= (uint8_t) ~(FDRI_ARENA_PART_REWOUND | FDRI_ARENA_PART_GROWING);
    if (want >= best) return best;
    p->flags |= FDRI_ARENA_PART_GROWING;
    return want;
}

/* log2 of the next bin's bytes, with the encoder table for it; 0: no room for the table. */
static uint32_t next_size(struct fdri_thread *t, struct fdri_arena_part *p)
{
    uint32_t want = stays_small(p) ? 9 : best_size(t, p);
    if (p->flags & (FDRI_ARENA_PART_REWOUND | FDRI_ARENA_PART_GROWING)) want = size_after_rewind(p, want);
    while (!have_table(t, p, want)) {
        if (want == 9 || !p->table_off) return 0;
        want--;
    }
    return want;
}

/* Did a reduction close the gate of p's kind while p looked for a table or bin? p is empty, so it could not give
 * anything, and its callers' events may have gone instead. */
static bool closed_meanwhile(const struct fdri_thread *t, const struct fdri_arena_part *p)
{
    return !(uint32_t)fdri_atomic_load_relaxed(&p->list_head) && gate_closed(t, p->depth, p->class_, p->band);
}

/* The slot's partition, made if need be. NULL: its gate is closed, there is no room, or searches pause. A failed search
 * for meta blocks does not pause searches for bins: meta_alloc.c has pauses of its own. */
static struct fdri_arena_part *part_of(struct fdri_thread *t, uint32_t *slot, uint32_t depth, uint32_t class_,
                                       uint32_t band)
{
    if (*slot == 0 && gate_closed(t, depth, class_, band)) *slot = FDRI_THREAD_GATE_CLOSED;
    if (*slot == FDRI_THREAD_GATE_CLOSED || fdri_thread_search_pauses(&t->room_search, t->loc->last_tick)) return NULL;
    if (*slot) return fdri_thread_at(t, *slot);
    struct fdri_arena_part *p = fdri_memory_make_part(t, depth, class_, band);
    if (p) *slot = fdri_thread_offset_of(t, p);
    return p;
}

/* Seals the newest bin of p and returns the offset of the next one, not opened yet; 0: none. */
static uint32_t next_bin(struct fdri_thread *t, struct fdri_arena_part *p, uint32_t *slot, uint32_t *got)
{
    fdri_thread_search_yields(&t->room_search, FDRI_ARENA_COMMIT_RECORDS(p->progress));
    fdri_bins_part_seal(&fdri_life_recording.arena, p);
    fdri_strategy_sealed(t, p);
    uint32_t want = next_size(t, p), off = want ? find_bin(t, p, want, got) : 0;
    if (*slot != FDRI_THREAD_GATE_CLOSED && closed_meanwhile(t, p)) {
        *slot = FDRI_THREAD_GATE_CLOSED;
        p->flags |= FDRI_ARENA_PART_CLOSED;
    }
    if (want)
        fdri_thread_search_over(&t->room_search, off || *slot == FDRI_THREAD_GATE_CLOSED,
                                t->loc->last_tick + t->pause_ticks);
    if (!off || *slot != FDRI_THREAD_GATE_CLOSED) return off;
    fdri_bins_piece_give(&fdri_life_recording.arena, t->loc, off, *got); /* the search itself closed the gate */
    return 0;
}

struct fdri_arena_part *fdri_memory_room(struct fdri_thread *t, uint32_t *slot, uint32_t depth, uint32_t class_,
                                         uint32_t band, uint64_t *reduced, uint64_t *lost)
{
    uint32_t got = 0;
    t->search_barriers = 0;
    if (fdri_life_recording.settings.pin_ns) fdri_aside_look(t);
    fdri_join_look(t);
    uint32_t *joined = *slot ? NULL : fdri_joined_slot(t, depth, class_, &band);
    if (joined) *slot = *joined;
    if (joined && *slot > FDRI_THREAD_GATE_CLOSED && !fdri_codec_encode_full(fdri_thread_at(t, *slot)))
        return fdri_thread_at(t, *slot);
    struct fdri_arena_part *p = part_of(t, slot, depth, class_, band);
    if (joined) *joined = *slot;
    uint32_t off = p ? next_bin(t, p, slot, &got) : 0;
    const struct fdri_arena_level *v = fdri_thread_level(t, depth);
    bool calls = class_ == FDRI_ARENA_CLASS_REGION;
    if (!off && *slot != FDRI_THREAD_GATE_CLOSED) fdri_strategy_full(t);
    if (!off) {
        /* if this call made storing stop, it was counted together with the other open calls */
        bool settled = calls && (v->flags & FDRI_ARENA_LEVEL_SETTLED);
        if (!settled) fdri_atomic_bump_relaxed(*slot == FDRI_THREAD_GATE_CLOSED ? reduced : lost, 1);
        return NULL;
    }
    if (fdri_atomic_load_relaxed(&t->loc->bins_held) >= 8) fdri_strategy_reserve_ledger(t);
    /* before the bin's header is written */
    if (calls && t->loc->flags & FDRI_ARENA_LOCATION_JOINED_ALL) fdri_join_zero(t, p);
    uint32_t ordinal = calls && v->zero_tick == p->last_tick ? v->zero_count : 0;
    /* a point reserves its bits by itself */
    fdri_bins_part_open(&fdri_life_recording.arena, t->loc, p, off, got, ordinal, calls ? FDRI_CODEC_CALL_BITS_MAX : 0);
    fdri_ready_look(t);
    fdri_strategy_opened(t, p);
    t->last_served = p;
    return p;
}
