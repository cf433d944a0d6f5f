/* SPDX-License-Identifier: MIT */
/* Strategy `telescope`: the whole run and the recent past. Every age tier has its share of the memory. The tier
 * furthest above its share gives, and in it the least valuable partition. No gate closes.
 *
 * A partition gives at its old end only, so it always holds a suffix of time. Each choice decides how far back one
 * partition reaches. The order of worth never keeps a call longer than its possible parents. So a more valuable
 * partition reaches back at least as far: detail falls with age and never rises again.
 *
 * Choosing: the partitions stand in a table in order of worth, each with a lower bound of the tick at which its oldest
 * bin ends. The first one whose bound is not after the end of the tier is examined: it gives, or its bound rises. The
 * chosen partition gives several bins before the next choice, so choosing costs next to nothing per bin. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/atomic.h"
#include "base/bits.h"
#include "base/racy.h"
#include "bins/bin_run.h"
#include "bins/bins.h"
#include "bins/claims.h"
#include "bins/partition.h"
#include "bins/pieces.h"
#include "format/arena/arena.h"
#include "policies/policies.h"
#include "recorder/memory/memory.h"
#include "recorder/pressure/recorder_pressure.h"
#include "recorder/recording.h"
#include "recorder/shares/shares.h"
#include "recorder/strategy/reduce.h"
#include "recorder/strategy_table.h"
#include "recorder/strategy/worth_order.h"
#include "recorder/thread/arena_place.h"
#include "recorder/thread/thread_state.h"

enum { POPS = 8, LEFT_LEAST = 6, LEFT_MAX = 64 };

static uint64_t now_of(const struct fdri_thread *t) { return t->loc->last_tick >> t->shift; }

static void made(struct fdri_thread *t, struct fdri_arena_part *p)
{
    t->live_parts += !fdri_join_expected(t, p);
    fdri_strategy_order_put(t, p);
}

/* Locations of samples are thinned by level and have no table. */
static void mend(struct fdri_thread *t)
{
    if (!t->loc->samples_off) fdri_strategy_order_mend(t);
}

/* ---- choosing ---- */

/* true: the partition at `o` has a bin that ended by `limit` and may be given back. Otherwise its bound rises. Without
 * `open` only bins with a successor count, or full ones. */
static bool has_bin_to_give(struct fdri_thread *t, struct fdri_strategy_rank *o, uint64_t limit,
                            const struct fdri_arena_part *asking, bool open)
{
    struct fdri_arena_part *p = fdri_thread_at(t, o->part);
    uint64_t list = fdri_atomic_load_relaxed(&p->list_head), end = o->end;
    if (o->list != list) {
        end = fdri_bins_part_oldest_end(&fdri_life_recording.arena, p);
        o->end = end == UINT64_MAX ? now_of(t) : end;
        o->list = (uint32_t)list == p->open_off ? 0 : list; /* the open bin has not ended yet */
    }
    if (end > limit || end == UINT64_MAX) return false;
    if (fdri_bins_part_has_sealed(p)) return true;
    if (!open || p == asking || p == t->awaiting_record) return false;
    /* its last record is as old as that tier, so it may be closed half full */
    fdri_bins_part_seal(&fdri_life_recording.arena, p);
    return true;
}

/* The least valuable partition that may give by `limit`, or NULL; *at: its index. Among partitions that only their age
 * distinguishes, the oldest. */
static const struct fdri_strategy_rank *least_worth(struct fdri_thread *t, uint64_t limit,
                                                    const struct fdri_arena_part *asking, bool open, uint32_t *at)
{
    struct fdri_strategy_cursor c = FDRI_STRATEGY_CURSOR_START;
    const struct fdri_strategy_rank *oldest = NULL;
    for (uint32_t i = 0; i < t->order_count; i++) {
        struct fdri_strategy_rank *o = fdri_strategy_order_at(t, &c, i);
        if (o->end > limit || (oldest && o->end >= oldest->end)) continue;
        if (!has_bin_to_give(t, o, limit, asking, open)) continue;
        bool first = o->step != FDRI_POLICIES_BY_EPOCH;
        if (!first && oldest && o->end >= oldest->end) continue;
        oldest = o;
        *at = i;
        if (first) return o;
    }
    return oldest;
}

static void take_as_victim(struct fdri_thread *t, const struct fdri_strategy_rank *o, uint32_t at, uint64_t limit,
                           uint64_t over_units)
{
    uint64_t class_bytes[FDRI_ARENA_CLASS_COUNT] = {0}, bins = over_units * 128 >> fdri_life_recording.arena.bin_log2;
    t->victim = fdri_thread_at(t, o->part);
    t->victim_rank = at;
    t->victim_limit = limit;
    uint64_t least = fdri_bits_max(fdri_ready_most(t), LEFT_LEAST);
    /* a quarter of the surplus, but at least a run */
    t->victim_bins_left = (uint32_t)fdri_bits_min(fdri_bits_max(bins, least), LEFT_MAX);
    struct fdri_policies_part_view v = fdri_strategy_view_of(t->victim, class_bytes);
    uint32_t index;
    struct fdri_policies_verdict verdict = fdri_policies_step(&fdri_life_recording.settings.chain, &v, &index);
    t->victim_step = (uint8_t)verdict.step;
    t->victim_reason = (uint8_t)verdict.reason;
}

/* Other locations claim the oldest bins without changing the epochs' counts. So the surplus of the counts over the
 * location's bins is subtracted from the oldest tiers. */
static void forget_claimed(const struct fdri_thread *t, uint64_t *held, uint32_t tiers)
{
    uint64_t most = fdri_shares_bins_of(t->loc) * (uint64_t)(fdri_life_recording.arena.super->bin_bytes >> 9), sum = 0;
    most -= fdri_bits_min(most, t->pinned_units);
    for (uint32_t i = 0; i < tiers; i++) sum += held[i];
    for (uint32_t i = tiers; i-- > 0 && sum > most;) {
        uint64_t less = fdri_bits_min(sum - most, held[i]);
        held[i] -= less;
        sum -= less;
    }
}

/* Chooses a victim in the tier furthest above its share that has something to give. */
static bool choose_old(struct fdri_thread *t, const struct fdri_arena_epochs *e, const struct fdri_arena_part *asking)
{
    uint64_t held[FDRI_POLICIES_TIERS] = {0}, limit[FDRI_POLICIES_TIERS] = {0}, total = fdri_strategy_epoch_total(t),
             over;
    uint32_t tiers = fdri_strategy_epoch_tiers(e), without = 0, at;
    for (uint32_t i = 0; i + 1 < e->count; i++) {
        held[e->epoch[i].tier] += e->epoch[i].units;
        limit[e->epoch[i].tier] = e->epoch[i + 1].from_tick;
    }
    forget_claimed(t, held, tiers);
    for (uint32_t tier; (tier = fdri_policies_tier_to_give(&fdri_life_recording.settings.tiers, held, tiers, total,
                                                           without, &over));) {
        const struct fdri_strategy_rank *o = least_worth(t, limit[tier], asking, true, &at);
        if (o) {
            take_as_victim(t, o, at, limit[tier], over);
            return true;
        }
        without |= 1u << tier;
    }
    return false;
}

static bool choose(struct fdri_thread *t, const struct fdri_arena_part *asking)
{
    const struct fdri_arena_epochs *e = fdri_strategy_epochs(t);
    uint32_t at;
    if (!t->order_count) return false;
    if (e && choose_old(t, e, asking)) return true;
    /* only the newest tier has bins */
    const struct fdri_strategy_rank *o = least_worth(t, UINT64_MAX - 1, asking, false, &at);
    if (o) take_as_victim(t, o, at, UINT64_MAX, 0);
    return o != NULL;
}

/* ---- giving ---- */

static void note_given(struct fdri_thread *t, const struct fdri_bins_given *given)
{
    fdri_strategy_reduction_note(t, t->victim_step, t->victim_reason, t->victim, given, false);
}

static void take_units(struct fdri_arena_epochs *e, uint32_t epoch, uint32_t units)
{
    e->epoch[epoch].units -= (uint32_t)fdri_bits_min(e->epoch[epoch].units, units);
}

/* Subtracts the popped bins from their epochs. A bin belongs to the epoch in which it ended, at the base_tick of its
 * successor. */
static void take_run(struct fdri_arena_epochs *e, const struct fdri_bins_run *r)
{
    uint32_t epoch = fdri_strategy_epoch_of(e, r->bin[1].base_tick);
    for (uint32_t i = 0; i < r->popped; i++) {
        while (epoch + 1 < e->count && e->epoch[epoch + 1].from_tick < r->bin[i + 1].base_tick) epoch++;
        take_units(e, epoch, 1u << (r->bin[i].size_log2 - 9));
    }
}

/* The popped run says when the oldest remaining bin ends, so its header need not be read for that. */
static void note_end(struct fdri_thread *t, const struct fdri_bins_run *r)
{
    struct fdri_strategy_cursor c = FDRI_STRATEGY_CURSOR_START;
    uint64_t end = fdri_bins_run_left_end(r);
    if (!end || t->victim_rank >= t->order_count) return;
    struct fdri_strategy_rank *o = fdri_strategy_order_at(t, &c, t->victim_rank);
    if (o->part != fdri_thread_offset_of(t, t->victim)) return;
    o->end = end;
    o->list = fdri_bins_run_list(r);
}

/* Gives a run of bins back; false: there is none. The headers of the next run are fetched from now on: of the same
 * victim, or of the next one. */
static bool pop_run(struct fdri_thread *t, const struct fdri_arena_part *asking)
{
    struct fdri_arena_epochs *e = fdri_strategy_epochs(t);
    uint32_t most = (uint32_t)fdri_bits_min(fdri_ready_run(t, asking), t->victim_bins_left);
    struct fdri_bins_given given = FDRI_STRATEGY_NOTHING_GIVEN;
    const struct fdri_bins_run *r = most < 2 ? NULL
                                             : fdri_ready_give(t, t->victim, t->victim_limit, most, true, &given);
    if (!r) return false;
    if (e) take_run(e, r);
    note_given(t, &given);
    note_end(t, r);
    t->victim_bins_left -= (uint32_t)fdri_bits_min(t->victim_bins_left, r->popped);
    if ((!t->victim_bins_left || !fdri_bins_run_more(r)) && !choose(t, asking)) t->victim = NULL;
    fdri_ready_ahead(t, t->victim, t->victim_limit);
    return true;
}

static void popped(struct fdri_thread *t, struct fdri_arena_part *p, bool newest, uint64_t end, uint32_t size_log2)
{
    struct fdri_arena_epochs *e = fdri_strategy_epochs(t);
    bool counted = e && (!newest || p->flags & FDRI_ARENA_PART_COUNTED);
    if (newest) p->flags &= (uint8_t)~FDRI_ARENA_PART_COUNTED;
    if (counted) take_units(e, fdri_strategy_epoch_of(e, end), 1u << (size_log2 - 9));
}

/* Gives one bin of the victim back; 0: it has no more. */
static uint32_t pop_bin(struct fdri_thread *t, uint32_t *have)
{
    struct fdri_bins_arena *a = &fdri_life_recording.arena;
    struct fdri_arena_part *v = t->victim;
    struct fdri_bins_given given = FDRI_STRATEGY_NOTHING_GIVEN;
    bool newest = (uint32_t)fdri_atomic_load_relaxed(&v->list_head) == v->open_off;
    uint32_t off = t->victim_bins_left ? fdri_bins_part_pop_older(a, v, t->victim_limit, have, &given) : 0;
    if (!off) return 0;
    t->victim_bins_left--;
    popped(t, v, newest, given.to_tick, *have);
    note_given(t, &given);
    /* the second bin from now says when the next one ended; its header is not in the cache */
    uint32_t next = (uint32_t)fdri_atomic_load_relaxed(&v->list_head);
    /* A:list - a claimer may have taken it; then only the prefetch is useless */
    uint32_t after = next ? fdri_racy_peek_acquire(&fdri_bins_bin(a, next)->next) : 0;
    if (after) __builtin_prefetch(fdri_bins_bin(a, after));
    /* its other half may be free, too, and joined with it */
    if (next && *have < a->bin_log2) __builtin_prefetch(fdri_bins_piece_buddy(a, next, *have));
    return off;
}

/* Takes a piece of 1 << size_log2 bytes out of the memory given back; 0: there is none. For a partition it may be
 * smaller. */
static uint32_t piece_of_given(struct fdri_thread *t, bool asked, uint32_t size_log2, uint32_t *got)
{
    struct fdri_bins_arena *a = &fdri_life_recording.arena;
    uint32_t off = fdri_ready_first(t);
    *got = size_log2;
    if (off) {
        fdri_bins_piece_split(a, t->loc, off, a->bin_log2, size_log2);
        return off;
    }
    off = fdri_memory_may_take(t) ? fdri_bins_piece_take(a, t->loc, size_log2)
                                  : fdri_bins_piece_own(a, t->loc, size_log2);
    return off || !asked || fdri_memory_pieces_may_wait(t) ? off : fdri_bins_piece_any(a, t->loc, size_log2, 9, got);
}

/* Gives back once and takes a piece; 0: it was not enough. */
static uint32_t pop_piece(struct fdri_thread *t, const struct fdri_arena_part *asking, uint32_t size_log2,
                          uint32_t *got)
{
    struct fdri_bins_arena *a = &fdri_life_recording.arena;
    uint32_t have, off;
    if (pop_run(t, asking)) return piece_of_given(t, asking, size_log2, got);
    if (!(off = pop_bin(t, &have))) {
        t->victim = NULL;
        return 0;
    }
    *got = size_log2;
    if (have >= size_log2) {
        fdri_bins_piece_split(a, t->loc, off, have, size_log2);
        return off;
    }
    fdri_bins_piece_give(a, t->loc, off, have); /* too small alone; joined with its other half it may do */
    return piece_of_given(t, asking, size_log2, got);
}

static uint32_t room(struct fdri_thread *t, struct fdri_arena_part *asking, uint32_t size_log2, uint32_t *got)
{
    uint32_t off;
    bool popped = false;
    for (int i = 0; i < POPS; i++) {
        if (!t->victim && !choose(t, asking)) break;
        if ((off = pop_piece(t, asking, size_log2, got))) return off;
        popped = true;
    }
    t->victim = NULL;
    off = fdri_bins_piece_any(&fdri_life_recording.arena, t->loc, size_log2, 9, got);
    /* A meta block needs its full size, and the next call would find the same small piece again. */
    if (off && !asking && !popped && *got < size_log2) {
        fdri_bins_piece_give(&fdri_life_recording.arena, t->loc, off, *got);
        return 0;
    }
    return off ? off : fdri_strategy_pop_oldest(t, asking, size_log2, got);
}

/* ---- called where records are stored ---- */

static void sealed(struct fdri_thread *t, struct fdri_arena_part *p)
{
    struct fdri_arena_epochs *e = fdri_strategy_epochs(t);
    if (!e || !p->open_off || p->flags & FDRI_ARENA_PART_COUNTED) return;
    /* p->size_log2 may be that of a bin that a rewind removed */
    uint32_t size_log2 = fdri_bins_bin(&fdri_life_recording.arena, p->open_off)->size_log2;
    e->epoch[fdri_strategy_epoch_of(e, p->last_tick)].units += 1u << (size_log2 - 9);
    p->flags |= FDRI_ARENA_PART_COUNTED;
}

static void step(struct fdri_thread *t)
{
    t->deferred &= (uint8_t)~FDRI_LATER_EPOCH;
    fdri_strategy_order_complete(t);
    bool cut = fdri_strategy_epochs(t) && fdri_strategy_epoch_step(t);
    if ((cut && t->loc->epoch % 8 == 0) || t->order_sorted) fdri_strategy_order_sort(t);
}

/* The epochs' step can wait for a later call, if one comes before the next bin. A step may need memory and so give some
 * back. It must not take the new bin, which looks old and holds nothing yet: t->awaiting_record protects it. */
static void opened(struct fdri_thread *t, struct fdri_arena_part *p)
{
    p->flags &= (uint8_t)~FDRI_ARENA_PART_COUNTED;
    t->awaiting_record = p;
    bool due = fdri_strategy_epoch_opened(t, 1u << (p->size_log2 - 9));
    if (due && !fdri_leave_for_later(t, FDRI_LATER_EPOCH)) step(t);
    t->awaiting_record = NULL;
}

/* Forgets all noted list heads. */
static void forget_heads(struct fdri_thread *t)
{
    struct fdri_strategy_cursor c = FDRI_STRATEGY_CURSOR_START;
    for (uint32_t i = 0; i < t->order_count; i++) fdri_strategy_order_at(t, &c, i)->list = 0;
}

static void pinned(struct fdri_thread *t)
{
    fdri_strategy_order_drop_pinned(t);
    fdri_strategy_telescope_recount(t);
}

static void count_part(struct fdri_arena_epochs *e, struct fdri_arena_part *p)
{
    const struct fdri_bins_arena *a = &fdri_life_recording.arena;
    p->flags &= (uint8_t)~FDRI_ARENA_PART_COUNTED;
    for (uint32_t off = (uint32_t)fdri_atomic_load_acquire(&p->list_head), next; off; off = next) { /* A:claim */
        next = fdri_atomic_load_acquire(&fdri_bins_bin(a, off)->next);                              /* A:list */
        if (!next) return;
        e->epoch[fdri_strategy_epoch_of(e, fdri_bins_bin(a, next)->base_tick)].units +=
            1u << (fdri_bins_bin(a, off)->size_log2 - 9);
    }
}

void fdri_strategy_telescope_recount(struct fdri_thread *t)
{
    struct fdri_arena_epochs *e = fdri_strategy_epochs(t);
    forget_heads(t);
    if (!e) return;
    for (uint32_t i = 0; i < e->count; i++) e->epoch[i].units = 0;
    /* lists cannot be walked beside a claimer; then counting begins now */
    if (fdri_bins_claim_pin(&fdri_life_recording.arena, t->loc))
        for (struct fdri_arena_part *p = fdri_strategy_part_at(t, t->loc->parts_first); p;
             p = fdri_strategy_part_at(t, p->next))
            if (!(p->flags & FDRI_ARENA_PART_PINNED)) count_part(e, p);
    fdri_bins_claim_unpin(t->loc);
}

/* The bins that a rewind removes leave the counts of their epochs. */
static void uncount(struct fdri_thread *t, struct fdri_arena_part *p, uint32_t off)
{
    const struct fdri_bins_arena *a = &fdri_life_recording.arena;
    struct fdri_arena_epochs *e = fdri_strategy_epochs(t);
    bool newest_counts = p->flags & FDRI_ARENA_PART_COUNTED;
    p->flags &= (uint8_t)~FDRI_ARENA_PART_COUNTED;
    if (!e || p->flags & FDRI_ARENA_PART_PINNED) return;
    for (uint32_t next; off; off = next) {
        const struct fdri_arena_bin *b = fdri_bins_bin(a, off);
        next = b->next;
        uint64_t end = next ? fdri_bins_bin(a, next)->base_tick : p->last_tick;
        if (next || newest_counts) take_units(e, fdri_strategy_epoch_of(e, end), 1u << (b->size_log2 - 9));
    }
}

static const struct fdri_policies_chain *by_chain(void) { return &fdri_life_recording.settings.chain; }

const struct fdri_strategy fdri_strategy_telescope = {.room = room,
                                                      .claimable = by_chain,
                                                      .made = made,
                                                      .opened = opened,
                                                      .sealed = sealed,
                                                      .given = popped,
                                                      .rewinds = uncount,
                                                      .rewound = forget_heads,
                                                      .pinned = pinned,
                                                      .step = step,
                                                      .many_rows = fdri_strategy_epochs_begin_early,
                                                      .row_fits = fdri_strategy_epoch_row_fits,
                                                      .row_made = fdri_strategy_epoch_row,
                                                      .mend = mend,
                                                      .mend_totals = fdri_strategy_epochs_mend,
                                                      .samples = FDRI_STRATEGY_SAMPLES_BY_LEVEL,
                                                      .always_gives = true,
                                                      .steps_alternate = true,
                                                      .tiers = true};
