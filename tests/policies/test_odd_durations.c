/* SPDX-License-Identifier: MIT */
/* ctest: label=unit
 * Durations of iterations: which ones are unusual, by the median of those before them and by their number. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "policies/durations.h"

static struct fdri_policies_durations d;

static void add(uint64_t ns, uint32_t count)
{
    while (count--) fdri_policies_add_duration(&d, ns);
}

/* Below twice the median, whatever its value, no duration is unusual; from three times on each is. */
static void bounds(void **state)
{
    (void)state;
    for (uint64_t median = 1; median < 1ull << 40; median += median / 3 + 1) {
        memset(&d, 0, sizeof d);
        assert_false(fdri_policies_odd_duration(&d, median));
        add(median, 100);
        assert_false(fdri_policies_odd_duration(&d, 2 * median - 1));
        assert_true(fdri_policies_odd_duration(&d, 3 * median));
        assert_false(fdri_policies_odd_duration(&d, median / 2 + 1));
        if (median > 8) assert_true(fdri_policies_odd_duration(&d, median / 3 - 1));
    }
    assert_true(fdri_policies_odd_duration(&d, UINT64_MAX));
    assert_true(fdri_policies_odd_duration(&d, 0));
}

/* Five long ones of a hundred are unusual, then no more; of ten thousand 82 are. */
static void number_that_is_rare(void **state)
{
    (void)state;
    for (uint32_t all = 100, most = 5; all <= 10000; all *= 100, most = 83) {
        memset(&d, 0, sizeof d);
        add(1000, all);
        uint32_t odd = 0;
        for (uint32_t i = 0; i < 200 && fdri_policies_odd_duration(&d, 10000); i++, odd++) add(10000, 1);
        assert_int_equal(odd, most);
    }
}

/* Days of a short loop: a full bucket halves all, and the verdicts stay. */
static void full_bucket(void **state)
{
    (void)state;
    memset(&d, 0, sizeof d);
    add(1000, 3);
    for (uint32_t i = 0; i < FDRI_POLICIES_DURATION_BUCKETS; i++)
        if (d.bucket[i]) d.bucket[i] = UINT32_MAX - 1, d.seen = UINT32_MAX - 1;
    add(1000, 10);
    assert_true(d.seen < UINT32_MAX);
    assert_false(fdri_policies_odd_duration(&d, 1000));
    assert_true(fdri_policies_odd_duration(&d, 10000));
}

/* The distribution is that of all before: an unusual one among the slower half is measured by the median. */
static void two_usual_durations(void **state)
{
    (void)state;
    memset(&d, 0, sizeof d);
    add(1000, 600);
    add(10000, 400);
    assert_false(fdri_policies_odd_duration(&d, 10000));
    assert_true(fdri_policies_odd_duration(&d, 50000));
    assert_true(fdri_policies_odd_duration(&d, 100));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(bounds), cmocka_unit_test(number_that_is_rare),
                                       cmocka_unit_test(full_bucket), cmocka_unit_test(two_usual_durations)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
