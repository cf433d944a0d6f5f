/* SPDX-License-Identifier: MIT */
/* ctest: label=unit timeout=120 promise=P3,P9
 * P3, P9: calls deeper than the shadow stack has levels, all within one function, whose leaves longjmp or
 * exceptions skip. Every call that has a level must be shown with its own times. No ended call may stay open. */
#include <fdr/fdr.h>
#include <fdr/reader.h>
#include <stddef.h>
#include <stdint.h>

#include "format/arena/arena.h"
#include "tests/support/api_fixture.h"
#include "tests/support/random_numbers.h"

enum { ROUNDS = 400, HELD_REGIONS = 7, OTHERS = 8, NOBODY = 100 };

static uint64_t seed, now, strays;

/* Depth of the newest open call of the region; 0: none is open. */
static uint32_t newest_of(uint32_t region)
{
    for (uint32_t d = o.depth; d; d--)
        if (o.event[o.open[d - 1]].id == region) return d;
    return 0;
}

/* As on a program's stack: all calls inside of the newest call of the region end with it. */
static void leave(uint32_t region)
{
    now += 1 + rnd(&seed, 50);
    uint32_t depth = newest_of(region);
    fdr_leave_at(region, now);
    strays += !depth;
    while (depth && o.depth >= depth) oracle_leave(&o, now);
}

static void enter(uint32_t region) { both_enter(&o, region, now += 1 + rnd(&seed, 50)); }

static uint32_t region_at(uint32_t depth, uint32_t others_from)
{
    return depth < others_from ? 1 + rnd(&seed, HELD_REGIONS) : 1 + HELD_REGIONS + rnd(&seed, OTHERS);
}

static void begin_deep(uint64_t with)
{
    begin(&(struct fdr_config){.buffer = "64M"});
    seed = with * 88172645463325252u;
    now = 1000;
    strays = 0;
}

static void check_all(void)
{
    struct fdr_file *f = take();
    assert_int_equal(fdr_location_info(f, 0)->stray_leaves, strays);
    assert_int_equal(fdr_location_info(f, 0)->open_count, o.depth - o.refused);
    fdr_file_close(f);
    check((struct oracle_rules){0});
}

/* Goes up and down around the deepest level, up to `above` calls beyond it; one leave in `skips` skips some calls.
 * Calls from depth others_from on use other regions than the calls around them. */
static void walk(uint32_t above, uint32_t skips, uint32_t others_from)
{
    while (o.depth < FDRI_ARENA_LEVELS_MAX) enter(region_at(o.depth, others_from));
    for (int i = 0; i < 300; i++) {
        uint32_t up = o.depth < FDRI_ARENA_LEVELS_MAX ? 9 : 5;
        if (o.depth < FDRI_ARENA_LEVELS_MAX + above && rnd(&seed, 10) < up) enter(region_at(o.depth, others_from));
        else if (rnd(&seed, skips)) leave(o.event[o.open[o.depth - 1]].id);
        else leave(o.event[o.open[o.depth - 1 - rnd(&seed, 6)]].id);
    }
}

/* The recorder knows the regions of up to 24 calls beyond the last level. Leaves without an open call come, too. */
static void P9_the_outermost_are_known_by_name(void **state)
{
    (void)state;
    for (uint64_t with = 1; with <= 3; with++) {
        begin_deep(with);
        for (int round = 0; round < ROUNDS / 40; round++) {
            walk(24, 4, UINT32_MAX);
            leave(NOBODY);
        }
        check_all();
    }
}

/* Any number of calls beyond the last level. A leave of a call that has a level is not taken for one of theirs,
 * whatever was skipped. */
static void P9_those_beyond_are_told_from_what_is_held(void **state)
{
    (void)state;
    for (uint64_t with = 1; with <= 3; with++) {
        begin_deep(with);
        for (int round = 0; round < ROUNDS / 40; round++) {
            walk(400, 20, FDRI_ARENA_LEVELS_MAX);
            while (o.depth < FDRI_ARENA_LEVELS_MAX + 100 + rnd(&seed, 2900))
                enter(region_at(o.depth, FDRI_ARENA_LEVELS_MAX));
            leave(o.event[o.open[FDRI_ARENA_LEVELS_MAX - 1 - rnd(&seed, 20)]].id);
            assert_true(o.depth < FDRI_ARENA_LEVELS_MAX);
        }
        check_all();
    }
}

/* More calls of one region beyond the last level than fdr can count. Their leaves must still match, one by one. */
static void P3_seventy_thousand_of_one_region(void **state)
{
    (void)state;
    begin(&(struct fdr_config){.buffer = "16M"});
    for (int round = 0; round < 2; round++) {
        for (uint32_t d = 0; d < FDRI_ARENA_LEVELS_MAX + 70000; d++) fdr_enter_at(1, now += 1);
        for (uint32_t d = 0; d < FDRI_ARENA_LEVELS_MAX + 70000; d++) fdr_leave_at(1, now += 1);
    }
    struct fdr_file *f = take();
    assert_int_equal(fdr_location_info(f, 0)->stray_leaves, 0);
    assert_int_equal(fdr_location_info(f, 0)->unbalanced, 0);
    assert_int_equal(fdr_location_info(f, 0)->open_count, 0);
    assert_int_equal(fdr_location_info(f, 0)->levels_refused, 2 * 70000);
    end(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(P9_the_outermost_are_known_by_name),
        cmocka_unit_test(P9_those_beyond_are_told_from_what_is_held),
        cmocka_unit_test(P3_seventy_thousand_of_one_region),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
