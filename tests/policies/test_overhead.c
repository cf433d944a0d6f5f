/* SPDX-License-Identifier: MIT */
/* ctest: promise=P1
 * P1: the choice of regions to mute (FDR_OVERHEAD), on a simulated program and clock. It settles within 500 ms of a
 * change of phase, does not oscillate, mutes the least telling regions, and holds against bursts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "policies/overhead.h"
#include "tests/support/random_numbers.h"

enum { REGIONS = 40, INTERVAL_NS = 20000000, SECOND = 1000000000 };
static const double call_ns = 30;

/* The program: calls of each region for each second of its own processor time, and what a call tells. */
static double calls_a_second[REGIONS], tells[REGIONS];
static struct fdri_policies_load load[REGIONS];
static struct fdri_policies_overhead overhead;
static uint64_t now_ns, changes, last_change_ns;
static double own_total_ns, cost_total_ns;

static void begin(double target)
{
    memset(load, 0, sizeof load);
    memset(calls_a_second, 0, sizeof calls_a_second);
    for (int i = 0; i < REGIONS; i++) tells[i] = 100;
    overhead = (struct fdri_policies_overhead){.target = target, .call_ns = call_ns};
    now_ns = SECOND;
    changes = last_change_ns = 0;
}

/* Runs the program, then one step. */
static void interval(uint64_t ns)
{
    uint32_t order[REGIONS];
    double cost = 0; /* for each ns of the program's own */
    for (int i = 0; i < REGIONS; i++)
        if (!load[i].muted) cost += calls_a_second[i] * call_ns / SECOND;
    double own_ns = (double)ns / (1 + cost);
    own_total_ns += own_ns;
    cost_total_ns += (double)ns - own_ns;
    for (int i = 0; i < REGIONS; i++) {
        load[i].calls = (uint64_t)(calls_a_second[i] * own_ns / SECOND);
        load[i].tells = tells[i];
    }
    now_ns += ns;
    uint32_t changed = fdri_policies_overhead_step(&overhead, load, REGIONS, order, now_ns, ns);
    changes += changed;
    if (changed) last_change_ns = now_ns;
}

static void run(uint64_t ns)
{
    own_total_ns = cost_total_ns = 0;
    for (uint64_t until = now_ns + ns; now_ns < until;) interval(INTERVAL_NS);
}

static double added(void) { return cost_total_ns / own_total_ns; }

static void below_the_target_nothing_is_muted(void **state)
{
    (void)state;
    begin(0.05);
    for (int i = 0; i < REGIONS; i++) calls_a_second[i] = 0.048 / REGIONS / call_ns * SECOND;
    run(60ull * SECOND);
    assert_int_equal(changes, 0);
    assert_true(overhead.share > 0.04 && overhead.share < 0.05);
}

/* Under any load the cost settles within 500 ms of each change of phase, to at most the target. */
static void settles_within_500_ms_of_a_change_of_phase(void **state)
{
    uint64_t seed = 88172645463325252u;
    (void)state;
    for (int program = 0; program < 40; program++) {
        begin(program % 2 ? 0.05 : 0.02);
        for (int phase = 0; phase < 10; phase++) {
            for (int i = 0; i < REGIONS; i++) {
                calls_a_second[i] = rnd(&seed, 3) ? 0 : (double)rnd(&seed, rnd(&seed, 2) ? 100000 : 20000000);
                tells[i] = 5 + (double)rnd(&seed, 10000);
            }
            run(SECOND / 2);
            run(SECOND);
            if (added() > overhead.target) fail_msg("program %d, phase %d: %g", program, phase, added());
            /* regions come back later, once it is sure that they may; then nothing changes any more */
            uint64_t settled = changes;
            run(60ull * SECOND);
            for (int i = 0; i < REGIONS; i++) assert_true(load[i].hold_ns <= 16ull * SECOND);
            if (added() > overhead.target) fail_msg("program %d, phase %d: later %g", program, phase, added());
            assert_true(changes - settled <= REGIONS);
            settled = changes;
            run(60ull * SECOND);
            assert_int_equal(changes, settled);
        }
    }
}

static void what_tells_least_for_its_cost_goes(void **state)
{
    (void)state;
    begin(0.05);
    calls_a_second[0] = 1e6, tells[0] = 20;     /* 3 %, short */
    calls_a_second[1] = 6e5, tells[1] = 800;    /* 1.8 %, long */
    calls_a_second[2] = 1e4, tells[2] = 5;      /* 0.03 %, shortest: it costs nothing */
    calls_a_second[3] = 5e5, tells[3] = 100000; /* 1.5 %, tells much */
    run(SECOND);
    assert_true(load[0].muted);
    assert_false(load[1].muted || load[2].muted || load[3].muted);
    load[0].fixed = load[1].fixed = true; /* these two cannot go: then the next */
    begin(0.03);
    calls_a_second[0] = 1e6, calls_a_second[1] = 5e5, load[0].fixed = true;
    run(SECOND);
    assert_true(!load[0].muted && load[1].muted);
}

static void regions_come_back_when_there_is_room(void **state)
{
    (void)state;
    begin(0.05);
    for (int i = 0; i < 4; i++) calls_a_second[i] = 5e6;
    run(SECOND);
    for (int i = 0; i < 4; i++) assert_true(load[i].muted);
    for (int i = 0; i < 4; i++) calls_a_second[i] = 1e5;
    run(2ull * SECOND);
    for (int i = 0; i < 4; i++) assert_false(load[i].muted);
    uint64_t before = changes;
    run(60ull * SECOND);
    assert_int_equal(changes, before);
}

/* Bursts that come back after each release: the region stays muted four times as long each time. Phases of seconds are
 * followed, at two changes a phase. */
static void bursts_do_not_make_it_oscillate(void **state)
{
    (void)state;
    for (uint64_t quiet = 1; quiet <= 64; quiet *= 2) {
        begin(0.05);
        double own_ns = 0, cost_ns = 0;
        for (int i = 0; i < 400; i++) {
            calls_a_second[0] = 3e7;
            run(quiet * 50000000);
            own_ns += own_total_ns, cost_ns += cost_total_ns;
            calls_a_second[0] = 0;
            run(quiet * 50000000);
            own_ns += own_total_ns, cost_ns += cost_total_ns;
        }
        if (changes > (quiet < 64 ? 12 + 2 * quiet * 40 / 64 : 2 * 400))
            fail_msg("bursts of %u0 ms: %u changes", (unsigned)quiet * 5, (unsigned)changes);
        assert_true(cost_ns / own_ns < 0.05);
    }
}

static void at_target_0_all_is_muted(void **state)
{
    (void)state;
    begin(0);
    for (int i = 0; i < REGIONS / 2; i++) calls_a_second[i] = 1000;
    run(SECOND);
    for (int i = 0; i < REGIONS; i++) assert_int_equal(load[i].muted, i < REGIONS / 2);
    uint64_t before = changes;
    run(60ull * SECOND);
    assert_int_equal(changes, before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(below_the_target_nothing_is_muted),
        cmocka_unit_test(settles_within_500_ms_of_a_change_of_phase),
        cmocka_unit_test(what_tells_least_for_its_cost_goes),
        cmocka_unit_test(regions_come_back_when_there_is_room),
        cmocka_unit_test(bursts_do_not_make_it_oscillate),
        cmocka_unit_test(at_target_0_all_is_muted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
