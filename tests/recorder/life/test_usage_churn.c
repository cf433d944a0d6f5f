/* SPDX-License-Identifier: MIT */
/* ctest: label=stress,threads,slow timeout=300 promise=P3
 * P3: many threads call fdr_usage while threads come and go in little memory. Locations are merged and their memory
 * is reused during the call. fdr_usage must not read invalid memory, and must count no event that was not
 * presented. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <pthread.h>
#include <stdio.h>

#include <fdr/fdr.h>

#include "recorder/thread/thread.h"
#include "tests/support/sanitized.h"

enum {
    CHILDREN = SANITIZED ? 2 : 40,
    REGIONS = 64,
    PARENTS = 40,
    LEAST_DEPTH = 5,
    DEPTHS = 40,
    LEAST_CALLS = 20,
    MORE_CALLS = 200
};
static fdr_region region[REGIONS];
static uint64_t presented; /* atomic */
static uint64_t nowhere;   /* atomic; leaves of threads without a location, which count as events, too */

static void leave(fdr_region r, uint64_t *its)
{
    bool without = !fdri_record_self.loc;
    fdr_leave(r);
    *its += without && !fdri_record_self.loc;
}

static void *child(void *seed)
{
    uint64_t leaves = 0;
    unsigned s = (unsigned)(uintptr_t)seed, depth = LEAST_DEPTH + s % DEPTHS, n = LEAST_CALLS + s % MORE_CALLS;
    for (unsigned i = 0; i < n; i++) {
        for (unsigned d = 0; d < depth; d++) {
            fdr_enter(region[(d + s) % REGIONS]);
            fdr_marker(1, i);
            fdr_metric_u64(1, i);
        }
        for (unsigned d = depth; d-- > 0;) leave(region[(d + s) % REGIONS], &leaves);
        if (i % 8 == 0) (void)fdr_usage();
    }
    __atomic_fetch_add(&presented, 3ull * depth * n, __ATOMIC_RELAXED);
    __atomic_fetch_add(&nowhere, leaves, __ATOMIC_RELAXED);
    return NULL;
}

static void *parent(void *seed)
{
    uintptr_t s = (uintptr_t)seed;
    for (int i = 0; i < CHILDREN; i++) {
        pthread_t t;
        if (pthread_create(&t, NULL, child, (void *)(s++ * 2654435761u))) return seed;
        pthread_join(t, NULL);
    }
    return NULL;
}

static void come_and_go(const char *buffer, const char *strategy)
{
    struct fdr_config c = {.size = sizeof c,
                           .ignore_environment = 1,
                           .signal = "none",
                           .crash = "0",
                           .arena = "anonymous",
                           .buffer = buffer,
                           .strategy = strategy};
    pthread_t t[PARENTS];
    char name[24];
    assert_int_equal(fdr_init(&c), 0);
    presented = nowhere = 0;
    for (int i = 0; i < REGIONS; i++) {
        snprintf(name, sizeof name, "region%d", i);
        region[i] = fdr_region_define(name, NULL, 0);
    }
    for (uintptr_t i = 0; i < PARENTS; i++)
        assert_int_equal(pthread_create(&t[i], NULL, parent, (void *)(i * 1000003 + 17)), 0);
    for (int i = 0; i < PARENTS; i++) {
        void *failed;
        pthread_join(t[i], &failed);
        assert_null(failed);
    }
    struct fdr_usage u = fdr_usage();
    print_message("%s, %s: %llu events are counted of %llu that were presented, and %llu leaves nowhere\n", buffer,
                  strategy, (unsigned long long)u.presented, (unsigned long long)presented,
                  (unsigned long long)nowhere);
    assert_true(u.presented > 0 && u.presented <= presented + nowhere + 2);
    fdr_finalize();
}

static void threads_that_ask_and_end(void **state)
{
    (void)state;
    come_and_go("4M", "whole");
    come_and_go("2M", "whole");
    come_and_go("2M", "telescope");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(threads_that_ask_and_end)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
