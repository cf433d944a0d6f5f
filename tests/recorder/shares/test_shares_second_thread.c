/* SPDX-License-Identifier: MIT */
/* ctest: label=threads timeout=60 promise=P2 without=tsan (its threads take turns)
 * P2: when the second thread of a program comes, fair shares count two threads before it has a location. If the
 * reserve for new threads is used up, it takes bins of the first thread. A failure shows as a lost location or lost
 * events. */
#include <fdr/fdr.h>
#include <fdr/reader.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "bins/bins.h"
#include "recorder/recording.h"
#include "recorder/shares/shares.h"
#include "recorder/thread/thread_state.h"
#include "tests/support/oracle.h"
#include "tests/support/random_numbers.h"

enum { DEEP = 6, CALLS = 30000, REGIONS = 8 };

static uint64_t now = 1000, seed = 7;

static void call(uint32_t deepest)
{
    fdr_region open[DEEP];
    uint32_t depth = 0, most = 1 + rnd(&seed, deepest);
    while (depth < most) fdr_enter_at(open[depth++] = 1 + rnd(&seed, REGIONS), now += 1 + rnd(&seed, 400));
    while (depth) fdr_leave_at(open[--depth], now += 1 + rnd(&seed, rnd(&seed, 50) ? 400 : 9000));
}

static void *second(void *unused)
{
    call(1);
    return unused;
}

static void P2_the_second_thread_takes_of_the_first(void **state)
{
    (void)state;
    struct fdr_config c = oracle_config(oracle_directory());
    pthread_t thread;
    c.buffer = "256K";
    assert_int_equal(fdr_init(&c), 0);
    for (uint32_t i = 0; i < CALLS; i++) call(DEEP);
    /* as an earlier new thread may have left the reserve */
    while (fdri_bins_take(&fdri_life_recording.arena, 0)) continue;
    assert_int_equal(pthread_create(&thread, NULL, second, NULL), 0);
    pthread_join(thread, NULL);
    assert_int_equal(fdri_life_recording.arena.super->lost_locations, 0);
    assert_int_equal(fdri_life_recording.arena.super->lost_unattached, 0);
    fdr_finalize();
}

/* Bands are joined, and events lie in bins of 512 bytes. So each whole bin is divided into pieces of many
 * partitions. */
enum { STEPS = 600000, LEVELS = 20 };
static void walk(void)
{
    fdr_region open[LEVELS];
    for (uint32_t i = 0, depth = 0; i < STEPS; i++) {
        now += rnd(&seed, 600);
        if (depth == 0 || (depth < LEVELS && rnd(&seed, 2))) fdr_enter_at(open[depth++] = 1 + rnd(&seed, 10), now);
        else fdr_leave_at(open[--depth], now);
    }
}

static pthread_barrier_t turn;
static void *sleeper(void *unused)
{
    walk();
    pthread_barrier_wait(&turn);
    pthread_barrier_wait(&turn);
    return unused;
}

static void P2_a_sleeper_in_small_bins(void **state)
{
    (void)state;
    struct fdr_config c = oracle_config(oracle_directory());
    pthread_t thread;
    c.buffer = "1M";
    assert_int_equal(fdr_init(&c), 0);
    pthread_barrier_init(&turn, NULL, 2);
    assert_int_equal(pthread_create(&thread, NULL, sleeper, NULL), 0);
    pthread_barrier_wait(&turn);
    uint64_t alone = fdr_usage().bytes_stored;
    walk();
    struct fdr_usage u = fdr_usage();
    print_message("alone %llu KiB, then both %llu; %llu events lost\n", (unsigned long long)alone >> 10,
                  (unsigned long long)u.bytes_stored >> 10, (unsigned long long)u.lost);
    assert_int_equal(u.lost, 0);
    assert_true(u.bytes_stored > alone / 2);
    const char *wrong = NULL;
    uint64_t events;
    struct fdr_file *f = oracle_snapshot(fdri_life_recording.arena.super->arena_bytes, &wrong);
    if (!wrong) wrong = oracle_check_any(f, &events);
    assert_null(wrong);
    fdr_file_close(f);
    pthread_barrier_wait(&turn);
    pthread_join(thread, NULL);
    walk(); /* the second thread now uses the strewn bins of the first */
    u = fdr_usage();
    print_message("the second alone %llu KiB; of strewn bins %u KiB are nobody's\n",
                  (unsigned long long)u.bytes_stored >> 10, fdri_life_recording.arena.given_eighths / 2);
    assert_int_equal(u.lost, 0);
    assert_true(u.bytes_stored > alone / 4 * 3);
    assert_true(fdri_life_recording.arena.given_eighths < 64);
    fdr_finalize();
}

/* Bins are so large that the sleeper's pieces are smaller than an eighth, and no other thread can use them. Then
 * other threads claim more. */
static void P2_a_sleeper_whose_pieces_are_too_small(void **state)
{
    (void)state;
    struct fdr_config c = oracle_config(oracle_directory());
    pthread_t thread;
    c.buffer = "2M";
    c.bin = "64K";
    assert_int_equal(fdr_init(&c), 0);
    pthread_barrier_init(&turn, NULL, 2);
    assert_int_equal(pthread_create(&thread, NULL, sleeper, NULL), 0);
    pthread_barrier_wait(&turn);
    walk();
    uint32_t held = fdri_shares_bins_of(fdri_record_self.loc), fair = fdri_shares_fair_when_full();
    print_message("the second holds %u bins, %u are its share\n", held, fair);
    assert_true(held > fair / 2);
    pthread_barrier_wait(&turn);
    pthread_join(thread, NULL);
    fdr_finalize();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(P2_the_second_thread_takes_of_the_first),
                                       cmocka_unit_test(P2_a_sleeper_in_small_bins),
                                       cmocka_unit_test(P2_a_sleeper_whose_pieces_are_too_small)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
