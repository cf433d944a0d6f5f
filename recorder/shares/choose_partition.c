/* SPDX-License-Identifier: MIT */
/* Chooses the partition of another location that gives: in the age tier that would give, the one that policies/ would
 * give back first. The owner may change what is read meanwhile; that affects only the choice. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/atomic.h"
#include "base/bits.h"
#include "base/racy.h"
#include "bins/bins.h"
#include "bins/pressure/bins_pressure.h"
#include "format/arena/arena.h"
#include "policies/policies.h"
#include "recorder/ended/ended.h"
#include "recorder/recording.h"
#include "recorder/shares/choose.h"
#include "recorder/strategy_table.h"

enum { FEW_LEFT = 8 };

/* true: p has a bin that may be claimed; with `newest`: it has only the newest one. */
FDRI_RACY static bool has_claimable_bin(const struct fdri_arena_part *p, uint32_t head, bool newest)
{
    if (newest) return fdri_part_newest_only(&fdri_life_recording.arena, p);
    return head && !(p->flags & FDRI_ARENA_PART_PINNED) && fdri_bins_bin(&fdri_life_recording.arena, head)->next;
}

/* RICHER leaves a fair share. ANY leaves half of that, or nothing if it is small. An ended location keeps the bins for
 * its accounts. If returned pieces could not be used, because bins are never strewn, nothing must stay. For memory that
 * cannot be done without (must), the fair share is halved with each try. */
uint32_t fdri_shares_must_leave(const struct fdri_arena_location *v, bool newest, enum fdri_shares_givers givers,
                                uint32_t must)
{
    uint32_t fair = fdri_shares_left_to_owner(FDRI_SHARES_RICHER);
    if (must) return fair >> fdri_bits_min(must, 31);
    if (givers != FDRI_SHARES_RICHER && fdri_shares_ended(v)) return fdri_ended_bins_reserved(v);
    if (!newest && !fdri_may_strew(&fdri_life_recording.arena, 9)) return 0;
    if (givers != FDRI_SHARES_ANY) return fair; /* also for ENDED: the location may belong to another thread by now */
    return fair < FEW_LEFT ? 0 : fair / 2;
}

/* The age tiers of a location: their begin and end, and the units counted in their epochs, including claimed ones. The
 * owner may change the epochs meanwhile, or the location may end: then the values are arbitrary. */
struct ages {
    uint32_t tiers; /* fewer than two: the age does not matter */
    uint64_t begin[FDRI_POLICIES_TIERS], end[FDRI_POLICIES_TIERS], counted[FDRI_POLICIES_TIERS];
    /* the units left in each tier, times 256, derived from how far back the partitions reach */
    uint64_t held[FDRI_POLICIES_TIERS];
};

FDRI_RACY static void ages_of(const struct fdri_arena_location *v, struct ages *g)
{
    uint32_t off = fdri_atomic_load_relaxed(&v->epochs_off);
    const struct fdri_arena_epochs *e = off ? fdri_bins_at(&fdri_life_recording.arena, off) : NULL;
    uint32_t count = e ? (uint32_t)fdri_bits_min(e->count, FDRI_ARENA_EPOCHS_MAX) : 0;
    *g = (struct ages){.tiers = 0};
    if (!fdri_strategy_now()->tiers) return;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t tier = e->epoch[i].tier % FDRI_POLICIES_TIERS;
        bool current = i + 1 == count;
        if (!g->counted[tier]) g->begin[tier] = e->epoch[i].from_tick;
        g->tiers = (uint32_t)fdri_bits_max(g->tiers, tier + 1);
        g->end[tier] = current ? UINT64_MAX : e->epoch[i + 1].from_tick;
        g->counted[tier] += current ? e->opened_units : e->epoch[i].units;
    }
}

/* The tier of a bin that ended at `tick`. */
static uint32_t tier_of(const struct ages *g, uint64_t tick)
{
    uint32_t tier = g->tiers;
    while (tier > 1 && tick > g->end[tier - 1]) tier--;
    return tier ? tier - 1 : 0;
}

/* Adds the units of a partition to the tiers. Its closed bins reach from `oldest` to now and are spread in proportion
 * to the counted units. Its open bin belongs to the tier of its last record. */
static void add_units_by_tier(struct ages *g, uint64_t oldest, uint64_t last, uint32_t closed, uint32_t open)
{
    uint64_t part[FDRI_POLICIES_TIERS], sum = 0, each;
    uint32_t from = tier_of(g, oldest);
    for (uint32_t t = 0; t <= from; t++) sum += part[t] = g->counted[t];
    if (from && oldest > g->begin[from]) {
        double left = (double)(g->end[from] - oldest) / (double)(g->end[from] - g->begin[from]);
        sum -= part[from];
        sum += part[from] = (uint64_t)((double)part[from] * left);
    }
    each = sum ? ((uint64_t)closed << 20) / sum : 0;
    for (uint32_t t = 0; t <= from; t++) g->held[t] += part[t] * each >> 12;
    g->held[tier_of(g, last)] += (uint64_t)open << 8;
}

FDRI_RACY static uint64_t oldest_tick(const struct fdri_arena_part *p)
{
    uint32_t head = (uint32_t)fdri_atomic_load_acquire(&p->list_head); /* A:claim */
    return head ? fdri_bins_bin(&fdri_life_recording.arena, head)->base_tick : UINT64_MAX;
}

/* The tick at which its oldest bin ended. The bin may have been popped, so its link may have any value. */
FDRI_RACY static uint64_t oldest_end(uint32_t head)
{
    const struct fdri_bins_arena *a = &fdri_life_recording.arena;
    uint32_t next = fdri_bins_bin(a, head)->next;
    return next && fdri_bins_may_be_bin(a, next) ? fdri_bins_bin(a, next)->base_tick : UINT64_MAX;
}

/* true: a is worth less than b. */
FDRI_RACY static bool is_less(const struct fdri_arena_part *a, const struct fdri_arena_part *b,
                              const uint64_t *class_bytes)
{
    const struct fdri_policies_chain *chain = fdri_strategy_now()->claimable();
    const struct fdri_policies_part_view of_a = {a->depth, a->class_, a->band, class_bytes[a->class_], oldest_tick(a)},
                                         of_b = {b->depth, b->class_, b->band, class_bytes[b->class_], oldest_tick(b)};
    enum fdri_policies_reason why;
    return fdri_policies_precedes(chain, &of_a, &of_b, &why);
}

/* `least` has the least valuable partition of each tier. The result is the least valuable one of the tier furthest
 * above its share and of all older tiers. If no tier is above its share, the newest tier counts, too: its owner would
 * begin a new epoch anyway while it gives. */
static struct fdri_arena_part *of_age(const struct ages *g, struct fdri_arena_part *const *least,
                                      const uint64_t *class_bytes)
{
    uint64_t total = 0, over;
    uint32_t without = 0;
    struct fdri_arena_part *best = NULL;
    for (uint32_t t = 0; t < g->tiers; t++) total += g->held[t];
    for (uint32_t tier; !best && g->tiers > 1;) {
        if (!(tier = fdri_policies_tier_to_give(&fdri_life_recording.settings.tiers, g->held, g->tiers, total, without,
                                                &over)))
            break;
        for (uint32_t t = over ? tier : 0; t < g->tiers; t++)
            if (least[t] && (!best || is_less(least[t], best, class_bytes))) best = least[t];
        without |= 1u << tier;
    }
    for (uint32_t t = 0; !best && t < FDRI_POLICIES_TIERS; t++) best = least[t];
    return best;
}

/* A location's last list is never emptied, so its outermost calls stay. */
FDRI_RACY struct fdri_arena_part *fdri_shares_choose(const struct fdri_arena_location *v, bool newest, uint32_t leave)
{
    const struct fdri_bins_arena *a = &fdri_life_recording.arena;
    uint64_t class_bytes[FDRI_ARENA_CLASS_COUNT] = {0};
    struct fdri_arena_part *least[FDRI_POLICIES_TIERS] = {NULL}, *p;
    struct ages ages = {.tiers = 0};
    uint32_t lists = 0, units = 0;
    uint32_t first = fdri_atomic_load_acquire(&v->parts_first); /* A:part */
    for (uint32_t off = first; off; off = p->next) {
        p = fdri_bins_at(a, off);
        class_bytes[p->class_] += p->bytes;
        units += p->bytes;
    }
    if (leave && units >> (a->bin_log2 - 9) <= leave) return NULL;
    if (!newest) ages_of(v, &ages);
    for (uint32_t off = first; off; off = p->next) {
        p = fdri_bins_at(a, off);
        uint32_t head = (uint32_t)fdri_atomic_load_acquire(&p->list_head); /* A:claim */
        lists += head != 0;
        uint32_t open = p->open_off ? (uint32_t)fdri_bits_min(p->bytes, (1u << (p->size_log2 & 31)) >> 9) : 0;
        if (ages.tiers > 1 && !(p->flags & FDRI_ARENA_PART_PINNED))
            add_units_by_tier(&ages, oldest_tick(p), p->last_tick, p->bytes - open, open);
        if (!has_claimable_bin(p, head, newest)) continue;
        struct fdri_arena_part **l = &least[ages.tiers > 1 ? tier_of(&ages, oldest_end(head)) : 0];
        if (!*l || is_less(p, *l, class_bytes)) *l = p;
    }
    return newest && lists < 2 ? NULL : of_age(&ages, least, class_bytes);
}
