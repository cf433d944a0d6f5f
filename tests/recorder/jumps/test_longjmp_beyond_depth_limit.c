/* SPDX-License-Identifier: MIT */
/* ctest: label=signals,threads,slow timeout=240 promise=P3,P8 excuse=x86-64
 * ctest: without=asan,tsan (steps single instructions)
 * P3, P8: a handler leaves by longjmp at each instruction of an enter or leave deeper than FDR_DEPTH, which only counts
 * the call. The depth must then agree with the shadow stack, and each call must be in one column of the ledger. */
#include <fdr/fdr.h>
#include <fdr/reader.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "recorder/thread/arena_place.h"
#include "recorder/thread/thread_state.h"
#include "tests/support/api_fixture.h"
#include "tests/support/random_numbers.h"
#include "tests/support/single_step.h"

#ifdef CAN_STEP
enum { REGIONS = 6, DEPTH = 20, LIMIT = 2 };
static fdr_region region[REGIONS];
static uint64_t seed;

static uint32_t depth_now(void) { return fdri_record_self.loc->depth; }
static void enter(void) { fdr_enter(region[rnd(&seed, REGIONS)]); }
static void leave(void) { fdr_leave(fdri_thread_level(&fdri_record_self, depth_now())->region); }
static void enter_function(void) { fdr_enter_address(enter); }
static void leave_function(void) { fdr_leave_address(enter); }

static void to_depth(uint32_t depth)
{
    while (depth_now() < depth) enter();
    while (depth_now() > depth) leave();
}

static void consistent(uint32_t depth, uint32_t n)
{
    for (uint32_t to = depth + 2; to + 2 > depth; to--) {
        to_depth(to);
        if (fdri_record_self.top != fdri_thread_level(&fdri_record_self, to))
            fail_msg("depth %u left at %u: the innermost open call is not where the depth says", depth, n);
    }
}

/* `before` prepares the thread so that f runs at this depth. */
static void at_each_instruction(uint32_t depth, void (*f)(void), void (*before)(void))
{
    uint32_t n = 1;
    for (bool left = true; left; n = instruction_after(n, 120)) {
        to_depth(depth);
        if (before) before();
        left = leave_at(f, n);
        consistent(depth, n);
    }
    assert_true(n > 30);
}

static void among_depths(const char *resolution, void (*in)(void), void (*out)(void))
{
    begin(&(struct fdr_config){.depth = "2", .buffer = "256K", .timer = oracle_clock("tsc"), .resolution = resolution});
    for (int i = 0; i < REGIONS; i++)
        region[i] = fdr_region_define((const char[]){(char)('a' + i), 0}, "deep_steps.c", 1);
    enter();
    in(); /* the first call does work that is done only once; keep it out of the steps */
    for (uint32_t depth = LIMIT; depth < DEPTH; depth++) {
        at_each_instruction(depth, in, NULL);
        at_each_instruction(depth, out, in);
    }
    to_depth(0);
    struct fdr_file *f = take();
    assert_true(balance(f) > 1000);
    assert_true(fdr_location_info(f, 0)->abandoned > 100);
    end(f);
}

static void P3_a_region_deeper_than_the_limit(void **state)
{
    (void)state;
    among_depths(NULL, enter, leave);
    among_depths("128ns", enter, leave);
}

static void P3_a_function_deeper_than_the_limit(void **state)
{
    (void)state;
    among_depths(NULL, enter_function, leave_function);
}

int main(void)
{
    steps_begin();
    seed = 7;
    const struct CMUnitTest tests[] = {cmocka_unit_test(P3_a_region_deeper_than_the_limit),
                                       cmocka_unit_test(P3_a_function_deeper_than_the_limit)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
#endif
