/* SPDX-License-Identifier: MIT */
/* Memory of a recording: the mapping of the arena, room for the next record, meta blocks of a location.
 *
 *   arena_mapping.c    the live file or other memory, and its default size
 *   large_pages.c      pages of 2 MiB
 *   store.c            room in a partition, bins for it   meta_alloc.c       meta blocks of a location
 *   self_check.c       FDR_CHECK: the invariants, checked while recording
 *
 * Neighbours: bins/ hands out free bins; shares/ takes bins from other locations, ended/ from threads that ended;
 * strategy/ gives this location's own events back. record/ calls this room.
 *
 * Functions with a `t` are called by the thread that owns t's location at the moment, inside an operation. */
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

/* Sets two adjacent fields of l, begin and end of a stretch of meta memory, with one store. A longjmp out of a handler
 * between two stores would pair the begin of one stretch with the end of another. Other blocks lie between them. */
static inline void fdri_memory_set_stretch(struct fdri_arena_location *l, size_t at, uint32_t off, uint32_t end)
{
    const uint32_t both[2] = {off, end};
    memcpy((uint8_t *)l + at, both, sizeof both);
    fdri_atomic_signal_fence();
}
static_assert(offsetof(struct fdri_arena_location, meta_end) == offsetof(struct fdri_arena_location, meta_off) + 4 &&
                  offsetof(struct fdri_arena_location, slab_end) == offsetof(struct fdri_arena_location, slab_off) + 4,
              "written at once");

/* Maps memory for an arena: of the file fd, or anonymous if fd is -1. Returns MAP_FAILED with errno on failure. The
 * mapping becomes the newest one, the only one that unmap and empty act on. */
void *fdri_memory_pages_map(uint64_t bytes, int fd);
void fdri_memory_pages_large(void *memory, uint64_t bytes, int fd); /* asks for 2 MiB pages, at most 0.5 s */
void fdri_memory_pages_unmap(void);
void fdri_memory_pages_empty(void); /* replaces its contents by zeros; late threads may still touch the addresses */

uint64_t fdri_memory_limit(void); /* bytes this process may use: RAM size or cgroup limit */
/* The five below run under the lock of life/. make: 0 or -errno, then no memory is held. publish: gives the live file
 * its name, once a reader finds all it needs. choose_name: only chooses it; publish gives it later. drop: empties the
 * memory. */
int fdri_memory_arena_make(struct fdri_life_recorder *r);
void fdri_memory_arena_choose_name(struct fdri_life_recorder *r);
void fdri_memory_arena_publish(struct fdri_life_recorder *r);
void fdri_memory_arena_drop(struct fdri_life_recorder *r, bool unlink_live);
/* Like drop, but leaves the memory as it is: a thread is still in the middle of a record there. */
void fdri_memory_arena_abandon(struct fdri_life_recorder *r, bool unlink_live);

/* Returns a partition with room for one more record of this depth, class and band; may make it and open a bin. *slot
 * is the level's word that leads to the partition. NULL: the event is already counted in *reduced (its gate is closed)
 * or in *lost. Exception: when strategy `first` stops storing, it counts all open calls at once. */
struct fdri_arena_part *fdri_memory_room(struct fdri_thread *t, uint32_t *slot, uint32_t depth, uint32_t class_,
                                         uint32_t band, uint64_t *reduced, uint64_t *lost);
/* True if the slot of a point class has a partition with an encoder table, made if need be, or a closed gate. False:
 * there is no memory for them. */
bool fdri_memory_part_ready(struct fdri_thread *t, uint32_t *slot, uint32_t depth, uint32_t class_);
/* May this location take a free bin? The last bins (bin_reserve) serve locations with fewer than four bins. */
bool fdri_memory_may_take(const struct fdri_thread *t);
/* Offset of a free piece of 1 << size_log2 bytes, cut from a bin if need be; 0: none is free. If free bins are short, a
 * location with next to nothing first uses its own pieces and those returned by other locations. */
uint32_t fdri_memory_take_free(struct fdri_thread *t, uint32_t size_log2);
/* May free pieces stay unused until their neighbours are free, too, so that they form larger ones? */
bool fdri_memory_pieces_may_wait(const struct fdri_thread *t);
/* From now on calls like those of p, deeper ones, and shorter ones below them are only counted, as reduced. */
void fdri_memory_close_gate(struct fdri_thread *t, struct fdri_arena_part *p);
/* A new, empty partition on the location's list; the caller sets its slot. NULL: no room. */
struct fdri_arena_part *fdri_memory_make_part(struct fdri_thread *t, uint32_t depth, uint32_t class_, uint32_t band);
uint32_t *fdri_memory_slot_of(struct fdri_thread *t, const struct fdri_arena_part *p);
/* Replaces the encoder table of p by the one at offset `instead` (0: none) and frees the old one. */
void fdri_memory_give_table(struct fdri_thread *t, struct fdri_arena_part *p, uint32_t instead);
/* Restores each slot, live_parts and pinned_units from the list of partitions. Needed after a longjmp left an operation
 * unfinished, and after partitions were pinned. */
void fdri_memory_relink_slots(struct fdri_thread *t);
/* Finds a whole bin for the next request, if none is left ready. */
void fdri_memory_prepare_bin(struct fdri_thread *t);

/* Offset of a zeroed meta block of this location, its head filled in; 0: no room. `bytes` include the head. The block
 * comes from the meta end of the arena, else from a piece of a bin, for which events may be given back. Blocks larger
 * than a bin come from the meta end only. */
uint32_t fdri_memory_meta(struct fdri_thread *t, enum fdri_arena_meta_kind kind, uint32_t bytes);
/* The same, if a smaller block would do as well: so at most few events are given back for it. */
uint32_t fdri_memory_meta_larger(struct fdri_thread *t, enum fdri_arena_meta_kind kind, uint32_t bytes);
/* The same; no event is given back for it. */
uint32_t fdri_memory_meta_without_reduction(struct fdri_thread *t, enum fdri_arena_meta_kind kind, uint32_t bytes);
void fdri_memory_meta_prepare(struct fdri_thread *t);            /* gets room for some small blocks ahead of need */
void fdri_memory_meta_give(struct fdri_thread *t, uint32_t off); /* frees the block at off; small ones serve again */
bool fdri_memory_meta_reusable(uint32_t bytes);                  /* does a freed block of that size serve again? */
void fdri_memory_meta_release(struct fdri_thread *t);            /* frees all blocks: the location is given up */
uint64_t fdri_memory_meta_bytes(void);                           /* of all locations, in use */

/* ---- self_check.c ---- */
void fdri_memory_check_reset(void); /* a recording begins */
/* FDR_CHECK: checks the lists of t's location. [record] except for the line that a failure costs. */
void fdri_memory_check_own(struct fdri_thread *t);
/* Before a snapshot: checks all locations (FDR_CHECK) if accounts are held, and notes what failed so far. */
void fdri_memory_check_snapshot(bool held);

#endif
