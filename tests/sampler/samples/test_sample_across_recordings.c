/* SPDX-License-Identifier: MIT */
/* ctest: label=stress,threads,slow timeout=120 promise=P10
 * P10: recordings end and begin while threads take samples and open and close sample streams. A thread that comes with
 * the stream of an ended recording finds nothing, and changes nothing in the next recording. */
#include <sched.h>

#include "tests/support/api_fixture.h"
#include "tests/support/sanitized.h"

/* A late thread reads memory that was emptied meanwhile, which is harmless (docs/ORDERING.md, "Where program order is
 * relied upon"). ThreadSanitizer cannot know this. */
const char *__tsan_default_suppressions(void);
const char *__tsan_default_suppressions(void) { return "race:fdri_memory_arena_drop\n"; }
enum { ROUNDS = SANITIZED ? 60 : 400, SAMPLERS = 2 };

static bool stop;
static struct fdr_sampled *stream[SAMPLERS];

static void *sample(void *mine)
{
    static const uint64_t stack[] = {0x401000, 0x402000, 0x403000};
    uint64_t taken = 0;
    for (struct fdr_look look = {.weight = 1, .pc = 1, .stack = stack}; !__atomic_load_n(&stop, __ATOMIC_RELAXED);) {
        look.pc++;
        look.stack_count = (uint32_t)(look.pc & 3);
        taken += fdr_sample(__atomic_load_n((struct fdr_sampled **)mine, __ATOMIC_ACQUIRE), &look) != 0;
    }
    assert_true(taken);
    return NULL;
}

static void *open_and_close(void *unused)
{
    for (uint32_t i = 0; !__atomic_load_n(&stop, __ATOMIC_RELAXED); i++) {
        struct fdr_sampled *s = fdr_sampled_open(1000 + i % 50, "other", FDR_BY_CPU_TIME, 1000);
        fdr_sampled_name(s, "another");
        fdr_sampled_close(s);
    }
    return unused;
}

static void P10_finalize_beside_samples(void **state)
{
    pthread_t thread[SAMPLERS + 1];
    (void)state;
    for (int i = 0; i < SAMPLERS; i++) assert_int_equal(pthread_create(&thread[i], NULL, sample, &stream[i]), 0);
    assert_int_equal(pthread_create(&thread[SAMPLERS], NULL, open_and_close, NULL), 0);
    for (uint32_t round = 0; round < ROUNDS; round++) {
        struct fdr_config c = oracle_config(oracle_directory());
        c.buffer = round % 2 ? "256K" : "1M";
        int e = -EBUSY; /* a thread is still in the middle of a sample */
        for (uint64_t until = fdri_clock_ns(CLOCK_MONOTONIC) + 60000000000u;
             e == -EBUSY && fdri_clock_ns(CLOCK_MONOTONIC) < until;)
            e = fdr_init(&c);
        assert_int_equal(e, 0);
        for (uint32_t i = 0; i < SAMPLERS; i++) {
            struct fdr_sampled *s = fdr_sampled_open(1 + i, "sampled", FDR_BY_CPU_TIME, 1000);
            assert_non_null(s);
            __atomic_store_n(&stream[i], s, __ATOMIC_RELEASE);
        }
        uint64_t until = fdri_clock_ns(CLOCK_MONOTONIC) + 1000000;
        while (fdri_clock_ns(CLOCK_MONOTONIC) < until) sched_yield();
        fdr_finalize();
    }
    __atomic_store_n(&stop, true, __ATOMIC_RELAXED);
    for (int i = 0; i <= SAMPLERS; i++) pthread_join(thread[i], NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(P10_finalize_beside_samples)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
