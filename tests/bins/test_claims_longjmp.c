/* SPDX-License-Identifier: MIT */
/* ctest: label=signals,threads,slow timeout=240 promise=P8 excuse=x86-64
 * ctest: without=asan,tsan (steps single instructions)
 * P8: a location that its thread has pinned cannot be entered for claims. A thread that pins sees claims under way. The
 * test leaves a claim, or the ordering of ended threads, by longjmp out of a handler, at every instruction. The claim
 * must end at the thread's next record, also if a second jump leaves a handler that had interrupted a record. */
#include <fdr/fdr.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bins/bins.h"
#include "bins/claims.h"
#include "bins/pieces.h"
#include "format/arena/arena.h"
#include "recorder/ended/ended.h"
#include "recorder/recording.h"
#include "recorder/shares/shares.h"
#include "recorder/thread/thread.h"
#include "recorder/thread/thread_state.h"
#include "tests/support/api_fixture.h"
#include "tests/support/random_numbers.h"
#include "tests/support/single_step.h"

#ifdef CAN_STEP
static void one_by_one(void **state)
{
    (void)state;
    begin(&(struct fdr_config){.buffer = "8M"});
    fdr_enter(fdr_region_define("a", NULL, 0));
    struct fdri_bins_arena *a = &fdri_life_recording.arena;
    struct fdri_arena_location *v = fdri_record_self.loc, *who = fdri_life_recording.shares.spare[0],
                               *other = fdri_life_recording.shares.spare[1];
    assert_true(fdri_bins_claim_pin(a, v));
    assert_int_equal(fdri_bins_claim_enter(a, who, v), 0);
    fdri_bins_claim_unpin(v);
    uint32_t first = fdri_bins_claim_enter(a, who, v), second = fdri_bins_claim_enter(a, other, v);
    assert_true(first && second && first != second);
    assert_false(fdri_bins_claim_pin(a, v));
    fdri_bins_claim_unpin(v);
    fdri_bins_claim_leave(a, first);
    assert_false(fdri_bins_claim_pin(a, v));
    fdri_bins_claim_abandoned(a, who); /* its claim has ended already */
    assert_false(fdri_bins_claim_pin(a, v));
    fdri_bins_claim_abandoned(a, other);
    assert_true(fdri_bins_claim_pin(a, v));
    fdri_bins_claim_unpin(v);
    fdr_finalize();
}

static void many(void **state)
{
    (void)state;
    begin(&(struct fdr_config){.buffer = "8M"});
    fdr_enter(fdr_region_define("a", NULL, 0));
    struct fdri_bins_arena *a = &fdri_life_recording.arena;
    struct fdri_arena_location *v = fdri_record_self.loc, *who = fdri_life_recording.shares.spare[0];
    uint32_t place, inside = 0, last = 0;
    /* Enter the same location until no place is free. */
    while ((place = fdri_bins_claim_enter(a, who, v))) inside++, last = place;
    assert_in_range(inside, 2, FDRI_BINS_CLAIMERS);
    fdri_bins_claim_leave(a, last);
    assert_int_equal(fdri_bins_claim_enter(a, who, v), last);
    fdri_bins_claim_abandoned(a, who);
    assert_true(fdri_bins_claim_pin(a, v));
    fdri_bins_claim_unpin(v);
    fdr_finalize();
}

enum { BUSY_CALLS = 60000, EACH = 120, MOST = 6000 };
static fdr_region region;
static uint64_t seed = 88172645463325252u;
static struct fdri_arena_location *rich;

static void calls(uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        fdr_enter(region);
        fdr_leave(region);
    }
}

static void *fill(void *unused)
{
    calls(BUSY_CALLS);
    rich = fdri_record_self.loc;
    return unused;
}

static pthread_barrier_t filled, over;
static void *holds_all(void *unused)
{
    fill(NULL);
    pthread_barrier_wait(&filled);
    pthread_barrier_wait(&over);
    return unused;
}

static void take_of_rich(void)
{
    struct fdri_thread *t = fdri_thread_begin(FDRI_THREAD_NO_EVENT);
    uint32_t off = fdri_shares_claim_piece(t, fdri_life_recording.arena.bin_log2);
    if (off) fdri_bins_piece_give(&fdri_life_recording.arena, t->loc, off, fdri_life_recording.arena.bin_log2);
    fdri_thread_end(t);
}

static uint32_t inside(void)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < FDRI_BINS_CLAIMERS; i++) n += fdri_life_recording.arena.claimers[i] != 0;
    return n;
}

static void work_off(void)
{
    struct fdri_thread *t = fdri_thread_begin(FDRI_THREAD_NO_EVENT);
    fdri_ended_room(t, FDRI_ENDED_FOR_POOR);
    fdri_thread_end(t);
}

static void *records(void *unused)
{
    calls(100);
    return unused;
}

/* The handler interrupts a record of its thread and runs `inner`. A first jump leaves `inner` at instruction n. A
 * second one leaves the handler and the record. */
static sigjmp_buf out;
static void (*inner)(void);
static uint32_t inner_at;
static volatile bool inner_left;
static void nested(int number)
{
    (void)number;
    inner_left = leave_at(inner, inner_at);
    siglongjmp(out, 1);
}
static bool leave_nested(void (*f)(void), uint32_t n)
{
    inner = f;
    inner_at = n;
    if (!sigsetjmp(out, 1)) {
        fdri_thread_begin(FDRI_THREAD_NO_EVENT);
        raise(SIGUSR2);
    }
    return inner_left;
}

static void at_each_instruction(bool (*leave)(void (*)(void), uint32_t), void (*f)(void))
{
    uint32_t n = 1, seen = 0;
    bool left = true;
    while (left && n < MOST) {
        pthread_t t;
        begin(&(struct fdr_config){.buffer = "512K", .bin = "512"});
        region = fdr_region_define("b", NULL, 0);
        pthread_barrier_init(&filled, NULL, 2);
        pthread_barrier_init(&over, NULL, 2);
        assert_int_equal(pthread_create(&t, NULL, holds_all, NULL), 0);
        pthread_barrier_wait(&filled);
        for (int i = 0; i < 3; i++) {
            pthread_t ends;
            assert_int_equal(pthread_create(&ends, NULL, records, NULL), 0);
            pthread_join(ends, NULL);
        }
        calls(20);
        for (int i = 0; i < 60 && left && n < MOST; i++, n += n < EACH ? 1 : 1 + rnd(&seed, n / 10)) {
            left = leave(f, n);
            seen += inside() != 0 || fdri_life_recording.shares.lock;
            calls(1);
            assert_int_equal(inside(), 0);
            assert_int_equal(fdri_life_recording.shares.lock, 0);
            assert_true(fdri_bins_claim_pin(&fdri_life_recording.arena, rich));
            fdri_bins_claim_unpin(rich);
            whole(n);
        }
        pthread_barrier_wait(&over);
        pthread_join(t, NULL);
        fdr_finalize();
    }
    assert_true(seen > 5);
}

static void P8_claim_abandoned_by_longjmp(void **state)
{
    (void)state;
    at_each_instruction(leave_at, take_of_rich);
}
static void P8_claim_of_a_handler_abandoned_by_longjmp(void **state)
{
    (void)state;
    at_each_instruction(leave_nested, take_of_rich);
}
static void P8_lock_abandoned_by_a_handler(void **state)
{
    (void)state;
    at_each_instruction(leave_nested, work_off);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_by_one), cmocka_unit_test(many), cmocka_unit_test(P8_claim_abandoned_by_longjmp),
        cmocka_unit_test(P8_claim_of_a_handler_abandoned_by_longjmp), cmocka_unit_test(P8_lock_abandoned_by_a_handler)};
    steps_begin();
    signal(SIGUSR2, nested);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
#endif
