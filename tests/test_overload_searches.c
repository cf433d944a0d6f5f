/* SPDX-License-Identifier: MIT */
/* ctest: label=threads timeout=120 promise=P2 wrap=fdri_share_any
 * P2: many deep threads record at once in a buffer that does not hold what they need: each would search for memory with
 * each event, and take it from another that has not used it yet. Few events begin a search. */
#include <pthread.h>

#include "tests/api_fixture.h"

enum { THREADS = 24, LEVELS = 100, EVENTS = 200000, EVENTS_A_SEARCH = 20 };
static fdr_region region[LEVELS];
static fdr_metric_id metric;
static uint64_t searches, events;

uint32_t __real_fdri_share_any(struct fdri_thread *t, struct fdri_size size, uint32_t *got);
uint32_t __wrap_fdri_share_any(struct fdri_thread *t, struct fdri_size size, uint32_t *got);
uint32_t __wrap_fdri_share_any(struct fdri_thread *t, struct fdri_size size, uint32_t *got)
{
    fdr_add_relaxed(&searches, 1ul);
    return __real_fdri_share_any(t, size, got);
}

static void call(int depth, uint64_t *n)
{
    fdr_enter(region[depth]);
    if (++*n % 19 == 0) fdr_metric_u64(metric, *n);
    if (depth + 1 < LEVELS) call(depth + 1, n);
    fdr_leave(region[depth]);
}

static void *work(void *unused)
{
    uint64_t n = 0;
    while (n < EVENTS / 2) call(0, &n);
    fdr_add_relaxed(&events, 2 * n);
    return unused;
}

static void P2_few_events_begin_a_search(void **state)
{
    pthread_t thread[THREADS];
    char name[16];
    (void)state;
    begin(&(struct fdr_config){.strategy = "telescope", .buffer = "4M"});
    for (int i = 0; i < LEVELS; i++) {
        snprintf(name, sizeof name, "r%d", i);
        region[i] = fdr_region_define(name, NULL, 0);
    }
    metric = fdr_metric_define("m", "", FDR_U64, FDR_METRIC_GAUGE);
    for (int i = 0; i < THREADS; i++) assert_int_equal(pthread_create(&thread[i], NULL, work, NULL), 0);
    for (int i = 0; i < THREADS; i++) pthread_join(thread[i], NULL);
    struct fdr_usage u = fdr_usage();
    print_message("%llu events and more, %llu of %llu lost, %llu searches\n", (unsigned long long)events,
                  (unsigned long long)u.lost, (unsigned long long)u.presented, (unsigned long long)searches);
    assert_true(u.lost > events / 100); /* there is too little memory */
    assert_true(searches < events / EVENTS_A_SEARCH);
    fdr_finalize();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(P2_few_events_begin_a_search)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
