/* SPDX-License-Identifier: MIT */
/* ctest: label=signals,threads,slow timeout=600 promise=P3 excuse=x86-64
 * ctest: without=asan,tsan (steps single instructions)
 * P3: a handler leaves an operation by longjmp, to a frame high above it. The next operation repairs it, and
 * another handler interrupts that repair at any instruction and records. The repair must happen exactly once:
 * presented calls equal the accounts plus the open calls. */
#include "format/arena/arena.h"
#include "recorder/thread/arena_place.h"
#include "recorder/thread/thread_state.h"
#include "tests/support/api_fixture.h"
#include "tests/support/single_step.h"

#include <fdr/fdr.h>
#include <fdr/reader.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <ucontext.h>

#ifdef CAN_STEP
/* The test leaves at every EVERY-th instruction, and the other handler comes at every THE_OTHER-th. To save time,
 * each place of leaving uses one in APART of these instructions, shifted by one each time. */
enum { EVERY = 5, THE_OTHER = 29, APART = 7 };
static fdr_region outer, inner, handled;
static volatile uint32_t record_in; /* instructions until the other handler records */

static void record(int number, siginfo_t *info, void *context)
{
    (void)number;
    (void)info;
    if (!record_in || --record_in) return;
    ((ucontext_t *)context)->uc_mcontext.gregs[REG_EFL] &= ~0x100;
    fdr_enter(handled);
    fdr_leave(handled);
}

static __attribute__((noinline)) void enter_far_below(void)
{
    volatile char room[16384];
    room[0] = 1;
    fdr_enter(inner);
    room[1] = room[0];
}

static uint32_t timed_open(const struct fdri_thread *t)
{
    uint32_t n = 0;
    for (uint32_t d = 1; t->loc && d <= t->loc->depth; d++)
        n += !(fdri_thread_level(t, d)->flags & FDRI_ARENA_LEVEL_UNTIMED);
    return n;
}

static void P3_what_was_left_is_settled_once(void **state)
{
    (void)state;
    begin(&(struct fdr_config){.buffer = "1M", .timer = oracle_clock("tsc")});
    outer = fdr_region_define("outer", NULL, 0);
    inner = fdr_region_define("inner", NULL, 0);
    handled = fdr_region_define("handled", NULL, 0);
    fdr_enter(outer);
    enter_far_below();
    fdr_leave(inner);
    uint32_t settled = 0;
    bool more = true;
    for (uint32_t at = 1; more; at += EVERY) {
        for (uint32_t n = 1 + at / EVERY * THE_OTHER % (APART * THE_OTHER);; n += APART * THE_OTHER) {
            steps_begin();
            more = leave_at(enter_far_below, at);
            bool left = fdri_record_self.loc->busy;
            settled += left;
            sigaction(SIGTRAP, &(struct sigaction){.sa_sigaction = record, .sa_flags = SA_SIGINFO}, NULL);
            record_in = n;
            steps_on();
            fdr_leave(inner);
            steps_off();
            bool over = record_in;
            record_in = 0;
            struct fdr_usage u = fdr_usage();
            uint64_t sum = u.stored + u.filtered + u.reduced + u.lost + timed_open(&fdri_record_self) +
                           timed_open(&fdri_record_lane);
            if (u.presented != sum)
                fail_msg("left at %u, a handler at %u: %llu presented, %llu known of", at, n,
                         (unsigned long long)u.presented, (unsigned long long)sum);
            while (fdri_record_self.loc->depth > 1) fdr_leave(fdri_record_self.top->region);
            if (over || !left) break;
        }
    }
    assert_true(settled > 100);
    fdr_leave(outer);
    struct fdr_file *f = take();
    balance(f);
    end(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(P3_what_was_left_is_settled_once)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
#endif
