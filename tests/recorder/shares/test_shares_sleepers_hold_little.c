/* SPDX-License-Identifier: MIT */
/* ctest: label=threads timeout=120 promise=P1
 * P1: nearly as many threads as the buffer guarantees make some hundred calls of many regions and sleep. Each then
 * holds little more than its accounts. All find room, and so does a later thread: it takes memory of their events
 * and loses none of its own. */
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

#include "tests/support/random_numbers.h"
#include "tests/support/sanitized.h"

enum { REGIONS = 64, MOST = 256, BUSY_CALLS = 300000, SLEPT_US = 50000 };

struct shape {
    unsigned sleepers, regions, calls, depth;
};
static const struct shape *shape;
static fdr_region region[REGIONS];
static pthread_barrier_t begun, over;

static void call(uint64_t *seed, unsigned *calls, unsigned depth)
{
    fdr_region r = region[rnd(seed, shape->regions)];
    fdr_enter(r);
    --*calls;
    if (depth > 1 && *calls) call(seed, calls, depth - 1);
    fdr_leave(r);
}

static void record(uint64_t seed, unsigned calls)
{
    while (calls) call(&seed, &calls, shape->depth);
}

static void *sleeper(void *number)
{
    record((uintptr_t)number * 7919 + 88172645463325252u, shape->calls);
    pthread_barrier_wait(&begun);
    pthread_barrier_wait(&over);
    return NULL;
}

static void *busy(void *unused)
{
    record(0x9e3779b97f4a7c15, BUSY_CALLS);
    return unused;
}

static void beside(const struct shape *s)
{
    struct fdr_config c = {.size = sizeof c,
                           .ignore_environment = 1,
                           .buffer = "4M",
                           .signal = "none",
                           .crash = "0",
                           .finalize = "none",
                           .arena = "anonymous"};
    pthread_t thread[MOST], last;
    char name[16];
    shape = s;
    assert_int_equal(fdr_init(&c), 0);
    for (unsigned i = 0; i < REGIONS; i++) {
        snprintf(name, sizeof name, "r%u", i);
        region[i] = fdr_region_define(name, NULL, 0);
    }
    assert_true(s->sleepers < fdr_usage().locations_sure);
    pthread_barrier_init(&over, NULL, s->sleepers + 1);
    pthread_barrier_init(&begun, NULL, 2);
    for (uintptr_t i = 0; i < s->sleepers; i++) { /* one thread after another */
        assert_int_equal(pthread_create(&thread[i], NULL, sleeper, (void *)(i + 1)), 0);
        pthread_barrier_wait(&begun);
    }
    usleep(SLEPT_US);
    struct fdr_usage before = fdr_usage();
    assert_int_equal(before.locations, s->sleepers);
    assert_int_equal(pthread_create(&last, NULL, busy, NULL), 0);
    pthread_join(last, NULL);
    struct fdr_usage after = fdr_usage();
    print_message("%u sleepers: %llu events lost while they began, %llu of the busy one\n", s->sleepers,
                  (unsigned long long)before.lost, (unsigned long long)(after.lost - before.lost));
    assert_int_equal(after.locations, s->sleepers + 1);
    assert_int_equal(after.lost, before.lost);
    pthread_barrier_wait(&over);
    for (unsigned i = 0; i < s->sleepers; i++) pthread_join(thread[i], NULL);
    pthread_barrier_destroy(&begun);
    pthread_barrier_destroy(&over);
    fdr_finalize();
}

static void P1_sleepers_do_not_starve_the_next_one(void **state)
{
    static const struct shape shapes[] = {{251, 32, 600, 5}, {190, 64, 1000, 8}, {225, 32, 3000, 5},
                                          {230, 32, 600, 5}, {225, 32, 800, 5},  {240, 8, 300, 3}};
    (void)state;
    /* sanitizers see the same code in each */
    for (size_t i = 0; i < (SANITIZED ? 2 : sizeof shapes / sizeof *shapes); i++) beside(&shapes[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(P1_sleepers_do_not_starve_the_next_one)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
