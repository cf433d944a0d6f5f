/* SPDX-License-Identifier: MIT */
/* ctest: label=signals,threads timeout=120 promise=P10
 * ctest: without=tsan (its runtime has ended the thread that records, and crashes in its own clocks)
 * P10: threads record in the last round of their destructors, or in a signal handler after it. The recorder can no
 * longer see such a thread end. Their stacks and thread-local variables vanish with them. Later threads and grace
 * periods must not suffer. If a thread had recorded before, its late events are lost and counted, and it is no live
 * location. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <fdr/fdr.h>
#include <limits.h>
#include <pthread.h>

#include "base/atomic.h"
#include "recorder/recording.h"

enum { THREADS = 40 };
#define STACK ((size_t)64 << 20) /* more than the C library caches, so the stack is unmapped when the thread ends */
static fdr_region region;
static pthread_key_t key;
static int before; /* has the thread recorded before? */

/* The last call comes in the last round of destructors. */
static void destroy(void *round)
{
    if ((uintptr_t)round < PTHREAD_DESTRUCTOR_ITERATIONS) {
        pthread_setspecific(key, (char *)round + 1);
        return;
    }
    fdr_enter(region);
    fdr_leave(region);
}

static void *run(void *unused)
{
    if (before) fdr_enter(region), fdr_leave(region);
    pthread_setspecific(key, (void *)1);
    return unused;
}

static void look_up(void *argument)
{
    fdr_enter_address(argument);
    fdr_leave_address(argument);
}

static void *others(void *unused)
{
    /* fdr frees a table that has grown after a grace period */
    for (uintptr_t i = 1; i < 6000; i++) look_up((void *)(i * 16));
    return unused;
}

static void P10_threads_that_record_behind_their_destructors(void **state)
{
    (void)state;
    pthread_attr_t large;
    pthread_t t;
    struct fdr_config c = {
        .size = sizeof c, .ignore_environment = 1, .buffer = "8M", .arena = "anonymous", .crash = "0"};
    assert_int_equal(fdr_init(&c), 0);
    region = fdr_region_define("near the end", NULL, 0);
    FDR_REGION("the recorder's own key is the first") {}
    assert_int_equal(pthread_key_create(&key, destroy), 0);
    pthread_attr_init(&large);
    assert_int_equal(pthread_attr_setstacksize(&large, STACK), 0);
    for (int i = 0; i < THREADS; i++) {
        before = i & 1;
        assert_int_equal(pthread_create(&t, &large, run, NULL), 0);
        pthread_join(t, NULL);
    }
    assert_int_equal(pthread_create(&t, &large, others, NULL), 0);
    pthread_join(t, NULL);
    struct fdr_usage u = fdr_usage();
    assert_true(u.presented >= THREADS);
    /* every second thread loses an enter and a leave */
    assert_int_equal(fdri_life_recording.arena.super->lost_unattached, THREADS);
    /* the recorder cannot see the end of the other threads */
    assert_int_equal(fdri_atomic_load_relaxed(&fdri_life_recording.shares.live), 1 + THREADS / 2);
    fdr_finalize();
    assert_int_equal(fdr_init(&c), 0);
    assert_int_equal(pthread_create(&t, &large, others, NULL), 0);
    pthread_join(t, NULL);
    fdr_finalize();
    pthread_attr_destroy(&large);
    pthread_key_delete(key);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(P10_threads_that_record_behind_their_destructors)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
