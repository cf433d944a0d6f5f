/* SPDX-License-Identifier: MIT */
/* ctest: label=unit timeout=60 promise=P1
 * P1: strategy `telescope` after some 10^9 epochs. Each tier has the greatest number of epochs, so none merges by
 * age, and the table of epochs is full. New epochs must still begin. The test fills the table by hand. */
#include <fdr/fdr.h>
#include <fdr/reader.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "fdr/fdr.h"
#include "format/arena/arena.h"
#include "policies/policies.h"
#include "recorder/strategy/reduce.h"
#include "recorder/thread/thread_state.h"

enum { MORE_EPOCHS = 100 };

static uint64_t now = 1000;
static fdr_region region;

static void record(int calls)
{
    for (int i = 0; i < calls; i++) {
        fdr_enter_at(region, now += 30 + i % 7);
        fdr_leave_at(region, now += 50 + i % 1013);
    }
}

/* One epoch of the highest tier that merges, and two of each lower tier: a bijective number with the digits 1 and 2. */
static void fill_table(struct fdri_arena_epochs *e)
{
    uint32_t closed = FDRI_ARENA_EPOCHS_MAX - 1;
    uint64_t until = e->epoch[e->count - 1].from_tick, step = (until - e->epoch[0].from_tick) / FDRI_ARENA_EPOCHS_MAX;
    struct fdri_arena_epoch last = e->epoch[e->count - 1];
    assert_true(step > 0);
    for (uint32_t i = 0; i < closed; i++)
        e->epoch[i] = (struct fdri_arena_epoch){.from_tick = e->epoch[0].from_tick + i * step,
                                                .tier = (closed - i) / FDRI_POLICIES_EPOCHS_A_TIER,
                                                .number = last.number - closed + i,
                                                .merged_epochs = 1};
    e->epoch[closed] = last;
    e->count = FDRI_ARENA_EPOCHS_MAX;
    e->merge_pending = 0;
}

static void the_table_is_full(void **state)
{
    (void)state;
    struct fdr_config c = {.size = sizeof c, .ignore_environment = 1, .buffer = "1M", .finalize = "none", .crash = "0"};
    assert_int_equal(fdr_init(&c), 0);
    region = fdr_region_define("work", NULL, 0);
    while (!fdri_record_self.loc || !fdri_strategy_epochs(&fdri_record_self) ||
           fdri_strategy_epochs(&fdri_record_self)->epoch[0].tier < 4 ||
           fdri_strategy_epochs(&fdri_record_self)->merge_pending)
        record(1000);
    struct fdri_arena_epochs *e = fdri_strategy_epochs(&fdri_record_self);
    fill_table(e);
    uint32_t tier[FDRI_ARENA_EPOCHS_MAX];
    for (uint32_t i = 0; i + 1 < e->count; i++) tier[i] = e->epoch[i].tier;
    /* else the test proves nothing */
    assert_int_equal(fdri_policies_merge(tier, e->count - 1, FDRI_ARENA_EPOCHS_MAX), e->count - 1);
    uint32_t before = fdri_record_self.loc->epoch, rounds = 0;
    while (fdri_record_self.loc->epoch - before < MORE_EPOCHS && rounds++ < 1000) {
        record(1000);
        assert_true(e->count <= FDRI_ARENA_EPOCHS_MAX && fdri_strategy_epoch_tiers(e) <= FDRI_POLICIES_TIERS);
        for (uint32_t i = 0; i + 1 < e->count; i++) {
            assert_true(e->epoch[i].from_tick < e->epoch[i + 1].from_tick);
            assert_true(e->epoch[i].tier >= e->epoch[i + 1].tier);
        }
    }
    assert_true(fdri_record_self.loc->epoch - before >= MORE_EPOCHS);
    fdr_finalize();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_table_is_full)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
