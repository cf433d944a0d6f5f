/* SPDX-License-Identifier: MIT */
/* ctest: label=threads timeout=120 promise=P1
 * P1: points have partitions of their own, by class and depth, each with accounts. Threads that recorded a few
 * points and then sleep must hold little memory. A busy thread must still find room, and the sleepers must keep all
 * their events. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <fdr/fdr.h>
#include <fdr/reader.h>

enum { SLEEPERS = 60, LEVELS = 9, TREES = 55, BUSY_TREES = 15000, EVERY = 37 };

static pthread_barrier_t all_sleep, over;
static fdr_region region[LEVELS];
static fdr_metric_id metric;
static fdr_marker_id marker;

static void call(unsigned depth, unsigned *calls)
{
    fdr_enter(region[depth]);
    if (++*calls % EVERY == 0) {
        fdr_metric_u64(metric, *calls);
        fdr_marker(marker, *calls);
    }
    if (depth + 1 < LEVELS) call(depth + 1, calls);
    fdr_leave(region[depth]);
}

static void *sleeper(void *unused)
{
    unsigned calls = 0;
    for (int i = 0; i < TREES; i++) call(0, &calls);
    pthread_barrier_wait(&all_sleep);
    pthread_barrier_wait(&over);
    return unused;
}

/* Of each class and depth of each sleeper, all presented events are kept. The busy thread is recognised by its
 * number of calls at each depth, which is larger. */
static void all_of_sleepers_is_kept(void)
{
    struct fdr_file *f;
    char message[200] = "";
    const struct fdr_ledger_row *row;
    unsigned long long calls = 0, points = 0;
    assert_int_equal(fdr_snapshot(NULL), 0);
    if (fdr_file_open(fdr_last_snapshot(), &f, message, sizeof message) != FDR_WHOLE) fail_msg("%s", message);
    size_t n = fdr_ledger(f, &row);
    uint32_t busy = UINT32_MAX;
    for (size_t i = 0; i < n; i++)
        if (row[i].presented == BUSY_TREES && row[i].class_ == FDR_IN_REGION) busy = row[i].location;
    assert_int_not_equal(busy, UINT32_MAX);
    for (size_t i = 0; i < n; i++) {
        if (row[i].location == busy) continue;
        if (row[i].kept != row[i].presented)
            fail_msg("location %u, class %u, depth %u: %llu of %llu kept", row[i].location, row[i].class_, row[i].depth,
                     (unsigned long long)row[i].kept, (unsigned long long)row[i].presented);
        *(row[i].class_ == FDR_IN_REGION ? &calls : &points) += row[i].kept;
    }
    assert_int_equal(calls, SLEEPERS * TREES * LEVELS);
    assert_int_equal(points, SLEEPERS * (TREES * LEVELS / EVERY * 2));
    fdr_file_close(f);
    unlink(fdr_last_snapshot());
}

static void P1_points_of_sleepers_leave_room(void **state)
{
    char directory[] = "/tmp/fdr-points-XXXXXX", name[16];
    pthread_t thread[SLEEPERS];
    struct fdr_config c = {.size = sizeof c,
                           .ignore_environment = 1,
                           .buffer = "4M",
                           .signal = "none",
                           .crash = "0",
                           .arena = "anonymous"};
    (void)state;
    assert_non_null(mkdtemp(directory));
    c.dir = c.live_dir = directory;
    assert_int_equal(fdr_init(&c), 0);
    for (int i = 0; i < LEVELS; i++) {
        snprintf(name, sizeof name, "r%d", i);
        region[i] = fdr_region_define(name, NULL, 0);
    }
    metric = fdr_metric_define("m", "", FDR_U64, FDR_METRIC_GAUGE);
    marker = fdr_marker_define("k");
    pthread_barrier_init(&all_sleep, NULL, SLEEPERS + 1);
    pthread_barrier_init(&over, NULL, SLEEPERS + 1);
    for (int i = 0; i < SLEEPERS; i++) assert_int_equal(pthread_create(&thread[i], NULL, sleeper, NULL), 0);
    pthread_barrier_wait(&all_sleep);
    unsigned calls = 0;
    for (int i = 0; i < BUSY_TREES; i++) call(0, &calls);
    struct fdr_usage u = fdr_usage();
    print_message("%llu of %llu events stored, %llu lost, of %u calls\n", (unsigned long long)u.stored,
                  (unsigned long long)u.presented, (unsigned long long)u.lost, calls);
    assert_int_equal(u.lost, 0);
    assert_true(u.stored >= u.presented / 10 * 9);
    all_of_sleepers_is_kept();
    pthread_barrier_wait(&over);
    for (int i = 0; i < SLEEPERS; i++) pthread_join(thread[i], NULL);
    fdr_finalize();
    rmdir(directory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(P1_points_of_sleepers_leave_room)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
