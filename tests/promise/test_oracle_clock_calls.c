/* SPDX-License-Identifier: MIT */
/* ctest: label=unit timeout=300 promise=P3,P4,P5,P9
 * P3, P4, P5, P9: calls timed by the processor's counter, against the oracle. They take the fast path and each way out
 * of it. */
#include <fdr/fdr.h>
#include <fdr/reader.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "recorder/recording.h"
#include "tests/support/oracle_clock.h"
#include "tests/support/random_numbers.h"
#include "tests/support/sanitized.h"

enum { ROUNDS = SANITIZED ? 8 : 24 };
static uint64_t seed;

struct storm {
    struct fdr_config config;
    struct oracle_rules rules;
    uint32_t events, deepest, regions;
    uint32_t points; /* of 20 events */
    uint32_t spin;   /* turns of a loop between most events, at most */
};
#define PICK(list) list[rnd(&seed, sizeof list / sizeof *list)]

static struct storm storm_of(uint64_t round)
{
    static const char *const strategies[] = {"whole", "first", "last", "telescope", "telescope", "last"};
    static const uint32_t shifts[] = {0, 3, 7};
    static const char *const buffers[] = {"192K", "256K", "512K", "1M", "2044K", "2M", "2052K", "5M"};
    static const char *const bins[] = {"512", "1K", "1K", "4K", "4K", "16K"};
    static const char *const chains[] = {NULL, "depth,duration,class,epoch", "epoch", "class,duration"};
    static const char *const deepest[] = {NULL, NULL, NULL, "3", "12"};
    seed = (round + 1) * 0x9E3779B97F4A7C15u;
    for (int i = 0; i < 8; i++) rnd(&seed, 2);
    struct storm s = {.config = {.strategy = PICK(strategies), .bin = PICK(bins), .timer = "tsc"}};
    s.config.buffer = strcmp(s.config.bin, "16K") ? PICK(buffers) : "2052K";
    s.config.arena = rnd(&seed, 2) ? "mapped" : "anonymous";
    s.config.reduce = PICK(chains);
    s.config.depth = PICK(deepest);
    s.rules.shift = PICK(shifts);
    s.rules.prefix = !strcmp(s.config.strategy, "first");
    s.rules.depth = s.config.depth ? (uint32_t)atoi(s.config.depth) : 0;
    s.events = 3000 + rnd(&seed, rnd(&seed, 3) ? 400000 : 1500000);
    s.deepest = 1 + rnd(&seed, rnd(&seed, 4) ? 8 : 60);
    s.regions = 1 + rnd(&seed, 30);
    s.points = rnd(&seed, 3) ? 0 : rnd(&seed, 8);
    s.spin = 1 + rnd(&seed, 400);
    return s;
}

static void present(const struct storm *s)
{
    uint32_t depth = 0, leaning = 10;
    for (uint32_t i = 0; i < s->events; i++) {
        if (rnd(&seed, 200) == 0) leaning = 7 + rnd(&seed, 7);
        if (!rnd(&seed, 8))
            for (volatile uint32_t k = rnd(&seed, rnd(&seed, 500) ? s->spin : 100000); k; k--) continue;
        if (rnd(&seed, 20) < s->points) {
            uint64_t v = rnd(&seed, 1000);
            fdr_marker(1 + i % 2, v);
            oracle_point(&o, FDR_MARKER, 1 + i % 2, now(), 1, &v);
        } else if (depth == s->deepest || (depth && rnd(&seed, 20) < leaning)) {
            fdr_leave(o.event[o.open[o.depth - 1]].id);
            oracle_leave(&o, now());
            depth--;
        } else {
            uint32_t r = 1 + rnd(&seed, s->regions);
            fdr_enter(r);
            oracle_enter(&o, r, now());
            depth++;
        }
    }
}

static bool right(uint64_t round)
{
    struct storm s = storm_of(round);
    begin(&s.config);
    if (!fdri_life_recording.ticks) skip(); /* the machine lacks a usable counter, and fdr said so */
    ticks_are_ns(s.rules.shift);
    for (int i = 0; i < 2; i++) fdr_marker_define(i ? "b" : "a");
    present(&s);
    const char *wrong;
    struct fdr_file *f = oracle_snapshot(0, &wrong);
    if (!wrong) wrong = oracle_check(&o, &s.rules, f, fdr_location_info(f, 0)->id);
    if (wrong)
        print_message("storm %llu (buffer %s, bin %s, strategy %s, shift %u, reduce %s, depth %s, %u events): %s\n",
                      (unsigned long long)round, s.config.buffer, s.config.bin, s.config.strategy, s.rules.shift,
                      s.config.reduce ? s.config.reduce : "-", s.config.depth ? s.config.depth : "-", s.events, wrong);
    if (f) end(f);
    return !wrong;
}

static uint64_t first = 1, rounds = ROUNDS;
static void P3_P4_P5_P9_calls_timed_by_the_clock(void **state)
{
    (void)state;
    uint64_t wrong = 0;
    for (uint64_t i = 0; i < rounds; i++) wrong += !right(first + i);
    oracle_free(&o);
    assert_int_equal(wrong, 0);
}

/* test_oracle_clock_calls [FIRST [ROUNDS]]: runs other random programs than the default ones. */
int main(int argc, char **argv)
{
    if (argc > 1) first = strtoull(argv[1], NULL, 10), rounds = 1;
    if (argc > 2) rounds = strtoull(argv[2], NULL, 10);
    const struct CMUnitTest tests[] = {cmocka_unit_test(P3_P4_P5_P9_calls_timed_by_the_clock)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
