/* SPDX-License-Identifier: MIT */
/* ctest: label=unit,threads timeout=120 promise=P5
 * P5: a sum that does not fit into 64 bits stays at the bound that it reached, and is marked as saturated. All
 * other sums are exact. */
#include <fdr/fdr.h>
#include <fdr/reader.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bins/bins.h"
#include "format/arena/arena.h"
#include "recorder/recording.h"
#include "tests/support/api_fixture.h"

#define BIG 1795527986911608032ull /* ns since 1970, at the end of 2026 */

static void expect(const struct fdr_total *t, uint64_t calls, uint64_t sum, bool saturated)
{
    assert_int_equal(t->calls, calls);
    assert_true(t->sum_u == sum);
    assert_int_equal(t->saturated, saturated);
}

static void P5_sums_of_a_thread(void **state)
{
    (void)state;
    begin(NULL);
    fdr_metric_id ten = fdr_metric_define("ten", "ns", FDR_U64, FDR_METRIC_GAUGE),
                  twenty = fdr_metric_define("twenty", "ns", FDR_U64, FDR_METRIC_GAUGE),
                  up = fdr_metric_define("up", "1", FDR_I64, FDR_METRIC_GAUGE),
                  down = fdr_metric_define("down", "1", FDR_I64, FDR_METRIC_GAUGE),
                  level = fdr_metric_define("level", "1", FDR_I64, FDR_METRIC_GAUGE),
                  real = fdr_metric_define("real", "1", FDR_F64, FDR_METRIC_GAUGE);
    fdr_marker_id marker = fdr_marker_define("all ones");
    uint64_t t = 100;
    for (int i = 0; i < 20; i++)
        fdr_metric_u64_at(i % 2 ? ten : twenty, BIG, t += 3), fdr_metric_u64_at(twenty, BIG, t);
    for (int i = 0; i < 2; i++) fdr_metric_i64_at(up, INT64_MAX, t += 3), fdr_metric_i64_at(down, INT64_MIN, t);
    fdr_metric_i64_at(up, -100, t += 3); /* the sum stays saturated, because its true value is no longer known */
    fdr_metric_i64_at(level, INT64_MAX, t += 3), fdr_metric_i64_at(level, INT64_MIN, t);
    for (int i = 0; i < 2; i++) fdr_metric_f64_at(real, 1e308, t += 3);
    fdr_marker_at(marker, UINT64_MAX, t += 3);
    for (int i = 0; i < 3; i++) fdr_message_send_at(1, 2, 0, 1ull << 63, t += 3), fdr_message_recv_at(1, 2, 0, i, t);
    fdr_collective_end_at(10, 0, 0, 1ull << 63, 1ull << 63, t += 3);
    fdr_collective_end_at(11, 0, 0, 1ull << 62, 1ull << 63, t += 3);
    struct fdr_file *f = take();
    expect(total(f, FDR_IN_METRIC, ten), 10, 10 * BIG, false);
    expect(total(f, FDR_IN_METRIC, twenty), 30, UINT64_MAX, true);
    assert_true(total(f, FDR_IN_METRIC, twenty)->min_u == BIG && total(f, FDR_IN_METRIC, twenty)->max_u == BIG);
    expect(total(f, FDR_IN_METRIC, up), 3, INT64_MAX, true);
    expect(total(f, FDR_IN_METRIC, down), 2, (uint64_t)INT64_MIN, true);
    expect(total(f, FDR_IN_METRIC, level), 2, UINT64_MAX, false);
    expect(total(f, FDR_IN_METRIC, real), 2, bits((double)INFINITY), false);
    expect(total(f, FDR_IN_MARKER, marker), 1, UINT64_MAX, false);
    expect(total(f, FDR_IN_MESSAGE, 1), 3, UINT64_MAX, true);
    expect(total(f, FDR_IN_MESSAGE, 2), 3, 3, false);
    expect(total(f, FDR_IN_COLLECTIVE, 10), 1, UINT64_MAX, true);
    assert_true(total(f, FDR_IN_COLLECTIVE, 10)->min_u == UINT64_MAX);
    expect(total(f, FDR_IN_COLLECTIVE, 11), 1, 3ull << 62, false);
    end(f);
}

/* ---- ended threads ---- */

enum { THREADS = 3, CALLS = 20000 };
static fdr_region own, deep;
static fdr_metric_id together, alone, below, real;

static void call(void)
{
    fdr_enter(own);
    fdr_leave(own);
}

static void *brief(void *first)
{
    fdr_metric_u64(together, 3ull << 62); /* two threads together exceed 64 bits */
    fdr_metric_i64(below, INT64_MIN / 2); /* three threads do */
    fdr_metric_f64(real, 1e300);
    for (int i = 0; first && i < 2; i++) fdr_metric_i64(alone, INT64_MAX);
    if (!first) fdr_metric_i64(alone, -5);
    for (int i = 0; i < CALLS; i++) call();
    for (int i = 0; i < 3; i++) fdr_enter(deep);
    /* 2^62 ticks each: two threads together exceed 64 bits */
    for (int i = 0; i < 3; i++) fdr_leave_at(deep, UINT64_MAX);
    return NULL;
}

static uint32_t folded(void)
{
    const struct fdri_bins_arena *a = &fdri_life_recording.arena;
    uint32_t threads = 0;
    for (uint32_t off = a->super->location_first; off;) {
        const struct fdri_arena_location *l = fdri_bins_at(a, off);
        off = l->next;
        if (l->flags & FDRI_ARENA_LOCATION_ENDED && !(l->flags & FDRI_ARENA_LOCATION_FREE)) threads += l->tid;
    }
    return threads;
}

static void P5_sums_of_threads_that_ended(void **state)
{
    (void)state;
    begin(&(struct fdr_config){.buffer = "512K", .strategy = "telescope"});
    own = fdr_region_define("own", "sums", 0);
    deep = fdr_region_define("deep", "sums", 0);
    together = fdr_metric_define("together", "1", FDR_U64, FDR_METRIC_GAUGE);
    alone = fdr_metric_define("alone", "1", FDR_I64, FDR_METRIC_GAUGE);
    below = fdr_metric_define("below", "1", FDR_I64, FDR_METRIC_GAUGE);
    real = fdr_metric_define("real", "1", FDR_F64, FDR_METRIC_GAUGE);
    for (int i = 0; i < THREADS; i++) {
        pthread_t t;
        assert_int_equal(pthread_create(&t, NULL, brief, i ? NULL : &own), 0);
        pthread_join(t, NULL);
    }
    for (int i = 0; i < 5000000 && folded() < THREADS; i++) call();
    assert_int_equal(folded(), THREADS);
    struct fdr_file *f = take();
    expect(total(f, FDR_IN_METRIC, together), THREADS, UINT64_MAX, true);
    expect(total(f, FDR_IN_METRIC, alone), 4, INT64_MAX, true);
    expect(total(f, FDR_IN_METRIC, below), THREADS, (uint64_t)INT64_MIN, true);
    const struct fdr_total *times = total(f, FDR_IN_REGION, deep);
    assert_true(times->calls == 3 * THREADS && times->saturated && times->inclusive_ns / 3 >= times->max_ns);
    assert_true(times->exclusive_ns / THREADS <= times->max_ns && !total(f, FDR_IN_REGION, own)->saturated);
    expect(total(f, FDR_IN_METRIC, real), THREADS, bits(3e300), false);
    end(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(P5_sums_of_a_thread),
                                       cmocka_unit_test(P5_sums_of_threads_that_ended)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
