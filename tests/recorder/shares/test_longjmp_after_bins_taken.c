/* SPDX-License-Identifier: MIT */
/* ctest: label=signals,threads,slow timeout=300 promise=P3 excuse=x86-64
 * ctest: without=asan,tsan (steps single instructions)
 * P3: other threads have taken the newest bins of a sleeping thread. It wakes up, and a handler leaves its first
 * call by longjmp at any instruction. The accounts must count the events of the taken bins exactly once. */
#include "bins/bins.h"
#include "bins/claims.h"
#include "bins/partition.h"
#include "bins/pressure/bins_pressure.h"
#include "format/arena/arena.h"
#include "recorder/recording.h"
#include "recorder/thread/thread_state.h"
#include "tests/support/api_fixture.h"
#include "tests/support/single_step.h"

#include <fdr/fdr.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef CAN_STEP
enum { DEEP = 60, EVERY = 23, MOST = 6000 };

static fdr_region level[DEEP];
static sem_t go, done;
static struct fdri_arena_location *sleeps;
static uint32_t leave_when, rounds;
static bool over;
static uint64_t presented, known;

static void deep(int times)
{
    for (int i = 0; i < times; i++) {
        for (int d = 0; d < DEEP; d++) fdr_enter(level[d]);
        for (int d = DEEP; d-- > 0;) fdr_leave(level[d]);
    }
}

/* The frame lies far below on the stack, so that the next operation recognises the longjmp. */
static __attribute__((noinline)) void call_once(void)
{
    volatile char room[16384];
    room[0] = 1;
    fdr_enter(level[0]);
    fdr_leave(level[0]);
    room[1] = room[0];
}

static void *sleeper(void *unused)
{
    deep(100);
    sleeps = fdri_record_self.loc;
    sem_post(&done);
    sem_wait(&go);
    steps_begin();
    over = !leave_at(call_once, leave_when);
    call_once();
    while (fdri_record_self.loc->depth) fdr_leave(fdri_record_self.top->region);
    struct fdr_usage u = fdr_usage();
    presented = u.presented;
    known = u.stored + u.filtered + u.reduced + u.lost;
    return unused;
}

/* Takes all bins of the sleeper, the newest of each partition included. Returns how many of them were the newest. */
static uint32_t take_all_of(struct fdri_arena_location *l)
{
    struct fdri_bins_arena *a = &fdri_life_recording.arena;
    struct fdri_bins_given given = {0, 0, UINT64_MAX, 0};
    uint32_t size, newest = 0, place = fdri_bins_claim_enter(a, fdri_record_self.loc, l);
    fdri_fall_asleep(l);
    for (uint32_t off = l->parts_first, next; off; off = next) {
        struct fdri_arena_part *p = fdri_bins_at(a, off);
        next = p->next;
        for (uint32_t got; (got = fdri_bins_part_claim(a, p, &size, &given));) fdri_piece_return(a, l, got);
        uint32_t got = fdri_part_claim_newest(a, l, p, &size, &given);
        if (got) fdri_piece_return(a, l, got);
        newest += got != 0;
    }
    fdri_bins_claim_leave(a, place);
    return newest;
}

static void wake_up_and_be_left(uint32_t when)
{
    pthread_t t;
    begin(&(struct fdr_config){.buffer = "4M", .bin = "64K", .timer = oracle_clock("tsc")});
    for (int i = 0; i < DEEP; i++)
        level[i] = fdr_region_define((const char[]){(char)('A' + i % 26), (char)('a' + i / 26), 0}, "awake.c", 1);
    fdr_enter(level[0]);
    fdr_leave(level[0]);
    leave_when = when;
    assert_int_equal(pthread_create(&t, NULL, sleeper, NULL), 0);
    sem_wait(&done);
    uint32_t newest = take_all_of(sleeps);
    sem_post(&go);
    pthread_join(t, NULL);
    assert_true(newest > DEEP / 2); /* else the test proves nothing */
    rounds += !over;
    if (presented != known)
        fail_msg("left at %u: %llu presented, %llu known of", when, (unsigned long long)presented,
                 (unsigned long long)known);
    fdr_finalize();
}

static void P3_longjmp_while_waking_up(void **state)
{
    (void)state;
    sem_init(&go, 0, 0);
    sem_init(&done, 0, 0);
    for (uint32_t when = 1; when < MOST && !over; when += EVERY) wake_up_and_be_left(when);
    print_message("left at %u places\n", rounds);
    assert_true(rounds > 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(P3_longjmp_while_waking_up)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
#endif
