/* SPDX-License-Identifier: MIT */
/* ctest: label=unit timeout=60
 * P3, P5: what memory refused a thread once it gets when there is some again: levels of its stack, rows of totals. */
#include "tests/api_fixture.h"

enum { REGIONS = 3000, FEW = 5, LATER = 300, DEEP = 300, BINS = 4096 };
static fdr_region region[REGIONS];
static uint64_t now;

static void start(void)
{
    char name[16];
    begin(&(struct fdr_config){.strategy = "telescope", .buffer = "1M", .timer = "monotonic"});
    for (int i = 0; i < REGIONS; i++) {
        snprintf(name, sizeof name, "again%d", i);
        region[i] = fdr_region_define(name, "room_again.c", 1);
    }
    now = 1000;
}

static void deep(int depth)
{
    for (int d = 0; d < depth; d++) fdr_enter_at(region[d % 4], now += 10);
    while (depth--) fdr_leave_at(region[depth % 4], now += 10);
}

static void once(fdr_region r)
{
    fdr_enter_at(r, now += 10);
    fdr_leave_at(r, now += 10);
}

/* Somebody else has all that is free; and then nobody. */
static uint32_t taken[BINS], count;
static void take_all(void)
{
    uint32_t off;
    for (count = 0; count < BINS && (off = fdri_bin_take(&fdri_rec.arena, 0)); count++) taken[count] = off;
    assert_in_range(count, 1, BINS - 1);
}
static void give_all(void)
{
    while (count) fdri_bin_give(&fdri_rec.arena, taken[--count]);
}

static void P3_levels(void **state)
{
    (void)state;
    start();
    deep(3);
    take_all();
    deep(DEEP);
    assert_true(fdr_usage().lost > 0); /* else nothing was tried */
    give_all();
    for (int i = 0; i < 8; i++) deep(DEEP); /* it looks for room less often than it is asked to */
    uint64_t lost = fdr_usage().lost;
    for (int i = 0; i < 3; i++) deep(DEEP);
    assert_int_equal(fdr_usage().lost, lost);
    struct fdr_file *f = take();
    balance(f);
    assert_true(row(f, fdr_location_info(f, 0)->id, FDR_IN_REGION, DEEP)->kept >= 3);
    end(f);
}

static void P5_rows(void **state)
{
    (void)state;
    int i = 0, own = 0;
    start();
    deep(3);
    take_all();
    while (!fdri_self.loc->rows_folded && i < REGIONS - LATER - FEW) once(region[i++]);
    assert_true(fdri_self.loc->rows_folded); /* else nothing was tried */
    for (int k = 0; k < FEW; k++, i++) once(region[i]);
    give_all();
    for (int k = 0; k < LATER; k++) once(region[i + k]);
    struct fdr_file *f = take();
    for (int k = 0; k < LATER; k++) own += total(f, FDR_IN_REGION, region[i + k])->calls == 1;
    assert_in_range(own, LATER / 2, LATER);
    end(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(P3_levels), cmocka_unit_test(P5_rows)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
