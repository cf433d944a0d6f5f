/* SPDX-License-Identifier: MIT */
/* Each thread's table of the regions that have a rule (FDR_FILTER) or are muted. Enter and leave look up a code address
 * or a region's id, without a lock. Only the thread itself uses it, also in its handlers. A handler may change an
 * entry meanwhile. So a change clears the key first and writes it last. A reader of more than one word compares the key
 * once more at the end, unless it has marked the location busy. */
#ifndef FDRI_RECORDER_RECORD_RULE_TABLE_H
#define FDRI_RECORDER_RECORD_RULE_TABLE_H

#include <fdr/fdr.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/atomic.h"
#include "base/bits.h"
#include "format/arena/arena.h"
#include "recorder/names/names.h"
#include "recorder/thread/thread_state.h"

/* A region with a rule, as this thread met it. */
struct fdri_record_ruled {
    uint64_t key; /* fdri_record_ruled_key; 0: none */
    /* `min`: shorter calls are not stored, in ticks. Else: once the row has so many untimed calls, the slow path
     * decides about the next one. */
    uint64_t limit;
    uint32_t row_off, count;
    uint32_t framed; /* open calls of the region that have frames (FDRI_ARENA_LEVEL_NTH), and FDRI_RECORD_RULED_* */
    uint8_t mode;    /* FDRI_NAMES_RULE_* */
    uint8_t pad[3];
};
#define FDRI_RECORD_RULED_SLOW (1u << 31) /* in `framed`: the mode decides about each call */
/* In `framed`: each call gets a frame. Jumps have left calls of this thread, so leaves must close what was left. */
#define FDRI_RECORD_RULED_ALWAYS (1u << 30)
static inline uint32_t fdri_record_ruled_frames(const struct fdri_record_ruled *r)
{
    return r->framed & ~(FDRI_RECORD_RULED_SLOW | FDRI_RECORD_RULED_ALWAYS);
}

/* A function has its code address as key, a region entered by its id this. No code lies in the upper half. */
static inline uint64_t fdri_record_ruled_key(fdr_region region, uint64_t address)
{
    return address ? address : region | 1ull << 63;
}

static inline uint32_t fdri_record_ruled_slot(const struct fdri_thread *t, uint64_t key)
{
    return (uint32_t)key * 0x9E3779B1u >> t->ruled_shift;
}

/* The entry of this key, or another one: the caller compares keys. The thread has a table. Tables are not freed while
 * the recording runs, so a handler that replaces one does no harm. */
static inline __attribute__((always_inline)) struct fdri_record_ruled *
fdri_record_ruled_find(const struct fdri_thread *t, uint64_t key)
{
    uint32_t slot = fdri_record_ruled_slot(t, key);
    return FDRI_LIKELY(t->ruled[slot].key == key) ? &t->ruled[slot] : &t->ruled[slot ^ 1];
}

/* Is this entry that of the key? Those of code addresses are void once modules were unloaded. */
static inline __attribute__((always_inline)) bool fdri_record_ruled_is(const struct fdri_thread *t,
                                                                       const struct fdri_record_ruled *r, uint64_t key)
{
    return r->key == key && (key >> 63 || t->ruled_version == fdri_atomic_load_relaxed(&fdri_names_address_version));
}

/* The entry of a region, taken into the table if it is new. NULL: there is no memory for a table, or t has none. */
struct fdri_record_ruled *fdri_record_ruled_add(struct fdri_thread *t, fdr_region region,
                                                const struct fdri_record_function *f,
                                                const struct fdri_names_rule *rule, struct fdri_arena_row *row);
/* The next call of the region gets a frame that its entry would not know: removes the entry, unless it is of `min`. f:
 * the function; NULL: a region entered by its id. */
void fdri_record_ruled_forget(struct fdri_thread *t, fdr_region region, const struct fdri_record_function *f);
/* Removes the entries of this row. */
void fdri_record_ruled_drop(struct fdri_thread *t, uint32_t row_off);
/* The call at this level has a frame and the flag FDRI_ARENA_LEVEL_NTH: it begins, or has ended. */
void fdri_record_ruled_opened(struct fdri_thread *t, const struct fdri_arena_level *v);
void fdri_record_ruled_closed(struct fdri_thread *t, const struct fdri_arena_level *v);
/* A jump has left calls of this thread: from now on each call of a muted region gets a frame. */
void fdri_record_ruled_jumped(struct fdri_thread *t);
/* The number of untimed calls of a row at which a muted region's next call has a time. On average there are `period`
 * calls between two; the distance varies, so that it follows no pattern of the program. */
static inline uint64_t fdri_record_ruled_next_timed(const struct fdri_arena_row *row, uint32_t period)
{
    uint64_t hash = (row->untimed + row->key) * 0x9E3779B97F4A7C15u >> 32;
    return row->untimed + 1 + hash % (2 * period - 2);
}
/* Counts the frames of all entries again, after a longjmp left an operation. */
void fdri_record_ruled_recount(struct fdri_thread *t);

#endif
