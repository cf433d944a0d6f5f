/* SPDX-License-Identifier: MIT */
/* ctest: label=stress,threads timeout=300 promise=P1,P3,P10
 * P1, P3, P10: under load no bin has two holders, none is lost, and meta blocks and bins never overlap. Threads take
 * and give back at random. The later parts check pieces of bins, and the lists of partitions. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "bins/bin_run.h"
#include "bins/bins.h"
#include "bins/claims.h"
#include "bins/partition.h"
#include "bins/pieces.h"
#include "format/arena/arena.h"
#include "format/codec/encode.h"
#include "format/codec/prediction.h"
#include "format/codec/record_codec.h"
#include "tests/support/bare_arena.h"
#include "tests/support/random_numbers.h"

enum { THREADS = 4 };

/* ---- bins ---- */

struct worker {
    pthread_t thread;
    struct fdri_bins_arena *arena;
    uint32_t *holder; /* for each bin: the number of its holder; 0 = none */
    uint64_t seed, takes, meta_blocks, failures;
    uint32_t number, held[64], count;
    bool meta, twice;
};

static uint32_t index_of(const struct fdri_bins_arena *a, uint32_t off)
{
    return (uint32_t)((off - a->super->bins_off) / a->super->bin_bytes);
}

static void take(struct worker *w)
{
    uint32_t off = w->count < 64 ? fdri_bins_take(w->arena, 0) : 0;
    if (!off) {
        w->failures++;
        return;
    }
    uint32_t *holder = &w->holder[index_of(w->arena, off)];
    if (__atomic_exchange_n(holder, w->number, __ATOMIC_ACQ_REL)) w->twice = true;
    if (fdri_bins_bin(w->arena, off)->generation & 1) w->twice = true;
    fdri_bins_bin(w->arena, off)->location = w->number; /* not atomic, so ThreadSanitizer reports a second holder */
    w->held[w->count++] = off;
    w->takes++;
}

static void give(struct worker *w)
{
    if (!w->count) return;
    uint32_t i = rnd(&w->seed, w->count), off = w->held[i];
    w->held[i] = w->held[--w->count];
    if (fdri_bins_bin(w->arena, off)->location != w->number) w->twice = true;
    __atomic_store_n(&w->holder[index_of(w->arena, off)], 0, __ATOMIC_RELEASE);
    fdri_bins_give(w->arena, off);
}

static void *work(void *argument)
{
    struct worker *w = argument;
    for (int i = 0; i < 200000; i++) {
        if (w->meta && rnd(&w->seed, 2000) == 0)
            w->meta_blocks += fdri_bins_meta_take(w->arena, FDRI_ARENA_META_FREE, 64 + rnd(&w->seed, 300), 0) != 0;
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
        struct fdri_bins_arena a;
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
        /* Every bin handed out is on the free stack now, and can be taken again. */
        uint32_t handed_out = (uint32_t)a.super->virgin, n = 0;
        assert_int_equal(a.super->free_bins, handed_out);
        for (uint32_t i = 0; i < handed_out; i++) n += fdri_bins_take(&a, 0) != 0;
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
    struct fdri_bins_arena a;
    void *memory = format(&a, 256 * 1024, 4096);
    uint32_t low = 0, high = UINT32_MAX, off;
    for (int i = 0; i < 10000; i++) {
        if (i % 3 && (off = fdri_bins_take(&a, 0))) {
            if (off + 4096 > low) low = off + 4096;
        } else if ((off = fdri_bins_meta_take(&a, FDRI_ARENA_META_FREE, 640, 0))) {
            assert_true(off < high);
            high = off;
            for (uint32_t k = 16; k < 640; k++) assert_int_equal(a.base[off + k], 0);
            memset(a.base + off + 16, 0xff, 624);
        }
    }
    assert_true(low <= high && low > 0 && high < 256 * 1024);
    assert_int_equal(fdri_bins_take(&a, 0), 0);
    assert_int_equal(fdri_bins_meta_take(&a, FDRI_ARENA_META_FREE, 640, 0), 0);
    assert_true(fdri_bins_meta_used(&a) <= a.meta_limit);
    free(memory);
}

static void P10_too_small_an_arena_is_refused(void **state)
{
    struct fdri_bins_arena a;
    (void)state;
    char *m = calloc(1, 1 << 20);
    assert_int_not_equal(fdri_bins_format(&a, m, 8192, 4096), 0);
    assert_int_not_equal(fdri_bins_format(&a, m, 65536, 65536), 0);
    assert_int_equal(fdri_bins_format(&a, m, 1 << 20, 65536), 0);
    free(m);
}

/* ---- pieces ---- */

static void P3_pieces_split_and_merge(void **state)
{
    (void)state;
    uint64_t seed = 2463534242u;
    struct fdri_bins_arena a;
    void *memory = format(&a, 512 * 1024, 4096);
    struct fdri_arena_location *l = fdri_bins_at(
        &a, fdri_bins_meta_take(&a, FDRI_ARENA_META_LOCATION, sizeof *l, UINT32_MAX));
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
            uint32_t log2 = 9 + rnd(&seed, 4), off = fdri_bins_piece_take(&a, l, log2);
            if (!off) continue;
            assert_int_equal((off - a.super->bins_off) % (1u << log2), 0);
            for (uint32_t u = off / 512; u < (off + (1u << log2)) / 512; u++) assert_int_equal(used[u]++, 0);
            assert_int_equal(fdri_bins_bin(&a, off)->generation & 1, 0);
            held[n].off = off;
            held[n++].log2 = log2;
        } else if (n) {
            uint32_t i = rnd(&seed, n);
            for (uint32_t u = held[i].off / 512; u < (held[i].off + (1u << held[i].log2)) / 512; u++) used[u]--;
            fdri_bins_piece_give(&a, l, held[i].off, held[i].log2);
            held[i] = held[--n];
        }
        if (round % 1000 == 0) sound(&a);
    }
    while (n) n--, fdri_bins_piece_give(&a, l, held[n].off, held[n].log2);
    sound(&a);
    assert_int_equal(l->bins_held, 0); /* all halves became whole bins again */
    for (int i = 0; i < 7; i++) assert_int_equal(l->piece_free[i], 0);
    free(used);
    free(memory);
}

/* ---- partitions ---- */

/* A location with one partition. */
static struct fdri_arena_part *part_of(struct fdri_bins_arena *a, struct fdri_arena_location **location)
{
    struct fdri_arena_location *l = fdri_bins_at(
        a, fdri_bins_meta_take(a, FDRI_ARENA_META_LOCATION, sizeof *l, UINT32_MAX));
    struct fdri_arena_part *p = fdri_bins_at(a, fdri_bins_meta_take(a, FDRI_ARENA_META_PART, sizeof *p, 0));
    const uint32_t head = sizeof(struct fdri_arena_meta_head);
    a->super->location_first = (uint32_t)((uint8_t *)l - a->base);
    a->super->location_count = 1;
    l->parts_first = (uint32_t)((uint8_t *)p - a->base);
    p->table_off = fdri_bins_meta_take(a, FDRI_ARENA_META_TABLE, head + fdri_codec_contexts(4096) * 8, 0) + head;
    p->list_head = 1ull << 32;
    fdri_codec_encode_close(p);
    p->depth = 1;
    *location = l;
    return p;
}

static void P3_lists_of_bins_keep_their_sums(void **state)
{
    (void)state;
    uint64_t seed = 521288629u;
    struct fdri_bins_arena a;
    void *memory = format(&a, 512 * 1024, 4096);
    struct fdri_arena_location *l;
    struct fdri_arena_part *p = part_of(&a, &l);
    uint64_t presented = 0, given_back = 0, tick = 1000;
    const struct fdri_codec_tie none = {0};
    for (int round = 0; round < 400000; round++) {
        if (fdri_codec_encode_full(p)) {
            fdri_bins_part_seal(&a, p);
            uint32_t off = fdri_bins_piece_take(&a, l, 9), size;
            struct fdri_bins_given given = {0, 0, UINT64_MAX, 0};
            if (!off) {
                assert_true(fdri_bins_part_has_sealed(p));
                off = fdri_bins_part_pop(&a, p, &size, &given);
                assert_int_not_equal(off, 0);
                assert_true(given.events > 0 && given.bytes == 512 && size == 9);
                assert_true(given.from_tick <= given.to_tick);
                uint32_t oldest = (uint32_t)p->list_head; /* the listed events begin where the returned ones end */
                assert_true(!oldest || fdri_bins_bin(&a, oldest)->base_tick == given.to_tick);
                given_back += given.events;
            }
            fdri_bins_part_open(&a, l, p, off, 9, 0, FDRI_CODEC_CALL_BITS_MAX);
            assert_int_equal(fdri_bins_bin(&a, off)->first_index, presented);
            assert_false(fdri_bins_part_has_sealed(p) && (uint32_t)p->list_head == p->open_off);
        }
        uint32_t gap = rnd(&seed, 500), duration = 1 + rnd(&seed, 200);
        struct fdri_arena_bin *b = fdri_bins_bin(&a, p->open_off);
        fdri_codec_encode_call(p, fdri_bins_at(&a, p->table_off), (uint8_t *)(b + 1), 1 + rnd(&seed, 20), gap, duration,
                               &none);
        tick += gap + duration;
        p->last_tick = tick;
        b->commit = fdri_codec_commit_word(p);
        presented++;
        if (round % 5000 == 0) sound(&a);
    }
    uint64_t kept = 0;
    for (uint32_t off = (uint32_t)p->list_head; off; off = fdri_bins_bin(&a, off)->next)
        kept += FDRI_ARENA_COMMIT_RECORDS(fdri_bins_bin(&a, off)->commit);
    assert_true(given_back > 0);
    assert_int_equal(presented, kept + given_back);
    assert_int_equal(fdri_bins_bin(&a, (uint32_t)p->list_head)->first_index, given_back);
    assert_false(fdri_bins_part_older(&a, p, 0));
    /* Empty the list. The open bin goes only after it was sealed. */
    uint32_t size, off;
    struct fdri_bins_given rest = {0, 0, UINT64_MAX, 0};
    while ((off = fdri_bins_part_pop(&a, p, &size, &rest))) fdri_bins_piece_give(&a, l, off, size);
    assert_int_equal(p->bins, 1);
    fdri_bins_part_seal(&a, p);
    assert_int_not_equal(off = fdri_bins_part_pop(&a, p, &size, &rest), 0);
    fdri_bins_piece_give(&a, l, off, size);
    assert_int_equal((uint32_t)p->list_head, 0);
    assert_int_equal(rest.events + given_back, presented);
    assert_int_equal(p->total, presented);
    assert_int_equal(l->bins_held, 0);
    sound(&a);
    free(memory);
}

/* Adds `bins` bins of 1 << size_log2 bytes to partition p, with one record each. */
static void append(struct fdri_bins_arena *a, struct fdri_arena_location *l, struct fdri_arena_part *p, uint32_t bins,
                   uint32_t size_log2)
{
    const struct fdri_codec_tie none = {0};
    for (uint32_t i = 0; i < bins; i++) {
        fdri_bins_part_seal(a, p);
        uint32_t off = fdri_bins_piece_take(a, l, size_log2);
        assert_int_not_equal(off, 0);
        fdri_bins_part_open(a, l, p, off, size_log2, 0, FDRI_CODEC_CALL_BITS_MAX);
        struct fdri_arena_bin *b = fdri_bins_bin(a, off);
        fdri_codec_encode_call(p, fdri_bins_at(a, p->table_off), (uint8_t *)(b + 1), 1, 50, 50, &none);
        p->last_tick += 100;
        b->commit = fdri_codec_commit_word(p);
    }
}

enum { ROOM = 48 };
static struct fdri_bins_run *new_run(void)
{
    struct fdri_bins_run *r = calloc(1, sizeof *r + (ROOM + 1) * sizeof r->bin[0]);
    r->capacity = ROOM;
    return r;
}

static uint32_t pop_run(struct fdri_bins_arena *a, struct fdri_arena_part *p, uint64_t tick, uint32_t most, bool small,
                        struct fdri_bins_run *r, struct fdri_bins_given *given)
{
    fdri_bins_run_begin(a, p, tick, r);
    while (fdri_bins_run_look(a, r)) continue;
    return fdri_bins_run_pop(a, p, most, small, r, given);
}

static void give_run(struct fdri_bins_arena *a, struct fdri_arena_location *l, const struct fdri_bins_run *r)
{
    fdri_bins_run_empty(a, r);
    for (uint32_t i = 0; i < r->popped; i++) {
        assert_false(fdri_bins_bin(a, r->bin[i].off)->generation & 1);
        fdri_bins_piece_give(a, l, r->bin[i].off, r->bin[i].size_log2);
    }
}

/* A run takes several bins off the list at once. It takes neither the open bin nor bins that end after the limit. Small
 * bins go only if allowed, and then fewer of them. */
static void P3_a_run_of_bins_is_taken_at_once(void **state)
{
    (void)state;
    struct fdri_bins_arena a;
    void *memory = format(&a, 1 << 20, 4096);
    struct fdri_arena_location *l;
    struct fdri_arena_part *p = part_of(&a, &l);
    struct fdri_bins_given given = {0, 0, UINT64_MAX, 0};
    struct fdri_bins_run *r = new_run();
    uint32_t full = 12;
    append(&a, l, p, 20, full);
    assert_int_equal(pop_run(&a, p, 99, 8, false, r, &given), 0); /* the first bin ends at 100 */
    assert_int_equal(pop_run(&a, p, 500, 8, false, r, &given), 5);
    assert_true(given.events == 5 && given.bytes == 5 * 4096 && given.from_tick == 0 && given.to_tick == 500);
    assert_int_equal(fdri_bins_run_list(r), p->list_head);
    assert_int_equal(fdri_bins_run_left_end(r), fdri_bins_part_oldest_end(&a, p));
    assert_false(fdri_bins_run_more(r));
    sound(&a);
    give_run(&a, l, r);
    assert_int_equal(fdri_bins_bin(&a, (uint32_t)p->list_head)->base_tick, 500);
    append(&a, l, p, 8, 9);
    append(&a, l, p, 3, full);
    assert_int_equal(pop_run(&a, p, UINT64_MAX, 64, false, r, &given), 15); /* the small ones come next */
    give_run(&a, l, r);
    assert_int_equal(fdri_bins_bin(&a, (uint32_t)p->list_head)->size_log2, 9);
    assert_int_equal(pop_run(&a, p, UINT64_MAX, 64, false, r, &given), 0);
    assert_int_equal(pop_run(&a, p, UINT64_MAX, 2, true, r, &given), 4); /* a quarter of two whole ones */
    give_run(&a, l, r);
    /* the other bins of the first 4 KiB, and one whole bin that fits */
    assert_int_equal(pop_run(&a, p, UINT64_MAX, 8, true, r, &given), 5);
    give_run(&a, l, r);
    assert_int_equal(pop_run(&a, p, UINT64_MAX, 8, true, r, &given), 1); /* the open one stays */
    give_run(&a, l, r);
    assert_true(p->bins == 1 && p->bytes == 8 && (uint32_t)p->list_head == p->open_off);
    sound(&a);
    free(r);
    free(memory);
}

/* A look at the list stays valid as long as no other thread pops. The unused part of it serves the next run. */
static void P3_a_run_that_was_looked_at_goes_on(void **state)
{
    (void)state;
    struct fdri_bins_arena a;
    void *memory = format(&a, 1 << 20, 4096);
    struct fdri_arena_location *l;
    struct fdri_arena_part *p = part_of(&a, &l);
    struct fdri_bins_given given = {0, 0, UINT64_MAX, 0};
    struct fdri_bins_run *r = new_run();
    uint32_t size, off;
    append(&a, l, p, 20, 12);
    fdri_bins_run_begin(&a, p, 1000, r);
    for (int i = 0; i < 6; i++) assert_true(fdri_bins_run_look(&a, r));
    append(&a, l, p, 20, 12);
    assert_int_equal(fdri_bins_run_pop(&a, p, 2, false, r, &given), 2);
    assert_int_equal(fdri_bins_run_left_end(r), 300);
    give_run(&a, l, r);
    fdri_bins_run_begin(&a, p, 1000, r);
    assert_int_equal(r->noted, 4); /* these bins were looked at before */
    assert_int_equal(fdri_bins_run_pop(&a, p, 8, false, r, &given), 3);
    give_run(&a, l, r);
    assert_true(given.events == 5 && given.to_tick == 500);
    fdri_bins_run_begin(&a, p, 1000, r);
    while (fdri_bins_run_look(&a, r)) continue;
    assert_true(r->past_last_end && r->noted == 6);   /* five of them end by 1000, and the next one begins there */
    off = fdri_bins_part_claim(&a, p, &size, &given); /* another thread was faster */
    assert_int_not_equal(off, 0);
    assert_int_equal(fdri_bins_run_pop(&a, p, 8, false, r, &given), 0);
    fdri_bins_piece_give(&a, l, off, size);
    assert_int_equal(pop_run(&a, p, 1000, 8, false, r, &given), 4);
    assert_int_equal(fdri_bins_run_left_end(r), 1100);
    give_run(&a, l, r);
    fdri_bins_run_begin(&a, p, UINT64_MAX, r); /* another limit: the run looks at all bins again */
    assert_int_equal(r->noted, 0);
    for (int i = 0; i < 3; i++) fdri_bins_run_look(&a, r);
    fdri_bins_run_forget(r);
    assert_int_equal(fdri_bins_run_pop(&a, p, 8, false, r, &given), 0);
    assert_int_equal(given.events, 10);
    assert_int_equal(p->bins, 30);
    sound(&a);
    free(r);
    free(memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(P3_no_bin_is_handed_out_twice),       cmocka_unit_test(P1_bins_and_meta_never_meet),
        cmocka_unit_test(P10_too_small_an_arena_is_refused),   cmocka_unit_test(P3_pieces_split_and_merge),
        cmocka_unit_test(P3_lists_of_bins_keep_their_sums),    cmocka_unit_test(P3_a_run_of_bins_is_taken_at_once),
        cmocka_unit_test(P3_a_run_that_was_looked_at_goes_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
