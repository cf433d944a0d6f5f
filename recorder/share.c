/* SPDX-License-Identifier: MIT */
/* Fair shares: where a bin comes from when none is free and others hold more.
 *
 * Max-min fairness: what is free goes to whoever asks. When nothing is, a location that holds less takes, one bin at a
 * time, from one that holds more than a fair share (bins / live locations) and clearly more than itself. So busy
 * locations meet at one level, and whoever holds less than a fair share keeps all of it.
 *
 * Locations of samples are bounded by a share of their own and give nothing.
 *
 * Claims go for the oldest bin of the partition that policies/ would give back first, under `telescope` of the age tier
 * that would give. They need nothing of the owner, who may sleep: bins/partition.c, "the old end". Pieces in front of
 * whole bins go back to their owner, who joins them when it looks. Until then others may make them their own,
 * bins/strewn.c: who has next to nothing, or less than half of its share, and whoever takes pieces, where more of them
 * wait than before a whole bin should. Where partitions have nothing but the bin they would write into, that goes to
 * who has so little, if the owner has not recorded for a while: bins/asleep.c. */
#include "base/racy.h"
#include "recorder/recorder.h"

enum {
    LOOK = 8,
    POPS = 8,
    ROUNDS = 64,
    ASLEEP_NS = 10000000,
    FEW_BINS = 64,
    WAITS_SHARE = 16,
    STREWN_SHARE = 4,
    STREWN_SHARE_DUE = 2,
    FEW_LEFT = 8,
    LITTLE_UNITS = 4, /* of 512 bytes */
    BARRIERS = 16,    /* of an operation */
    BARRIERS_MUST = 64
};

/* Of two that adopt pieces of one bin the second may subtract its own before the first has added the whole, or was left
 * by longjmp before: then what it has beside others is less than nothing. */
static uint32_t units_of(const struct fdr_location *l)
{
    int32_t units = (int32_t)fdr_load_relaxed(&l->strewn_units);
    return (fdr_load_relaxed(&l->bins_held) << (fdri_rec.arena.bin_log2 - 9)) + (units > 0 ? (uint32_t)units : 0);
}

uint32_t fdri_share_held(const struct fdr_location *l) { return units_of(l) >> (fdri_rec.arena.bin_log2 - 9); }

/* 512 bytes each: what is shared, its history. Nobody can give accounts, nor are they what anybody wants to keep: in
 * little memory they are most of what deep threads have. */
static uint32_t history_units(const struct fdr_location *l)
{
    uint32_t units = units_of(l);
    return units - (uint32_t)fdr_min(units, fdr_load_relaxed(&l->meta_units));
}
static uint32_t history(const struct fdr_location *l) { return history_units(l) >> (fdri_rec.arena.bin_log2 - 9); }

/* Bins for history: all that are in use, without what is kept for newcomers. */
static uint32_t shared_bins(void)
{
    uint64_t bins = (uint32_t)fdr_load_relaxed(&fdri_rec.arena.super->virgin);
    uint64_t meta = fdr_load_relaxed(&fdri_rec.meta_in_bins) >> fdri_rec.arena.bin_log2;
    return (uint32_t)(bins - fdr_min(bins, meta + fdri_rec.bin_reserve));
}

uint32_t fdri_fair_share(void)
{
    uint32_t live = fdr_load_relaxed(&fdri_rec.shares.live);
    return (uint32_t)fdr_load_relaxed(&fdri_rec.arena.super->virgin) / (live ? live : 1);
}

/* The same once all memory is in use. */
uint32_t fdri_full_share(void)
{
    uint32_t live = fdr_load_relaxed(&fdri_rec.shares.live);
    return fdri_bins_reach(&fdri_rec.arena) / (live ? live : 1);
}

bool fdri_crowded(void)
{
    return fdr_load_relaxed(&fdri_rec.shares.live) > FDRI_MANY_THREADS && fdri_full_share() < FEW_BINS;
}

/* What is kept for newcomers is for who has nothing but accounts, too, however large these are. */
bool fdri_poor(const struct fdri_thread *t)
{
    return fdri_share_held(t->loc) < 4 || (fdri_crowded() && !history(t->loc));
}

/* Whose bins are taken: of those that hold more than a fair share; of those that ended, without the lock of who looks
 * after them; of whoever has some, for who has next to nothing and finds no room anywhere else. */
enum whose { RICHER, ENDED, ANYBODYS };

/* How much everybody keeps: a fair share. Of anybody's one bin less than all have if there are as many threads as the
 * buffer is sure of: that one is not in the share yet. */
static uint32_t kept(enum whose whose)
{
    const struct fdr_superblock *s = fdri_rec.arena.super;
    uint32_t fair = shared_bins() / (uint32_t)fdr_max(fdr_load_relaxed(&fdri_rec.shares.live), 1u);
    uint32_t all = s->bins_total / fdr_max(s->locations_sure, 1u);
    return whose == ANYBODYS ? (uint32_t)fdr_min(fair, all - (all > 1)) : fair;
}

/* Its thread ended, and its accounts are its own still. */
static bool has_ended(const struct fdr_location *l)
{
    return !(fdr_load_relaxed(&l->flags) & (FDR_LOCATION_LIVE | FDR_LOCATION_FREE | FDR_LOCATION_ENDED));
}

/* It holds much less than a fair share. */
static bool is_due(const struct fdri_thread *t) { return history(t->loc) < kept(RICHER) / 2; }

static bool next_to_nothing(const struct fdri_thread *t) { return fdri_crowded() && fdri_poor(t); }

/* Does `v` hold so much that t may take of it? The margin keeps equals from taking turns. Who has next to nothing among
 * very many takes of any that has clearly more: with large accounts nobody may hold more than is kept. */
static bool gives(const struct fdr_location *v, const struct fdri_thread *t, enum whose whose)
{
    uint32_t h = whose == RICHER ? history(v) : fdri_share_held(v), mine = history(t->loc);
    if (whose == ENDED) return has_ended(v) && history(v) > fdri_ended_keeps(v);
    if (whose == ANYBODYS && has_ended(v) && h <= fdri_ended_keeps(v)) return false;
    if (h > kept(whose) && h > mine + mine / 8 + 2) return true;
    return whose == ANYBODYS && next_to_nothing(t) && history_units(v) > history_units(t->loc) + LITTLE_UNITS;
}

bool fdri_share_rich(const struct fdri_thread *t)
{
    return !fdri_poor(t) && history(t->loc) * (uint64_t)fdr_load_relaxed(&fdri_rec.shares.live) > shared_bins();
}

/* Remembers who holds much: a hint for those who need. */
void fdri_share_note(const struct fdri_thread *t)
{
    uint32_t off = fdr_load_acquire(&fdri_rec.shares.richest), mine = fdri_off_of(t, t->loc); /* A:hint */
    if (off == mine) return;
    const struct fdr_location *rich = fdri_at(&fdri_rec.arena, off);
    /* R:hint - as R:location for who comes to it by the hint */
    if (!off || history(t->loc) > history(rich)) fdr_store_release(&fdri_rec.shares.richest, mine);
}

/* The richest of those it is remembered of and of the next few on the chain; the cursor goes on from call to call. One
 * that gave nothing the last time, though it holds most, is asked where nobody else gives, if it is among these. */
static struct fdr_location *rich_one(struct fdri_thread *t, enum whose whose)
{
    struct fdri_arena *a = &fdri_rec.arena;
    uint32_t off = fdr_load_acquire(&fdri_rec.shares.cursor);       /* A:hint */
    uint32_t best_off = fdr_load_acquire(&fdri_rec.shares.richest); /* A:hint */
    uint32_t over = t->passed_over;
    struct fdr_location *best = best_off && best_off != over ? fdri_at(a, best_off) : NULL, *again = NULL;
    if (best == t->loc) best = NULL;
    t->passed_over = 0;
    if (best && gives(best, t, whose)) return best;
    for (int i = 0; i < LOOK; i++) {
        if (!off) off = fdr_load_acquire(&a->super->location_first); /* A:location */
        struct fdr_location *l = fdri_at(a, off);
        bool passed_over = off == over;
        off = l->next;
        if (passed_over && !l->samples_off) again = l;
        else if (l != t->loc && !l->samples_off && (!best || history_units(l) > history_units(best))) best = l;
    }
    if (!best || !gives(best, t, whose)) best = again;
    fdr_store_release(&fdri_rec.shares.cursor, off); /* R:hint */
    if (!best || !gives(best, t, whose)) return NULL;
    fdr_store_release(&fdri_rec.shares.richest, fdri_off_of(t, best)); /* R:hint */
    return best;
}

/* Of the next few on the chain the one that ended first. */
FDR_RACY static struct fdr_location *ended_one(struct fdri_thread *t)
{
    struct fdri_arena *a = &fdri_rec.arena;
    uint32_t off = fdr_load_acquire(&fdri_rec.shares.cursor); /* A:hint */
    struct fdr_location *best = NULL;
    for (int i = 0; i < LOOK; i++) {
        if (!off) off = fdr_load_acquire(&a->super->location_first); /* A:location */
        struct fdr_location *l = fdri_at(a, off);
        off = l->next;
        if (l->samples_off || !gives(l, t, ENDED)) continue;
        if (!best || (int32_t)(l->ended_turn - best->ended_turn) < 0) best = l;
    }
    fdr_store_release(&fdri_rec.shares.cursor, off); /* R:hint */
    return best;
}

/* Has it a bin to give, or, newest: only that one? */
FDR_RACY static bool has_one(const struct fdr_part *p, uint32_t head, bool newest)
{
    if (newest) return fdri_part_newest_only(&fdri_rec.arena, p);
    return head && !(p->flags & FDR_PART_ASIDE) && fdri_bin(&fdri_rec.arena, head)->next;
}

/* What of a location stays listed, in bins, where all that it had returned can be used: a fair share. Where anybody's
 * are taken half of that, unless it is next to nothing itself; of one whose thread ended, what makes a place for its
 * accounts. For what must have a place less and less, from try to try. */
static uint32_t leaves(const struct fdr_location *v, bool newest, enum whose whose, uint32_t must)
{
    uint32_t fair = kept(RICHER);
    if (must) return fair >> fdr_min(must, 31);
    if (whose != RICHER && has_ended(v)) return fdri_ended_keeps(v);
    if (!newest && !fdri_may_strew(&fdri_rec.arena, 9)) return 0;
    if (whose != ANYBODYS) return fair; /* or it has become another's since it was looked at */
    return fair < FEW_LEFT ? 0 : fair / 2;
}

/* The age tiers of a location: when each ends, and what it counted to be in it, claimed since or not. It may change
 * them meanwhile, or be over: then this says anything. */
struct ages {
    uint32_t tiers; /* fewer than two: there is one age */
    uint64_t begin[FDRI_TIERS], end[FDRI_TIERS], counted[FDRI_TIERS];
    uint64_t held[FDRI_TIERS]; /* what is left, by how far back its partitions reach; 256 for each unit */
};

FDR_RACY static void ages_of(const struct fdr_location *v, struct ages *g)
{
    uint32_t off = fdr_load_relaxed(&v->epochs_off);
    const struct fdr_epochs *e = off ? fdri_at(&fdri_rec.arena, off) : NULL;
    uint32_t count = e ? (uint32_t)fdr_min(e->count, FDR_EPOCHS_MAX) : 0;
    *g = (struct ages){.tiers = 0};
    if (fdri_rec.set.strategy != FDR_STRATEGY_TELESCOPE) return;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t tier = e->epoch[i].tier % FDRI_TIERS;
        bool current = i + 1 == count;
        if (!g->counted[tier]) g->begin[tier] = e->epoch[i].from_tick;
        g->tiers = (uint32_t)fdr_max(g->tiers, tier + 1);
        g->end[tier] = current ? UINT64_MAX : e->epoch[i + 1].from_tick;
        g->counted[tier] += current ? e->opened : e->epoch[i].units;
    }
}

/* The tier of something that ended then. */
static uint32_t age_of(const struct ages *g, uint64_t tick)
{
    uint32_t tier = g->tiers;
    while (tier > 1 && tick > g->end[tier - 1]) tier--;
    return tier ? tier - 1 : 0;
}

/* A partition holds all from `oldest` on, spread over time as what the location counted: bins that are closed. The one
 * that is open is of the tier in which it was written last. */
static void spread(struct ages *g, uint64_t oldest, uint64_t last, uint32_t closed, uint32_t open)
{
    uint64_t part[FDRI_TIERS], sum = 0, each;
    uint32_t from = age_of(g, oldest);
    for (uint32_t t = 0; t <= from; t++) sum += part[t] = g->counted[t];
    if (from && oldest > g->begin[from]) {
        double left = (double)(g->end[from] - oldest) / (double)(g->end[from] - g->begin[from]);
        sum -= part[from];
        sum += part[from] = (uint64_t)((double)part[from] * left);
    }
    each = sum ? ((uint64_t)closed << 20) / sum : 0;
    for (uint32_t t = 0; t <= from; t++) g->held[t] += part[t] * each >> 12;
    g->held[age_of(g, last)] += (uint64_t)open << 8;
}

FDR_RACY static uint64_t oldest_tick(const struct fdr_part *p)
{
    uint32_t head = (uint32_t)fdr_load_acquire(&p->list_head); /* A:claim */
    return head ? fdri_bin(&fdri_rec.arena, head)->base_tick : UINT64_MAX;
}

/* When its oldest bin ended; its link may be any by now. */
FDR_RACY static uint64_t oldest_end(uint32_t head)
{
    const struct fdri_arena *a = &fdri_rec.arena;
    uint32_t next = fdri_bin(a, head)->next;
    return next && fdri_may_be_bin(a, next) ? fdri_bin(a, next)->base_tick : UINT64_MAX;
}

/* In this order of worth: is a less than b? */
FDR_RACY static bool is_less(const struct fdr_part *a, const struct fdr_part *b, const uint64_t *class_bytes)
{
    static const struct fdri_chain oldest_first = {{0}, {0}};
    const struct fdri_chain *chain = fdri_rec.set.strategy == FDR_STRATEGY_LAST ? &oldest_first : &fdri_rec.set.chain;
    const struct fdri_part_view of_a = {a->depth, a->class_, a->band, class_bytes[a->class_], oldest_tick(a)},
                                of_b = {b->depth, b->class_, b->band, class_bytes[b->class_], oldest_tick(b)};
    enum fdri_reason why;
    return fdri_policy_before(chain, &of_a, &of_b, &why);
}

/* `least`: the partition of each tier that is worth least. Of the tier furthest above its share, and all before it, the
 * one that is worth least of all; of the newest tier, too, where no other is above its share: its owner would cut it
 * again while it gives. */
static struct fdr_part *of_age(const struct ages *g, struct fdr_part *const *least, const uint64_t *class_bytes)
{
    uint64_t total = 0, over;
    uint32_t without = 0;
    struct fdr_part *best = NULL;
    for (uint32_t t = 0; t < g->tiers; t++) total += g->held[t];
    for (uint32_t tier; !best && g->tiers > 1;) {
        if (!(tier = fdri_policy_tier(&fdri_rec.set.tiers, g->held, g->tiers, total, without, &over))) break;
        for (uint32_t t = over ? tier : 0; t < g->tiers; t++)
            if (least[t] && (!best || is_less(least[t], best, class_bytes))) best = least[t];
        without |= 1u << tier;
    }
    for (uint32_t t = 0; !best && t < FDRI_TIERS; t++) best = least[t];
    return best;
}

/* The partition of v to take from, if more than `leave` bins are listed. The last list of a location is never ended:
 * what it did outermost stays. What is read while others change it decides only which one it is. */
FDR_RACY static struct fdr_part *choose(const struct fdr_location *v, bool newest, uint32_t leave)
{
    const struct fdri_arena *a = &fdri_rec.arena;
    uint64_t class_bytes[FDR_CLASS_COUNT] = {0};
    struct fdr_part *least[FDRI_TIERS] = {NULL}, *p;
    struct ages ages = {.tiers = 0};
    uint32_t lists = 0, units = 0;
    uint32_t first = fdr_load_acquire(&v->parts_first); /* A:part */
    for (uint32_t off = first; off; off = p->next) {
        p = fdri_at(a, off);
        class_bytes[p->class_] += p->bytes;
        units += p->bytes;
    }
    if (leave && units >> (a->bin_log2 - 9) <= leave) return NULL;
    if (!newest) ages_of(v, &ages);
    for (uint32_t off = first; off; off = p->next) {
        p = fdri_at(a, off);
        uint32_t head = (uint32_t)fdr_load_acquire(&p->list_head); /* A:claim */
        lists += head != 0;
        uint32_t open = p->open_off ? (uint32_t)fdr_min(p->bytes, (1u << (p->size_log2 & 31)) >> 9) : 0;
        if (ages.tiers > 1 && !(p->flags & FDR_PART_ASIDE))
            spread(&ages, oldest_tick(p), p->last_tick, p->bytes - open, open);
        if (!has_one(p, head, newest)) continue;
        struct fdr_part **l = &least[ages.tiers > 1 ? age_of(&ages, oldest_end(head)) : 0];
        if (!*l || is_less(p, *l, class_bytes)) *l = p;
    }
    return newest && lists < 2 ? NULL : of_age(&ages, least, class_bytes);
}

/* Both are decided by the first event. */
FDR_RACY static uint64_t beginning(const struct fdr_location *l) { return l->start_tick; }

FDR_RACY static bool same_unit(const struct fdr_location *a, const struct fdr_location *b)
{
    return !((a->flags ^ b->flags) & FDR_LOCATION_NS);
}

/* Has its owner not recorded for a while? Times that are presented do not tell: then a second look at it does. */
FDR_RACY static bool sleeps(struct fdr_location *v)
{
    bool ns = v->flags & FDR_LOCATION_NS;
    if (fdri_asleep(v)) return true;
    if (!ns && fdri_tick_now() - v->last_tick < fdri_ns_to_ticks(ASLEEP_NS)) return false;
    return fdri_fall_asleep(v) && !ns;
}

/* An operation may make others pass so many; fewer, where searches find nothing again and again. */
static uint32_t barriers_left(const struct fdri_thread *t, uint32_t must)
{
    uint32_t weary = must ? fdr_max(fdri_search_weary(&t->meta_search), fdri_search_weary(&t->level_search))
                          : fdri_search_weary(&t->room_search);
    return (must ? BARRIERS_MUST : BARRIERS) >> fdr_min(weary, 4);
}

/* Only for who has next to nothing, or much less than the others, or must have it: it makes a system call. */
static uint32_t claim_newest(struct fdri_thread *t, struct fdr_location *v, enum whose whose, uint32_t must,
                             uint32_t *size, struct fdri_given *given)
{
    bool attaches = !(t->loc->level_blocks | t->loc->samples_off), left = t->barriers < barriers_left(t, must);
    bool may = (attaches || left) && (must || fdri_poor(t) || is_due(t));
    struct fdr_part *p = may && sleeps(v) ? choose(v, true, leaves(v, true, whose, must)) : NULL;
    t->barriers += p != NULL;
    return p ? fdri_part_claim_newest(&fdri_rec.arena, v, p, size, given) : 0;
}

/* May it make pieces of others its own? The accounts of threads that ended would keep them for good. */
static bool may_adopt(const struct fdri_thread *t, struct fdri_size size)
{
    const struct fdri_arena *a = &fdri_rec.arena;
    if (t->loc->flags & FDR_LOCATION_ENDED && !next_to_nothing(t)) return false;
    return a->strewn && size.least < a->bin_log2 && !t->loc->samples_off;
}

/* May more bins become strewn? Whole ones, which newcomers and accounts need, come of those that are not. */
static bool may_strew(const struct fdri_thread *t)
{
    const struct fdri_arena *a = &fdri_rec.arena;
    bool more = is_due(t) && fdri_may_strew(a, 9);
    uint32_t most = a->super->bins_total / (more ? STREWN_SHARE_DUE : STREWN_SHARE);
    return fdri_crowded() || fdr_load_relaxed(&a->strewn_bins) < most;
}

/* Of what was returned: what it may make its own. */
static uint32_t fits(const struct fdri_thread *t, const struct fdri_returned *r)
{
    return may_strew(t) ? r->fit : r->strewn;
}

/* More than a little of what v holds lies in pieces that it does not collect, as its owner sleeps, and others may have
 * them. Among very many threads each takes what it finds. */
static bool waits(const struct fdri_thread *t, const struct fdr_location *v, const struct fdri_returned *r)
{
    return !fdri_crowded() && fits(t, r) > history_units(v) / WAITS_SHARE;
}

/* Nothing more of v's goes for this one: what was returned is used as it is, by who takes any piece; who needs more
 * leaves v what all keep. */
static bool enough(const struct fdri_thread *t, const struct fdr_location *v, const struct fdri_returned *r,
                   struct fdri_size size, enum whose whose)
{
    if (size.must || !waits(t, v, r)) return false;
    if (size.least == 9 && may_adopt(t, size)) return true;
    uint32_t held = history_units(v), listed = held - (uint32_t)fdr_min(held, r->units);
    return listed >> (fdri_rec.arena.bin_log2 - 9) <= kept(whose);
}

/* What comes of claims beside a bin: v GAVE pieces, which it has back; of those that wait there some are large enough
 * (FITS), or many (WAITS). */
enum { GAVE = 1, WAITS = 2, FITS = 4 };

/* What a claimer knows of v and has of it. */
struct claims {
    struct fdri_returned returned;
    struct fdri_given given;
    bool look; /* at what was returned: it has become more, or there is nothing else */
};

/* A whole bin off the lists of v, or 0. */
static uint32_t claim_some(struct fdri_thread *t, struct fdr_location *v, struct fdri_size size, enum whose whose,
                           struct claims *c)
{
    struct fdri_arena *a = &fdri_rec.arena;
    uint32_t off = 0, got_log2 = 0;
    for (int i = 0; i < POPS && !off && !enough(t, v, &c->returned, size, whose); i++) {
        struct fdr_part *p = choose(v, false, leaves(v, false, whose, size.must));
        uint32_t got = p ? fdri_part_claim(a, p, &got_log2, &c->given)
                         : claim_newest(t, v, whose, size.must, &got_log2, &c->given);
        if (!p) c->look = true;
        if (!p && !got) return 0;
        bool piece = got && 1u << got_log2 < a->super->bin_bytes;
        if (piece) fdri_piece_return(a, v, got);
        else off = got;
        c->look |= piece;
    }
    return off;
}

/* A whole bin of what v had returned, or 0. Where others sleep thousands of pieces may wait there: whoever found no bin
 * among them does not look at each again before there is another one in front. What came behind that one, while
 * somebody else looked, is seen later. */
static uint32_t whole_of(struct fdri_thread *t, struct fdr_location *v, struct fdri_returned *left)
{
    struct fdri_looked *k = &t->looked[v->id % FDRI_LOOKED];
    uint32_t first = fdr_load_relaxed(&v->returned);
    if (first && k->first == first && k->of == v->id) {
        *left = k->left;
        return 0;
    }
    uint32_t off = fdri_piece_whole(&fdri_rec.arena, v, left);
    *k = (struct fdri_looked){v->id, off ? 0 : first, *left, 0};
    return off;
}

/* Does it know that nothing of that size can be had of what waits there? */
static bool failed(const struct fdri_thread *t, const struct fdr_location *v, struct fdri_size size)
{
    const struct fdri_looked *k = &t->looked[v->id % FDRI_LOOKED];
    bool same = k->of == v->id && k->first && k->first == fdr_load_relaxed(&v->returned);
    return same && k->failed_log2 && size.least >= k->failed_log2;
}

/* One whole bin of v, or 0. */
static uint32_t claim_from(struct fdri_thread *t, struct fdr_location *v, struct fdri_size size, enum whose whose,
                           uint32_t *came)
{
    struct claims c = {{0, 0, 0}, {0, 0, UINT64_MAX, 0}, fdri_poor(t)};
    uint32_t off = 0, giver = v->id, place = fdri_claim_enter(&fdri_rec.arena, t->loc, v);
    if (!place) return 0;
    if (t->many_wait) off = whole_of(t, v, &c.returned);
    if (!off) off = claim_some(t, v, size, whose, &c);
    if (!off && c.look) off = whole_of(t, v, &c.returned);
    if (!off) t->many_wait = waits(t, v, &c.returned);
    if (off) {
        fdr_sub_relaxed(&v->bins_held, 1u);
        fdr_add_relaxed(&t->loc->bins_held, 1u);
    }
    bool same = same_unit(v, t->loc);
    c.given.from_tick = fdr_max(c.given.from_tick, beginning(v)); /* a partition's first bin says 0 */
    *came = (c.given.bytes ? GAVE : 0) | (!off && t->many_wait ? WAITS : 0);
    if (!off && fits(t, &c.returned) && !failed(t, v, size)) *came |= FITS;
    fdri_claim_leave(&fdri_rec.arena, place);
    if (!same) c.given.from_tick = c.given.to_tick = 0;
    if (c.given.bytes) fdri_note_claim(t, giver, &c.given);
    return off;
}

/* A piece of a strewn bin, or 0, is t's from now on; of it, no more than is wanted. */
static uint32_t adopted(struct fdri_thread *t, uint32_t off, uint32_t have, uint32_t want, uint32_t *got)
{
    if (!off) return 0;
    *got = (uint32_t)fdr_min(have, want);
    fdr_add_relaxed(&t->loc->strewn_units, 1u << (have - 9));
    fdri_piece_split(&fdri_rec.arena, t->loc, off, have, *got);
    return off;
}

/* No bin was whole among what waits there, nor is one with less: k still knows that. What others returned meanwhile is
 * seen when the next of them does. */
static void looked_less(struct fdri_looked *k, const struct fdr_location *l, uint32_t units)
{
    struct fdri_returned *left = &k->left;
    left->units -= (uint32_t)fdr_min(left->units, units);
    left->fit -= (uint32_t)fdr_min(left->fit, units);
    left->strewn = (uint32_t)fdr_min(left->strewn, left->fit); /* or more: others of its bin may be among them */
    k->first = fdr_load_relaxed(&l->returned);
}

static uint32_t adopt_from(struct fdri_thread *t, struct fdr_location *l, struct fdri_size size, uint32_t *got)
{
    uint32_t have = 0, place = fdri_claim_enter(&fdri_rec.arena, t->loc, l);
    struct fdri_looked *k = &t->looked[l->id % FDRI_LOOKED];
    bool strew = size.must || may_strew(t);
    if (!place) return 0;
    bool known = k->of == l->id && k->first && k->first == fdr_load_relaxed(&l->returned);
    uint32_t off = fdri_piece_adopt(&fdri_rec.arena, l, size.least, strew, &have);
    if (known) looked_less(k, l, off ? 1u << (have - 9) : 0);
    else k->first = 0;
    if (known && !off && strew) k->failed_log2 = size.least;
    fdri_claim_leave(&fdri_rec.arena, place);
    return adopted(t, off, have, size.want, got);
}

/* Of what was given back for good. */
static uint32_t take_given(struct fdri_thread *t, struct fdri_size size, uint32_t *got)
{
    struct fdri_arena *a = &fdri_rec.arena;
    uint32_t have = 0;
    if (!may_adopt(t, size)) return 0;
    uint32_t off = fdri_strewn_take(a, fdri_strewn_least(a, size.least), &have);
    return adopted(t, off, have, size.want, got);
}

uint32_t fdri_share_returned(struct fdri_thread *t, uint32_t size_log2)
{
    struct fdri_arena *a = &fdri_rec.arena;
    const struct fdri_size size = {size_log2, size_log2, 0};
    uint32_t at = fdr_load_acquire(&fdri_rec.shares.returned), off = 0, got; /* A:hint */
    if (!may_adopt(t, size) || !next_to_nothing(t)) return 0;
    for (int i = 0; i < LOOK && !off; i++) {
        if (!at) at = fdr_load_acquire(&a->super->location_first); /* A:location */
        struct fdr_location *l = fdri_at(a, at);
        if (l != t->loc && !l->samples_off && fdr_load_relaxed(&l->returned)) off = adopt_from(t, l, size, &got);
        if (!off) at = l->next; /* it may have more */
    }
    fdr_store_release(&fdri_rec.shares.returned, at); /* R:hint */
    return off ? off : take_given(t, size, &got);     /* last: left alone it is whole the sooner */
}

/* No other thread is there, and none has ended that left anything. Who is only coming, samples, and the accounts of
 * those that ended do not count among them: they are beside one. */
bool fdri_share_alone(const struct fdri_thread *t)
{
    uint32_t flags = fdr_load_relaxed(&t->loc->flags);
    bool counts = flags & FDR_LOCATION_LIVE && !(flags & FDR_LOCATION_SAMPLES);
    return counts && fdr_load_relaxed(&fdri_rec.shares.live) <= 1 && !fdr_load_relaxed(&fdri_rec.shares.ended_last);
}

/* The part of a whole bin that is asked for; or of what became free on the way to one. */
static uint32_t share_piece(struct fdri_thread *t, struct fdri_size size, enum whose whose, uint32_t *got)
{
    struct fdri_arena *a = &fdri_rec.arena;
    if (fdri_rec.set.strategy == FDR_STRATEGY_FIRST || fdri_share_alone(t)) return 0; /* FIRST: what is there stays */
    struct fdr_location *v = whose == ENDED ? ended_one(t) : rich_one(t, whose);
    uint32_t came = 0, off = v ? claim_from(t, v, size, whose, &came) : 0;
    if (off) fdri_piece_split(a, t->loc, off, a->bin_log2, *got = size.want);
    else if (v && may_adopt(t, size) && (size.must || came & WAITS || (came && (next_to_nothing(t) || is_due(t))))) {
        off = adopt_from(t, v, size, got);
        if (!off) t->many_wait = false; /* they are too small: the next time more is claimed */
    }
    if (v && !off && (size.must || !(came & GAVE))) {    /* not again and again the same */
        fdr_store_release(&fdri_rec.shares.richest, 0u); /* R:hint */
        t->passed_over = fdri_off_of(t, v);
    }
    return off;
}

uint32_t fdri_share_piece(struct fdri_thread *t, uint32_t size_log2)
{
    uint32_t got;
    return share_piece(t, (struct fdri_size){size_log2, size_log2, 0}, RICHER, &got);
}

static uint32_t ended_piece(struct fdri_thread *t, struct fdri_size size, enum fdri_urgency urgency, uint32_t *got)
{
    if (!fdri_ended_room(t, urgency)) return 0;
    return fdri_piece_take(&fdri_rec.arena, t->loc, *got = size.want);
}

uint32_t fdri_share_any(struct fdri_thread *t, struct fdri_size size, uint32_t *got)
{
    bool poor = fdri_poor(t);
    enum fdri_urgency urgency = (t->loc->level_blocks | t->loc->samples_off) ? FDRI_POOR : FDRI_ATTACHING;
    uint32_t off = ended_piece(t, size, FDRI_IF_AGED, got);
    int rounds = urgency == FDRI_ATTACHING ? ROUNDS : LOOK;
    /* not for accounts of threads that ended, which have bins of their own to give */
    bool own = t == &fdri_self || t == &fdri_lane, comes = poor && own;
    /* The first bin is looked for with patience: who only sleeps since it was looked at gives the second time. One that
     * has begun asks again with its next event. */
    bool first = urgency == FDRI_ATTACHING || !t->sought;
    int tries = first ? ROUNDS : 2;
    if (!off) off = take_given(t, size, got);
    if (!off) off = share_piece(t, size, RICHER, got);
    for (int i = 0; i < rounds && !off && (poor || is_due(t)); i++) {
        if (!fdri_ended_room(t, urgency)) break;
        off = fdri_piece_take(&fdri_rec.arena, t->loc, *got = size.want);
    }
    for (int i = 0; i < LOOK && !off && own && (poor || is_due(t)); i++) off = share_piece(t, size, ENDED, got);
    for (int i = 0; i < tries && !off && comes; i++) off = share_piece(t, size, ANYBODYS, got);
    t->sought |= urgency != FDRI_ATTACHING && comes && !off;
    return off;
}
