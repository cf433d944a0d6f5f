/* SPDX-License-Identifier: MIT */
/* ctest: label=stress timeout=300
 * The allocator under load: no bin has two holders, nothing is lost, meta and bins never meet. Pieces and lists. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bins/bins.h"
#include "format/record.h"
#include "tests/rnd.h"

enum { THREADS = 4 };

static void *format(struct fdri_arena *a, uint64_t bytes, uint32_t bin_bytes)
{
    void *m = aligned_alloc(65536, bytes);
    memset(m, 0, bytes);
    assert_int_equal(fdri_arena_format(a, m, bytes, bin_bytes), 0);
    return m;
}

static void sound(const struct fdri_arena *a)
{
    char text[128];
    const char *wrong = fdri_bins_check(a, text, sizeof text);
    if (wrong) print_message("%s\n", wrong);
    assert_null(wrong);
}

/* ---- bins ---- */

struct worker {
    pthread_t thread;
    struct fdri_arena *arena;
    uint32_t *holder; /* per bin: who has it, 0 = nobody */
    uint64_t seed, takes, meta_blocks, failures;
    uint32_t number, held[64], count;
    bool meta, twice;
};

static uint32_t index_of(const struct fdri_arena *a, uint32_t off)
{
    return (uint32_t)((off - a->super->bins_off) / a->super->bin_bytes);
}

static void take(struct worker *w)
{
    uint32_t off = w->count < 64 ? fdri_bin_take(w->arena, 0) : 0;
    if (!off) {
        w->failures++;
        return;
    }
    uint32_t *holder = &w->holder[index_of(w->arena, off)];
    if (__atomic_exchange_n(holder, w->number, __ATOMIC_ACQ_REL)) w->twice = true;
    if (fdri_bin(w->arena, off)->generation & 1) w->twice = true;
    fdri_bin(w->arena, off)->location = w->number; /* not atomic: ThreadSanitizer sees a second holder */
    w->held[w->count++] = off;
    w->takes++;
}

static void give(struct worker *w)
{
    if (!w->count) return;
    uint32_t i = rnd(&w->seed, w->count), off = w->held[i];
    w->held[i] = w->held[--w->count];
    if (fdri_bin(w->arena, off)->location != w->number) w->twice = true;
    __atomic_store_n(&w->holder[index_of(w->arena, off)], 0, __ATOMIC_RELEASE);
    fdri_bin_give(w->arena, off);
}

static void *work(void *argument)
{
    struct worker *w = argument;
    for (int i = 0; i < 200000; i++) {
        if (w->meta && rnd(&w->seed, 2000) == 0)
            w->meta_blocks += fdri_meta_take(w->arena, FDR_META_FREE, 64 + rnd(&w->seed, 300), 0) != 0;
        else if (rnd(&w->seed, 100) < 52) take(w);
        else give(w);
    }
    while (w->count) give(w);
    return NULL;
}

static void P3_no_bin_is_handed_out_twice(void **state)
{
    (void)state;
    for (uint32_t bin_bytes = 512; bin_bytes <= 4096; bin_bytes *= 8) {
        struct fdri_arena a;
        void *memory = format(&a, 256 * 1024, bin_bytes);
        uint32_t *holder = calloc(a.super->bins_total + 1, sizeof *holder);
        struct worker w[THREADS];
        memset(w, 0, sizeof w);
        uint64_t takes = 0, failures = 0, meta = 0;
        for (uint32_t i = 0; i < THREADS; i++) {
            w[i] = (struct worker){
                .arena = &a, .holder = holder, .seed = 88172645463325252u + i * 7919u, .number = i + 1, .meta = true};
            assert_int_equal(pthread_create(&w[i].thread, NULL, work, &w[i]), 0);
        }
        for (uint32_t i = 0; i < THREADS; i++) {
            pthread_join(w[i].thread, NULL);
            assert_false(w[i].twice);
            takes += w[i].takes;
            failures += w[i].failures;
            meta += w[i].meta_blocks;
        }
        for (uint32_t i = 0; i < a.super->bins_total; i++) assert_int_equal(holder[i], 0);
        sound(&a);
        /* all that was handed out is on the free stack, and can be taken once more */
        uint32_t handed_out = (uint32_t)a.super->virgin, n = 0;
        assert_int_equal(a.super->free_bins, handed_out);
        for (uint32_t i = 0; i < handed_out; i++) n += fdri_bin_take(&a, 0) != 0;
        assert_int_equal(n, handed_out);
        assert_true(takes > 1000 && failures > 0 && meta > 0);
        print_message("bins of %u: %llu taken, %llu times none, %llu meta blocks\n", bin_bytes,
                      (unsigned long long)takes, (unsigned long long)failures, (unsigned long long)meta);
        free(holder);
        free(memory);
    }
}

static void P1_bins_and_meta_never_meet(void **state)
{
    (void)state;
    struct fdri_arena a;
    void *memory = format(&a, 256 * 1024, 4096);
    uint32_t low = 0, high = UINT32_MAX, off;
    for (int i = 0; i < 10000; i++) {
        if (i % 3 && (off = fdri_bin_take(&a, 0))) {
            if (off + 4096 > low) low = off + 4096;
        } else if ((off = fdri_meta_take(&a, FDR_META_FREE, 640, 0))) {
            assert_true(off < high);
            high = off;
            for (uint32_t k = 16; k < 640; k++) assert_int_equal(a.base[off + k], 0);
            memset(a.base + off + 16, 0xff, 624);
        }
    }
    assert_true(low <= high && low > 0 && high < 256 * 1024);
    assert_int_equal(fdri_bin_take(&a, 0), 0);
    assert_int_equal(fdri_meta_take(&a, FDR_META_FREE, 640, 0), 0);
    assert_true(fdri_meta_used(&a) <= a.meta_limit);
    free(memory);
}

static void P10_too_small_an_arena_is_refused(void **state)
{
    struct fdri_arena a;
    (void)state;
    char *m = calloc(1, 1 << 20);
    assert_int_not_equal(fdri_arena_format(&a, m, 8192, 4096), 0);
    assert_int_not_equal(fdri_arena_format(&a, m, 65536, 65536), 0);
    assert_int_equal(fdri_arena_format(&a, m, 1 << 20, 65536), 0);
    free(m);
}

/* ---- pieces ---- */

static void P3_pieces_split_and_merge(void **state)
{
    (void)state;
    uint64_t seed = 2463534242u;
    struct fdri_arena a;
    void *memory = format(&a, 512 * 1024, 4096);
    struct fdr_location *l = fdri_at(&a, fdri_meta_take(&a, FDR_META_LOCATION, sizeof *l, UINT32_MAX));
    a.super->location_first = (uint32_t)((uint8_t *)l - a.base);
    a.super->location_count = 1;
    enum { MOST = 300 };
    struct {
        uint32_t off, log2;
    } held[MOST];
    uint32_t n = 0;
    uint8_t *used = calloc(1, 512 * 1024 / 512);
    for (int round = 0; round < 100000; round++) {
        if (rnd(&seed, 100) < 50 && n < MOST) {
            uint32_t log2 = 9 + rnd(&seed, 4), off = fdri_piece_take(&a, l, log2);
            if (!off) continue;
            assert_int_equal((off - a.super->bins_off) % (1u << log2), 0);
            for (uint32_t u = off / 512; u < (off + (1u << log2)) / 512; u++) assert_int_equal(used[u]++, 0);
            assert_int_equal(fdri_bin(&a, off)->generation & 1, 0);
            held[n].off = off;
            held[n++].log2 = log2;
        } else if (n) {
            uint32_t i = rnd(&seed, n);
            for (uint32_t u = held[i].off / 512; u < (held[i].off + (1u << held[i].log2)) / 512; u++) used[u]--;
            fdri_piece_give(&a, l, held[i].off, held[i].log2);
            held[i] = held[--n];
        }
        if (round % 1000 == 0) sound(&a);
    }
    while (n) n--, fdri_piece_give(&a, l, held[n].off, held[n].log2);
    sound(&a);
    assert_int_equal(l->bins_held, 0); /* all halves found each other again */
    for (int i = 0; i < 7; i++) assert_int_equal(l->piece_free[i], 0);
    free(used);
    free(memory);
}

/* ---- pieces that change their owners ---- */

enum { OWNERS = 4, HELD = 40, ARENA = 128 * 1024, LEAST_LOG2 = 9, FULL_LOG2 = 12 };

static pthread_barrier_t all_begin;

struct owner {
    pthread_t thread;
    struct fdri_arena *arena;
    struct fdr_location *l;
    struct owner *all; /* OWNERS of them */
    uint32_t *holder;  /* per 512 bytes: who has it, 0: it lies in a list */
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
    fdri_bin(o->arena, off)->size_log2 = (uint8_t)log2;
    fdri_bin(o->arena, off)->location = o->number; /* not atomic: ThreadSanitizer sees a second holder */
    o->held[o->count].off = off;
    o->held[o->count++].log2 = log2;
}

/* Gives one of those held to the own lists or, as a claimer would, back over the stack. */
static void let_go(struct owner *o, bool stack)
{
    uint32_t i = rnd(&o->seed, o->count), off = o->held[i].off, log2 = o->held[i].log2;
    o->held[i] = o->held[--o->count];
    o->twice |= fdri_bin(o->arena, off)->location != o->number;
    mark(o, off, log2, o->number, 0);
    if (stack && log2 < FULL_LOG2) fdri_piece_return(o->arena, o->l, off);
    else fdri_piece_give(o->arena, o->l, off, log2);
}

/* From another, or what nobody has any more. */
static void adopt(struct owner *o, struct fdr_location *from)
{
    uint32_t want = LEAST_LOG2 + rnd(&o->seed, 3), got = 0, off = fdri_strewn_take(o->arena, want, &got);
    o->again += off != 0;
    if (!off) {
        if (!fdri_claim_enter(from)) return;
        off = fdri_piece_adopt(o->arena, from, want, &got);
        fdri_claim_leave(from);
    }
    if (!off) return;
    o->twice |= got < want || got >= FULL_LOG2;
    fdr_add_relaxed(&o->l->strewn_units, 1u << (got - 9));
    fdri_piece_split(o->arena, o->l, off, got, want);
    hold(o, off, want);
    o->adopted++;
}

static void take_whole(struct owner *o, struct fdr_location *from)
{
    if (!fdri_claim_enter(from)) return;
    uint32_t off = fdri_piece_whole(o->arena, from);
    if (off) fdr_sub_relaxed(&from->bins_held, 1u);
    if (off) fdr_add_relaxed(&o->l->bins_held, 1u);
    fdri_claim_leave(from);
    if (!off) return;
    hold(o, off, FULL_LOG2);
    o->whole++;
}

/* Awake it takes pieces, which collects what was returned; asleep it loses them to its stack. */
static void step(struct owner *o, bool awake)
{
    struct fdr_location *other = o->all[rnd(&o->seed, OWNERS)].l;
    uint32_t off, log2 = LEAST_LOG2 + rnd(&o->seed, 3), what = rnd(&o->seed, 4);
    if (o->count == HELD || !what) {
        if (o->count) let_go(o, !awake || rnd(&o->seed, 2));
    } else if (awake) {
        if ((off = fdri_piece_take(o->arena, o->l, log2))) hold(o, off, log2);
    } else if (other != o->l) {
        if (what == 1) take_whole(o, other);
        else adopt(o, other);
    }
}

/* It comes and goes: what it leaves others may have pieces of, and what it adopted others may hold the rest of. */
static void *own(void *argument)
{
    struct owner *o = argument;
    bool awake = true;
    pthread_barrier_wait(&all_begin);
    for (int i = 0; i < 100000; i++) {
        if (!rnd(&o->seed, 40)) awake = !awake;
        if (!rnd(&o->seed, 20)) sched_yield(); /* on one processor, too, others come while it sleeps */
        step(o, awake);
        if (rnd(&o->seed, 500)) continue;
        while (o->count) let_go(o, false);
        while (!fdri_claim_pin(o->l)) continue;
        fdri_piece_collect(o->arena, o->l);
        fdri_piece_leave(o->arena, o->l);
        o->miscounted |= fdr_load_relaxed(&o->l->strewn_units) != 0;
        fdri_claim_unpin(o->l);
    }
    while (o->count) let_go(o, false);
    return NULL;
}

static void P3_pieces_change_owners(void **state)
{
    (void)state;
    struct fdri_arena a;
    void *memory = format(&a, ARENA, 1 << FULL_LOG2);
    uint32_t *holder = calloc(ARENA / 512, sizeof *holder);
    static struct owner o[OWNERS];
    uint64_t adopted = 0, again = 0, whole = 0;
    fdri_arena_strew(&a);
    memset(o, 0, sizeof o);
    pthread_barrier_init(&all_begin, NULL, OWNERS);
    for (uint32_t i = 0; i < OWNERS; i++) {
        uint32_t off = fdri_meta_take(&a, FDR_META_LOCATION, sizeof(struct fdr_location), UINT32_MAX);
        o[i] = (struct owner){
            .arena = &a, .all = o, .holder = holder, .seed = 88172645463325252u + i * 7919u, .number = i + 1};
        o[i].l = fdri_at(&a, off);
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
    for (uint32_t i = 0; i < OWNERS; i++) { /* all leave: every bin is whole again */
        fdri_piece_collect(&a, o[i].l);
        fdri_piece_leave(&a, o[i].l);
    }
    sound(&a);
    assert_int_equal(fdri_strewn_count(&a), 0);
    for (uint32_t i = 0; i < OWNERS; i++) assert_int_equal(o[i].l->bins_held + o[i].l->strewn_units, 0);
    assert_int_equal(a.super->free_bins, (uint32_t)a.super->virgin);
    assert_int_equal(a.pinned + a.given_eighths, 0);
    free(holder);
    free(memory);
}

static struct fdr_location *a_location(struct fdri_arena *a)
{
    uint32_t off = fdri_meta_take(a, FDR_META_LOCATION, sizeof(struct fdr_location), UINT32_MAX);
    struct fdr_location *l = fdri_at(a, off);
    l->next = a->super->location_first;
    a->super->location_first = off;
    return l;
}

/* Moves a piece from one location's stack of returned ones to another's, as one does that adopts it and has it taken off its lists. */
static void pass_on(struct fdri_arena *a, struct fdr_location *from, struct fdr_location *to)
{
    uint32_t got, off = fdri_piece_adopt(a, from, 9, &got);
    assert_int_not_equal(off, 0);
    fdr_add_relaxed(&to->strewn_units, 1u << (got - 9));
    fdri_piece_return(a, to, off);
}

/* A strewn bin all pieces of which come to one location in the end is no longer counted among what that has. */
static void P3_a_strewn_bin_that_one_has_all_of(void **state)
{
    (void)state;
    for (uint32_t log2 = 10; log2 <= 16; log2++) {
        struct fdri_arena a;
        void *memory = format(&a, 4 << 20, 1u << log2);
        fdri_arena_strew(&a);
        struct fdr_location *l = a_location(&a), *other = a_location(&a);
        uint32_t half = log2 - 1, one = fdri_piece_take(&a, l, half), two = fdri_piece_take(&a, l, half);
        fdri_piece_return(&a, l, one);
        pass_on(&a, l, other);
        sound(&a);
        assert_int_equal(l->bins_held, 0);
        assert_int_equal(l->strewn_units, 1u << (half - 9));
        assert_int_equal(fdri_strewn_left(&a), 1u << log2);
        pass_on(&a, other, l);
        assert_int_equal(other->strewn_units, 0);
        fdri_piece_give(&a, l, two, half);
        fdri_piece_collect(&a, l);
        sound(&a);
        assert_int_equal(l->strewn_units, 0);
        assert_int_equal(fdri_strewn_count(&a) + a.pinned, 0);
        assert_int_equal(a.super->free_bins, 1);
        free(memory);
    }
}

static void take_again(struct fdri_arena *a, struct fdr_location *l, uint32_t want, uint32_t off, uint32_t log2)
{
    uint32_t got = 0;
    assert_int_equal(fdri_strewn_take(a, want, &got), off);
    assert_int_equal(got, log2);
    fdr_add_relaxed(&l->strewn_units, 1u << (got - 9));
    sound(a);
}

static void leave(struct fdri_arena *a, struct fdr_location *l)
{
    fdri_piece_collect(a, l);
    fdri_piece_leave(a, l);
    sound(a);
}

/* Pieces of strewn bins that were given back serve others while somebody still has the rest, the largest parts first. */
static void P2_what_was_given_back_is_taken_again(void **state)
{
    (void)state;
    for (uint32_t log2 = 10; log2 <= 16; log2++) {
        struct fdri_arena a;
        void *memory = format(&a, 4 << 20, 1u << log2);
        fdri_arena_strew(&a);
        struct fdr_location *l = a_location(&a), *other = a_location(&a);
        uint32_t least = (uint32_t)fdr_max(log2 - 3, 9), half = log2 - 1, got, off = fdri_piece_take(&a, l, least);
        uint32_t whole = off, behind = off + (1u << half);
        assert_int_equal(fdri_strewn_take(&a, least, &got), 0);
        fdri_piece_return(&a, l, off);
        pass_on(&a, l, other);
        leave(&a, other);
        assert_int_equal(fdri_strewn_left(&a), (1u << log2) - (1u << least));
        if (least < half) assert_int_equal(fdri_strewn_take(&a, half, &got), 0); /* that is not there */
        take_again(&a, other, least, off, least);
        assert_int_equal(fdri_strewn_take(&a, least, &got), 0);
        leave(&a, l); /* all but what the other has */
        take_again(&a, l, least, behind, half);
        fdri_piece_give(&a, l, behind, half);
        leave(&a, l);
        fdri_piece_give(&a, other, off, least);
        leave(&a, other);
        assert_int_equal(fdri_strewn_count(&a) + a.pinned + a.given_eighths + l->strewn_units + other->strewn_units, 0);
        assert_int_equal(a.super->free_bins, 1);
        assert_int_equal(fdri_bin_take(&a, 0), whole);
        free(memory);
    }
}

/* Of more pieces than are looked at in one go those behind come next. */
static void P2_every_returned_piece_is_found(void **state)
{
    (void)state;
    enum { SMALL = 200 };
    struct fdri_arena a;
    void *memory = format(&a, 4 << 20, 4096);
    fdri_arena_strew(&a);
    struct fdr_location *l = a_location(&a), *other = a_location(&a);
    uint32_t large = fdri_piece_take(&a, l, 11), small[2 * SMALL], got = 0, tries = 0, off = 0;
    for (int i = 0; i < 2 * SMALL; i++) small[i] = fdri_piece_take(&a, l, 9);
    fdri_piece_return(&a, l, large);
    for (int i = 0; i < 2 * SMALL; i += 2) fdri_piece_return(&a, l, small[i]); /* no two are halves of one */
    while (!off && tries++ < SMALL) off = fdri_piece_adopt(&a, l, 11, &got);
    print_message("found at try %u of %d\n", tries, SMALL);
    assert_int_equal(off, large);
    fdr_add_relaxed(&other->strewn_units, 1u << (got - 9));
    fdri_piece_give(&a, other, off, got);
    for (int i = 1; i < 2 * SMALL; i += 2) fdri_piece_give(&a, l, small[i], 9);
    fdri_piece_collect(&a, l);
    fdri_piece_leave(&a, l);
    fdri_piece_leave(&a, other);
    sound(&a);
    assert_int_equal(a.super->free_bins, (uint32_t)a.super->virgin);
    free(memory);
}

/* Where bins are as small as they get there are no pieces, and no room is taken to say whose they are. */
static void P2_smallest_bins_are_never_strewn(void **state)
{
    (void)state;
    struct fdri_arena a;
    void *memory = format(&a, 4 << 20, 512);
    uint64_t before = fdri_meta_used(&a);
    fdri_arena_strew(&a);
    assert_int_equal(fdri_meta_used(&a), before);
    assert_null(a.strewn);
    free(memory);
}

/* ---- partitions ---- */

/* A location with one partition. */
static struct fdr_part *part_of(struct fdri_arena *a, struct fdr_location **location)
{
    struct fdr_location *l = fdri_at(a, fdri_meta_take(a, FDR_META_LOCATION, sizeof *l, UINT32_MAX));
    struct fdr_part *p = fdri_at(a, fdri_meta_take(a, FDR_META_PART, sizeof *p, 0));
    const uint32_t head = sizeof(struct fdr_meta_head);
    a->super->location_first = (uint32_t)((uint8_t *)l - a->base);
    a->super->location_count = 1;
    l->parts_first = (uint32_t)((uint8_t *)p - a->base);
    p->table_off = fdri_meta_take(a, FDR_META_TABLE, head + fdr_contexts(4096) * 8, 0) + head;
    p->list_head = 1ull << 32;
    fdr_encode_close(p);
    p->depth = 1;
    *location = l;
    return p;
}

static void P3_lists_of_bins_keep_their_sums(void **state)
{
    (void)state;
    uint64_t seed = 521288629u;
    struct fdri_arena a;
    void *memory = format(&a, 512 * 1024, 4096);
    struct fdr_location *l;
    struct fdr_part *p = part_of(&a, &l);
    uint64_t presented = 0, given_back = 0, tick = 1000;
    const struct fdr_tie none = {0};
    for (int round = 0; round < 400000; round++) {
        if (fdr_encode_full(p)) {
            fdri_part_seal(&a, p);
            uint32_t off = fdri_piece_take(&a, l, 9), size;
            struct fdri_given given = {0, 0, UINT64_MAX, 0};
            if (!off) {
                assert_true(fdri_part_has_sealed(p));
                off = fdri_part_pop(&a, l, p, &size, &given);
                assert_int_not_equal(off, 0);
                assert_true(given.events > 0 && given.bytes == 512 && size == 9);
                assert_true(given.from_tick <= given.to_tick);
                uint32_t oldest = (uint32_t)p->list_head; /* what is held begins where what was given back ends */
                assert_true(!oldest || fdri_bin(&a, oldest)->base_tick == given.to_tick);
                given_back += given.events;
            }
            fdri_part_open(&a, l, p, off, 9, 0, FDR_CALL_BITS_MAX);
            assert_int_equal(fdri_bin(&a, off)->first_index, presented);
            assert_false(fdri_part_has_sealed(p) && (uint32_t)p->list_head == p->open_off);
        }
        uint32_t gap = rnd(&seed, 500), duration = 1 + rnd(&seed, 200);
        struct fdr_bin *b = fdri_bin(&a, p->open_off);
        fdr_encode_call(p, fdri_at(&a, p->table_off), (uint8_t *)(b + 1), 1 + rnd(&seed, 20), gap, duration, &none);
        tick += gap + duration;
        p->last_tick = tick;
        b->commit = fdr_commit_word(p);
        presented++;
        if (round % 5000 == 0) sound(&a);
    }
    uint64_t kept = 0;
    for (uint32_t off = (uint32_t)p->list_head; off; off = fdri_bin(&a, off)->next)
        kept += FDR_COMMIT_RECORDS(fdri_bin(&a, off)->commit);
    assert_true(given_back > 0);
    assert_int_equal(presented, kept + given_back);
    assert_int_equal(fdri_bin(&a, (uint32_t)p->list_head)->first_index, given_back);
    assert_false(fdri_part_older(&a, p, 0));
    /* to the last bin: the open one only once it is sealed */
    uint32_t size, off;
    struct fdri_given rest = {0, 0, UINT64_MAX, 0};
    while ((off = fdri_part_pop(&a, l, p, &size, &rest))) fdri_piece_give(&a, l, off, size);
    assert_int_equal(p->bins, 1);
    fdri_part_seal(&a, p);
    assert_int_not_equal(off = fdri_part_pop(&a, l, p, &size, &rest), 0);
    fdri_piece_give(&a, l, off, size);
    assert_int_equal((uint32_t)p->list_head, 0);
    assert_int_equal(rest.events + given_back, presented);
    assert_int_equal(p->total, presented);
    assert_int_equal(l->bins_held, 0);
    sound(&a);
    free(memory);
}

/* Puts `bins` bins of 1 << size_log2 bytes with one record each behind partition p. */
static void append(struct fdri_arena *a, struct fdr_location *l, struct fdr_part *p, uint32_t bins, uint32_t size_log2)
{
    const struct fdr_tie none = {0};
    for (uint32_t i = 0; i < bins; i++) {
        fdri_part_seal(a, p);
        uint32_t off = fdri_piece_take(a, l, size_log2);
        assert_int_not_equal(off, 0);
        fdri_part_open(a, l, p, off, size_log2, 0, FDR_CALL_BITS_MAX);
        struct fdr_bin *b = fdri_bin(a, off);
        fdr_encode_call(p, fdri_at(a, p->table_off), (uint8_t *)(b + 1), 1, 50, 50, &none);
        p->last_tick += 100;
        b->commit = fdr_commit_word(p);
    }
}

enum { ROOM = 48 };
static struct fdri_run *new_run(void)
{
    struct fdri_run *r = calloc(1, sizeof *r + (ROOM + 1) * sizeof r->bin[0]);
    r->room = ROOM;
    return r;
}

static uint32_t pop_run(struct fdri_arena *a, struct fdr_part *p, uint64_t tick, uint32_t most, bool small,
                        struct fdri_run *r, struct fdri_given *given)
{
    fdri_run_begin(a, p, tick, r);
    while (fdri_run_look(a, r)) continue;
    return fdri_run_pop(a, p, most, small, r, given);
}

static void give_run(struct fdri_arena *a, struct fdr_location *l, const struct fdri_run *r)
{
    fdri_run_empty(a, r);
    for (uint32_t i = 0; i < r->gone; i++) {
        assert_false(fdri_bin(a, r->bin[i].off)->generation & 1);
        fdri_piece_give(a, l, r->bin[i].off, r->bin[i].size_log2);
    }
}

/* Bins at once: never the open one, none that ends later, small ones only if they may go, and then fewer. */
static void P3_a_run_of_bins_is_taken_at_once(void **state)
{
    (void)state;
    struct fdri_arena a;
    void *memory = format(&a, 1 << 20, 4096);
    struct fdr_location *l;
    struct fdr_part *p = part_of(&a, &l);
    struct fdri_given given = {0, 0, UINT64_MAX, 0};
    struct fdri_run *r = new_run();
    uint32_t full = 12;
    append(&a, l, p, 20, full);
    assert_int_equal(pop_run(&a, p, 99, 8, false, r, &given), 0); /* the first one ends at 100 */
    assert_int_equal(pop_run(&a, p, 500, 8, false, r, &given), 5);
    assert_true(given.events == 5 && given.bytes == 5 * 4096 && given.from_tick == 0 && given.to_tick == 500);
    assert_int_equal(fdri_run_list(r), p->list_head);
    assert_int_equal(fdri_run_left_end(r), fdri_part_oldest_end(&a, p));
    assert_false(fdri_run_more(r));
    sound(&a);
    give_run(&a, l, r);
    assert_int_equal(fdri_bin(&a, (uint32_t)p->list_head)->base_tick, 500);
    append(&a, l, p, 8, 9);
    append(&a, l, p, 3, full);
    assert_int_equal(pop_run(&a, p, UINT64_MAX, 64, false, r, &given), 15); /* up to the small ones */
    give_run(&a, l, r);
    assert_int_equal(fdri_bin(&a, (uint32_t)p->list_head)->size_log2, 9);
    assert_int_equal(pop_run(&a, p, UINT64_MAX, 64, false, r, &given), 0);
    assert_int_equal(pop_run(&a, p, UINT64_MAX, 2, true, r, &given), 4); /* a quarter of two whole ones */
    give_run(&a, l, r);
    assert_int_equal(pop_run(&a, p, UINT64_MAX, 8, true, r, &given),
                     5); /* what is left of 4 KiB and one whole one that fits */
    give_run(&a, l, r);
    assert_int_equal(pop_run(&a, p, UINT64_MAX, 8, true, r, &given), 1); /* not the open one */
    give_run(&a, l, r);
    assert_true(p->bins == 1 && p->bytes == 8 && (uint32_t)p->list_head == p->open_off);
    sound(&a);
    free(r);
    free(memory);
}

/* What was looked at long before counts while nobody else popped; what is left of it serves the next time. */
static void P3_a_run_that_was_looked_at_goes_on(void **state)
{
    (void)state;
    struct fdri_arena a;
    void *memory = format(&a, 1 << 20, 4096);
    struct fdr_location *l;
    struct fdr_part *p = part_of(&a, &l);
    struct fdri_given given = {0, 0, UINT64_MAX, 0};
    struct fdri_run *r = new_run();
    uint32_t size, off;
    append(&a, l, p, 20, 12);
    fdri_run_begin(&a, p, 1000, r);
    for (int i = 0; i < 6; i++) assert_true(fdri_run_look(&a, r));
    append(&a, l, p, 20, 12);
    assert_int_equal(fdri_run_pop(&a, p, 2, false, r, &given), 2);
    assert_int_equal(fdri_run_left_end(r), 300);
    give_run(&a, l, r);
    fdri_run_begin(&a, p, 1000, r);
    assert_int_equal(r->seen, 4); /* it knows them */
    assert_int_equal(fdri_run_pop(&a, p, 8, false, r, &given), 3);
    give_run(&a, l, r);
    assert_true(given.events == 5 && given.to_tick == 500);
    fdri_run_begin(&a, p, 1000, r);
    while (fdri_run_look(&a, r)) continue;
    assert_true(r->late && r->seen == 6);        /* five of them end by 1000, and the one behind begins there */
    off = fdri_part_claim(&a, p, &size, &given); /* somebody was faster */
    assert_int_not_equal(off, 0);
    assert_int_equal(fdri_run_pop(&a, p, 8, false, r, &given), 0);
    fdri_piece_give(&a, l, off, size);
    assert_int_equal(pop_run(&a, p, 1000, 8, false, r, &given), 4);
    assert_int_equal(fdri_run_left_end(r), 1100);
    give_run(&a, l, r);
    fdri_run_begin(&a, p, UINT64_MAX, r); /* another limit: all is looked at anew */
    assert_int_equal(r->seen, 0);
    for (int i = 0; i < 3; i++) fdri_run_look(&a, r);
    fdri_run_forget(r);
    assert_int_equal(fdri_run_pop(&a, p, 8, false, r, &given), 0);
    assert_int_equal(given.events, 10);
    assert_int_equal(p->bins, 30);
    sound(&a);
    free(r);
    free(memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(P3_no_bin_is_handed_out_twice),
        cmocka_unit_test(P1_bins_and_meta_never_meet),
        cmocka_unit_test(P10_too_small_an_arena_is_refused),
        cmocka_unit_test(P3_pieces_split_and_merge),
        cmocka_unit_test(P3_pieces_change_owners),
        cmocka_unit_test(P3_a_strewn_bin_that_one_has_all_of),
        cmocka_unit_test(P2_what_was_given_back_is_taken_again),
        cmocka_unit_test(P2_every_returned_piece_is_found),
        cmocka_unit_test(P2_smallest_bins_are_never_strewn),
        cmocka_unit_test(P3_lists_of_bins_keep_their_sums),
        cmocka_unit_test(P3_a_run_of_bins_is_taken_at_once),
        cmocka_unit_test(P3_a_run_that_was_looked_at_goes_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
