/* SPDX-License-Identifier: MIT */
/* ctest: label=unit timeout=600 promise=P3,P4,P9
 * P3, P4, P9: the reader yields exactly the presented events: kind, id, depth, quantised time and order. */
#include <fdr/reader.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "format/arena/arena.h"
#include "tests/support/arena_builder.c"
#include "tests/support/reader_truth.h"
#include "tests/support/random_numbers.h"

static uint64_t seed = 88172645463325252u;

/* A random program of calls and points. Most of its events have the time of the event before. */
static void random_program(struct builder *b, struct truth *t, uint32_t location, uint32_t events, uint32_t depth_max,
                           uint32_t most_step, uint32_t shift)
{
    uint64_t tick = 1000000 + rnd(&seed, 1000);
    for (uint32_t i = 0; i < events; i++) {
        uint32_t what = rnd(&seed, 20), depth = builder_depth(b, location);
        if (rnd(&seed, 3) == 0) tick += rnd(&seed, rnd(&seed, 50) == 0 ? most_step * 200 : most_step);
        if (what < 2) {
            uint64_t value[4] = {rnd(&seed, 1000), rnd(&seed, 5), rnd(&seed, 7), rnd(&seed, 100000)};
            uint32_t class_ = what ? FDRI_ARENA_CLASS_METRIC : FDRI_ARENA_CLASS_MESSAGE, id = 1 + rnd(&seed, 2);
            builder_point(b, location, class_, id, tick, value, what ? 1 : 4);
            truth_point(t, location, class_, id, depth, tick, value, what ? 1 : 4, shift);
        } else if (depth == 0 || (depth < depth_max && what < 11)) {
            uint32_t region = 1 + rnd(&seed, 20);
            builder_enter(b, location, region, tick);
            truth_enter(t, location, region, depth + 1, tick, shift);
        } else {
            builder_leave(b, location, tick);
            truth_leave(t, location, depth, tick, shift);
        }
    }
}

static void P4_order_of_random_programs(void **state)
{
    (void)state;
    for (uint32_t round = 0; round < 300; round++) {
        struct builder_options o = {.shift = (uint32_t[]){0, 0, 3, 7, 7, 9}[rnd(&seed, 6)],
                                    .bin_bytes = 512u << rnd(&seed, 4),
                                    .edge = {1 + rnd(&seed, 8), 20, 200}};
        struct builder *b = builder_new(&o);
        struct truth t = {.edge = {0}};
        memcpy(t.edge, b->set.edge, sizeof t.edge);
        uint32_t l = builder_location(b, "main");
        random_program(b, &t, l, 20 + rnd(&seed, 4000), 1 + rnd(&seed, 20), 1 + rnd(&seed, 60), o.shift);
        truth_compare(&t, b, NULL);
        truth_free(&t);
        builder_free(b);
    }
}

static void P4_order_of_many_locations(void **state)
{
    (void)state;
    for (uint32_t round = 0; round < 20; round++) {
        struct builder_options o = {.shift = rnd(&seed, 8)};
        struct builder *b = builder_new(&o);
        struct truth t = {.edge = {0}};
        memcpy(t.edge, b->set.edge, sizeof t.edge);
        for (uint32_t i = 0; i < 9; i++) {
            uint32_t l = builder_location(b, "worker");
            random_program(b, &t, l, 1000, 8, 40, o.shift);
        }
        truth_compare(&t, b, NULL);
        truth_free(&t);
        builder_free(b);
    }
}

/* After reductions the reader shows exactly the calls that the closure rule keeps, in order and nested. */
static void P4_order_after_reductions(void **state)
{
    (void)state;
    for (uint32_t round = 0; round < 100; round++) {
        struct builder_options o = {.shift = rnd(&seed, 8), .bin_bytes = 512, .edge = {4, 40, 400}};
        struct builder *b = builder_new(&o);
        struct truth t = {.edge = {0}};
        memcpy(t.edge, b->set.edge, sizeof t.edge);
        uint32_t l = builder_location(b, "main");
        random_program(b, &t, l, 6000, 6, 30, o.shift);
        builder_reduce(b, l, 1 + rnd(&seed, 40));
        truth_reduce(&t, b, l);
        truth_compare_how(&t, b, NULL, true);
        truth_free(&t);
        builder_free(b);
    }
}

static void P3_ledger_is_exact(void **state)
{
    (void)state;
    for (uint32_t round = 0; round < 50; round++) {
        struct builder_options o = {.shift = rnd(&seed, 8), .bin_bytes = 512, .edge = {4, 40, 400}};
        struct builder *b = builder_new(&o);
        struct truth t = {.edge = {0}};
        memcpy(t.edge, b->set.edge, sizeof t.edge);
        uint32_t l = builder_location(b, "main");
        random_program(b, &t, l, 4000, 20, 30, o.shift);
        builder_reduce(b, l, rnd(&seed, 40));
        truth_ledger(b);
        truth_free(&t);
        builder_free(b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(P4_order_of_random_programs),
        cmocka_unit_test(P4_order_of_many_locations),
        cmocka_unit_test(P4_order_after_reductions),
        cmocka_unit_test(P3_ledger_is_exact),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
