/* SPDX-License-Identifier: MIT */
/* What the files of recorder/ share.
 *
 *   call.c        enter and leave                               call_slow.c   the same, what is rare; stack.h: both
 *   start.c       init, finalize, fork                          config.c      text to settings
 *   arena.c       where the arena lives                         pages.c       its mapping, in large pages
 *   usage.c       sums for the caller                           later.c       what a call leaves to those behind it
 *   misspelt.c    names that are nearly a setting's
 *   attach.c      threads come and go                           location.c    what a thread records into
 *   define.c      definitions                                   note.c        facts about the run
 *   address.c     code address to region                        known.c       the same, per thread
 *   point.c       events without duration                       gone.c        calls that a longjmp left
 *   store.c       partitions: a place for a record              meta.c        memory for a location's accounts
 *   aside.c       the first moments, pinned                     join.c        fewer bands in little memory
 *   totals.c      exact totals per region                       rows_full.c   which go when there is no room
 *   reduce.c      gives memory back; reduce.h: its strategies   ready.c       bins given back ahead
 *   cyclic.c      strategy `last`                               first.c       strategy `first`
 *   chain_whole.c strategy `whole`                              telescope.c   strategy `telescope`
 *   epoch.c       its epochs                                    epoch_rows.c  their totals
 *   share.c       bins from other locations                     ended.c       memory of threads that ended, oldest first
 *   fold.c        their accounts added to another's             rewind.c      forget an iteration
 *   rules.c       include/exclude rules, phases                 watch*.c      triggers on what is recorded
 *   clock.c       a clock that steps back                       grace.c       until nobody reads what was replaced
 *   life.c        restored from a checkpoint?                   alone.c       only threads of fdr's own are left
 *   sample.c      samples, thinned as memory runs out           sampled.c     streams of samples begin and end
 *   reading.c     readings of counters, thinned likewise        skipped.c     open calls that rules keep out
 *   *.pml         models of what lies beside them
 *
 * A thread records into its location through struct fdri_thread (thread-local, owner only). The owner brackets each
 * operation with location.busy; a signal handler that finds it set records into the thread's lane, a location of its
 * own. Between the fences inside a bracket every store order is chosen so that a handler, or a reader after a kill,
 * sees either the old or the new state. */
#ifndef FDR_RECORDER_RECORDER_H
#define FDR_RECORDER_RECORDER_H

#include <fdr/fdr.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/atomic.h"
#include "base/bits.h"
#include "base/clock.h"
#include "base/say.h"
#include "base/signals.h"
#include "bins/bins.h"
#include "format/record.h"
#include "policies/policies.h"
#include "sampler/counter_view.h"

#define FDRI_GATE_CLOSED 1u /* in fdr_level.part[]: storage gate closed */

/* ---- settings: what the configuration says, parsed ---- */
enum fdri_arena_kind { FDRI_MAPPED, FDRI_ANONYMOUS };
struct fdri_settings {
    bool enable, live_force, final_snapshot, keep_newest;
    uint64_t buffer_bytes; /* 0: default rule */
    char buffer_text[32];  /* as it was given, to name it where it cannot be */
    uint32_t bin_bytes;
    enum fdri_arena_kind arena;
    enum fdr_strategy strategy;
    struct fdri_chain chain;
    struct fdri_tier_shares tiers; /* FDR_TELESCOPE */
    uint64_t min_duration_ns, resolution_ns, holdoff_ns, disk_bytes;
    uint32_t depth; /* calls deeper are only counted */
    int crash;      /* enum fdri_crash_mode */
    uint64_t crash_deadline_ns;
    bool monotonic;
    int signal; /* 0: none */
    uint32_t keep;
    char sample[64], name[64], live_dir[256], dir[512], filter[512];
    char triggers[1024];
    uint64_t watchdog_ns; /* 0: off */
    uint64_t pin_ns;      /* FDR_PIN */
    struct fdri_counter_plan counters;
    char edge_regions[512]; /* FDR_EDGE_REGIONS: patterns of names */
    char text[1024];        /* NAME=VALUE lines, for the superblock */
};
bool fdri_parse_size(const char *text, uint64_t *bytes);
bool fdri_parse_duration(const char *text, uint64_t *ns);
/* 0, or -EINVAL where a value made no sense and the caller is strict. */
int fdri_settings_parse(struct fdri_settings *s, const struct fdr_config *config);
/* ---- misspelt.c: says which variables of the environment look like one of these and are none ---- */
void fdri_misspelt_look(const char *const *known, size_t count);
/* Of the program; "" where nobody knows. */
void fdri_own_path(char *path, size_t bytes);

/* ---- the recording ---- */
/* Who holds what, for share.c. Atomic; reset with the arena. */
struct fdri_shares {
    uint32_t live;                  /* locations of threads that are there */
    uint32_t richest;               /* off of a location that holds much, or 0; a hint */
    uint32_t cursor;                /* off of the location to look at next, or 0 */
    uint32_t returned;              /* the same for one that may have pieces it does not collect */
    uint32_t lock;                  /* try-lock of everything about ended locations: id + 1 of who works there, or
                                       UINT32_MAX for one that is no location */
    uint32_t ended_last;            /* the queue of locations that ended: the newest, or 0 */
    uint32_t ended_in, ended_first; /* its oldest: where that was put into an empty queue; under the lock */
    struct fdr_location *spare[2];  /* for the accounts of ended ones, by unit of time */
    uint64_t turn;                  /* bins that were filled anew */
};
/* What tells a process from a copy of itself that goes on from a checkpoint. 0: unknown. */
struct fdri_life {
    int pid;
    uint64_t boot, start_time; /* a hash of the boot's id; field 22 of /proc/self/stat */
};
struct fdri_recorder {
    struct fdri_arena arena;
    struct fdr_topology topology;
    struct fdri_settings set;
    uint32_t number; /* of this recording in this process, from 1 */
    bool ticks;      /* TSC or counter; else ns */
    uint32_t shift;
    struct fdr_clock_reading start;
    uint64_t ticks_per_second;
    uint64_t tick_to_ns; /* 32.32 */
    int live_fd;
    char live_path[512];
    uint32_t bin_reserve;  /* bins that serve first bins only */
    uint64_t meta_in_bins; /* atomic: bytes of meta blocks that lie in pieces of bins */
    struct fdri_shares shares;
    uint32_t sample_share; /* bins kept for samples once there are any */
    uint32_t sample_bins;  /* atomic: bins that locations of samples hold */
    struct fdri_slabs slabs;
    bool running;
    bool
        left; /* it is over, but somebody was still in the middle of a record: its memory stays as it is until they are not */
    int pid;
    struct fdri_life life;
};
extern struct fdri_recorder fdri_rec;

/* ---- per thread ---- */
/* Where rows_full.c looks for a row to give up. Offs; 0: none. */
struct fdri_hand {
    uint32_t block, index; /* the next row: in this block of the epochs' base, or this slot of the table */
    uint32_t epochs;       /* what block belongs to */
    uint32_t gone;         /* a bit for each key whose calls went to the rest, and for others with the same low bits */
    uint32_t gone_bits;
    uint64_t points_gone; /* the same for metrics, markers and the like: their values are in no total */
    bool closed;          /* nobody knows which they are: no row is made any more */
};
enum { FDRI_SPARE_CELLS = 3 };
enum { FDRI_LATER_EPOCH = 1, FDRI_LATER_BIN = 2 }; /* later.c */
struct fdri_thread {
    uint32_t recording; /* number of the recording this belongs to */
    uint32_t
        plain; /* the same where a leave may take the fastest path: the counter as it is, no unit of time above it */
    uint32_t rounded; /* the same with such a unit */
    uint32_t soft;    /* an enter at this depth or deeper takes the slow path */
    struct fdr_location *loc;
    struct fdr_level *top; /* level of the innermost open call; level 0 when there is none */
    uint8_t *base;
    uint32_t *row_slot;       /* slots of the row table */
    struct fdri_known *known; /* code addresses called lately, by hash */
    uint32_t row_shift;
    uint32_t known_shift;
    uint32_t known_version; /* of fdri_address_version; else nothing here is believed */
    uint32_t shift;
    uint64_t min_ticks;      /* calls shorter are not stored */
    uint64_t edge[3];        /* stored ticks */
    uint64_t to_ns;          /* 32.32: full ticks of this location to ns */
    bool fresh;              /* no event yet: the first one decides the unit of time */
    bool no_more_levels;     /* memory did not hold another block: deeper calls are only counted */
    bool ticks;              /* the location's unit is the tick counter's; else ns */
    bool quick;              /* it is, and the counter can be taken as it is: the fast path may */
    uint64_t clock_offset;   /* added to every reading of the clock: it has stepped back */
    uint64_t presented_tick; /* newest tick that came from the caller, not from the clock */
    uint32_t dead_for;       /* recording in which this thread found no room */
    uint32_t dead_since;     /* events since it last looked */
    uint32_t depth_limit;    /* FDR_DEPTH */
    uint32_t untimed;        /* open calls up to there that are only counted: a pause */
    uint32_t phases;         /* open phases that rules name */
    uint32_t counted_levels; /* kept beyond depth_limit: what is entered there is only counted; 0: look closer */
    uint64_t overflow_sp;    /* stack address at the first call deeper than the stack that is kept */
    struct fdr_part *victim; /* what reductions are eating */
    uint8_t victim_step, victim_reason;
    uint32_t drain; /* strategy `last`: the partition whose bins below the floor go next; 0: none are left */
    uint32_t line;  /* the ledger's line of the newest step */
    /* telescope: bins of the victim that ended by then may still go; partitions by worth */
    uint64_t victim_limit;
    uint32_t victim_at; /* where it stands among these, if nothing has moved since */
    uint32_t victim_left, order_off, order_count, order_room;
    uint32_t live_parts;           /* of those in order: whose band was not joined to another one */
    uint32_t ready;                /* the first of the whole bins that were given back ahead; 0: none are left */
    uint32_t fetch_at, fetch_end;  /* what of that one is still to be fetched into the cache */
    uint32_t run_off;              /* struct fdri_run: what may be given back next time; 0: none yet */
    const struct fdr_part *opened; /* telescope: its new bin waits for the record it was opened for; NULL: none does */
    struct fdri_mark *mark;
    struct fdri_skipped *skipped; /* open calls that rules keep out; NULL: none were */
    struct fdr_part *asker;       /* whose the newest bin is: what is looked for ahead is for the like */
    uint8_t later;                /* FDRI_LATER_*: what a call behind may do, if it is not the next one that needs it */
    bool sought;                  /* its first bin was: others were asked for long */
    bool adopts;                  /* it has pieces of who sleeps, as they are: of these there were many */
    bool no_more_skipped;         /* memory did not hold a longer list of them */
    uint32_t known_misses;        /* since the table was made */
    uint32_t aside_units;         /* 512 bytes each: bins set aside by FDR_PIN */
    bool aside_done;              /* they were, or nothing will be */
    bool times_given;             /* its times are the caller's (`_at`), whatever the recording's clock is */
    bool aside_due;               /* they will be, by the next call that enters in a tick of its own */
    struct fdri_hand hand;
    uint32_t spare_cells[FDRI_SPARE_CELLS]; /* cells of totals not in use, one of each size by 64 bytes; 0: none */
    uint64_t stack_end;                     /* of the thread's own stack */
    uint64_t stack_bytes;                   /* gone.c: how large it can be, once that was asked; 0: nobody knows */
    bool stack_known;
    uint8_t asked_in_vain;
    uint64_t tied_to; /* stored tick + 1 of the newest record that names a parent in its own tick */
};
extern __thread struct fdri_thread fdri_self __attribute__((visibility("hidden")));
extern __thread struct fdri_thread fdri_lane __attribute__((visibility("hidden")));

static inline void *fdri_off(const struct fdri_thread *t, uint32_t off) { return t->base + off; }
static inline uint32_t fdri_off_of(const struct fdri_thread *t, const void *p)
{
    return (uint32_t)((const uint8_t *)p - t->base);
}
/* Level d of the kept stack; d <= fdr_levels_in(level_blocks). */
static inline struct fdr_level *fdri_level(const struct fdri_thread *t, uint32_t depth)
{
    if (depth == 0) return fdri_off(t, t->loc->level0_off);
    struct fdr_levels_block *b = fdri_off(t, t->loc->levels_off[fdr_level_block(depth)]);
    return &b->level[fdr_level_entry(depth)];
}
/* Now, in the location's own unit. */
static inline uint64_t fdri_tick_live(const struct fdri_thread *t)
{
    return (FDR_LIKELY(t->ticks) ? fdr_ticks() : fdr_clock_ns(CLOCK_MONOTONIC)) + t->clock_offset;
}

/* This thread is where locks are held or memory is asked for. An instrumented allocator that comes back from there is
 * not recorded unless that needs neither. */
extern __thread uint32_t fdri_inside __attribute__((visibility("hidden")));

/* ---- attach.c ---- */
/* The thread state an operation may use now: this thread's, its lane when one is under way, or NULL (counted). On
 * success the state's location is marked busy; end with fdri_end. The first event decides whether the location counts
 * in ns (an `_at` event) or in the clock's ticks. */
enum fdri_domain { FDRI_LIVE, FDRI_NS, FDRI_NO_EVENT };
struct fdri_thread *fdri_begin(enum fdri_domain domain);
static inline void fdri_end(struct fdri_thread *t)
{
    fdr_store_release(&t->loc->busy, 0); /* R:busy - pairs with A:busy in start.c: finalize sees the record whole */
}
bool fdri_attached(void);    /* attaches this thread if need be */
uint32_t fdri_passing(void); /* threads that are coming or going */
void fdri_detach(void *unused);
/* Counts a thread that found no room: itself, where it has not yet, or the sampler, which may come again and again.
 * Async-signal-safe. */
void fdri_no_room(uint32_t tid, bool itself);
void fdri_no_room_reset(void); /* before a recording begins */

/* The tick of an event: live clock or presented ns, in the location's unit, clamped to be monotonic. */
uint64_t fdri_tick_at(struct fdri_thread *t, uint64_t time_ns);
static inline uint64_t fdri_clamp(struct fdr_location *l, uint64_t tick)
{
    if (FDR_UNLIKELY(tick < l->last_tick)) {
        l->clamped++;
        return l->last_tick;
    }
    return tick;
}

/* ---- clock.c ---- */
/* The clock stands at `tick`, before the location's newest event: the event's tick, and from now on the location's
 * clock. */
uint64_t fdri_stepped_back(struct fdri_thread *t, uint64_t tick);
static inline uint64_t fdri_clamp_live(struct fdri_thread *t, uint64_t tick)
{
    return FDR_LIKELY(tick >= t->loc->last_tick) ? tick : fdri_stepped_back(t, tick);
}
uint64_t fdri_tick_now(void); /* full ticks of the recording's clock */
/* Makes the offset the whole recording has now the location's. */
void fdri_clock_adopt(struct fdri_thread *t);

/* ---- location.c ---- */
/* Is it the first thread's of the process, or its lane? */
static inline bool fdri_is_first(const struct fdr_location *l) { return (int)l->tid == fdri_rec.pid; }
struct fdr_location *fdri_location_new(void); /* an empty block, free and pinned, on the chain; NULL: no room */
/* A location with level 0 and what else it begins with, without an id and not shown yet; false: no room, nothing is
 * left behind. In block l, or where that is NULL in any. */
bool fdri_location_make(struct fdri_thread *t, struct fdr_location *l, uint32_t parent, const char *name);
void fdri_location_number(struct fdri_thread *t); /* gives it its id */
void fdri_location_publish(struct fdri_thread *t, uint32_t flags);
void fdri_location_drop(struct fdri_thread *t);      /* it holds nothing but its meta blocks; all is given back */
void fdri_set_clock(struct fdri_thread *t, bool ns); /* the location counts in ns, else in the recording's clock */
void fdri_link_location(struct fdr_location *l, uint32_t off); /* from now on everybody sees it */
bool fdri_grow_levels(struct fdri_thread *t);                  /* one more block of levels; false: no room */
void fdri_set_soft(struct fdri_thread *t);                     /* recomputes when enter and leave must go slow */

/* ---- call.c, call_slow.c ---- */
/* A function that is entered, as the compiler's hook tells. */
struct fdri_function {
    uint64_t address, frame, caller, site; /* as in struct fdr_level; of caller the complement */
    uint64_t upper;                        /* where the frame ends that begins at `frame`; not less than it really is */
};
#define FDRI_UNTOLD UINT64_MAX /* frame: nobody told, nor the two behind it */
/* f: NULL where the region came by its id. True: a call is open that is not only counted. */
bool fdri_enter_tick(struct fdri_thread *t, fdr_region region, const struct fdri_function *f, bool live,
                     uint64_t time_ns);
void fdri_leave_tick(struct fdri_thread *t, fdr_region region, uint64_t address, bool live, uint64_t time_ns);

/* ---- store.c ---- */
/* A partition with room for one more record, or NULL: then the event was accounted as reduced or lost through
 * `reduced` and `lost`. *slot is the level's word for it. */
struct fdr_part *fdri_room(struct fdri_thread *t, uint32_t *slot, uint32_t depth, uint32_t class_, uint32_t band,
                           uint64_t *reduced, uint64_t *lost);
/* Has the slot of a point class a partition that can be written into, or a closed gate? Made where there is none;
 * false: no room. */
bool fdri_part_ready(struct fdri_thread *t, uint32_t *slot, uint32_t depth, uint32_t class_);
/* May this location take a free bin? The last ones serve locations that have next to nothing. */
bool fdri_may_take(const struct fdri_thread *t);
/* A piece of what is free: its own, or of a bin. Who has next to nothing takes first what lies unused elsewhere, once
 * bins are short. */
uint32_t fdri_take_free(struct fdri_thread *t, uint32_t size_log2);
bool fdri_pieces_wait(const struct fdri_thread *t); /* may free pieces wait until they are larger ones? */
void fdri_close_gate(struct fdri_thread *t, struct fdr_part *p);
struct fdr_part *fdri_make_part(struct fdri_thread *t, uint32_t depth, uint32_t class_, uint32_t band);
uint32_t *fdri_slot_of(struct fdri_thread *t, const struct fdr_part *p);
/* The table of p's encoder, given back for another one or for none, 0. */
void fdri_give_table(struct fdri_thread *t, struct fdr_part *p, uint32_t instead);
/* After an operation that was given up in the middle, or partitions set aside: each partition that is stored in has its
 * slot, and counts. */
void fdri_find_slots(struct fdri_thread *t);

/* A whole bin for who asks next, when the last one that was ready has gone. */
void fdri_find_ahead(struct fdri_thread *t);

/* ---- later.c ---- */
/* False: it was left before, or nobody will come by who does it. */
bool fdri_leave_for_later(struct fdri_thread *t, uint32_t what);
void fdri_do_later(void); /* one of those things, by a thread that is in no operation */

/* ---- aside.c ---- */
/* FDR_PIN: are the first moments over, or have they used up their share? */
void fdri_aside_look(struct fdri_thread *t);
/* They are, and a call enters at `tick`: where that is a new one partitions are set aside. Where records go is new
 * then: slots are 0. */
void fdri_aside(struct fdri_thread *t, uint64_t tick);
/* The partition of this kind that was set aside, or NULL. */
struct fdr_part *fdri_aside_of(struct fdri_thread *t, uint32_t depth, uint32_t class_, uint32_t band);

/* ---- join.c ---- */
/* Where there is little for many partitions bands become one: then slots of those joined are 0, and lead to partitions
 * of the longer one from now on. */
void fdri_join_look(struct fdri_thread *t);
uint64_t fdri_join_room(const struct fdri_thread *t); /* bytes that it may come to hold */
/* It takes the place of others, which counted for it since they were joined. */
bool fdri_join_expected(const struct fdri_thread *t, const struct fdr_part *p);
bool fdri_joined_away(const struct fdri_thread *t, const struct fdr_part *p); /* nothing more is stored in it */
/* All bands are one: what p's next bin begins to count from is not before the newest call of length 0, which another
 * band may have. */
void fdri_join_zero(struct fdri_thread *t, struct fdr_part *p);
/* The slot that the band shares with a longer one, which *band is then; or NULL: it has its own. */
uint32_t *fdri_joined_slot(struct fdri_thread *t, uint32_t depth, uint32_t class_, uint32_t *band);
void fdri_leave_slots(struct fdri_thread *t, const struct fdr_part *p); /* no slot leads to p any more */

/* ---- meta.c ---- */
/* A zeroed meta block of this location: from the meta end, else in a piece of a bin for which something may be given
 * back; 0: no room. Blocks larger than a bin come from the meta end only. */
uint32_t fdri_meta(struct fdri_thread *t, enum fdr_meta_kind kind, uint32_t bytes);
uint32_t fdri_meta_calm(struct fdri_thread *t, enum fdr_meta_kind kind,
                        uint32_t bytes);                  /* nothing is given back for it */
void fdri_meta_ahead(struct fdri_thread *t);              /* room for some small blocks, while there is any */
void fdri_meta_give(struct fdri_thread *t, uint32_t off); /* not needed any more */
void fdri_meta_release(struct fdri_thread *t);            /* all of it: the location is no more */
uint64_t fdri_meta_bytes(void);                           /* in use by all */

/* ---- ended.c ---- */
/* Looks after the oldest location that ended: gives some of its bins back, or folds some of its accounts. true: there
 * may be room now. Not before its last moments have aged, but for a location that has next to nothing, or for accounts.
 * Bounded; does nothing where another thread does it. */
enum fdri_urgency {
    FDRI_IF_AGED,
    FDRI_POOR,
    FDRI_ATTACHING,      /* waits for others, at most 10 ms */
    FDRI_ATTACHING_WHOLE /* the same; wants what no bin is: all memory of one that ended */
};
bool fdri_ended_room(struct fdri_thread *t, enum fdri_urgency urgency);
/* A thread that comes makes room for accounts of its own where there is little: it may wait for others, which it must
 * not once it records. */
void fdri_ended_ahead(struct fdri_thread *t);
void fdri_ended_prepare(struct fdri_thread *t);     /* a place for its accounts; waits 10 ms at most */
void fdri_ended_push(struct fdr_location *l);       /* its thread ended: it is not the caller's any more */
bool fdri_ended_lock(uint32_t who, uint32_t tries); /* keeps everybody from folding */
bool fdri_ended_hold(uint32_t who, uint64_t ns);    /* the same; waits that long at most */
void fdri_ended_unlock(void);
void fdri_ended_abandoned(const struct fdr_location *l); /* an operation of l was given up in the middle */

/* ---- fold.c ---- */
bool fdri_fold_start(void); /* room for the words under way */
/* Moves some of the accounts of t's location, which holds no bin, to `into`. 1: all are moved; 0: some; -1: no room. */
int fdri_fold(struct fdri_thread *into, struct fdri_thread *t);
bool fdri_fold_prepare(struct fdri_thread *into,
                       struct fdri_thread *t); /* a place for each of its accounts; false: no room */
/* Adds row r to the rest of the same location, and what stands for it in the epochs' base (or NULL, both) to the
 * rest's place there. r is left without calls. Under the lock. */
void fdri_fold_to_rest(struct fdri_thread *t, struct fdr_row *r, struct fdr_base_row *from, struct fdr_base_row *to);
void fdri_fold_undo(void);

/* ---- reduce.c ---- */
/* A bin or piece of at most 1 << size_log2 bytes for partition p by giving something else back; 0: nothing to give,
 * or p itself was closed. */
uint32_t fdri_reduce(struct fdri_thread *t, struct fdr_part *p, uint32_t size_log2, uint32_t *got_log2);
void fdri_reserve_ledger(struct fdri_thread *t); /* lines for reductions, while there is room */
void fdri_note_claim(struct fdri_thread *t, uint32_t giver, const struct fdri_given *given); /* a line of the ledger */

/* ---- first.c, cyclic.c ---- */
void fdri_stop(struct fdri_thread *t, uint64_t tick);      /* strategy `first`: store nothing from now on */
void fdri_maybe_cut(struct fdri_thread *t, uint64_t tick); /* strategy `last`: is it time for a new epoch? */

/* ---- gone.c ---- */
uint64_t fdri_frame_upper(const struct fdri_function *f); /* looks for it on the stack */
/* Is f, not untold, called by the newest call, or part of it? False: look closer. Cheap. */
bool fdri_is_below(struct fdri_thread *t, const struct fdri_function *f);
/* The outermost open call that cannot be there any more when f, not untold, is entered; 0: all may be. Where some are
 * above f it makes system calls. */
uint32_t fdri_gone(struct fdri_thread *t, const struct fdri_function *f);

/* Is this place on the thread's own stack? May ask the system the first time. */
bool fdri_own_frame(uint64_t frame);

/* ---- skipped.c ---- */
enum { FDRI_NOT_SKIPPED = UINT32_MAX };
/* A call that a rule keeps out begins, directly inside of the top call. f: NULL where it came by the region's id. */
void fdri_skipped_add(struct fdri_thread *t, uint32_t region, const struct fdri_function *f);
/* The newest of this region that is open is inside of the call of which depth? FDRI_NOT_SKIPPED: there is none. */
uint32_t fdri_skipped_find(struct fdri_thread *t, uint32_t region);
/* It ends, and those that began in it; the call found is the top one. */
void fdri_skipped_leave(struct fdri_thread *t, uint32_t region);
/* The calls from this depth on end. */
void fdri_skipped_close(struct fdri_thread *t, uint32_t from);

/* ---- point.c ---- */
/* Accounts and partitions of points at that depth, made where there are none; NULL: no room. */
struct fdr_level_points *fdri_points_of(struct fdri_thread *t, uint32_t depth);

/* ---- reading.c ---- */
/* The depth of a reading, made where it is not there yet; 0: it is an event like others. */
uint32_t fdri_reading_depth(struct fdri_thread *t, uint64_t before, uint64_t number);
/* Is a partition one of readings? They are thinned from the lowest level up. */
static inline bool fdri_is_reading(const struct fdr_location *l, uint32_t class_, uint32_t depth)
{
    return class_ == FDR_CLASS_USER && depth && l->flags & FDR_LOCATION_READINGS;
}

/* ---- ready.c: bins given back ahead ---- */
/* How many bins to take off a list at once for who asks; below 2: only one. */
uint32_t fdri_ready_run(const struct fdri_thread *t, const struct fdr_part *asking);
uint32_t fdri_ready_take(struct fdri_thread *t, uint32_t size_log2); /* one of them, or a part of it; 0: none is left */
/* One more; of small ones larger ones become. */
void fdri_ready_keep(struct fdri_thread *t, uint32_t off, uint32_t size_log2);
void fdri_ready_release(struct fdri_thread *t); /* the thread ends: they go to all */
void fdri_ready_look(struct fdri_thread *t);    /* what goes next is looked at by one bin more */
void fdri_ready_forget(struct fdri_thread *t);  /* lists are about to go back to what they were */

/* ---- sample.c ---- */
uint32_t fdri_sample_bins_due(void); /* bins of the samples' share that are not theirs yet: not for others */

/* ---- share.c ---- */
/* The part of a whole bin that is `size_log2` large, from a location that holds more; 0: nobody does. */
uint32_t fdri_share_piece(struct fdri_thread *t, uint32_t size_log2);
/* A piece that was taken off the lists of another, who does not collect it, or of a strewn bin, given back; 0: there is
 * none among those looked at, or no need. */
uint32_t fdri_share_returned(struct fdri_thread *t, uint32_t size_log2);
/* What is looked for, as log2 of bytes; least: what will do, where no more is found; must: even if others do not keep
 * their share then. */
struct fdri_size {
    uint32_t want, least;
    bool must;
};
/* Room for a location when nothing is free: from ended ones, from richer ones; where it has next to nothing from ended
 * ones once more, and from any that hold more than what all can have. 0: there is none. */
uint32_t fdri_share_any(struct fdri_thread *t, struct fdri_size size, uint32_t *got_log2);
uint32_t
fdri_share_held(const struct fdr_location *l); /* bins it holds, those counted that it has in pieces beside others */
bool fdri_poor(const struct fdr_location *l);  /* that is next to nothing */
uint32_t fdri_fair_share(void);                /* bins for each live location, of those in use */
uint32_t fdri_full_share(void);                /* the same when all will be */
enum { FDRI_MANY_THREADS = 8 };                /* more live ones than that are many */
bool fdri_crowded(void);                       /* that is little, and they are many */
bool fdri_share_rich(const struct fdr_location *l); /* it holds more than live ones do on average */
void fdri_share_note(const struct fdri_thread *t);  /* this location took a bin */

/* ---- telescope.c, epoch.c, epoch_rows.c: nothing under other strategies ---- */
void fdri_telescope_part(struct fdri_thread *t, struct fdr_part *p);   /* a partition was made */
void fdri_telescope_sealed(struct fdri_thread *t, struct fdr_part *p); /* its newest bin takes no more records */
void fdri_telescope_opened(struct fdri_thread *t, struct fdr_part *p); /* a bin was put behind it: time for a cut? */
void fdri_telescope_epoch(struct fdri_thread *t);                      /* the next step of its epochs */
void fdri_telescope_recount(struct fdri_thread *t);                    /* bins went by another way than a reduction */
void fdri_telescope_aside(struct fdri_thread *t);                      /* partitions were set aside */
void fdri_epoch_row(struct fdri_thread *t, uint32_t row_off);          /* a row of totals was made */
bool fdri_epoch_row_fits(struct fdri_thread *t, uint32_t key); /* makes room for one; false: the sums would lack it */
void fdri_epochs_abandoned(struct fdri_thread *t);             /* an operation ended in the middle */

/* ---- totals.c ---- */
#define FDRI_KEY(kind, id) ((uint32_t)(id) | (uint32_t)(kind) << 24)
struct fdr_row *fdri_row_slow(struct fdri_thread *t, uint32_t key);
static inline struct fdr_row *fdri_row(struct fdri_thread *t, uint32_t key)
{
    uint32_t off = t->row_slot[key * 0x9E3779B1u >> t->row_shift];
    struct fdr_row *r = fdri_off(t, off); /* off 0 is the superblock, whose first word is no key */
    return FDR_LIKELY(r->key == key) ? r : fdri_row_slow(t, key);
}
bool fdri_rows_start(struct fdri_thread *t);
void fdri_rows_again(struct fdri_thread *t); /* an operation may have been left while the table was replaced */
/* A row for `key` in a cell of zeros, or in that of a row without calls. */
struct fdr_row *fdri_row_place(struct fdri_thread *t, uint32_t off, uint32_t key);
struct fdr_row *fdri_row_rename(struct fdri_thread *t, uint32_t off, uint32_t key);
bool fdri_rows_full(struct fdri_thread *t); /* the table: searches would take long */
/* The row's histogram has room for buckets [from, end) as well; false: no room. */
bool fdri_histogram_cover(struct fdri_thread *t, struct fdr_row *r, uint32_t from, uint32_t end);
void fdri_histogram_drop(struct fdri_thread *t, struct fdr_row *r);
void fdri_histogram_slow(struct fdri_thread *t, struct fdr_row *r, uint32_t bucket);
/* The newest call that the fast path ended comes into its histogram: before anything else looks at histograms or moves
 * them. The order is what a kill leaves: a counter is missing one only while its row has more calls than they have. */
static inline void fdri_count_late(uint8_t *base, struct fdr_location *l)
{
    uint32_t off = l->counting;
    if (!off) return;
    fdr_bump_relaxed((uint64_t *)(void *)(base + off), 1);
    fdr_signal_fence();
    l->counting = 0;
    fdr_signal_fence();
}
static inline void fdri_histogram_add(struct fdri_thread *t, struct fdr_row *r, uint32_t bucket)
{
    uint64_t word = r->histogram;
    if (FDR_UNLIKELY(bucket - fdr_histogram_first(word) >= fdr_histogram_count(word))) {
        fdri_histogram_slow(t, r, bucket);
        return;
    }
    uint64_t *count = fdri_off(t, (uint32_t)word);
    fdr_bump_relaxed(&count[bucket], 1);
}
static inline uint32_t fdri_bucket(uint64_t v) { return 63u ^ (uint32_t)__builtin_clzll(v | 1); }
/* One event of a point class: value v counted in, as value type. */
void fdri_total_point(struct fdri_thread *t, uint32_t key, enum fdr_value_type type, uint64_t value);

/* ---- rows_full.c ---- */
/* A row for `key` in the place of what was used least, or NULL. */
struct fdr_row *fdri_row_instead(struct fdri_thread *t, uint32_t key);
/* The rest, to which calls of `key` go from now on, and have they gone there? */
struct fdr_row *fdri_row_rest(struct fdri_thread *t, uint32_t key);
bool fdri_row_gone(struct fdri_thread *t, uint32_t key);

/* ---- define.c ---- */
uint32_t fdri_define(enum fdr_def_kind kind, const char *name, const char *file, uint32_t line, uint64_t value,
                     uint64_t value2, const void *payload, uint32_t payload_bytes);
void fdri_define_reset(void);     /* a new arena: definitions made before come along with their ids */
void fdri_define_save(void);      /* before the arena goes */
void fdri_define_end(void);       /* the same, and nothing is defined any more: the recording does not run */
void fdri_define_fork(int phase); /* 0 prepare, 1 parent, 2 child; 3 before 0 in a child that no handler saw */
void fdri_define_modules(void);
void fdri_modules_look(void); /* which modules are loaded now; asks the loader */
void fdri_modules_forget(void (*forget)(uint64_t from, uint64_t to)); /* those that are no longer loaded */
uint32_t fdri_module_of(uint64_t address);                            /* module definition id + 1, or 0 */
struct fdri_event_shape {
    uint8_t count;
    uint8_t type[FDR_FIELDS_MAX];
    uint16_t offset[FDR_FIELDS_MAX];
};
const struct fdri_event_shape *fdri_event_shape(uint32_t type);
uint32_t fdri_metric_type(uint32_t metric);

/* ---- note.c ---- */
void fdri_note_reset(void);

/* ---- address.c ---- */
/* Region of a code address, defined on first sight. The thread must be attached. */
fdr_region fdri_address_region(uint64_t address);
extern uint32_t fdri_address_version
    __attribute__((visibility("hidden"))); /* rises when addresses lose their meaning */
void fdri_address_reset(void);
void fdri_address_thread(void);    /* this thread begins to look addresses up */
void fdri_address_fork(int phase); /* as fdri_define_fork */

/* ---- known.c ---- */
/* What a thread remembers of the functions it calls: one probe gives region and totals row, or a second one beside it.
 * A cache in the arena; what it says stands in fdri_address_region's table and in the row table. */
struct fdri_known {
    uint64_t address;
    uint32_t row_off, region;
    uint32_t site, frame_bytes; /* entered from there its frame has at least so many bytes */
};
enum { FDRI_LEAST_FRAME = 8 }; /* where a function returns to */
enum { FDRI_NEAR = 256 };      /* its hook is not called further from its beginning */
static inline uint32_t fdri_known_slot(const struct fdri_thread *t, uint64_t address)
{
    return (uint32_t)address * 0x9E3779B1u >> t->known_shift;
}
enum { FDRI_KNOWN_WAYS = 2 }; /* a slot, and the one whose number differs in the lowest bit */
/* Where the function is, if it is known: then that has its address. */
static inline const struct fdri_known *fdri_known_of(const struct fdri_thread *t, uint64_t address)
{
    uint32_t slot = fdri_known_slot(t, address);
    return FDR_LIKELY(t->known[slot].address == address) ? &t->known[slot] : &t->known[slot ^ 1];
}
/* Of the place that f was entered from. */
struct fdri_place {
    uint64_t frame_bytes; /* 0: not known, or not always the same */
    bool whole;           /* f itself, not put into another function by the compiler; only that is sure */
};
struct fdri_place fdri_known_place(struct fdri_thread *t, const struct fdri_function *f);
/* How many bytes the frame of f has; 0: not known. */
uint64_t fdri_known_frame(const struct fdri_thread *t, const struct fdri_function *f);
void fdri_known_start(struct fdri_thread *t);                  /* also: forget everything */
void fdri_known_drop(struct fdri_thread *t, uint32_t row_off); /* that row gets another key */
void fdri_known_add(struct fdri_thread *t, const struct fdri_function *f, fdr_region region, const struct fdr_row *row);

/* ---- rules.c ---- */
struct fdri_rule {
    uint8_t mode;
    uint32_t count;
    uint64_t min_ns;
};
enum { FDRI_RULE_NONE = 0, FDRI_RULE_EXCLUDE, FDRI_RULE_FIRST, FDRI_RULE_EVERY, FDRI_RULE_MIN, FDRI_RULE_COUNTERS };
/* edges: counters are read at the edges of calls; edge_regions: of which. */
void fdri_rules_load(const char *path, bool edges, const char *edge_regions);
void fdri_rules_define(uint32_t region, const char *name, const char *file, bool by_address);
const struct fdri_rule *fdri_rule_of(uint32_t region); /* NULL: none */
bool fdri_rules_any(void);
bool fdri_rules_phases(void);
bool fdri_rules_phase(const char *name);

/* ---- watch.c, watch_seen.c: triggers on what is recorded ---- */
/* Atomic: calls that took at least this long may be wanted by a trigger; UINT64_MAX: none is set. */
extern uint64_t fdri_watch_ticks __attribute__((visibility("hidden"))),
    fdri_watch_ns __attribute__((visibility("hidden")));
extern uint32_t fdri_watch_classes __attribute__((visibility("hidden"))); /* atomic: bit per class of points */
void fdri_watch_call(struct fdri_thread *t, uint32_t region, uint64_t duration, uint64_t tick);
void fdri_watch_point(struct fdri_thread *t, uint32_t key, uint32_t type, uint64_t value, const uint64_t *field,
                      uint32_t fields, uint64_t tick);
void fdri_watch_define(enum fdr_def_kind kind, uint32_t id, const char *name, const void *payload, uint32_t bytes);
bool fdri_watch_regions(void);           /* is there a trigger on regions? */
void fdri_watch_start(const char *text); /* FDR_TRIGGERS */
void fdri_watch_stop(void);
void fdri_watch_fork(int phase);           /* as fdri_define_fork */
uint64_t fdri_watch_poll(uint64_t now_ns); /* watch_poll.c: in the dumper thread */

/* ---- grace.c ---- */
/* Calls what(with) in a thread of its own when no thread reads any more what was read before. */
void fdri_after_grace(void (*what)(void *), void *with);

/* ---- rewind.c ---- */
/* The call of level v, at that depth, has ended: one with FDR_LEVEL_MARKED. */
void fdri_rewind_ended(struct fdri_thread *t, const struct fdr_level *v, uint32_t depth, uint64_t tick);
void fdri_rewind_release(struct fdri_thread *t);
/* So many records of p were taken away. */
void fdri_rewind_account(struct fdri_thread *t, const struct fdr_part *p, uint64_t forgotten);
/* Calls that began in this tick and are open were numbered after some that may be gone: their records say their
 * number. */
void fdri_number_open(struct fdri_thread *t);

/* Two fields that stand beside each other, with one store: left by longjmp in between, the end of one stretch would
 * stand with the beginning of another, and what is between them is others'. */
static inline void fdri_set_stretch(struct fdr_location *l, size_t at, uint32_t off, uint32_t end)
{
    const uint32_t both[2] = {off, end};
    memcpy((uint8_t *)l + at, both, sizeof both);
    fdr_signal_fence();
}
static_assert(offsetof(struct fdr_location, meta_end) == offsetof(struct fdr_location, meta_off) + 4 &&
                  offsetof(struct fdr_location, slab_end) == offsetof(struct fdr_location, slab_off) + 4,
              "written at once");

/* ---- pages.c ---- */
/* Memory for an arena, of a file or anonymous (-1); MAP_FAILED with errno. */
void *fdri_pages_map(uint64_t bytes, int fd);
void fdri_pages_large(void *memory, uint64_t bytes, int fd); /* as much of it as the kernel gives at once */
void fdri_pages_unmap(void);                                 /* the newest one */
void fdri_pages_empty(void); /* likewise; it stays mapped for who works there, and nothing is in it */

/* ---- arena.c ---- */
uint64_t fdri_memory_limit(void); /* bytes this process may use at most */
int fdri_arena_make(struct fdri_recorder *r);
void fdri_arena_publish(struct fdri_recorder *r); /* the file gets its name: what is in it can be read */
void fdri_arena_drop(struct fdri_recorder *r, bool unlink_live);
/* Its memory stays as it is: somebody is still in it. */
void fdri_arena_leave(struct fdri_recorder *r, bool unlink_live);

/* ---- life.c ---- */
/* What a file of at most bytes - 1 holds, as text; "" where it cannot be read. Its length. */
size_t fdri_read_text(const char *path, char *text, size_t bytes);
struct fdri_life fdri_life_now(void);
bool fdri_life_differs(const struct fdri_life *now); /* from the life the recording began in */
void fdri_life_look(void);                /* begins a new recording where it does. Not in the dumper thread */
uint64_t fdri_life_poll(uint64_t now_ns); /* the same in the dumper thread; when to be called again */
void fdri_life_suspect(void);             /* it should be looked at soon. Async-signal-safe */

/* ---- alone.c ---- */
/* Are threads of fdr's own the only ones left? Then the program is over. In the dumper thread; when to be called
 * again. */
uint64_t fdri_alone_poll(uint64_t now_ns);
void fdri_alone_suspect(void); /* the first thread leaves: look soon */

/* ---- start.c ---- */
void fdri_begin_anew(void);             /* a new recording, where the process was restored; the old one's file stays */
void fdri_note_exit(bool attaching);    /* FDR_CRASH=exit: what exit() is given */
uint64_t fdri_ns_to_ticks(uint64_t ns); /* a duration */

#endif
