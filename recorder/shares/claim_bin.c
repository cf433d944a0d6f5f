/* SPDX-License-Identifier: MIT */
/* Claims: takes a bin from a location that holds more (fair_share.c), when none is free.
 *
 * A claim takes the oldest bin of the partition that choose_partition.c names. The owner need not run for that
 * (bins/partition.c, "the old end"). If pieces precede a whole bin, they are returned to the owner, which joins them
 * when it next looks.
 *
 * Until then other locations may adopt these pieces (bins/pressure/strewn.c): poor ones and those below half of a fair
 * share. Any location that can use pieces may, if too many of them wait there.
 *
 * If v's partitions have only their newest bin, a poor location may take that, provided the owner has not recorded for
 * 10 ms (bins/pressure/asleep.c). */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/atomic.h"
#include "base/bits.h"
#include "base/racy.h"
#include "bins/bins.h"
#include "bins/claims.h"
#include "bins/partition.h"
#include "bins/pieces.h"
#include "bins/pressure/bins_pressure.h"
#include "format/arena/arena.h"
#include "recorder/ended/ended.h"
#include "recorder/recording.h"
#include "recorder/shares/choose.h"
#include "recorder/shares/shares.h"
#include "recorder/strategy/strategy.h"
#include "recorder/strategy_table.h"
#include "recorder/thread/arena_place.h"
#include "recorder/thread/thread_clock.h"
#include "recorder/thread/thread_state.h"

enum {
    POPS = 8,
    ROUNDS = 64,
    ASLEEP_NS = 10000000,
    WAITS_SHARE = 16,
    STREWN_SHARE = 4,
    STREWN_SHARE_DUE = 2,
    BARRIERS = 16, /* barriers of one operation */
    BARRIERS_MUST = 64
};

/* Racy, but the first event sets both values for good. */
FDRI_RACY static uint64_t start_tick_of(const struct fdri_arena_location *l) { return l->start_tick; }

FDRI_RACY static bool same_unit(const struct fdri_arena_location *a, const struct fdri_arena_location *b)
{
    return !((a->flags ^ b->flags) & FDRI_ARENA_LOCATION_NS);
}

/* true: the owner of v has not recorded for 10 ms. Presented times in ns cannot tell that: then the first look marks v,
 * and v sleeps if the mark still stands at the second look. */
FDRI_RACY static bool owner_sleeps(struct fdri_arena_location *v)
{
    bool ns = v->flags & FDRI_ARENA_LOCATION_NS;
    if (fdri_asleep(v)) return true;
    if (!ns && fdri_thread_tick_now() - v->last_tick < fdri_life_ns_to_ticks(ASLEEP_NS)) return false;
    return fdri_fall_asleep(v) && !ns;
}

/* The number of barriers that an operation may cause in all threads. It falls when searches fail again and again. */
static uint32_t barriers_left(const struct fdri_thread *t, uint32_t must)
{
    uint32_t weary = must ? fdri_bits_max(fdri_thread_search_failures(&t->meta_search),
                                          fdri_thread_search_failures(&t->level_search))
                          : fdri_thread_search_failures(&t->room_search);
    return (must ? BARRIERS_MUST : BARRIERS) >> fdri_bits_min(weary, 4);
}

/* Takes the newest bin of a partition. Only for a poor location, one below half of a fair share, or memory that cannot
 * be done without: it makes a system call. */
static uint32_t claim_newest(struct fdri_thread *t, struct fdri_arena_location *v, enum fdri_shares_givers givers,
                             uint32_t must, uint32_t *size, struct fdri_bins_given *given)
{
    bool attaches = !(t->loc->level_blocks | t->loc->samples_off), left = t->search_barriers < barriers_left(t, must);
    bool may = (attaches || left) && (must || fdri_shares_poor(t) || fdri_shares_below_fair(t));
    struct fdri_arena_part *p = may && owner_sleeps(v)
                                    ? fdri_shares_choose(v, true, fdri_shares_must_leave(v, true, givers, must))
                                    : NULL;
    t->search_barriers += p != NULL;
    return p ? fdri_part_claim_newest(&fdri_life_recording.arena, v, p, size, given) : 0;
}

/* true: t may adopt pieces of others. [ended] may not, because it would keep them for ever, unless it is starving. */
static bool may_adopt(const struct fdri_thread *t, struct fdri_shares_size size)
{
    const struct fdri_bins_arena *a = &fdri_life_recording.arena;
    if (t->loc->flags & FDRI_ARENA_LOCATION_ENDED && !fdri_shares_starving(t)) return false;
    return a->strewn && size.least_log2 < a->bin_log2 && !t->loc->samples_off;
}

/* true: more bins may become strewn. New threads and accounts need whole bins, which come from bins that are not
 * strewn. */
static bool may_strew(const struct fdri_thread *t)
{
    const struct fdri_bins_arena *a = &fdri_life_recording.arena;
    bool more = fdri_shares_below_fair(t) && fdri_may_strew(a, 9);
    uint32_t most = a->super->bins_total / (more ? STREWN_SHARE_DUE : STREWN_SHARE);
    return fdri_shares_crowded() || fdri_atomic_load_relaxed(&a->strewn_bins) < most;
}

/* The returned units that t may adopt. */
static uint32_t adoptable_units(const struct fdri_thread *t, const struct fdri_bins_returned *r)
{
    return may_strew(t) ? r->large_units : r->strewn_units;
}

/* true: more than a 16th of v's units waits in pieces that its owner, which sleeps, does not collect, and t may adopt
 * them. Not in a crowded buffer, where each takes what it finds. */
static bool many_pieces_wait(const struct fdri_thread *t, const struct fdri_arena_location *v,
                             const struct fdri_bins_returned *r)
{
    return !fdri_shares_crowded() && adoptable_units(t, r) > fdri_shares_units(v) / WAITS_SHARE;
}

/* true: t takes no more from v's lists. If t can use any piece, it adopts returned ones. If t needs more, v keeps what
 * is left to each location. */
static bool stop_claiming(const struct fdri_thread *t, const struct fdri_arena_location *v,
                          const struct fdri_bins_returned *r, struct fdri_shares_size size,
                          enum fdri_shares_givers givers)
{
    if (size.essential_tries || !many_pieces_wait(t, v, r)) return false;
    if (size.least_log2 == 9 && may_adopt(t, size)) return true;
    uint32_t held = fdri_shares_units(v), listed = held - (uint32_t)fdri_bits_min(held, r->units);
    return listed >> (fdri_life_recording.arena.bin_log2 - 9) <= fdri_shares_left_to_owner(givers);
}

/* Results of a claim beside a bin. GAVE: v gave pieces, which were returned to it. FITS: a returned piece is large
 * enough. WAITS: many pieces wait. */
enum { GAVE = 1, WAITS = 2, FITS = 4 };

/* The state of a claimer's work on v. */
struct claims {
    struct fdri_bins_returned returned;
    struct fdri_bins_given given;
    bool look; /* look at the returned pieces: there are more now, or nothing else is left */
};

/* Takes a whole bin off the lists of v; 0: none. */
static uint32_t claim_some(struct fdri_thread *t, struct fdri_arena_location *v, struct fdri_shares_size size,
                           enum fdri_shares_givers givers, struct claims *c)
{
    struct fdri_bins_arena *a = &fdri_life_recording.arena;
    uint32_t off = 0, got_log2 = 0;
    for (int i = 0; i < POPS && !off && !stop_claiming(t, v, &c->returned, size, givers); i++) {
        struct fdri_arena_part *p = fdri_shares_choose(v, false,
                                                       fdri_shares_must_leave(v, false, givers, size.essential_tries));
        uint32_t got = p ? fdri_bins_part_claim(a, p, &got_log2, &c->given)
                         : claim_newest(t, v, givers, size.essential_tries, &got_log2, &c->given);
        if (!p) c->look = true;
        if (!p && !got) return 0;
        bool piece = got && 1u << got_log2 < a->super->bin_bytes;
        if (piece) fdri_piece_return(a, v, got);
        else off = got;
        c->look |= piece;
    }
    return off;
}

/* Takes a whole bin out of v's returned pieces; 0: none. If owners sleep, thousands of pieces may wait there. So a
 * thread that found no bin looks again only after another piece was returned in front. Pieces that came behind it
 * meanwhile are found later. */
static uint32_t whole_of(struct fdri_thread *t, struct fdri_arena_location *v, struct fdri_bins_returned *left)
{
    struct fdri_thread_returned_seen *k = &t->returned_seen[v->id % FDRI_THREAD_RETURNED_SEEN];
    uint32_t first = fdri_atomic_load_relaxed(&v->returned_pieces);
    if (first && k->first_piece == first && k->location_id == v->id) {
        *left = k->remaining;
        return 0;
    }
    uint32_t off = fdri_piece_whole(&fdri_life_recording.arena, v, left);
    *k = (struct fdri_thread_returned_seen){v->id, off ? 0 : first, *left, 0};
    return off;
}

/* true: t has seen that no returned piece of v has this size, and the pieces are the same. */
static bool known_to_lack_size(const struct fdri_thread *t, const struct fdri_arena_location *v,
                               struct fdri_shares_size size)
{
    const struct fdri_thread_returned_seen *k = &t->returned_seen[v->id % FDRI_THREAD_RETURNED_SEEN];
    bool same = k->location_id == v->id && k->first_piece &&
                k->first_piece == fdri_atomic_load_relaxed(&v->returned_pieces);
    return same && k->missing_log2 && size.least_log2 >= k->missing_log2;
}

/* Takes one whole bin of v; 0: none. */
static uint32_t claim_from(struct fdri_thread *t, struct fdri_arena_location *v, struct fdri_shares_size size,
                           enum fdri_shares_givers givers, uint32_t *came)
{
    struct claims c = {{0, 0, 0}, {0, 0, UINT64_MAX, 0}, fdri_shares_poor(t)};
    uint32_t off = 0, place = fdri_bins_claim_enter(&fdri_life_recording.arena, t->loc, v);
    if (!place) return 0;
    uint32_t giver = v->id; /* read it here: v may have had another id before claim_enter */
    if (t->many_adoptable) off = whole_of(t, v, &c.returned);
    if (!off) off = claim_some(t, v, size, givers, &c);
    if (!off && c.look) off = whole_of(t, v, &c.returned);
    if (!off) t->many_adoptable = many_pieces_wait(t, v, &c.returned);
    if (off) {
        fdri_atomic_sub_relaxed(&v->bins_held, 1u);
        fdri_atomic_add_relaxed(&t->loc->bins_held, 1u);
    }
    bool same = same_unit(v, t->loc);
    c.given.from_tick = fdri_bits_max(c.given.from_tick, start_tick_of(v)); /* a partition's first bin begins at 0 */
    *came = (c.given.bytes ? GAVE : 0) | (!off && t->many_adoptable ? WAITS : 0);
    if (!off && adoptable_units(t, &c.returned) && !known_to_lack_size(t, v, size)) *came |= FITS;
    fdri_bins_claim_leave(&fdri_life_recording.arena, place);
    if (!same) c.given.from_tick = c.given.to_tick = 0;
    if (c.given.bytes) fdri_strategy_note_claim(t, giver, &c.given);
    return off;
}

/* Makes piece `off` of a strewn bin (0: none) t's own, and keeps at most the wanted size of it. */
static uint32_t adopt_piece(struct fdri_thread *t, uint32_t off, uint32_t have, uint32_t want, uint32_t *got)
{
    if (!off) return 0;
    *got = (uint32_t)fdri_bits_min(have, want);
    fdri_atomic_add_relaxed(&t->loc->strewn_units, 1u << (have - 9));
    fdri_bins_piece_split(&fdri_life_recording.arena, t->loc, off, have, *got);
    return off;
}

/* After a piece was adopted: no whole bin can be among the remaining pieces, so `k` stays right with fewer units.
 * Pieces that others returned meanwhile are noticed with the next return. */
static void note_adopted_units(struct fdri_thread_returned_seen *k, const struct fdri_arena_location *l, uint32_t units)
{
    struct fdri_bins_returned *left = &k->remaining;
    left->units -= (uint32_t)fdri_bits_min(left->units, units);
    left->large_units -= (uint32_t)fdri_bits_min(left->large_units, units);
    /* a lower bound: other pieces of the same bin may be among them */
    left->strewn_units = (uint32_t)fdri_bits_min(left->strewn_units, left->large_units);
    k->first_piece = fdri_atomic_load_relaxed(&l->returned_pieces);
}

static uint32_t adopt_from(struct fdri_thread *t, struct fdri_arena_location *l, struct fdri_shares_size size,
                           uint32_t *got)
{
    uint32_t have = 0, place = fdri_bins_claim_enter(&fdri_life_recording.arena, t->loc, l);
    bool strew = size.essential_tries || may_strew(t);
    if (!place) return 0;
    struct fdri_thread_returned_seen *k = &t->returned_seen[l->id % FDRI_THREAD_RETURNED_SEEN];
    bool known = k->location_id == l->id && k->first_piece &&
                 k->first_piece == fdri_atomic_load_relaxed(&l->returned_pieces);
    uint32_t off = fdri_piece_adopt(&fdri_life_recording.arena, l, size.least_log2, strew, &have);
    if (known) note_adopted_units(k, l, off ? 1u << (have - 9) : 0);
    else k->first_piece = 0;
    if (known && !off && strew) k->missing_log2 = size.least_log2;
    fdri_bins_claim_leave(&fdri_life_recording.arena, place);
    return adopt_piece(t, off, have, size.preferred_log2, got);
}

/* Takes a piece of a strewn bin that was given back for good. */
static uint32_t take_given_piece(struct fdri_thread *t, struct fdri_shares_size size, uint32_t *got)
{
    struct fdri_bins_arena *a = &fdri_life_recording.arena;
    uint32_t have = 0;
    if (!may_adopt(t, size)) return 0;
    uint32_t off = fdri_strewn_take(a, fdri_strewn_least(a, size.least_log2), &have);
    return adopt_piece(t, off, have, size.preferred_log2, got);
}

uint32_t fdri_shares_take_returned(struct fdri_thread *t, uint32_t size_log2)
{
    struct fdri_bins_arena *a = &fdri_life_recording.arena;
    const struct fdri_shares_size size = {size_log2, size_log2, 0};
    uint32_t at = fdri_atomic_load_acquire(&fdri_life_recording.shares.returned_cursor), off = 0, got; /* A:hint */
    if (!may_adopt(t, size) || !fdri_shares_starving(t)) return 0;
    for (int i = 0; i < FDRI_SHARES_LOOK && !off; i++) {
        if (!at) at = fdri_atomic_load_acquire(&a->super->location_first); /* A:location */
        struct fdri_arena_location *l = fdri_bins_at(a, at);
        if (l != t->loc && !l->samples_off && fdri_atomic_load_relaxed(&l->returned_pieces))
            off = adopt_from(t, l, size, &got);
        if (!off) at = l->next; /* stay at a location that gave: it may have more */
    }
    fdri_atomic_store_release(&fdri_life_recording.shares.returned_cursor, at); /* R:hint */
    /* last, because such a bin becomes whole sooner if it is left alone */
    return off ? off : take_given_piece(t, size, &got);
}

/* Takes a bin from one other location and keeps the wanted piece of it; or takes a piece that became free on the
 * way. */
static uint32_t share_piece(struct fdri_thread *t, struct fdri_shares_size size, enum fdri_shares_givers givers,
                            uint32_t *got)
{
    struct fdri_bins_arena *a = &fdri_life_recording.arena;
    if (!fdri_strategy_now()->claimable || fdri_shares_only_location(t)) return 0;
    struct fdri_arena_location *v = givers == FDRI_SHARES_ENDED ? fdri_shares_oldest_ended(t)
                                                                : fdri_shares_richest(t, givers);
    uint32_t came = 0, off = v ? claim_from(t, v, size, givers, &came) : 0;
    if (off) fdri_bins_piece_split(a, t->loc, off, a->bin_log2, *got = size.preferred_log2);
    else if (v && may_adopt(t, size) &&
             (size.essential_tries || came & WAITS ||
              (came && (fdri_shares_starving(t) || fdri_shares_below_fair(t))))) {
        off = adopt_from(t, v, size, got);
        if (!off) t->many_adoptable = false; /* the pieces are too small: claim more the next time */
    }
    /* do not ask the same location again and again */
    if (v && !off && (size.essential_tries || !(came & GAVE))) {
        fdri_atomic_store_release(&fdri_life_recording.shares.richest_hint, 0u); /* R:hint */
        t->gave_nothing_off = fdri_thread_offset_of(t, v);
    }
    return off;
}

uint32_t fdri_shares_claim_piece(struct fdri_thread *t, uint32_t size_log2)
{
    uint32_t got;
    return share_piece(t, (struct fdri_shares_size){size_log2, size_log2, 0}, FDRI_SHARES_RICHER, &got);
}

static uint32_t ended_piece(struct fdri_thread *t, struct fdri_shares_size size, enum fdri_ended_urgency urgency,
                            uint32_t *got)
{
    if (!fdri_ended_room(t, urgency)) return 0;
    return fdri_bins_piece_take(&fdri_life_recording.arena, t->loc, *got = size.preferred_log2);
}

uint32_t fdri_shares_any_room(struct fdri_thread *t, struct fdri_shares_size size, uint32_t *got)
{
    bool poor = fdri_shares_poor(t);
    enum fdri_ended_urgency urgency = (t->loc->level_blocks | t->loc->samples_off) ? FDRI_ENDED_FOR_POOR
                                                                                   : FDRI_ENDED_FOR_ATTACH;
    uint32_t off = ended_piece(t, size, FDRI_ENDED_IF_AGED, got);
    int rounds = urgency == FDRI_ENDED_FOR_ATTACH ? ROUNDS : FDRI_SHARES_LOOK;
    /* not for [ended]: ended threads have bins of their own to give */
    bool own = t == &fdri_record_self || t == &fdri_record_lane, comes = poor && own;
    /* A thread searches long for its first bin: a location that was not known to sleep at the first look gives at the
     * second. A location that has begun asks again with its next event. */
    bool first = urgency == FDRI_ENDED_FOR_ATTACH || !t->first_search_failed;
    int tries = first ? ROUNDS : 2;
    if (!off) off = take_given_piece(t, size, got);
    if (!off) off = share_piece(t, size, FDRI_SHARES_RICHER, got);
    for (int i = 0; i < rounds && !off && (poor || fdri_shares_below_fair(t)); i++) {
        if (!fdri_ended_room(t, urgency)) break;
        off = fdri_bins_piece_take(&fdri_life_recording.arena, t->loc, *got = size.preferred_log2);
    }
    for (int i = 0; i < FDRI_SHARES_LOOK && !off && own && (poor || fdri_shares_below_fair(t)); i++)
        off = share_piece(t, size, FDRI_SHARES_ENDED, got);
    for (int i = 0; i < tries && !off && comes; i++) off = share_piece(t, size, FDRI_SHARES_ANY, got);
    t->first_search_failed |= urgency != FDRI_ENDED_FOR_ATTACH && comes && !off;
    return off;
}
