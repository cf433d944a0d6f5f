/* SPDX-License-Identifier: MIT */
/* Threads that ended: their bins go before others', the oldest first; when those are gone their accounts are folded
 * into one location named [ended] and their memory is used again.
 *
 * Not before their last moments have aged: half as many bins as there are were filled since, for the first time or
 * anew. Where a thread has much less than a fair share, or finds no room for its accounts, that does not count: bins
 * that it has just filled would go in place of theirs.
 *
 * One thread at a time works here, under a try-lock: whoever finds it taken goes elsewhere. fdr_usage takes it too, so
 * that what it walks stays where it is. A snapshot, which lasts longer, says that it walks (`still`): accounts stay
 * where they are until it has, and bins go on being given. */
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#include "base/atomic.h"
#include "base/bits.h"
#include "base/clock.h"
#include "base/racy.h"
#include "base/system/signal_mask.h"
#include "base/system/syscall.h"
#include "bins/bins.h"
#include "bins/claims.h"
#include "bins/partition.h"
#include "bins/pieces.h"
#include "bins/pressure/bins_pressure.h"
#include "export/view.h"
#include "format/arena/arena.h"
#include "recorder/ended/ended.h"
#include "recorder/life/recording.h"
#include "recorder/memory/memory.h"
#include "recorder/shares/share_state.h"
#include "recorder/thread/thread.h"
#include "recorder/thread/thread_state.h"
#include "recorder/totals/totals.h"

enum { POPS = 16, LOOK = 4, ROUNDS = 64, WHOLE = 1024, TRIES = 200, PATIENCE_NS = 10000000 };
enum { AHEAD = 8, AHEAD_32NDS = 10 };

/* Where accounts go, by unit of time; under the lock. There is a place for those of every location in the queue before
 * it comes there, or else it holds bins enough that one will be made of the last: folding must not need what only
 * folding gives. */
static struct fdri_thread ended[2];
static uint32_t given_away; /* locations whose memory was; under the lock */

static uint32_t off_of(const struct fdr_location *l) { return (uint32_t)((const uint8_t *)l - fdri_rec.arena.base); }

/* The number of the recording whose lock this thread has, or is about to; 0: none. Its own handlers do not wait for it:
 * it would wait for them. */
static __thread uint32_t lock_mine;
static bool have_lock(void) { return lock_mine && lock_mine == fdri_rec.number; }

bool fdri_ended_look(uint32_t who, uint32_t tries)
{
    uint32_t *lock = &fdri_rec.shares.lock, none = 0;
    if (have_lock()) return false;
    lock_mine = fdri_rec.number;
    fdr_signal_fence();
    for (uint32_t i = 0; i <= tries; i++, none = 0)
        if (!fdr_load_relaxed(lock) && fdr_cas_acq_rel_u32(lock, &none, who)) return true; /* L:fold */
    fdr_signal_fence();
    lock_mine = 0;
    return false;
}

static bool wait_for_lock(uint32_t who, uint64_t ns, bool (*take)(uint32_t who, uint32_t tries))
{
    uint64_t until = fdr_clock_ns(CLOCK_MONOTONIC) + ns;
    while (!take(who, 1000)) {
        if (have_lock() || fdr_clock_ns(CLOCK_MONOTONIC) > until) return false;
        sched_yield();
    }
    return true;
}

/* Does a snapshot walk? Under the lock: one that begins later waits until this operation is over. */
static bool walked(void) { return fdr_load_acquire(&fdri_rec.shares.still) != 0; /* A:still */ }

bool fdri_ended_lock(uint32_t who, uint32_t tries)
{
    if (!fdri_ended_look(who, tries)) return false;
    if (!walked()) return true;
    fdri_ended_unlock();
    return false;
}

bool fdri_ended_still(uint64_t ns)
{
    fdr_add_acq_rel(&fdri_rec.shares.still, 1u); /* R:still - who takes the lock behind us finds it */
    if (!wait_for_lock(UINT32_MAX, ns, fdri_ended_look)) {
        fdri_ended_go_on();
        return false;
    }
    fdri_ended_unlock();
    return true;
}

void fdri_ended_go_on(void) { fdr_sub_acq_rel(&fdri_rec.shares.still, 1u); /* R:still - all was read before */ }

void fdri_ended_unlock(void)
{
    fdr_store_release(&fdri_rec.shares.lock, 0u); /* L:fold */
    fdr_signal_fence();
    lock_mine = 0;
}

/* Only where it is the caller's still: another recording may have begun since. */
void fdri_ended_unlock_of(uint32_t who)
{
    fdr_cas_acq_rel_u32(&fdri_rec.shares.lock, &who, 0u); /* L:fold */
    fdr_signal_fence();
    lock_mine = 0;
}

void fdri_ended_abandoned(const struct fdr_location *l)
{
    if (fdr_load_relaxed(&fdri_rec.shares.lock) != off_of(l)) {
        lock_mine = 0; /* it was left before it had it, or behind that */
        return;
    }
    for (int ns = 0; ns < 2; ns++)
        if (ended[ns].recording == fdri_rec.number) fdri_claim_abandoned(&fdri_rec.arena, ended[ns].loc);
    if (fdri_rec.arena.super->fold_off) fdri_fold_undo();
    fdri_ended_unlock();
}

/* ---- the queue: whoever ends appends, the holder of the lock takes off at the front ---- */

static struct fdr_location *location_at(uint32_t off) { return off ? fdri_at(&fdri_rec.arena, off) : NULL; }

static void append(struct fdr_location *l)
{
    struct fdri_shares *s = &fdri_rec.shares;
    fdr_store_relaxed(&l->ended_next, 0u);
    struct fdr_location *before = location_at(fdr_swap_acq_rel(&s->ended_last, off_of(l))); /* R:ended */
    /* R:ended - until this one stands the queue ends before l, and nobody can take `before` off */
    fdr_store_release(before ? &before->ended_next : &s->ended_in, off_of(l));
}

static uint32_t bins_used(void) { return (uint32_t)fdr_load_relaxed(&fdri_rec.arena.super->virgin); }

/* How many bins were filled by now, for the first time or anew. */
static uint32_t bins_filled(void) { return (uint32_t)fdr_load_relaxed(&fdri_rec.shares.turn) + bins_used(); }

void fdri_ended_push(struct fdr_location *l)
{
    l->ended_turn = bins_filled();
    append(l);
}

/* NULL: there is none, or the one that comes first is on its way. */
static struct fdr_location *oldest(void)
{
    struct fdri_shares *s = &fdri_rec.shares;
    if (!s->ended_first && (s->ended_first = fdr_load_acquire(&s->ended_in))) /* A:ended */
        fdr_store_relaxed(&s->ended_in, 0u);
    return location_at(s->ended_first);
}

/* Takes the oldest one off; false: another is just about to stand behind it, and will write to it. */
static bool take_off(const struct fdr_location *l)
{
    struct fdri_shares *s = &fdri_rec.shares;
    uint32_t next = fdr_load_acquire(&l->ended_next), last = off_of(l); /* A:ended */
    if (!next && !fdr_cas_acq_rel_u32(&s->ended_last, &last, 0u) &&     /* A:ended */
        !(next = fdr_load_acquire(&l->ended_next)))                     /* A:ended */
        return false;
    s->ended_first = next;
    return true;
}

static bool aged(const struct fdr_location *l) { return bins_filled() - l->ended_turn >= bins_used() / 2; }

/* Nobody else is inside and nobody will be. */
static bool alone(struct fdr_location *l)
{
    if (l->flags & FDR_LOCATION_FOLDING) return true;
    if (!fdri_claim_pin(&fdri_rec.arena, l)) {
        fdri_claim_unpin(l);
        return false;
    }
    fdr_store_relaxed(&l->flags, l->flags | FDR_LOCATION_FOLDING);
    fdri_piece_collect(&fdri_rec.arena, l);
    return true;
}

/* The one whose oldest bin ended first. Not when it began: that of an outer call that lasted from the first moment to
 * the last has both, and without it nothing of what was inside counts as kept. Among those that ended at once the inner
 * ones. */
static struct fdr_part *oldest_part(const struct fdr_location *l)
{
    const struct fdri_arena *a = &fdri_rec.arena;
    struct fdr_part *best = NULL, *p;
    uint64_t best_end = UINT64_MAX;
    for (uint32_t off = l->parts_first; off; off = p->next) {
        p = fdri_at(a, off);
        uint64_t end = fdri_part_oldest_end(a, p);
        if (end > best_end || !(uint32_t)p->list_head || (best && end == best_end && p->depth <= best->depth)) continue;
        best = p;
        best_end = end;
    }
    return best;
}

/* Gives back bins and pieces until a whole one was given back. false: there was nothing. */
static bool give_bin(struct fdr_location *l)
{
    struct fdri_arena *a = &fdri_rec.arena;
    struct fdri_given given = {0, 0, UINT64_MAX, 0};
    uint32_t held = fdr_load_relaxed(&l->bins_held), size;
    for (int i = 0; i < POPS && fdr_load_relaxed(&l->bins_held) == held; i++) {
        struct fdr_part *p = oldest_part(l);
        if (!p) break;
        if ((uint32_t)p->list_head == p->open_off) fdri_part_seal(a, p);
        uint32_t off = fdri_part_pop(a, p, &size, &given);
        if (off) fdri_piece_give(a, l, off, size);
    }
    l->reductions_dropped_events += given.events;
    l->reductions_dropped_bytes += given.bytes;
    return given.bytes != 0;
}

/* For the first memory of [ended], in vain: each who needs room would begin another one. Under the lock. */
static struct fdri_search *search_of(bool ns)
{
    static struct fdri_search search[2];
    static uint32_t recording;
    if (recording != fdri_rec.number) memset(search, 0, sizeof search);
    recording = fdri_rec.number;
    return &search[ns];
}

static struct fdri_thread *ended_of(bool ns)
{
    struct fdri_thread *t = &ended[ns];
    if (t->recording == fdri_rec.number) {
        t->barriers = 0;
        fdri_rows_again(t);
        return t;
    }
    memset((uint32_t *)t + 1, 0,
           sizeof *t - sizeof(uint32_t)); /* all but `recording`, which is looked at without the lock */
    struct fdr_location *spare = fdri_rec.shares.spare[ns];
    struct fdri_search *search = search_of(ns);
    if (!spare || fdri_search_pauses(search, 0)) return NULL;
    fdr_store_relaxed(&spare->flags, (uint32_t)(FDR_LOCATION_FREE | FDR_LOCATION_ENDED)); /* it may take the last bin */
    bool made = fdri_location_make(t, spare, UINT32_MAX, "[ended]");
    fdri_search_over(search, made, UINT64_MAX);
    if (!made) return NULL;
    t->fresh = false;
    t->loc->tid = 0;
    fdri_set_clock(t, ns);
    fdri_meta_ahead(t);
    fdr_store_relaxed(&t->recording, fdri_rec.number);
    return t;
}

/* Left by longjmp in the middle the location would lead into what is others' by then, for good: so handlers wait. */
static bool give_memory(struct fdri_thread *into, struct fdri_thread *from)
{
    const struct fdr_location *l = from->loc;
    sigset_t old;
    fdr_signals_block(&old);
    bool taken = take_off(l);
    if (taken) {
        into->loc->tid++;
        uint64_t *start = &into->loc->start_tick; /* 0: none of them had an event */
        if (l->start_tick && (!*start || l->start_tick < *start)) *start = l->start_tick;
        into->loc->end_tick = fdr_max(into->loc->end_tick, l->end_tick);
        fdri_location_drop(from);
    }
    fdr_signals_restore(&old);
    return taken;
}

/* Folds a part of l's accounts. 1: that was all, and its memory is free; 0: a part; -1: no room for what they go to. */
static int fold(struct fdr_location *l)
{
    struct fdri_thread from = {.loc = l, .base = fdri_rec.arena.base}, *into = ended_of(l->flags & FDR_LOCATION_NS);
    if (!into) return -1;
    if (into->loc->flags & FDR_LOCATION_FREE) {
        sigset_t old;
        fdr_signals_block(&old); /* left by longjmp in the middle its blocks would name two locations, for good */
        fdri_location_number(into);
        fdri_location_publish(into, FDR_LOCATION_ENDED);
        fdr_signals_restore(&old);
    }
    int result = fdri_fold(into, &from);
    if (result != 1) return result;
    if (!give_memory(into, &from)) return 0;
    given_away++;
    fdri_meta_ahead(into);
    return 1;
}

static int prepared(struct fdri_thread *t)
{
    struct fdri_thread *into = ended_of(t->loc->flags & FDR_LOCATION_NS);
    return into ? fdri_fold_prepare(into, t) : -1;
}

/* Can bins hold accounts as l's? */
FDR_RACY static bool bins_hold(const struct fdr_location *l)
{
    uint32_t levels = l->level_blocks ? fdr_levels_of(l->level_blocks - 1) : FDR_LEVELS_STEP;
    return fdri_rec.arena.super->bin_bytes >= sizeof(struct fdr_slab) + fdr_levels_bytes(levels);
}

/* Would bins of others help who wants a place for accounts? Where they hold no block of levels, only if bins are short,
 * too: nothing free but what is kept for newcomers. */
static bool bins_help(const struct fdr_location *l)
{
    return bins_hold(l) || fdri_bins_free(&fdri_rec.arena) <= fdri_rec.bin_reserve;
}

FDR_RACY uint32_t fdri_ended_keeps(const struct fdr_location *l)
{
    enum { ROW_BYTES = 2 * sizeof(struct fdr_row), LEVELS = 8, OTHERS = 6 }; /* of a row with a histogram; a bin */
    const struct fdr_rowtable *table = l->rows_table_off ? fdri_at(&fdri_rec.arena, l->rows_table_off) : NULL;
    uint32_t rows = table ? table->used * ROW_BYTES / fdri_rec.arena.super->bin_bytes : 0;
    return bins_hold(l) ? fdr_levels_in(l->level_blocks) / LEVELS + rows + OTHERS : 0;
}

/* Of the last ones that l gives the place becomes. */
static bool give_last(struct fdr_location *l)
{
    struct fdri_thread from = {.loc = l, .base = fdri_rec.arena.base};
    bool gave = give_bin(l);
    while (prepared(&from) < 0 && give_bin(l)) continue;
    return gave;
}

static bool give(struct fdr_location *l)
{
    return fdr_load_relaxed(&l->bins_held) > fdri_ended_keeps(l) ? give_bin(l) : give_last(l);
}

/* A bin of one of those that ended after l. */
static bool give_bin_behind(struct fdr_location *l)
{
    for (int i = 0; i < POPS; i++) {
        l = location_at(fdr_load_acquire(&l->ended_next)); /* A:ended */
        if (!l) return false;
        if (alone(l) && oldest_part(l)) return give(l);
    }
    return false;
}

static bool work_off(struct fdr_location *l)
{
    if (oldest_part(l)) return give(l);
    int result = fold(l);
    for (int i = 0; i < POPS && result < 0 && bins_help(l) && give_bin_behind(l); i++) result = fold(l);
    return result >= 0;
}

/* A place in [ended] for l's accounts, a piece of it at a time. 1: it is there, or bins will make it; 0: there is more
 * of it; -1: there is none, and whoever wants the memory they take would give what l holds back in vain. */
static int find_place(struct fdr_location *l)
{
    struct fdri_thread from = {.loc = l, .base = fdri_rec.arena.base};
    return fdri_ended_keeps(l) ? 1 : prepared(&from);
}

/* Left by longjmp in the middle it would be in no queue, or the queue without an end: so handlers wait. */
static bool to_the_end(struct fdr_location *l)
{
    sigset_t old;
    fdr_signals_block(&old);
    bool taken = take_off(l);
    if (taken) append(l);
    fdr_signals_restore(&old);
    return taken;
}

enum outcome { ROOM, NO_ROOM, COME_AGAIN, OTHERS_LEFT }; /* LEFT: not all were looked at */

static bool wants_accounts(enum fdri_urgency u) { return u == FDRI_ACCOUNTS || u == FDRI_ATTACHING_WHOLE; }

/* Works off the oldest one; where a claimer is inside, which may sleep there, or where there is no room for its
 * accounts, that one is the newest from now on: another may make the room. */
static enum outcome work(enum fdri_urgency urgency)
{
    const struct fdr_location *first = NULL;
    bool claimed = false, all = false;
    for (int i = 0; i < LOOK && !all; i++) {
        struct fdr_location *l = oldest();
        if (!l) return COME_AGAIN;
        if (urgency == FDRI_IF_AGED && !aged(l)) return NO_ROOM;
        int place = wants_accounts(urgency) ? find_place(l) : 1;
        if (!place) return ROOM;
        bool mine = place > 0 && alone(l);
        if (mine && work_off(l)) return ROOM;
        claimed |= place > 0 && !mine;
        if (!to_the_end(l)) return COME_AGAIN;
        if (!first) first = l;
        all = oldest() == first;
    }
    return claimed ? COME_AGAIN : all ? NO_ROOM : OTHERS_LEFT;
}

/* Bins are not what is needed: until the memory of a whole location was given back. */
static enum outcome work_whole(void)
{
    uint32_t before = given_away;
    enum outcome outcome = ROOM;
    for (int i = 0; i < WHOLE && outcome == ROOM && given_away == before; i++) outcome = work(FDRI_ATTACHING_WHOLE);
    return outcome;
}

/* While a snapshot walks: a bin of the oldest one that has more of them than its place will be made of. */
static enum outcome bins_only(enum fdri_urgency urgency)
{
    if (wants_accounts(urgency)) return COME_AGAIN;
    struct fdr_location *l = oldest();
    for (int i = 0; l && i < ROUNDS; i++, l = location_at(fdr_load_acquire(&l->ended_next))) { /* A:ended */
        if (urgency == FDRI_IF_AGED && !aged(l)) return NO_ROOM;
        if (fdr_load_relaxed(&l->bins_held) > fdri_ended_keeps(l) && alone(l) && give_bin(l)) return ROOM;
    }
    return COME_AGAIN;
}

/* Where t has many bins the place can wait until they go. Else those that ended before make the room, for them there is
 * one; or bins of t's own. Not for readings, which are the monitor's and few: the oldest ones say from when on amounts
 * are known, and would go first. */
void fdri_ended_prepare(struct fdri_thread *t)
{
    uint32_t last = fdri_ended_keeps(t->loc);
    if (fdri_rec.set.strategy == FDR_STRATEGY_FIRST || t->loc->flags & FDR_LOCATION_READINGS) return;
    if (!wait_for_lock(UINT32_MAX, PATIENCE_NS, fdri_ended_lock)) return;
    for (int i = 0, done; i < ROUNDS; i++) {
        while (!(done = prepared(t))) continue;
        if (done > 0 || (last && fdr_load_relaxed(&t->loc->bins_held) > last)) break;
        enum outcome outcome = i < ROUNDS / 2 && bins_help(t->loc) ? work(FDRI_ATTACHING) : work_whole();
        if (outcome != ROOM && !(last && give_bin(t->loc))) break;
    }
    fdri_ended_unlock();
}

/* For how long t, which comes, still waits for others: all that it asks for together. */
static uint64_t patience(const struct fdri_thread *t)
{
    uint64_t now = fdr_clock_ns(CLOCK_MONOTONIC);
    return t->patient_until > now ? fdr_min(t->patient_until - now, PATIENCE_NS) : 0;
}

bool fdri_ended_room(struct fdri_thread *t, enum fdri_urgency urgency)
{
    enum { A_WHILE_NS = 50000 };
    uint32_t who = t->loc ? off_of(t->loc) : UINT32_MAX;
    uint64_t wait = urgency >= FDRI_ATTACHING ? patience(t) : 0;
    if (fdri_rec.set.strategy == FDR_STRATEGY_FIRST) return false; /* what is there stays */
    if (t == &ended[0] || t == &ended[1]) return false;            /* the caller has the lock, and is at it */
    if (!fdr_load_relaxed(&fdri_rec.shares.ended_last)) return false;
    if (!(wait ? wait_for_lock(who, wait, fdri_ended_look) : fdri_ended_look(who, urgency >= FDRI_POOR ? TRIES : 0)))
        return wait;
    enum outcome outcome = walked()                          ? bins_only(urgency)
                           : urgency == FDRI_ATTACHING_WHOLE ? work_whole()
                                                             : work(urgency);
    fdri_ended_unlock();
    if (outcome != COME_AGAIN || !wait) return outcome == ROOM || (outcome == OTHERS_LEFT && urgency >= FDRI_ATTACHING);
    /* A claimer is inside, or one that ends is not there yet. No cancellation point: a thread that is being cancelled
     * asynchronously would wait in there for the signal that is blocked here, for ever. */
    fdr_raw_sleep(A_WHILE_NS);
    return true;
}

/* By the accounts of some threads below where histograms do without (totals.c). */
void fdri_ended_ahead(struct fdri_thread *t)
{
    uint64_t most = fdri_rec.arena.super->arena_bytes / 32 * AHEAD_32NDS;
    for (int i = 0; i < AHEAD && fdri_meta_bytes() > most; i++)
        if (!fdri_ended_room(t, FDRI_ATTACHING_WHOLE)) break;
}
