/* SPDX-License-Identifier: MIT */
/* The table of partitions in order of worth (worth_order.h). A flag of each partition says whether it is in the table.
 * After a longjmp out of an operation a partition may be there twice or not at all. */
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/atomic.h"
#include "base/bits.h"
#include "format/arena/arena.h"
#include "policies/policies.h"
#include "recorder/memory/memory.h"
#include "recorder/pressure/recorder_pressure.h"
#include "recorder/recording.h"
#include "recorder/strategy/reduce.h"
#include "recorder/strategy/worth_order.h"
#include "recorder/thread/arena_place.h"
#include "recorder/thread/thread_state.h"

enum {
    FIRST_ROOM = 15,
    ORDER_MAX = 1 << 14,
    SORT_MAX = 512,
    SORT_STEPS = 4096,
    PUT_MOST = 8,
    HEAD = sizeof(struct fdri_arena_meta_head)
};

struct block {
    uint32_t next, before; /* offsets; 0: none */
    struct fdri_strategy_rank place[];
};

static struct block *block_at(const struct fdri_thread *t, uint32_t off) { return fdri_thread_at(t, off); }

static uint32_t room_of(const struct fdri_thread *t, uint32_t off)
{
    const struct fdri_arena_meta_head *h = fdri_thread_at(t, off - HEAD);
    return (h->bytes - HEAD - (uint32_t)sizeof(struct block)) / (uint32_t)sizeof(struct fdri_strategy_rank);
}

struct fdri_strategy_rank *fdri_strategy_order_at(struct fdri_thread *t, struct fdri_strategy_cursor *c, uint32_t i)
{
    if (!c->block) *c = (struct fdri_strategy_cursor){t->order_off, 0, room_of(t, t->order_off)};
    while (i >= c->first + c->room) {
        uint32_t next = block_at(t, c->block)->next;
        *c = (struct fdri_strategy_cursor){next, c->first + c->room, room_of(t, next)};
    }
    while (i < c->first) {
        uint32_t before = block_at(t, c->block)->before, room = room_of(t, before);
        *c = (struct fdri_strategy_cursor){before, c->first - room, room};
    }
    return &block_at(t, c->block)->place[i - c->first];
}

/* The number of places of the next block: as many as there are, at most what fits a bin. */
static uint32_t more_room(const struct fdri_thread *t)
{
    uint32_t most = fdri_life_recording.arena.super->bin_bytes - (uint32_t)sizeof(struct fdri_arena_slab) -
                    FDRI_ARENA_META_ALIGN - HEAD;
    uint32_t fits = (most - (uint32_t)sizeof(struct block)) / (uint32_t)sizeof(struct fdri_strategy_rank);
    return (uint32_t)fdri_bits_min(t->order_room ? t->order_room : FIRST_ROOM, fits);
}

/* Makes room for one more partition; false: no memory. */
static bool make_room(struct fdri_thread *t)
{
    uint32_t have = 0, last = 0, *link = &t->order_off;
    for (; *link && have <= t->order_room; link = &block_at(t, last)->next) have += room_of(t, last = *link);
    if (have > t->order_room) { /* a longjmp came before the block was counted */
        t->order_room = have;
        return true;
    }
    uint32_t room = more_room(t),
             bytes = HEAD + (uint32_t)(sizeof(struct block) + room * sizeof(struct fdri_strategy_rank));
    uint32_t off = have + room <= ORDER_MAX ? fdri_memory_meta(t, FDRI_ARENA_META_ORDER, bytes) : 0;
    if (!off) return false;
    block_at(t, off + HEAD)->before = last;
    fdri_atomic_signal_fence();
    *link = off + HEAD;
    t->order_room = have + room_of(t, off + HEAD);
    return true;
}

static void sum_classes(struct fdri_thread *t, uint64_t *bytes)
{
    struct fdri_strategy_cursor c = FDRI_STRATEGY_CURSOR_START;
    memset(bytes, 0, FDRI_ARENA_CLASS_COUNT * sizeof *bytes);
    for (uint32_t i = 0; i < t->order_count; i++) {
        const struct fdri_arena_part *p = fdri_thread_at(t, fdri_strategy_order_at(t, &c, i)->part);
        bytes[p->class_] += fdri_atomic_load_relaxed(&p->bytes); /* claimers change it */
    }
}

/* The view without the oldest tick: if only the age decides, least_worth in telescope.c looks for the oldest. */
static struct fdri_policies_part_view view_of(const struct fdri_strategy_rank *o, const uint64_t *class_bytes)
{
    uint8_t class_ = o->kind >> 4;
    return (struct fdri_policies_part_view){o->depth, class_, o->kind & 15, class_bytes[class_], 0};
}

static bool worth_less(const struct fdri_strategy_rank *a, const struct fdri_strategy_rank *b,
                       const uint64_t *class_bytes)
{
    struct fdri_policies_part_view x = view_of(a, class_bytes), y = view_of(b, class_bytes);
    enum fdri_policies_reason why;
    return fdri_policies_precedes(&fdri_life_recording.settings.chain, &x, &y, &why);
}

/* Moves the entry at i forward to its place among those before it; returns the number of places visited. */
static uint32_t sift_forward(struct fdri_thread *t, uint32_t i, const uint64_t *class_bytes)
{
    struct fdri_strategy_cursor c = FDRI_STRATEGY_CURSOR_START;
    struct fdri_strategy_rank it = *fdri_strategy_order_at(t, &c, i);
    uint32_t from = i;
    for (; i; i--) {
        struct fdri_strategy_rank *to = fdri_strategy_order_at(t, &c, i),
                                  *before = fdri_strategy_order_at(t, &c, i - 1);
        if (!worth_less(&it, before, class_bytes)) break;
        *to = *before;
    }
    *fdri_strategy_order_at(t, &c, i) = it;
    return from - i + 1;
}

/* Removes the entries whose partitions are not wanted. */
static void keep_only(struct fdri_thread *t, bool (*wanted)(const struct fdri_thread *, const struct fdri_arena_part *))
{
    struct fdri_strategy_cursor from = FDRI_STRATEGY_CURSOR_START, to = FDRI_STRATEGY_CURSOR_START;
    uint32_t count = 0;
    for (uint32_t i = 0; i < t->order_count; i++) {
        const struct fdri_strategy_rank *o = fdri_strategy_order_at(t, &from, i);
        struct fdri_arena_part *p = fdri_thread_at(t, o->part);
        if (wanted(t, p)) *fdri_strategy_order_at(t, &to, count++) = *o;
        else p->flags &= (uint8_t)~FDRI_ARENA_PART_PLACED;
    }
    t->order_count = count;
}

/* true: p holds bins, or records still go there. Bands that were joined to others and are empty get no records any
 * more. */
static bool in_use(const struct fdri_thread *t, const struct fdri_arena_part *p)
{
    return (uint32_t)fdri_atomic_load_relaxed(&p->list_head) || !fdri_joined_away(t, p);
}

static bool not_pinned(const struct fdri_thread *t, const struct fdri_arena_part *p)
{
    (void)t;
    return !(p->flags & FDRI_ARENA_PART_PINNED);
}

/* Inserts p; its oldest bin ends at `end` or later. */
static void insert(struct fdri_thread *t, struct fdri_arena_part *p, uint64_t end)
{
    uint64_t class_bytes[FDRI_ARENA_CLASS_COUNT] = {0};
    struct fdri_strategy_cursor c = FDRI_STRATEGY_CURSOR_START;
    if (t->order_count == t->order_room) keep_only(t, in_use);
    if (t->order_count == t->order_room && !make_room(t)) {
        t->order_incomplete = true; /* until then p gives only when nothing else does */
        return;
    }
    struct fdri_policies_part_view v = fdri_strategy_view_of(p, class_bytes);
    uint32_t index, last = t->order_count;
    enum fdri_policies_step step = fdri_policies_step(&fdri_life_recording.settings.chain, &v, &index).step;
    if (step == FDRI_POLICIES_BY_CLASS) sum_classes(t, class_bytes); /* other steps do not use the bytes of classes */
    *fdri_strategy_order_at(t, &c, last) = (struct fdri_strategy_rank){
        end, 0, fdri_thread_offset_of(t, p), (uint8_t)step, (uint8_t)(p->class_ << 4 | p->band), p->depth};
    p->flags |= FDRI_ARENA_PART_PLACED;
    t->order_count = last + 1;
    sift_forward(t, last, class_bytes);
}

void fdri_strategy_order_put(struct fdri_thread *t, struct fdri_arena_part *p)
{
    insert(t, p, t->loc->last_tick >> t->shift);
}

void fdri_strategy_order_complete(struct fdri_thread *t)
{
    if (!t->order_incomplete) return;
    t->order_incomplete = false;
    uint32_t left = PUT_MOST;
    for (struct fdri_arena_part *p = fdri_strategy_part_at(t, t->loc->parts_first); p;
         p = fdri_strategy_part_at(t, p->next)) {
        if (p->flags & FDRI_ARENA_PART_PLACED || !not_pinned(t, p) || !in_use(t, p)) continue;
        if (!left--) t->order_incomplete = true; /* the others come with the next call */
        else insert(t, p, 0);                    /* bound 0: examine it at the next choice */
        if (t->order_incomplete) return;
    }
}

void fdri_strategy_order_sort(struct fdri_thread *t)
{
    uint64_t class_bytes[FDRI_ARENA_CLASS_COUNT];
    uint32_t i = fdri_bits_max(t->order_sorted, 1), steps = 0;
    t->order_sorted = 0;
    if (t->order_count > SORT_MAX) return;
    sum_classes(t, class_bytes);
    for (; i < t->order_count && steps < SORT_STEPS; i++) steps += sift_forward(t, i, class_bytes);
    if (i < t->order_count) t->order_sorted = i;
}

void fdri_strategy_order_drop_pinned(struct fdri_thread *t) { keep_only(t, not_pinned); }

/* An entry that is there twice keeps its first place. A missing one is added by the next fdri_strategy_order_complete.
 * An entry may be half copied, so its bound is reset. */
void fdri_strategy_order_mend(struct fdri_thread *t)
{
    struct fdri_strategy_cursor from = FDRI_STRATEGY_CURSOR_START, to = FDRI_STRATEGY_CURSOR_START;
    uint32_t count = 0;
    for (struct fdri_arena_part *p = fdri_strategy_part_at(t, t->loc->parts_first); p;
         p = fdri_strategy_part_at(t, p->next))
        p->flags &= (uint8_t)~FDRI_ARENA_PART_PLACED;
    for (uint32_t i = 0; i < t->order_count; i++) {
        struct fdri_strategy_rank o = *fdri_strategy_order_at(t, &from, i);
        struct fdri_arena_part *p = fdri_thread_at(t, o.part);
        if (p->flags & FDRI_ARENA_PART_PLACED) continue;
        p->flags |= FDRI_ARENA_PART_PLACED;
        o.end = o.list = 0;
        *fdri_strategy_order_at(t, &to, count++) = o;
    }
    t->order_count = count;
    t->order_incomplete = true;
}
