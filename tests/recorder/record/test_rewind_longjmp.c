/* SPDX-License-Identifier: MIT */
/* ctest: label=unit,threads timeout=60 promise=P3 wrap=fdri_bins_piece_give,fdri_record_rewind_ended
 * P3: a handler leaves a rewind by longjmp at each bin that the rewind gives back. The ledger must balance at the
 * thread's next event, and still after the thread has ended and was merged into [ended]. If a call was open at the
 * mark and its leave was abandoned, its record stays. */
#include <fdr/fdr.h>
#include <fdr/reader.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "bins/bins.h"
#include "format/arena/arena.h"
#include "recorder/thread/arena_place.h"
#include "recorder/thread/thread_state.h"
#include "tests/support/api_fixture.h"
#include "tests/support/random_numbers.h"

enum { REGIONS = 16, DEPTH = 10 };
static fdr_region region[REGIONS];
static jmp_buf away;
static uint32_t until; /* jump at the nth bin given back; 0: never */
static __thread bool rewinding;

void __real_fdri_bins_piece_give(struct fdri_bins_arena *a, struct fdri_arena_location *l, uint32_t off,
                                 uint32_t size_log2);
void __wrap_fdri_bins_piece_give(struct fdri_bins_arena *a, struct fdri_arena_location *l, uint32_t off,
                                 uint32_t size_log2);
void __wrap_fdri_bins_piece_give(struct fdri_bins_arena *a, struct fdri_arena_location *l, uint32_t off,
                                 uint32_t size_log2)
{
    if (rewinding && until && !--until) longjmp(away, 1);
    __real_fdri_bins_piece_give(a, l, off, size_log2);
}

static void present(uint64_t seed, uint32_t events)
{
    static __thread uint64_t now;
    if (now < fdri_record_self.presented_tick) now = fdri_record_self.presented_tick;
    for (uint32_t i = 0; i < events; i++) {
        uint32_t depth = fdri_record_self.loc ? fdri_record_self.loc->depth : 0;
        now += rnd(&seed, 20) ? rnd(&seed, 300) : rnd(&seed, 20000);
        if (rnd(&seed, 30) == 0) fdr_marker_at(1, i, now);
        else if (depth < 1 || (depth < DEPTH && rnd(&seed, 2))) fdr_enter_at(region[rnd(&seed, REGIONS)], now);
        else fdr_leave_at(fdri_record_self.top->region, now);
    }
}

static bool left_in_the_middle(uint32_t after)
{
    until = after;
    if (!setjmp(away)) {
        rewinding = true;
        fdr_rewind();
    }
    rewinding = false;
    bool left = !until;
    until = 0;
    return left;
}

static void balanced(void)
{
    char text[200];
    struct fdr_file *f = take();
    const struct fdr_ledger_row *r;
    size_t n = fdr_ledger(f, &r);
    for (size_t i = 0; i < n; i++) {
        uint64_t sum = r[i].kept + r[i].filtered + r[i].reduced + r[i].lost;
        snprintf(text, sizeof text, "location %u class %u depth %u: %llu presented, %llu accounted for", r[i].location,
                 r[i].class_, r[i].depth, (unsigned long long)r[i].presented, (unsigned long long)sum);
        if (sum != r[i].presented) fail_msg("%s", text);
    }
    fdr_file_close(f);
}

static uint32_t left_ones;

static void *worker(void *after)
{
    present(7, 3000);
    fdr_rewind_mark();
    present(8, 3000);
    left_ones += left_in_the_middle((uint32_t)(uintptr_t)after);
    present(9, 40);
    for (uint32_t off = fdri_record_self.loc->parts_first; off;) {
        const struct fdri_arena_part *p = fdri_thread_at(&fdri_record_self, off);
        assert_int_equal(p->rewind_records, 0);
        off = p->next;
    }
    while (fdri_record_self.loc->depth) fdr_leave(fdri_record_self.top->region);
    return NULL;
}

static void *other(void *state)
{
    present(10, 2000);
    while (fdri_record_self.loc->depth) fdr_leave(fdri_record_self.top->region);
    return state;
}

static void in_a_thread(void *(*f)(void *), uint32_t argument)
{
    pthread_t t;
    assert_int_equal(pthread_create(&t, NULL, f, (void *)(uintptr_t)argument), 0);
    pthread_join(t, NULL);
}

static void P3_rewind_abandoned_by_longjmp(void **state)
{
    (void)state;
    for (uint32_t after = 1; after < 24; after++) {
        begin(&(struct fdr_config){.strategy = "telescope", .buffer = "192K", .bin = "512"});
        for (int i = 0; i < REGIONS; i++)
            region[i] = fdr_region_define((const char[]){(char)('a' + i), 0}, "rewind_left.c", 1);
        in_a_thread(worker, after);
        balanced();
        /* their need of memory merges the ended thread into [ended] */
        for (int i = 0; i < 24; i++) in_a_thread(other, 0);
        balanced();
        fdr_finalize();
    }
    assert_true(left_ones > 10);
}

static bool leaving;
void __real_fdri_record_rewind_ended(struct fdri_thread *t, const struct fdri_arena_level *v, uint32_t depth,
                                     uint64_t tick);
void __wrap_fdri_record_rewind_ended(struct fdri_thread *t, const struct fdri_arena_level *v, uint32_t depth,
                                     uint64_t tick);
void __wrap_fdri_record_rewind_ended(struct fdri_thread *t, const struct fdri_arena_level *v, uint32_t depth,
                                     uint64_t tick)
{
    if (leaving) longjmp(away, 1);
    __real_fdri_record_rewind_ended(t, v, depth, tick);
}

static void a_leave_that_was_left(void **state)
{
    (void)state;
    begin(&(struct fdr_config){.strategy = "telescope", .buffer = "1M"});
    for (int i = 0; i < 3; i++) region[i] = fdr_region_define((const char[]){(char)('a' + i), 0}, "rewind_left.c", 1);
    fdr_enter_at(region[0], 1000);
    fdr_rewind_mark();
    fdr_enter_at(region[1], 1100);
    fdr_leave_at(region[1], 1200);
    leaving = true;
    if (!setjmp(away)) fdr_leave_at(region[0], 1300);
    leaving = false;
    fdr_enter_at(region[2], 1400);
    fdr_leave_at(region[2], 1500);
    fdr_rewind();
    struct fdr_file *f = take();
    assert_int_equal(fdri_record_self.loc->abandoned, 1);
    assert_int_equal(row(f, 0, FDR_IN_REGION, 1)->kept, 2);
    assert_int_equal(row(f, 0, FDR_IN_REGION, 2)->kept, 1);
    assert_int_equal(balance(f), 3);
    end(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(P3_rewind_abandoned_by_longjmp),
                                       cmocka_unit_test(a_leave_that_was_left)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
