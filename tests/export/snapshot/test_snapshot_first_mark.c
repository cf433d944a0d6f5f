/* SPDX-License-Identifier: MIT */
/* ctest: label=stress,threads timeout=120 promise=P8
 * P8: a thread sets its first mark after its location was copied and before its bins are, then rewinds. The snapshot is
 * whole. It may hold some of the removed records, so the file must say that the location rewinds. */
#include "tests/support/api_fixture.h"
#include "tests/support/random_numbers.h"
#include "tests/support/sanitized.h"

#include <unistd.h>

enum { TIMES = SANITIZED ? 60 : 300, REGIONS = 32, DEEPEST = 30, BEFORE = 60, MARKED = 20, WAIT_US = 200 };
static fdr_region region[REGIONS];
static fdr_marker_id marker;
static uint32_t stop, begun;

static void into(uint32_t depth, uint32_t deepest, uint64_t *seed)
{
    fdr_enter(region[depth]);
    if (!rnd(seed, 8)) fdr_marker(marker, depth);
    if (depth + 1 < deepest) into(depth + 1, deepest, seed);
    fdr_leave(region[depth]);
}

static void *marks_and_rewinds(void *number)
{
    uint64_t seed = 88172645463325252u + (uintptr_t)number * 7919;
    for (int i = 0; i < BEFORE; i++) into(0, 1 + rnd(&seed, DEEPEST), &seed);
    __atomic_store_n(&begun, 1, __ATOMIC_RELEASE);
    usleep((useconds_t)rnd(&seed, WAIT_US));
    while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
        fdr_rewind_mark();
        for (int i = 0; i < MARKED; i++) into(0, 1 + rnd(&seed, DEEPEST), &seed);
        fdr_rewind();
    }
    return NULL;
}

static void once(uintptr_t number, const char *buffer)
{
    pthread_t t;
    begin(&(struct fdr_config){.strategy = "telescope", .buffer = buffer, .timer = "tsc"});
    define_regions(region, REGIONS);
    marker = fdr_marker_define("mark");
    stop = begun = 0;
    assert_int_equal(pthread_create(&t, NULL, marks_and_rewinds, (void *)number), 0);
    while (!__atomic_load_n(&begun, __ATOMIC_ACQUIRE)) sched_yield();
    struct fdr_file *f = take();
    fdr_file_close(f);
    __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
    pthread_join(t, NULL);
    fdr_finalize();
}

static void P8_first_mark_during_a_copy(void **state)
{
    (void)state;
    for (uintptr_t i = 0; i < TIMES; i++) once(i, i % 2 ? "4M" : "256K");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(P8_first_mark_during_a_copy)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
