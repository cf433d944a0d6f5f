/* SPDX-License-Identifier: MIT */
/* ctest: label=threads timeout=120 promise=P5
 * P5: threads end in a buffer without free bins, because each rewind leaves a bin for each level. Their totals stay
 * exact even when others need the memory of their accounts. [ended] gets a place for each of their rows before
 * their bins go. A failure shows as missing calls. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/support/rewind_storm.h"
#include "tests/support/fair_share_fixture.h"
#include "tests/support/sanitized.h"

/* Enough events that threads end in the full buffer, and go into [ended]. */
enum { THREADS = 4, EVENTS = SANITIZED ? 40000 : 300000, MIB = SANITIZED ? 1 : 4 };
static fdr_region own[STORM_REGIONS];
static uint64_t made[STORM_REGIONS];

/* A thread that comes late may find no levels; no row counts its deeper calls then (docs/LIMITS.md). So all threads
 * get their levels before memory runs out. */
static pthread_barrier_t all_there;
static void get_levels(uint64_t *now)
{
    for (uint32_t d = 0; d < STORM_DEEP; d++) fdr_enter_at(own[0], *now += 10);
    for (uint32_t d = 0; d < STORM_DEEP; d++) fdr_leave_at(own[0], *now += 10);
    __atomic_fetch_add(&made[0], STORM_DEEP, __ATOMIC_RELAXED);
    pthread_barrier_wait(&all_there);
}

static void *storm(void *number)
{
    uint64_t now = 1000000;
    get_levels(&now);
    rewind_storm((uintptr_t)number, now, EVENTS, own, made);
    return NULL;
}

static void totals_are_whole(const char *strategy)
{
    char name[16];
    const char *wrong = NULL;
    pthread_t t[THREADS];
    uint64_t folded = 0, all = 0, found = 0;
    uint32_t ended = 0;
    const struct fdr_total *totals;
    start(strategy, SANITIZED ? "1M" : "4M");
    memset(made, 0, sizeof made);
    pthread_barrier_init(&all_there, NULL, THREADS);
    for (uint32_t i = 0; i < STORM_REGIONS; i++) {
        snprintf(name, sizeof name, "own%u", i);
        own[i] = fdr_region_define(name, "totals", i);
    }
    for (uintptr_t i = 0; i < THREADS; i++) assert_int_equal(pthread_create(&t[i], NULL, storm, (void *)(i + 1)), 0);
    for (int i = 0; i < THREADS; i++) pthread_join(t[i], NULL);
    struct fdr_file *f = oracle_snapshot(MIB << 20, &wrong);
    assert_null(wrong);
    for (size_t i = 0; i < fdr_location_count(f); i++) {
        const struct fdr_location_info *l = fdr_location_info(f, i);
        folded += l->rows_folded;
        ended += l->ended_threads;
        assert_true(!l->ended_threads || l->tid == 0);
    }
    for (uint32_t i = 0; i < STORM_REGIONS; i++) all += made[i];
    for (size_t n = fdr_totals(f, &totals); n--;) {
        found += totals[n].calls;
        for (uint32_t i = 0; i < STORM_REGIONS; i++) made[i] -= totals[n].id == own[i] ? totals[n].calls : 0;
    }
    print_message("%s: %u threads in [ended], %llu of %llu calls in [rest]\n", strategy, ended,
                  (unsigned long long)folded, (unsigned long long)all);
    assert_int_equal(found, all);
    /* usually none; unless other threads took all free bins at the moment of the search */
    assert_true(folded <= all / 100);
    for (uint32_t i = 0; i < STORM_REGIONS; i++) assert_true(made[i] <= folded);
    fdr_file_close(f);
    fdr_finalize();
}

static void P5_last(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++) totals_are_whole("last");
}

static void P5_telescope(void **state)
{
    (void)state;
    totals_are_whole("telescope");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(P5_last), cmocka_unit_test(P5_telescope)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
