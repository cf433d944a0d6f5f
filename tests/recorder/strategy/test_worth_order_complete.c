/* SPDX-License-Identifier: MIT */
/* ctest: label=unit
 * The order of worth contains all partitions. This includes those made when memory was left only in bins: the
 * thread fills the buffer before it calls deep. */
#include <fdr/fdr.h>
#include <fdr/reader.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "recorder/thread/thread_state.h"
#include "tests/support/api_fixture.h"
#include "tests/support/worth_order_check.h"

enum { DEEP = 400, SHALLOW_CALLS = 60000, DEEP_CALLS = 400 };
static fdr_region level[DEEP];

static void down(int deep)
{
    for (int d = 0; d < deep; d++) fdr_enter(level[d]);
    for (int d = deep; d-- > 0;) fdr_leave(level[d]);
}

static void order_grows_into_bins(void **state)
{
    (void)state;
    char name[24];
    uint32_t parts, in_none;
    begin(&(struct fdr_config){.buffer = "512K", .timer = oracle_clock("tsc")});
    for (int i = 0; i < DEEP; i++) {
        snprintf(name, sizeof name, "level_%d", i);
        level[i] = fdr_region_define(name, NULL, 0);
    }
    for (int i = 0; i < SHALLOW_CALLS; i++) down(3);
    for (int i = 0; i < DEEP_CALLS; i++) down(DEEP);
    in_none = misplaced(&fdri_record_self, &parts);
    assert_true(parts > 200);
    assert_int_equal(in_none, 0);
    struct fdr_file *f = take();
    balance(f);
    end(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(order_grows_into_bins)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
