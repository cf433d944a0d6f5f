/* SPDX-License-Identifier: MIT */
/* ctest: label=unit timeout=60
 * P3: the steps of a thread that ended stay counted in fdr_usage().reductions, also when its accounts have become those
 * of [ended]. */
#include <pthread.h>

#include "tests/api_fixture.h"

enum { CALLS = 300000, OTHERS = 200 };
static fdr_region region;

static void *record(void *calls)
{
    for (uintptr_t i = 0; i < (uintptr_t)calls; i++) fdr_enter(region), fdr_leave(region);
    return NULL;
}

static void run(uintptr_t calls)
{
    pthread_t t;
    assert_int_equal(pthread_create(&t, NULL, record, (void *)calls), 0);
    pthread_join(t, NULL);
}

static void start(void)
{
    struct fdr_config c = oracle_config(oracle_directory());
    c.buffer = "256K";
    c.timer = NULL;
    assert_int_equal(fdr_init(&c), 0);
    region = fdr_region_define("work", NULL, 0);
}

static void P3_steps_of_threads_that_ended(void **state)
{
    (void)state;
    start();
    run(CALLS);
    uint64_t steps = fdr_usage().reductions;
    assert_true(steps > 0);
    for (int i = 0; i < OTHERS; i++) {
        run(10);
        uint64_t now = fdr_usage().reductions;
        if (now < steps) fail_msg("%llu reductions, then %llu", (unsigned long long)steps, (unsigned long long)now);
        steps = now;
    }
    fdr_finalize();
}

/* After weeks at full speed the counter of 32 bits has come to its end: it stays there. */
static void P3_steps_never_become_fewer(void **state)
{
    (void)state;
    start();
    record((void *)(uintptr_t)CALLS);
    assert_true(fdri_self.loc->reduction_steps > 0);
    fdri_self.loc->reduction_steps = UINT32_MAX - 1;
    struct fdr_reductions_block *b = fdri_at(&fdri_rec.arena, fdri_self.loc->reductions_off);
    for (int i = 0; i < FDR_REDUCTION_LINES; i++) b->line[i].steps = UINT32_MAX - 1;
    record((void *)(uintptr_t)(4 * CALLS));
    assert_int_equal(fdri_self.loc->reduction_steps, UINT32_MAX);
    bool any = false;
    for (int i = 0; i < FDR_REDUCTION_LINES; i++) any |= b->line[i].steps == UINT32_MAX;
    assert_true(any);
    fdr_finalize();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(P3_steps_of_threads_that_ended),
                                       cmocka_unit_test(P3_steps_never_become_fewer)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
