/* SPDX-License-Identifier: MIT */
/* ctest: label=signals,threads timeout=120 promise=P10
 * ctest: without=asan,tsan (their runtimes do not survive threads cancelled anywhere)
 * P10: threads without a location are cancelled at any moment (PTHREAD_CANCEL_ASYNCHRONOUS), also while fdr counts
 * their lost events. The recording must still end, and the next one must begin. Threads with a location may be
 * cancelled while they attach; none of them may count as live afterwards. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <fdr/fdr.h>
#include <pthread.h>
#include <semaphore.h>

#include "base/atomic.h"
#include "recorder/recording.h"

enum { HOLDERS = 64, CANCELLED = 1500 };
static sem_t ready, go;
static fdr_region region;

static void *hold(void *unused)
{
    FDR_REGION("holder") {}
    sem_post(&ready);
    sem_wait(&go);
    return unused;
}

static void *record(void *unused)
{
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
    sem_post(&ready);
    for (;;) fdr_enter(region), fdr_leave(region);
    return unused;
}

static void P10_cancelled_where_there_is_no_room(void **state)
{
    (void)state;
    pthread_t holder[HOLDERS], t;
    struct fdr_config c = {.size = sizeof c,
                           .ignore_environment = 1,
                           .buffer = "256K",
                           .arena = "anonymous",
                           .signal = "none",
                           .crash = "0"};
    assert_int_equal(fdr_init(&c), 0);
    region = fdr_region_define("cancelled", NULL, 0);
    sem_init(&ready, 0, 0);
    sem_init(&go, 0, 0);
    for (int i = 0; i < HOLDERS; i++) assert_int_equal(pthread_create(&holder[i], NULL, hold, NULL), 0);
    for (int i = 0; i < HOLDERS; i++) sem_wait(&ready);
    for (int i = 0; i < CANCELLED; i++) {
        assert_int_equal(pthread_create(&t, NULL, record, NULL), 0);
        sem_wait(&ready);
        for (volatile int n = i * 7 % 2000; n; n--) {} /* so that the cancellation comes at varying moments */
        pthread_cancel(t);
        pthread_join(t, NULL);
    }
    for (int i = 0; i < HOLDERS; i++) sem_post(&go);
    for (int i = 0; i < HOLDERS; i++) pthread_join(holder[i], NULL);
    fdr_finalize();
    assert_int_equal(fdr_init(&c), 0);
    fdr_finalize();
}

static void P10_cancelled_while_it_attaches(void **state)
{
    (void)state;
    pthread_t t;
    struct fdr_config c = {.size = sizeof c,
                           .ignore_environment = 1,
                           .buffer = "8M",
                           .arena = "anonymous",
                           .signal = "none",
                           .crash = "0"};
    assert_int_equal(fdr_init(&c), 0);
    region = fdr_region_define("cancelled", NULL, 0);
    fdr_enter(region);
    fdr_leave(region);
    for (int i = 0; i < 3 * CANCELLED; i++) {
        assert_int_equal(pthread_create(&t, NULL, record, NULL), 0);
        sem_wait(&ready);
        for (volatile int n = i * 7 % 3000; n; n--) {}
        pthread_cancel(t);
        pthread_join(t, NULL);
    }
    assert_int_equal(fdri_atomic_load_relaxed(&fdri_life_recording.shares.live), 1);
    fdr_finalize();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(P10_cancelled_where_there_is_no_room),
                                       cmocka_unit_test(P10_cancelled_while_it_attaches)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
