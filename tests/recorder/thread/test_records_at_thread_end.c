/* SPDX-License-Identifier: MIT */
/* ctest: label=signals,threads timeout=120 promise=P10
 * P10: threads that record for the first time, or again, so near their end that nothing runs any more that could see
 * them go: behind the last of their destructors, where a signal handler may still come. Their stacks and thread-local
 * variables go with them; threads that come and go later, and grace periods, are none the worse. Those that recorded
 * before are no live locations then: what they record so late is lost, and counted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <fdr/fdr.h>
#include <limits.h>
#include <pthread.h>

#include "base/atomic.h"
#include "recorder/life/recording.h"

enum { THREADS = 40 };
#define STACK ((size_t)64 << 20) /* more than the C library keeps: it goes with the thread */
static fdr_region region;
static pthread_key_t key;
static int before; /* whether the thread has recorded before */

/* Called for the last time when no destructor is called any more. */
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
    /* tables that grow are freed behind a grace period */
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
    /* an enter and a leave of every other one */
    assert_int_equal(fdri_life_recording.arena.super->lost_unattached, THREADS);
    /* of the rest nobody knows */
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
