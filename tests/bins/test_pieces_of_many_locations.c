/* SPDX-License-Identifier: MIT */
/* ctest: label=stress,threads timeout=300 promise=P2,P3
 * P2, P3: pieces of one bin may belong to several locations. Threads take, return and adopt pieces at random. No piece
 * has two holders, none is lost, and at the end all bins are whole again. */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/atomic.h"
#include "base/bits.h"
#include "bins/bins.h"
#include "bins/claims.h"
#include "bins/pieces.h"
#include "bins/pressure/bins_pressure.h"
#include "format/arena/arena.h"
#include "tests/support/bare_arena.h"
#include "tests/support/random_numbers.h"

enum { OWNERS = 4, HELD = 40, ARENA = 128 * 1024, LEAST_LOG2 = 9, FULL_LOG2 = 12 };

static pthread_barrier_t all_begin;

struct owner {
    pthread_t thread;
    struct fdri_bins_arena *arena;
    struct fdri_arena_location *l;
    struct owner *all; /* OWNERS of them */
    uint32_t *holder;  /* for each 512 bytes: the number of the holder; 0: in a list */
    uint64_t seed, adopted, again, whole;
    struct {
        uint32_t off, log2;
    } held[HELD];
    uint32_t number, count;
    bool twice, miscounted;
};

static void mark(struct owner *o, uint32_t off, uint32_t log2, uint32_t from, uint32_t to)
{
    for (uint32_t u = off / 512; u < (off + (1u << log2)) / 512; u++)
        o->twice |= __atomic_exchange_n(&o->holder[u], to, __ATOMIC_ACQ_REL) != from;
}

static void hold(struct owner *o, uint32_t off, uint32_t log2)
{
    mark(o, off, log2, 0, o->number);
    fdri_bins_bin(o->arena, off)->size_log2 = (uint8_t)log2;
    fdri_bins_bin(o->arena, off)->location = o->number; /* not atomic, so ThreadSanitizer reports a second holder */
    o->held[o->count].off = off;
    o->held[o->count++].log2 = log2;
}

/* Gives a held piece back: to its own lists, or over the stack as a claiming location would. */
static void let_go(struct owner *o, bool stack)
{
    uint32_t i = rnd(&o->seed, o->count), off = o->held[i].off, log2 = o->held[i].log2;
    o->held[i] = o->held[--o->count];
    o->twice |= fdri_bins_bin(o->arena, off)->location != o->number;
    mark(o, off, log2, o->number, 0);
    if (stack && log2 < FULL_LOG2) fdri_piece_return(o->arena, o->l, off);
    else fdri_bins_piece_give(o->arena, o->l, off, log2);
}

/* Takes pieces of another location, or of one that ended. */
static void adopt(struct owner *o, struct fdri_arena_location *from)
{
    uint32_t want = LEAST_LOG2 + rnd(&o->seed, 3), got = 0, off = fdri_strewn_take(o->arena, want, &got);
    o->again += off != 0;
    if (!off) {
        uint32_t place = fdri_bins_claim_enter(o->arena, o->l, from);
        if (!place) return;
        off = fdri_piece_adopt(o->arena, from, want, true, &got);
        fdri_bins_claim_leave(o->arena, place);
    }
    if (!off) return;
    o->twice |= got < want || got >= FULL_LOG2;
    fdri_atomic_add_relaxed(&o->l->strewn_units, 1u << (got - 9));
    fdri_bins_piece_split(o->arena, o->l, off, got, want);
    hold(o, off, want);
    o->adopted++;
}

static void take_whole(struct owner *o, struct fdri_arena_location *from)
{
    struct fdri_bins_returned left;
    uint32_t place = fdri_bins_claim_enter(o->arena, o->l, from);
    if (!place) return;
    uint32_t off = fdri_piece_whole(o->arena, from, &left);
    if (off) fdri_atomic_sub_relaxed(&from->bins_held, 1u);
    if (off) fdri_atomic_add_relaxed(&o->l->bins_held, 1u);
    fdri_bins_claim_leave(o->arena, place);
    if (!off) return;
    hold(o, off, FULL_LOG2);
    o->whole++;
}

/* An awake owner takes pieces, and so collects the returned ones. Of a sleeping owner, others take them off its
 * stack. */
static void step(struct owner *o, bool awake)
{
    struct fdri_arena_location *other = o->all[rnd(&o->seed, OWNERS)].l;
    uint32_t off, log2 = LEAST_LOG2 + rnd(&o->seed, 3), what = rnd(&o->seed, 4);
    if (o->count == HELD || !what) {
        if (o->count) let_go(o, !awake || rnd(&o->seed, 2));
    } else if (awake) {
        if ((off = fdri_bins_piece_take(o->arena, o->l, log2))) hold(o, off, log2);
    } else if (other != o->l) {
        if (what == 1) take_whole(o, other);
        else adopt(o, other);
    }
}

/* The owner comes and goes. Others may hold pieces of the bins that it leaves, or the rest of bins that it adopted. */
static void *own(void *argument)
{
    struct owner *o = argument;
    bool awake = true;
    pthread_barrier_wait(&all_begin);
    for (int i = 0; i < 100000; i++) {
        if (!rnd(&o->seed, 40)) awake = !awake;
        if (!rnd(&o->seed, 20)) sched_yield(); /* one processor: others must run during sleep */
        step(o, awake);
        if (rnd(&o->seed, 500)) continue;
        while (o->count) let_go(o, false);
        while (!fdri_bins_claim_pin(o->arena, o->l)) continue;
        fdri_piece_collect(o->arena, o->l);
        fdri_bins_piece_leave(o->arena, o->l);
        o->miscounted |= fdri_atomic_load_relaxed(&o->l->strewn_units) != 0;
        fdri_bins_claim_unpin(o->l);
    }
    while (o->count) let_go(o, false);
    return NULL;
}

static void P3_pieces_change_owners(void **state)
{
    (void)state;
    struct fdri_bins_arena a;
    void *memory = format(&a, ARENA, 1 << FULL_LOG2);
    uint32_t *holder = calloc(ARENA / 512, sizeof *holder);
    static struct owner o[OWNERS];
    uint64_t adopted = 0, again = 0, whole = 0;
    fdri_arena_strew(&a);
    memset(o, 0, sizeof o);
    pthread_barrier_init(&all_begin, NULL, OWNERS);
    for (uint32_t i = 0; i < OWNERS; i++) {
        uint32_t off = fdri_bins_meta_take(&a, FDRI_ARENA_META_LOCATION, sizeof(struct fdri_arena_location),
                                           UINT32_MAX);
        o[i] = (struct owner){
            .arena = &a, .all = o, .holder = holder, .seed = 88172645463325252u + i * 7919u, .number = i + 1};
        o[i].l = fdri_bins_at(&a, off);
        o[i].l->next = a.super->location_first;
        a.super->location_first = off;
    }
    for (uint32_t i = 0; i < OWNERS; i++) assert_int_equal(pthread_create(&o[i].thread, NULL, own, &o[i]), 0);
    for (uint32_t i = 0; i < OWNERS; i++) {
        pthread_join(o[i].thread, NULL);
        assert_false(o[i].twice);
        assert_false(o[i].miscounted);
        adopted += o[i].adopted;
        again += o[i].again;
        whole += o[i].whole;
    }
    sound(&a);
    print_message("%llu pieces adopted, %llu of these were nobody's; %llu bins made whole, %u strewn at the end\n",
                  (unsigned long long)adopted, (unsigned long long)again, (unsigned long long)whole,
                  fdri_strewn_count(&a));
    assert_true(adopted > 1000 && again > 0 && whole > 0);
    for (uint32_t i = 0; i < OWNERS; i++) { /* all owners leave: every bin must become whole */
        fdri_piece_collect(&a, o[i].l);
        fdri_bins_piece_leave(&a, o[i].l);
    }
    sound(&a);
    assert_int_equal(fdri_strewn_count(&a), 0);
    for (uint32_t i = 0; i < OWNERS; i++) assert_int_equal(o[i].l->bins_held + o[i].l->strewn_units, 0);
    assert_int_equal(a.super->free_bins, (uint32_t)a.super->virgin);
    assert_int_equal(a.split_bins + a.given_eighths, 0);
    free(holder);
    free(memory);
}

static struct fdri_arena_location *a_location(struct fdri_bins_arena *a)
{
    uint32_t off = fdri_bins_meta_take(a, FDRI_ARENA_META_LOCATION, sizeof(struct fdri_arena_location), UINT32_MAX);
    struct fdri_arena_location *l = fdri_bins_at(a, off);
    l->next = a->super->location_first;
    a->super->location_first = off;
    return l;
}

/* An arena whose bins may have pieces in several locations, and two locations. */
static void *arena_of_two(struct fdri_bins_arena *a, uint32_t log2, struct fdri_arena_location **l,
                          struct fdri_arena_location **other)
{
    void *memory = format(a, 4 << 20, 1u << log2);
    fdri_arena_strew(a);
    *l = a_location(a);
    *other = a_location(a);
    return memory;
}

/* Moves a piece from one location's stack of returned pieces to another's. So it looks adopted by the second location,
 * and lost again to a claim. */
static void pass_on(struct fdri_bins_arena *a, struct fdri_arena_location *from, struct fdri_arena_location *to)
{
    uint32_t got, off = fdri_piece_adopt(a, from, 9, true, &got);
    assert_int_not_equal(off, 0);
    fdri_atomic_add_relaxed(&to->strewn_units, 1u << (got - 9));
    fdri_piece_return(a, to, off);
}

/* When one location gets the last piece of a bin, the bin no longer counts as divided among locations. */
static void P3_bin_of_one_owner_is_no_longer_strewn(void **state)
{
    (void)state;
    for (uint32_t log2 = 10; log2 <= 16; log2++) {
        struct fdri_bins_arena a;
        struct fdri_arena_location *l, *other;
        void *memory = arena_of_two(&a, log2, &l, &other);
        uint32_t half = log2 - 1, one = fdri_bins_piece_take(&a, l, half), two = fdri_bins_piece_take(&a, l, half);
        fdri_piece_return(&a, l, one);
        pass_on(&a, l, other);
        sound(&a);
        assert_int_equal(l->bins_held, 0);
        assert_int_equal(l->strewn_units, 1u << (half - 9));
        assert_int_equal(fdri_strewn_left(&a), 1u << log2);
        pass_on(&a, other, l);
        assert_int_equal(other->strewn_units, 0);
        fdri_bins_piece_give(&a, l, two, half);
        fdri_piece_collect(&a, l);
        sound(&a);
        assert_int_equal(l->strewn_units, 0);
        assert_int_equal(fdri_strewn_count(&a) + a.split_bins, 0);
        assert_int_equal(a.super->free_bins, 1);
        free(memory);
    }
}

static void take_again(struct fdri_bins_arena *a, struct fdri_arena_location *l, uint32_t want, uint32_t off,
                       uint32_t log2)
{
    uint32_t got = 0;
    assert_int_equal(fdri_strewn_take(a, want, &got), off);
    assert_int_equal(got, log2);
    fdri_atomic_add_relaxed(&l->strewn_units, 1u << (got - 9));
    sound(a);
}

static void leave(struct fdri_bins_arena *a, struct fdri_arena_location *l)
{
    fdri_piece_collect(a, l);
    fdri_bins_piece_leave(a, l);
    sound(a);
}

/* Returned pieces of divided bins serve others while another location still has the rest. The largest go first. */
static void P2_what_was_given_back_is_taken_again(void **state)
{
    (void)state;
    for (uint32_t log2 = 10; log2 <= 16; log2++) {
        struct fdri_bins_arena a;
        struct fdri_arena_location *l, *other;
        void *memory = arena_of_two(&a, log2, &l, &other);
        uint32_t least = (uint32_t)fdri_bits_max(log2 - 3, 9), half = log2 - 1, got,
                 off = fdri_bins_piece_take(&a, l, least);
        uint32_t whole = off, behind = off + (1u << half);
        assert_int_equal(fdri_strewn_take(&a, least, &got), 0);
        fdri_piece_return(&a, l, off);
        pass_on(&a, l, other);
        leave(&a, other);
        assert_int_equal(fdri_strewn_left(&a), (1u << log2) - (1u << least));
        if (least < half) assert_int_equal(fdri_strewn_take(&a, half, &got), 0); /* no such piece exists */
        take_again(&a, other, least, off, least);
        assert_int_equal(fdri_strewn_take(&a, least, &got), 0);
        leave(&a, l); /* all pieces except those of the other location */
        take_again(&a, l, least, behind, half);
        fdri_bins_piece_give(&a, l, behind, half);
        leave(&a, l);
        fdri_bins_piece_give(&a, other, off, least);
        leave(&a, other);
        assert_int_equal(fdri_strewn_count(&a) + a.split_bins + a.given_eighths + l->strewn_units + other->strewn_units,
                         0);
        assert_int_equal(a.super->free_bins, 1);
        assert_int_equal(fdri_bins_take(&a, 0), whole);
        free(memory);
    }
}

/* One search looks at a bounded number of pieces. The next search goes on behind them. */
static void P2_every_returned_piece_is_found(void **state)
{
    (void)state;
    enum { SMALL = 200 };
    struct fdri_bins_arena a;
    struct fdri_arena_location *l, *other;
    void *memory = arena_of_two(&a, 12, &l, &other);
    uint32_t large = fdri_bins_piece_take(&a, l, 11), small[2 * SMALL], got = 0, tries = 0, off = 0;
    for (int i = 0; i < 2 * SMALL; i++) small[i] = fdri_bins_piece_take(&a, l, 9);
    fdri_piece_return(&a, l, large);
    for (int i = 0; i < 2 * SMALL; i += 2) fdri_piece_return(&a, l, small[i]); /* no two of them form a larger piece */
    while (!off && tries++ < SMALL) off = fdri_piece_adopt(&a, l, 11, true, &got);
    print_message("found at try %u of %d\n", tries, SMALL);
    assert_int_equal(off, large);
    fdri_atomic_add_relaxed(&other->strewn_units, 1u << (got - 9));
    fdri_bins_piece_give(&a, other, off, got);
    for (int i = 1; i < 2 * SMALL; i += 2) fdri_bins_piece_give(&a, l, small[i], 9);
    fdri_piece_collect(&a, l);
    fdri_bins_piece_leave(&a, l);
    fdri_bins_piece_leave(&a, other);
    sound(&a);
    assert_int_equal(a.super->free_bins, (uint32_t)a.super->virgin);
    free(memory);
}

/* If bins have the least size there are no pieces, and no memory is used to note their owners. */
static void P2_smallest_bins_are_never_strewn(void **state)
{
    (void)state;
    struct fdri_bins_arena a;
    void *memory = format(&a, 4 << 20, 512);
    uint64_t before = fdri_bins_meta_used(&a);
    fdri_arena_strew(&a);
    assert_int_equal(fdri_bins_meta_used(&a), before);
    assert_null(a.strewn);
    free(memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(P3_pieces_change_owners), cmocka_unit_test(P3_bin_of_one_owner_is_no_longer_strewn),
        cmocka_unit_test(P2_what_was_given_back_is_taken_again), cmocka_unit_test(P2_every_returned_piece_is_found),
        cmocka_unit_test(P2_smallest_bins_are_never_strewn)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
