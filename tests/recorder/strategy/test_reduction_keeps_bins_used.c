/* SPDX-License-Identifier: MIT */
/* ctest: label=unit timeout=300 promise=P1
 * P1: a reduction gives back no more than needed. Once memory was full, at least 90 % of the bins stay in use after
 * each kind of step. This holds while there are events to give back. */
#include <fdr/fdr.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/support/oracle.h"
#include "tests/support/random_numbers.h"

static uint64_t seed;

/* Calls of every duration at every depth, with points between them. The depth grows with time. */
static uint64_t program(uint64_t now, uint32_t round)
{
    for (int i = 0; i < 40; i++) {
        uint32_t r = 1 + rnd(&seed, 30), deep = 1 + rnd(&seed, 4 + round / 500);
        for (uint32_t d = 0; d < deep; d++) fdr_enter_at(r + d, now += rnd(&seed, 50));
        if (rnd(&seed, 8) == 0) fdr_marker_at(1, r, now);
        if (rnd(&seed, 8) == 0) fdr_message_send_at(1, 2, 0, 100, now);
        for (uint32_t d = deep; d-- > 0;)
            fdr_leave_at(r + d, now += rnd(&seed, 3) ? rnd(&seed, 80) : rnd(&seed, rnd(&seed, 5) ? 6000 : 600000));
    }
    return now;
}

static void filled(const char *strategy, const char *buffer, const char *bin, double least)
{
    struct fdr_config c = oracle_config(oracle_directory());
    c.strategy = strategy;
    c.buffer = buffer;
    c.bin = bin;
    seed = 7;
    assert_int_equal(fdr_init(&c), 0);
    for (unsigned i = 1; i < 40; i++) fdr_region_define("region", "file.c", i);
    uint64_t now = 1000;
    double lowest = 1;
    uint32_t seen = 0;
    for (uint32_t round = 0; round < 6000; round++) {
        now = program(now, round);
        struct fdr_usage u = fdr_usage();
        if (!u.reductions) continue;
        double fill = 1 - (double)u.bins_free / (double)(u.bins - u.meta_bytes / u.bin_bytes);
        if (fill < lowest) lowest = fill;
        seen++;
    }
    print_message("%-9s %4s in bins of %s: at least %.1f %% in use after the first of %llu steps\n", strategy, buffer,
                  bin, 100 * lowest, (unsigned long long)fdr_usage().reductions);
    fdr_finalize();
    assert_true(seen > 100);
    assert_true(lowest >= least);
}

static void P1_a_step_takes_no_more_than_is_needed(void **state)
{
    static const char *const strategies[] = {"whole", "telescope", "last"};
    (void)state;
    for (int i = 0; i < 3; i++) {
        filled(strategies[i], "1M", "4K", 0.9);
        filled(strategies[i], "512K", "1K", 0.9);
        filled(strategies[i], "4M", "4K", 0.9);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(P1_a_step_takes_no_more_than_is_needed)};
    int bad = cmocka_run_group_tests(tests, NULL, NULL);
    return bad;
}
