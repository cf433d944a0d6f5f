/* SPDX-License-Identifier: MIT */
/* ctest: label=unit
 * Crash bundles stay or go, on a clock of the test. Of each fingerprint the first, the newest and the one of the
 * longest run stay; the limit is 14 days. Under limits of space the only bundle of a fingerprint goes last, and none
 * goes for want of unused space alone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "policies/bundle_fates.h"

#define SECOND 1000000000ull
#define DAY    (86400 * SECOND)
enum { MOST = 1000 };
static struct fdri_policies_bundle b[MOST];
static uint32_t count;
static const struct fdri_policies_disk large = {1000, 900};
static const struct fdri_policies_retention usual = {
    .most = {.share = 0.10}, .unused = {.share = 0.15}, .age_ns = 14 * DAY};

static void add(uint64_t fingerprint, uint64_t death_ns, uint64_t run_ns, uint64_t bytes)
{
    b[count++] = (struct fdri_policies_bundle){fingerprint, death_ns, run_ns, bytes, 0, 0};
}

static void expect(const char *fates)
{
    static const char letter[] = "saot"; /* stays, alike, old, too much */
    char got[MOST + 1] = "";
    for (uint32_t i = 0; i < count; i++) got[i] = letter[b[i].fate];
    assert_string_equal(got, fates);
    count = 0;
}

static void a_thousand_leave_three(void **state)
{
    (void)state;
    char fates[MOST + 1];
    memset(fates, 'a', sizeof fates);
    fates[MOST] = 0;
    for (uint64_t i = 0; i < MOST; i++) add(7, i * SECOND, i == 500 ? 99 : 5, 0);
    fdri_policies_retain(b, count, &usual, &large, MOST * SECOND);
    for (uint32_t i = 1; i < MOST; i++) assert_int_equal(b[i].heir, 0);
    fates[0] = fates[500] = fates[999] = 's';
    expect(fates);
}

static void others_are_not_alike(void **state)
{
    (void)state;
    for (uint64_t i = 0; i < 4; i++) add(1 + i, i, 1, 1);
    for (uint64_t i = 0; i < 4; i++) add(0, 4 + i, 1, 1); /* not known */
    fdri_policies_retain(b, count, &usual, &large, 100);
    expect("ssssssss");
}

static void old_ones_are_counted_by_the_next(void **state)
{
    (void)state;
    add(7, 1 * DAY, 9, 1), add(8, 1 * DAY, 9, 1);
    for (uint64_t i = 10; i < 14; i++) add(7, i * DAY, 1, 1);
    fdri_policies_retain(b, count, &usual, &large, 16 * DAY);
    assert_int_equal(b[0].heir, 2);
    assert_int_equal(b[1].heir, FDRI_POLICIES_NO_HEIR);
    assert_int_equal(b[4].heir, 2);
    expect("oossas");
}

static void no_limit_of_age(void **state)
{
    (void)state;
    struct fdri_policies_retention rule = usual;
    rule.age_ns = 0;
    add(7, 1, 9, 1);
    fdri_policies_retain(b, count, &rule, &large, UINT64_MAX);
    expect("s");
}

static void the_oldest_go_and_only_ones_last(void **state)
{
    (void)state;
    add(1, 1, 1, 30), add(2, 2, 1, 30), add(3, 3, 1, 30), add(3, 4, 9, 30), add(3, 5, 1, 30);
    fdri_policies_retain(b, count, &usual, &large, 100); /* at most 100 */
    expect("ssstt");
    add(1, 1, 1, 30), add(2, 2, 1, 30), add(3, 3, 1, 30), add(4, 4, 1, 30);
    fdri_policies_retain(b, count, &usual, &large, 100);
    expect("tsss");
    add(1, 1, 1, 500);
    fdri_policies_retain(b, count, &usual, &large, 100); /* the newest of all stays, however large */
    expect("s");
}

static void a_full_disk_takes_no_only_one(void **state)
{
    (void)state;
    static const struct fdri_policies_disk full = {1000, 10};
    add(1, 1, 1, 1), add(2, 2, 1, 1), add(2, 3, 1, 1);
    fdri_policies_retain(b, count, &usual, &full, 100);
    expect("sst");
}

static void off(void **state)
{
    (void)state;
    struct fdri_policies_retention rule = usual;
    rule.off = true;
    for (uint64_t i = 0; i < 6; i++) add(1, i, 1, 500);
    fdri_policies_retain(b, count, &rule, &large, UINT64_MAX);
    expect("ssssss");
    assert_true(fdri_policies_may_promise(&rule, &large, 5000, 5000, 5000));
}

static void promises(void **state)
{
    (void)state;
    static const struct fdri_policies_disk some = {1000, 200};
    assert_true(fdri_policies_may_promise(&usual, &some, 20, 30, 20));
    assert_true(fdri_policies_may_promise(&usual, &large, 50, 25, 25));
    assert_false(fdri_policies_may_promise(&usual, &large, 50, 25, 26)); /* more than a tenth of all */
    assert_false(fdri_policies_may_promise(&usual, &some, 0, 26, 25));   /* 150 must stay unused */
    struct fdri_policies_retention rule = {.most = {-1, 70}, .unused = {-1, 0}};
    assert_true(fdri_policies_may_promise(&rule, &some, 10, 20, 40));
    assert_false(fdri_policies_may_promise(&rule, &some, 10, 20, 41));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_thousand_leave_three),
                                       cmocka_unit_test(others_are_not_alike),
                                       cmocka_unit_test(old_ones_are_counted_by_the_next),
                                       cmocka_unit_test(no_limit_of_age),
                                       cmocka_unit_test(the_oldest_go_and_only_ones_last),
                                       cmocka_unit_test(a_full_disk_takes_no_only_one),
                                       cmocka_unit_test(off),
                                       cmocka_unit_test(promises)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
