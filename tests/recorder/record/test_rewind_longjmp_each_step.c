/* SPDX-License-Identifier: MIT */
/* ctest: label=signals,threads,slow timeout=240 promise=P8 excuse=x86-64
 * ctest: without=asan,tsan (steps single instructions)
 * P8: a handler leaves by longjmp at each instruction of setting a mark and of a rewind to it (of long ones, at
 * every few). Lists, bins and files must stay whole. A half-set mark is no mark, and no mark is used twice. */
#include <fdr/fdr.h>
#include <fdr/reader.h>
#include <stddef.h>
#include <stdint.h>

#include "recorder/thread/thread_state.h"
#include "tests/support/api_fixture.h"
#include "tests/support/random_numbers.h"
#include "tests/support/single_step.h"

#ifdef CAN_STEP
enum { REGIONS = 12, DEPTH = 8, EACH = 120, ROUNDS_A_RECORDING = 40 };
static fdr_region region[REGIONS];
static uint64_t seed, now;

static void present(uint32_t events)
{
    for (uint32_t i = 0; i < events; i++) {
        uint32_t depth = fdri_record_self.loc ? fdri_record_self.loc->depth : 0;
        now += rnd(&seed, 20) ? rnd(&seed, 300) : rnd(&seed, 20000);
        if (rnd(&seed, 30) == 0) fdr_marker_at(1, i, now);
        else if (depth < 1 || (depth < DEPTH && rnd(&seed, 2))) fdr_enter_at(region[rnd(&seed, REGIONS)], now);
        else fdr_leave_at(fdri_record_self.top->region, now);
    }
}

static void start(void)
{
    begin(&(struct fdr_config){.strategy = rnd(&seed, 2) ? "telescope" : "last",
                               .buffer = "256K",
                               .bin = rnd(&seed, 2) ? "512" : "4K",
                               .pin = rnd(&seed, 2) ? "20us" : NULL});
    for (int i = 0; i < REGIONS; i++)
        region[i] = fdr_region_define((const char[]){(char)('a' + i), 0}, "rewind_steps.c", 1);
    present(3000);
}

/* Events since the last possible mark; no rewind drops more. */
static uint32_t fresh;

static void present_fresh(uint32_t events)
{
    present(events);
    fresh += events;
}

static void rewind_now(uint32_t n)
{
    uint64_t before = fdr_usage().filtered;
    fdr_rewind();
    uint64_t forgotten = fdr_usage().filtered - before;
    if (forgotten > fresh) fail_msg("left at %u: %llu events forgotten of %u", n, (unsigned long long)forgotten, fresh);
}

static uint32_t next_of(uint32_t n) { return n < EACH ? n + 1 : n + 1 + rnd(&seed, n / 8); }

static void at_all(void (*f)(void), void (*before)(void))
{
    uint32_t tried = 0;
    for (uint32_t n = 1;; n = next_of(n), tried++) {
        if (tried % ROUNDS_A_RECORDING == 0) {
            if (tried) fdr_file_close(take());
            start();
        }
        if (before) before();
        fresh = 0;
        present_fresh(rnd(&seed, 400));
        if (!leave_at(f, n)) break;
        present_fresh(rnd(&seed, 60));
        rewind_now(n);
        present(rnd(&seed, 60));
        whole(n);
    }
    fdr_file_close(take());
    fdr_finalize();
    assert_true(tried > 100);
}

static void P8_a_mark_that_is_half_set(void **state)
{
    (void)state;
    at_all(fdr_rewind_mark, NULL);
    at_all(fdr_rewind_mark, fdr_rewind_mark);
}

static void P8_rewind_abandoned_at_each_step(void **state)
{
    (void)state;
    start();
    fdr_rewind_mark();
    present(100);
    fdr_rewind();
    present(50);
    fresh = 0;
    rewind_now(0); /* the mark was used */
    fdr_file_close(take());
    at_all(fdr_rewind, fdr_rewind_mark);
}

int main(void)
{
    steps_begin();
    seed = 5;
    now = 1000000;
    const struct CMUnitTest tests[] = {cmocka_unit_test(P8_a_mark_that_is_half_set),
                                       cmocka_unit_test(P8_rewind_abandoned_at_each_step)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
#endif
