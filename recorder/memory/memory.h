/* SPDX-License-Identifier: MIT */
/* Memory of a recording: the mapping of the arena, room for the next record, meta blocks of a location.
 *
 *   arena_mapping.c    the file or mapping                large_pages.c      pages of 2 MiB
 *   store.c            a partition with room              meta_alloc.c       meta blocks of a location
 *
 * Neighbours: bins/ hands out bins; shares/ and ended/ find them elsewhere; strategy/ gives something back. */
#ifndef FDRI_RECORDER_MEMORY_MEMORY_H
#define FDRI_RECORDER_MEMORY_MEMORY_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/atomic.h"
#include "base/bits.h"
#include "format/arena/arena.h"
#include "recorder/thread/thread_state.h"

struct fdri_life_recorder;

/* Two fields that stand beside each other, with one store: left by longjmp in between, the end of one stretch would
 * stand with the beginning of another, and what is between them is others'. */
static inline void fdri_memory_set_stretch(struct fdri_arena_location *l, size_t at, uint32_t off, uint32_t end)
{
    const uint32_t both[2] = {off, end};
    memcpy((uint8_t *)l + at, both, sizeof both);
    fdri_atomic_signal_fence();
}
static_assert(offsetof(struct fdri_arena_location, meta_end) == offsetof(struct fdri_arena_location, meta_off) + 4 &&
                  offsetof(struct fdri_arena_location, slab_end) == offsetof(struct fdri_arena_location, slab_off) + 4,
              "written at once");

/* Memory for an arena, of a file or anonymous (-1); MAP_FAILED with errno. */
void *fdri_memory_pages_map(uint64_t bytes, int fd);
void fdri_memory_pages_large(void *memory, uint64_t bytes, int fd); /* as much of it as the kernel gives at once */
void fdri_memory_pages_unmap(void);                                 /* the newest one */
void fdri_memory_pages_empty(void); /* likewise; it stays mapped for who works there, and nothing is in it */

uint64_t fdri_memory_limit(void); /* bytes this process may use at most */
int fdri_memory_arena_make(struct fdri_life_recorder *r);
void fdri_memory_arena_publish(struct fdri_life_recorder *r); /* the file gets its name: what is in it can be read */
void fdri_memory_arena_drop(struct fdri_life_recorder *r, bool unlink_live);
/* Its memory stays as it is: somebody is still in it. */
void fdri_memory_arena_abandon(struct fdri_life_recorder *r, bool unlink_live);

/* A partition with room for one more record, or NULL: then the event was accounted as reduced or lost through
 * `reduced` and `lost`. *slot is the level's word for it. */
struct fdri_arena_part *fdri_memory_room(struct fdri_thread *t, uint32_t *slot, uint32_t depth, uint32_t class_,
                                         uint32_t band, uint64_t *reduced, uint64_t *lost);
/* Has the slot of a point class a partition that can be written into, or a closed gate? Made where there is none;
 * false: no room. */
bool fdri_memory_part_ready(struct fdri_thread *t, uint32_t *slot, uint32_t depth, uint32_t class_);
/* May this location take a free bin? The last ones serve locations that have next to nothing. */
bool fdri_memory_may_take(const struct fdri_thread *t);
/* A piece of what is free: its own, or of a bin. Who has next to nothing takes first what lies unused elsewhere, once
 * bins are short. */
uint32_t fdri_memory_take_free(struct fdri_thread *t, uint32_t size_log2);
bool fdri_memory_pieces_may_wait(const struct fdri_thread *t); /* may free pieces wait until they are larger ones? */
void fdri_memory_close_gate(struct fdri_thread *t, struct fdri_arena_part *p);
struct fdri_arena_part *fdri_memory_make_part(struct fdri_thread *t, uint32_t depth, uint32_t class_, uint32_t band);
uint32_t *fdri_memory_slot_of(struct fdri_thread *t, const struct fdri_arena_part *p);
/* The table of p's encoder, given back for another one or for none, 0. */
void fdri_memory_give_table(struct fdri_thread *t, struct fdri_arena_part *p, uint32_t instead);
/* After an operation that was given up in the middle, or partitions set aside: each partition that is stored in has its
 * slot, and counts. */
void fdri_memory_relink_slots(struct fdri_thread *t);
/* A whole bin for who asks next, when the last one that was ready has gone. */
void fdri_memory_prepare_bin(struct fdri_thread *t);

/* A zeroed meta block of this location: from the meta end, else in a piece of a bin for which something may be given
 * back; 0: no room. Blocks larger than a bin come from the meta end only. */
uint32_t fdri_memory_meta(struct fdri_thread *t, enum fdri_arena_meta_kind kind, uint32_t bytes);
/* The same, instead of a smaller one that does, too: little of what is stored is given back for it. */
uint32_t fdri_memory_meta_larger(struct fdri_thread *t, enum fdri_arena_meta_kind kind, uint32_t bytes);
/* nothing is given back for it */
uint32_t fdri_memory_meta_without_reduction(struct fdri_thread *t, enum fdri_arena_meta_kind kind, uint32_t bytes);
void fdri_memory_meta_prepare(struct fdri_thread *t); /* room for some small blocks, while there is any */
/* Where there is much too little memory for all threads a search takes a hundred times as long as recording an event,
 * each event begins one, and what it finds another thread takes away before it is used. So
 *   after FDRI_MEMORY_PATIENCE in a row that found nothing the next one is made 2, 4, .. 1024 requests later, or with
 *   the second event after FDRI_MEMORY_PAUSE_NS by the times it records: who records rarely does not miss what is there
 *   after a burst of others;
 *   where its share, and what it holds, is less than its levels need a search for a bin costs credit, which the
 *   records stored in bins bring in again: without any only each FDRI_MEMORY_POOR_PAUSE-th request is followed by one.
 * What the others would have found is lost, and counted, and the thread goes on at its own speed. */
enum {
    FDRI_MEMORY_PATIENCE = 8,
    FDRI_MEMORY_PAUSE_LOG2 = 10,
    FDRI_MEMORY_PAUSE_NS = 10000000,
    FDRI_MEMORY_CREDIT = 4096, /* records */
    FDRI_MEMORY_SEARCH_COST = 16,
    FDRI_MEMORY_POOR_PAUSE = 64
};
static inline uint32_t fdri_memory_search_failures(const struct fdri_thread_search *s)
{
    return s->failed > FDRI_MEMORY_PATIENCE ? s->failed - FDRI_MEMORY_PATIENCE : 0;
}
/* now: in the unit of fdri_memory_search_over's `until`. */
static inline bool fdri_memory_search_pauses(struct fdri_thread_search *s, uint64_t now)
{
    if (FDRI_LIKELY(!s->pause)) return false;
    s->pause = now < s->until ? s->pause - 1 : 0;
    return now < s->until;
}
/* The bin looked for before is full, or gone. */
static inline void fdri_memory_search_yields(struct fdri_thread_search *s, uint32_t records)
{
    int32_t credit = s->credit + (int32_t)records;
    s->credit = credit < FDRI_MEMORY_CREDIT ? credit : FDRI_MEMORY_CREDIT;
}
/* until: a pause that begins now ends then at the latest. */
static inline void fdri_memory_search_over(struct fdri_thread_search *s, bool found, uint64_t until)
{
    s->until = until;
    if (found) s->failed = 0;
    else if (s->failed < FDRI_MEMORY_PATIENCE + FDRI_MEMORY_PAUSE_LOG2) s->failed++;
    uint32_t weary = fdri_memory_search_failures(s);
    if (weary) s->pause = 1u << weary;
    if (s->credit >= 0) return;
    s->credit += FDRI_MEMORY_SEARCH_COST;
    s->pause = (uint32_t)fdri_bits_max(s->pause, FDRI_MEMORY_POOR_PAUSE);
}
void fdri_memory_meta_give(struct fdri_thread *t, uint32_t off); /* not needed any more */
bool fdri_memory_meta_reusable(uint32_t bytes);                  /* does one of that size, given back, serve again? */
void fdri_memory_meta_release(struct fdri_thread *t);            /* all of it: the location is no more */
uint64_t fdri_memory_meta_bytes(void);                           /* in use by all */

#endif
