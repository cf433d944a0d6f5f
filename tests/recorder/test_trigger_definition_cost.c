/* SPDX-License-Identifier: MIT */
/* ctest: label=unit timeout=60 promise=P2
 * P2: with a trigger on all regions, a definition reads its own place in the table of watched definitions, and not
 * those of earlier definitions. Recording threads compare with the least of all thresholds. The rest of the table
 * is unreadable, so a failure is a SIGSEGV. */
#include "base/atomic.h"
#include "format/arena/arena.h"
#include "recorder/ended/ended.h"
#include "recorder/life/life.h"
#include "recorder/thread/arena_place.h"
#include "recorder/thread/thread_state.h"
#include "recorder/totals/totals.h"
#include "recorder/watch/watch.h"
#include "recorder/watch/watch_table.h"
#include "tests/support/api_fixture.h"

#include <fdr/fdr.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

enum { MANY = 20000, PAGE = 4096, MS = 1000000 };

static fdr_region define(char family, uint32_t number)
{
    char name[16];
    snprintf(name, sizeof name, "%c%u", family, number);
    return fdr_region_define(name, "watch_cost.c", 1);
}

/* Protects all pages of the table except the first, and those around the region's entry. */
static void protect(fdr_region region, int how)
{
    struct fdri_watch_table *t = fdri_watch_table;
    uint32_t at = FDRI_TOTALS_KEY(FDRI_ARENA_DEF_REGION, region) * 0x9E3779B1u >> (32 - t->log2);
    uint8_t *base = (uint8_t *)t, *its = (uint8_t *)&t->entry[at], *end = (uint8_t *)&t->entry[1u << t->log2];
    for (uint8_t *page = base + PAGE; page + PAGE <= end; page += PAGE)
        if (page + PAGE < its || page > its + PAGE) assert_int_equal(mprotect(page, PAGE, how), 0);
}

static void P2_a_definition_looks_at_its_own_entry(void **state)
{
    (void)state;
    begin(&(struct fdr_config){.triggers = "long: region r* over 1s;", .buffer = "4M"});
    fdr_region last = 0;
    for (uint32_t i = 0; i < MANY; i++) last = define('r', i);
    assert_in_range(fdri_watch_table->used, MANY, MANY + 10);
    for (uint32_t i = 1; i <= 100; i++) {
        protect(last + i, PROT_NONE);
        assert_int_equal(define('r', MANY + i), last + i);
        protect(last + i, PROT_READ | PROT_WRITE);
    }
    assert_in_range(fdri_watch_table->used, MANY + 100, MANY + 110);
    fdr_finalize();
}

static void the_least_threshold_counts(void **state)
{
    (void)state;
    begin(&(struct fdr_config){.triggers = "long: region q* over 1s;", .buffer = "4M"});
    define('q', 1);
    assert_int_equal(fdri_watch_ns, 1000 * MS);
    int shorter = fdr_trigger_add("shorter: region q2* over 5ms"), odd = fdr_trigger_add("odd: region q2? over 2s");
    assert_true(shorter > 0 && odd > 0);
    define('q', 3);
    assert_int_equal(fdri_watch_ns, 1000 * MS);
    define('q', 22);
    assert_int_equal(fdri_watch_ns, 5 * MS);
    assert_int_equal(fdri_watch_ticks, fdri_life_ns_to_ticks(5 * MS));
    define('q', 23);
    assert_int_equal(fdri_watch_ns, 5 * MS);
    assert_int_equal(fdri_watch_classes, 0);
    int metric = fdr_trigger_add("high: metric m above 5");
    fdr_metric_define("m", "", FDR_U64, FDR_METRIC_GAUGE);
    assert_int_equal(fdri_watch_classes, 1u << FDRI_ARENA_CLASS_METRIC);
    assert_int_equal(fdr_trigger_remove(metric), 0);
    assert_int_equal(fdr_trigger_remove(shorter), 0);
    assert_int_equal(fdri_watch_classes, 0);
    assert_int_equal(fdri_watch_ns, 1000 * MS);
    fdr_finalize();
    assert_int_equal(fdri_watch_ns, UINT64_MAX);
}

/* While the accounts of ended threads move, no histogram is read, so a threshold computed from them stays. */
static void a_threshold_stays_while_nothing_is_read(void **state)
{
    (void)state;
    begin(&(struct fdr_config){.triggers = "odd: region p* over 20p99;", .buffer = "4M"});
    fdr_region region = define('p', 1);
    for (int i = 0; i < 1000; i++) {
        fdr_enter(region);
        fdr_leave(region);
    }
    for (int i = 0; i < 100 && fdri_atomic_load_relaxed(&fdri_watch_ns) == UINT64_MAX; i++) usleep(100000);
    uint64_t before = fdri_atomic_load_relaxed(&fdri_watch_ns);
    assert_int_not_equal(before, UINT64_MAX);
    assert_true(fdri_ended_lock(fdri_thread_offset_of(&fdri_record_self, fdri_record_self.loc), 1000000));
    usleep(400000);
    uint64_t meanwhile = fdri_atomic_load_relaxed(&fdri_watch_ns);
    fdri_ended_unlock();
    assert_int_equal(meanwhile, before);
    fdr_finalize();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(P2_a_definition_looks_at_its_own_entry),
                                       cmocka_unit_test(a_threshold_stays_while_nothing_is_read),
                                       cmocka_unit_test(the_least_threshold_counts)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
