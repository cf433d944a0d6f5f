/* SPDX-License-Identifier: MIT */
/* ctest: label=unit timeout=120 promise=P2 wrap=fdri_policies_precedes
 * P2: sorting the table of partitions by worth is bounded work for each step: a piece at a time. Points of two
 * classes at many depths take turns in holding more, so the order changes all the time. When a pass ends, the table
 * must be in order. */
#include <fdr/fdr.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bits.h"
#include "format/arena/arena.h"
#include "policies/policies.h"
#include "recorder/recording.h"
#include "recorder/strategy/reduce.h"
#include "recorder/strategy/worth_order.h"
#include "recorder/thread/arena_place.h"
#include "recorder/thread/thread_state.h"
#include "tests/support/api_fixture.h"
#include "tests/support/random_numbers.h"

enum { DEEP = 150, PHASES = 16, TURNS = 1, POINTS = 60, MOST = 6000 };
static uint32_t compared, most;

bool __real_fdri_policies_precedes(const struct fdri_policies_chain *chain, const struct fdri_policies_part_view *a,
                                   const struct fdri_policies_part_view *b, enum fdri_policies_reason *why);
bool __wrap_fdri_policies_precedes(const struct fdri_policies_chain *chain, const struct fdri_policies_part_view *a,
                                   const struct fdri_policies_part_view *b, enum fdri_policies_reason *why);
bool __wrap_fdri_policies_precedes(const struct fdri_policies_chain *chain, const struct fdri_policies_part_view *a,
                                   const struct fdri_policies_part_view *b, enum fdri_policies_reason *why)
{
    compared++;
    return __real_fdri_policies_precedes(chain, a, b, why);
}

static void over(void)
{
    most = (uint32_t)fdri_bits_max(most, compared);
    compared = 0;
}

/* Compares with the policy's order of partitions, not of table places. Not inlined: sanitizers compare the address
 * of a thread-local variable with NULL. ld of Debian 12 replaces the add by a lea there, although the flags of the
 * add are used. */
static __attribute__((noinline)) void is_in_order(struct fdri_thread *t)
{
    struct fdri_strategy_cursor c = FDRI_STRATEGY_CURSOR_START;
    uint64_t bytes[FDRI_ARENA_CLASS_COUNT] = {0};
    uint32_t places = 0;
    enum fdri_policies_reason why;
    for (uint32_t i = 0; i < t->order_count; i++) {
        const struct fdri_arena_part *p = fdri_thread_at(t, fdri_strategy_order_at(t, &c, i)->part);
        bytes[p->class_] += p->bytes;
    }
    do fdri_strategy_order_sort(t);
    while (t->order_sorted);

    for (uint32_t i = 1; i < t->order_count; i++) {
        const struct fdri_arena_part *p = fdri_thread_at(t, fdri_strategy_order_at(t, &c, i - 1)->part),
                                     *q = fdri_thread_at(t, fdri_strategy_order_at(t, &c, i)->part);
        struct fdri_policies_part_view a = fdri_strategy_view_of(p, bytes), b = fdri_strategy_view_of(q, bytes);
        a.oldest = b.oldest = 0;
        if (__real_fdri_policies_precedes(&fdri_life_recording.settings.chain, &b, &a, &why))
            fail_msg("place %u before %u", i, i - 1);
        places++;
    }
    assert_true(places >= 2 * DEEP);
}

static void classes_that_take_turns(void **state)
{
    fdr_region region[DEEP];
    uint64_t t = 1000, seed = 88172645463325252u;
    (void)state;
    begin(&(struct fdr_config){.buffer = "2M", .timer = "monotonic"});
    define_regions(region, DEEP);
    most = 0;
    for (int phase = 0; phase < PHASES; phase++)
        for (int turn = 0; turn < TURNS; turn++) {
            for (int d = 0; d < DEEP; d++) {
                fdr_enter_at(region[d], t += 10000);
                for (int i = 0; i < POINTS; i++) {
                    uint64_t value = rnd(&seed, 1u << 30);
                    if (phase & 1) fdr_metric_u64_at(0, value, t += 100);
                    else fdr_marker_at(0, value, t += 100);
                    over();
                }
            }
            for (int d = DEEP; d-- > 0;) {
                fdr_leave_at(region[d], t += 300000);
                over();
            }
        }
    print_message("at most %u comparisons in one operation\n", most);
    assert_in_range(most, 100, MOST);
    is_in_order(&fdri_record_self);
    fdr_finalize();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(classes_that_take_turns)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
