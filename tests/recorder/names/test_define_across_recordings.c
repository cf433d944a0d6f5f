/* SPDX-License-Identifier: MIT */
/* ctest: label=stress,threads,slow timeout=120 promise=P10
 * P10: threads define names of all kinds while recordings end and begin. Each name keeps the id of the first
 * recording, whichever thread defines it first in the next one. */
#include "tests/support/api_fixture.h"
#include "tests/support/sanitized.h"

enum { ROUNDS = SANITIZED ? 40 : 300, OTHERS = 200 };

/* liburcu publishes a new table where there was none. ThreadSanitizer cannot see that order. */
const char *__tsan_default_suppressions(void);
const char *__tsan_default_suppressions(void) { return "race:fdri_names_address_region\n"; }

static bool stop;

static uint32_t define_others(uint32_t i)
{
    static const struct fdr_field field = {"n", FDR_U64, 0};
    const uint32_t ranks[] = {i, i + 1};
    char name[32];
    snprintf(name, sizeof name, "other %u", i % OTHERS);
    return fdr_metric_define(name, "1", FDR_F64, FDR_METRIC_GAUGE) | fdr_region_define(name, "file", i % OTHERS) |
           fdr_marker_define(name) | fdr_comm_define(name, ranks, 1 + i % 2) | fdr_event_define(name, &field, 1) |
           fdr_region_define_address((const void *)(uintptr_t)define_others);
}

static void *define(void *unused)
{
    for (uint32_t i = 0; !__atomic_load_n(&stop, __ATOMIC_RELAXED); i++) define_others(i);
    return unused;
}

struct ids {
    uint32_t metric, region, marker, comm, event;
};

static struct ids define_mine(void)
{
    static const struct fdr_field field = {"n", FDR_F64, 8};
    static const uint32_t ranks[] = {1, 2, 3};
    return (struct ids){fdr_metric_define("mine", "1", FDR_U64, FDR_METRIC_GAUGE), fdr_region_define("mine", "me", 1),
                        fdr_marker_define("mine"), fdr_comm_define("mine", ranks, 3),
                        fdr_event_define("mine", &field, 1)};
}

/* The first definitions are made before the other threads begin. */
static void P10_ids_stay_while_threads_define(void **state)
{
    pthread_t thread[2];
    (void)state;
    begin(NULL);
    const struct ids mine = define_mine();
    for (int i = 0; i < 2; i++) assert_int_equal(pthread_create(&thread[i], NULL, define, NULL), 0);
    for (int i = 0; i < ROUNDS; i++) {
        begin(i % 2 ? &(struct fdr_config){.buffer = "1M"} : NULL);
        const struct ids again = define_mine();
        assert_memory_equal(&again, &mine, sizeof mine);
    }
    __atomic_store_n(&stop, true, __ATOMIC_RELAXED);
    for (int i = 0; i < 2; i++) pthread_join(thread[i], NULL);
    end(take());
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(P10_ids_stay_while_threads_define)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
