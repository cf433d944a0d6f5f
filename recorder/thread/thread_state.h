/* SPDX-License-Identifier: MIT */
/* A thread that records: all that its own fast path works on. Written by its owner only. */
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

#define FDRI_THREAD_GATE_CLOSED 1u /* in fdri_arena_level.part[]: storage gate closed */

/* ---- per thread ---- */
/* What a thread saw of the pieces that a location had returned, when there was no whole bin among them. */
enum { FDRI_THREAD_RETURNED_SEEN = 4 };
struct fdri_thread_returned_seen {
    uint32_t of;    /* the location's id */
    uint32_t first; /* of its pieces then; 0: look anew */
    struct fdri_bins_returned left;
    uint32_t failed_log2; /* none of them could be had that was so large; 0: that was not tried */
};
/* Where row_eviction.c looks for a row to give up. Offs; 0: none. */
struct fdri_thread_eviction_hand {
    uint32_t block, index; /* the next row: in this block of the epochs' base, or this slot of the table */
    uint32_t epochs;       /* what block belongs to */
    uint32_t gone;         /* a bit for each key whose calls went to the rest, and for others with the same low bits */
    uint32_t gone_bits;
    uint64_t points_gone; /* the same for metrics, markers and the like: their values are in no total */
    uint64_t few_gone;    /* the same for regions as long as memory held no table of bits */
};
enum { FDRI_THREAD_SPARE_CELLS = 3 };
enum { FDRI_LATER_EPOCH = 1, FDRI_LATER_BIN = 2 }; /* later.c */
/* How searches for memory went: memory.h. */
struct fdri_thread_search {
    uint32_t failed; /* one after the other, up to now */
    uint32_t pause;  /* so many requests are not followed by one */
    int32_t credit;  /* records */
    uint64_t until;  /* a pause ends then at the latest; ticks of the location */
};
/* The rows that an epoch which is over has not got yet: epoch_walk.c. */
struct fdri_thread_walk {
    uint32_t block, at; /* where in the base the next one stands; block 0: none is left */
    uint32_t last, end; /* where those that there were at the cut end */
    uint32_t step;      /* so many at a time */
    uint32_t kept;      /* off of what those were that changed since */
    bool heap;
};
struct fdri_thread {
    uint32_t recording; /* number of the recording this belongs to */
    /* the same where a leave may take the fastest path: the counter as it is, no unit of time above it */
    uint32_t plain;
    uint32_t rounded; /* the same with such a unit */
    uint32_t soft;    /* an enter at this depth or deeper takes the slow path */
    struct fdri_arena_location *loc;
    struct fdri_arena_level *top; /* level of the innermost open call; level 0 when there is none */
    uint8_t *base;
    uint64_t sum_before;             /* of the row of the call that ends, or has ended last: unfinished_call.c */
    uint32_t *row_slot;              /* slots of the row table */
    struct fdri_names_cached *known; /* code addresses called lately, by hash */
    uint32_t row_shift;
    uint32_t known_shift;
    uint32_t known_version; /* of fdri_names_address_version; else nothing here is believed */
    uint32_t shift;
    uint64_t min_ticks;      /* calls shorter are not stored */
    uint64_t pause_ticks;    /* FDRI_MEMORY_PAUSE_NS */
    uint64_t edge[3];        /* stored ticks */
    uint64_t to_ns;          /* 32.32: full ticks of this location to ns */
    bool fresh;              /* no event yet: the first one decides the unit of time */
    bool ticks;              /* the location's unit is the tick counter's; else ns */
    bool quick;              /* it is, and the counter can be taken as it is: the fast path may */
    uint64_t clock_offset;   /* added to every reading of the clock: it has stepped back */
    uint64_t presented_tick; /* newest tick that came from the caller, not from the clock */
    uint32_t dead_for;       /* recording in which this thread found no room */
    uint32_t dead_since;     /* events since it last looked */
    uint32_t depth_limit;    /* FDR_DEPTH */
    uint32_t untimed;        /* open calls up to there that are only counted: a pause */
    uint32_t phases;         /* open phases that rules name */
    uint32_t pauses;         /* fdr_pause without its fdr_resume */
    bool wants_phase;        /* outside of such phases it is paused */
    uint32_t frozen_off;     /* strategy `first`: the first block for what is open when storing stops; 0: none yet */
    uint32_t counted_levels; /* kept beyond depth_limit: what is entered there is only counted; 0: look closer */
    uint64_t overflow_sp;    /* stack address at the first call deeper than the stack that is kept */
    struct fdri_arena_part *victim; /* what reductions are eating */
    uint8_t victim_step, victim_reason;
    uint32_t drain; /* strategy `last`: the partition whose bins below the floor go next; 0: none are left */
    uint32_t line;  /* the ledger's line of the newest step */
    /* telescope: bins of the victim that ended by then may still go; partitions by worth */
    uint64_t victim_limit;
    uint32_t victim_at; /* where it stands among these, if nothing has moved since */
    uint32_t victim_left, order_off, order_count, order_room;
    struct fdri_thread_walk walk;
    uint32_t order_sorted;        /* places that a sort under way has put in order, 0: none is */
    bool order_lacks;             /* memory did not hold a place for one, or nobody knows */
    uint32_t live_parts;          /* whose band was not joined to another one */
    uint32_t ready;               /* the first of the whole bins that were given back ahead; 0: none are left */
    uint32_t fetch_at, fetch_end; /* what of that one is still to be fetched into the cache */
    uint32_t run_off;             /* struct fdri_bins_run: what may be given back next time; 0: none yet */
    /* telescope: its new bin waits for the record it was opened for; NULL: none does */
    const struct fdri_arena_part *opened;
    struct fdri_record_mark *mark;
    struct fdri_jumps_excluded *skipped; /* open calls that rules keep out; NULL: none were */
    struct fdri_arena_part *asker;       /* whose the newest bin is: what is looked for ahead is for the like */
    uint8_t later;          /* FDRI_LATER_*: what a call behind may do, if it is not the next one that needs it */
    bool sought;            /* its first bin was: others were asked for long */
    uint64_t patient_until; /* ns, monotonic: coming, it waits for others; from then on it takes what is there */
    bool many_wait;         /* pieces of who sleeps, when it last looked: these serve before it claims more */
    bool no_more_skipped;   /* memory did not hold a longer list of them */
    uint32_t known_misses;  /* since the table was made */
    uint32_t aside_units;   /* 512 bytes each: bins set aside by FDR_PIN */
    bool aside_done;        /* they were, or nothing will be */
    uint8_t setting_aside;  /* 1: they are being, 2: before their time was over; 0: they are not */
    bool times_given;       /* its times are the caller's (`_at`), whatever the recording's clock is */
    bool aside_due;         /* they will be, by the next call that enters in a tick of its own */
    struct fdri_thread_eviction_hand hand;
    struct fdri_thread_returned_seen looked[FDRI_THREAD_RETURNED_SEEN];
    uint32_t passed_over; /* off of the location that gave nothing just now: another is asked before */
    uint32_t barriers;    /* that others had to pass for the bin or block that is looked for */
    struct fdri_thread_search room_search, meta_search, level_search;
    /* cells of totals not in use, one of each size by 64 bytes; 0: none */
    uint32_t spare_cells[FDRI_THREAD_SPARE_CELLS];
    uint64_t stack_end;   /* of the thread's own stack */
    uint64_t stack_bytes; /* abandoned_calls.c: how large it can be, once that was asked; 0: nobody knows */
    bool stack_known;
    uint8_t asked_in_vain;
    uint64_t tied_to; /* stored tick + 1 of the newest record that names a parent in its own tick */
};
/* Enter and leave on the fast path touch two cache lines of it: what each call reads, and what a leave rounds by. */
static_assert(offsetof(struct fdri_thread, recording) == 0 && offsetof(struct fdri_thread, soft) == 12 &&
                  offsetof(struct fdri_thread, loc) == 16 && offsetof(struct fdri_thread, top) == 24 &&
                  offsetof(struct fdri_thread, base) == 32 && offsetof(struct fdri_thread, row_slot) == 48 &&
                  offsetof(struct fdri_thread, known) == 56,
              "first line: who and where");
static_assert(offsetof(struct fdri_thread, row_shift) == 64 && offsetof(struct fdri_thread, shift) == 76 &&
                  offsetof(struct fdri_thread, min_ticks) == 80 && offsetof(struct fdri_thread, edge) == 96 &&
                  offsetof(struct fdri_thread, to_ns) == 120,
              "second line: units and limits");
/* Pauses and phases nest; an end without a begin is nothing. */
static inline void fdri_thread_nest(uint32_t *open, bool begin)
{
    if (begin) ++*open;
    else if (*open) --*open;
}
/* What a thread says of itself while there is no room for it. */
struct fdri_thread_wishes {
    uint32_t recording;      /* the number of the recording in which it was said */
    uint32_t pauses, phases; /* as those of a thread */
    char name[32];           /* "": nothing was said */
};
extern __thread struct fdri_thread fdri_record_self __attribute__((visibility("hidden")));
extern __thread struct fdri_thread fdri_record_lane __attribute__((visibility("hidden")));
static inline void *fdri_thread_at(const struct fdri_thread *t, uint32_t off) { return t->base + off; }
static inline uint32_t fdri_thread_offset_of(const struct fdri_thread *t, const void *p)
{
    return (uint32_t)((const uint8_t *)p - t->base);
}
/* Level d of the kept stack; d <= fdri_arena_levels_in(level_blocks). */
static inline struct fdri_arena_level *fdri_thread_level(const struct fdri_thread *t, uint32_t depth)
{
    if (depth == 0) return fdri_thread_at(t, t->loc->level0_off);
    struct fdri_arena_levels_block *b = fdri_thread_at(t, t->loc->levels_off[fdri_arena_level_block(depth)]);
    return &b->level[fdri_arena_level_entry(depth)];
}
/* Now, in the location's own unit. */
static inline uint64_t fdri_thread_tick_live(const struct fdri_thread *t)
{
    return (FDRI_LIKELY(t->ticks) ? fdri_clock_ticks() : fdri_clock_ns(CLOCK_MONOTONIC)) + t->clock_offset;
}
/* This thread is where locks are held or memory is asked for. An instrumented allocator that comes back from there is
 * not recorded unless that needs neither. */
extern __thread uint32_t fdri_thread_inside __attribute__((visibility("hidden")));

#endif
