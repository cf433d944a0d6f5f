/* SPDX-License-Identifier: MIT */
/* ctest: label=threads timeout=120 promise=P3 without=tsan (its threads take turns)
 * P3: threads run one after another, and each leaves thousands of the smallest bins behind, as rewinds do. These
 * pieces must become whole bins again. A failure shows as lost events, or as a thread that holds too few bins. */
#include <fdr/fdr.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "base/atomic.h"
#include "bins/bins.h"
#include "recorder/recording.h"
#include "recorder/thread/thread_state.h"
#include "tests/support/rewind_storm.h"
#include "tests/support/fair_share_fixture.h"

enum { THREADS = 8, EVENTS = 200000 };
static fdr_region own[STORM_REGIONS];
static uint32_t held;

static void *storm(void *number)
{
    rewind_storm((uintptr_t)number, 1000000, EVENTS, own, NULL);
    held = fdri_atomic_load_relaxed(&fdri_record_self.loc->bins_held);
    return NULL;
}

static void one_after_another(const char *strategy)
{
    char name[16], text[200];
    start(strategy, "4M");
    for (uint32_t i = 0; i < STORM_REGIONS; i++) {
        snprintf(name, sizeof name, "own%u", i);
        own[i] = fdr_region_define(name, "pieces", i);
    }
    for (uintptr_t i = 0; i < THREADS; i++) {
        pthread_t t;
        assert_int_equal(pthread_create(&t, NULL, storm, (void *)(i + 1)), 0);
        pthread_join(t, NULL);
        const char *wrong = fdri_bins_check(&fdri_life_recording.arena, text, sizeof text);
        if (wrong) fail_msg("%s, thread %u: %s", strategy, (unsigned)i, wrong);
        if (held < fdri_life_recording.arena.super->bins_total / 2)
            fail_msg("%s, thread %u holds %u of %u bins", strategy, (unsigned)i, held,
                     fdri_life_recording.arena.super->bins_total);
    }
    struct fdr_usage u = fdr_usage();
    if (u.lost * 1000 > u.presented)
        fail_msg("%s: %llu of %llu lost", strategy, (unsigned long long)u.lost, (unsigned long long)u.presented);
    fdr_finalize();
}

static void P3_last(void **state)
{
    (void)state;
    one_after_another("last");
}
static void P3_whole(void **state)
{
    (void)state;
    one_after_another("whole");
}
static void P3_telescope(void **state)
{
    (void)state;
    one_after_another("telescope");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(P3_last), cmocka_unit_test(P3_whole),
                                       cmocka_unit_test(P3_telescope)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
