/* SPDX-License-Identifier: MIT */
/* Threads come and go. Attaching happens once per thread and recording, on its first event; it is the only moment
 * that may take a lock (liburcu's registry). All signals are blocked meanwhile, so a handler never sees half of it. */
#define _GNU_SOURCE
#include <errno.h>
#include <fdr/fdr.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/bits.h"
#include "base/racy.h"
#include "base/stack/thread_stack.h"
#include "base/system/cancellation.h"
#include "base/system/helper_threads.h"
#include "base/system/signal_mask.h"
#include "base/text/message.h"
#include "bins/bins.h"
#include "bins/claims.h"
#include "bins/partition.h"
#include "bins/pressure/bins_pressure.h"
#include "export/view.h"
#include "format/arena/arena.h"
#include "format/codec/record_codec.h"
#include "recorder/ended/ended.h"
#include "recorder/jumps/jumps.h"
#include "recorder/life/grace_period.h"
#include "recorder/life/life.h"
#include "recorder/life/recording.h"
#include "recorder/memory/memory.h"
#include "recorder/names/names.h"
#include "recorder/pressure/recorder_pressure.h"
#include "recorder/record/record.h"
#include "recorder/record/shadow_stack.h"
#include "recorder/strategy/strategy.h"
#include "recorder/thread/thread.h"
#include "recorder/thread/thread_state.h"
#include "recorder/totals/totals.h"
#include "recorder/watch/watch.h"
#include "sampler/samples/samples_view.h"

enum { LOOK_AGAIN = 1024 }; /* a thread that found no room looks again after so many events, at first sooner */

__thread uint32_t fdri_thread_inside;
static pthread_key_t exit_key;
static bool have_key;
/* How often this thread's destructors have come round. Behind the last time nothing tells when it ends, and a handler
 * that comes still would attach it for good: what it records is lost. */
static __thread uint32_t rounds;

/* A child that such a thread makes goes on as its first one. */
static bool is_over(void)
{
    return FDRI_UNLIKELY(rounds >= PTHREAD_DESTRUCTOR_ITERATIONS) && syscall(SYS_gettid) != getpid();
}

bool fdri_thread_is_ending(void) { return rounds; }

void fdri_thread_attach_once(void) { have_key = pthread_key_create(&exit_key, fdri_thread_detach) == 0; }

static __thread struct fdri_thread_wishes before;

struct fdri_thread_wishes *fdri_thread_wishes(void)
{
    uint32_t on = fdri_atomic_load_relaxed(&fdr_switch_.on);
    if (!on || fdri_record_self.recording == on || fdri_record_self.dead_for != on) return NULL;
    if (before.recording != on) before = (struct fdri_thread_wishes){.recording = on};
    return &before;
}

static void take_said(struct fdri_thread *t)
{
    t->pauses = before.pauses;
    t->phases = before.phases;
    if (before.name[0]) memcpy(t->loc->name, before.name, sizeof before.name);
    before = (struct fdri_thread_wishes){.recording = 0}; /* once: the thread may attach again, in a destructor */
}

static bool build(struct fdri_thread *t, bool lane)
{
    char name[32] = "";
    prctl(PR_GET_NAME, name);
    name[16] = 0;
    if (lane) strcat(name, " (signals)");
    if (!fdri_thread_location_make(t, NULL, lane ? fdri_record_self.loc->id : UINT32_MAX, name)) return false;
    if (!lane && before.recording == fdri_life_recording.number) take_said(t);
    /* lanes, and the thread that reads counters, are in no phase */
    t->wants_phase = !lane && fdri_names_rules_phases() && !fdri_system_is_helper(name);
    fdri_thread_update_pause(t);
    fdri_atomic_add_relaxed(&fdri_life_recording.shares.live, 1u);
    fdri_thread_location_number(t);
    fdri_thread_location_publish(t, FDRI_ARENA_LOCATION_LIVE | (lane ? (uint32_t)FDRI_ARENA_LOCATION_LANE : 0u));
    return true;
}

/* Threads, triggers and streams of samples that come or go, notes that are made: fdr_finalize waits for them as for
 * those in the middle of a record. */
static uint32_t passing;

uint32_t fdri_thread_holders(void) { return fdri_atomic_load_acquire(&passing); /* A:pass - pairs with L:pass */ }

bool fdri_thread_hold_recording(uint32_t number)
{
    fdri_atomic_add_acq_rel(&passing, 1u);                                /* L:pass */
    if (fdri_atomic_load_acquire(&fdr_switch_.on) == number) return true; /* A:on - pairs with R:on in start.c */
    fdri_atomic_sub_acq_rel(&passing, 1u);                                /* L:pass */
    return false;
}
void fdri_thread_holders_fork(void) { fdri_atomic_store_relaxed(&passing, 0u); }
void fdri_thread_release_recording(void)
{
    fdri_atomic_sub_acq_rel(&passing, 1u); /* L:pass - what was done is seen by who waits */
}

/* After 1, 2, 4, ... events, then every LOOK_AGAIN: who holds the memory makes room with each bin it fills, once it
 * runs. */
static bool look_again(struct fdri_thread *t)
{
    uint32_t n = ++t->dead_since;
    return n < LOOK_AGAIN ? !(n & (n - 1)) : n % LOOK_AGAIN == 0;
}

/* ---- those that find no room: each is one, with its events, its samples and its lane, however often it asks ---- */

enum { BY_ITSELF = 1, BY_SAMPLER = 2 };
static uint32_t refused[2048]; /* atomic: by thread id, who has counted it: two bits each */

void fdri_thread_no_room_reset(void) { memset(refused, 0, sizeof refused); }

/* A thread counts itself once (attach), so one of its number that counted before was another, which has ended. Only
 * what the sampler counted is taken for it, once. */
void fdri_thread_count_no_room(uint32_t tid, bool itself)
{
    uint32_t *word = &refused[tid / 16 % (sizeof refused / sizeof *refused)], at = tid % 16 * 2;
    uint32_t old = fdri_atomic_load_relaxed(word), new, known;
    do {
        known = old >> at & (itself ? BY_SAMPLER : BY_SAMPLER | BY_ITSELF);
        if (known && !itself) return;
        new = (old & ~((uint32_t)BY_SAMPLER << at)) | (uint32_t)(itself ? BY_ITSELF : BY_SAMPLER) << at;
    } while (!fdri_atomic_cas_acq_rel_u32(word, &old, new)); /* L:refused */
    if (!known) fdri_atomic_add_relaxed(&fdri_life_recording.arena.super->lost_locations, 1u);
}

/* memory: the system gave some, and it is the buffer that is full. */
static void say_no_room(bool memory)
{
    static unsigned said, said_memory;
    if (!memory && fdri_text_once(&said_memory))
        fdri_text_message("no memory for one more thread: %s; its events are only counted", strerror(ENOMEM));
    if (memory && fdri_text_once(&said))
        fdri_text_message("the buffer of %llu bytes has no room for one more thread; its events are only counted "
                          "(FDR_BUFFER makes it larger)",
                          (unsigned long long)fdri_life_recording.arena.super->arena_bytes);
}

static bool attach(struct fdri_thread *t, uint32_t number, bool lane)
{
    if (fdri_thread_inside || is_over() || (t->dead_for == number && !look_again(t))) return false;
    int saved = errno; /* of the program, which did not ask for any of this */
    sigset_t old;
    fdri_system_signals_block(&old);
    /* first: what is called from here on may be a function of the program's that is instrumented */
    fdri_thread_inside++;
    /* liburcu restores the mask by a function of the C library, which opens it for this signal */
    struct fdri_system_cancel cancel = fdri_system_cancel_off();
    bool here = fdri_thread_hold_recording(number), memory = here && (lane || fdri_names_address_room()),
         ok = memory && build(t, lane);
    /* without room, too: it may find some near its end */
    if (here && !lane && have_key) pthread_setspecific(exit_key, t);
    if (here && !ok) {
        if (t->dead_for != number) fdri_thread_count_no_room((uint32_t)syscall(SYS_gettid), true);
        if (t->dead_for != number) t->dead_since = 0;
        t->dead_for = number;
        say_no_room(memory);
    } else if (ok && !lane) {
        fdri_names_address_thread();
        fdri_crash_check_handlers();
        fdri_life_watch_exit(true);
        /* in a vfork child the kernel would set these up for the child, not for the thread it stands for */
        if (fdri_export_pid() == fdri_life_recording.pid) {
            fdri_crash_thread_begin();
            fdri_samples_sampler_attached(t->loc->tid, &old);
        }
    }
    fdri_atomic_signal_fence();
    if (ok) {
        t->recording = number;
        t->dead_for = 0;
        fdri_thread_update_soft(t);
    }
    if (here) fdri_thread_release_recording();
    fdri_system_cancel_defer(cancel);
    fdri_thread_inside--;
    fdri_system_signals_restore(&old); /* a handler that waited for it may leave by longjmp */
    errno = saved;
    fdri_system_cancel_restore(cancel); /* what was asked for meanwhile comes here, with the program's mask */
    return ok;
}

/* All that was put anywhere of this class and depth, but for an open call; all partitions are sealed. */
static uint64_t placed(const struct fdri_thread *t, uint32_t class_, uint32_t depth, uint64_t accounts)
{
    const struct fdri_arena_part *p;
    for (uint32_t off = t->loc->parts_first; off; off = p->next) {
        p = fdri_thread_at(t, off);
        if (p->class_ != class_ || p->depth != depth) continue;
        accounts += p->total;
    }
    return accounts;
}

static uint64_t calls_placed(const struct fdri_thread *t, uint32_t depth)
{
    const struct fdri_arena_level *v = fdri_thread_level(t, depth);
    return placed(t, FDRI_ARENA_CLASS_REGION, depth,
                  v->filtered + v->reduced_gate + v->lost + fdri_strategy_was_frozen(t, depth));
}

static uint64_t points_placed(const struct fdri_thread *t, const struct fdri_arena_level_points *points,
                              uint32_t class_, uint32_t depth)
{
    return placed(t, class_, depth,
                  points->by_class[class_].filtered + points->by_class[class_].reduced_gate +
                      points->by_class[class_].lost);
}

static bool is_open(const struct fdri_thread *t, uint32_t depth)
{
    return depth && depth <= t->loc->depth &&
           !(fdri_thread_level(t, depth)->flags & (FDRI_ARENA_LEVEL_UNTIMED | FDRI_ARENA_LEVEL_SETTLED));
}

/* It was a rewind: what p lacks was taken away and had not been counted. A reader says the same where it is still under
 * way. */
static void settle_rewind(struct fdri_thread *t, struct fdri_arena_part *p)
{
    const struct fdri_arena_level *v = fdri_thread_level(t, p->depth);
    const struct fdri_arena_level_points *points = v->points_off ? fdri_thread_at(t, v->points_off) : NULL;
    bool calls = p->class_ == FDRI_ARENA_CLASS_REGION;
    uint64_t presented = calls ? v->presented : points->by_class[p->class_].presented;
    uint64_t sum = calls ? calls_placed(t, p->depth) + is_open(t, p->depth)
                         : points_placed(t, points, p->class_, p->depth);
    if (sum < presented) fdri_record_rewind_account(t, p, fdri_bits_min(presented - sum, p->forgets));
    fdri_atomic_signal_fence();
    fdri_atomic_store_release(&p->forgets, 0); /* R:forget */
}

static void settle_points(struct fdri_thread *t, struct fdri_arena_level_points *points, uint32_t depth)
{
    for (uint32_t c = FDRI_ARENA_CLASS_REGION + 1; points && c < FDRI_ARENA_CLASS_COUNT; c++)
        if (points_placed(t, points, c, depth) + 1 == points->by_class[c].presented) points->by_class[c].lost++;
}

/* The operation may have counted its event and not put it anywhere: it is lost. Or the other way round: its call is
 * over. */
static void settle(struct fdri_thread *t)
{
    struct fdri_arena_location *l = t->loc;
    struct fdri_arena_level *v = fdri_thread_level(t, l->depth);
    struct fdri_arena_level_points *points = v->points_off ? fdri_thread_at(t, v->points_off) : NULL;
    for (uint32_t off = l->parts_first; off; off = ((struct fdri_arena_part *)fdri_thread_at(t, off))->next)
        if (((struct fdri_arena_part *)fdri_thread_at(t, off))->forgets) settle_rewind(t, fdri_thread_at(t, off));
    l->lost_overflow = l->presented_overflow; /* all of them are */
    settle_points(t, points, l->depth);
    /* these, and events inside of calls there, are of other depths */
    bool readings = l->flags & FDRI_ARENA_LOCATION_READINGS;
    for (uint32_t d = 0; readings && d <= FDRI_ARENA_READING_DEPTHS && d <= fdri_arena_levels_in(l->level_blocks); d++)
        if (d != l->depth && fdri_thread_level(t, d)->points_off)
            settle_points(t, fdri_thread_at(t, fdri_thread_level(t, d)->points_off), d);
    bool open = is_open(t, l->depth);
    /* R:frame */
    if (open && calls_placed(t, l->depth) == v->presented) fdri_atomic_store_release(&l->depth, l->depth - 1);
    if (l->depth == fdri_arena_levels_in(l->level_blocks)) return;
    v = fdri_thread_level(t, l->depth + 1);
    uint64_t calls = calls_placed(t, l->depth + 1);
    if (calls + 1 == v->presented) v->lost++;
    if (calls == v->presented + 1) v->presented++; /* when storing has stopped a call is counted as reduced first */
}

/* p says when a call left whose record was not committed, and which is open still: the next record would begin before
 * that. What was committed of this depth left before it was entered. */
static void take_back_leave(const struct fdri_thread *t, struct fdri_arena_part *p)
{
    if (p->class_ != FDRI_ARENA_CLASS_REGION || !p->depth || p->depth > t->loc->depth) return;
    p->last_tick = fdri_bits_min(p->last_tick, fdri_thread_level(t, p->depth)->enter_tick >> t->shift);
}

/* The operation was at another depth, that of the call that is open or of the one it has just closed, and nothing is
 * left half-done here: the open bin, which costs memory, stays open. Points may have been at any depth. */
static bool is_untouched(const struct fdri_arena_part *p, uint32_t depth)
{
    if (p->class_ != FDRI_ARENA_CLASS_REGION || p->depth == depth || p->depth == depth + 1) return false;
    if (!p->open_off || !p->limit || !(uint32_t)fdri_atomic_load_relaxed(&p->list_head)) return false;
    const struct fdri_arena_bin *b = fdri_bins_bin(&fdri_life_recording.arena, p->open_off);
    return b->seq == p->open_seq && !b->next && b->commit == fdri_codec_commit_word(p);
}

/* An operation ended in the middle. A call that is in the totals is closed; what else was left half-done is sealed
 * away. */
static void mend(struct fdri_thread *t)
{
    struct fdri_arena_location *l = t->loc;
    uint32_t depth = l->depth;
    bool rewound = false; /* in the middle of that: what is not sealed would count as gone */
    for (uint32_t off = l->parts_first; off; off = ((struct fdri_arena_part *)fdri_thread_at(t, off))->next)
        rewound |= ((struct fdri_arena_part *)fdri_thread_at(t, off))->forgets != 0;
    l->abandoned++;
    fdri_awake(&fdri_life_recording.arena, l); /* also where it was left while waking up */
    fdri_totals_rows_mend(t);
    fdri_bins_claim_abandoned(&fdri_life_recording.arena, l);
    fdri_ended_abandoned(l);
    if (fdri_jumps_finish_leave(t)) fdri_atomic_store_release(&l->depth, l->depth - 1); /* R:frame */
    fdri_bins_claim_pin(&fdri_life_recording.arena, l);
    for (uint32_t off = l->parts_first; off; off = ((struct fdri_arena_part *)fdri_thread_at(t, off))->next) {
        struct fdri_arena_part *p = fdri_thread_at(t, off);
        if (!rewound && is_untouched(p, depth)) continue;
        fdri_bins_part_mend(&fdri_life_recording.arena, p);
        take_back_leave(t, p);
    }
    if (!t->setting_aside) fdri_bins_claim_unpin(l); /* else what is not aside yet must not be claimed before it is */
    fdri_memory_relink_slots(t);
    fdri_strategy_telescope_mend(t);
    settle(t);
    fdri_jumps_finish_enter(t);
    fdri_strategy_epochs_mend(t);
    fdri_aside_left(t);
}

static void give_up(struct fdri_thread *t)
{
    struct fdri_arena_location *l = t->loc;
    mend(t);
    t->top = fdri_thread_level(t, l->depth);
    fdri_record_rewind_left(t);
    t->untimed = 0;
    for (uint32_t d = 1; d <= l->depth && d <= t->depth_limit; d++)
        t->untimed += fdri_thread_level(t, d)->flags & FDRI_ARENA_LEVEL_UNTIMED;
    fdri_thread_update_pause(t);
}

/* From the push on the location is somebody else's. */
static void end_location(struct fdri_thread *t)
{
    struct fdri_arena_location *l = t->loc;
    if (l->busy) give_up(t); /* the thread ended from a handler, in the middle of an operation */
    fdri_atomic_store_relaxed(&l->busy, (uint64_t)(uintptr_t)__builtin_frame_address(0));
    fdri_atomic_signal_fence();
    fdri_stay_awake(&fdri_life_recording.arena, l);
    fdri_totals_count_pending(t->base, l);
    /* by pthread_exit or as it was cancelled: its calls are over, and count */
    bool now = !t->times_given && t != &fdri_record_lane; /* of a handler: with its newest event */
    if (l->depth) fdri_record_close_all(t, now ? fdri_record_clamp_live(t, fdri_thread_tick_live(t)) : 0);
    t->recording = t->plain = t->rounded = 0;
    fdri_ready_release(t);
    fdri_ended_prepare(t);
    l->end_tick = fdri_bits_max(l->last_tick >> t->shift, 1);
    fdri_atomic_store_relaxed(&l->flags, l->flags & ~(uint32_t)FDRI_ARENA_LOCATION_LIVE);
    fdri_atomic_store_release(&l->busy, 0); /* R:busy - who takes it for asleep from here on sees that it is not live */
    fdri_atomic_sub_relaxed(&fdri_life_recording.shares.live, 1u);
    fdri_ended_push(l);
}

/* All signals are blocked: a handler would record into a location that is being given away. */
static void detach(struct fdri_thread *t)
{
    uint32_t on = fdri_atomic_load_relaxed(&fdr_switch_.on);
    fdri_crash_thread_end();
    if (!t->recording) return;
    sigset_t old;
    fdri_system_signals_block(&old);
    if (on && syscall(SYS_gettid) == fdri_life_recording.pid) fdri_life_suspect_last_thread();
    if (on && t->recording == on && fdri_thread_hold_recording(on)) {
        if (fdri_watch_regions()) fdri_names_address_resume(); /* calls that end now are looked at by triggers */
        if (fdri_record_lane.recording == on) end_location(&fdri_record_lane);
        end_location(t);
        fdri_thread_release_recording();
    }
    t->recording = t->plain = t->rounded = 0;
    fdri_record_lane.recording = fdri_record_lane.plain = fdri_record_lane.rounded = 0;
    fdri_record_rewind_release(t);
    fdri_system_signals_restore(&old);
}

/* Who records in a later destructor, or in a handler, attaches anew: so this is called as often as the C library calls
 * any. The first thread is the one that may run functions of exit() behind that. */
void fdri_thread_detach(void *unused)
{
    (void)unused;
    bool first = syscall(SYS_gettid) == getpid();
    if (!first) rounds++;
    fdri_atomic_signal_fence();
    detach(&fdri_record_self);
    /* liburcu may have seen it already: whoever records still asks again */
    if (!first) fdri_names_address_thread_ends();
    if (!first && rounds < PTHREAD_DESTRUCTOR_ITERATIONS) pthread_setspecific(exit_key, &fdri_record_self);
}

/* Does a handler run on an alternate stack? One that is disarmed meanwhile (SS_AUTODISARM) looks like none. */
static bool on_alternate(const struct fdri_thread *t, uint64_t here)
{
    stack_t s;
    if (sigaltstack(NULL, &s)) return false;
    if (s.ss_flags & SS_ONSTACK) return true;
    uint64_t bytes = s.ss_flags & SS_DISABLE ? fdri_stack_own_bytes(fdri_thread_is_first(t->loc)) : 0;
    return bytes && t->stack_end - here > bytes;
}

/* An operation that a handler interrupted and then left by longjmp never cleared `busy`. If this frame lies above the
 * interrupted one, or beside it as when a loop calls again, and not on an alternate stack, that operation is gone: what
 * a handler does lies below by at least the frame the kernel pushed for it, which is over a kilobyte. */
static bool is_gone(const struct fdri_thread *t, uint64_t mark, uint64_t here)
{
    return here + 768 > mark && !on_alternate(t, here);
}

__thread struct fdri_thread_reading fdri_thread_reading;

void fdri_thread_read_abandoned(uint64_t here)
{
    if (!fdri_thread_reading.count || fdri_record_self.recording != fdri_atomic_load_relaxed(&fdr_switch_.on)) return;
    if (!is_gone(&fdri_record_self, fdri_thread_reading.frame, here)) return;
    for (; fdri_thread_reading.count && urcu_bp_read_ongoing(); fdri_thread_reading.count--) urcu_bp_read_unlock();
    fdri_thread_reading.count = 0;
}

/* What a handler records while this thread is in the middle of a record is over when that is: it may hold what others
 * wait for, and what it has entered and not left, as it was left by longjmp, ended no later. */
static void end_lane(uint64_t here)
{
    struct fdri_thread *lane = &fdri_record_lane;
    if (FDRI_LIKELY(lane->recording != fdri_record_self.recording)) return;
    bool left = lane->loc->busy;
    if (FDRI_LIKELY(!left && !lane->loc->depth)) return;
    fdri_atomic_store_relaxed(&lane->loc->busy, here);
    fdri_atomic_signal_fence();
    if (left) give_up(lane);
    fdri_stay_awake(&fdri_life_recording.arena, lane->loc);
    fdri_totals_count_pending(lane->base, lane->loc);
    if (fdri_atomic_load_relaxed(&fdr_switch_.on) == lane->recording) fdri_record_close_all(lane, 0); /* as claim() */
    fdri_thread_end(lane);
}

static struct fdri_thread *claim(struct fdri_thread *t, uint64_t here, enum fdri_thread_domain domain)
{
    bool left = t->loc->busy;
    /* inside: signals are blocked, so it is a function of the program's that we call ourselves */
    if (left && (fdri_thread_inside || !is_gone(t, t->loc->busy, here))) return NULL;
    /* that one's mark may lie far below: a handler that comes from here on is inside of this, and does not do the same
     * once more */
    fdri_atomic_store_relaxed(&t->loc->busy, here);
    fdri_atomic_signal_fence();
    if (t == &fdri_record_self) end_lane(here);
    if (left) {
        give_up(t);
        fdri_thread_read_abandoned(here);
    }
    /* After fdr_finalize turned the switch off and had every thread pass a barrier, either it sees us busy or we see
     * this. */
    if (fdri_atomic_load_relaxed(&fdr_switch_.on) != t->recording) {
        fdri_thread_end(t);
        return NULL;
    }
    fdri_stay_awake(&fdri_life_recording.arena, t->loc);
    fdri_totals_count_pending(t->base, t->loc);
    if (t->fresh && domain != FDRI_THREAD_NO_EVENT) {
        if (domain == FDRI_THREAD_NS) fdri_thread_set_clock(t, true);
        else t->loc->start_tick = fdri_thread_tick_live(t) >> t->shift;
        t->fresh = false;
        fdri_thread_update_soft(t);
    }
    return t;
}

/* An event that nothing will record, of recording `number` if that is not over. Nothing is held meanwhile: a handler
 * may leave by longjmp, and the thread be cancelled, at any moment. Where the recording ends just then it is counted in
 * memory that stays mapped. */
FDRI_RACY static void lose(uint32_t number)
{
    if (fdri_atomic_load_acquire(&fdr_switch_.on) != number) return; /* A:on */
    /* A:on - this recording's, if that is still on behind it */
    struct fdri_arena_superblock *super = fdri_atomic_load_acquire(&fdri_life_recording.arena.super);
    if (fdri_atomic_load_relaxed(&fdr_switch_.on) == number) fdri_atomic_add_relaxed(&super->lost_unattached, 1u);
}

bool fdri_thread_attached(void)
{
    uint32_t on = fdri_atomic_load_relaxed(&fdr_switch_.on);
    if (on && (fdri_record_self.recording == on || attach(&fdri_record_self, on, false))) return true;
    if (on) lose(on);
    return false;
}

struct fdri_thread *fdri_thread_begin(enum fdri_thread_domain domain)
{
    uint32_t on = fdri_atomic_load_relaxed(&fdr_switch_.on);
    if (!on) return NULL;
    uint64_t here = (uint64_t)(uintptr_t)__builtin_frame_address(0);
    struct fdri_thread *t = &fdri_record_self;
    if (t->recording == on || attach(t, on, false)) {
        if (claim(t, here, domain)) return t;
        if (fdri_atomic_load_relaxed(&fdr_switch_.on) != on) return NULL;
        struct fdri_thread *lane = &fdri_record_lane;
        if ((lane->recording == on || attach(lane, on, true)) && claim(lane, here, domain)) return lane;
    }
    if (domain != FDRI_THREAD_NO_EVENT) lose(on);
    return NULL;
}

struct fdri_thread *fdri_thread_begin_attached(void)
{
    uint32_t on = fdri_atomic_load_relaxed(&fdr_switch_.on);
    uint64_t here = (uint64_t)(uintptr_t)__builtin_frame_address(0);
    if (!on || fdri_record_self.recording != on) return NULL;
    if (claim(&fdri_record_self, here, FDRI_THREAD_NO_EVENT)) return &fdri_record_self;
    return fdri_record_lane.recording == on ? claim(&fdri_record_lane, here, FDRI_THREAD_NO_EVENT) : NULL;
}

void fdri_thread_settle_own(uint64_t here)
{
    struct fdri_thread *t = &fdri_record_self;
    uint32_t on = fdri_atomic_load_relaxed(&fdr_switch_.on);
    if (on && t->recording == on && claim(t, here, FDRI_THREAD_NO_EVENT)) fdri_thread_end(t);
}

uint64_t fdri_thread_tick_at(struct fdri_thread *t, uint64_t time_ns)
{
    const uint64_t far = 1ull << 62; /* 146 years; keeps every sum of times in the codec's range */
    struct fdri_life_recorder *r = &fdri_life_recording;
    uint64_t tick = fdri_bits_min(time_ns, far);
    /* ns: nobody read a clock; 0 is not known yet */
    if (FDRI_UNLIKELY(!t->loc->start_tick)) t->loc->start_tick = fdri_bits_max(tick >> t->shift, 1);
    if (t->ticks) {
        uint64_t since = tick > r->start.monotonic_ns ? tick - r->start.monotonic_ns : 0;
        tick = fdri_bits_min(r->start.tick + fdri_life_ns_to_ticks(since), far);
    }
    if (tick > t->loc->last_tick) t->presented_tick = tick;
    return fdri_thread_clamp(t->loc, tick);
}

void fdr_thread_name(const char *name)
{
    struct fdri_thread *t = fdri_thread_begin(FDRI_THREAD_NO_EVENT);
    struct fdri_thread_wishes *said = t ? NULL : fdri_thread_wishes();
    if (!name) name = "";
    if (t) strncpy(t->loc->name, name, sizeof t->loc->name - 1);
    if (t) fdri_thread_end(t);
    if (said) strncpy(said->name, name, sizeof said->name - 1);
}

static void set_pause(bool begin)
{
    struct fdri_thread *t = fdri_thread_begin(FDRI_THREAD_NO_EVENT);
    struct fdri_thread_wishes *said = t ? NULL : fdri_thread_wishes();
    if (said) fdri_thread_nest(&said->pauses, begin);
    if (!t) return;
    fdri_thread_nest(&t->pauses, begin);
    fdri_thread_update_pause(t);
    fdri_thread_end(t);
}
void fdr_pause(void) { set_pause(true); }
void fdr_resume(void) { set_pause(false); }
