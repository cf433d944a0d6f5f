/* SPDX-License-Identifier: MIT */
/* Meta blocks of a location, cut from its slabs. A slab comes from the meta end of the arena. Once that is used up, it
 * is a piece of a bin, for which events may be given back. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/atomic.h"
#include "base/bits.h"
#include "base/racy.h"
#include "bins/bins.h"
#include "bins/pieces.h"
#include "bins/slabs.h"
#include "format/arena/arena.h"
#include "recorder/ended/ended.h"
#include "recorder/memory/memory.h"
#include "recorder/recording.h"
#include "recorder/shares/shares.h"
#include "recorder/strategy_table.h"
#include "recorder/thread/arena_place.h"
#include "recorder/thread/thread_state.h"

/* The first slab holds the first blocks of a location: level 0, 7 levels, the row table and a few rows. Together with
 * the location itself it takes 4 KiB. Among very many threads it is 2 KiB, half a bin of 4 KiB: halves are easier to
 * find. */
enum { SLAB_BYTES = 1024, FIRST_BYTES = 4096 - sizeof(struct fdri_arena_location), CROWDED_BYTES = 2048 };
enum { SMALL_BYTES = 640, REST_BYTES = 128 };
enum { ROUNDS = 64, TRIES = 8, EACH = 4096, ENDED_STEPS = 8, ALL_ENDED = 256, LARGER_ROUNDS = 2 };

static uint32_t full_log2(void) { return fdri_life_recording.arena.bin_log2; }

/* Clears a block and writes its head; the magic last, so after a kill a block with a magic has its head. */
static uint32_t set_head(struct fdri_thread *t, uint32_t off, enum fdri_arena_meta_kind kind, uint32_t bytes)
{
    struct fdri_arena_meta_head *h = fdri_thread_at(t, off);
    fdri_racy_clear(h, bytes);
    h->kind = (uint16_t)kind;
    h->bytes = bytes;
    h->location = t->loc->id;
    fdri_atomic_signal_fence();
    h->magic = FDRI_ARENA_META_MAGIC;
    return off;
}

/* Sources of a block. END_ONLY: the meta end only, as the caller can do without. BINS: bins, too. BINS_OF_ALL: also
 * bins of other locations' fair shares. The last is the same without pauses between searches: levels have their own. */
enum source { END_ONLY, BINS, BINS_OF_ALL, BINS_OF_ALL_NOW };

/* A piece of a bin; 0: none. Other locations give above their fair share only, and this one's events may be given
 * back, in at most `most` rounds. */
static uint32_t piece_within_share(struct fdri_thread *t, uint32_t want, int most)
{
    struct fdri_bins_arena *a = &fdri_life_recording.arena;
    const struct fdri_shares_size size = {want, want, 0};
    uint32_t got = 0, off = 0;
    for (int tries = 0; tries < most; tries++) {
        off = fdri_memory_take_free(t, want);
        if (!off) off = fdri_bins_piece_own(a, t->loc, want);
        if (off || (off = fdri_shares_any_room(t, size, &got))) break;
        /* however recently a thread ended: its events are detail of one thread, these are accounts of a live one */
        if (tries < ENDED_STEPS && fdri_ended_room(t, FDRI_ENDED_FOR_POOR)) continue;
        off = t->loc->level_blocks ? fdri_strategy_reduce(t, NULL, want, &got) : 0;
        if (!off || got == want) break;
        fdri_bins_piece_give(a, t->loc, off, got); /* too small; the next round may complete it */
        off = 0;
    }
    return off;
}

/* For blocks without which events are lost: other locations give from their fair share, too, and ended threads
 * everything. */
static uint32_t piece_from_anyone(struct fdri_thread *t, uint32_t want)
{
    uint32_t got, off = 0;
    for (uint32_t must = 1; must <= TRIES && !off; must++)
        off = fdri_shares_any_room(t, (struct fdri_shares_size){want, want, must}, &got);
    for (int tries = 0; tries < ALL_ENDED && !off && fdri_ended_room(t, FDRI_ENDED_FOR_POOR); tries++)
        off = fdri_bins_piece_take(&fdri_life_recording.arena, t->loc, want);
    return off;
}

static uint32_t piece_from(struct fdri_thread *t, uint32_t want, enum source source)
{
    if (want > full_log2()) return 0;
    if (source == BINS) return t->meta_search.requests_to_skip ? 0 : piece_within_share(t, want, LARGER_ROUNDS);
    /* a thread that attaches has pauses of its own: attach.c */
    bool pauses = source == BINS_OF_ALL && (t->loc->level_blocks || t->loc->samples_off);
    if (pauses && fdri_thread_search_pauses(&t->meta_search, t->loc->last_tick)) return 0;
    uint32_t off = piece_within_share(t, want, ROUNDS);
    if (!off) off = piece_from_anyone(t, want);
    if (pauses) fdri_thread_search_over(&t->meta_search, off, t->loc->last_tick + t->pause_ticks);
    return off;
}

/* Bytes of the meta end that blocks of this size leave free: larger ones, which fit no bin, need them. So a block that
 * fits a bin goes there first. There are two exceptions. A location with very many partitions has small bins, and a
 * search for pieces would take long. A strategy that closes gates or drops epochs may have nothing to give back for a
 * bin. */
static uint64_t bytes_left_to_bins(const struct fdri_thread *t, uint32_t want)
{
    uint64_t bin = fdri_life_recording.arena.super->bin_bytes,
             held = fdri_atomic_load_relaxed(&t->loc->bins_held) * bin;
    if (!fdri_strategy_now()->always_gives) return 0;
    return want <= bin && held >= (uint64_t)t->live_parts * EACH ? fdri_life_recording.bin_reserve * bin : 0;
}

/* A slab from the meta end; 0: none. If no bin can hold the first slab of a location, it may use the reserve there. If
 * the reserve is used up, ended threads are folded, which frees slabs. */
static uint32_t slab_from_meta_end(struct fdri_thread *t, uint32_t want, uint64_t to_bins)
{
    struct fdri_bins_arena *a = &fdri_life_recording.arena;
    bool begins = !t->loc->level_blocks && !t->loc->samples_off && want > a->super->bin_bytes;
    uint64_t leave = begins ? 0 : fdri_life_recording.slabs.reserve + to_bins;
    uint32_t off = fdri_bins_slab_take(a, &fdri_life_recording.slabs, want, leave);
    for (int i = 0; i < ROUNDS && !off && begins; i++) {
        off = fdri_bins_slab_take_larger(a, &fdri_life_recording.slabs, want);
        if (off || !fdri_ended_room(t, FDRI_ENDED_FOR_ATTACH_WHOLE)) break;
        off = fdri_bins_slab_take(a, &fdri_life_recording.slabs, want, 0);
    }
    return off;
}

/* A slab of at least `bytes`, its head included, on the location's chain; NULL: no room. */
static struct fdri_arena_slab *new_slab(struct fdri_thread *t, uint32_t bytes, enum source source)
{
    bool from_bins = source != END_ONLY;
    struct fdri_arena_location *l = t->loc;
    uint32_t want = fdri_bins_slab_bytes(bytes), log2 = (uint32_t)fdri_bits_max(fdri_bits_log2_ceil(bytes), 9);
    uint64_t to_bins = from_bins ? bytes_left_to_bins(t, want) : 0;
    /* with one or two bins among many threads, the location uses up its own pieces first */
    bool own = from_bins && log2 < full_log2() && fdri_shares_poor(t) && fdri_shares_crowded();
    uint32_t off = own ? fdri_bins_piece_own(&fdri_life_recording.arena, l, log2) : 0;
    bool in_bins = off;
    if (!off) off = slab_from_meta_end(t, want, to_bins);
    if (!off) in_bins = from_bins && (off = piece_from(t, log2, source));
    if (!off && to_bins) off = slab_from_meta_end(t, want, 0);
    if (!off) return NULL;
    if (in_bins) {
        want = 1u << log2;
        fdri_atomic_add_relaxed(&fdri_life_recording.meta_in_bins, want);
        fdri_atomic_add_relaxed(&l->meta_units, want >> 9);
    }
    /* a slab from the meta end is zero already, and other threads may still read its `next` */
    struct fdri_arena_slab *s = fdri_thread_at(t, off);
    if (in_bins) set_head(t, off, FDRI_ARENA_META_SLAB, want);
    s->head.location = l->id;
    s->head.kind = FDRI_ARENA_META_SLAB;
    s->in_bins = in_bins;
    fdri_atomic_store_relaxed(&s->next, l->slabs);
    fdri_atomic_signal_fence();
    fdri_atomic_store_release(&l->slabs, off); /* R:block */
    return s;
}

/* Puts a block on the free list of its size. */
static void keep_for_reuse(struct fdri_thread *t, uint32_t off, uint32_t bytes)
{
    uint32_t *list = &t->loc->meta_free[bytes / FDRI_ARENA_META_ALIGN - 1];
    struct fdri_arena_meta_head *h = fdri_thread_at(t, off);
    memcpy(h + 1, list, sizeof *list);
    fdri_atomic_signal_fence();
    *list = off;
}

/* Makes [off, end) the current stretch; the rest of the old one becomes small free blocks. */
static void use_slab(struct fdri_thread *t, uint32_t off, uint32_t end)
{
    struct fdri_arena_location *l = t->loc;
    while (l->meta_end - l->meta_off >= REST_BYTES) {
        uint32_t rest = l->meta_off;
        l->meta_off += REST_BYTES;
        fdri_atomic_signal_fence(); /* a longjmp from here leaks the block; in the other order it is handed out twice */
        keep_for_reuse(t, set_head(t, rest, FDRI_ARENA_META_FREE, REST_BYTES), REST_BYTES);
    }
    fdri_memory_set_stretch(l, offsetof(struct fdri_arena_location, meta_off), off, end);
}

static uint32_t take_block(struct fdri_thread *t, enum fdri_arena_meta_kind kind, uint32_t bytes, enum source source)
{
    struct fdri_arena_location *l = t->loc;
    bytes = (uint32_t)fdri_bits_align_up(bytes, FDRI_ARENA_META_ALIGN);
    uint32_t *reuse = bytes < SMALL_BYTES ? &l->meta_free[bytes / FDRI_ARENA_META_ALIGN - 1] : NULL;
    if (reuse && *reuse) {
        uint32_t off = *reuse;
        memcpy(reuse, (uint8_t *)fdri_thread_at(t, off) + sizeof(struct fdri_arena_meta_head), sizeof *reuse);
        return set_head(t, off, kind, bytes);
    }
    if (l->meta_end - l->meta_off < bytes) {
        uint32_t least = bytes + (uint32_t)sizeof(struct fdri_arena_slab), most = SLAB_BYTES;
        if (!l->slabs) most = fdri_shares_crowded() ? CROWDED_BYTES : FIRST_BYTES;
        struct fdri_arena_slab *s = least < most ? new_slab(t, most, source ? BINS : END_ONLY) : NULL;
        if (!s) s = new_slab(t, least, source);
        if (!s) return 0;
        uint32_t off = fdri_thread_offset_of(t, s) + (uint32_t)sizeof *s,
                 end = fdri_thread_offset_of(t, s) + s->head.bytes;
        if (end - off - bytes < l->meta_end - l->meta_off) return set_head(t, off, kind, bytes);
        use_slab(t, off, end);
    }
    uint32_t off = l->meta_off;
    l->meta_off += bytes;
    return set_head(t, off, kind, bytes);
}

uint32_t fdri_memory_meta(struct fdri_thread *t, enum fdri_arena_meta_kind kind, uint32_t bytes)
{
    bool of_levels = kind == FDRI_ARENA_META_LEVELS || kind == FDRI_ARENA_META_FROZEN;
    return take_block(t, kind, bytes, of_levels ? BINS_OF_ALL_NOW : BINS_OF_ALL);
}

uint32_t fdri_memory_meta_larger(struct fdri_thread *t, enum fdri_arena_meta_kind kind, uint32_t bytes)
{
    return take_block(t, kind, bytes, BINS);
}

uint32_t fdri_memory_meta_without_reduction(struct fdri_thread *t, enum fdri_arena_meta_kind kind, uint32_t bytes)
{
    return take_block(t, kind, bytes, END_ONLY);
}

void fdri_memory_meta_prepare(struct fdri_thread *t)
{
    struct fdri_arena_location *l = t->loc;
    if (l->meta_end - l->meta_off >= SLAB_BYTES / 2) return;
    struct fdri_arena_slab *s = new_slab(t, SLAB_BYTES, BINS);
    if (s) use_slab(t, fdri_thread_offset_of(t, s) + (uint32_t)sizeof *s, fdri_thread_offset_of(t, s) + s->head.bytes);
}

bool fdri_memory_meta_reusable(uint32_t bytes)
{
    return fdri_bits_align_up(bytes, FDRI_ARENA_META_ALIGN) < SMALL_BYTES;
}

void fdri_memory_meta_give(struct fdri_thread *t, uint32_t off)
{
    struct fdri_arena_meta_head *h = fdri_thread_at(t, off);
    h->kind = FDRI_ARENA_META_FREE;
    if (h->bytes < SMALL_BYTES) keep_for_reuse(t, off, h->bytes); /* else lost; rare: a row table that grew */
}

uint64_t fdri_memory_meta_bytes(void)
{
    const struct fdri_life_recorder *r = &fdri_life_recording;
    return fdri_bins_meta_used(&r->arena) + fdri_atomic_load_relaxed(&r->meta_in_bins) -
           fdri_atomic_load_relaxed(&r->slabs.free_bytes);
}

void fdri_memory_meta_release(struct fdri_thread *t)
{
    struct fdri_arena_location *l = t->loc;
    for (uint32_t off = l->slabs, next; off; off = next) {
        struct fdri_arena_slab *s = fdri_thread_at(t, off);
        next = s->next;
        l->slabs = next;
        if (!s->in_bins) {
            fdri_bins_slab_give(&fdri_life_recording.arena, &fdri_life_recording.slabs, off);
            continue;
        }
        uint32_t bytes = s->head.bytes;
        fdri_racy_clear(s, bytes);
        fdri_atomic_sub_relaxed(&fdri_life_recording.meta_in_bins, bytes);
        fdri_atomic_sub_relaxed(&l->meta_units, bytes >> 9);
        fdri_bins_piece_give(&fdri_life_recording.arena, l, off, fdri_bits_log2_floor(bytes));
    }
}
