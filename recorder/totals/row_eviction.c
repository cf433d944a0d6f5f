/* SPDX-License-Identifier: MIT */
/* Chooses the totals that go if there is no room for another row, so that common regions find room for theirs.
 *
 * First histograms go, then rows, which are added to the row named [rest]. Each time the least valuable of the next few
 * goes, by its calls and their time. So regions that ran only at the program's start make room for regions that run all
 * the time.
 *
 * A row is exact, or it does not exist. A region whose row went to [rest] stays there. So does a region that found no
 * room at first. A table of bits knows these regions; if several regions share a bit, all of them stay in [rest].
 *
 * All this runs under the lock of ended_threads.c; no thread gets it while a snapshot copies. The undo list of
 * fold_accounts.c makes a row and [rest] change at once. */
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/atomic.h"
#include "base/bits.h"
#include "base/system/signal_mask.h"
#include "format/arena/arena.h"
#include "recorder/ended/ended.h"
#include "recorder/memory/memory.h"
#include "recorder/names/names.h"
#include "recorder/pressure/recorder_pressure.h"
#include "recorder/recording.h"
#include "recorder/strategy/reduce.h"
#include "recorder/strategy_table.h"
#include "recorder/thread/arena_place.h"
#include "recorder/thread/thread_state.h"
#include "recorder/totals/totals.h"

enum { LOOK = 16, OPEN_MOST = 128, TRIES = 1000, BITS_LEAST = 512, BITS_MOST = 16384 };

struct choice {
    struct fdri_arena_row *row;
    struct fdri_arena_base_row *base; /* NULL: there are no epochs */
    uint64_t use, worth;
};

/* ---- the regions in [rest] ---- */

/* Ids of regions are dense, so they serve as their own hash. Kinds of points are few. */
static bool is_region(uint32_t key) { return key >> 24 == FDRI_ARENA_DEF_REGION; }
static uint64_t point_bit(uint32_t key) { return 1ull << (key * 0x9E3779B1u >> 26); }

enum { FEW = 64 }; /* this many bits need no memory */
static uint32_t bits_there(const struct fdri_thread_eviction_hand *h) { return h->evicted_off ? h->evicted_bits : FEW; }
static uint64_t *bits_of(struct fdri_thread *t)
{
    return t->eviction_hand.evicted_off
               ? fdri_thread_at(t, t->eviction_hand.evicted_off + sizeof(struct fdri_arena_meta_head))
               : &t->eviction_hand.evicted_few;
}

/* Grows the table of bits to `want`. Two keys that shared a bit then both have one. */
static void more_bits(struct fdri_thread *t, uint32_t want)
{
    struct fdri_thread_eviction_hand *h = &t->eviction_hand;
    uint32_t off = fdri_memory_meta(t, FDRI_ARENA_META_TABLE, (uint32_t)sizeof(struct fdri_arena_meta_head) + want / 8);
    if (!off) return;
    uint64_t *to = fdri_thread_at(t, off + sizeof(struct fdri_arena_meta_head)), *from = bits_of(t);
    for (uint32_t at = 0; at < want; at += bits_there(h)) memcpy(to + at / 64, from, bits_there(h) / 8);
    uint32_t old = h->evicted_off;
    if (!old) h->evicted_bits = FEW;
    fdri_atomic_signal_fence(); /* until evicted_bits grows, the new table's first bits equal the old one's */
    h->evicted_off = off;
    fdri_atomic_signal_fence();
    h->evicted_bits = want;
    if (old) fdri_memory_meta_give(t, old);
}

static void add_gone(struct fdri_thread *t, uint32_t key)
{
    struct fdri_thread_eviction_hand *h = &t->eviction_hand;
    uint32_t number = key & 0xffffffu, want = BITS_LEAST;
    /* the upper bound of ids */
    uint32_t regions = fdri_atomic_load_relaxed(&fdri_life_recording.arena.super->def_count[FDRI_ARENA_DEF_REGION]);
    if (!is_region(key)) {
        h->evicted_points |= point_bit(key);
        return;
    }
    while (want < BITS_MOST && want <= regions) want *= 2;
    if (h->evicted_bits < want) more_bits(t, h->evicted_off && want < BITS_MOST ? want * 2 : want);
    if (!h->evicted_off) more_bits(t, BITS_LEAST);
    bits_of(t)[number % bits_there(h) / 64] |= 1ull << number % 64;
}

bool fdri_totals_row_in_rest(struct fdri_thread *t, uint32_t key)
{
    const struct fdri_thread_eviction_hand *h = &t->eviction_hand;
    uint32_t number = key & 0xffffffu;
    if (fdri_arena_row_of_traffic(key)) return t->loc->flags & FDRI_ARENA_LOCATION_TRAFFIC_LOST;
    if (!is_region(key)) return h->evicted_points & point_bit(key);
    return bits_of(t)[number % bits_there(h) / 64] >> number % 64 & 1;
}

struct fdri_arena_row *fdri_totals_row_rest(struct fdri_thread *t, uint32_t key)
{
    if (fdri_arena_row_of_traffic(key)) {
        fdri_totals_traffic_lost(t->loc);
        return fdri_thread_at(t, t->loc->rest_row_off);
    }
    if (!fdri_totals_row_in_rest(t, key)) add_gone(t, key);
    if (is_region(key)) t->loc->rows_folded++;
    else t->loc->points_without_row++;
    return fdri_thread_at(t, t->loc->rest_row_off);
}

/* ---- the choice ---- */

static uint64_t use_of(const struct fdri_arena_row *r) { return r->calls + r->untimed; }

/* Calls times sum of time. So the totals of a function called every hour for an hour matter as much as those of one
 * called all the time. */
static uint64_t worth_of(const struct fdri_arena_row *r)
{
    return fdri_bits_min(use_of(r), UINT32_MAX) * fdri_bits_min((r->sum >> 10) + 1, UINT32_MAX);
}

/* With epochs, the hand goes through their base: a row that is not in it stays. */
static struct choice next_of_base(struct fdri_thread *t, const struct fdri_arena_epochs *e)
{
    struct fdri_thread_eviction_hand *h = &t->eviction_hand;
    struct fdri_arena_epoch_base *b = h->block ? fdri_thread_at(t, h->block) : NULL;
    if (!b || h->index >= b->count) {
        b = b && b->next ? fdri_thread_at(t, b->next) : NULL; /* the last block may be empty */
        h->block = b && b->count ? fdri_thread_offset_of(t, b) : e->base_first;
        h->index = 0;
        b = h->block ? fdri_thread_at(t, h->block) : NULL;
    }
    if (!b || !b->count) return (struct choice){0};
    struct fdri_arena_base_row *base = &b->row[h->index++];
    return (struct choice){.row = fdri_thread_at(t, base->row_off), .base = base};
}

static struct choice next_of_table(struct fdri_thread *t)
{
    uint32_t mask = UINT32_MAX >> t->row_shift;
    for (uint32_t n = 0; n <= mask; n++) {
        uint32_t off = t->row_slot[t->eviction_hand.index++ & mask];
        if (off) return (struct choice){.row = fdri_thread_at(t, off)};
    }
    return (struct choice){0};
}

static struct choice next_row(struct fdri_thread *t)
{
    struct fdri_thread_eviction_hand *h = &t->eviction_hand;
    const struct fdri_arena_epochs *e = fdri_strategy_epochs(t);
    if (h->epochs != t->loc->epochs_off) {
        h->epochs = t->loc->epochs_off;
        h->block = h->index = 0;
    }
    struct choice c = e ? next_of_base(t, e) : next_of_table(t);
    if (!c.row) return c;
    c.use = use_of(c.row);
    c.worth = worth_of(c.row);
    return c;
}

/* A set of the rows of open calls, one bit for each; other rows share a bit by chance. All bits if there are too many
 * calls to look at. */
static uint64_t open_rows(struct fdri_thread *t)
{
    uint64_t bits = 0;
    if (t->loc->depth > OPEN_MOST) return UINT64_MAX;
    for (uint32_t d = t->loc->depth; d; d--) bits |= 1ull << (fdri_thread_level(t, d)->row_off >> 6 & 63);
    return bits;
}

static bool may_evict(struct fdri_thread *t, const struct fdri_arena_row *r, uint64_t open)
{
    return is_region(r->key) && r->key != FDRI_ARENA_ROW_KEY_REST && !(r->flags & FDRI_ARENA_ROW_GATED) &&
           !(open >> (fdri_thread_offset_of(t, r) >> 6 & 63) & 1);
}

/* Finds the least valuable of the next LOOK rows: one that has a histogram, and one that may go. */
static void find_least_valuable(struct fdri_thread *t, struct choice *histogram, struct choice *row)
{
    uint64_t open = open_rows(t);
    *histogram = *row = (struct choice){0};
    for (int i = 0; i < LOOK; i++) {
        struct choice c = next_row(t);
        if (!c.row) return;
        if (c.row->histogram && (!histogram->row || c.worth < histogram->worth)) *histogram = c;
        if (may_evict(t, c.row, open) && (!row->row || c.worth < row->worth)) *row = c;
    }
}

/* ---- eviction ---- */

/* Drops a row's histogram. Its cells become the stretch for new rows, if they are larger than the present one. */
static void drop_histogram(struct fdri_thread *t, struct fdri_arena_row *r)
{
    struct fdri_arena_location *l = t->loc;
    uint32_t off = fdri_arena_histogram_off(r->histogram);
    uint32_t bytes = (uint32_t)fdri_bits_align_up(fdri_arena_histogram_count(r->histogram) * 8, 64);
    if (!r->histogram) return;
    fdri_totals_histogram_drop(t, r);
    fdri_atomic_signal_fence();
    memset(fdri_thread_at(t, off), 0, bytes);
    if (bytes <= l->slab_end - l->slab_off) return;
    fdri_memory_set_stretch(l, offsetof(struct fdri_arena_location, slab_off), off, off + bytes);
}

static struct fdri_arena_row *row_in_a_cell(struct fdri_thread *t, uint32_t key)
{
    uint32_t off = t->loc->slab_off;
    t->loc->slab_off += sizeof(struct fdri_arena_row);
    return fdri_totals_row_place(t, off, key);
}

/* The entry of [rest] in the epochs' base: the first one, or NULL. */
static struct fdri_arena_base_row *base_of_rest(struct fdri_thread *t)
{
    struct fdri_arena_epoch_base *b = fdri_thread_at(t, fdri_strategy_epochs(t)->base_first);
    return b->row[0].row_off == t->loc->rest_row_off ? &b->row[0] : NULL;
}

/* Adds c's row to [rest] and gives its cell to `key`. Signals are blocked: after a longjmp in between, the row could
 * have no slot, or count in its slot and in [rest]. */
static struct fdri_arena_row *give_to(struct fdri_thread *t, const struct choice *c, uint32_t key)
{
    uint32_t off = fdri_thread_offset_of(t, c->row);
    struct fdri_arena_base_row *rest = c->base ? base_of_rest(t) : NULL;
    if (c->base && !rest) return NULL;    /* [rest] found no room in the base */
    if (c->use) add_gone(t, c->row->key); /* a row without calls adds nothing to [rest] */
    drop_histogram(t, c->row);
    t->loc->rows_folded += c->use;
    sigset_t old;
    fdri_system_signals_block(&old);
    fdri_ended_fold_to_rest(t, c->row, c->base, rest);
    fdri_names_cache_drop(t, off);
    struct fdri_arena_row *r = fdri_totals_row_rename(t, off, key);
    fdri_system_signals_restore(&old);
    return r;
}

static struct fdri_arena_row *row_for_evicted(struct fdri_thread *t, uint32_t key)
{
    struct choice histogram, row;
    find_least_valuable(t, &histogram, &row);
    if (histogram.row && !fdri_totals_rows_full(t) && fdri_strategy_row_fits(t, key)) {
        drop_histogram(t, histogram.row);
        return row_in_a_cell(t, key);
    }
    return row.row && !fdri_arena_row_of_traffic(key) ? give_to(t, &row, key) : NULL;
}

struct fdri_arena_row *fdri_totals_row_evict(struct fdri_thread *t, uint32_t key)
{
    fdri_epoch_walk_all(t);
    if (!fdri_life_recording.arena.super->fold_off || !fdri_ended_lock(fdri_thread_offset_of(t, t->loc), TRIES))
        return NULL;
    struct fdri_arena_row *r = row_for_evicted(t, key);
    fdri_ended_unlock();
    return r;
}
