/* SPDX-License-Identifier: MIT */
/* ctest: label=threads timeout=120 promise=P5
 * P5: short threads with many functions and levels run one after another in a buffer that holds some dozens of
 * them. fdr must give up events of ended threads before new threads lack memory for accounts. This must also hold
 * if hundreds come at once, and one that gives memory back waits for a processor. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/support/fair_share_fixture.h"
#include "tests/support/sanitized.h"

/* With a sanitizer all threads are in the middle of their work at once, and need their memory. */
enum { AT_ONCE = SANITIZED ? 32 : 256, IN_ALL = SANITIZED ? 512 : 4096 };
enum { REGIONS = 1000, DEEP = 12, CALLS = 250 };
static fdr_region many[REGIONS];
static uint64_t presented;
static uint32_t regions;

static uint32_t descend(uint64_t *seed, uint32_t depth, uint32_t left)
{
    fdr_region r = many[rnd(seed, regions)];
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

struct missing {
    uint64_t folded, lost, histograms;
};

/* Counts the accounts that found no place when `threads` threads ran, `at_once` at a time. */
static struct missing storm(const char *buffer, uint64_t bytes, uint32_t threads, uint32_t at_once, uint32_t functions)
{
    struct missing m = {0};
    uint64_t kept;
    uint32_t bins;
    char name[16];
    const char *wrong = NULL;
    pthread_t t[AT_ONCE];
    pthread_attr_t small;
    start("telescope", buffer);
    presented = 0;
    regions = functions;
    for (uint32_t i = 0; i < functions; i++) {
        snprintf(name, sizeof name, "many%u", i);
        many[i] = fdr_region_define(name, "accounts", i);
    }
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 256 * 1024);
    for (uint32_t n = 0; n < threads; n += at_once) {
        for (uint32_t i = 0; i < at_once; i++)
            assert_int_equal(pthread_create(&t[i], &small, brief, (void *)(uintptr_t)(n + i + 1)), 0);
        for (uint32_t i = 0; i < at_once; i++) pthread_join(t[i], NULL);
    }
    pthread_attr_destroy(&small);
    check(bytes, presented, &kept, &bins, 1);
    struct fdr_file *f = oracle_snapshot(bytes, &wrong);
    assert_null(wrong);
    for (size_t i = 0; i < fdr_location_count(f); i++) {
        m.folded += fdr_location_info(f, i)->rows_folded;
        m.histograms += fdr_location_info(f, i)->hists_dropped;
    }
    const struct fdr_ledger_row *rows;
    for (size_t i = fdr_ledger(f, &rows); i; i--) m.lost += rows[i - 1].lost;
    print_message("%s, %u at once: %llu presented, %llu in [rest], %llu lost, %llu histograms dropped\n", buffer,
                  at_once, (unsigned long long)presented, (unsigned long long)m.folded, (unsigned long long)m.lost,
                  (unsigned long long)m.histograms);
    fdr_file_close(f);
    fdr_finalize();
    return m;
}

static void P5_accounts_of_new_threads_go_before_detail_of_ended_ones(void **state)
{
    (void)state;
    struct missing m = storm("4M", 4 << 20, 2000, 16, 40);
    /* normally none; unless a thread that holds the lock on ended threads waits for a processor */
    assert_true(m.folded < presented / 10 && m.lost < presented / 10);
}

/* A new thread makes room before it records. At that moment it can wait for the thread that is merging. */
static void P5_hundreds_of_short_threads_at_once(void **state)
{
    (void)state;
    struct missing m = storm("16M", 16 << 20, IN_ALL, AT_ONCE, REGIONS);
    assert_true(m.folded < presented / 1000 && m.lost == 0);
    /* a slow thread makes others wait longer for memory than they do */
    assert_true(SANITIZED || m.histograms < presented / 12);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(P5_accounts_of_new_threads_go_before_detail_of_ended_ones),
                                       cmocka_unit_test(P5_hundreds_of_short_threads_at_once)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
