/* SPDX-License-Identifier: MIT */
/* The state of a thread that records. Its fast path works on this; only its owner writes it. */
#ifndef FDRI_RECORDER_THREAD_THREAD_STATE_H
#define FDRI_RECORDER_THREAD_THREAD_STATE_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bits.h"
#include "base/clock.h"
#include "bins/pieces.h"
#include "format/arena/arena.h"

struct fdri_names_cached;
struct fdri_record_mark;

#define FDRI_THREAD_GATE_CLOSED 1u /* in fdri_arena_level.part[]: the gate is closed */

/* The returned pieces of a location, as a thread last saw them when no whole bin was among them. */
enum { FDRI_THREAD_RETURNED_SEEN = 4 };
struct fdri_thread_returned_seen {
    uint32_t of;    /* the location's id */
    uint32_t first; /* the first of its pieces then; 0: look again */
    struct fdri_bins_returned left;
    /* No piece of 1 << failed_log2 bytes could be had; 0: not tried. */
    uint32_t failed_log2;
};
/* Where row_eviction.c looks for the next row to evict, and which regions it evicted. Offsets; 0: none. */
struct fdri_thread_eviction_hand {
    /* The next row: in this block of the epochs' base, or, without epochs, this slot of the table. */
    uint32_t block, index;
    uint32_t epochs; /* the epochs that `block` belongs to */
    /* The table of bits: one is set for each region whose calls went to the row [rest]. Regions with the same low bits
     * share a bit. */
    uint32_t gone;
    uint32_t gone_bits;
    /* The same for points: metrics, markers and others. No total contains their values. */
    uint64_t points_gone;
    uint64_t few_gone; /* the same for regions while memory held no table of bits */
};
enum { FDRI_THREAD_SPARE_CELLS = 3 };
enum { FDRI_LATER_EPOCH = 1, FDRI_LATER_BIN = 2 }; /* later.c */
/* The results of past searches for memory: memory.h. */
struct fdri_thread_search {
    uint32_t failed; /* failed searches in a row, up to now */
    /* This many of the next requests do not search. */
    uint32_t pause;
    int32_t credit; /* in records */
    uint64_t until; /* the latest end of a pause; ticks of the location */
};
/* The rows that an epoch has still to get after its end: epoch_walk.c. */
struct fdri_thread_walk {
    /* Place of the next row in the epochs' base; block 0: no row is left. */
    uint32_t block, at;
    /* End of the rows that existed when the epoch ended. */
    uint32_t last, end;
    uint32_t step; /* rows taken in one step */
    /* Offset of the former values of rows that changed since. */
    uint32_t kept;
    bool heap;
};
struct fdri_thread {
    uint32_t recording; /* number of the recording that this state belongs to */
    /* `recording` if the clock is the counter and the unit is one tick, so that a leave may take the fastest path; else
     * 0 */
    uint32_t plain;
    uint32_t rounded; /* the same if the unit is more than one tick */
    uint32_t soft;    /* an enter at this depth or deeper takes the slow path */
    struct fdri_arena_location *loc;
    struct fdri_arena_level *top; /* level of the innermost open call; level 0 if there is none */
    uint8_t *base;
    /* The row's sum before the newest leave added to it: unfinished_call.c. */
    uint64_t sum_before;
    uint32_t *row_slot;              /* slots of the table of rows */
    struct fdri_names_cached *known; /* code addresses called recently, by hash */
    uint32_t row_shift;
    uint32_t known_shift;
    /* fdri_names_address_version when `known` was filled. If they differ, nothing in `known` is valid. */
    uint32_t known_version;
    uint32_t shift;
    uint64_t min_ticks;      /* shorter calls are not stored */
    uint64_t pause_ticks;    /* FDRI_MEMORY_PAUSE_NS */
    uint64_t edge[3];        /* edges of the bands, in stored ticks */
    uint64_t to_ns;          /* 32.32: full ticks of this location to ns */
    bool fresh;              /* no event yet; the first one decides the unit of time */
    bool ticks;              /* the unit is the tick counter's; else ns */
    bool quick;              /* it is, without an offset: the fast path may run */
    uint64_t clock_offset;   /* added to every reading of a clock that stepped back */
    uint64_t presented_tick; /* newest tick that the caller gave (`_at`) */
    uint32_t dead_for;       /* the recording in which this thread found no room */
    uint32_t dead_since;     /* events since then */
    uint32_t depth_limit;    /* FDR_DEPTH */
    uint32_t untimed;        /* open calls within depth_limit that a pause left untimed */
    uint32_t phases;         /* open phases, of those that rules name */
    uint32_t pauses;         /* fdr_pause without its fdr_resume */
    bool wants_phase;        /* paused while no such phase is open */
    /* Strategy `first`: the first block for the calls that are open when storage stops; 0: none yet. */
    uint32_t frozen_off;
    /* Number of levels beyond depth_limit: an enter there is only counted. 0: it takes the slow path. */
    uint32_t counted_levels;
    /* Stack address at the first open call that found no level. */
    uint64_t overflow_sp;
    struct fdri_arena_part *victim; /* the partition that reductions take from */
    uint8_t victim_step, victim_reason;
    /* Strategy `last`: the partition whose bins below the floor go next; 0: none is left. */
    uint32_t drain;
    uint32_t line; /* line of the newest step in the log of reductions */
    /* Telescope: only bins of the victim that ended by this time may still go. */
    uint64_t victim_limit;
    /* The victim's place in the order by worth, unless the order has changed since; order_*: that order. */
    uint32_t victim_at;
    uint32_t victim_left, order_off, order_count, order_room;
    struct fdri_thread_walk walk;
    uint32_t order_sorted;        /* places that an unfinished sort has put in order; 0: none */
    bool order_lacks;             /* a partition may be missing from it, for lack of memory */
    uint32_t live_parts;          /* partitions whose band was not joined to another */
    uint32_t ready;               /* first of the whole bins given back ahead; 0: none */
    uint32_t fetch_at, fetch_end; /* the part of it that is still to be prefetched */
    uint32_t run_off;             /* struct fdri_bins_run: given back next time; 0: none yet */
    /* Telescope: the partition whose new bin was opened for a record that is not in it yet; NULL: none. */
    const struct fdri_arena_part *opened;
    struct fdri_record_mark *mark;
    struct fdri_jumps_excluded *skipped; /* open calls that rules exclude; NULL: none so far */
    /* The partition that took the newest bin: searches ahead look for bins of its kind. */
    struct fdri_arena_part *asker;
    /* FDRI_LATER_*: work that a later call may do, unless the next call needs it done. */
    uint8_t later;
    /* A patient search for its first bin found none; further searches are short. */
    bool sought;
    /* ns, monotonic: while it attaches it waits for others until then; afterwards it takes what it finds. */
    uint64_t patient_until;
    /* Sleeping locations had many free pieces at its last look: it uses these before it claims more. */
    bool many_wait;
    bool no_more_skipped;  /* memory held no longer list in `skipped` */
    uint32_t known_misses; /* since the table `known` was made */
    uint32_t aside_units;  /* bins set aside by FDR_PIN, in units of 512 bytes */
    bool aside_done;       /* FDR_PIN has set aside all that it will */
    /* 1: bins are being set aside; 2: the same, before the time of FDR_PIN; 0: they are not. */
    uint8_t setting_aside;
    bool times_given; /* the caller gives the times (`_at`) */
    /* The next call that enters in a tick of its own sets bins aside. */
    bool aside_due;
    struct fdri_thread_eviction_hand hand;
    struct fdri_thread_returned_seen looked[FDRI_THREAD_RETURNED_SEEN];
    /* Offset of the location that just gave nothing; it is asked last. */
    uint32_t passed_over;
    uint32_t barriers; /* memory barriers that the present search has cost others */
    struct fdri_thread_search room_search, meta_search, level_search;
    /* Unused cells of totals: one for each size, in steps of 64 bytes; 0: none. */
    uint32_t spare_cells[FDRI_THREAD_SPARE_CELLS];
    uint64_t stack_end; /* highest address of the thread's own stack */
    /* abandoned_calls.c: the most bytes that stack can have, if stack_known; 0: unknown. */
    uint64_t stack_bytes;
    bool stack_known;
    uint8_t asked_in_vain;
    /* Stored tick + 1 of the newest record that names a parent in its own tick. */
    uint64_t tied_to;
};
/* The fast paths of enter and leave touch two cache lines: one that every call reads, one with the units of a leave. */
static_assert(offsetof(struct fdri_thread, recording) == 0 && offsetof(struct fdri_thread, soft) == 12 &&
                  offsetof(struct fdri_thread, loc) == 16 && offsetof(struct fdri_thread, top) == 24 &&
                  offsetof(struct fdri_thread, base) == 32 && offsetof(struct fdri_thread, row_slot) == 48 &&
                  offsetof(struct fdri_thread, known) == 56,
              "first line: who and where");
static_assert(offsetof(struct fdri_thread, row_shift) == 64 && offsetof(struct fdri_thread, shift) == 76 &&
                  offsetof(struct fdri_thread, min_ticks) == 80 && offsetof(struct fdri_thread, edge) == 96 &&
                  offsetof(struct fdri_thread, to_ns) == 120,
              "second line: units and limits");
/* Pauses and phases nest. An end without a begin has no effect. */
static inline void fdri_thread_nest(uint32_t *open, bool begin)
{
    if (begin) ++*open;
    else if (*open) --*open;
}
/* The name, pauses and phases of a thread that has no room yet. */
struct fdri_thread_wishes {
    uint32_t recording;      /* the recording that they are for */
    uint32_t pauses, phases; /* as in struct fdri_thread */
    char name[32];           /* "": not set */
};
extern __thread struct fdri_thread fdri_record_self __attribute__((visibility("hidden")));
extern __thread struct fdri_thread fdri_record_lane __attribute__((visibility("hidden")));
static inline void *fdri_thread_at(const struct fdri_thread *t, uint32_t off) { return t->base + off; }
static inline uint32_t fdri_thread_offset_of(const struct fdri_thread *t, const void *p)
{
    return (uint32_t)((const uint8_t *)p - t->base);
}
/* A level of the shadow stack; depth <= fdri_arena_levels_in(level_blocks). */
static inline struct fdri_arena_level *fdri_thread_level(const struct fdri_thread *t, uint32_t depth)
{
    if (depth == 0) return fdri_thread_at(t, t->loc->level0_off);
    struct fdri_arena_levels_block *b = fdri_thread_at(t, t->loc->levels_off[fdri_arena_level_block(depth)]);
    return &b->level[fdri_arena_level_entry(depth)];
}
/* Now, in the location's unit. */
static inline uint64_t fdri_thread_tick_live(const struct fdri_thread *t)
{
    return (FDRI_LIKELY(t->ticks) ? fdri_clock_ticks() : fdri_clock_ns(CLOCK_MONOTONIC)) + t->clock_offset;
}
/* Above 0 while this thread holds locks of fdr or asks for memory. If an instrumented allocator calls back from there,
 * its event is recorded only if that needs neither lock nor memory. */
extern __thread uint32_t fdri_thread_inside __attribute__((visibility("hidden")));

#endif
