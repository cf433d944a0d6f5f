/* SPDX-License-Identifier: MIT */
/* ctest: label=signals,threads timeout=240 promise=P10
 * P10: fdr_usage runs while recordings of different sizes end and begin. A handler also leaves it by longjmp at any
 * moment. The thread's next event must release the locks that it held. */
#include <fdr/fdr.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/clock.h"
#include "recorder/ended/ended.h"
#include "recorder/recording.h"
#include "tests/support/api_fixture.h"
#include "tests/support/sanitized.h"

enum { ROUNDS = SANITIZED ? 40 : 300, LEFT = SANITIZED ? 20 : 200 };

static bool stop;

static void *look(void *records)
{
    while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
        if (records) fdr_enter(1), fdr_leave(1);
        fdr_usage();
    }
    return NULL;
}

static void P10_usage_beside_recordings_that_end(void **state)
{
    pthread_t thread[2];
    (void)state;
    __atomic_store_n(&stop, false, __ATOMIC_RELAXED);
    for (int i = 0; i < 2; i++) assert_int_equal(pthread_create(&thread[i], NULL, look, i ? &thread : NULL), 0);
    for (uint32_t round = 0; round < ROUNDS; round++) {
        struct fdr_config c = oracle_config(oracle_directory());
        c.buffer = round % 2 ? "256K" : "16M";
        int e = -EBUSY;
        for (uint64_t until = fdri_clock_ns(CLOCK_MONOTONIC) + 60000000000u;
             e == -EBUSY && fdri_clock_ns(CLOCK_MONOTONIC) < until;)
            e = fdr_init(&c);
        assert_int_equal(e, 0);
        for (int i = 0; i < 64; i++) { /* data of all kinds for fdr_usage to walk */
            char name[16];
            snprintf(name, sizeof name, "r%d", i);
            fdr_region r = fdr_region_define(name, NULL, 0);
            for (int n = 0; n < 10; n++) fdr_enter(r);
            for (int n = 0; n < 10; n++) fdr_leave(r);
        }
        fdr_finalize();
    }
    __atomic_store_n(&stop, true, __ATOMIC_RELAXED);
    for (int i = 0; i < 2; i++) pthread_join(thread[i], NULL);
}

static void *look_closely(void *wrong)
{
    while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
        struct fdr_usage u = fdr_usage();
        *(uint64_t *)wrong += u.buffer_bytes && u.presented < 1000;
    }
    return NULL;
}

/* fdr_usage waits for the lock on ended accounts when the recording ends. Data read after that must not become part
 * of its sums. */
static void nothing_of_a_recording_that_ended(void **state)
{
    uint64_t wrong = 0;
    (void)state;
    for (int round = 0; round < 20; round++) {
        pthread_t t;
        begin(NULL);
        for (int i = 0; i < 1000; i++) fdr_enter(1), fdr_leave(1);
        assert_true(fdri_ended_lock(99, 0));
        __atomic_store_n(&stop, false, __ATOMIC_RELAXED);
        assert_int_equal(pthread_create(&t, NULL, look_closely, &wrong), 0);
        usleep(2000);
        fdr_finalize();
        usleep(2000);
        __atomic_store_n(&stop, true, __ATOMIC_RELAXED);
        pthread_join(t, NULL);
        fdri_ended_unlock();
    }
    assert_int_equal(wrong, 0);
}

static sigjmp_buf out;
static volatile sig_atomic_t inside;
static void leave(int number)
{
    (void)number;
    if (inside) siglongjmp(out, 1);
}

static void what_it_held_is_free_again(void **state)
{
    const struct itimerval often = {{0, 200}, {0, 200}}, never = {{0, 0}, {0, 0}};
    struct sigaction a = {.sa_handler = leave}, before;
    volatile int left = 0;
    (void)state;
    begin(NULL);
    fdr_enter(1);
    fdr_leave(1);
    sigaction(SIGALRM, &a, &before);
    setitimer(ITIMER_REAL, &often, NULL);
    uint64_t until = fdri_clock_ns(CLOCK_MONOTONIC) + 60000000000u;
    while (left < LEFT && fdri_clock_ns(CLOCK_MONOTONIC) < until) {
        if (!sigsetjmp(out, 1)) {
            inside = 1;
            for (int i = 0; i < 1000; i++) fdr_usage();
        }
        inside = 0;
        left += fdri_atomic_load_relaxed(&fdri_life_recording.shares.lock) != 0;
        fdr_enter(1);
        fdr_leave(1);
        if (fdri_atomic_load_relaxed(&fdri_life_recording.shares.lock)) break;
    }
    setitimer(ITIMER_REAL, &never, NULL);
    sigaction(SIGALRM, &before, NULL);
    assert_int_equal(fdri_life_recording.shares.lock, 0);
    assert_true(left >= LEFT);
    end(take());
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(what_it_held_is_free_again),
                                       cmocka_unit_test(nothing_of_a_recording_that_ended),
                                       cmocka_unit_test(P10_usage_beside_recordings_that_end)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
