/* SPDX-License-Identifier: MIT */
/* The state of a thread that records. Its fast path works on this; only its owner writes it. */
#ifndef FDRI_RECORDER_THREAD_THREAD_STATE_H
#define FDRI_RECORDER_THREAD_THREAD_STATE_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format/arena/arena.h"
#include "recorder/thread/row_cursor.h"
#include "recorder/thread/search_pause.h"

struct fdri_names_cached;
struct fdri_record_iterations;
struct fdri_record_mark;
struct fdri_record_ruled;

#define FDRI_THREAD_GATE_CLOSED 1u /* in fdri_arena_level.part[]: the gate is closed */

enum { FDRI_THREAD_SPARE_CELLS = 3, FDRI_THREAD_NO_TRAFFIC = 1 };
enum { FDRI_LATER_EPOCH = 1, FDRI_LATER_BIN = 2, FDRI_LATER_ADOPT = 4 }; /* later.c, try_call.c */
struct fdri_thread {
    uint32_t recording; /* number of the recording that this state belongs to */
    /* `recording` if `exact` is, and no region of this thread has a rule, so that a leave may take the fastest path;
     * else 0 */
    uint32_t unrounded_recording;
    uint32_t unruled;    /* `recording` if no region of this thread has a rule; else 0: ruled_calls.h */
    uint32_t slow_depth; /* an enter at this depth or deeper takes the slow path */
    struct fdri_arena_location *loc;
    struct fdri_arena_level *top; /* level of the innermost open call; level 0 if there is none */
    uint8_t *base;
    /* The row's sum before the newest leave added to it: unfinished_call.c. */
    uint64_t sum_before;
    uint32_t *row_slot;                      /* slots of the table of rows */
    struct fdri_names_cached *address_cache; /* code addresses called recently, by hash */
    uint32_t row_shift;
    uint32_t address_cache_shift;
    /* fdri_names_address_version when `address_cache` was filled. If they differ, nothing in it is valid. */
    uint32_t address_cache_version;
    uint32_t shift;
    uint64_t min_ticks;         /* shorter calls are not stored */
    uint32_t exact;             /* `recording` if the clock is the counter and the unit is one tick; else 0 */
    uint32_t rounded_recording; /* the same if the unit is more than one tick */
    uint64_t edge[3];           /* edges of the bands, in stored ticks */
    uint64_t to_ns;             /* 32.32: full ticks of this location to ns */
    bool no_event_yet;          /* no event yet; the first one decides the unit of time */
    bool ticks;                 /* the unit is the tick counter's; else ns */
    bool fast_clock;            /* it is, without an offset: the fast path may run */
    uint32_t traffic_off;       /* struct fdri_thread_traffic; 0: none so far; FDRI_THREAD_NO_TRAFFIC: no memory */
    uint64_t clock_offset;      /* added to every reading of a clock that stepped back */
    uint64_t presented_tick;    /* newest tick that the caller gave (`_at`) */
    uint32_t no_room_recording; /* the recording in which this thread found no room */
    uint32_t no_room_events;    /* events since then */
    uint32_t depth_limit;       /* FDR_DEPTH */
    uint32_t untimed;           /* open calls within depth_limit that a pause left untimed */
    uint32_t phases;            /* open phases, of those that rules name */
    uint32_t pauses;            /* fdr_pause without its fdr_resume */
    bool wants_phase;           /* paused while no such phase is open */
    /* Strategy `first`: the first block for the calls that are open when storage stops; 0: none yet. */
    uint32_t frozen_off;
    /* Number of levels beyond depth_limit: an enter there is only counted. 0: it takes the slow path. */
    uint32_t counted_levels;
    /* Stack address at the first open call that found no level. */
    uint64_t overflow_sp;
    struct fdri_arena_part *victim; /* the partition that reductions take from */
    uint8_t victim_step, victim_reason;
    /* Strategy `last`: the partition whose bins below the floor go next; 0: none is left. */
    uint32_t floor_part_off;
    uint32_t reduction_line; /* line of the newest step in the log of reductions */
    /* Telescope: only bins of the victim that ended by this time may still go. */
    uint64_t victim_limit;
    /* The victim's place in the order by worth, unless the order has changed since; order_*: that order. */
    uint32_t victim_rank;
    uint32_t victim_bins_left, order_off, order_count, order_room;
    struct fdri_thread_walk walk;
    uint32_t order_sorted;               /* places that an unfinished sort has put in order; 0: none */
    bool order_incomplete;               /* a partition may be missing from it, for lack of memory */
    uint32_t live_parts;                 /* partitions whose band was not joined to another */
    uint32_t bins_ready;                 /* first of the whole bins given back ahead; 0: none */
    uint32_t prefetch_off, prefetch_end; /* the part of it that is still to be prefetched */
    uint32_t run_off;                    /* struct fdri_bins_run: given back next time; 0: none yet */
    /* Telescope: the partition whose new bin was opened for a record that is not in it yet; NULL: none. */
    const struct fdri_arena_part *awaiting_record;
    struct fdri_record_mark *rewind_mark;
    /* regions with rules and muted ones, by hash; NULL: none so far, or no memory */
    struct fdri_record_ruled *ruled;
    uint32_t ruled_shift, ruled_version, ruled_misses;
    const struct fdri_arena_level *ruled_around; /* the top call when `ruled_level`, which lies inside, was looked up */
    struct fdri_arena_level *ruled_level;
    uint32_t kept_levels; /* levels of the shadow stack; 0 while calls without a level are open */
    uint64_t pause_ticks; /* FDRI_THREAD_PAUSE_NS */
    /* The partition that took the newest bin: searches ahead look for bins of its kind. */
    struct fdri_arena_part *last_served;
    /* FDRI_LATER_*: work that a later call may do, unless the next call needs it done. */
    uint8_t deferred;
    uint32_t mutes_seen; /* fdri_names_mutes_version when the tables below were made to agree with it */
    /* A patient search for its first bin found none; further searches are short. */
    bool first_search_failed;
    /* ns, monotonic: while it attaches it waits for others until then; afterwards it takes what it finds. */
    uint64_t attach_deadline_ns;
    /* Sleeping locations had many free pieces at its last look: it uses these before it claims more. */
    bool many_adoptable;
    uint32_t address_cache_misses; /* since the table `address_cache` was made */
    uint32_t pinned_units;         /* bins of pinned partitions, in units of 512 bytes */
    bool pinning_done;             /* FDR_PIN will pin no more partitions */
    /* 1: partitions are being pinned; 2: the same, before the time of FDR_PIN is over; 0: they are not. */
    uint8_t pinning;
    bool times_given; /* the caller gives the times (`_at`) */
    /* The next call that enters in a tick of its own pins the partitions. */
    bool pinning_due;
    struct fdri_thread_eviction_hand eviction_hand;
    struct fdri_thread_returned_seen returned_seen[FDRI_THREAD_RETURNED_SEEN];
    /* Offset of the location that just gave nothing; it is asked last. */
    uint32_t gave_nothing_off;
    uint32_t search_barriers; /* memory barriers that the present search has cost others */
    struct fdri_thread_search room_search, meta_search, level_search;
    /* Unused cells of totals: one for each size, in steps of 64 bytes; 0: none. */
    uint32_t spare_cells[FDRI_THREAD_SPARE_CELLS];
    uint64_t stack_end; /* highest address of the thread's own stack */
    /* abandoned_calls.c: the most bytes that stack can have, if stack_known; 0: unknown. */
    uint64_t stack_bytes;
    bool stack_known;
    uint8_t stack_lookups_failed;
    /* Stored tick + 1 of the newest record that names a parent in its own tick. */
    uint64_t tie_tick_end;
    struct fdri_record_iterations *iterations; /* the rule `iterations`; NULL: none so far */
    struct fdri_record_mark *iteration_mark;
    uint32_t iteration_depth; /* of the open iteration; 0: none */
    uint32_t marks_set;
};
/* The fast paths of enter and leave touch two cache lines: one that every call reads, one with the units of a leave. */
static_assert(offsetof(struct fdri_thread, recording) == 0 && offsetof(struct fdri_thread, slow_depth) == 12 &&
                  offsetof(struct fdri_thread, loc) == 16 && offsetof(struct fdri_thread, top) == 24 &&
                  offsetof(struct fdri_thread, base) == 32 && offsetof(struct fdri_thread, row_slot) == 48 &&
                  offsetof(struct fdri_thread, address_cache) == 56,
              "first line: who and where");
static_assert(offsetof(struct fdri_thread, row_shift) == 64 && offsetof(struct fdri_thread, shift) == 76 &&
                  offsetof(struct fdri_thread, min_ticks) == 80 && offsetof(struct fdri_thread, edge) == 96 &&
                  offsetof(struct fdri_thread, to_ns) == 120,
              "second line: units and limits");
extern __thread struct fdri_thread fdri_record_self __attribute__((visibility("hidden")));
extern __thread struct fdri_thread fdri_record_lane __attribute__((visibility("hidden")));
/* Above 0 while this thread holds locks of fdr or asks for memory. If an instrumented allocator calls back from there,
 * its event is recorded only if that needs neither lock nor memory. */
extern __thread uint32_t fdri_thread_inside __attribute__((visibility("hidden")));

#endif
