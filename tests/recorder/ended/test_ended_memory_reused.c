/* SPDX-License-Identifier: MIT */
/* ctest: label=threads timeout=300 promise=P3,P6,P8
 * ctest: without=tsan (most of its threads take turns; it takes minutes)
 * P3, P6, P8: ended threads hold all memory, and a new thread loses no event. This must hold if no ended thread has
 * aged, if a snapshot keeps their accounts in place, or if the merging thread has no processor. Snapshots taken
 * meanwhile must be whole. A failure shows as lost calls. */
#include "recorder/ended/ended.h"
#include "recorder/shares/shares.h"
#include "recorder/thread/thread_state.h"
#include "tests/support/api_fixture.h"
#include "tests/support/scratch_directory.h"

#include <fdr/fdr.h>
#include <fdr/reader.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

enum { MOST_DEPTH = 40 };
static fdr_region region[MOST_DEPTH];
static int depth, calls;

static void start_with(const char *strategy, const char *buffer, const char *bin)
{
    struct fdr_config c = {.size = sizeof c,
                           .ignore_environment = 1,
                           .strategy = strategy,
                           .buffer = buffer,
                           .bin = bin,
                           .signal = "none",
                           .crash = "0",
                           .arena = "anonymous",
                           .keep = "2,newest",
                           .dir = scratch};
    assert_int_equal(fdr_init(&c), 0);
    for (int d = 0; d < MOST_DEPTH; d++) {
        char name[16];
        snprintf(name, sizeof name, "d%d", d);
        region[d] = fdr_region_define(name, NULL, 0);
    }
}

static void start(const char *buffer, const char *bin) { start_with(NULL, buffer, bin); }

static void *records(void *unused)
{
    for (int i = 0; i < calls; i++) {
        for (int d = 0; d < depth; d++) fdr_enter(region[d]);
        for (int d = depth; d-- > 0;) fdr_leave(region[d]);
    }
    return unused;
}

static void one_after_another(int threads)
{
    pthread_t t;
    for (int i = 0; i < threads; i++) {
        assert_int_equal(pthread_create(&t, NULL, records, NULL), 0);
        pthread_join(t, NULL);
    }
}

static void P3_ended_threads_make_room(void **state)
{
    static const struct {
        const char *buffer, *bin;
        int depth, calls, threads;
    } run[] = {{"16M", "4K", 20, 20000, 16}, {"4M", "1K", 10, 20000, 16}, {"4M", "512", 4, 40000, 24}};
    (void)state;
    for (size_t i = 0; i < sizeof run / sizeof *run; i++) {
        start(run[i].buffer, run[i].bin);
        depth = run[i].depth;
        calls = run[i].calls;
        one_after_another(run[i].threads);
        struct fdr_usage u = fdr_usage();
        assert_int_equal(u.presented, (uint64_t)depth * (uint64_t)calls * (uint64_t)run[i].threads);
        assert_true(u.reduced > 0); /* the buffer was full */
        assert_int_equal(u.lost, 0);
        fdr_finalize();
    }
}

/* One thread that ended just now holds all memory. */
static void P3_ended_threads_make_room_before_they_age(void **state)
{
    (void)state;
    start("1M", "1K");
    depth = 40;
    calls = 37500;
    one_after_another(1);
    assert_true(fdr_usage().reduced > 0);
    one_after_another(1);
    assert_int_equal(fdr_usage().lost, 0);
    fdr_finalize();
}

static void P6_while_a_snapshot_walks(void **state)
{
    (void)state;
    start("4M", "4K");
    depth = 8;
    calls = 20000;
    one_after_another(24);
    uint64_t before = fdr_usage().lost;
    assert_true(fdri_ended_freeze(1000000000)); /* as a snapshot does */
    one_after_another(2);
    struct fdr_usage beside = fdr_usage(); /* accounts do not move, so fdr_usage counts all of them */
    fdri_ended_unfreeze();
    assert_int_equal(beside.presented, 26ull * (uint64_t)depth * (uint64_t)calls);
    assert_int_equal(fdr_usage().lost, before);
    one_after_another(8);
    assert_int_equal(fdr_usage().lost, before);
    fdr_finalize();
}

static bool over;
static void *goes_on(void *unused)
{
    while (!__atomic_load_n(&over, __ATOMIC_RELAXED)) records(NULL);
    return unused;
}

static uint32_t least_held;
static void *records_and_counts(void *unused)
{
    records(NULL);
    uint32_t held = fdri_shares_bins_of(fdri_record_self.loc), least = __atomic_load_n(&least_held, __ATOMIC_RELAXED);
    while (held < least &&
           !__atomic_compare_exchange_n(&least_held, &least, held, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {}
    return unused;
}

/* Threads take bins of ended threads without the lock on ended accounts, which another thread holds, beside a live
 * busy thread. */
static void P3_while_another_moves_accounts(void **state)
{
    enum { ANOTHER = 64, BEFORE = 160, AT_ONCE = 8, LEAST = 8 };
    static const char *const strategy[] = {"telescope", "whole", "last"};
    (void)state;
    for (size_t i = 0; i < sizeof strategy / sizeof *strategy; i++) {
        pthread_t t[AT_ONCE], busy;
        start_with(strategy[i], "16M", "4K");
        depth = 9;
        calls = 4000;
        one_after_another(BEFORE);
        assert_true(fdr_usage().reduced > 0); /* the buffer was full */
        assert_int_equal(fdr_usage().lost, 0);
        __atomic_store_n(&over, false, __ATOMIC_RELAXED);
        assert_int_equal(pthread_create(&busy, NULL, goes_on, NULL), 0);
        while (fdr_usage().presented < (uint64_t)depth * (uint64_t)calls * (BEFORE + 8)) usleep(1000);
        while (!fdri_ended_lock(ANOTHER, 0)) usleep(100); /* the busy thread may hold it for a moment */
        least_held = UINT32_MAX;
        for (int k = 0; k < AT_ONCE; k++) assert_int_equal(pthread_create(&t[k], NULL, records_and_counts, NULL), 0);
        for (int k = 0; k < AT_ONCE; k++) pthread_join(t[k], NULL);
        __atomic_store_n(&over, true, __ATOMIC_RELAXED);
        pthread_join(busy, NULL);
        fdri_ended_unlock();
        uint64_t lost = fdr_usage().lost;
        print_message("%s: each of %d threads ended with %u bins and more\n", strategy[i], AT_ONCE, least_held);
        if (lost) fail_msg("%s: %llu calls are lost", strategy[i], (unsigned long long)lost);
        assert_true(least_held >= LEAST);
        fdr_finalize();
    }
}

static void *comes_and_goes(void *unused)
{
    while (!__atomic_load_n(&over, __ATOMIC_RELAXED)) one_after_another(1);
    return unused;
}

static void P8_snapshots_beside_folding_are_whole(void **state)
{
    enum { SNAPSHOTS = 40 };
    pthread_t t;
    (void)state;
    start("4M", "4K");
    depth = 8;
    calls = 5000;
    one_after_another(60);
    __atomic_store_n(&over, false, __ATOMIC_RELAXED);
    assert_int_equal(pthread_create(&t, NULL, comes_and_goes, NULL), 0);
    for (int i = 0; i < SNAPSHOTS; i++) {
        struct fdr_file *f;
        char message[300] = "";
        assert_int_equal(fdr_snapshot(NULL), 0);
        if (fdr_file_open(fdr_last_snapshot(), &f, message, sizeof message) != FDR_WHOLE ||
            fdr_file_verify(f) != FDR_WHOLE)
            fail_msg("%s %s", message, f && fdr_file_damage(f, 0) ? fdr_file_damage(f, 0) : "");
        fdr_file_close(f);
        unlink(fdr_last_snapshot());
    }
    __atomic_store_n(&over, true, __ATOMIC_RELAXED);
    pthread_join(t, NULL);
    fdr_finalize();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(P3_ended_threads_make_room), cmocka_unit_test(P3_ended_threads_make_room_before_they_age),
        cmocka_unit_test(P6_while_a_snapshot_walks), cmocka_unit_test(P3_while_another_moves_accounts),
        cmocka_unit_test(P8_snapshots_beside_folding_are_whole)};
    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}
