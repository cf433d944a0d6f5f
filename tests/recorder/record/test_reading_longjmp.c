/* SPDX-License-Identifier: MIT */
/* ctest: label=signals,threads timeout=300 promise=P3 excuse=x86-64 without=asan,tsan (steps single instructions)
 * P3: a handler leaves fdr_reading by longjmp at some instruction, or an event inside of a call on a thread that
 * also gives readings. After the thread's next event, the ledger must balance. */
#include <fdr/fdr.h>
#include <fdr/reader.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "recorder/thread/thread_state.h"
#include "tests/support/api_fixture.h"
#include "tests/support/single_step.h"

#ifdef CAN_STEP
enum { MOST = 6000, STRIDE = 13, BEFORE = 100 };
static fdr_event_type type;
static fdr_region outer;
static uint64_t number;

static void give_reading(void)
{
    uint64_t v = number;
    fdr_reading(type, &v, number, number + 1);
    number++;
}

static void give_event(void)
{
    uint64_t v = number;
    fdr_event(type, &v);
}

static void is_balanced(uint32_t at)
{
    struct fdr_usage u = fdr_usage();
    uint64_t sum = u.stored + u.filtered + u.reduced + u.lost + fdri_record_self.loc->depth;
    if (u.presented != sum)
        fail_msg("left at instruction %u: presented %llu, accounts say %llu", at, (unsigned long long)u.presented,
                 (unsigned long long)sum);
}

static void left(void (*operation)(void), bool inside)
{
    static const struct fdr_field field = {"v", FDR_U64, 0};
    uint32_t middle = 0;
    begin(&(struct fdr_config){.buffer = "1M", .timer = "tsc"});
    outer = fdr_region_define("outer", NULL, 0);
    type = fdr_event_define("series", &field, 1);
    number = 1;
    for (int i = 0; i < BEFORE; i++) give_reading();
    if (inside) fdr_enter(outer);
    steps_begin();
    for (uint32_t at = 1; at < MOST && leave_at(operation, at); at += STRIDE) {
        middle += fdri_record_self.loc->busy != 0;
        fdr_metric_u64(0, 1);
        is_balanced(at);
    }
    assert_true(middle > 0);
    if (inside) fdr_leave(outer);
    struct fdr_file *f = take();
    fdr_file_close(f);
    fdr_finalize();
}

static void P3_longjmp_from_a_reading(void **state)
{
    (void)state;
    left(give_reading, false);
}

static void P3_longjmp_from_an_event_in_a_call(void **state)
{
    (void)state;
    left(give_event, true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(P3_longjmp_from_a_reading),
                                       cmocka_unit_test(P3_longjmp_from_an_event_in_a_call)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
#endif
