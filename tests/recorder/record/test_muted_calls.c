/* SPDX-License-Identifier: MIT */
/* ctest: label=signals,threads promise=P3,P5 timeout=120
 * P3, P5: regions are muted and let back at any moment. It may be while calls of them are open, in recursion, in
 * handlers, beside calls without leaves, or on many threads. Every call is counted, no leave is stray, and one of 256
 * has a time. */
#include <fdr/fdr.h>
#include <fdr/reader.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "recorder/names/names.h"
#include "recorder/names/region_rules.h"
#include "recorder/record/record.h"
#include "tests/support/api_fixture.h"
#include "tests/support/signal_timer.h"
#include "tests/support/random_numbers.h"
#include "tests/support/sanitized.h"

enum { REGIONS = 60, FUNCTIONS = 4, ALL = REGIONS + FUNCTIONS, DEPTH_MOST = 30, STEPS = SANITIZED ? 30000 : 300000 };
static const void *const function[FUNCTIONS] = {(const void *)&a64l, (const void *)&l64a, (const void *)&ecvt,
                                                (const void *)&fcvt};
static fdr_region region[ALL];
static uint64_t entered[ALL]; /* what the program did */

static void enter(uint32_t n)
{
    __atomic_fetch_add(&entered[n], 1, __ATOMIC_RELAXED);
    if (n < REGIONS) fdr_enter(region[n]);
    else fdr_enter_address(function[n - REGIONS]);
}

static void leave(uint32_t n)
{
    if (n < REGIONS) fdr_leave(region[n]);
    else fdr_leave_address(function[n - REGIONS]);
}

static void start(const char *depth)
{
    char name[16];
    begin(&(struct fdr_config){.buffer = "16M", .timer = "tsc", .depth = depth});
    assert_true(fdri_names_mutes_start(true));
    for (uint32_t n = 0; n < REGIONS; n++) {
        snprintf(name, sizeof name, "r%u", n);
        region[n] = fdr_region_define(name, NULL, 0);
    }
    for (uint32_t n = REGIONS; n < ALL; n++) region[n] = fdr_region_define_address(function[n - REGIONS]);
    memset(entered, 0, sizeof entered);
}

static void change_one(uint64_t *seed)
{
    fdri_names_mute(region[rnd(seed, ALL)], rnd(seed, 2));
    if (rnd(seed, 2)) fdri_names_mutes_changed(); /* else threads may see it before they are told */
}

/* A random walk. changes: regions are muted and let back on the way. jumps: several calls end with the leave of an
 * outer one. */
static uint64_t walk(uint64_t seed, uint32_t steps, bool changes, bool jumps)
{
    uint32_t open[DEPTH_MOST], depth = 0;
    uint64_t jumped = 0;
    for (uint32_t i = 0; i < steps; i++) {
        if (changes && !rnd(&seed, 50)) change_one(&seed);
        if (depth < DEPTH_MOST && (!depth || rnd(&seed, 2))) {
            open[depth] = depth && !rnd(&seed, 4) ? open[rnd(&seed, depth)] : rnd(&seed, ALL); /* recursion, too */
            enter(open[depth++]);
        } else if (jumps && depth > 2 && !rnd(&seed, 16)) {
            depth -= 1 + rnd(&seed, 2);
            jumped++;
        } else if (depth) leave(open[--depth]);
    }
    while (depth) leave(open[--depth]);
    return jumped;
}

static uint64_t calls_of(struct fdr_file *f, fdr_region id, uint64_t *untimed)
{
    const struct fdr_total *rows;
    uint64_t calls = 0;
    *untimed = 0;
    for (size_t n = fdr_totals(f, &rows), i = 0; i < n; i++) {
        if (rows[i].class_ != FDR_IN_REGION || rows[i].rest || rows[i].id != id) continue;
        calls += rows[i].calls;
        *untimed += rows[i].untimed;
    }
    return calls;
}

/* exact: no leave was missing. others: calls of other regions. */
static void compare(bool exact, uint64_t others)
{
    struct fdr_file *f = take();
    uint64_t all = 0;
    for (uint32_t n = 0; n < ALL; n++) {
        uint64_t untimed, calls = calls_of(f, region[n], &untimed);
        if (calls + untimed != entered[n])
            fail_msg("%u: %llu enters, but %llu calls with a time and %llu without", n, (unsigned long long)entered[n],
                     (unsigned long long)calls, (unsigned long long)untimed);
        all += entered[n];
    }
    assert_int_equal(balance(f), all + others);
    for (size_t i = 0; i < fdr_location_count(f); i++) {
        assert_int_equal(fdr_location_info(f, i)->open_count, 0);
        if (!exact) continue; /* a missing leave may end an outer call of its region early, which then has none */
        assert_int_equal(fdr_location_info(f, i)->unbalanced + fdr_location_info(f, i)->stray_leaves, 0);
    }
    end(f);
}

static void P3_P5_muted_and_let_back_at_any_moment(void **state)
{
    static const char *const depths[] = {NULL, "9"};
    (void)state;
    for (int i = 0; i < 2; i++) {
        start(depths[i]);
        walk(88172645463325252u, STEPS, true, false);
        compare(true, 0);
    }
}

static void P3_P5_beside_jumps(void **state)
{
    (void)state;
    start(NULL);
    fdr_region all = fdr_region_define("all", NULL, 0); /* its leave ends the calls whose leaves are missing */
    fdr_enter(all);
    assert_true(walk(88172645463325252u, STEPS, true, true) > 100);
    fdr_leave(all);
    compare(false, 1);
}

/* Deep recursion of one region that is muted while it is open: each call gets a frame, none a time. */
static void P3_P5_muted_within_recursion(void **state)
{
    enum { CALLS = 100000, DEEP = 20 };
    (void)state;
    start(NULL);
    for (int i = 0; i < DEEP; i++) enter(0);
    fdri_names_mute(region[0], true);
    fdri_names_mutes_changed();
    for (uint32_t i = 0; i < CALLS; i++) enter(0), leave(0);
    enter(1), leave(1);
    for (int i = 0; i < DEEP; i++) leave(0);
    struct fdr_file *f = take();
    uint64_t untimed, calls = calls_of(f, region[0], &untimed);
    assert_true(calls >= DEEP + CALLS / FDRI_NAMES_MUTE_PERIOD - 1);
    assert_true(calls <= DEEP + CALLS / FDRI_NAMES_MUTE_PERIOD + 200); /* some before the change was seen */
    fdr_file_close(f);
    compare(true, 0);
}

/* Of 256 calls one has a time on average, also on the paths of ids and of addresses. */
static void P5_one_of_256_calls_has_a_time(void **state)
{
    enum { CALLS = 256 * 100 };
    const uint32_t of[] = {0, REGIONS};
    (void)state;
    start(NULL);
    for (int i = 0; i < 2; i++) fdri_names_mute(region[of[i]], true);
    fdri_names_mutes_changed();
    for (int i = 0; i < 2; i++)
        for (uint32_t k = 0; k < CALLS; k++) enter(of[i]), leave(of[i]);
    struct fdr_file *f = take();
    for (int i = 0; i < 2; i++) {
        uint64_t untimed, calls = calls_of(f, region[of[i]], &untimed);
        assert_in_range(calls, 70, 130);
    }
    fdr_file_close(f);
    compare(true, 0);
}

/* A program that jumps out of calls, over the leaves of regions around them. The outer region is muted, its leave must
 * still end what a jump has left. */
static void P3_jumps_over_muted_regions(void **state)
{
    enum { ROUNDS = 5000 };
    (void)state;
    start(NULL);
    for (int round = 0; round < ROUNDS; round++) {
        if (round == 10) fdri_names_mute(region[0], true), fdri_names_mutes_changed();
        enter(0);
        enter(1), enter(2); /* jumped over: no leave */
        leave(0);
        enter(3), leave(3);
    }
    assert_true(fdri_record_self.loc->depth == 0);
    compare(false, 0);
}

/* A region is let back, but the thread has not been told. The call that would have a time is recorded, and its leave
 * ends it. */
static void P3_let_back_without_notice(void **state)
{
    (void)state;
    start(NULL);
    fdri_names_mute(region[0], true);
    fdri_names_mutes_changed();
    for (int i = 0; i < 3 * FDRI_NAMES_MUTE_PERIOD; i++) enter(0), leave(0);
    fdri_names_mute(region[0], false);
    enter(1);
    for (int i = 0; i < 3 * FDRI_NAMES_MUTE_PERIOD; i++) enter(0), leave(0);
    leave(1);
    compare(true, 0);
}

static volatile sig_atomic_t handled;
static void on_alarm(int number)
{
    (void)number;
    uint32_t outer = (uint32_t)handled % REGIONS, inner = (uint32_t)handled * 7 % ALL;
    enter(outer), enter(inner), enter(outer);
    leave(outer), leave(inner), leave(outer);
    handled++;
}

static void P3_P5_in_handlers(void **state)
{
    (void)state;
#ifdef __SANITIZE_THREAD__
    skip(); /* it runs handlers inside of atomic operations, where the kernel would not */
#endif
    start(NULL);
    handled = 0;
    timer_t timer = signals_begin(on_alarm);
    for (uint64_t i = 1; handled < 300; i++) walk(i * 7919 + 88172645463325252u, 2000, true, false);
    signals_end(timer);
    compare(true, 0);
}

static void *walks(void *seed)
{
    walk((uint64_t)(uintptr_t)seed * 7919 + 88172645463325252u, STEPS / 4, false, false);
    return NULL;
}

static void P3_P5_on_many_threads(void **state)
{
    enum { THREADS = 6, ROUNDS = 3 };
    uint64_t seed = 88172645463325252u;
    pthread_t thread[THREADS];
    (void)state;
    start(NULL);
    for (int round = 0; round < ROUNDS; round++) {
        for (uintptr_t i = 0; i < THREADS; i++) pthread_create(&thread[i], NULL, walks, (void *)(i + 1));
        for (int i = 0; i < 2000; i++) change_one(&seed); /* by this thread alone, as by fdr's own */
        for (int i = 0; i < THREADS; i++) pthread_join(thread[i], NULL);
    }
    compare(true, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(P3_P5_muted_and_let_back_at_any_moment),
        cmocka_unit_test(P3_P5_beside_jumps),
        cmocka_unit_test(P3_P5_muted_within_recursion),
        cmocka_unit_test(P5_one_of_256_calls_has_a_time),
        cmocka_unit_test(P3_let_back_without_notice),
        cmocka_unit_test(P3_jumps_over_muted_regions),
        cmocka_unit_test(P3_P5_in_handlers),
        cmocka_unit_test(P3_P5_on_many_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
