/* SPDX-License-Identifier: MIT */
/* ctest: label=unit timeout=120 promise=P2,P8
 * ctest: wrap=fdri_memory_room,fdri_strategy_reduce,fdri_strategy_step,fdri_memory_prepare_bin
 * P2, P8: a call that opens a bin defers work to later calls, which do one piece each. If no later call comes, the
 * work is done all the same; if a longjmp leaves it, it is done another time. Wrapped functions show which call
 * does the work. */
#include <fdr/fdr.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format/arena/arena.h"
#include "recorder/thread/thread_state.h"
#include "tests/support/api_fixture.h"
#include "tests/support/random_numbers.h"

enum { REGIONS = 12, BUSY = 2000000 };
static fdr_region region[REGIONS];
static bool in_room;
static uint32_t rooms, epochs, aheads;          /* in this call */
static uint32_t all_epochs, all_aheads;         /* deferred work done by later calls */
static uint32_t reduced_in_room, reduced_ahead; /* number of reductions begun */
/* jump in the nth piece of deferred work, by turns before it begins and after it is done; 0: never */
static uint32_t jump_in;
static uint32_t jumps;
static jmp_buf away;

struct fdri_arena_part *__real_fdri_memory_room(struct fdri_thread *t, uint32_t *slot, uint32_t depth, uint32_t class_,
                                                uint32_t band, uint64_t *reduced, uint64_t *lost);
struct fdri_arena_part *__wrap_fdri_memory_room(struct fdri_thread *t, uint32_t *slot, uint32_t depth, uint32_t class_,
                                                uint32_t band, uint64_t *reduced, uint64_t *lost);
struct fdri_arena_part *__wrap_fdri_memory_room(struct fdri_thread *t, uint32_t *slot, uint32_t depth, uint32_t class_,
                                                uint32_t band, uint64_t *reduced, uint64_t *lost)
{
    in_room = true;
    rooms++;
    struct fdri_arena_part *p = __real_fdri_memory_room(t, slot, depth, class_, band, reduced, lost);
    in_room = false;
    return p;
}
uint32_t __real_fdri_strategy_reduce(struct fdri_thread *t, struct fdri_arena_part *p, uint32_t size_log2,
                                     uint32_t *got);
uint32_t __wrap_fdri_strategy_reduce(struct fdri_thread *t, struct fdri_arena_part *p, uint32_t size_log2,
                                     uint32_t *got);
uint32_t __wrap_fdri_strategy_reduce(struct fdri_thread *t, struct fdri_arena_part *p, uint32_t size_log2,
                                     uint32_t *got)
{
    if (in_room) reduced_in_room++;
    else reduced_ahead++;
    return __real_fdri_strategy_reduce(t, p, size_log2, got);
}

static void may_jump(bool when)
{
    if (!jump_in || when != (jumps & 1) || --jump_in) return;
    jumps++;
    longjmp(away, 1);
}
void __real_fdri_strategy_step(struct fdri_thread *t);
void __wrap_fdri_strategy_step(struct fdri_thread *t);
void __wrap_fdri_strategy_step(struct fdri_thread *t)
{
    epochs++;
    all_epochs++;
    may_jump(false);
    __real_fdri_strategy_step(t);
    may_jump(true);
}
void __real_fdri_memory_prepare_bin(struct fdri_thread *t);
void __wrap_fdri_memory_prepare_bin(struct fdri_thread *t);
void __wrap_fdri_memory_prepare_bin(struct fdri_thread *t)
{
    aheads++;
    all_aheads++;
    may_jump(false);
    __real_fdri_memory_prepare_bin(t);
    may_jump(true);
}

static void start(const char *strategy)
{
    all_epochs = all_aheads = reduced_in_room = reduced_ahead = jumps = jump_in = 0;
    begin(&(struct fdr_config){.strategy = strategy, .buffer = "1M", .timer = "tsc"});
    for (int i = 0; i < REGIONS; i++) region[i] = fdr_region_define((const char[]){(char)('a' + i), 0}, "later.c", 1);
}

/* Calls of various durations, without waiting. With `look`, each call may do only one piece of work. */
static void work(uint32_t calls, bool look)
{
    static volatile uint32_t i, spins;
    static uint64_t seed;
    seed = 5;
    i = 0;
    setjmp(away); /* a jump continues with the next call */
    while (i < calls) {
        i++;
        rooms = epochs = aheads = 0;
        fdr_enter(region[rnd(&seed, REGIONS)]);
        for (uint32_t k = rnd(&seed, 3) ? 0 : rnd(&seed, 60); k; k--) spins++;
        fdr_leave(fdri_record_self.top->region);
        if (look) assert_true(!!rooms + epochs + aheads <= 1);
    }
}

static void what_waits(const char *strategy, bool telescope)
{
    start(strategy);
    work(BUSY, true);
    assert_true(fdr_usage().reduced > 0);
    assert_true(telescope ? all_epochs > 10 : all_epochs == 0);
    assert_true(all_aheads > 5);
    assert_true(reduced_ahead > reduced_in_room);
    end(take());
}
static void P2_a_call_does_one_thing_telescope(void **state) { (void)state, what_waits("telescope", true); }
static void P2_a_call_does_one_thing_last(void **state) { (void)state, what_waits("last", false); }

/* Points do no deferred work. Bins are still opened, and epochs still end. */
static void where_no_call_comes_by(void **state)
{
    (void)state;
    uint64_t seed = 9;
    start("telescope");
    fdr_metric_id m = fdr_metric_define("m", "1", FDR_U64, 0);
    for (int i = 0; i < BUSY; i++) fdr_metric_u64(m, rnd(&seed, 1u << 30));
    assert_true(fdr_usage().reduced > 0);
    assert_int_equal(all_epochs + all_aheads, 0);
    assert_true(fdri_record_self.loc->epoch > 8);
    end(take());
}

/* With times presented by the caller, no later call does deferred work, and none is left to it. */
static void where_times_are_presented(void **state)
{
    (void)state;
    uint64_t seed = 3, now = 1000;
    start("telescope");
    for (uint32_t i = 0; i < BUSY; i++) {
        fdr_enter_at(region[rnd(&seed, REGIONS)], now += rnd(&seed, 3000));
        fdr_leave_at(fdri_record_self.top->region, now += 1 + rnd(&seed, 3000));
        assert_int_equal(fdri_record_self.deferred & FDRI_LATER_EPOCH, 0);
    }
    assert_int_equal(all_epochs + all_aheads, 0);
    assert_true(fdri_record_self.loc->epoch > 8);
    end(take());
}

static void P8_left_in_the_middle_it_is_done_another_time(void **state)
{
    (void)state;
    uint32_t left = 0;
    for (uint32_t n = 1; n < 12; n++) {
        start(n % 3 ? "telescope" : "last");
        jump_in = n;
        for (uint32_t more = 0; more < 8; more++) {
            work(BUSY / 16, false);
            if (!jump_in) jump_in = n;
        }
        left += jumps;
        jump_in = 0;
        work(BUSY / 8, false);
        assert_int_equal(fdr_usage().lost, 0);
        end(take()); /* take() fails if the file is damaged */
    }
    assert_true(left > 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(P2_a_call_does_one_thing_telescope),
        cmocka_unit_test(P2_a_call_does_one_thing_last),
        cmocka_unit_test(where_no_call_comes_by),
        cmocka_unit_test(where_times_are_presented),
        cmocka_unit_test(P8_left_in_the_middle_it_is_done_another_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
