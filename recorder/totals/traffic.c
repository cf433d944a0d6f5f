/* SPDX-License-Identifier: MIT */
/* Messages and collectives by region: how many, and how many bytes. A region is told twice: as the one under way (the
 * function of MPI), and as the one around it (who called that). A row is exact; what finds no row is in none, and the
 * location says so. No such row takes the place of a region's own. */
#include <stdbool.h>
#include <stdint.h>

#include "base/atomic.h"
#include "format/arena/arena.h"
#include "recorder/memory/memory.h"
#include "recorder/thread/thread.h"
#include "recorder/thread/thread_state.h"
#include "recorder/totals/totals.h"

static void add_bytes(struct fdri_arena_row *r, uint64_t *to, uint64_t bytes)
{
    uint64_t sum;
    if (FDRI_UNLIKELY(__builtin_add_overflow(*to, bytes, &sum))) {
        sum = UINT64_MAX;
        r->flags |= FDRI_ARENA_ROW_SATURATED;
        fdri_atomic_signal_fence();
    }
    fdri_atomic_store_relaxed(to, sum);
}

/* The thread's sums; NULL: no memory. Asked for once, so that sums are of all messages or not there. */
static struct fdri_thread_traffic *sums_of(struct fdri_thread *t)
{
    if (FDRI_UNLIKELY(!t->traffic_off)) {
        uint32_t off = fdri_memory_meta(t, FDRI_ARENA_META_FREE, sizeof(struct fdri_thread_traffic));
        t->traffic_off = off ? off : FDRI_THREAD_NO_TRAFFIC;
    }
    return t->traffic_off == FDRI_THREAD_NO_TRAFFIC ? NULL : fdri_thread_at(t, t->traffic_off);
}

static void count(struct fdri_thread *t, enum fdri_arena_traffic_of of, enum fdri_arena_traffic what, uint32_t region,
                  uint64_t bytes, uint64_t received, uint32_t *last)
{
    uint32_t key = fdri_arena_traffic_key(
        of, what, region < FDRI_ARENA_TRAFFIC_NO_REGION ? region : FDRI_ARENA_TRAFFIC_NO_REGION);
    struct fdri_arena_row *r = fdri_thread_at(t, *last); /* offset 0 is the superblock; its first word is no key */
    if (FDRI_UNLIKELY(r->key != key)) {
        r = fdri_totals_row(t, key);
        if (r->key != key) return; /* no room: the row [rest] counts calls only */
        *last = fdri_thread_offset_of(t, r);
    }
    fdri_atomic_bump_relaxed(&r->calls, 1);
    add_bytes(r, &r->sum, bytes);
    if (received) add_bytes(r, &r->exclusive, received);
}

void fdri_totals_count_traffic(struct fdri_thread *t, enum fdri_arena_traffic what, uint64_t bytes, uint64_t received)
{
    uint32_t depth = t->loc->depth, none[2] = {0};
    struct fdri_thread_traffic *sums = sums_of(t);
    count(t, FDRI_ARENA_TRAFFIC_OF_REGION, what, depth ? t->top->region : FDRI_ARENA_TRAFFIC_NO_REGION, bytes, received,
          sums ? &sums->row[0][what] : &none[0]);
    count(t, FDRI_ARENA_TRAFFIC_OF_CALLER, what,
          depth > 1 ? fdri_thread_level(t, depth - 1)->region : FDRI_ARENA_TRAFFIC_NO_REGION, bytes, received,
          sums ? &sums->row[1][what] : &none[1]);
    if (!sums) return;
    sums->all[what][0]++;
    if (__builtin_add_overflow(sums->all[what][1], bytes, &sums->all[what][1]) |
        __builtin_add_overflow(sums->all[what][2], received, &sums->all[what][2]))
        t->traffic_off = FDRI_THREAD_NO_TRAFFIC; /* from here on epochs do not know theirs */
}
