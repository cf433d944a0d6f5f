/* SPDX-License-Identifier: MIT */
/* ctest: label=unit timeout=120 promise=P9
 * P9: strategy `whole`. If calls of some depth and band are no longer stored, their possible callees are not stored
 * either. This includes depths and durations that come later. Requests for small pieces leave rests of bins, which
 * must not be used for such calls. */
#include <fdr/fdr.h>
#include <fdr/reader.h>
#include <stddef.h>
#include <stdint.h>

#include "format/arena/arena.h"
#include "recorder/thread/thread_state.h"
#include "tests/support/api_fixture.h"
#include "tests/support/random_numbers.h"

enum { REGIONS = 16, DEEPEST = 100, EVENTS = 112014, SHIFT = 12 };
static fdr_region region[REGIONS];
static fdr_marker_id mark;

/* Most events take no time. */
static void present(uint64_t seed)
{
    uint64_t now = 1000000;
    for (uint32_t i = 0; i < EVENTS; i++) {
        uint32_t what = rnd(&seed, 40);
        now += rnd(&seed, 100) < 80 ? 0 : rnd(&seed, 40) == 0 ? rnd(&seed, 20000) : rnd(&seed, 300);
        if (what == 0) both_marker(&o, mark, i, now);
        else if (o.depth < 1 || (o.depth < DEEPEST && what <= 20)) both_enter(&o, region[rnd(&seed, REGIONS)], now);
        else both_leave(&o, now);
    }
}

/* Where a gate is closed for one duration, the gates of all possible callees are closed, too. */
static void gates_are_closed_below(void)
{
    const uint32_t *gate = fdri_record_self.loc->gate_depth;
    for (uint32_t band = 1; band < FDRI_ARENA_BANDS; band++)
        if (gate[band]) assert_in_range(gate[band - 1], 1, gate[band] + 1);
}

static void callees_are_not_stored_either(void **state)
{
    (void)state;
    static const uint64_t seeds[] = {13688215241759909760u, 1, 2, 3};
    uint32_t closed = 0;
    for (size_t i = 0; i < sizeof seeds / sizeof *seeds; i++) {
        begin(&(struct fdr_config){.strategy = "whole", .buffer = "320K", .bin = "16K", .resolution = "4096ns"});
        for (int k = 0; k < REGIONS; k++)
            region[k] = fdr_region_define((const char[]){(char)('a' + k), 0}, "gates.c", 1);
        mark = fdr_marker_define("mark");
        present(seeds[i]);
        gates_are_closed_below();
        closed += fdri_record_self.loc->gate_depth[FDRI_ARENA_BANDS - 1] != 0;
        const char *wrong = NULL;
        struct fdr_file *f = oracle_snapshot(0, &wrong);
        struct oracle_rules rules = {.shift = SHIFT};
        if (!wrong) wrong = oracle_check(&o, &rules, f, fdr_location_info(f, 0)->id);
        if (wrong) fail_msg("seed %zu: %s", i, wrong);
        end(f);
    }
    assert_true(closed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(callees_are_not_stored_either)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
