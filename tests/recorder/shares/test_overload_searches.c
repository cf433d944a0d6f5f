/* SPDX-License-Identifier: MIT */
/* ctest: label=threads timeout=120 promise=P2 wrap=fdri_shares_any_room
 * P2: many deep threads record in a buffer that is too small for them. Each could search for memory at each event,
 * and take it from another thread before that one used it. The test allows few events to begin a search. The
 * threads take turns by a count of their own, so each run is the same. */
#include <fdr/fdr.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/atomic.h"
#include "recorder/shares/shares.h"
#include "recorder/thread/thread_state.h"
#include "tests/support/api_fixture.h"
#include "tests/support/counted_clock.h"
#include "tests/support/sanitized.h"

enum { THREADS = 24, LEVELS = 100, EVENTS = SANITIZED ? 40000 : 200000, EVENTS_A_SEARCH = 20, EVENTS_A_TURN = 70 };
static sem_t turn[THREADS];
static bool over[THREADS];
static fdr_region region[LEVELS];
static fdr_metric_id metric;
static uint64_t searches, events;

uint32_t __real_fdri_shares_any_room(struct fdri_thread *t, struct fdri_shares_size size, uint32_t *got);
uint32_t __wrap_fdri_shares_any_room(struct fdri_thread *t, struct fdri_shares_size size, uint32_t *got);
uint32_t __wrap_fdri_shares_any_room(struct fdri_thread *t, struct fdri_shares_size size, uint32_t *got)
{
    fdri_atomic_add_relaxed(&searches, 1ul);
    return __real_fdri_shares_any_room(t, size, got);
}

/* Passes the turn to the next thread that is not done. */
static void pass_on(int self)
{
    for (int i = 1; i <= THREADS; i++) {
        int next = (self + i) % THREADS;
        if (over[next]) continue;
        sem_post(&turn[next]);
        return;
    }
}

static void one_event(int self, uint64_t *n)
{
    if (++*n % EVENTS_A_TURN) return;
    pass_on(self);
    sem_wait(&turn[self]);
}

static void call(int self, int depth, uint64_t *n)
{
    fdr_enter(region[depth]);
    one_event(self, n);
    if (*n % 38 == 0) fdr_metric_u64(metric, *n);
    if (depth + 1 < LEVELS) call(self, depth + 1, n);
    fdr_leave(region[depth]);
    one_event(self, n);
}

static void *work(void *number)
{
    int self = (int)(intptr_t)number;
    uint64_t n = 0;
    counted_ns = 40;
    sem_wait(&turn[self]);
    while (n < EVENTS) call(self, 0, &n);
    events += n;
    over[self] = true;
    pass_on(self);
    return NULL;
}

static void P2_few_events_begin_a_search(void **state)
{
    pthread_t thread[THREADS];
    char name[16];
    (void)state;
    begin(&(struct fdr_config){.strategy = "telescope", .buffer = "4M", .timer = "monotonic"});
    for (int i = 0; i < LEVELS; i++) {
        snprintf(name, sizeof name, "r%d", i);
        region[i] = fdr_region_define(name, NULL, 0);
    }
    metric = fdr_metric_define("m", "", FDR_U64, FDR_METRIC_GAUGE);
    for (intptr_t i = 0; i < THREADS; i++) {
        sem_init(&turn[i], 0, 0);
        assert_int_equal(pthread_create(&thread[i], NULL, work, (void *)i), 0);
    }
    sem_post(&turn[0]);
    for (int i = 0; i < THREADS; i++) pthread_join(thread[i], NULL);
    struct fdr_usage u = fdr_usage();
    print_message("%llu events and more, %llu of %llu lost, %llu searches\n", (unsigned long long)events,
                  (unsigned long long)u.lost, (unsigned long long)u.presented, (unsigned long long)searches);
    assert_true(u.lost > events / 100); /* the memory is too small */
    assert_true(searches < events / EVENTS_A_SEARCH);
    fdr_finalize();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(P2_few_events_begin_a_search)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
