/* SPDX-License-Identifier: MIT */
/* ctest: label=threads timeout=120 wrap=fdri_share_any
 * Beside many deep threads that sleep, in a buffer that is too small for the accounts of all, one that works finds next
 * to nothing: it asks the others once for each bin then, at most, and what it cannot store is counted. */
#include "tests/api_fixture.h"

#include <pthread.h>

enum { SLEEPERS = 20, DEPTH = 60, ROUNDS = 1000, CALLS = DEPTH * 4000 };
static fdr_region region[DEPTH];
static pthread_barrier_t asleep, over;
static __thread uint64_t asked;

uint32_t __real_fdri_share_any(struct fdri_thread *t, struct fdri_size size, uint32_t *got_log2);
uint32_t __wrap_fdri_share_any(struct fdri_thread *t, struct fdri_size size, uint32_t *got_log2);
uint32_t __wrap_fdri_share_any(struct fdri_thread *t, struct fdri_size size, uint32_t *got_log2)
{
    asked++;
    return __real_fdri_share_any(t, size, got_log2);
}

static void work(uint32_t calls)
{
    for (uint32_t i = 0; i < calls; i += DEPTH) {
        for (int d = 0; d < DEPTH; d++) fdr_enter(region[d]);
        for (int d = DEPTH; d-- > 0;) fdr_leave(region[d]);
    }
}

static void *sleeps(void *unused)
{
    work(DEPTH * ROUNDS);
    pthread_barrier_wait(&asleep);
    pthread_barrier_wait(&over);
    return unused;
}

static void P2_asks_seldom_in_vain(void **state)
{
    pthread_t t[SLEEPERS];
    char name[8];
    (void)state;
    begin(&(struct fdr_config){.buffer = "4M"});
    for (int d = 0; d < DEPTH; d++) {
        snprintf(name, sizeof name, "r%d", d);
        region[d] = fdr_region_define(name, "vain.c", d);
    }
    pthread_barrier_init(&asleep, NULL, SLEEPERS + 1);
    pthread_barrier_init(&over, NULL, SLEEPERS + 1);
    for (int i = 0; i < SLEEPERS; i++) assert_int_equal(pthread_create(&t[i], NULL, sleeps, NULL), 0);
    pthread_barrier_wait(&asleep);
    work(CALLS);
    struct fdr_usage u = fdr_usage();
    assert_int_equal(u.presented, CALLS + SLEEPERS * ROUNDS * DEPTH);
    assert_int_equal(u.presented, u.stored + u.filtered + u.reduced + u.lost);
    print_message("of %d calls beside %d threads that sleep the others were asked %llu times\n", CALLS, SLEEPERS,
                  (unsigned long long)asked);
    assert_true(asked < CALLS * 3 / 2); /* each bin that it fills asks once */
    pthread_barrier_wait(&over);
    for (int i = 0; i < SLEEPERS; i++) pthread_join(t[i], NULL);
    fdr_finalize();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(P2_asks_seldom_in_vain)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
