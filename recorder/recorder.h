/* SPDX-License-Identifier: MIT */
/* What the files of recorder/ share, beside state.h and memory.h.
 *
 *   call.c        enter and leave                               call_slow.c   the same, what is rare; stack.h: both
 *   start.c       init, finalize, fork                          config.c      text to settings
 *   arena.c       where the arena lives                         pages.c       its mapping, in large pages
 *   usage.c       sums for the caller                           later.c       what a call leaves to those behind it
 *   misspelt.c    names that are nearly a setting's             modules.c     where code lies: what is loaded
 *   attach.c      threads come and go                           location.c    what a thread records into
 *   define.c      definitions                                   note.c        facts about the run
 *   address.c     code address to region                        known.c       the same, per thread
 *   point.c       events without duration                       gone.c        calls that a longjmp left
 *   store.c       partitions: a place for a record              meta.c        memory for a location's accounts
 *   aside.c       the first moments, pinned                     join.c        fewer bands in little memory
 *   totals.c      exact totals per region                       rows_full.c   which go when there is no room
 *   totals_left.c after a longjmp out of an enter or a leave
 *   reduce.c      gives memory back; reduce.h: its strategies   ready.c       bins given back ahead
 *   cyclic.c      strategy `last`                               first.c       strategy `first`
 *   chain_whole.c strategy `whole`                              telescope.c   strategy `telescope`
 *   epoch.c       its epochs                                    epoch_rows.c, epoch_walk.c  their totals
 *   share.c       who holds more than others                    share_choose.c  what of it they give
 *   claim.c       bins from other locations; share.h: of these  ended.c       memory of threads that ended
 *   fold.c        their accounts added to another's             rewind.c      forget an iteration
 *   rules.c       include/exclude rules, phases                 watch*.c      triggers on what is recorded
 *   clock.c       a clock that steps back                       grace.c       until nobody reads what was replaced
 *   life.c        restored from a checkpoint?                   alone.c       only threads of fdr's own are left
 *   sample.c      samples, thinned as memory runs out           sampled.c     streams of samples begin and end
 *   reading.c     readings of counters, thinned likewise        skipped.c     open calls that rules keep out
 *   order.c       partitions in order of worth                  refused.c     open calls that found no level
 *   *.pml         models of what lies beside them
 *
 * A thread records into its location through struct fdri_thread (thread-local, owner only). The owner brackets each
 * operation with location.busy; a signal handler that finds it set records into the thread's lane, a location of its
 * own. Between the fences inside a bracket every store order is chosen so that a handler, or a reader after a kill,
 * sees either the old or the new state. */
#ifndef FDR_RECORDER_RECORDER_H
#define FDR_RECORDER_RECORDER_H

#include <assert.h>
#include <fdr/fdr.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "recorder/memory.h"
#include "recorder/state.h"

/* ---- attach.c ---- */
/* The thread state an operation may use now: this thread's, its lane when one is under way, or NULL (counted). On
 * success the state's location is marked busy; end with fdri_end. The first event decides whether the location counts
 * in ns (an `_at` event) or in the clock's ticks. */
enum fdri_domain { FDRI_LIVE, FDRI_NS, FDRI_NO_EVENT };
struct fdri_thread *fdri_begin(enum fdri_domain domain);
struct fdri_thread *fdri_begin_attached(void); /* no event; NULL as well where this thread is not attached */
/* Mends this thread's accounts, where a handler left an operation of it in the middle. here: in the frame of the
 * function that the program called. */
void fdri_settle_own(uint64_t here);
static inline void fdri_end(struct fdri_thread *t)
{
    fdr_store_release(&t->loc->busy, 0); /* R:busy - pairs with A:busy in start.c: finalize sees the record whole */
}
bool fdri_attached(void); /* attaches this thread if need be */
/* What this thread says of itself while there is no room for it: it holds when some is found. NULL: it has room, or
 * nothing records. */
struct fdri_said *fdri_said(void);
uint32_t fdri_passing(void); /* threads, and streams of samples, that are coming or going, or fire a trigger */
/* False: recording `number` is over. True: it stays until fdri_passed. Not to be left by longjmp. */
bool fdri_pass(uint32_t number);
void fdri_passing_fork(void); /* in the child: who was coming or going is not there */
void fdri_passed(void);
/* With the first recording of the process, before anybody attaches: an early key is one of the first 32, for which
 * glibc allocates nothing, so a handler may be what attaches a thread. */
void fdri_attach_once(void);
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
void fdri_set_pause(struct fdri_thread *t);                    /* and first whether it is paused */

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
/* The newest of this region that is open is inside of the call of which depth? FDRI_NOT_SKIPPED: there is none. Drops
 * those that a jump has left, as far as one can tell. */
uint32_t fdri_skipped_find(struct fdri_thread *t, uint32_t region);
/* It ends, and those that began in it; the call found is the top one. */
void fdri_skipped_leave(struct fdri_thread *t, uint32_t region);
/* The calls from this depth on end. */
void fdri_skipped_close(struct fdri_thread *t, uint32_t from);

/* ---- refused.c ---- */
/* A call deeper than the levels held begins: how many are open then? (location.overflow as it is to be) */
uint32_t fdri_refused_enter(const struct fdri_thread *t, uint32_t region);
/* How many are open behind the leave of the newest of this region? Less than are now, unless none of them is. */
uint32_t fdri_refused_leave(const struct fdri_thread *t, uint32_t region);

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

/* ---- totals.c ---- */
#define FDRI_KEY(kind, id) ((uint32_t)(id) | (uint32_t)(kind) << 24)
struct fdr_row *fdri_row_slow(struct fdri_thread *t, uint32_t key);
static inline struct fdr_row *fdri_row(struct fdri_thread *t, uint32_t key)
{
    uint32_t off = t->row_slot[key * 0x9E3779B1u >> t->row_shift];
    struct fdr_row *r = fdri_off(t, off); /* off 0 is the superblock, whose first word is no key */
    return FDR_LIKELY(r->key == key) ? r : fdri_row_slow(t, key);
}
/* Sees to it that there is a row for `key`, with buckets [from, end) of its histogram, if totals may grow by that at
 * all; false: they may, but there is no memory now. */
bool fdri_row_ahead(struct fdri_thread *t, uint32_t key, uint32_t from, uint32_t end);
bool fdri_rows_start(struct fdri_thread *t);
enum { FDRI_ROWS_AHEAD = 16 };               /* asked of memory while those before them are looked at */
void fdri_rows_again(struct fdri_thread *t); /* an operation may have been left while the table was replaced */
/* A row for `key` in a cell of zeros, or in that of a row without calls. */
struct fdr_row *fdri_row_place(struct fdri_thread *t, uint32_t off, uint32_t key);
struct fdr_row *fdri_row_rename(struct fdri_thread *t, uint32_t off, uint32_t key); /* while handlers wait */
bool fdri_rows_full(struct fdri_thread *t); /* the table: searches would take long */
/* The row's histogram has room for buckets [from, end) as well; false: no room. */
bool fdri_histogram_cover(struct fdri_thread *t, struct fdr_row *r, uint32_t from, uint32_t end);
void fdri_histogram_drop(struct fdri_thread *t, struct fdr_row *r);
/* Makes room for that bucket, if there is any. */
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
/* Off of that bucket's counter; 0: there is none. */
static inline uint32_t fdri_histogram_counter(struct fdri_thread *t, struct fdr_row *r, uint32_t bucket)
{
    uint64_t word = r->histogram;
    if (FDR_UNLIKELY(bucket - fdr_histogram_first(word) >= fdr_histogram_count(word))) {
        fdri_histogram_slow(t, r, bucket);
        word = r->histogram;
    }
    return word ? (uint32_t)word + bucket * (uint32_t)sizeof(uint64_t) : 0;
}
static inline uint32_t fdri_bucket(uint64_t v) { return 63u ^ (uint32_t)__builtin_clzll(v | 1); }
/* Adds a value of that type. false: the sum is beyond what it holds; *sum is the bound it would have passed. */
bool fdri_add(uint32_t type, uint64_t *sum, uint64_t value);
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
/* The region of a code address; the name is for rules and triggers only. */
uint32_t fdri_define_function(uint64_t address, uint32_t module, const char *name);
/* A new arena: definitions made before come along with their ids, and then the recording runs. */
void fdri_define_reset(void);
void fdri_define_save(void);      /* before the arena goes */
void fdri_define_end(void);       /* the same, and nothing is defined any more: the recording does not run */
void fdri_define_fork(int phase); /* 0 prepare, 1 parent, 2 child; 3 before 0 in a child that no handler saw */
struct fdri_event_shape {
    uint8_t count;
    uint8_t type[FDR_FIELDS_MAX];
    uint16_t offset[FDR_FIELDS_MAX];
};
const struct fdri_event_shape *fdri_event_shape(uint32_t type);
uint32_t fdri_event_fields(void); /* of the type with the most */
uint32_t fdri_metric_type(uint32_t metric);

/* ---- modules.c ---- */
void fdri_define_modules(void);    /* what is loaded; asks the loader. Signals are blocked, or none may record */
void fdri_modules_reset(void);     /* a new recording */
void fdri_modules_fork(int phase); /* as fdri_define_fork */
uint32_t fdri_modules_look(void);  /* which modules are loaded now; asks the loader. The number of this look */
/* Those that were not loaded any more when it was made. */
void fdri_modules_forget(uint32_t look, void (*forget)(uint64_t from, uint64_t to));
uint32_t fdri_module_of(uint64_t address); /* module definition id, or 0 */

/* ---- note.c ---- */
void fdri_note_reset(void);

/* ---- address.c ---- */
/* Region of a code address, defined on first sight. The thread must be attached. */
fdr_region fdri_address_region(uint64_t address);
extern uint32_t fdri_address_version
    __attribute__((visibility("hidden"))); /* rises when addresses lose their meaning */
void fdri_address_reset(void);
bool fdri_address_room(void);        /* is there memory for one more thread that does? */
void fdri_address_thread(void);      /* this thread begins to look addresses up */
bool fdri_thread_ends(void);         /* its destructors run, or have */
bool fdri_is_reader(void);           /* may it use fdri_read_begin? Not behind the destructor of liburcu's */
void fdri_address_again(void);       /* it may, once more: all signals are blocked, and nothing is under way */
void fdri_address_thread_ends(void); /* called again by each of its destructors that comes round */
void fdri_address_fork(int phase);   /* as fdri_define_fork */

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

/* ---- totals_left.c: an operation was left by longjmp ---- */
/* True: the top call has ended, and is in the totals. It is still on the stack. */
bool fdri_totals_left(struct fdri_thread *t);
/* The call that was about to be entered comes into the totals, if it was presented. The stack is whole again. */
void fdri_totals_entered(struct fdri_thread *t);

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
void fdri_rewind_left(struct fdri_thread *t); /* an operation was left by longjmp */
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
