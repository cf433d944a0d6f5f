/* SPDX-License-Identifier: MIT */
/* ctest: label=unit timeout=120 promise=P2 wrap=fdri_strategy_reduce
 * P2: accounts leave hardly any room for events, so events are lost. The search for memory to give back must stay
 * bounded. If a block is refused, the next event asks again, which is one step. The test counts the steps for each
 * event. */
#include <fdr/fdr.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "format/arena/arena.h"
#include "recorder/thread/thread_state.h"
#include "tests/support/api_fixture.h"
#include "tests/support/random_numbers.h"

enum { DEEPEST = 100, REGIONS = 64, EVENTS = 100000, STEPS_AN_EVENT = 1 };
static fdr_region region[REGIONS];
static uint64_t steps;

uint32_t __real_fdri_strategy_reduce(struct fdri_thread *t, struct fdri_arena_part *p, uint32_t size_log2,
                                     uint32_t *got);
uint32_t __wrap_fdri_strategy_reduce(struct fdri_thread *t, struct fdri_arena_part *p, uint32_t size_log2,
                                     uint32_t *got);
uint32_t __wrap_fdri_strategy_reduce(struct fdri_thread *t, struct fdri_arena_part *p, uint32_t size_log2,
                                     uint32_t *got)
{
    steps++;
    return __real_fdri_strategy_reduce(t, p, size_log2, got);
}

static void P2_looking_for_room_is_bounded(void **state)
{
    static const struct fdr_field field = {"a", FDR_U64, 0};
    uint64_t seed = 7, now = 1000;
    uint32_t depth = 0;
    fdr_region open[DEEPEST];
    char name[16];
    (void)state;
    begin(&(struct fdr_config){.strategy = "telescope", .buffer = "320K"});
    for (int i = 0; i < REGIONS; i++) {
        snprintf(name, sizeof name, "r%d", i);
        region[i] = fdr_region_define(name, NULL, 0);
    }
    fdr_metric_id metric = fdr_metric_define("m", "", FDR_U64, FDR_METRIC_GAUGE);
    fdr_marker_id marker = fdr_marker_define("k");
    fdr_event_type type = fdr_event_define("e", &field, 1);
    for (uint64_t i = 0; i < EVENTS; i++) {
        uint32_t way = rnd(&seed, 20), down = i / 2000 % 2 ? 19 : 21;
        now += 1 + rnd(&seed, 300);
        if (way == 0) fdr_metric_u64_at(metric, i, now);
        else if (way == 1) fdr_marker_at(marker, i, now);
        else if (way == 2) fdr_event_at(type, &i, now);
        else if (way < 8) fdr_message_send_at(1, 2, 0, i, now);
        else if (depth == DEEPEST || (depth && rnd(&seed, 40) >= down)) fdr_leave_at(open[--depth], now);
        else fdr_enter_at(open[depth++] = region[rnd(&seed, REGIONS)], now);
    }
    struct fdr_usage u = fdr_usage();
    print_message("%llu of %llu events lost, %llu steps of %u\n", (unsigned long long)u.lost,
                  (unsigned long long)u.presented, (unsigned long long)steps, EVENTS);
    assert_true(u.lost > EVENTS / 100);
    assert_true(steps < (uint64_t)STEPS_AN_EVENT * EVENTS);
    fdr_finalize();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(P2_looking_for_room_is_bounded)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
