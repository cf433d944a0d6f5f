/* SPDX-License-Identifier: MIT */
/* Runs: bins that a partition gives back together.
 *
 * A list is read one header after the other, and old headers are not in the cache. Waiting for them is most of the cost
 * of giving back. So the owner looks at the headers in advance, one each time it has other work to overlap. The run
 * notes what giving a bin back needs, and the step itself reads no header.
 *
 * The notes are valid if the head of the list has not moved when the run is popped. The head's seq only rises, so all
 * bins behind it are still listed, and a listed bin with a successor does not change. Rewinding, which goes back to
 * older seqs, forgets the run. */
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/atomic.h"
#include "base/bits.h"
#include "base/racy.h"
#include "bins/bin_run.h"
#include "bins/bins.h"
#include "bins/partition.h"
#include "format/arena/arena.h"

void fdri_bins_run_forget(struct fdri_bins_run *r)
{
    r->next_off = 0;
    r->past_last_end = false;
    fdri_atomic_signal_fence();
    r->noted = r->popped = 0;
}

static uint64_t list_behind(const struct fdri_bins_run *r, uint32_t count)
{
    return (uint64_t)((uint32_t)(r->list_head >> 32) + count) << 32 | r->bin[count].off;
}

uint64_t fdri_bins_run_list(const struct fdri_bins_run *r) { return list_behind(r, r->popped); }

/* Continues with the unpopped rest of *r, if `list_head` is where the popped bins ended. */
static bool continue_run(struct fdri_bins_run *r, uint64_t list)
{
    uint32_t gone = r->popped, left = r->noted - gone, ahead = r->next_off;
    bool late = r->past_last_end;
    if (list != fdri_bins_run_list(r) || r->noted <= gone) return false;
    fdri_bins_run_forget(r); /* after a longjmp from here the run is empty */
    memmove(r->bin, r->bin + gone, (left + late) * sizeof r->bin[0]);
    r->list_head = list;
    fdri_atomic_signal_fence();
    r->noted = left;
    r->past_last_end = late;
    fdri_atomic_signal_fence();
    r->next_off = ahead;
    return true;
}

void fdri_bins_run_begin(const struct fdri_bins_arena *a, const struct fdri_arena_part *p, uint64_t tick,
                         struct fdri_bins_run *r)
{
    uint64_t list = fdri_atomic_load_acquire(&p->list_head); /* A:claim */
    uint32_t off = (uint32_t)list;
    if (r->part == p && r->last_end == tick && continue_run(r, list)) return;
    fdri_bins_run_forget(r);
    r->part = p;
    r->last_end = tick;
    r->list_head = list;
    if (!off) return;
    __builtin_prefetch(fdri_bins_bin(a, off), 1, 3);
    fdri_atomic_signal_fence();
    r->next_off = off;
}

FDRI_RACY bool fdri_bins_run_look(const struct fdri_bins_arena *a, struct fdri_bins_run *r)
{
    uint32_t off = r->next_off, seen = r->noted;
    if (!off || seen > r->capacity) return false;
    const struct fdri_arena_bin *b = fdri_bins_bin(a, off);
    r->next_off = 0;
    fdri_atomic_signal_fence();               /* after a longjmp from here the run ends with the bins seen before */
    if (seen && b->base_tick > r->last_end) { /* so the bin before it ended after `last_end` */
        r->bin[seen].base_tick = b->base_tick;
        fdri_atomic_signal_fence();
        r->past_last_end = true;
        return false;
    }
    r->bin[seen] = (struct fdri_bins_run_bin){
        b->base_tick, b->first_index, off, fdri_atomic_load_relaxed(&b->generation), b->size_log2, 0};
    fdri_atomic_signal_fence();
    r->noted = seen + 1;
    uint32_t next = fdri_racy_peek_acquire(&b->next); /* A:list */
    if (!fdri_bins_may_be_bin(a, next)) return false;
    __builtin_prefetch(fdri_bins_bin(a, next), 1, 3);
    r->next_off = next;
    return true;
}

/* The number of bins that one pop takes, and their bytes. */
static uint32_t count_of(const struct fdri_bins_arena *a, const struct fdri_bins_run *r, uint32_t most, bool small,
                         uint64_t *bytes)
{
    uint32_t may = r->noted > 1 ? r->noted - 1 : 0, count = 0;
    bool whole = r->bin[0].size_log2 == a->bin_log2;
    uint64_t limit = (uint64_t)most << a->bin_log2;
    if (!whole && small) limit /= 4;
    for (*bytes = 0; count < may; count++) {
        uint64_t more = 1ull << r->bin[count].size_log2;
        if (more >> a->bin_log2 == 0 && !small) break;
        if (count && *bytes + more > limit) break;
        *bytes += more;
    }
    return count;
}

uint32_t fdri_bins_run_pop(struct fdri_bins_arena *a, struct fdri_arena_part *p, uint32_t most, bool small,
                           struct fdri_bins_run *r, struct fdri_bins_given *given)
{
    uint64_t bytes, head = r->list_head;
    if (r->part != p || r->popped) return 0;
    const struct fdri_bins_run_bin *bin = r->bin;
    uint32_t count = count_of(a, r, most, small, &bytes);
    if (!count) return 0;
    /* L:claim - one swap takes all of them */
    if (!fdri_atomic_cas_acq_rel_u64(&p->list_head, &head, list_behind(r, count))) {
        fdri_bins_run_forget(r);
        return 0;
    }
    r->popped = count;
    given->events += bin[count].first_index - bin->first_index;
    given->bytes += bytes;
    given->from_tick = fdri_bits_min(given->from_tick, bin->base_tick);
    given->to_tick = fdri_bits_max(given->to_tick, bin[count].base_tick);
    fdri_atomic_sub_relaxed(&p->bins, count);
    fdri_atomic_sub_relaxed(&p->bytes, (uint32_t)(bytes >> 9));
    return count;
}

void fdri_bins_run_empty(const struct fdri_bins_arena *a, const struct fdri_bins_run *r)
{
    for (uint32_t i = 0; i < r->popped; i++) {
        struct fdri_arena_bin *b = fdri_bins_bin(a, r->bin[i].off);
        fdri_racy_peeked(&b->next);
        fdri_atomic_store_release(&b->generation, (r->bin[i].generation | 1u) + 1); /* G:give */
    }
}
