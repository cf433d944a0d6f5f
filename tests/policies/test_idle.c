/* SPDX-License-Identifier: MIT */
/* ctest: label=unit promise=P10
 * P10: which threads that stand are idle. Waits for locks never are; waits for whatever comes next are. Others are in
 * places where threads have often waited, or have gone when they began. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "policies/idle.h"

enum { UNKNOWN = FDRI_POLICIES_UNKNOWN, NO = FDRI_POLICIES_NO, YES = FDRI_POLICIES_YES };

static enum fdri_policies_answer idle(struct fdri_policies_waiter w) { return fdri_policies_is_idle(&w); }

/* Everything speaks for an idle thread, except perhaps what it waits for. */
static struct fdri_policies_waiter usual(enum fdri_system_wait wait)
{
    return (struct fdri_policies_waiter){
        .wait = wait, .seen_waiting = 100, .passed = 100, .came_back = 100, .blocked = 100, .has_begin = true};
}

static void P10_answer_of_each_wait(void **state)
{
    static const struct {
        enum fdri_system_wait wait;
        int first, often; /* for a thread that is there for the first time; that has often been there */
    } waits[FDRI_SYSTEM_WAIT_COUNT] = {{FDRI_SYSTEM_WAIT_UNKNOWN, UNKNOWN, UNKNOWN},
                                       {FDRI_SYSTEM_WAIT_NONE, NO, NO},
                                       {FDRI_SYSTEM_WAIT_LOCK, NO, NO},
                                       {FDRI_SYSTEM_WAIT_CONDITION, UNKNOWN, YES},
                                       {FDRI_SYSTEM_WAIT_JOIN, YES, YES},
                                       {FDRI_SYSTEM_WAIT_EVENTS, YES, YES},
                                       {FDRI_SYSTEM_WAIT_SIGNAL, YES, YES},
                                       {FDRI_SYSTEM_WAIT_INPUT, UNKNOWN, YES},
                                       {FDRI_SYSTEM_WAIT_CHILD, UNKNOWN, YES},
                                       {FDRI_SYSTEM_WAIT_TIME, UNKNOWN, YES},
                                       {FDRI_SYSTEM_WAIT_SLEEP, YES, YES},
                                       {FDRI_SYSTEM_WAIT_OTHER, NO, NO}};
    (void)state;
    for (int i = 0; i < FDRI_SYSTEM_WAIT_COUNT; i++) {
        assert_int_equal(waits[i].wait, i);
        assert_int_equal(idle((struct fdri_policies_waiter){.wait = waits[i].wait}), waits[i].first);
        assert_int_equal(idle(usual(waits[i].wait)), waits[i].often);
    }
}

/* MPI, locks and barriers, by the region's name. */
static void P10_excluded_regions_are_never_idle(void **state)
{
    (void)state;
    for (int i = 0; i < FDRI_SYSTEM_WAIT_COUNT; i++) {
        struct fdri_policies_waiter w = usual((enum fdri_system_wait)i);
        w.excluded = true;
        assert_int_equal(idle(w), NO);
    }
}

static void P10_often_means_three_waits(void **state)
{
    (void)state;
    struct fdri_policies_waiter w = {.wait = FDRI_SYSTEM_WAIT_CONDITION, .seen_waiting = 2};
    assert_int_equal(idle(w), UNKNOWN);
    w.seen_waiting = 3;
    assert_int_equal(idle(w), YES);
    w = (struct fdri_policies_waiter){.wait = FDRI_SYSTEM_WAIT_CONDITION, .passed = 1000, .came_back = 1000};
    assert_int_equal(idle(w), UNKNOWN); /* it passed often, and waited nowhere */
    w.blocked = 3;
    assert_int_equal(idle(w), YES);
    w.passed = 0;
    assert_int_equal(idle(w), YES);
    w.came_back = 2;
    assert_int_equal(idle(w), UNKNOWN);
}

static void P10_threads_that_have_just_begun_wait_for_their_first_work(void **state)
{
    (void)state;
    struct fdri_policies_waiter w = {.wait = FDRI_SYSTEM_WAIT_CONDITION,
                                     .has_begin = true,
                                     .calls = FDRI_POLICIES_FIRST_CALLS,
                                     .waits_from_ns = FDRI_POLICIES_FIRST_TIME_NS};
    assert_int_equal(idle(w), YES);
    w.calls++;
    assert_int_equal(idle(w), UNKNOWN);
    w.calls--, w.waits_from_ns++;
    assert_int_equal(idle(w), UNKNOWN);
    w.waits_from_ns--, w.has_begin = false;
    assert_int_equal(idle(w), UNKNOWN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(P10_answer_of_each_wait),
                                       cmocka_unit_test(P10_excluded_regions_are_never_idle),
                                       cmocka_unit_test(P10_often_means_three_waits),
                                       cmocka_unit_test(P10_threads_that_have_just_begun_wait_for_their_first_work)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
