/* SPDX-License-Identifier: MIT */
/* ctest: label=stress,threads timeout=300 promise=P10
 * P10: recordings end and begin while threads are in the middle of records. There are more threads than processors,
 * so some lose their processor for longer than fdr_finalize waits. The program must not crash, and the final
 * snapshot must be whole. */
#include <errno.h>
#include <fdr/fdr.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/atomic.h"
#include "base/clock.h"
#include "tests/support/oracle.h"
#include "tests/support/sanitized.h"

enum { THREADS = 12, REGIONS = 64 };

/* A thread may lose its processor after it saw the switch on, and then reach memory that was emptied meanwhile.
 * docs/ORDERING.md, "Where program order is relied upon", explains why this is harmless. ThreadSanitizer cannot
 * know. */
const char *__tsan_default_suppressions(void);
const char *__tsan_default_suppressions(void) { return "race:fdri_memory_arena_drop\n"; }
enum { ROUNDS = SANITIZED ? 15 : 60 };

static bool stop;
static fdr_region region[REGIONS];
static fdr_marker_id marker;

static void calls(uint64_t *seed, uint32_t depth)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    fdr_region r = __atomic_load_n(&region[*seed >> 33 & (REGIONS - 1)], __ATOMIC_RELAXED);
    fdr_enter(r);
    for (uint32_t i = *seed >> 60 & 3; i && depth < 14; i--) calls(seed, depth + 1);
    if (!(*seed >> 40 & 7)) fdr_marker(__atomic_load_n(&marker, __ATOMIC_RELAXED), depth);
    fdr_leave(r);
}

static void *record(void *argument)
{
    uint64_t seed = (uintptr_t)argument;
    while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
        calls(&seed, 1);
        if (!(seed >> 50 & 63)) fdr_rewind_mark(), calls(&seed, 1), fdr_rewind();
    }
    return NULL;
}

static void *record_once(void *argument)
{
    uint64_t seed = (uintptr_t)argument;
    for (int i = 0; i < 20; i++) calls(&seed, 1);
    return NULL;
}

/* Threads that start at any moment, also when the recording is about to end. */
static void *come_and_go(void *argument)
{
    uintptr_t seed = (uintptr_t)argument;
    while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
        pthread_t t;
        if (pthread_create(&t, NULL, record_once, (void *)++seed) == 0) pthread_join(t, NULL);
    }
    return NULL;
}

static void one(const char *strategy, unsigned round)
{
    struct fdr_config c = oracle_config(oracle_directory());
    c.strategy = strategy;
    c.buffer = round % 2 ? "256K" : "1M";
    c.bin = "1K";
    c.timer = NULL;
    int e = -EBUSY; /* a thread is still in the middle of a record */
    for (uint64_t until = fdri_clock_ns(CLOCK_MONOTONIC) + 60000000000u;
         e == -EBUSY && fdri_clock_ns(CLOCK_MONOTONIC) < until;)
        e = fdr_init(&c);
    assert_int_equal(e, 0);
    for (int i = 0; i < REGIONS; i++) {
        char name[16];
        snprintf(name, sizeof name, "r%d", i);
        __atomic_store_n(&region[i], fdr_region_define(name, __FILE__, (unsigned)i), __ATOMIC_RELAXED);
    }
    __atomic_store_n(&marker, fdr_marker_define("marker"), __ATOMIC_RELAXED);
    uint64_t until = fdri_clock_ns(CLOCK_MONOTONIC) + 2000000 + round * 300000;
    while (fdri_clock_ns(CLOCK_MONOTONIC) < until) sched_yield();
    fdr_finalize();
}

static void P10_finalize_beside_recording_threads(void **state)
{
    static const char *const strategies[] = {"whole", "last", "telescope", "first"};
    (void)state;
    pthread_t thread[THREADS + 1];
    for (uintptr_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, record, (void *)(i + 1)), 0);
    assert_int_equal(pthread_create(&thread[THREADS], NULL, come_and_go, NULL), 0);
    for (unsigned round = 0; round < ROUNDS; round++) one(strategies[round % 4], round);
    __atomic_store_n(&stop, true, __ATOMIC_RELAXED);
    for (int i = 0; i <= THREADS; i++) pthread_join(thread[i], NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(P10_finalize_beside_recording_threads)};
    int bad = cmocka_run_group_tests(tests, NULL, NULL);
    return bad;
}
