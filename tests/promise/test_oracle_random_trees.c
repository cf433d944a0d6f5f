/* SPDX-License-Identifier: MIT */
/* ctest: label=unit timeout=300 promise=P3,P4,P5,P9
 * P3, P4, P5, P9: random trees of calls that last 0 to 3 ticks, with points between them, against the oracle. So times
 * order few events. All strategies, resolutions and bin sizes take part.
 *   test_oracle_random_trees SEED [ROUNDS]   starts from that seed, to examine a failure or to run longer */
#include "tests/support/api_fixture.h"
#include "tests/support/random_numbers.h"
#include "tests/support/sanitized.h"

static uint64_t seed;

struct storm {
    struct fdr_config config;
    struct oracle_rules rules;
    uint32_t events, deepest, regions, tick, longest, still, points;
};

#define PICK(list) list[rnd(&seed, sizeof list / sizeof *list)]

/* The seed determines a round completely. */
static struct storm storm_of(uint64_t round)
{
    static const char *const strategies[] = {"whole", "first", "last", "telescope"};
    static const char *const resolutions[] = {"0", "8ns", "128ns", "1us", "10us"};
    static const uint32_t shifts[] = {0, 3, 7, 9, 13};
    static const char *const buffers[] = {"256K", "512K", "1M", "8M"};
    static const char *const bins[] = {"512", "1K", "4K", "16K", "64K"};
    static const char *const chains[] = {NULL, "depth,duration,class,epoch", "epoch", "class,duration"};
    static const char *const least[] = {NULL, NULL, NULL, "20ns", "300ns"};
    static const char *const deepest[] = {NULL, NULL, NULL, "3", "12"};
    seed = (round + 1) * 0x9E3779B97F4A7C15u;
    for (int i = 0; i < 8; i++) rnd(&seed, 2);
    uint32_t how = rnd(&seed, 5), small = rnd(&seed, 8);
    struct storm s = {.config = {.strategy = PICK(strategies), .resolution = resolutions[how], .bin = PICK(bins)}};
    s.config.buffer = small == 7 ? buffers[3] : buffers[small % 3];
    if (!strcmp(s.config.bin, "64K")) s.config.buffer = small == 7 ? buffers[3] : "2M";
    s.config.reduce = PICK(chains);
    s.config.min_duration = PICK(least);
    s.config.depth = PICK(deepest);
    s.rules.shift = shifts[how];
    s.rules.prefix = !strcmp(s.config.strategy, "first");
    s.rules.depth = s.config.depth ? (uint32_t)atoi(s.config.depth) : 0;
    s.rules.min_duration = s.config.min_duration ? (uint64_t)atoi(s.config.min_duration) : 0;
    s.events = 3000 + rnd(&seed, strcmp(s.config.buffer, "8M") ? 120000 : 400000);
    s.deepest = 1 + rnd(&seed, rnd(&seed, 4) ? 8 : 60);
    s.regions = 1 + rnd(&seed, 30);
    s.tick = 1u << shifts[how];
    s.longest = 1 + rnd(&seed, 4); /* ticks, at most */
    s.still = 1 + rnd(&seed, 6);   /* time advances with one event of so many */
    s.points = rnd(&seed, 8);      /* of 20 events */
    return s;
}

static void any_point(uint64_t t)
{
    switch (rnd(&seed, 6)) {
    case 0: both_message(&o, rnd(&seed, 2), rnd(&seed, 9), (int32_t)rnd(&seed, 5) - 2, 0, rnd(&seed, 100000), t); break;
    case 1: both_coll_begin(&o, 10 + rnd(&seed, 3), t); break;
    case 2:
        both_coll_end(&o, 10 + rnd(&seed, 3), 0, (int32_t)rnd(&seed, 3) - 1, rnd(&seed, 1000), rnd(&seed, 1000), t);
        break;
    case 3: both_metric(&o, 1 + rnd(&seed, 2), rnd(&seed, 4), t); break;
    default: both_marker(&o, 1 + rnd(&seed, 2), rnd(&seed, 1000), t); break;
    }
}

static void present(const struct storm *s)
{
    uint64_t t = 1000000;
    uint32_t depth = 0, leaning = 10;
    for (uint32_t i = 0; i < s->events; i++) {
        if (rnd(&seed, 200) == 0) leaning = 7 + rnd(&seed, 7);
        if (rnd(&seed, s->still) == 0) t += rnd(&seed, s->longest * s->tick + 1);
        if (rnd(&seed, 300) == 0) t += rnd(&seed, 50 * s->tick);
        if (rnd(&seed, 20) < s->points) any_point(t);
        else if (depth == s->deepest || (depth && rnd(&seed, 20) < leaning)) both_leave(&o, t), depth--;
        else both_enter(&o, 1 + rnd(&seed, s->regions), t), depth++;
    }
    if (rnd(&seed, 2))
        while (depth--) both_leave(&o, t += rnd(&seed, 2));
}

static const char *run(uint64_t round)
{
    struct storm s = storm_of(round);
    const char *wrong;
    begin(&s.config);
    for (int i = 0; i < 2; i++)
        fdr_marker_define(i ? "b" : "a"), fdr_metric_define(i ? "d" : "c", "", FDR_U64, FDR_METRIC_GAUGE);
    present(&s);
    struct fdr_file *f = oracle_snapshot(0, &wrong);
    if (!wrong) wrong = oracle_check(&o, &s.rules, f, fdr_location_info(f, 0)->id);
    if (wrong)
        print_message("seed %llu: buffer %s bin %s strategy %s resolution %s reduce %s min %s depth %s, %u events "
                      "to depth %u: %s\n",
                      (unsigned long long)round, s.config.buffer, s.config.bin, s.config.strategy, s.config.resolution,
                      s.config.reduce ? s.config.reduce : "-", s.config.min_duration ? s.config.min_duration : "-",
                      s.config.depth ? s.config.depth : "-", s.events, s.deepest, wrong);
    if (f) end(f);
    return wrong;
}

static uint64_t first_round = 1;
static uint32_t rounds = SANITIZED ? 40 : 150;

static void P3_P4_P5_P9_random_trees_of_many_threads(void **state)
{
    uint32_t failed = 0;
    (void)state;
    for (uint32_t i = 0; i < rounds; i++) failed += run(first_round + i) != NULL;
    oracle_free(&o);
    if (failed) print_message("%u of %u\n", failed, rounds);
    assert_int_equal(failed, 0);
}

int main(int argc, char **argv)
{
    if (argc > 1) first_round = strtoull(argv[1], NULL, 10), rounds = 1;
    if (argc > 2) rounds = (uint32_t)strtoul(argv[2], NULL, 10);
    const struct CMUnitTest tests[] = {cmocka_unit_test(P3_P4_P5_P9_random_trees_of_many_threads)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
