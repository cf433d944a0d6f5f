/* SPDX-License-Identifier: MIT */
/* Ended threads: their bins are given back before others', oldest thread first. Then their accounts are folded into one
 * location named [ended], and their memory is used again.
 *
 * A location is spared until its last moments have aged. They have when half as many bins as are in use were filled
 * since its end, for the first time or again. Two cases ignore this age: a location with much less than a fair share,
 * and a location without room for its accounts. Otherwise the bins that an ended thread filled last would stay in place
 * of theirs.
 *
 * A try-lock lets one thread at a time work here; a thread that finds it taken goes elsewhere. fdr_usage takes it, too,
 * so that what it walks stays in place. A snapshot lasts longer, so it only sets `copying_snapshots`: no accounts move
 * until it ends, and bins are given back as before. */
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
#include "recorder/memory/memory.h"
#include "recorder/recording.h"
#include "recorder/share_state.h"
#include "recorder/strategy_table.h"
#include "recorder/thread/thread.h"
#include "recorder/thread/thread_state.h"
#include "recorder/totals/totals.h"

enum { POPS = 16, LOOK = 4, ROUNDS = 64, WHOLE = 1024, TRIES = 200, PATIENCE_NS = 10000000 };
enum { AHEAD = 8, AHEAD_32NDS = 10 };

/* The [ended] locations, by unit of time; under the lock. Before a location enters the queue, [ended] has a place for
 * its accounts, or the location holds enough bins to make one of its last. Folding must not depend on memory that only
 * folding frees. */
static struct fdri_thread ended[2];
static uint32_t given_away; /* locations whose memory was given back; under the lock */

static uint32_t off_of(const struct fdri_arena_location *l)
{
    return (uint32_t)((const uint8_t *)l - fdri_life_recording.arena.base);
}

/* The number of the recording whose lock this thread holds or is about to take; 0: none. The thread's own signal
 * handlers must not wait for that lock, because the thread they interrupt holds it. */
static __thread uint32_t lock_mine;
static bool holds_lock(void) { return lock_mine && lock_mine == fdri_life_recording.number; }

bool fdri_ended_try_hold(uint32_t holder, uint32_t tries)
{
    uint32_t *lock = &fdri_life_recording.shares.lock, none = 0;
    if (holds_lock()) return false;
    lock_mine = fdri_life_recording.number;
    fdri_atomic_signal_fence();
    for (uint32_t i = 0; i <= tries; i++, none = 0) {
        /* L:fold */
        if (!fdri_atomic_load_relaxed(lock) && fdri_atomic_cas_acq_rel_u32(lock, &none, holder)) return true;
    }
    fdri_atomic_signal_fence();
    lock_mine = 0;
    return false;
}

static bool wait_for_lock(uint32_t holder, uint64_t ns, bool (*take)(uint32_t holder, uint32_t tries))
{
    uint64_t until = fdri_clock_ns(CLOCK_MONOTONIC) + ns;
    while (!take(holder, 1000)) {
        if (holds_lock() || fdri_clock_ns(CLOCK_MONOTONIC) > until) return false;
        sched_yield();
    }
    return true;
}

/* true: a snapshot copies. Under the lock; a snapshot that begins later waits until this operation is over. */
static bool snapshot_copies(void)
{
    return fdri_atomic_load_acquire(&fdri_life_recording.shares.copying_snapshots) != 0; /* A:still */
}

bool fdri_ended_lock(uint32_t holder, uint32_t tries)
{
    if (!fdri_ended_try_hold(holder, tries)) return false;
    if (!snapshot_copies()) return true;
    fdri_ended_unlock();
    return false;
}

bool fdri_ended_freeze(uint64_t ns)
{
    /* R:still - pairs with A:still: a later holder of the lock sees it; else: accounts move under a copy */
    fdri_atomic_add_acq_rel(&fdri_life_recording.shares.copying_snapshots, 1u);
    if (!wait_for_lock(UINT32_MAX, ns, fdri_ended_try_hold)) {
        fdri_ended_unfreeze();
        return false;
    }
    fdri_ended_unlock();
    return true;
}

void fdri_ended_unfreeze(void)
{
    /* R:still - the snapshot has read everything */
    fdri_atomic_sub_acq_rel(&fdri_life_recording.shares.copying_snapshots, 1u);
}

void fdri_ended_unlock(void)
{
    fdri_atomic_store_release(&fdri_life_recording.shares.lock, 0u); /* L:fold */
    fdri_atomic_signal_fence();
    lock_mine = 0;
}

/* Releases the lock only if the caller still holds it: another recording may have begun. */
void fdri_ended_unlock_of(uint32_t holder)
{
    fdri_atomic_cas_acq_rel_u32(&fdri_life_recording.shares.lock, &holder, 0u); /* L:fold */
    fdri_atomic_signal_fence();
    lock_mine = 0;
}

void fdri_ended_abandoned(const struct fdri_arena_location *l)
{
    if (fdri_atomic_load_relaxed(&fdri_life_recording.shares.lock) != off_of(l)) {
        lock_mine = 0; /* the operation was broken off before it had the lock, or after it released it */
        return;
    }
    for (int ns = 0; ns < 2; ns++)
        if (ended[ns].recording == fdri_life_recording.number)
            fdri_bins_claim_abandoned(&fdri_life_recording.arena, ended[ns].loc);
    if (fdri_life_recording.arena.super->fold_off) fdri_ended_fold_undo();
    fdri_ended_unlock();
}

/* ---- the queue: an ending thread appends, the holder of the lock takes off at the front ---- */

static struct fdri_arena_location *location_at(uint32_t off)
{
    return off ? fdri_bins_at(&fdri_life_recording.arena, off) : NULL;
}

static void queue_append(struct fdri_arena_location *l)
{
    struct fdri_shares *s = &fdri_life_recording.shares;
    fdri_atomic_store_relaxed(&l->ended_next, 0u);
    struct fdri_arena_location *before = location_at(fdri_atomic_swap_acq_rel(&s->ended_last, off_of(l))); /* R:ended */
    /* R:ended - pairs with A:ended: until this link is stored the queue ends before l, and no thread can take `before`
     * off */
    fdri_atomic_store_release(before ? &before->ended_next : &s->ended_first_new, off_of(l));
}

static uint32_t bins_used(void) { return (uint32_t)fdri_atomic_load_relaxed(&fdri_life_recording.arena.super->virgin); }

/* The number of bins filled so far, for the first time or again. */
static uint32_t bins_filled(void)
{
    return (uint32_t)fdri_atomic_load_relaxed(&fdri_life_recording.shares.bins_refilled) + bins_used();
}

void fdri_ended_push(struct fdri_arena_location *l)
{
    l->bins_filled_at_end = bins_filled();
    queue_append(l);
}

/* The first location of the queue. NULL: the queue is empty, or its first location is being appended. */
static struct fdri_arena_location *queue_first(void)
{
    struct fdri_shares *s = &fdri_life_recording.shares;
    if (!s->ended_first && (s->ended_first = fdri_atomic_load_acquire(&s->ended_first_new))) /* A:ended */
        fdri_atomic_store_relaxed(&s->ended_first_new, 0u);
    return location_at(s->ended_first);
}

/* Takes l, the first location, off the queue. false: another is being appended behind it and will write its link. */
static bool queue_remove_first(const struct fdri_arena_location *l)
{
    struct fdri_shares *s = &fdri_life_recording.shares;
    uint32_t next = fdri_atomic_load_acquire(&l->ended_next), last = off_of(l); /* A:ended */
    if (!next && !fdri_atomic_cas_acq_rel_u32(&s->ended_last, &last, 0u) &&     /* A:ended */
        !(next = fdri_atomic_load_acquire(&l->ended_next)))                     /* A:ended */
        return false;
    s->ended_first = next;
    return true;
}

static bool has_aged(const struct fdri_arena_location *l)
{
    return bins_filled() - l->bins_filled_at_end >= bins_used() / 2;
}

/* Pins l. true: no claimer is inside, and none will enter. */
static bool pin_without_claimers(struct fdri_arena_location *l)
{
    if (l->flags & FDRI_ARENA_LOCATION_FOLDING) return true;
    if (!fdri_bins_claim_pin(&fdri_life_recording.arena, l)) {
        fdri_bins_claim_unpin(l);
        return false;
    }
    fdri_atomic_store_relaxed(&l->flags, l->flags | FDRI_ARENA_LOCATION_FOLDING);
    fdri_piece_collect(&fdri_life_recording.arena, l);
    return true;
}

/* The partition whose oldest bin ended first; of equal ones the deepest. The end counts, not the begin. An outer call
 * may last from the first moment to the last, and inner calls count as kept only while it is there. */
static struct fdri_arena_part *oldest_part(const struct fdri_arena_location *l)
{
    const struct fdri_bins_arena *a = &fdri_life_recording.arena;
    struct fdri_arena_part *best = NULL, *p;
    uint64_t best_end = UINT64_MAX;
    for (uint32_t off = l->parts_first; off; off = p->next) {
        p = fdri_bins_at(a, off);
        uint64_t end = fdri_bins_part_oldest_end(a, p);
        if (end > best_end || !(uint32_t)p->list_head || (best && end == best_end && p->depth <= best->depth)) continue;
        best = p;
        best_end = end;
    }
    return best;
}

/* Gives back bins and pieces until a whole bin became free. false: there was nothing to give. */
static bool give_bin(struct fdri_arena_location *l)
{
    struct fdri_bins_arena *a = &fdri_life_recording.arena;
    struct fdri_bins_given given = {0, 0, UINT64_MAX, 0};
    uint32_t held = fdri_atomic_load_relaxed(&l->bins_held), size;
    for (int i = 0; i < POPS && fdri_atomic_load_relaxed(&l->bins_held) == held; i++) {
        struct fdri_arena_part *p = oldest_part(l);
        if (!p) break;
        if ((uint32_t)p->list_head == p->open_off) fdri_bins_part_seal(a, p);
        uint32_t off = fdri_bins_part_pop(a, p, &size, &given);
        if (off) fdri_bins_piece_give(a, l, off, size);
    }
    l->reductions_dropped_events += given.events;
    l->reductions_dropped_bytes += given.bytes;
    return given.bytes != 0;
}

/* Pauses after a failed search for the first memory of [ended]; else each thread that needs room would search again.
 * Under the lock. */
static struct fdri_thread_search *search_of(bool ns)
{
    static struct fdri_thread_search search[2];
    static uint32_t recording;
    if (recording != fdri_life_recording.number) memset(search, 0, sizeof search);
    recording = fdri_life_recording.number;
    return &search[ns];
}

static struct fdri_thread *ended_of(bool ns)
{
    struct fdri_thread *t = &ended[ns];
    if (t->recording == fdri_life_recording.number) {
        t->search_barriers = 0;
        fdri_totals_rows_mend(t);
        return t;
    }
    /* all but `recording`, which other threads read without the lock */
    memset((uint32_t *)t + 1, 0, sizeof *t - sizeof(uint32_t));
    struct fdri_arena_location *spare = fdri_life_recording.shares.spare[ns];
    struct fdri_thread_search *search = search_of(ns);
    if (!spare || fdri_thread_search_pauses(search, 0)) return NULL;
    /* [ended] may use the last bin */
    fdri_atomic_store_relaxed(&spare->flags, (uint32_t)(FDRI_ARENA_LOCATION_FREE | FDRI_ARENA_LOCATION_ENDED));
    bool made = fdri_thread_location_make(t, spare, UINT32_MAX, "[ended]");
    fdri_thread_search_over(search, made, UINT64_MAX);
    if (!made) return NULL;
    t->no_event_yet = false;
    t->loc->tid = 0;
    fdri_thread_set_clock(t, ns);
    fdri_memory_meta_prepare(t);
    fdri_atomic_store_relaxed(&t->recording, fdri_life_recording.number);
    return t;
}

/* Takes `from` off the queue and gives its memory back. A longjmp from within would leave a location that leads into
 * other locations' memory for ever, so signals are blocked. */
static bool give_memory(struct fdri_thread *into, struct fdri_thread *from)
{
    const struct fdri_arena_location *l = from->loc;
    sigset_t old;
    fdri_system_signals_block(&old);
    bool taken = queue_remove_first(l);
    if (taken) {
        into->loc->tid++;
        uint64_t *start = &into->loc->start_tick; /* 0: none of them had an event */
        if (l->start_tick && (!*start || l->start_tick < *start)) *start = l->start_tick;
        into->loc->end_tick = fdri_bits_max(into->loc->end_tick, l->end_tick);
        fdri_thread_location_drop(from);
    }
    fdri_system_signals_restore(&old);
    return taken;
}

/* Folds some of l's accounts. 1: all are folded, and l's memory is free; 0: some; -1: [ended] has no room for them. */
static int fold(struct fdri_arena_location *l)
{
    struct fdri_thread from = {.loc = l, .base = fdri_life_recording.arena.base},
                       *into = ended_of(l->flags & FDRI_ARENA_LOCATION_NS);
    if (!into) return -1;
    if (into->loc->flags & FDRI_ARENA_LOCATION_FREE) {
        sigset_t old;
        /* a longjmp out of the next two calls would leave blocks that name two locations for ever */
        fdri_system_signals_block(&old);
        fdri_thread_location_number(into);
        fdri_thread_location_publish(into, FDRI_ARENA_LOCATION_ENDED);
        fdri_system_signals_restore(&old);
    }
    int result = fdri_ended_fold(into, &from);
    if (result != 1) return result;
    if (!give_memory(into, &from)) return 0;
    given_away++;
    fdri_memory_meta_prepare(into);
    return 1;
}

static int prepare_accounts(struct fdri_thread *t)
{
    struct fdri_thread *into = ended_of(t->loc->flags & FDRI_ARENA_LOCATION_NS);
    return into ? fdri_ended_fold_prepare(into, t) : -1;
}

/* true: a bin has room for a block of levels like the newest of l. */
FDRI_RACY static bool bin_fits_level_block(const struct fdri_arena_location *l)
{
    uint32_t levels = l->level_blocks ? fdri_arena_levels_of(l->level_blocks - 1) : FDRI_ARENA_LEVELS_STEP;
    return fdri_life_recording.arena.super->bin_bytes >=
           sizeof(struct fdri_arena_slab) + fdri_arena_levels_bytes(levels);
}

/* true: more free bins help a location that needs a place for accounts. If bins are too small for a block of levels,
 * they help only if bins are short: none free beyond the reserve for new threads. */
static bool free_bins_help(const struct fdri_arena_location *l)
{
    return bin_fits_level_block(l) ||
           fdri_bins_free_count(&fdri_life_recording.arena) <= fdri_life_recording.bin_reserve;
}

FDRI_RACY uint32_t fdri_ended_bins_reserved(const struct fdri_arena_location *l)
{
    enum {
        /* ROW_BYTES: a row with its histogram. LEVELS: levels in a bin. OTHERS: bins for everything else. */
        ROW_BYTES = 2 * sizeof(struct fdri_arena_row),
        LEVELS = 8,
        OTHERS = 6
    };
    const struct fdri_arena_rowtable *table = l->rows_table_off
                                                  ? fdri_bins_at(&fdri_life_recording.arena, l->rows_table_off)
                                                  : NULL;
    uint32_t rows = table ? table->used * ROW_BYTES / fdri_life_recording.arena.super->bin_bytes : 0;
    return bin_fits_level_block(l) ? fdri_arena_levels_in(l->level_blocks) / LEVELS + rows + OTHERS : 0;
}

/* Gives back l's last bins, of which the place for its accounts is made. */
static bool give_last_bins(struct fdri_arena_location *l)
{
    struct fdri_thread from = {.loc = l, .base = fdri_life_recording.arena.base};
    bool gave = give_bin(l);
    while (prepare_accounts(&from) < 0 && give_bin(l)) continue;
    return gave;
}

static bool give_all_bins(struct fdri_arena_location *l)
{
    return fdri_atomic_load_relaxed(&l->bins_held) > fdri_ended_bins_reserved(l) ? give_bin(l) : give_last_bins(l);
}

/* Gives back a bin of one of the locations that ended after l. */
static bool give_bin_behind(struct fdri_arena_location *l)
{
    for (int i = 0; i < POPS; i++) {
        l = location_at(fdri_atomic_load_acquire(&l->ended_next)); /* A:ended */
        if (!l) return false;
        if (pin_without_claimers(l) && oldest_part(l)) return give_all_bins(l);
    }
    return false;
}

static bool fold_location(struct fdri_arena_location *l)
{
    if (oldest_part(l)) return give_all_bins(l);
    int result = fold(l);
    for (int i = 0; i < POPS && result < 0 && free_bins_help(l) && give_bin_behind(l); i++) result = fold(l);
    return result >= 0;
}

/* Makes a part of the place in [ended] for l's accounts. 1: it is complete, or l's bins will become it; 0: a part is
 * missing; -1: no memory. Then l's bins would be given back in vain for a caller that needs the memory of its
 * accounts. */
static int make_place(struct fdri_arena_location *l)
{
    struct fdri_thread from = {.loc = l, .base = fdri_life_recording.arena.base};
    return fdri_ended_bins_reserved(l) ? 1 : prepare_accounts(&from);
}

/* Moves l from the front to the end of the queue. A longjmp from within would lose l or break the queue, so signals are
 * blocked. */
static bool queue_move_to_end(struct fdri_arena_location *l)
{
    sigset_t old;
    fdri_system_signals_block(&old);
    bool taken = queue_remove_first(l);
    if (taken) queue_append(l);
    fdri_system_signals_restore(&old);
    return taken;
}

enum outcome { ROOM, NO_ROOM, COME_AGAIN, OTHERS_LEFT }; /* OTHERS_LEFT: not all locations were tried */

static bool wants_accounts(enum fdri_ended_urgency u)
{
    return u == FDRI_ENDED_FOR_ACCOUNTS || u == FDRI_ENDED_FOR_ATTACH_WHOLE;
}

/* Works on the oldest location. If a claimer is inside, which may sleep there, the location moves to the end of the
 * queue. So it does if [ended] has no room for its accounts: another location may make the room. Tries LOOK locations
 * at most. */
static enum outcome fold_oldest(enum fdri_ended_urgency urgency)
{
    const struct fdri_arena_location *first = NULL;
    bool claimed = false, all = false;
    for (int i = 0; i < LOOK && !all; i++) {
        struct fdri_arena_location *l = queue_first();
        if (!l) return COME_AGAIN;
        if (urgency == FDRI_ENDED_IF_AGED && !has_aged(l)) return NO_ROOM;
        int place = wants_accounts(urgency) ? make_place(l) : 1;
        if (!place) return ROOM;
        bool mine = place > 0 && pin_without_claimers(l);
        if (mine && fold_location(l)) return ROOM;
        claimed |= place > 0 && !mine;
        if (!queue_move_to_end(l)) return COME_AGAIN;
        if (!first) first = l;
        all = queue_first() == first;
    }
    return claimed ? COME_AGAIN : all ? NO_ROOM : OTHERS_LEFT;
}

/* Works until the memory of a whole location was given back. */
static enum outcome fold_whole_location(void)
{
    uint32_t before = given_away;
    enum outcome outcome = ROOM;
    for (int i = 0; i < WHOLE && outcome == ROOM && given_away == before; i++)
        outcome = fold_oldest(FDRI_ENDED_FOR_ATTACH_WHOLE);
    return outcome;
}

/* While a snapshot copies: gives back a bin of the oldest location that has more bins than its accounts need. */
static enum outcome give_bin_only(enum fdri_ended_urgency urgency)
{
    if (wants_accounts(urgency)) return COME_AGAIN;
    struct fdri_arena_location *l = queue_first();
    for (int i = 0; l && i < ROUNDS; i++, l = location_at(fdri_atomic_load_acquire(&l->ended_next))) { /* A:ended */
        if (urgency == FDRI_ENDED_IF_AGED && !has_aged(l)) return NO_ROOM;
        if (fdri_atomic_load_relaxed(&l->bins_held) > fdri_ended_bins_reserved(l) && pin_without_claimers(l) &&
            give_bin(l))
            return ROOM;
    }
    return COME_AGAIN;
}

/* If t holds many bins, its place is made later, when these are given back. Otherwise earlier ended locations make the
 * room, or t's own bins do. Locations of counter readings (READINGS) are left out: they are few, and their oldest
 * values say since when amounts are known. */
void fdri_ended_prepare(struct fdri_thread *t)
{
    uint32_t last = fdri_ended_bins_reserved(t->loc);
    if (!fdri_strategy_gives() || t->loc->flags & FDRI_ARENA_LOCATION_READINGS) return;
    if (!wait_for_lock(UINT32_MAX, PATIENCE_NS, fdri_ended_lock)) return;
    for (int i = 0, done; i < ROUNDS; i++) {
        while (!(done = prepare_accounts(t))) continue;
        if (done > 0 || (last && fdri_atomic_load_relaxed(&t->loc->bins_held) > last)) break;
        enum outcome outcome = i < ROUNDS / 2 && free_bins_help(t->loc) ? fold_oldest(FDRI_ENDED_FOR_ATTACH)
                                                                        : fold_whole_location();
        if (outcome != ROOM && !(last && give_bin(t->loc))) break;
    }
    fdri_ended_unlock();
}

/* The time that t, which attaches, may still wait for others, in ns; one limit for all its waits. */
static uint64_t wait_left_ns(const struct fdri_thread *t)
{
    uint64_t now = fdri_clock_ns(CLOCK_MONOTONIC);
    return t->attach_deadline_ns > now ? fdri_bits_min(t->attach_deadline_ns - now, PATIENCE_NS) : 0;
}

bool fdri_ended_room(struct fdri_thread *t, enum fdri_ended_urgency urgency)
{
    enum { A_WHILE_NS = 50000 };
    uint32_t holder = t->loc ? off_of(t->loc) : UINT32_MAX;
    uint64_t wait = urgency >= FDRI_ENDED_FOR_ATTACH ? wait_left_ns(t) : 0;
    if (!fdri_strategy_gives()) return false;           /* stored events stay */
    if (t == &ended[0] || t == &ended[1]) return false; /* the caller holds the lock and works here already */
    if (!fdri_atomic_load_relaxed(&fdri_life_recording.shares.ended_last)) return false;
    if (!(wait ? wait_for_lock(holder, wait, fdri_ended_try_hold)
               : fdri_ended_try_hold(holder, urgency >= FDRI_ENDED_FOR_POOR ? TRIES : 0)))
        return wait;
    enum outcome outcome = snapshot_copies()                        ? give_bin_only(urgency)
                           : urgency == FDRI_ENDED_FOR_ATTACH_WHOLE ? fold_whole_location()
                                                                    : fold_oldest(urgency);
    fdri_ended_unlock();
    if (outcome != COME_AGAIN || !wait)
        return outcome == ROOM || (outcome == OTHERS_LEFT && urgency >= FDRI_ENDED_FOR_ATTACH);
    /* A claimer is inside, or a location is being appended: sleep 50 us. fdri_system_sleep is no cancellation point. A
     * thread under asynchronous cancellation would wait for ever in one, because the signal is blocked here. */
    fdri_system_sleep(A_WHILE_NS);
    return true;
}

/* Begins the work while the memory of some threads' accounts is left below the limit at which histograms are dropped
 * (totals.c). */
void fdri_ended_make_room_early(struct fdri_thread *t)
{
    uint64_t most = fdri_life_recording.arena.super->arena_bytes / 32 * AHEAD_32NDS;
    for (int i = 0; i < AHEAD && fdri_memory_meta_bytes() > most; i++)
        if (!fdri_ended_room(t, FDRI_ENDED_FOR_ATTACH_WHOLE)) break;
}
