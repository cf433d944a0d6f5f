/* SPDX-License-Identifier: MIT */
/* Attaches and detaches threads, and repairs operations that a longjmp left. A thread attaches once for each recording,
 * with its first event. Recording takes liburcu's registry lock only then. All signals are blocked meanwhile, so a
 * handler never finds a thread half attached. */
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
#include "format/codec/encode.h"
#include "recorder/ended/ended.h"
#include "recorder/jumps/jumps.h"
#include "recorder/life/life.h"
#include "recorder/memory/memory.h"
#include "recorder/names/names.h"
#include "recorder/names/region_rules.h"
#include "recorder/pressure/recorder_pressure.h"
#include "recorder/record/record.h"
#include "recorder/record/ruled_calls.h"
#include "recorder/record/shadow_stack.h"
#include "recorder/recording.h"
#include "recorder/strategy/strategy.h"
#include "recorder/strategy_table.h"
#include "recorder/thread/arena_place.h"
#include "recorder/thread/grace_period.h"
#include "recorder/thread/thread.h"
#include "recorder/thread/thread_clock.h"
#include "recorder/thread/thread_state.h"
#include "recorder/totals/totals.h"
#include "recorder/watch/watch.h"
#include "sampler/samples/samples_view.h"

enum { LOOK_AGAIN = 1024 }; /* events after which a thread without room looks again; at first sooner */

__thread uint32_t fdri_thread_inside;
static pthread_key_t exit_key;
static bool have_key;
/* Rounds of this thread's destructors so far. After the last round nothing reports the thread's end. A handler that
 * runs later would attach the thread for ever, so its events are lost. */
static __thread uint32_t rounds;

/* No more attaching for this thread. A forked child of such a thread continues as the child's first thread, which may
 * attach. */
static bool may_not_attach(void)
{
    return FDRI_UNLIKELY(rounds >= PTHREAD_DESTRUCTOR_ITERATIONS) && syscall(SYS_gettid) != getpid();
}

bool fdri_thread_is_ending(void) { return rounds; }

void fdri_thread_attach_once(void) { have_key = pthread_key_create(&exit_key, fdri_thread_detach) == 0; }

static __thread struct fdri_thread_wishes before;

struct fdri_thread_wishes *fdri_thread_wishes(void)
{
    uint32_t on = fdri_atomic_load_relaxed(&fdr_switch_.on);
    if (!on || fdri_record_self.recording == on || fdri_record_self.no_room_recording != on) return NULL;
    if (before.recording != on) before = (struct fdri_thread_wishes){.recording = on};
    return &before;
}

static void take_said(struct fdri_thread *t)
{
    t->pauses = before.pauses;
    t->phases = before.phases;
    if (before.name[0]) fdri_thread_give_name(t->loc, before.name);
    before = (struct fdri_thread_wishes){.recording = 0}; /* once: in a destructor the thread may attach again */
}

static bool build(struct fdri_thread *t, bool lane)
{
    char name[32] = "";
    prctl(PR_GET_NAME, name);
    name[16] = 0;
    if (lane) strcat(name, " (signals)");
    if (!fdri_thread_location_make(t, NULL, lane ? fdri_record_self.loc->id : UINT32_MAX, name)) return false;
    if (!lane && before.recording == fdri_life_recording.number) take_said(t);
    /* lanes, and fdr's thread that reads counters, have no phases */
    t->wants_phase = !lane && fdri_names_rules_phases() && !fdri_system_is_helper(name);
    fdri_thread_update_pause(t);
    fdri_atomic_add_relaxed(&fdri_life_recording.shares.live, 1u);
    fdri_thread_location_number(t);
    fdri_thread_location_publish(t, FDRI_ARENA_LOCATION_LIVE | (lane ? (uint32_t)FDRI_ARENA_LOCATION_LANE : 0u));
    return true;
}

/* Number of holders: threads, triggers and streams of samples that begin or end, notes being made, and sums being
 * taken. fdr_finalize waits for them, as it does for threads inside an operation. */
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
    fdri_atomic_sub_acq_rel(&passing, 1u); /* L:pass - the thread that waits for 0 sees the holder's stores */
}

/* True after 1, 2, 4, ... events, then after every LOOK_AGAIN. Other threads make room with each bin they fill, as soon
 * as they run. */
static bool look_again(struct fdri_thread *t)
{
    uint32_t n = ++t->no_room_events;
    return n < LOOK_AGAIN ? !(n & (n - 1)) : n % LOOK_AGAIN == 0;
}

/* ---- threads without room: each counts once, with its events, samples and lane, however often it asks ---- */

enum { BY_ITSELF = 1, BY_SAMPLER = 2 };
static uint32_t refused[2048]; /* atomic; two bits for each thread id: BY_* */

void fdri_thread_no_room_reset(void) { memset(refused, 0, sizeof refused); }

/* A thread counts itself only once (attach). So if a thread of this id has counted itself before, that one has ended,
 * and the new thread counts, too. If only the sampler has counted the id, that count was for this thread. */
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

/* memory: the system gave memory, and it is the buffer that is full. */
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
    if (fdri_thread_inside || may_not_attach() || (t->no_room_recording == number && !look_again(t))) return false;
    int saved = errno; /* the program's errno must survive an event */
    sigset_t old;
    fdri_system_signals_block(&old);
    /* first: functions called below may be the program's, and instrumented */
    fdri_thread_inside++;
    /* liburcu restores the mask by a C library function that unblocks the signal of cancellation */
    struct fdri_system_cancel cancel = fdri_system_cancel_off();
    bool here = fdri_thread_hold_recording(number), memory = here && (lane || fdri_names_address_room()),
         ok = memory && build(t, lane);
    /* without room, too: it may find room near its end */
    if (here && !lane && have_key) pthread_setspecific(exit_key, t);
    if (here && !ok) {
        if (t->no_room_recording != number) fdri_thread_count_no_room((uint32_t)syscall(SYS_gettid), true);
        if (t->no_room_recording != number) t->no_room_events = 0;
        t->no_room_recording = number;
        say_no_room(memory);
    } else if (ok && !lane) {
        fdri_names_address_thread();
        fdri_crash_check_handlers();
        fdri_life_watch_exit(true);
        /* in a vfork child the kernel would set these up for the child, not for the thread that the child stands for */
        if (fdri_export_pid() == fdri_life_recording.pid) {
            fdri_crash_thread_begin();
            fdri_samples_sampler_attached(t->loc->tid, &old);
        }
    }
    fdri_atomic_signal_fence();
    if (ok) {
        t->recording = number;
        t->no_room_recording = 0;
        fdri_thread_update_soft(t);
    }
    if (here) fdri_thread_release_recording();
    fdri_system_cancel_defer(cancel);
    fdri_thread_inside--;
    if (ok && !lane) fdri_life_inherit_calls((uint64_t)(uintptr_t)__builtin_frame_address(0));
    fdri_system_signals_restore(&old); /* a pending handler runs here, and may leave by longjmp */
    errno = saved;
    fdri_system_cancel_restore(cancel); /* a cancellation requested meanwhile acts here, with the program's mask */
    return ok;
}

/* Number of events of this class and depth that have a place: `accounts` of them, and those in partitions. An open call
 * is not among them. All partitions must be sealed. */
static uint64_t placed_events(const struct fdri_thread *t, uint32_t class_, uint32_t depth, uint64_t accounts)
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
    return placed_events(t, FDRI_ARENA_CLASS_REGION, depth,
                         v->filtered + v->reduced_gate + v->lost + fdri_strategy_was_frozen(t, depth));
}

static uint64_t points_placed(const struct fdri_thread *t, const struct fdri_arena_level_points *points,
                              uint32_t class_, uint32_t depth)
{
    return placed_events(t, class_, depth,
                         points->by_class[class_].filtered + points->by_class[class_].reduced_gate +
                             points->by_class[class_].lost);
}

static bool is_open_at(const struct fdri_thread *t, uint32_t depth)
{
    return depth && depth <= t->loc->depth &&
           !(fdri_thread_level(t, depth)->flags & (FDRI_ARENA_LEVEL_UNTIMED | FDRI_ARENA_LEVEL_SETTLED));
}

/* A rewind of p was left half-done: the missing records were removed and not counted yet. A reader of an unfinished
 * rewind concludes the same. */
static void settle_rewind(struct fdri_thread *t, struct fdri_arena_part *p)
{
    const struct fdri_arena_level *v = fdri_thread_level(t, p->depth);
    const struct fdri_arena_level_points *points = v->points_off ? fdri_thread_at(t, v->points_off) : NULL;
    bool calls = p->class_ == FDRI_ARENA_CLASS_REGION;
    uint64_t presented = calls ? v->presented : points->by_class[p->class_].presented;
    uint64_t sum = calls ? calls_placed(t, p->depth) + is_open_at(t, p->depth)
                         : points_placed(t, points, p->class_, p->depth);
    if (sum < presented) fdri_record_rewind_account(t, p, fdri_bits_min(presented - sum, p->rewind_records));
    fdri_atomic_signal_fence();
    fdri_atomic_store_release(&p->rewind_records, 0); /* R:forget */
}

static void settle_points(struct fdri_thread *t, struct fdri_arena_level_points *points, uint32_t depth)
{
    for (uint32_t c = FDRI_ARENA_CLASS_REGION + 1; points && c < FDRI_ARENA_CLASS_COUNT; c++)
        if (points_placed(t, points, c, depth) + 1 == points->by_class[c].presented) points->by_class[c].lost++;
}

/* Balances presented and placed events. An event that was presented and has no place is lost. An open call that has a
 * place has ended. */
static void balance_accounts(struct fdri_thread *t)
{
    struct fdri_arena_location *l = t->loc;
    struct fdri_arena_level *v = fdri_thread_level(t, l->depth);
    struct fdri_arena_level_points *points = v->points_off ? fdri_thread_at(t, v->points_off) : NULL;
    for (uint32_t off = l->parts_first; off; off = ((struct fdri_arena_part *)fdri_thread_at(t, off))->next)
        if (((struct fdri_arena_part *)fdri_thread_at(t, off))->rewind_records)
            settle_rewind(t, fdri_thread_at(t, off));
    l->lost_overflow = l->presented_overflow; /* presented without a level: all are lost */
    settle_points(t, points, l->depth);
    /* readings, and points inside of calls beside them, are of other depths */
    bool readings = l->flags & FDRI_ARENA_LOCATION_READINGS;
    for (uint32_t d = 0; readings && d <= FDRI_ARENA_READING_DEPTHS && d <= fdri_arena_levels_in(l->level_blocks); d++)
        if (d != l->depth && fdri_thread_level(t, d)->points_off)
            settle_points(t, fdri_thread_at(t, fdri_thread_level(t, d)->points_off), d);
    bool open = is_open_at(t, l->depth);
    /* R:frame */
    if (open && calls_placed(t, l->depth) == v->presented) fdri_atomic_store_release(&l->depth, l->depth - 1);
    if (l->depth == fdri_arena_levels_in(l->level_blocks)) return;
    v = fdri_thread_level(t, l->depth + 1);
    uint64_t calls = calls_placed(t, l->depth + 1);
    if (calls + 1 == v->presented) v->lost++;
    /* with strategy `first` stopped, a call is counted as reduced before it is presented */
    if (calls == v->presented + 1) v->presented++;
}

/* p->last_tick may be the leave of a call whose record was not committed, and which is still open. The next record
 * would begin before that. Every committed call of this depth left before the open one was entered. */
static void take_back_leave(const struct fdri_thread *t, struct fdri_arena_part *p)
{
    if (p->class_ != FDRI_ARENA_CLASS_REGION || !p->depth || p->depth > t->loc->depth) return;
    p->last_tick = fdri_bits_min(p->last_tick, fdri_thread_level(t, p->depth)->enter_tick >> t->shift);
}

/* Was p untouched by the unfinished operation? Then its open bin stays open, because a new one costs memory. Untouched
 * means calls of another depth than the open call and the one just closed, and nothing half-done in p. Points may have
 * been at any depth. */
static bool is_untouched(const struct fdri_arena_part *p, uint32_t depth)
{
    if (p->class_ != FDRI_ARENA_CLASS_REGION || p->depth == depth || p->depth == depth + 1) return false;
    if (!p->open_off || !p->limit || !(uint32_t)fdri_atomic_load_relaxed(&p->list_head)) return false;
    const struct fdri_arena_bin *b = fdri_bins_bin(&fdri_life_recording.arena, p->open_off);
    return b->seq == p->open_seq && !b->next && b->commit == fdri_codec_commit_word(p);
}

/* A longjmp left an operation. Closes a call that is already in the totals, and seals partitions that may be
 * half-written. */
static void repair_after_longjmp(struct fdri_thread *t)
{
    struct fdri_arena_location *l = t->loc;
    uint32_t depth = l->depth;
    bool rewound = false; /* then all are sealed: records in an unsealed bin would count as removed */
    for (uint32_t off = l->parts_first; off; off = ((struct fdri_arena_part *)fdri_thread_at(t, off))->next)
        rewound |= ((struct fdri_arena_part *)fdri_thread_at(t, off))->rewind_records != 0;
    l->abandoned++;
    fdri_awake(&fdri_life_recording.arena, l); /* also if it was left while waking up */
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
    /* else other threads could claim bins before they are pinned */
    if (!t->pinning) fdri_bins_claim_unpin(l);
    fdri_memory_relink_slots(t);
    fdri_strategy_mend(t);
    balance_accounts(t);
    fdri_jumps_finish_enter(t);
    fdri_record_ruled_recount(t);
    fdri_strategy_mend_totals(t);
    fdri_aside_left(t);
}

static void give_up(struct fdri_thread *t)
{
    struct fdri_arena_location *l = t->loc;
    repair_after_longjmp(t);
    t->top = fdri_thread_level(t, l->depth);
    fdri_record_rewind_left(t);
    t->untimed = 0;
    for (uint32_t d = 1; d <= l->depth && d <= t->depth_limit; d++)
        t->untimed += fdri_thread_level(t, d)->flags & FDRI_ARENA_LEVEL_UNTIMED;
    fdri_thread_update_pause(t);
}

/* Ends the location of a thread that ends. After the push at the end it belongs to others. */
static void end_location(struct fdri_thread *t)
{
    struct fdri_arena_location *l = t->loc;
    if (l->busy) give_up(t); /* the thread ended in a handler that interrupted an operation */
    fdri_atomic_store_relaxed(&l->busy, (uint64_t)(uintptr_t)__builtin_frame_address(0));
    fdri_atomic_signal_fence();
    fdri_stay_awake(&fdri_life_recording.arena, l);
    fdri_totals_count_pending(t->base, l);
    /* pthread_exit or cancellation ends open calls; they count */
    bool now = !t->times_given && t != &fdri_record_lane; /* else at the newest event */
    if (l->depth) fdri_record_close_all(t, now ? fdri_thread_clamp_live(t, fdri_thread_tick_live(t)) : 0);
    fdri_thread_stop_recording(t);
    fdri_thread_read_own_name(l);
    fdri_ready_release(t);
    fdri_ended_prepare(t);
    l->end_tick = fdri_bits_max(l->last_tick >> t->shift, 1);
    fdri_atomic_store_relaxed(&l->flags, l->flags & ~(uint32_t)FDRI_ARENA_LOCATION_LIVE);
    /* R:busy - a thread that finds it asleep from here on sees that it is not live */
    fdri_atomic_store_release(&l->busy, 0);
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
    if (on && syscall(SYS_gettid) == fdri_atomic_load_relaxed(&fdri_life_recording.pid))
        fdri_life_suspect_last_thread();
    if (on && t->recording == on && fdri_thread_hold_recording(on)) {
        if (fdri_watch_regions()) fdri_names_address_resume(); /* the calls that end now may fire triggers */
        if (fdri_record_lane.recording == on) end_location(&fdri_record_lane);
        end_location(t);
        fdri_thread_release_recording();
    }
    fdri_thread_stop_recording(t);
    fdri_thread_stop_recording(&fdri_record_lane);
    fdri_record_rewind_release(t);
    fdri_system_signals_restore(&old);
}

/* The destructor of exit_key. A later destructor, or a handler, may record and so attach the thread again. So this asks
 * for another round, as often as the C library runs destructors. The process's first thread is an exception: functions
 * of exit() may run in it afterwards. */
void fdri_thread_detach(void *unused)
{
    (void)unused;
    bool first = syscall(SYS_gettid) == getpid();
    if (!first) rounds++;
    fdri_atomic_signal_fence();
    detach(&fdri_record_self);
    /* liburcu's own destructor may have run; a thread that records later registers again */
    if (!first) fdri_names_address_thread_ends();
    if (!first && rounds < PTHREAD_DESTRUCTOR_ITERATIONS) pthread_setspecific(exit_key, &fdri_record_self);
}

/* Does this code run on an alternate signal stack? A stack that is disarmed in its handler (SS_AUTODISARM) looks as if
 * there were none. */
static bool on_alternate(const struct fdri_thread *t, uint64_t here)
{
    stack_t s;
    if (sigaltstack(NULL, &s)) return false;
    if (s.ss_flags & SS_ONSTACK) return true;
    uint64_t bytes = s.ss_flags & SS_DISABLE ? fdri_stack_own_bytes(fdri_thread_is_first(t->loc)) : 0;
    return bytes && t->stack_end - here > bytes;
}

/* Was the operation with this mark left by a longjmp out of a handler, so that nothing cleared `busy`? If `here` lies
 * above the interrupted frame, or beside it as when a loop calls again, the operation is gone. A handler that is still
 * running lies below by at least its signal frame, which is over 1 KiB. Frames on an alternate stack prove nothing. */
static bool operation_abandoned(const struct fdri_thread *t, uint64_t mark, uint64_t here)
{
    return here + 768 > mark && !on_alternate(t, here);
}

__thread struct fdri_thread_reading fdri_thread_reading;

void fdri_thread_read_abandoned(uint64_t here)
{
    if (!fdri_thread_reading.count || fdri_record_self.recording != fdri_atomic_load_relaxed(&fdr_switch_.on)) return;
    if (!operation_abandoned(&fdri_record_self, fdri_thread_reading.frame, here)) return;
    for (; fdri_thread_reading.count && urcu_bp_read_ongoing(); fdri_thread_reading.count--) urcu_bp_read_unlock();
    fdri_thread_reading.count = 0;
}

/* This thread is in no operation any more, so no handler is active inside one, and the lane's calls have ended. Closes
 * those that a longjmp left open, at the lane's newest event; the lane may hold memory that others wait for. */
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
    /* the same check as in begin_operation() */
    if (fdri_atomic_load_relaxed(&fdr_switch_.on) == lane->recording) fdri_record_close_all(lane, 0);
    fdri_thread_end(lane);
}

static struct fdri_thread *begin_operation(struct fdri_thread *t, uint64_t here, enum fdri_thread_domain domain)
{
    bool left = t->loc->busy;
    /* fdri_thread_inside: signals are blocked, so fdr itself has called a function of the program */
    if (left && (fdri_thread_inside || !operation_abandoned(t, t->loc->busy, here))) return NULL;
    /* First replaces the old mark, which may lie far below. A handler from here on finds itself inside of this
     * operation, and does not repair once more. */
    fdri_atomic_store_relaxed(&t->loc->busy, here);
    fdri_atomic_signal_fence();
    if (t == &fdri_record_self) end_lane(here);
    if (left) {
        give_up(t);
        fdri_thread_read_abandoned(here);
    }
    /* fdr_finalize turns the switch off, then has every thread pass a barrier. So either it sees this thread busy, or
     * this thread sees the switch off. */
    if (fdri_atomic_load_relaxed(&fdr_switch_.on) != t->recording) {
        fdri_thread_end(t);
        return NULL;
    }
    fdri_stay_awake(&fdri_life_recording.arena, t->loc);
    fdri_totals_count_pending(t->base, t->loc);
    if (t->no_event_yet && domain != FDRI_THREAD_NO_EVENT) {
        if (domain == FDRI_THREAD_NS) fdri_thread_set_clock(t, true);
        else t->loc->start_tick = fdri_thread_tick_live(t) >> t->shift;
        t->no_event_yet = false;
        fdri_thread_update_soft(t);
    }
    return t;
}

/* Counts an event that is not recorded, if recording `number` still runs. This holds nothing: a handler may leave by
 * longjmp, and the thread may be cancelled, at any point. If the recording ends during this, the count goes to memory
 * that stays mapped. */
FDRI_RACY static void count_unrecorded(uint32_t number)
{
    if (fdri_atomic_load_acquire(&fdr_switch_.on) != number) return; /* A:on */
    /* A:on - the arena of recording `number`, if the switch still shows it after this load */
    struct fdri_arena_superblock *super = fdri_atomic_load_acquire(&fdri_life_recording.arena.super);
    if (fdri_atomic_load_relaxed(&fdr_switch_.on) == number) fdri_atomic_add_relaxed(&super->lost_unattached, 1u);
}

bool fdri_thread_attached(void)
{
    uint32_t on = fdri_atomic_load_relaxed(&fdr_switch_.on);
    if (on && (fdri_record_self.recording == on || attach(&fdri_record_self, on, false))) return true;
    if (on) count_unrecorded(on);
    return false;
}

struct fdri_thread *fdri_thread_begin(enum fdri_thread_domain domain)
{
    uint32_t on = fdri_atomic_load_relaxed(&fdr_switch_.on);
    if (!on) return NULL;
    uint64_t here = (uint64_t)(uintptr_t)__builtin_frame_address(0);
    struct fdri_thread *t = &fdri_record_self;
    if (t->recording == on || attach(t, on, false)) {
        if (begin_operation(t, here, domain)) return t;
        if (fdri_atomic_load_relaxed(&fdr_switch_.on) != on) return NULL;
        struct fdri_thread *lane = &fdri_record_lane;
        if ((lane->recording == on || attach(lane, on, true)) && begin_operation(lane, here, domain)) return lane;
    }
    if (domain != FDRI_THREAD_NO_EVENT) count_unrecorded(on);
    return NULL;
}

struct fdri_thread *fdri_thread_begin_attached(void)
{
    uint32_t on = fdri_atomic_load_relaxed(&fdr_switch_.on);
    uint64_t here = (uint64_t)(uintptr_t)__builtin_frame_address(0);
    if (!on || fdri_record_self.recording != on) return NULL;
    if (begin_operation(&fdri_record_self, here, FDRI_THREAD_NO_EVENT)) return &fdri_record_self;
    return fdri_record_lane.recording == on ? begin_operation(&fdri_record_lane, here, FDRI_THREAD_NO_EVENT) : NULL;
}

void fdri_thread_settle_own(uint64_t here)
{
    struct fdri_thread *t = &fdri_record_self;
    uint32_t on = fdri_atomic_load_relaxed(&fdr_switch_.on);
    if (on && t->recording == on && begin_operation(t, here, FDRI_THREAD_NO_EVENT)) fdri_thread_end(t);
}

uint64_t fdri_thread_tick_at(struct fdri_thread *t, uint64_t time_ns)
{
    const uint64_t far = 1ull << 62; /* 146 years; so every sum of times stays in the codec's range */
    struct fdri_life_recorder *r = &fdri_life_recording;
    uint64_t tick = fdri_bits_min(time_ns, far);
    /* in ns no clock was read, so the first event sets start_tick; 0: not set */
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
    if (t) fdri_thread_give_name(t->loc, name);
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
