/* SPDX-License-Identifier: MIT */
/* ctest: label=unit timeout=120 promise=P4,P9 */
/* P4, P9: many calls lie within one tick, so times do not order them. Calls that are not stored keep their place in the
 * tick. An event inside of such a call is not shown inside of the next call. */
#include "tests/support/api_fixture.h"
#include "tests/support/random_numbers.h"
#include "tests/support/sanitized.h"

static uint64_t seed = 88172645463325252u;

/* Many events in a tick of 128 ns; half of the calls are shorter than FDR_MIN_DURATION. */
static void random_program(uint32_t deepest, uint32_t step)
{
    uint64_t t = o.count ? o.event[o.count - 1].time : 1000;
    uint32_t depth = 0;
    for (uint32_t i = 0; i < 3000; i++) {
        uint32_t what = rnd(&seed, 20);
        t += rnd(&seed, step);
        if (rnd(&seed, 15) == 0) t += rnd(&seed, 400);
        if (what < 4) both_marker(&o, 1, i, t);
        else if (depth && (what < 12 || depth == deepest)) both_leave(&o, t), depth--;
        else both_enter(&o, 1 + rnd(&seed, 5), t), depth++;
    }
    while (depth--) both_leave(&o, t += 1);
}

static void P9_short_calls_left_out(void **state)
{
    (void)state;
    static const char *const least[] = {"20ns", "50ns", "100ns"};
    static const uint64_t ns[] = {20, 50, 100};
    for (uint32_t k = 0; k < (SANITIZED ? 18 : 60); k++) {
        begin(&(struct fdr_config){.buffer = "16M", .resolution = "128ns", .min_duration = least[k % 3]});
        random_program(1 + rnd(&seed, 6), 1 + rnd(&seed, 60));
        check((struct oracle_rules){.shift = 7, .min_duration = ns[k % 3]});
    }
}

/* Reductions give back much, also the first calls of a tick. The remaining events keep their places. */
static void P9_points_when_calls_are_gone(void **state)
{
    (void)state;
    static const char *const strategy[] = {"whole", "last", "telescope"};
    for (uint32_t k = 0; k < (SANITIZED ? 6 : 12); k++) {
        begin(&(struct fdr_config){
            .buffer = "256K", .resolution = k % 2 ? "128ns" : "1us", .strategy = strategy[k % 3], .bin = "1K"});
        for (int i = 0; i < 40; i++) random_program(1 + rnd(&seed, 12), 1 + rnd(&seed, 60));
        check((struct oracle_rules){.shift = k % 2 ? 7 : 9, .buffer = 256 << 10});
    }
}

/* All events have one time, at more depths than a record could name at first. */
static void P4_one_time_for_all(void **state)
{
    (void)state;
    for (uint32_t deepest = 8; deepest <= 64; deepest += 8) {
        begin(&(struct fdr_config){.buffer = "16M"});
        uint32_t depth = 0;
        for (uint32_t i = 0; i < 4000; i++) {
            uint32_t what = rnd(&seed, 20);
            if (what < 3) both_marker(&o, 1, i, 5000);
            else if (depth && (what < 11 || depth == deepest)) both_leave(&o, 5000), depth--;
            else both_enter(&o, 1 + rnd(&seed, 5), 5000), depth++;
        }
        while (depth--) both_leave(&o, 5000);
        check((struct oracle_rules){.complete = true});
    }
}

/* More calls begin in one tick than a point's record can name, and calls around it begin in that tick, too. */
static void P9_hundreds_of_levels_in_a_tick(void **state)
{
    (void)state;
    for (uint32_t k = 0; k < (SANITIZED ? 8 : 20); k++) {
        uint64_t t = 1000000;
        begin(&(struct fdr_config){.buffer = "16M", .resolution = "65536ns"});
        for (uint32_t i = 0; i < 6000; i++) {
            uint32_t what = rnd(&seed, 40);
            t += rnd(&seed, 100) < 95 ? 0 : rnd(&seed, 300);
            if (what == 0) both_marker(&o, 1, i, t);
            else if (!o.depth || (o.depth < 200 && what <= 20 + k % 4)) both_enter(&o, 1 + rnd(&seed, 16), t);
            else both_leave(&o, t);
        }
        check((struct oracle_rules){.shift = 16, .complete = true});
    }
}

static void until(uint64_t ns)
{
    struct timespec a, b;
    clock_gettime(CLOCK_MONOTONIC, &a);
    do clock_gettime(CLOCK_MONOTONIC, &b);
    while ((uint64_t)(b.tv_sec - a.tv_sec) * 1000000000u + (uint64_t)b.tv_nsec - (uint64_t)a.tv_nsec < ns);
}

/* The same with the real clock and ticks of half a second: all events share one. */
static void P9_short_calls_left_out_live(void **state)
{
    (void)state;
    begin(&(struct fdr_config){.buffer = "16M", .resolution = "500ms", .min_duration = "100us"});
    for (uint64_t round = 0; round < 40; round++) {
        fdr_enter(1);
        for (uint64_t i = 0; i < 4; i++) fdr_enter(2), fdr_marker(1, 10 * round), fdr_leave(2);
        fdr_enter(3), fdr_marker(1, 10 * round + 1), until(200000), fdr_leave(3);
        fdr_leave(1);
    }
    struct fdr_select all = {0};
    struct fdr_file *f = take();
    struct fdr_iter *it = fdr_iter_open(f, &all);
    struct fdr_read_event e;
    uint32_t open = 0;
    uint64_t markers = 0, kept = 0;
    while (fdr_iter_next(it, &e)) {
        assert_false(e.repaired);
        if (e.kind == FDR_ENTER) open = e.id, kept += e.id == 3;
        if (e.kind == FDR_LEAVE) open = e.id == 3 ? 1 : 0;
        if (e.kind != FDR_MARKER) continue;
        markers++;
        /* region 2 is stored only if it was delayed beyond the minimum */
        assert_int_equal(open == 3, e.field[0] % 10 == 1);
    }
    fdr_iter_close(it);
    assert_int_equal(markers, 200);
    assert_int_equal(kept, 40);
    end(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(P9_short_calls_left_out),      cmocka_unit_test(P9_points_when_calls_are_gone),
        cmocka_unit_test(P4_one_time_for_all),          cmocka_unit_test(P9_hundreds_of_levels_in_a_tick),
        cmocka_unit_test(P9_short_calls_left_out_live),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
