/* SPDX-License-Identifier: MIT */
/* ctest: label=signals,threads,slow timeout=300 excuse=x86-64 without=asan,tsan (steps single instructions)
 * The order of worth contains all partitions exactly once. This must also hold if a longjmp leaves the call that
 * makes a partition, at any instruction. */
#include <fdr/fdr.h>
#include <fdr/reader.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "recorder/thread/thread_state.h"
#include "tests/support/api_fixture.h"
#include "tests/support/worth_order_check.h"
#include "tests/support/single_step.h"

#ifdef CAN_STEP
enum { EVERY = 19, MOST = 20000, BEHIND = 9000, INSIDE = 20 };
static fdr_region outer, inner, third;

/* The frame lies far below on the stack, so that the next operation recognises the longjmp. */
static __attribute__((noinline)) void inner_call(void)
{
    volatile char room[16384];
    room[0] = 1;
    fdr_enter(inner);
    fdr_leave(inner);
    room[1] = room[0];
}

static void calls(int times)
{
    for (int i = 0; i < times; i++) {
        fdr_enter(outer);
        for (int k = 0; k < INSIDE; k++) {
            fdr_enter(inner);
            fdr_enter(third);
            fdr_leave(third);
            fdr_leave(inner);
        }
        fdr_leave(outer);
    }
}

/* Leaves the call at instruction `when`; false: the call has fewer instructions. */
static bool left_when_made(uint32_t when)
{
    begin(&(struct fdr_config){.buffer = "512K", .timer = oracle_clock("tsc")});
    outer = fdr_region_define("outer", NULL, 0);
    inner = fdr_region_define("inner", NULL, 0);
    third = fdr_region_define("third", NULL, 0);
    fdr_enter(outer);
    steps_begin();
    bool left = leave_at(inner_call, when);
    while (fdri_record_self.loc->depth) fdr_leave(fdri_record_self.top->region);
    calls(BEHIND);
    uint32_t parts, wrong = misplaced(&fdri_record_self, &parts);
    if (wrong) fail_msg("left at %u: %u of %u partitions in no order, or twice", when, wrong, parts);
    assert_true(fdr_usage().reduced > 0);
    struct fdr_file *f = take();
    balance(f);
    fdr_file_close(f);
    whole(when);
    fdr_finalize();
    return left;
}

static void order_has_what_was_made_when_left(void **state)
{
    (void)state;
    uint32_t n = 1;
    while (n < MOST && left_when_made(n)) n += EVERY;
    assert_true(n > 500);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(order_has_what_was_made_when_left)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
#endif
