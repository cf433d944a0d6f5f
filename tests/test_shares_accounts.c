/* SPDX-License-Identifier: MIT */
/* ctest: label=threads timeout=120
 * P5: short threads with many functions, many levels deep, one after another in a buffer that holds some dozens of them. Detail of those that
 * ended goes before those that come have to do without accounts of their own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/shares.h"

enum { THREADS = 2000, BATCH = 16, REGIONS = 40, DEEP = 12, CALLS = 250 };
static fdr_region many[REGIONS];
static uint64_t presented;

static uint32_t descend(uint64_t *seed, uint32_t depth, uint32_t left)
{
    fdr_region r = many[rnd(seed, REGIONS)];
    uint32_t made = 1;
    fdr_enter(r);
    while (depth < DEEP && made < left && rnd(seed, 4) > 0) made += descend(seed, depth + 1, left - made);
    fdr_leave(r);
    return made;
}

static void *brief(void *number)
{
    uint64_t seed = (uintptr_t)number * 7919 + 88172645463325252u;
    uint32_t made = 0;
    while (made < CALLS) made += descend(&seed, 1, CALLS - made);
    __atomic_fetch_add(&presented, made, __ATOMIC_RELAXED);
    return NULL;
}

static void P5_threads_that_come_have_accounts_before_those_that_ended_have_detail(void **state)
{
    (void)state;
    uint64_t kept, folded = 0, lost = 0;
    uint32_t bins;
    char name[16];
    const char *wrong = NULL;
    start("telescope", "4M");
    for (int i = 0; i < REGIONS; i++) {
        snprintf(name, sizeof name, "many%d", i);
        many[i] = fdr_region_define(name, "accounts", (unsigned)i);
    }
    for (uint32_t n = 0; n < THREADS; n += BATCH) {
        pthread_t t[BATCH];
        for (uint32_t i = 0; i < BATCH; i++)
            assert_int_equal(pthread_create(&t[i], NULL, brief, (void *)(uintptr_t)(n + i + 1)), 0);
        for (uint32_t i = 0; i < BATCH; i++) pthread_join(t[i], NULL);
    }
    check(4 << 20, presented, &kept, &bins, 1);
    struct fdr_file *f = oracle_snapshot(4 << 20, &wrong);
    assert_null(wrong);
    for (size_t i = 0; i < fdr_location_count(f); i++) folded += fdr_location_info(f, i)->rows_folded;
    const struct fdr_ledger_row *rows;
    for (size_t i = fdr_ledger(f, &rows); i; i--) lost += rows[i - 1].lost;
    print_message("%llu presented, %llu in [rest], %llu lost\n", (unsigned long long)presented,
                  (unsigned long long)folded, (unsigned long long)lost);
    fdr_file_close(f);
    /* none, but where a thread that holds the lock of those that ended waits for a processor */
    assert_true(folded < presented / 10 && lost < presented / 10);
    fdr_finalize();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(P5_threads_that_come_have_accounts_before_those_that_ended_have_detail)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
