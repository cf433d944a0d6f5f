/* SPDX-License-Identifier: MIT */
/* What the files of recorder/ share.
 *
 *   config.c   text to settings            call.c     enter and leave, the fast path
 *   arena.c    where the arena lives       point.c    events without duration
 *   start.c    init, finalize, fork        store.c    partitions: a place for the next record
 *   attach.c   threads come and go         reduce.c   give memory back, the strategies
 *   define.c   definitions                 totals.c   exact totals per region
 *   address.c  code address to region      rules.c    include/exclude rules, phases
 *   rewind.c   forget an iteration         usage.c    sums for the caller
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

#include "base/atomic.h"
#include "base/bits.h"
#include "base/clock.h"
#include "base/say.h"
#include "bins/bins.h"
#include "format/record.h"
#include "policies/policies.h"

#define FDRI_GATE_CLOSED 1u  /* in fdr_level.part[]: storage gate closed */

/* ---- settings: what the configuration says, parsed ---- */
enum fdri_arena_kind { FDRI_MAPPED, FDRI_ANONYMOUS };
struct fdri_settings {
    bool enable, live_force, final_snapshot, keep_newest;
    uint64_t buffer_bytes;          /* 0: default rule */
    uint32_t bin_bytes;
    enum fdri_arena_kind arena;
    enum fdr_strategy strategy;
    struct fdri_chain chain;
    uint64_t min_duration_ns, resolution_ns, holdoff_ns, disk_bytes;
    uint32_t depth;                 /* calls deeper are only counted */
    bool monotonic;
    int signal;                     /* 0: none */
    uint32_t keep;
    char name[64], live_dir[256], dir[512], filter[512];
    char text[1024];                /* NAME=VALUE lines, for the superblock */
};
void fdri_settings_parse(struct fdri_settings *s, const struct fdr_config *config);

/* ---- the recording ---- */
struct fdri_recorder {
    struct fdri_arena arena;
    struct fdri_settings set;
    uint32_t number;                /* of this recording in this process, from 1 */
    bool ticks;                     /* TSC or counter; else ns */
    uint32_t shift;
    struct fdr_clock_reading start;
    uint64_t ticks_per_second;
    uint64_t tick_to_ns;            /* 32.32 */
    int live_fd;
    char live_path[512];
    uint32_t bin_reserve;           /* bins that serve first bins only */
    uint64_t meta_in_bins;          /* atomic: bytes of meta blocks that lie in pieces of bins */
    bool running;
    int pid;
};
extern struct fdri_recorder fdri_rec;

/* ---- per thread ---- */
struct fdri_thread {
    uint32_t recording;             /* number of the recording this belongs to */
    uint32_t soft;                  /* an enter at this depth or deeper takes the slow path */
    struct fdr_location *loc;
    struct fdr_level *top;          /* level of the innermost open call; level 0 when there is none */
    uint8_t *base;
    uint32_t *row_slot;             /* slots of the row table */
    uint32_t row_shift;
    uint32_t shift;
    uint64_t min_ticks;             /* calls shorter are not stored */
    uint64_t edge[3];               /* stored ticks */
    uint64_t to_ns;                 /* 32.32: full ticks of this location to ns */
    bool fresh;                     /* no event yet: the first one decides the unit of time */
    bool no_more_levels;            /* memory did not hold another block: deeper calls are only counted */
    bool ticks;                     /* the location's unit is the tick counter's; else ns */
    uint32_t dead_for;              /* recording in which this thread found no room */
    uint32_t depth_limit;           /* FDR_DEPTH */
    uint32_t untimed;               /* open calls that are only counted */
    uint32_t counted_from;          /* an enter at this depth or deeper is only counted; UINT32_MAX: look closer */
    uint32_t kept_levels;           /* level_blocks * FDR_LEVELS_PER_BLOCK */
    uint64_t overflow_sp;           /* stack address at the first call deeper than the stack that is kept */
    struct fdr_part *victim;        /* what reductions are eating */
    uint8_t victim_step, victim_reason;
    struct fdri_mark *mark;
};
extern __thread struct fdri_thread fdri_self __attribute__((visibility("hidden")));
extern __thread struct fdri_thread fdri_lane __attribute__((visibility("hidden")));

static inline void *fdri_off(const struct fdri_thread *t, uint32_t off) { return t->base + off; }
static inline uint32_t fdri_off_of(const struct fdri_thread *t, const void *p)
{
    return (uint32_t)((const uint8_t *)p - t->base);
}
/* Level d of the kept stack; d <= level_blocks * 16. */
static inline struct fdr_level *fdri_level(const struct fdri_thread *t, uint32_t depth)
{
    if (depth == 0) return fdri_off(t, t->loc->level0_off);
    struct fdr_levels_block *b = fdri_off(t, t->loc->levels_off[(depth - 1) / FDR_LEVELS_PER_BLOCK]);
    return &b->level[(depth - 1) % FDR_LEVELS_PER_BLOCK];
}
/* Now, in the location's own unit. */
static inline uint64_t fdri_tick_live(const struct fdri_thread *t)
{
    return FDR_LIKELY(t->ticks) ? fdr_ticks() : fdr_clock_ns(CLOCK_MONOTONIC);
}

/* This thread is where locks are held or memory is asked for. An instrumented allocator that comes back from there is
 * not recorded unless that needs neither. */
extern __thread uint32_t fdri_inside __attribute__((visibility("hidden")));

/* ---- attach.c ---- */
/* The thread state an operation may use now: this thread's, its lane when one is under way, or NULL (counted).
 * On success the state's location is marked busy; end with fdri_end. The first event decides whether the location counts
 * in ns (an `_at` event) or in the clock's ticks. */
enum fdri_domain { FDRI_LIVE, FDRI_NS, FDRI_NO_EVENT };
struct fdri_thread *fdri_begin(enum fdri_domain domain);
static inline void fdri_end(struct fdri_thread *t)
{
    fdr_store_release(&t->loc->busy, 0); /* R:busy - pairs with A:busy in start.c: finalize sees the record whole */
}
bool fdri_attached(void); /* attaches this thread if need be */
void fdri_detach(void *unused);
bool fdri_grow_levels(struct fdri_thread *t);   /* one more block of levels; false: no room */
void fdri_set_soft(struct fdri_thread *t);      /* recomputes when enter must go slow */

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

/* ---- call.c ---- */
void fdri_enter_tick(struct fdri_thread *t, fdr_region region, uint64_t address, bool live, uint64_t time_ns);
void fdri_leave_tick(struct fdri_thread *t, fdr_region region, uint64_t address, bool live, uint64_t time_ns);

/* ---- store.c ---- */
/* A partition with room for one more record, or NULL: then the event was accounted as reduced or lost through
 * `reduced` and `lost`. *slot is the level's word for it. */
struct fdr_part *fdri_room(struct fdri_thread *t, uint32_t *slot, uint32_t depth, uint32_t class_, uint32_t band,
                           uint64_t *reduced, uint64_t *lost);
/* A zeroed meta block: from the meta end, else in a piece of a bin for which something may be given back; 0: no room.
 * Blocks larger than a bin come from the meta end only. */
uint32_t fdri_meta(struct fdri_thread *t, enum fdr_meta_kind kind, uint32_t bytes);
void fdri_meta_give(struct fdri_thread *t, uint32_t off); /* not needed any more */
void fdri_close_gate(struct fdri_thread *t, struct fdr_part *p);
uint32_t *fdri_slot_of(struct fdri_thread *t, const struct fdr_part *p);
static inline uint32_t fdri_bits_max(uint32_t class_)
{
    return class_ == FDR_CLASS_REGION ? FDR_CALL_BITS_MAX : FDR_POINT_BITS_MAX;
}

/* ---- reduce.c ---- */
/* A bin or piece of at most 1 << size_log2 bytes for partition p by giving something else back; 0: nothing to give,
 * or p itself was closed. */
uint32_t fdri_reduce(struct fdri_thread *t, struct fdr_part *p, uint32_t size_log2, uint32_t *got_log2);
void fdri_reserve_ledger(struct fdri_thread *t);      /* lines for reductions, while there is room */
void fdri_stop(struct fdri_thread *t, uint64_t tick); /* strategy `first`: store nothing from now on */
void fdri_maybe_cut(struct fdri_thread *t, uint64_t tick);

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
void fdri_histogram_slow(struct fdri_thread *t, struct fdr_row *r, uint32_t bucket);
static inline void fdri_histogram_add(struct fdri_thread *t, struct fdr_row *r, uint32_t bucket)
{
    uint64_t word = r->histogram;
    uint32_t i = bucket - (uint32_t)(word >> 32 & 0xff);
    if (FDR_UNLIKELY(i >= (uint32_t)(word >> 40))) {
        fdri_histogram_slow(t, r, bucket);
        return;
    }
    uint64_t *count = fdri_off(t, (uint32_t)word);
    fdr_bump_relaxed(&count[i], 1);
}
static inline uint32_t fdri_bucket(uint64_t v) { return 63u ^ (uint32_t)__builtin_clzll(v | 1); }
/* One event of a point class: value v counted in, as value type. */
void fdri_total_point(struct fdri_thread *t, uint32_t key, enum fdr_value_type type, uint64_t value);

/* ---- define.c ---- */
uint32_t fdri_define(enum fdr_def_kind kind, const char *name, const char *file, uint32_t line, uint64_t value,
                     uint64_t value2, const void *payload, uint32_t payload_bytes);
void fdri_define_reset(void);              /* a new arena: definitions made before come along with their ids */
void fdri_define_save(void);               /* before the arena goes */
void fdri_define_fork(int phase);          /* 0 prepare, 1 parent, 2 child; 3 before 0 in a child that no handler saw */
void fdri_define_modules(void);
void fdri_modules_look(void);               /* which modules are loaded now; asks the loader */
void fdri_modules_forget(void (*forget)(uint64_t from, uint64_t to)); /* those that are no longer loaded */
uint32_t fdri_module_of(uint64_t address); /* module definition id + 1, or 0 */
struct fdri_event_shape { uint8_t count; uint8_t type[FDR_FIELDS_MAX]; uint16_t offset[FDR_FIELDS_MAX]; };
const struct fdri_event_shape *fdri_event_shape(uint32_t type);
uint32_t fdri_metric_type(uint32_t metric);

/* ---- address.c ---- */
/* Region of a code address, defined on first sight. The thread must be attached. */
fdr_region fdri_address_region(uint64_t address);
void fdri_address_reset(void);
void fdri_address_thread(bool comes);      /* this thread begins or ends to look addresses up */
void fdri_address_fork(int phase);         /* as fdri_define_fork */

/* ---- rules.c ---- */
struct fdri_rule { uint8_t mode; uint32_t count; uint64_t min_ns; };
enum { FDRI_RULE_NONE = 0, FDRI_RULE_EXCLUDE, FDRI_RULE_FIRST, FDRI_RULE_EVERY, FDRI_RULE_MIN };
void fdri_rules_load(const char *path);
void fdri_rules_define(uint32_t region, const char *name, const char *file);
const struct fdri_rule *fdri_rule_of(uint32_t region);   /* NULL: none */
bool fdri_rules_any(void);
bool fdri_rules_phases(void);
bool fdri_rules_phase(const char *name);

/* ---- rewind.c ---- */
void fdri_rewind_release(struct fdri_thread *t);

/* ---- arena.c ---- */
int fdri_arena_make(struct fdri_recorder *r);
void fdri_arena_drop(struct fdri_recorder *r, bool unlink_live);

/* ---- start.c ---- */
uint64_t fdri_tick_now(void);              /* full ticks of the recording's clock */
uint64_t fdri_ns_to_ticks(uint64_t ns);    /* a duration */

#endif
