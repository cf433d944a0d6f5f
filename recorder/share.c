/* SPDX-License-Identifier: MIT */
/* Fair shares: where a bin comes from when none is free and others hold more.
 *
 * Max-min fairness: what is free goes to whoever asks. When nothing is, a location that holds less takes, one bin at a
 * time, from one that holds more than a fair share (bins / live locations) and clearly more than itself. So busy
 * locations meet at one level, and whoever holds less than a fair share keeps all of it.
 *
 * Locations of samples are bounded by a share of their own and give nothing.
 *
 * Claims go for the oldest bin of the partition that policies/ would give back first. They need nothing of the owner,
 * who may sleep: bins/partition.c, "the old end". Pieces in front of whole bins go back to their owner, who joins them
 * when it looks; until then who has next to nothing among many threads may make them its own: bins/strewn.c. Where
 * partitions have nothing but the bin they would write into, that goes if the owner has not recorded for a while:
 * bins/asleep.c. */
#include "base/racy.h"
#include "recorder/recorder.h"

enum { LOOK = 8, POPS = 8, ROUNDS = 64, ASLEEP_NS = 10000000, FEW_BINS = 64 };

/* Bins, those counted that it has in pieces beside others. Of two that adopt pieces of one bin the second may subtract
 * its own before the first has added the whole, or was left by longjmp before: then that is less than nothing. */
uint32_t fdri_share_held(const struct fdr_location *l)
{
    int32_t units = (int32_t)fdr_load_relaxed(&l->strewn_units);
    return fdr_load_relaxed(&l->bins_held) + ((units > 0 ? (uint32_t)units : 0) >> (fdri_rec.arena.bin_log2 - 9));
}

bool fdri_poor(const struct fdr_location *l) { return fdri_share_held(l) < 4; }

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

/* How much everybody keeps: a fair share. From who has next to nothing, and finds no room anywhere else, one bin less
 * than all have if there are as many threads as the buffer is sure of: that one is not in the share yet. */
static uint32_t kept(bool at_least)
{
    const struct fdr_superblock *s = fdri_rec.arena.super;
    uint32_t fair = fdri_fair_share();
    uint32_t all = s->bins_total / fdr_max(s->locations_sure, 1u);
    return at_least ? (uint32_t)fdr_min(fair, all - (all > 1)) : fair;
}

/* Does `v` hold so much that one that holds `mine` may take of it? The margin keeps equals from taking turns. */
static bool gives(const struct fdr_location *v, uint32_t mine, bool at_least)
{
    uint32_t h = fdri_share_held(v);
    return h > kept(at_least) && h > mine + mine / 8 + 2;
}

bool fdri_share_rich(const struct fdr_location *l)
{
    uint64_t live = fdr_load_relaxed(&fdri_rec.shares.live),
             bins = (uint32_t)fdr_load_relaxed(&fdri_rec.arena.super->virgin);
    return !fdri_poor(l) && fdri_share_held(l) * live > bins - fdr_min(bins, fdri_rec.bin_reserve);
}

/* Remembers who holds much: a hint for those who need. */
void fdri_share_note(const struct fdri_thread *t)
{
    uint32_t off = fdr_load_acquire(&fdri_rec.shares.richest), mine = fdri_off_of(t, t->loc); /* A:hint */
    if (off == mine) return;
    const struct fdr_location *rich = fdri_at(&fdri_rec.arena, off);
    /* R:hint - as R:location for who comes to it by the hint */
    if (!off || fdri_share_held(t->loc) > fdri_share_held(rich)) fdr_store_release(&fdri_rec.shares.richest, mine);
}

/* The richest of those it is remembered of and of the next few on the chain; the cursor goes on from call to call. */
static struct fdr_location *rich_one(struct fdri_thread *t, bool at_least)
{
    struct fdri_arena *a = &fdri_rec.arena;
    uint32_t off = fdr_load_acquire(&fdri_rec.shares.cursor);       /* A:hint */
    uint32_t best_off = fdr_load_acquire(&fdri_rec.shares.richest); /* A:hint */
    struct fdr_location *best = best_off ? fdri_at(a, best_off) : NULL;
    if (best == t->loc) best = NULL;
    if (best && gives(best, fdri_share_held(t->loc), at_least)) return best;
    for (int i = 0; i < LOOK; i++) {
        if (!off) off = fdr_load_acquire(&a->super->location_first); /* A:location */
        struct fdr_location *l = fdri_at(a, off);
        off = l->next;
        if (l != t->loc && !l->samples_off && (!best || fdri_share_held(l) > fdri_share_held(best))) best = l;
    }
    fdr_store_release(&fdri_rec.shares.cursor, off); /* R:hint */
    if (!best || !gives(best, fdri_share_held(t->loc), at_least)) return NULL;
    fdr_store_release(&fdri_rec.shares.richest, fdri_off_of(t, best)); /* R:hint */
    return best;
}

/* Has it a bin to give, or, newest: only that one? */
FDR_RACY static bool has_one(const struct fdr_part *p, uint32_t head, bool newest)
{
    if (newest) return fdri_part_newest_whole(&fdri_rec.arena, p);
    return head && !(p->flags & FDR_PART_ASIDE) && fdri_bin(&fdri_rec.arena, head)->next;
}

/* The partition of v to take from. The last list of a location is never ended: what it did outermost stays. What is
 * read while others change it decides only which one it is. */
FDR_RACY static struct fdr_part *choose(const struct fdr_location *v, bool newest)
{
    static const struct fdri_chain by_age = {{0}, {0}};
    const struct fdri_chain *chain = fdri_rec.set.strategy == FDR_STRATEGY_LAST ? &by_age : &fdri_rec.set.chain;
    const struct fdri_arena *a = &fdri_rec.arena;
    uint64_t class_bytes[FDR_CLASS_COUNT] = {0};
    struct fdr_part *best = NULL, *p;
    struct fdri_part_view best_view = {0};
    uint32_t lists = 0;
    uint32_t first = fdr_load_acquire(&v->parts_first); /* A:part */
    for (uint32_t off = first; off; off = p->next) {
        p = fdri_at(a, off);
        class_bytes[p->class_] += p->bytes;
    }
    for (uint32_t off = first; off; off = p->next) {
        p = fdri_at(a, off);
        uint32_t head = (uint32_t)fdr_load_acquire(&p->list_head); /* A:claim */
        enum fdri_reason why;
        lists += head != 0;
        if (!has_one(p, head, newest)) continue;
        struct fdri_part_view view = {.depth = p->depth,
                                      .class_ = p->class_,
                                      .band = p->band,
                                      .class_bytes = class_bytes[p->class_],
                                      .oldest = fdri_bin(a, head)->base_tick};
        if (best && !fdri_policy_before(chain, &view, &best_view, &why)) continue;
        best = p;
        best_view = view;
    }
    return newest && lists < 2 ? NULL : best;
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

/* Only for who has next to nothing: it makes a system call. */
static uint32_t claim_newest(struct fdr_location *v, uint32_t *size, struct fdri_given *given)
{
    struct fdr_part *p = sleeps(v) ? choose(v, true) : NULL;
    return p ? fdri_part_claim_newest(&fdri_rec.arena, v, p, size, given) : 0;
}

/* One whole bin of v, or 0. gave: pieces at least, which v has back. */
static uint32_t claim_from(struct fdri_thread *t, struct fdr_location *v, bool *gave)
{
    struct fdri_arena *a = &fdri_rec.arena;
    struct fdri_given given = {0, 0, UINT64_MAX, 0};
    uint32_t off = 0, size = 0, giver = v->id;
    bool poor = fdri_poor(t->loc), look = poor; /* at what was returned: else only where that has become more */
    if (!fdri_claim_enter(v)) return 0;
    for (int i = 0; i < POPS && !off; i++) {
        struct fdr_part *p = choose(v, false);
        uint32_t got = p ? fdri_part_claim(a, p, &size, &given) : 0;
        if (!p) {
            if (poor) off = claim_newest(v, &size, &given);
            break;
        }
        bool piece = got && 1u << size < a->super->bin_bytes;
        if (piece) fdri_piece_return(a, v, got);
        else off = got;
        look |= piece;
    }
    if (!off && look) off = fdri_piece_whole(a, v);
    if (off) {
        fdr_sub_relaxed(&v->bins_held, 1u);
        fdr_add_relaxed(&t->loc->bins_held, 1u);
    }
    bool same = same_unit(v, t->loc);
    given.from_tick = fdr_max(given.from_tick, beginning(v)); /* a partition's first bin says 0 */
    fdri_claim_leave(v);
    if (!same) given.from_tick = given.to_tick = 0;
    *gave = given.bytes != 0;
    if (given.bytes) fdri_note_claim(t, giver, &given);
    return off;
}

/* A piece of a strewn bin, or 0, is t's from now on; of it, what is asked for. */
static uint32_t adopted(struct fdri_thread *t, uint32_t off, uint32_t got_log2, uint32_t size_log2)
{
    if (!off) return 0;
    fdr_add_relaxed(&t->loc->strewn_units, 1u << (got_log2 - 9));
    fdri_piece_split(&fdri_rec.arena, t->loc, off, got_log2, size_log2);
    return off;
}

static uint32_t adopt_from(struct fdri_thread *t, struct fdr_location *l, uint32_t size_log2)
{
    uint32_t got = 0;
    if (!fdri_claim_enter(l)) return 0;
    uint32_t off = fdri_piece_adopt(&fdri_rec.arena, l, size_log2, &got);
    fdri_claim_leave(l);
    return adopted(t, off, got, size_log2);
}

/* May it make pieces of others its own? */
static bool adopts(const struct fdri_thread *t, uint32_t size_log2)
{
    const struct fdri_arena *a = &fdri_rec.arena;
    return a->strewn && size_log2 < a->bin_log2 && fdri_crowded() && fdri_poor(t->loc) && !t->loc->samples_off;
}

uint32_t fdri_share_returned(struct fdri_thread *t, uint32_t size_log2)
{
    struct fdri_arena *a = &fdri_rec.arena;
    uint32_t off = fdr_load_acquire(&fdri_rec.shares.returned), got = 0; /* A:hint */
    if (!adopts(t, size_log2)) return 0;
    for (int i = 0; i < LOOK && !got; i++) {
        if (!off) off = fdr_load_acquire(&a->super->location_first); /* A:location */
        struct fdr_location *l = fdri_at(a, off);
        if (l != t->loc && !l->samples_off && fdr_load_relaxed(&l->returned)) got = adopt_from(t, l, size_log2);
        if (!got) off = l->next; /* it may have more */
    }
    fdr_store_release(&fdri_rec.shares.returned, off); /* R:hint */
    if (got) return got;
    uint32_t given = fdri_strewn_take(a, fdri_strewn_least(a, size_log2),
                                      &got); /* last: left alone it is whole the sooner */
    return adopted(t, given, got, size_log2);
}

/* No other thread is there, and none has ended that left anything. Who is only coming, samples, and the accounts of
 * those that ended do not count among them: they are beside one. */
static bool alone(const struct fdri_thread *t)
{
    uint32_t flags = fdr_load_relaxed(&t->loc->flags);
    bool counts = flags & FDR_LOCATION_LIVE && !(flags & FDR_LOCATION_SAMPLES);
    return counts && fdr_load_relaxed(&fdri_rec.shares.live) <= 1 && !fdr_load_relaxed(&fdri_rec.shares.ended_last);
}

/* The part of a whole bin that is asked for; or of what became free on the way to one. */
static uint32_t share_piece(struct fdri_thread *t, uint32_t size_log2, bool at_least)
{
    struct fdri_arena *a = &fdri_rec.arena;
    if (fdri_rec.set.strategy == FDR_STRATEGY_FIRST || alone(t)) return 0; /* FIRST: what is there stays */
    struct fdr_location *v = rich_one(t, at_least);
    bool gave = false;
    uint32_t off = v ? claim_from(t, v, &gave) : 0;
    if (off) fdri_piece_split(a, t->loc, off, a->bin_log2, size_log2);
    else if (gave && adopts(t, size_log2)) off = adopt_from(t, v, size_log2);
    if (v && !off && !gave) fdr_store_release(&fdri_rec.shares.richest, 0u); /* R:hint - not again and again the same */
    return off;
}

uint32_t fdri_share_piece(struct fdri_thread *t, uint32_t size_log2) { return share_piece(t, size_log2, false); }

uint32_t fdri_share_any(struct fdri_thread *t, uint32_t size_log2)
{
    struct fdri_arena *a = &fdri_rec.arena;
    bool poor = fdri_poor(t->loc);
    enum fdri_urgency urgency = (t->loc->level_blocks | t->loc->samples_off) ? FDRI_POOR : FDRI_ATTACHING;
    uint32_t off = fdri_ended_room(t, FDRI_IF_AGED) ? fdri_piece_take(a, t->loc, size_log2) : 0;
    int rounds = urgency == FDRI_ATTACHING ? ROUNDS : LOOK;
    /* not for accounts of threads that ended, which have bins of their own to give */
    bool comes = poor && (t == &fdri_self || t == &fdri_lane);
    /* The first bin is looked for with patience: who only sleeps since it was looked at gives the second time. One that
     * has begun asks again with its next event. */
    bool first = urgency == FDRI_ATTACHING || !t->sought;
    int tries = first ? ROUNDS : 2;
    if (!off) off = share_piece(t, size_log2, false);
    for (int i = 0; i < rounds && !off && poor && fdri_ended_room(t, urgency); i++)
        off = fdri_piece_take(a, t->loc, size_log2);
    for (int i = 0; i < tries && !off && comes; i++) off = share_piece(t, size_log2, true);
    t->sought |= urgency != FDRI_ATTACHING && comes && !off;
    return off;
}
